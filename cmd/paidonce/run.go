package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/paidonce/paidonce/internal/config"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // it ran, and found or failed something
	exitUsage  = 2 // it was called wrongly and did nothing
)

// commands is the command line. A command's own file says what it does; kong
// reads name, help and flags from the tags.
type commands struct {
	Config string `short:"c" placeholder:"FILE" help:"Configuration (default: $$PAIDONCE_CONFIG, else paidonce.yaml, else what dev made here)."`

	Dev     devCmd     `cmd:"" group:"run" help:"Run everything here, on a Postgres that it starts itself."`
	Serve   serveCmd   `cmd:"" group:"run" help:"Take webhooks and API requests in."`
	Work    workCmd    `cmd:"" group:"run" help:"Tell merchants what to do."`
	Migrate migrateCmd `cmd:"" group:"run" help:"Bring the database to this version's schema."`

	Doctor  doctorCmd  `cmd:"" group:"look" help:"List what needs a person, the most urgent first, and what resolves it."`
	Explain explainCmd `cmd:"" group:"look" help:"Say in plain sentences why an order or event is as it is."`
	Orders  ordersCmd  `cmd:"" group:"look" help:"List and show orders."`
	Events  eventsCmd  `cmd:"" group:"look" help:"List and show events."`
	Effects effectsCmd `cmd:"" group:"look" help:"List what merchants were told or must be told, and retry it."`
	Fetches fetchesCmd `cmd:"" group:"look" help:"List what gateways are to be asked about, and ask now."`

	Reconcile reconcileCmd `cmd:"" group:"look" help:"Ask gateways what happened, and take in what no webhook brought; or hold their payout reports against the ledgers."`

	Transactions transactionsCmd `cmd:"" group:"look" help:"List what gateways were asked to move, and say what became of it where nobody else can."`
	Audit        auditCmd        `cmd:"" group:"look" help:"Fold everything again, and say what in the database does not agree."`

	Keys keysCmd `cmd:"" group:"look" help:"Make API keys, and say what became of an Idempotency-Key."`

	Verify verifyCmd `cmd:"" group:"look" help:"Say why a signature does not match."`

	Send   sendCmd   `cmd:"" group:"send" help:"Make one signed event and send it, as the gateway would."`
	Replay replayCmd `cmd:"" group:"send" help:"Send signed events from files, or take stored ones in once more."`

	Configuration configCmd     `cmd:"" name:"config" group:"settings" help:"Check the configuration, or start a new one."`
	Gateways      gatewaysCmd   `cmd:"" group:"settings" help:"List the gateways and what they understand."`
	Health        healthCmd     `cmd:"" group:"settings" help:"Ask a running process whether it is ready."`
	Version       versionCmd    `cmd:"" group:"settings" help:"Show the version."`
	Completion    completionCmd `cmd:"" group:"settings" help:"Print a completion script for a shell."`

	Complete completeCmd `cmd:"" name:"__complete" hidden:""`
}

var groups = []kong.Group{
	{Key: "run", Title: "Run it:"},
	{Key: "look", Title: "See what happened:"},
	{Key: "send", Title: "Send events:"},
	{Key: "settings", Title: "Set it up:"},
}

// env is what a command has beside its own flags: nothing of a command is
// global, so tests drive the whole program in-process.
type env struct {
	config  string // --config
	getenv  func(string) string
	environ []string // the names of all variables
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	now     func() time.Time
	model   *kong.Kong
}

// errFailed ends a command with exit code 1 when it has said all there is to say.
var errFailed = errors.New("failed")

// usageError is an error in how a command was called.
type usageError struct{ error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exited unwinds the parser where kong would end the process (after --help).
type exited int

// run is main without globals; environ is what os.Environ returns. It returns
// the exit code.
func run(ctx context.Context, args []string, getenv func(string) string, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	e := &env{getenv: getenv, stdin: stdin, stdout: stdout, stderr: stderr, now: time.Now} //nolint:forbidigo // the edge where the real clock enters
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		e.environ = append(e.environ, name)
	}
	return e.run(ctx, args)
}

// run runs one command line and returns the exit code.
func (e *env) run(ctx context.Context, args []string) (code int) {
	defer func() {
		if r := recover(); r != nil {
			c, ok := r.(exited)
			if !ok {
				panic(r)
			}
			code = int(c)
		}
	}()
	var cli commands
	parser, err := kong.New(
		&cli,
		kong.Name("paidonce"),
		kong.Description("Paidonce takes the webhooks of payment gateways in and makes each payment take effect on your order once."),
		kong.Writers(e.stdout, e.stderr),
		kong.Exit(func(code int) { panic(exited(code)) }),
		kong.ExplicitGroups(groups),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(e),
	)
	if err != nil {
		panic(fmt.Sprintf("the command line is declared wrongly: %v", err))
	}
	e.model = parser
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(joinSecrets(args))
	if err != nil {
		fmt.Fprintf(e.stderr, "paidonce: %s; see %s --help\n", err, helpFor(err))
		return exitUsage
	}
	e.config = cli.Config
	return e.report(parsed.Run())
}

// joinSecrets writes "--secret VALUE" as "--secret=VALUE" where the value begins with
// a hyphen, as keys in PEM do: the parser takes it for a flag else, and shows it.
func joinSecrets(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		if arg := args[i]; (arg == "--secret" || arg == "--other") && i+1 < len(args) {
			if next := args[i+1]; strings.HasPrefix(next, "-----") || len(next) > 2 && next[0] == '-' && next[1] != '-' {
				out = append(out, arg+"="+next)
				i++
				continue
			}
		}
		out = append(out, args[i])
	}
	return out
}

// helpFor is the command whose help tells more about an error of the parser.
func helpFor(err error) string {
	var parse *kong.ParseError
	if !errors.As(err, &parse) || parse.Context == nil {
		return "paidonce"
	}
	names := []string{"paidonce"}
	for _, step := range parse.Context.Path {
		if step.Command != nil {
			names = append(names, step.Command.Name)
		}
	}
	return strings.Join(names, " ")
}

// report writes what a command returned, and chooses the exit code.
func (e *env) report(err error) int {
	var wrong usageError
	switch problems := config.Problems(err); {
	case err == nil:
		return exitOK
	case errors.Is(err, errFailed):
		return exitFailed
	case errors.As(err, &wrong):
		fmt.Fprintf(e.stderr, "paidonce: %v\n", err)
		return exitUsage
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(e.stderr, "paidonce: interrupted")
		return exitFailed
	case len(problems) > 1:
		fmt.Fprintf(e.stderr, "paidonce: the configuration has %d problems; correct these places:\n", len(problems))
		for _, p := range problems {
			fmt.Fprintf(e.stderr, "  %v\n", p)
		}
		return exitFailed
	default:
		fmt.Fprintf(e.stderr, "paidonce: %v\n", err)
		return exitFailed
	}
}
