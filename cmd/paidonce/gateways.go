package main

import (
	"fmt"
	"strings"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/manual"
)

type gatewaysCmd struct {
	Name string `arg:"" optional:"" help:"Show one gateway: how it signs, what to set up, and what its types of event mean."`
	JSON bool   `help:"Print JSON."`
}

// Help is the text below the flags.
func (gatewaysCmd) Help() string {
	return `Example:

    paidonce gateways stripe`
}

// Run runs the command.
func (c gatewaysCmd) Run(e *env) error {
	if c.Name != "" {
		return c.one(e)
	}
	var pages []manual.Page
	var rows [][]string
	for _, g := range gateway.All() {
		page, err := manual.Of(g)
		if err != nil {
			return err
		}
		pages = append(pages, page)
		covers, _, _ := strings.Cut(page.Covers, "(")
		rows = append(rows, []string{g.Title, g.Name, string(g.Evidence), covers, cond(page.Asked != "", "yes", ""), g.Docs})
	}
	if c.JSON {
		return e.printJSON(pages)
	}
	table(e.stdout, []string{"GATEWAY", "NAME", "EVIDENCE", "COVERS", "ASKED", "DOCUMENTATION"}, rows)
	return nil
}

func (c gatewaysCmd) one(e *env) error {
	g, ok := gateway.Lookup(c.Name)
	if !ok {
		return usage("there is no gateway %q; paidonce gateways lists them", c.Name)
	}
	page, err := manual.Of(g)
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(page)
	}
	fmt.Fprintln(e.stdout, page.Text())
	fmt.Fprintf(e.stdout, "Under accounts.{account}.sources of the configuration:\n\n%s\n", indent(page.Source))
	var rows [][]string
	for _, o := range page.Options {
		rows = append(rows, []string{o.Name, cond(o.Required, "required", ""), strings.ReplaceAll(o.Help, "`", "")})
	}
	table(e.stdout, []string{"OPTION", "", "IS"}, rows)
	fmt.Fprintln(e.stdout)
	if g.Name == gateway.Standard.Name {
		fmt.Fprintln(e.stdout, "What its types of event mean is configured for each source: map.facts.")
		return nil
	}
	rows = nil
	for _, t := range page.Types {
		rows = append(rows, []string{t.Name, t.Meaning, strings.Join(t.Facts, "; ")})
	}
	table(e.stdout, []string{cond(page.Always, "STATE", "TYPE"), "MEANS", "FACTS"}, rows)
	return nil
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n    ") + "\n"
}
