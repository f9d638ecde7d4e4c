package settlement

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// Books is where payments are looked up. [store.Books] is the real one.
type Books interface {
	Find(context.Context, []store.PaymentName) ([]store.PaymentKey, error)
	Payments(context.Context, []store.PaymentKey) ([]store.BookedPayment, error)
	CapturedBetween(ctx context.Context, realms []store.Realm, from, until time.Time, each func(store.BookedPayment) error) error
}

// Work is what a report is held against.
type Work struct {
	Realms []store.Realm // in which its payments are looked for

	// From and Until, if not zero, are the span of which the file has everything that was captured: payments of ours that were
	// captured in it and are in no line are findings too.
	From, Until time.Time

	// Each is told of every finding, in the order of the file; those without a line come last.
	Each func(Finding) error

	// Progress, if set, is told how many lines have been read, and then how many of them have been checked.
	Progress func(lines int, checking bool)

	// Hold is how many lines are kept in memory; the rest waits in temporary files in TempDir. Default 50,000, and the system's.
	Hold    int
	TempDir string
}

const (
	lookUp   = 500    // lines whose payments are looked up at once
	holdUp   = 5_000  // lines of payments whose ledgers are read at once
	mostEach = 10_000 // lines about one payment
)

// entry is a line whose payment was found; the zero key for lines that are about none.
type entry struct {
	Key  store.PaymentKey
	Line Line
}

func (a *entry) compare(b *entry) int {
	return cmp.Or(
		cmp.Compare(a.Key.Account, b.Key.Account), bytes.Compare(a.Key.ID[:], b.Key.ID[:]),
		cmp.Compare(a.Line.Same, b.Line.Same), cmp.Compare(a.Line.Number, b.Line.Number),
	)
}

// runner is one comparison.
type runner struct {
	books Books
	w     Work
	sum   *Summary
	lines sorter[entry]
	found sorter[Finding]
	wait  []Line // for their payments to be looked up
}

// Run reads a report to its end and holds it against the books. What it returns with an error is of no use.
func Run(ctx context.Context, books Books, r *Reader, w Work) (Summary, error) {
	w.Hold = cmp.Or(w.Hold, 50_000)
	if w.Progress == nil {
		w.Progress = func(int, bool) {}
	}
	sum := newSummary(r.Format())
	k := &runner{
		books: books, w: w, sum: &sum,
		lines: sorter[entry]{compare: (*entry).compare, size: w.Hold, dir: w.TempDir},
		found: sorter[Finding]{compare: compareFindings, size: w.Hold, dir: w.TempDir},
	}
	defer k.lines.close()
	defer k.found.close()
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return k.read(ctx, r) }, k.check, k.missing,
	} {
		if err := step(ctx); err != nil {
			return sum, err
		}
	}
	return sum, k.found.each(func(f *Finding) error { return w.Each(*f) })
}

// compareFindings has those of lines first.
func compareFindings(a, b *Finding) int {
	if (a.Line.Number == 0) != (b.Line.Number == 0) {
		return cmp.Compare(b.Line.Number, a.Line.Number)
	}
	return cmp.Or(cmp.Compare(a.Line.Number, b.Line.Number), cmp.Compare(a.Account, b.Account), cmp.Compare(first(a.Line.Payment), first(b.Line.Payment)))
}

func first(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return ids[0]
}

// report keeps a finding until all are known.
func (k *runner) report(f Finding) error {
	k.sum.unexplained(f)
	return k.found.add(f)
}

// read reads the file, and finds the payments of its lines.
func (k *runner) read(ctx context.Context, r *Reader) error {
	for {
		line, err := r.Next()
		var bad *LineError
		switch {
		case errors.Is(err, io.EOF):
			return k.look(ctx)
		case errors.As(err, &bad):
			k.sum.Lines++
			err = k.report(Finding{Line: line, Reason: Unreadable, Detail: bad.Why})
		case err != nil:
			return err
		default:
			k.sum.Lines++
			err = k.sort(line)
		}
		if err != nil {
			return err
		}
		if len(k.wait) >= lookUp {
			if err := k.look(ctx); err != nil {
				return err
			}
		}
	}
}

// sort decides whether a line needs a payment.
func (k *runner) sort(line Line) error {
	switch {
	case line.Kind == Unknown && len(line.Payment) > 0:
		return k.report(Finding{Line: line, Reason: UnknownType})
	case !line.Kind.OfPayment():
		return k.lines.add(entry{Line: line})
	case len(line.Payment) == 0:
		return k.report(Finding{Line: line, Reason: NoPaymentID})
	}
	k.wait = append(k.wait, line)
	return nil
}

