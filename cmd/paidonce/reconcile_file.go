package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/internal/settlement"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// reconcileFile holds a gateway's settlement report against the ledgers: the part of reconcile that is asked for by --file.
type reconcileFile struct {
	File     string   `type:"existingfile" placeholder:"FILE" help:"Hold a settlement or payout report of a gateway against the ledgers, and write nothing."`
	Gateway  string   `placeholder:"NAME" help:"With --file: whose payments it is about (default: whose report it is)."`
	Columns  []string `sep:"none" placeholder:"FIELD=HEADER,…" help:"With --file, of any other CSV: which column is what."`
	Currency string   `placeholder:"CODE" help:"With --file: of amounts beside which there is none."`
	Decimal  string   `enum:"point,comma" default:"point" placeholder:"WORD" help:"With --file: what parts the decimals of amounts: point or comma (default: ${default})."`
	From     string   `placeholder:"TIME" help:"With --file and --until: what was captured from then on must be in it."`
	Until    string   `placeholder:"TIME" help:"With --file and --from: and before then."`
}

// run compares the file with the payments of a source, or of all sources of the gateway, of an account or of all.
func (c reconcileFile) run(ctx context.Context, e *env, account, source string, asJSON bool) error {
	o, w, err := c.options(e)
	if err != nil {
		return err
	}
	cfg, err := e.loadAccounts()
	if err != nil {
		return err
	}
	input, size, err := c.open(e)
	if err != nil {
		return err
	}
	defer input.Close()
	counted := &countedReader{r: input}
	r, err := settlement.NewReader(counted, o)
	if err != nil {
		return c.explain(err)
	}
	if w.Realms, err = c.realms(cfg, r.Format(), account, source); err != nil {
		return err
	}
	st, done, err := e.openStore(ctx)
	if err != nil {
		return err
	}
	defer done()

	out := &settlementOutput{e: e, json: asJSON}
	progress, total := e.newBar(), 0
	w.Progress = func(lines int, checking bool) {
		if checking {
			progress.show(lines, max(total, lines), "lines checked")
			return
		}
		total = lines
		progress.show(min(counted.n, size), size, "bytes read")
	}
	w.Each = func(f settlement.Finding) error {
		progress.clear()
		return out.finding(f)
	}
	var sum settlement.Summary
	err = st.ReadBooks(ctx, func(b *store.Books) (err error) {
		sum, err = settlement.Run(ctx, b, r, w)
		return err
	})
	progress.clear()
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	if err := out.summary(w, sum); err != nil {
		return err
	}
	if sum.Odd() > 0 {
		return errFailed
	}
	return nil
}

// open opens the file, or what is piped in; its size is 0 if nobody knows it.
func (c reconcileFile) open(e *env) (io.ReadCloser, int, error) {
	if c.File == "-" {
		return io.NopCloser(e.stdin), 0, nil
	}
	f, err := os.Open(c.File)
	if err != nil {
		return nil, 0, err
	}
	size := 0
	if info, err := f.Stat(); err == nil {
		size = int(info.Size())
	}
	return f, size, nil
}

// explain adds to a header that is not known what can be done about it.
func (c reconcileFile) explain(err error) error {
	var header *settlement.HeaderError
	if !errors.As(err, &header) {
		return usage("%s: %w", c.File, err)
	}
	if len(c.Columns) > 0 {
		return usage("%s: %w", c.File, err)
	}
	var names []string
	for _, f := range settlement.Formats() {
		names = append(names, f.Title)
	}
	return usage("%s: %w; known are %s. For any other file say which columns are what with --columns, such as --columns payment=ID,amount=Gross,currency=Currency",
		c.File, err, strings.Join(names, "; "))
}

// options reads the flags.
func (c reconcileFile) options(e *env) (o settlement.Options, w settlement.Work, err error) {
	o.DecimalComma = c.Decimal == "comma"
	if o.Currency = strings.ToUpper(c.Currency); o.Currency != "" {
		if _, known := order.Exponent(o.Currency); !known {
			return o, w, usage("--currency %s: that is not a currency of ISO 4217", c.Currency)
		}
	}
	if o.Columns, err = columnsOf(c.Columns); err != nil {
		return o, w, err
	}
	if w.From, err = e.dayOf("--from", c.From); err != nil {
		return o, w, err
	}
	if w.Until, err = e.dayOf("--until", c.Until); err != nil {
		return o, w, err
	}
	switch {
	case w.From.IsZero() != w.Until.IsZero():
		return o, w, usage("--from and --until belong together: a file is of a span")
	case !w.From.IsZero() && !w.From.Before(w.Until):
		return o, w, usage("--from %s is not before --until %s", c.From, c.Until)
	}
	return o, w, nil
}

