package main

import (
	"fmt"

	"github.com/paidonce/paidonce/gateway"
)

type gatewaysCmd struct {
	Name string `arg:"" optional:"" help:"Show one gateway, with the types of event that it understands."`
	JSON bool   `help:"Print JSON."`
}

// Help is the text below the flags.
func (gatewaysCmd) Help() string {
	return `Example:

    paidonce gateways stripe`
}

// gatewayRecord is a gateway as it is shown.
type gatewayRecord struct {
	Name   string         `json:"name"`
	Title  string         `json:"title"`
	Covers string         `json:"signature_covers"`
	Docs   string         `json:"docs"`
	Types  []gateway.Type `json:"types,omitempty"`
}

// Run runs the command.
func (c gatewaysCmd) Run(e *env) error {
	if c.Name != "" {
		return c.one(e)
	}
	var records []gatewayRecord
	var rows [][]string
	for _, g := range gateway.All() {
		records = append(records, gatewayRecord{Name: g.Name, Title: g.Title, Covers: g.Covers.String(), Docs: g.Docs})
		rows = append(rows, []string{g.Name, g.Title, g.Docs})
	}
	if c.JSON {
		return e.printJSON(records)
	}
	table(e.stdout, []string{"NAME", "GATEWAY", "DOCUMENTATION"}, rows)
	return nil
}

func (c gatewaysCmd) one(e *env) error {
	g, ok := gateway.Lookup(c.Name)
	if !ok {
		return usage("there is no gateway %q; paidonce gateways lists them", c.Name)
	}
	types := g.Types(gateway.Source{Gateway: g.Name})
	if c.JSON {
		return e.printJSON(gatewayRecord{Name: g.Name, Title: g.Title, Covers: g.Covers.String(), Docs: g.Docs, Types: types})
	}
	fmt.Fprintf(e.stdout, "%s (%s)\nThe signature covers: %s\nDocumentation: %s\n\n", g.Title, g.Name, g.Covers, g.Docs)
	if len(types) == 0 {
		fmt.Fprintln(e.stdout, "What its types of event mean is configured for each source: map.facts.")
		return nil
	}
	var rows [][]string
	for _, t := range types {
		rows = append(rows, []string{t.Name, t.Meaning})
	}
	table(e.stdout, []string{"TYPE", "MEANS"}, rows)
	return nil
}
