// Package manual writes what people read about gateways, from the gateways
// themselves: headers are those of a delivery that is signed here, and what a type
// of event means is what the mapping makes of one. So it is true by construction.
package manual

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/signature"
)

// Page is what there is to say about one gateway.
type Page struct {
	Name     string           `json:"name"`
	Title    string           `json:"title"`
	Docs     string           `json:"docs"`
	Evidence gateway.Evidence `json:"evidence"`
	Scheme   string           `json:"scheme,omitempty"`
	Spec     string           `json:"scheme_spec,omitempty"`
	Covers   string           `json:"signature_covers"`
	Headers  []string         `json:"headers,omitempty"`
	Answer   string           `json:"answer"`
	Deadline string           `json:"deadline"`
	Asked    string           `json:"asked,omitempty"` // its API, where it is asked
	Always   bool             `json:"always_asked,omitempty"`
	Called   string           `json:"called,omitempty"` // where money is moved, and with which key
	Calls    string           `json:"calls,omitempty"`
	Listed   string           `json:"listed,omitempty"` // where lost events are looked for
	Secret   string           `json:"secret,omitempty"`
	EventID  string           `json:"event_id"`
	Retries  string           `json:"retries"`
	Ordering string           `json:"ordering,omitempty"`
	Notes    string           `json:"notes,omitempty"`
	Options  []gateway.Option `json:"options"`
	Source   string           `json:"source"` // the smallest one, as the configuration has it (YAML)
	Types    []Type           `json:"types"`
}

// Type is a type of event, and what it makes of a payment.
type Type struct {
	Name    string   `json:"name"`
	Meaning string   `json:"meaning"`
	Facts   []string `json:"facts"`
}

// moment is when the events happen that the manual reads.
var moment = time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)

// Of returns the page of a gateway. It fails if the gateway cannot make or read
// its own samples.
func Of(g *gateway.Gateway) (Page, error) {
	source := g.Example("manual")
	source.ID = g.Name
	p := Page{
		Name: g.Name, Title: g.Title, Docs: g.Docs, Evidence: g.Evidence, Scheme: g.Scheme, Covers: g.Covers.String(),
		Deadline: g.Deadline.String(), Answer: answerOf(g), Options: g.Options, Source: settings(g),
		Secret: g.Manual.Secret, EventID: g.Manual.EventID, Retries: g.Manual.Retries, Ordering: g.Manual.Ordering, Notes: g.Manual.Notes,
	}
	if scheme, ok := signature.Lookup(g.Scheme); ok {
		p.Spec = scheme.Spec
	}
	if g.Announces() {
		p.Asked, p.Always = g.Fetch.Live, g.Fetch.Always
	}
	if k := g.Calls; k != nil {
		p.Called = fmt.Sprintf("%s, key in `%s`, which it knows for %s", address(k.Live), k.KeyHeader, days(k.KeyLife))
		p.Calls = g.Manual.Calls
	}
	if l := g.Listing; l != nil {
		p.Listed = fmt.Sprintf("%s, for %s", address(l.Live), days(l.Reach))
	}
	types := g.Types(source)
	if len(types) > 0 {
		headers, err := headersOf(g, source, types[0].Name)
		if err != nil {
			return p, fmt.Errorf("gateway %s: %w", g.Name, err)
		}
		p.Headers = headers
	}
	for _, t := range types {
		facts, err := factsOf(g, source, t.Name)
		if err != nil {
			return p, fmt.Errorf("gateway %s: %s: %w", g.Name, t.Name, err)
		}
		p.Types = append(p.Types, Type{Name: t.Name, Meaning: t.Meaning, Facts: facts})
	}
	return p, nil
}

// address is where an API is.
func address(base string) string {
	if base == "" {
		return "`api_url`"
	}
	return base
}

// days is a span in words: whole days, or hours.
func days(d time.Duration) string {
	if n := d / (24 * time.Hour); n > 1 && d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%d days", n)
	}
	return fmt.Sprintf("%d hours", d/time.Hour)
}

// answerOf is what the gateway gets for a delivery that was taken in.
func answerOf(g *gateway.Gateway) string {
	if g.AckBody == "" {
		return "200, empty"
	}
	return "200, `" + g.AckBody + "`"
}

// headersOf are the headers that a delivery carries for its signature.
func headersOf(g *gateway.Gateway, source gateway.Source, typ string) ([]string, error) {
	body, err := g.Sample(gateway.SampleRequest{Source: source, Type: typ, Reference: "ord_1", At: moment})
	if err != nil {
		return nil, err
	}
	d, err := g.Deliver(source, body, "", moment)
	if err != nil {
		return nil, err
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(d.Header)), func(name string) bool {
		return http.CanonicalHeaderKey(name) == "Content-Type"
	})
	return names, nil
}