// dayOf is timeOf that also takes a day, which begins at midnight UTC.
func (e *env) dayOf(flag, text string) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day, nil
	}
	return e.timeOf(flag, text)
}

// columnsOf reads pairs such as "payment=ID,amount=Gross amount, total". A comma that no field follows belongs to the header.
func columnsOf(texts []string) (map[settlement.Field]string, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	var fields, words []string
	for f, is := range settlement.OwnFields() {
		fields = append(fields, string(f))
		words = append(words, fmt.Sprintf("%s (%s)", f, is))
	}
	begin := regexp.MustCompile(`(?:^|,)(` + strings.Join(fields, "|") + `)=`)
	columns := map[settlement.Field]string{}
	for _, text := range texts {
		starts := begin.FindAllStringSubmatchIndex(text, -1)
		if len(starts) == 0 || starts[0][0] != 0 {
			return nil, usage("--columns %s: want FIELD=HEADER; the fields are %s", text, strings.Join(words, ", "))
		}
		for i, m := range starts {
			end := len(text)
			if i+1 < len(starts) {
				end = starts[i+1][0]
			}
			field, header := settlement.Field(text[m[2]:m[3]]), text[m[1]:end]
			if _, twice := columns[field]; twice || header == "" {
				return nil, usage("--columns: %s needs one header", field)
			}
			columns[field] = header
		}
	}
	return columns, nil
}

// realms are where the payments of the file are looked for.
func (c reconcileFile) realms(cfg *config.Config, f *settlement.Format, account, source string) ([]store.Realm, error) {
	name := cmp.Or(c.Gateway, f.Gateway)
	switch {
	case f.Gateway != "" && name != f.Gateway:
		return nil, usage("%s is a report of %s, not of %s", c.File, f.Gateway, name)
	case name == "" && source == "":
		return nil, usage("say whose payments %s is about, with --source or --gateway", c.File)
	}
	sources := cfg.Sources()
	if source != "" {
		s, _, err := sourceOf(cfg, source)
		if err != nil {
			return nil, err
		}
		if name != "" && s.Gateway != name {
			return nil, usage("source %s is of %s, and %s is about payments of %s", source, s.Gateway, c.File, name)
		}
		name = s.Gateway
		maps.DeleteFunc(sources, func(id string, _ gateway.Source) bool { return id != source })
	}
	g, ok := gateway.Lookup(name)
	if !ok {
		return nil, usage("there is no gateway %q; paidonce gateways lists them", name)
	}
	var realms []store.Realm
	for _, id := range slices.Sorted(maps.Keys(sources)) {
		if s := sources[id]; s.Gateway == name && (account == "" || s.Account == account) {
			if realm := (store.Realm{Account: s.Account, Name: g.Realm(s)}); !slices.Contains(realms, realm) {
				realms = append(realms, realm)
			}
		}
	}
	switch {
	case len(realms) == 0 && account != "":
		return nil, usage("account %s has no such source of gateway %s", account, name)
	case len(realms) == 0:
		return nil, usage("no source of gateway %s is configured", name)
	}
	return realms, nil
}

// countedReader counts what was read, for the progress bar.
type countedReader struct {
	r io.Reader
	n int
}

func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

// settlementOutput writes findings as they come, and holds no more of them than a screen has.
type settlementOutput struct {
	e    *env
	json bool
	rows [][]string
	seen bool
}

// findingLine is a finding in JSON. Amounts are in minor units.
type findingLine struct {
	Line        int      `json:"line,omitempty"`
	Reason      string   `json:"reason"`
	Kind        string   `json:"kind,omitempty"`
	Type        string   `json:"type,omitempty"`
	ID          string   `json:"id,omitempty"`
	Payment     []string `json:"payment,omitempty"`
	Ref         string   `json:"ref,omitempty"`
	Reference   string   `json:"reference,omitempty"`
	Theirs      *int64   `json:"theirs,omitempty"`
	Currency    string   `json:"currency,omitempty"`
	Ours        *int64   `json:"ours,omitempty"`
	OurCurrency string   `json:"our_currency,omitempty"`
	Account     string   `json:"account,omitempty"`
	Order       string   `json:"order,omitempty"`
	Detail      string   `json:"detail,omitempty"`
}

