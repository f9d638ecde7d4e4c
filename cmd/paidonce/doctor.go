package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/internal/doctor"
	"github.com/paidonce/paidonce/store"
)

type doctorCmd struct {
	Account string `placeholder:"NAME" help:"Only of this account."`
	All     bool   `help:"Show all of a kind, up to ten thousand; without, the ten that stand there the longest."`
	JSON    bool   `help:"Print JSON: one line each, then a summary."`
}

// Help is the text below the flags.
func (doctorCmd) Help() string {
	return `Lists what does not mend itself, the most urgent first, with the command that resolves it, or the call of /v1 (with a key of the role operate, or write where money moves). Words in capitals are for you to fill in. It writes nothing, and reads little however much there is.

Exits with 1 if something needs a person, with 0 if nothing does.

Examples:

    paidonce doctor
    paidonce doctor --account shop --all
    paidonce doctor --json | jq -r 'select(.urgency == "now") | .text'`
}

// Of a kind, doctor counts so many and shows so many, without --all and with it.
const (
	doctorShown = 10
	doctorCount = 1000
	doctorAll   = 10_000
)

// Run runs the command.
func (c doctorCmd) Run(ctx context.Context, e *env) error {
	cfg, err := e.load()
	if err != nil {
		return err
	}
	st, done, err := e.openStore(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := e.known(ctx, st, c.Account, ""); err != nil {
		return err
	}
	opts := doctor.Options{Account: c.Account, Limit: doctorCount, Sources: sourceKeys(cfg), NoCallback: func(account string) bool {
		return cfg.Accounts[account].Callback.URL == ""
	}}
	shown := doctorShown
	if c.All {
		opts.Limit, shown = doctorAll, doctorAll
	}
	r, err := doctor.Look(ctx, st, opts)
	if err != nil {
		return err
	}
	if c.JSON {
		err = e.printAttention(r, shown)
	} else {
		e.showAttention(r, shown)
	}
	if err == nil && len(r.Piles) > 0 {
		return errFailed
	}
	return err
}

func sourceKeys(cfg *config.Config) []store.SourceKey {
	var keys []store.SourceKey
	for id, s := range cfg.Sources() {
		keys = append(keys, store.SourceKey{Account: s.Account, ID: id})
	}
	return keys
}

// showAttention writes a report for people.
func (e *env) showAttention(r doctor.Report, shown int) {
	for _, p := range r.Piles {
		head := fmt.Sprintf("%s, %s: %s", strings.ToUpper(string(p.Urgency)), p.Kind, counted(p))
		fmt.Fprintf(e.stdout, "%s\n%s\n", e.paint(e.stdout, bold, head), p.Title)
		for _, i := range p.Items[:min(shown, len(p.Items))] {
			fmt.Fprintf(e.stdout, "\n  %s of account %s, for %s\n    %s\n    %s\n    > %s\n", i.What, i.Account, age(r.At.Sub(i.Since)), i.Text, i.Do, i.Resolve())
		}
		if n := len(p.Items) - shown; n > 0 {
			fmt.Fprintf(e.stdout, "\n  and %d more%s; --all shows them\n", n, orMore(p))
		}
		fmt.Fprintln(e.stdout)
	}
	for _, n := range r.Notes {
		fmt.Fprintln(e.stdout, n)
	}
	if len(r.Piles) == 0 {
		fmt.Fprintln(e.stdout, "Nothing needs a person.")
		return
	}
	counts := map[doctor.Urgency]int{}
	for _, p := range r.Piles {
		counts[p.Urgency] += p.Count
	}
	fmt.Fprintf(e.stdout, "%s for a person: %d now, %d today, %d soon.\n", plural(r.Count(), "thing"), counts[doctor.Now], counts[doctor.Today], counts[doctor.Soon])
}

func counted(p doctor.Pile) string { return fmt.Sprint(p.Count) + orMore(p) }

func orMore(p doctor.Pile) string {
	if p.More {
		return " or more"
	}
	return ""
}

// attentionSummary is the last line of doctor --json.
type attentionSummary struct {
	At    time.Time              `json:"at"`
	Count int                    `json:"count"`
	Kinds []attentionSummaryKind `json:"kinds"` // the most urgent first
	Notes []string               `json:"notes,omitempty"`
}

type attentionSummaryKind struct {
	Kind    doctor.Kind    `json:"kind"`
	Urgency doctor.Urgency `json:"urgency"`
	Count   int            `json:"count"`
	More    bool           `json:"more,omitempty"` // there may be more than were counted
	Shown   int            `json:"shown"`
	Oldest  time.Time      `json:"oldest"`
}

// printAttention writes a report for programs.
func (e *env) printAttention(r doctor.Report, shown int) error {
	enc := json.NewEncoder(e.stdout)
	enc.SetEscapeHTML(false)
	sum := attentionSummary{At: r.At, Count: r.Count(), Kinds: []attentionSummaryKind{}, Notes: r.Notes}
	for _, p := range r.Piles {
		items := p.Items[:min(shown, len(p.Items))]
		for _, i := range items {
			if err := enc.Encode(i); err != nil {
				return err
			}
		}
		sum.Kinds = append(sum.Kinds, attentionSummaryKind{p.Kind, p.Urgency, p.Count, p.More, len(items), p.Oldest})
	}
	return enc.Encode(map[string]any{"summary": sum})
}

// age is a duration in the unit that people think of it in.
func age(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return plural(int(d/(24*time.Hour)), "day")
	case d >= 2*time.Hour:
		return plural(int(d/time.Hour), "hour")
	case d >= 2*time.Minute:
		return plural(int(d/time.Minute), "minute")
	}
	return "a moment"
}