// look finds the payments of the lines that wait: the first of a line's ids that is known, in the first realm that knows it.
func (k *runner) look(ctx context.Context) error {
	var names []store.PaymentName
	var at []int
	for i, line := range k.wait {
		for _, id := range line.Payment {
			for _, realm := range k.w.Realms {
				names, at = append(names, store.PaymentName{Account: realm.Account, Realm: realm.Name, ID: id}), append(at, i)
			}
		}
	}
	found, err := k.books.Find(ctx, names)
	if err != nil {
		return err
	}
	keys := make([]store.PaymentKey, len(k.wait))
	for n, key := range found {
		if i := at[n]; keys[i].ID == uuid.Nil {
			keys[i] = key
		}
	}
	for i, line := range k.wait {
		if keys[i].ID == uuid.Nil {
			err = k.report(Finding{Line: line, Reason: UnknownPayment})
		} else {
			err = k.lines.add(entry{keys[i], line})
		}
		if err != nil {
			return err
		}
	}
	clear(k.wait)
	k.wait = k.wait[:0]
	k.w.Progress(k.sum.Lines, false)
	return ctx.Err()
}

// group are the lines about one payment.
type group struct {
	key   store.PaymentKey
	lines []Line
}

// check holds the lines of each payment against its ledger.
func (k *runner) check(ctx context.Context) error {
	var (
		groups []group
		held   int
		done   int
		last   entry
	)
	flush := func() error {
		if err := k.compare(ctx, groups); err != nil {
			return err
		}
		groups, held = nil, 0
		k.w.Progress(done, true)
		return ctx.Err()
	}
	err := k.lines.each(func(e *entry) error {
		done++
		again := e.Key == last.Key && e.Line.Same == last.Line.Same && (e.Key.ID != uuid.Nil || e.Line.ID != "")
		if again {
			return k.report(Finding{Line: e.Line, Reason: Twice, Detail: "it is line " + itoa(last.Line.Number) + " again", Account: e.Key.Account})
		}
		fresh := e.Key != last.Key
		last = *e
		if e.Key.ID == uuid.Nil {
			k.sum.other(e.Line)
			return nil
		}
		if fresh {
			if held >= holdUp {
				if err := flush(); err != nil {
					return err
				}
			}
			groups = append(groups, group{key: e.Key})
		}
		g := &groups[len(groups)-1]
		if len(g.lines) >= mostEach {
			return k.report(Finding{Line: e.Line, Reason: TooMany, Account: e.Key.Account})
		}
		g.lines = append(g.lines, e.Line)
		held++
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// compare reads the ledgers of some payments, and checks their lines.
func (k *runner) compare(ctx context.Context, groups []group) error {
	if len(groups) == 0 {
		return nil
	}
	keys := make([]store.PaymentKey, len(groups))
	for i, g := range groups {
		keys[i] = g.key
	}
	payments, err := k.books.Payments(ctx, keys)
	if err != nil {
		return err
	}
	of := make(map[store.PaymentKey]store.BookedPayment, len(payments))
	for _, p := range payments {
		of[p.PaymentKey] = p
	}
	for _, g := range groups {
		p := of[g.key]
		if p.Ledger == nil {
			p.Ledger = order.NewLedger()
		}
		k.sum.Payments++
		odd := map[int]bool{}
		for _, f := range Check(byNumber(g.lines), p.Ledger) {
			odd[f.Line.Number] = true
			f.Account, f.Order = g.key.Account, p.Order
			if err := k.report(f); err != nil {
				return err
			}
		}
		for _, line := range g.lines {
			k.sum.fee(line)
			if !odd[line.Number] {
				k.sum.explained(line)
			}
		}
	}
	return nil
}

// missing finds the payments that were captured in the span and are in no line.
func (k *runner) missing(ctx context.Context) error {
	if k.w.From.IsZero() || k.w.Until.IsZero() {
		return nil
	}
	var failed error
	seen, stop := iter.Pull(keys(&k.lines, &failed))
	defer stop()
	have, more := seen()
	err := k.books.CapturedBetween(ctx, k.w.Realms, k.w.From, k.w.Until, func(p store.BookedPayment) error {
		for more && compareKeys(have, p.PaymentKey) < 0 {
			have, more = seen()
		}
		k.sum.InSpan++
		if more && have == p.PaymentKey {
			return nil
		}
		for cur := range p.Ledger.Money {
			captured, _ := p.Ledger.Booked(cur)
			if captured == 0 {
				continue // it failed since
			}
			amount := order.Amount{Minor: captured, Currency: cur}
			err := k.report(Finding{
				Line: Line{Kind: Capture, Payment: p.Ledger.IDs, Amount: amount}, Reason: NotInFile, Ours: &amount, Account: p.Account, Order: p.Order,
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, failed)
}

// keys are the payments of the lines, in order, each once.
func keys(lines *sorter[entry], failed *error) iter.Seq[store.PaymentKey] {
	return func(yield func(store.PaymentKey) bool) {
		var last store.PaymentKey
		errEnough := errors.New("enough")
		err := lines.each(func(e *entry) error {
			if e.Key == last {
				return nil
			}
			if last = e.Key; !yield(e.Key) {
				return errEnough
			}
			return nil
		})
		if !errors.Is(err, errEnough) {
			*failed = err
		}
	}
}

func compareKeys(a, b store.PaymentKey) int {
	return cmp.Or(cmp.Compare(a.Account, b.Account), bytes.Compare(a.ID[:], b.ID[:]))
}