// factsOf says what a sample of a type makes of its payment.
func factsOf(g *gateway.Gateway, source gateway.Source, typ string) ([]string, error) {
	r := gateway.SampleRequest{Source: source, Type: typ, Reference: "ord_1", Ref: "REF", Payment: "PAYMENT", At: moment}
	events, err := read(g, r)
	if err != nil {
		return nil, err
	}
	var facts []string
	for _, ev := range events {
		for _, f := range ev.Facts {
			if text := say(f); !slices.Contains(facts, text) {
				facts = append(facts, text)
			}
		}
	}
	return facts, nil
}

func read(g *gateway.Gateway, r gateway.SampleRequest) ([]order.Event, error) {
	if g.Fetch != nil && g.Fetch.Always {
		object, answer, err := g.Fetch.Sample(r)
		if err != nil {
			return nil, err
		}
		return g.Fetched(r.Source, object, gateway.Answer{Body: answer, Started: moment})
	}
	body, err := g.Sample(r)
	if err != nil {
		return nil, err
	}
	d, err := g.Deliver(r.Source, body, "", moment)
	if err != nil {
		return nil, err
	}
	return g.Events(r.Source, d)
}

// say is a fact in words.
func say(f order.Fact) string {
	switch {
	case f.Kind == order.KindPhase:
		return "phase " + string(f.Status)
	case f.Kind == order.KindDisputed:
		return "dispute " + string(f.Status)
	case f.Ref != "":
		return string(f.Kind) + ", by id: " + string(f.Status)
	case f.Amount == 0:
		return string(f.Kind) + " total: 0"
	default:
		return string(f.Kind) + " total"
	}
}

// Markdown writes the pages as one document.
func Markdown(pages []Page) string {
	var b strings.Builder
	for _, p := range pages {
		p.markdown(&b)
	}
	return b.String()
}

// Index writes a line of a table for each page.
func Index(pages []Page) string {
	var b strings.Builder
	b.WriteString("| gateway | name | evidence | signature covers | asked |\n|---|---|---|---|---|\n")
	for _, p := range pages {
		fmt.Fprintf(&b, "| [%s](#%s) | `%s` | %s | %s | %s |\n", p.Title, anchor(p.Title), p.Name, p.Evidence, covers(p.Covers), asked(p))
	}
	return b.String()
}

func covers(s string) string {
	word, _, _ := strings.Cut(s, "(")
	return word
}

func asked(p Page) string {
	switch {
	case p.Always:
		return "about every payment"
	case p.Asked != "":
		return "about thin events"
	default:
		return ""
	}
}

// anchor is what a heading is linked by on the usual hosts of Markdown.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z':
			return r
		}
		return -1
	}, strings.ToLower(title))
}

func (p Page) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "## %s\n\n", p.Title)
	for _, l := range p.lines() {
		if l.text != "" {
			fmt.Fprintf(b, "- **%s**: %s\n", l.label, l.text)
		}
	}
	fmt.Fprintf(b, "\n```yaml\n%s```\n", p.Source)
	if len(p.Options) > 0 {
		b.WriteString("\n| option | | |\n|---|---|---|\n")
		for _, o := range p.Options {
			need := ""
			if o.Required {
				need = "required"
			}
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", o.Name, need, cell(o.Help))
		}
	}
	if len(p.Types) > 0 {
		b.WriteString("\n| " + p.what() + " | means | facts |\n|---|---|---|\n")
		for _, t := range p.Types {
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", t.Name, cell(t.Meaning), strings.Join(t.Facts, "; "))
		}
	}
	b.WriteString("\n")
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// what the gateway's types are types of.
func (p Page) what() string {
	if p.Always {
		return "state"
	}
	return "type"
}

type line struct{ label, text string }

// lines are the properties of a gateway, in the order in which they are shown.
func (p Page) lines() []line {
	scheme := "none: its deliveries are only a reason to ask its API"
	if p.Scheme != "" {
		scheme = "`" + p.Scheme + "` (" + p.Spec + ")"
	}
	api := p.Asked
	switch {
	case p.Always:
		api += ", about every payment: the delivery only names it"
	case p.Asked != "":
		api += ", about events that only name an object"
	}
	headers := ""
	if len(p.Headers) > 0 {
		headers = "`" + strings.Join(p.Headers, "`, `") + "`"
	}
	return []line{
		{"Name", "`" + p.Name + "`"},
		{"Documentation", p.Docs},
		{"Evidence", string(p.Evidence)},
		{"Scheme", scheme},
		{"Signature covers", p.Covers},
		{"Headers", headers},
		{"Where the secret is", p.Secret},
		{"Event id", p.EventID},
		{"Answer", p.Answer + ", within " + p.Deadline},
		{"Retries", p.Retries},
		{"Order of events", p.Ordering},
		{"API asked", api},
		{"API called", p.Called},
		{"Calls", p.Calls},
		{"Events listed", p.Listed},
		{"Notes", p.Notes},
	}
}

// Text writes a page for a terminal.
func (p Page) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", p.Title)
	for _, l := range p.lines() {
		if l.text != "" {
			fmt.Fprintf(&b, "%-20s %s\n", l.label+":", strings.ReplaceAll(l.text, "`", ""))
		}
	}
	return b.String()
}
