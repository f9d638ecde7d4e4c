package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/config"
)

type replayCmd struct {
	Path   string `arg:"" optional:"" type:"existingpath" help:"A payload (.json), a file with one in each line (.jsonl), or a folder of such files."`
	Source string `placeholder:"ID" help:"The source to send to, or to read. Default for files: the one that their folder is called after, by its id or its gateway."`
	To     string `placeholder:"URL" help:"Where to send it (default: the serve of the configuration on this machine)."`
	DryRun bool   `help:"Only read the payloads and say what they mean; send nothing."`
	JSON   bool   `help:"Print JSON."`

	FromDB bool     `name:"from-db" help:"Take stored deliveries in once more. Says what would change; --apply does it."`
	Where  []string `sep:"none" placeholder:"TERM" help:"With --from-db: only deliveries of which this holds; several: joined by commas, or the flag again."`
	Apply  bool     `help:"With --from-db: do it."`
	After  string   `placeholder:"CURSOR" help:"With --from-db: go on where it was interrupted."`
}

// Help is the text below the flags.
func (replayCmd) Help() string {
	return `Payloads from files are signed with the secret of the source and sent in the order of their names, as the gateway would. What was processed before is a duplicate and changes nothing.

With --from-db nothing is sent: kept bytes are read with today's mapping and go the way of new ones. Events that are known change nothing, however often; those that are missing are entered. What an event was taken to say is never replaced: paidonce events reevaluate does that. A dry run, the default, says for each order what would become of it, and writes nothing.

Terms of --where: account=, source=, gateway=, type=, outcome=, reason=, event=, order=, since=, until= (received; RFC 3339, or how long ago: 24h), and mapping_version<N; all must hold. Without any, all deliveries are read that are kept. What is asked of events (type, event, order) holds for one that the delivery brought, or that its bytes hold today and that is missing; outcome, reason and mapping_version are of known events only.

It can be interrupted, and says how to go on. It exits with 1 if a delivery could not be read, or an event means something else today.

Examples:

    paidonce replay testdata/payloads/stripe --dry-run
    paidonce replay ./captured/2026-11-30 --source stripe --to https://staging.example
    paidonce replay --from-db --where source=stripe,since=48h
    paidonce replay --from-db --where order=ord_1 --apply`
}

// Run runs the command.
func (c replayCmd) Run(ctx context.Context, e *env) error {
	switch {
	case c.FromDB && c.Path != "":
		return usage("replay: name a path or --from-db, not both")
	case c.FromDB:
		return c.fromDB(ctx, e)
	case c.Path == "":
		return usage("replay: name a file or a folder, or --from-db")
	case c.Apply || len(c.Where) > 0 || c.After != "":
		return usage("replay: --where, --apply and --after belong to --from-db")
	}
	cfg, err := e.loadAccounts()
	if err != nil {
		return err
	}
	payloads, err := c.payloads(cfg)
	if err != nil {
		return err
	}
	if c.DryRun {
		return c.read(e, payloads)
	}
	return c.send(ctx, e, cfg, payloads)
}

// payload is one body to send.
type payload struct {
	name   string // file, or file:line
	source gateway.Source
	body   []byte
}

// payloads reads everything before anything is sent.
func (c replayCmd) payloads(cfg *config.Config) ([]payload, error) {
	files, err := payloadFiles(c.Path)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, usage("there are no .json or .jsonl files in %s", c.Path)
	}
	var all []payload
	for _, file := range files {
		source, err := c.sourceFor(cfg, file)
		if err != nil {
			return nil, err
		}
		data, err := readFile(file)
		if err != nil {
			return nil, err
		}
		if filepath.Ext(file) == ".json" {
			all = append(all, payload{file, source, data})
			continue
		}
		lines := bufio.NewScanner(bytes.NewReader(data))
		lines.Buffer(nil, len(data)+1)
		for n := 1; lines.Scan(); n++ {
			if len(bytes.TrimSpace(lines.Bytes())) > 0 {
				all = append(all, payload{file + ":" + strconv.Itoa(n), source, bytes.Clone(lines.Bytes())})
			}
		}
	}
	return all, nil
}

func payloadFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		if ext := filepath.Ext(path); ext != ".json" && ext != ".jsonl" {
			return nil, usage("%s: want a .json or .jsonl file; scenarios (.yaml) are played by paidonce dev --replay", path)
		}
		return []string{path}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ext := filepath.Ext(name); d.Type().IsRegular() && (ext == ".json" || ext == ".jsonl") {
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

// sourceFor finds out where a file belongs: to --source, else to the source that
// its folder is called after, else to the only source of the gateway that it is.
func (c replayCmd) sourceFor(cfg *config.Config, file string) (gateway.Source, error) {
	if c.Source != "" {
		source, _, err := sourceOf(cfg, c.Source)
		return source, err
	}
	abs, err := filepath.Abs(file)
	if err != nil {
		return gateway.Source{}, err
	}
	folder := filepath.Base(filepath.Dir(abs))
	sources := cfg.Sources()
	if source, ok := sources[folder]; ok {
		return source, nil
	}
	var fits []string
	for _, id := range slices.Sorted(maps.Keys(sources)) {
		if sources[id].Gateway == folder {
			fits = append(fits, id)
		}
	}
	if len(fits) != 1 {
		return gateway.Source{}, usage("%s: say with --source which source it is for; its folder %q fits %s", file, folder, orNone(fits))
	}
	return sources[fits[0]], nil
}

// sign makes a delivery of a payload.
func (c replayCmd) sign(e *env, p payload) (*gateway.Gateway, gateway.Delivery, error) {
	g, ok := gateway.Lookup(p.source.Gateway)
	if !ok {
		return nil, gateway.Delivery{}, fmt.Errorf("source %s: there is no gateway %q", p.source.ID, p.source.Gateway)
	}
	d, err := g.Deliver(p.source, p.body, "", e.now())
	return g, d, err
}

// read says what the server would make of the payloads.
func (c replayCmd) read(e *env, payloads []payload) error {
	type event struct {
		File    string `json:"file"`
		Source  string `json:"source"`
		ID      string `json:"id,omitempty"`
		Type    string `json:"type,omitempty"`
		Means   string `json:"means"`
		Refused bool   `json:"refused,omitempty"`
	}
	events, refused := []event{}, 0
	for _, p := range payloads {
		g, d, err := c.sign(e, p)
		if err == nil {
			var read []event
			found, readErr := g.Events(p.source, d)
			for _, f := range found {
				read = append(read, event{File: p.name, Source: p.source.ID, ID: f.ID, Type: f.Type, Means: meaning(f)})
			}
			events, err = append(events, read...), readErr
		}
		if err != nil {
			refused++
			events = append(events, event{File: p.name, Source: p.source.ID, Means: err.Error(), Refused: true})
		}
	}
	if c.JSON {
		if err := e.printJSON(events); err != nil {
			return err
		}
	} else {
		rows := make([][]string, len(events))
		for i, ev := range events {
			rows[i] = []string{ev.File, ev.Source, ev.ID, ev.Type, ev.Means}
		}
		table(e.stdout, []string{"FILE", "SOURCE", "EVENT", "TYPE", "MEANS"}, rows)
		fmt.Fprintf(e.stdout, "%s, %s, %d refused. Nothing was sent.\n", plural(len(payloads), "payload"), plural(len(events)-refused, "event"), refused)
	}
	if refused > 0 {
		return errFailed
	}
	return nil
}

// send sends the payloads one after another.
func (c replayCmd) send(ctx context.Context, e *env, cfg *config.Config, payloads []payload) error {
	type failure struct {
		File   string `json:"file"`
		Status int    `json:"status,omitempty"`
		Err    string `json:"error,omitempty"`
	}
	out := struct {
		Deliveries int         `json:"deliveries"`
		Statuses   map[int]int `json:"statuses"`
		Failed     []failure   `json:"failed"`
	}{Statuses: map[int]int{}, Failed: []failure{}}
	progress := e.newBar()
	for i, p := range payloads {
		progress.show(i, len(payloads), p.name)
		to, err := endpoint(c.To, cfg, p.source.ID)
		if err != nil {
			return err
		}
		_, d, err := c.sign(e, p)
		status := 0
		if err == nil {
			status, _, err = post(ctx, withQuery(to, d.Query), d.Header, d.Body)
			out.Deliveries++
			out.Statuses[status]++
		}
		if err != nil {
			out.Failed = append(out.Failed, failure{File: p.name, Err: err.Error()})
			if ctx.Err() != nil {
				break
			}
		} else if status/100 != 2 {
			out.Failed = append(out.Failed, failure{File: p.name, Status: status})
		}
	}
	progress.clear()
	if c.JSON {
		if err := e.printJSON(out); err != nil {
			return err
		}
	} else {
		for _, f := range out.Failed {
			fmt.Fprintf(e.stdout, "%s: %s\n", f.File, cond(f.Err != "", f.Err, "answered "+strconv.Itoa(f.Status)))
		}
		fmt.Fprintf(e.stdout, "%s sent, %d not accepted.\n", plural(out.Deliveries, "payload"), len(out.Failed))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(out.Failed) > 0 {
		return errFailed
	}
	return nil
}

func cond(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}