func (o *settlementOutput) line(v any) error {
	enc := json.NewEncoder(o.e.stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (o *settlementOutput) finding(f settlement.Finding) error {
	l := f.Line
	if o.json {
		doc := findingLine{
			Line: l.Number, Reason: string(f.Reason), Kind: string(l.Kind), Type: l.Word, ID: l.ID, Payment: l.Payment, Ref: l.Ref, Reference: l.Reference,
			Account: f.Account, Order: f.Order, Detail: f.Detail,
		}
		if l.Number > 0 && l.Amount.Currency != "" {
			doc.Theirs, doc.Currency = &l.Amount.Minor, l.Amount.Currency
		}
		if f.Ours != nil {
			doc.Ours, doc.OurCurrency = &f.Ours.Minor, f.Ours.Currency
		}
		return o.line(doc)
	}
	number, theirs, ours := "-", "", ""
	if l.Number > 0 {
		number = strconv.Itoa(l.Number)
		if l.Amount.Currency != "" {
			theirs = money(l.Amount.Minor, l.Amount.Currency)
		}
	}
	if f.Ours != nil {
		ours = money(f.Ours.Minor, f.Ours.Currency)
	}
	o.rows = append(o.rows, []string{
		number, string(f.Reason), cmp.Or(l.Word, string(l.Kind), "-"), cmp.Or(strings.Join(l.Payment, " = "), "-"), orDash(l.Ref), orDash(theirs), orDash(ours),
		cmp.Or(f.Order, l.Reference, "-"), f.Detail,
	})
	if len(o.rows) == 500 {
		o.flush()
	}
	return nil
}

// flush writes the findings that are held. Of very many, each screenful is as wide as it needs.
func (o *settlementOutput) flush() {
	if len(o.rows) == 0 {
		return
	}
	head := []string{"LINE", "REASON", "TYPE", "PAYMENT", "REF", "THEIRS", "OURS", "ORDER", "DETAIL"}
	if last := len(head) - 1; !slices.ContainsFunc(o.rows, func(row []string) bool { return row[last] != "" }) {
		head = head[:last]
		for i := range o.rows {
			o.rows[i] = o.rows[i][:last]
		}
	}
	table(o.e.stdout, head, o.rows)
	o.rows, o.seen = o.rows[:0], true
}

func (o *settlementOutput) summary(w settlement.Work, s settlement.Summary) error {
	if o.json {
		realms := []string{}
		for _, r := range w.Realms {
			realms = append(realms, r.Account+"/"+r.Name)
		}
		doc := struct {
			Format string   `json:"format"`
			Realms []string `json:"realms"`
			settlement.Summary
		}{s.Format.Name, realms, s}
		return o.line(map[string]any{"summary": doc})
	}
	o.flush()
	out := o.e.stdout
	for _, r := range settlement.Reasons() {
		if n := s.Unexplained[r]; n > 0 {
			fmt.Fprintf(out, "%s: %d; %s\n", r, n, r.Sentence())
		}
	}
	if o.seen {
		fmt.Fprintln(out)
	}
	var names []string
	for _, r := range w.Realms {
		names = append(names, r.Name+" of account "+r.Account)
	}
	fmt.Fprintf(out, "%s, %s about %s of %s\n", s.Format.Title, plural(s.Lines, "line"), plural(s.Payments, "payment"), strings.Join(names, ", "))
	var rows [][]string
	add := func(totals []settlement.Total, name func(settlement.Total) string) {
		for _, t := range totals {
			sum := money(t.Minor, t.Currency)
			if t.TooMuch {
				sum += " or more"
			}
			rows = append(rows, []string{name(t), strconv.Itoa(t.Lines), sum})
		}
	}
	add(s.Explained, func(t settlement.Total) string { return string(t.Kind) + ", explained" })
	add(s.Fees, func(settlement.Total) string { return "fee, kept of payments" })
	add(s.Others, func(t settlement.Total) string {
		return string(t.Kind) + ", of no payment: " + cmp.Or(t.Word, "many others")
	})
	if len(rows) > 0 {
		table(out, []string{"WHAT", "LINES", "SUM"}, rows)
	}
	missing := s.Unexplained[settlement.NotInFile]
	if odd := s.Odd() - missing; odd > 0 {
		fmt.Fprintf(out, "%s cannot be explained.\n", plural(odd, "line"))
	} else {
		fmt.Fprintln(out, "Every line is explained.")
	}
	if !w.From.IsZero() {
		fmt.Fprintf(out, "%s captured from %s to %s; in no line: %d.\n", plural(s.InSpan, "payment"), when(w.From), when(w.Until), missing)
	}
	return nil
}
