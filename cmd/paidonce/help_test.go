package main

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

// commandsOf lists every command that people see, as its words.
func commandsOf(node *kong.Node, path []string) [][]string {
	all := [][]string{path}
	for _, child := range node.Children {
		if !child.Hidden {
			all = append(all, commandsOf(child, append(append([]string{}, path...), child.Name))...)
		}
	}
	return all
}

func model(t *testing.T) *kong.Node {
	t.Helper()
	k, err := kong.New(&commands{}, kong.ExplicitGroups(groups))
	require.NoError(t, err)
	return k.Model.Node
}

// Every command has a help that is reviewed as a golden file, and those that
// are called by themselves have an example in it.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, path := range commandsOf(model(t), nil) {
		name := strings.Join(append([]string{"paidonce"}, path...), " ")
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			a := call(t, append(path, "--help"))
			require.Equal(t, exitOK, a.code)
			require.Empty(t, a.stderr)
			golden(t, "help/"+strings.ReplaceAll(name, " ", "_")+".golden", a.stdout)
			if len(path) == 1 && path[0] != "version" {
				require.Contains(t, a.stdout, "Example")
				require.Regexp(t, `(?m)^    .*paidonce `+path[0], a.stdout)
			}
		})
	}
	bare := call(t, nil)
	require.Equal(t, exitOK, bare.code)
	require.Contains(t, bare.stdout, "Usage: paidonce <command> [flags]")
}

func TestWrongCalls(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, want string }{
		{"nope", "paidonce: unexpected argument nope; see paidonce --help"},
		{"--nope", "paidonce: unknown flag --nope; see paidonce --help"},
		{"send stripe", `paidonce: expected "<type>"; see paidonce send --help`},
		{"config", `paidonce: expected one of "check", "example", "reference"; see paidonce config --help`},
		{"effects --state bad", `paidonce: --state must be one of "open","claimed","done","canceled","assumed","dead" but got "bad"; see paidonce effects list --help`},
		{"effects retry --state done", "paidonce: --state: only effects that are open or dead can be retried, not done"},
		{"fetches retry --state done", "paidonce: --state: only objects that are open or dead can be retried, not done"},
		{"transactions --status bad", `paidonce: --status must be one of "","pending","sent","succeeded","failed","uncertain" but got "bad"; see paidonce transactions list --help`},
		{"transactions resolve x --outcome failed --note seen", `paidonce: "x" is no id of a transaction; paidonce transactions lists them`},
		{"transactions resolve x --outcome failed --note seen --gateway-ref re_1", "paidonce: --gateway-ref belongs to --outcome succeeded: where nothing was done, nothing was made"},
		{"transactions resolve x --outcome failed", "paidonce: missing flags: --note=TEXT; see paidonce transactions resolve --help"},
		{"effects --since never", "paidonce: --since never: want a time such as 2026-01-31T12:00:00Z, or how long ago, such as 24h"},
		{"dev --exit", "paidonce: dev: --exit and --json belong to --replay"},
		{"replay", "paidonce: replay: name a file or a folder, or --from-db"},
		{"replay . --apply", "paidonce: replay: --where, --apply and --after belong to --from-db"},
		{"replay . --from-db", "paidonce: replay: name a path or --from-db, not both"},
		{"replay --from-db --dry-run --apply", "paidonce: replay --from-db: --dry-run or --apply, not both"},
		{"replay --from-db --to http://x", "paidonce: replay --from-db sends nothing anywhere; --to belongs to files"},
		{"replay --from-db --where x", `paidonce: --where: "x" is no term; there are account=, source=, gateway=, type=, outcome=, reason=, event=, order=, since=, until=, mapping_version<`},
		{"replay --from-db --source s --where source=s", "paidonce: replay --from-db: --source is --where source="},
		{"replay --from-db --after here", `paidonce: --after: "here" is no time/id; it is printed where a replay is interrupted`},
		{"gateways foo", `paidonce: there is no gateway "foo"; paidonce gateways lists them`},
		{"completion tcsh", `paidonce: <shell> must be one of "bash","zsh","fish" but got "tcsh"; see paidonce completion --help`},
	} {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			a := call(t, strings.Fields(tt.args))
			require.Equal(t, exitUsage, a.code)
			require.Empty(t, a.stdout)
			require.Equal(t, tt.want+"\n", a.stderr)
		})
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		a := call(t, words("completion %s", shell))
		require.Equal(t, exitOK, a.code)
		require.Contains(t, a.stdout, "paidonce __complete")
	}
	for _, tt := range []struct {
		words []string
		want  string
	}{
		{[]string{"e"}, "explain events effects"},
		{[]string{"effects", ""}, "list retry"},
		{[]string{"effects", "retry", "--s"}, "--since --state"},
		{[]string{"effects", "--state", "d"}, "done dead"},
		{[]string{"--config", "x.yaml", "mig"}, "migrate"},
		{[]string{"completion", ""}, "bash zsh fish"},
		{[]string{"-"}, "--config --help"},
		{[]string{"nonsense", "more", ""}, strings.Join(func() (names []string) {
			for _, c := range model(t).Children {
				if !c.Hidden {
					names = append(names, c.Name)
				}
			}
			return names
		}(), " ")},
	} {
		a := call(t, append([]string{"__complete", "--"}, tt.words...))
		require.Equal(t, exitOK, a.code)
		require.Equal(t, tt.want, strings.Join(strings.Fields(a.stdout), " "), tt.words)
	}
}
