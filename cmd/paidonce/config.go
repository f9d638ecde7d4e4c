package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/paidonce/paidonce/internal/config"
)

type configCmd struct {
	Check     configCheckCmd     `cmd:"" help:"Read the configuration and report everything that is wrong."`
	Example   configExampleCmd   `cmd:"" help:"Print a configuration to start from."`
	Reference configReferenceCmd `cmd:"" help:"List everything that can be set, with the variable that sets it."`
}

// Help is the text below the flags.
func (configCmd) Help() string {
	return `Example:

    paidonce config example > paidonce.yaml && paidonce config check`
}

type configCheckCmd struct {
	Print bool `help:"Print what is in force, defaults and variables included, secrets masked."`
	JSON  bool `help:"Print JSON."`
}

// Help is the text below the flags.
func (configCheckCmd) Help() string {
	return `Needs no database and connects to nothing. Exits with 1 if anything is wrong.

Example:

    paidonce config check --config /etc/paidonce.yaml --print`
}

// Run runs the command.
func (c configCheckCmd) Run(e *env) error {
	cfg, err := e.load()
	if c.JSON {
		return c.json(e, cfg, err)
	}
	if err != nil {
		return err
	}
	if c.Print {
		if _, err := e.stdout.Write(cfg.YAML()); err != nil {
			return err
		}
		return nil
	}
	from := cfg.File()
	if from == "" {
		from = "The environment"
	}
	sources := slices.Sorted(maps.Keys(cfg.Sources()))
	fmt.Fprintf(e.stdout, "%s is in order: %s, %s", from, plural(len(cfg.Accounts), "account"), plural(len(sources), "source"))
	if len(sources) > 0 {
		fmt.Fprintf(e.stdout, " (%s)", strings.Join(sources, ", "))
	}
	fmt.Fprintln(e.stdout, ".")
	for _, note := range notes(cfg) {
		fmt.Fprintln(e.stdout, "Note: "+note)
	}
	return nil
}

func (configCheckCmd) json(e *env, cfg *config.Config, err error) error {
	type problem struct {
		Where string `json:"where,omitempty"`
		Path  string `json:"path,omitempty"`
		Text  string `json:"text"`
	}
	out := struct {
		OK       bool           `json:"ok"`
		File     string         `json:"file,omitempty"`
		Problems []problem      `json:"problems,omitempty"`
		Notes    []string       `json:"notes,omitempty"`
		Config   *config.Config `json:"config,omitempty"`
	}{OK: err == nil, File: e.file(), Config: cfg}
	for _, p := range config.Problems(err) {
		out.Problems = append(out.Problems, problem{p.Where, p.Path, p.Text})
	}
	if err != nil && len(out.Problems) == 0 {
		out.Problems = []problem{{Text: err.Error()}}
	}
	if err == nil {
		out.Notes = notes(cfg)
	}
	if err := e.printJSON(out); err != nil {
		return err
	}
	if !out.OK {
		return errFailed
	}
	return nil
}

// notes are what is allowed, and perhaps not meant.
func notes(cfg *config.Config) []string {
	var notes []string
	if cfg.DatabaseURL == "" {
		notes = append(notes, "database_url is not set; only dev and the commands that work offline will run.")
	}
	if len(cfg.Accounts) == 0 {
		notes = append(notes, "there are no accounts, so serve and work will not start.")
	}
	for _, name := range cfg.AccountNames() {
		account := cfg.Accounts[name]
		if account.Callback.URL == "" {
			notes = append(notes, fmt.Sprintf("account %s has no callback: what its orders owe waits until it has one.", name))
		}
		if len(account.APIKeys) == 0 {
			notes = append(notes, fmt.Sprintf("account %s has no API keys: nobody can register its orders.", name))
		}
		for _, id := range slices.Sorted(maps.Keys(account.Sources)) {
			if s := account.Sources[id]; s.Paused {
				notes = append(notes, fmt.Sprintf("source %s is paused: its events are kept and not folded.", id))
			}
		}
	}
	return notes
}

type configExampleCmd struct{}

// Run runs the command.
func (configExampleCmd) Run(e *env) error {
	_, err := fmt.Fprint(e.stdout, config.Example)
	return err
}

type configReferenceCmd struct {
	JSON bool `help:"Print JSON."`
}

// Run runs the command.
func (c configReferenceCmd) Run(e *env) error {
	settings := config.Reference()
	if c.JSON {
		return e.printJSON(settings)
	}
	for _, s := range settings {
		fmt.Fprintf(e.stdout, "%s  (%s)\n", e.paint(e.stdout, bold, s.Path), s.Variable)
		fmt.Fprintf(e.stdout, "    %s\n", s.Help)
		if s.Default != "" {
			fmt.Fprintf(e.stdout, "    default: %s\n", s.Default)
		}
	}
	return nil
}
