package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/paidonce/paidonce/order"
)

// printJSON writes one JSON value, for programs.
func (e *env) printJSON(v any) error {
	enc := json.NewEncoder(e.stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// table writes rows in columns, for people.
func table(w io.Writer, head []string, rows [][]string) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(head, "\t"))
	for _, row := range rows {
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	_ = tw.Flush()
}

// when writes a time as people read it, in UTC; nothing for no time.
func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

func whenPtr(t *time.Time) string {
	if t == nil {
		return ""
	}
	return when(*t)
}

// money writes an amount with its currency, as in 50.00 EUR.
func money(minor int64, currency string) string {
	return strings.TrimSpace(order.Format(minor, currency) + " " + currency)
}

// isTerminal reports whether a person sees what is written to w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// paint colours a text if w is a terminal and nobody asked for none.
// https://no-color.org
func (e *env) paint(w io.Writer, code, text string) string {
	if !isTerminal(w) || e.getenv("NO_COLOR") != "" || e.getenv("TERM") == "dumb" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

const (
	green = "32"
	red   = "31"
	bold  = "1"
)

// bar is a progress bar on stderr, for long work that a person watches.
type bar struct {
	w    io.Writer // nil: nobody watches
	last int
}

func (e *env) newBar() *bar {
	if !isTerminal(e.stderr) {
		return &bar{}
	}
	return &bar{w: e.stderr}
}

// show draws the bar; label says what is being worked on.
func (b *bar) show(done, total int, label string) {
	if b.w == nil || total == 0 {
		return
	}
	const width = 24
	filled := done * width / total
	line := fmt.Sprintf("[%s%s] %d/%d %s", strings.Repeat("#", filled), strings.Repeat(".", width-filled), done, total, label)
	fmt.Fprintf(b.w, "\r%-*s", b.last, line)
	b.last = len(line)
}

// clear takes the bar away, before something else is written.
func (b *bar) clear() {
	if b.w != nil && b.last > 0 {
		fmt.Fprintf(b.w, "\r%*s\r", b.last, "")
		b.last = 0
	}
}

// plural is "1 event" or "2 events".
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// canAsk reports whether a person can be asked: both ends are a terminal.
func (e *env) canAsk() bool {
	in, ok := e.stdin.(*os.File)
	return ok && isTerminal(in) && isTerminal(e.stdout)
}

func deliveries(n int) string {
	if n == 1 {
		return "1 delivery"
	}
	return fmt.Sprintf("%d deliveries", n)
}
