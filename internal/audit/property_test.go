package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/paidonce/paidonce/internal/audit"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/period"
	"github.com/paidonce/paidonce/store"
)

// fate is a shop to which anything happens that can: events that are early, late, wrong, doubled, misread and read again, about
// payments that turn out to be one or two; commands in any order; calls that are answered, refused, lost or given up.
type fate struct {
	*shop
	rt      *rapid.T
	sources map[string]bool // paused
	sent    []store.Event
	claims  []store.Claim
	moving  []store.MoveClaim
	incomes []uuid.UUID
	n       int
}

var refs = []string{"ord_0", "ord_1", "ord_2"}

func (f *fate) pick(label string, n int) int { return rapid.IntRange(0, n-1).Draw(f.rt, label) }

func (f *fate) chance(label string, one int) bool { return f.pick(label, one) == 0 }

func (f *fate) ref(label string) string { return rapid.SampledFrom(refs).Draw(f.rt, label) }

func (f *fate) id(kind string) string {
	f.n++
	return fmt.Sprintf("%s_%d", kind, f.n)
}

// names are one, two or three names of a payment, and rarely of two.
func (f *fate) names() []string {
	p := f.pick("payment", 4)
	var names []string
	for range 1 + f.pick("names", 2) {
		if f.chance("of another payment", 12) {
			p = f.pick("other payment", 4)
		}
		if name := fmt.Sprintf("%s_%d", rapid.SampledFrom([]string{"pi", "ch", "cs"}).Draw(f.rt, "name"), p); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (f *fate) fact(payment string) order.Fact {
	minor := rapid.Int64Range(1, 3).Draw(f.rt, "amount") * 1000
	fact := order.Fact{Amount: minor, Currency: "EUR", Seq: rapid.Int64Range(0, 2).Draw(f.rt, "seq")}
	items := []order.Status{order.StatusPending, order.StatusDenied, order.StatusOK, order.StatusFailed}
	switch f.pick("kind", 8) {
	case 0, 1, 2:
		fact.Kind, fact.Seq = order.KindCaptured, 0
	case 3:
		fact.Kind, fact.Ref, fact.Status = order.KindCaptured, payment+"_c", rapid.SampledFrom(items).Draw(f.rt, "status")
	case 4:
		fact.Kind, fact.Ref, fact.Status = order.KindRefunded, payment+"_r", rapid.SampledFrom(items).Draw(f.rt, "status")
	case 5:
		fact.Kind, fact.Ref = order.KindDisputed, payment+"_d"
		fact.Status = rapid.SampledFrom([]order.Status{order.StatusNone, order.StatusOpen, order.StatusWon, order.StatusLost}).Draw(f.rt, "status")
	case 6:
		fact.Kind, fact.Seq = order.KindAuthorized, 0
	default:
		fact = order.Fact{Kind: order.KindPhase, Seq: fact.Seq, Status: rapid.SampledFrom([]order.Status{
			order.StatusProcessing, order.StatusFailed, order.StatusAuthorized, order.StatusExpired, order.StatusCanceled,
		}).Draw(f.rt, "status")}
		return fact
	}
	if f.chance("foreign", 12) {
		fact.Currency = "USD"
	}
	if f.chance("misfit", 15) {
		fact.Misfit = rapid.SampledFrom([]order.Misfit{order.MisfitMode, order.MisfitAccount}).Draw(f.rt, "misfit")
	}
	return fact
}

// webhook is any event of a gateway under an id.
func (f *fate) webhook(id string) store.Event {
	source := rapid.SampledFrom([]string{"stripe", "adyen"}).Draw(f.rt, "source")
	e := store.Event{Account: f.account, Source: source, Delivery: uuid.New(), Paused: f.sources[source], Event: order.Event{
		ID: id, Type: rapid.SampledFrom([]string{"a", "b"}).Draw(f.rt, "type"), Realm: source + ":live",
	}}
	if !f.chance("at no time", 4) {
		e.At = day.Add(time.Duration(f.pick("at", 4)) * time.Second)
	}
	e.OnUnknown = rapid.SampledFrom([]store.OnUnknown{"", store.OnUnknownCreate, store.OnUnknownIgnore, ""}).Draw(f.rt, "unknown")
	switch f.pick("says", 14) {
	case 0:
		e.Ignored = "unknown_type"
		return e
	case 1:
		e.Broken = "no amount"
		return e
	case 2:
		e.Fetch = "payment/tr_1"
		return e
	}
	e.Payment = f.names()
	for range 1 + f.pick("facts", 2) {
		e.Facts = append(e.Facts, f.fact(e.Payment[0]))
	}
	switch f.pick("names", 5) {
	case 0, 1:
		e.Reference, e.Strength = f.ref("own"), order.StrengthPayment
		e.Own = &order.Amount{Minor: rapid.Int64Range(1, 3).Draw(f.rt, "own amount") * 1000, Currency: "EUR"}
	case 2:
		e.Reference, e.Strength = f.ref("weak"), order.StrengthModification
	case 3:
		e.Reference, e.Strength = "foreign", rapid.SampledFrom([]order.Strength{0, order.StrengthModification, order.StrengthPayment}).Draw(f.rt, "strength")
	}
	if f.chance("renews", 10) {
		e.Renewal = &order.Renewal{Of: []string{"club"}, Start: time.Now().UTC().Truncate(time.Hour)}
	}
	return e
}

// hooks takes some events in at once. Later their bytes may say something else.
func (f *fate) hooks() {
	var batch []store.Event
	for range 1 + f.pick("batch", 3) {
		id := f.id("evt")
		if len(f.sent) > 0 && f.chance("again", 6) {
			id = f.sent[f.pick("which", len(f.sent))].ID
		}
		e := f.webhook(id)
		f.sent = append(f.sent, e)
		batch = append(batch, e)
	}
	f.deliver(batch...)
	for _, e := range batch {
		if !f.chance("misread", 5) {
			continue
		}
		right := f.webhook(e.ID)
		right.Source, right.Realm = e.Source, e.Realm
		f.bytes[string(e.Payload)] = right
	}
}

func (f *fate) reread() {
	opts := store.ReevaluateOptions{Filter: store.ReevaluateFilter{Account: f.account}, Apply: true, Read: func(d store.StoredDelivery) ([]store.Event, error) {
		events, err := f.read(d)
		for i := range events {
			events[i].Paused = f.sources[events[i].Source]
		}
		return events, err
	}}
	if f.chance("some", 2) {
		opts.Filter.Sources = []string{"stripe"}
	}
	require.NoError(f.rt, f.s.Reevaluate(f.ctx, opts))
}

func (f *fate) pause() {
	source := rapid.SampledFrom([]string{"stripe", "adyen"}).Draw(f.rt, "pauses")
	if f.sources[source] = !f.sources[source]; !f.sources[source] {
		_, err := f.s.Resume(f.ctx, f.account, source)
		require.NoError(f.rt, err)
	}
}

func (f *fate) amount(label string) *order.Amount {
	return &order.Amount{Minor: rapid.Int64Range(0, 4).Draw(f.rt, label) * 1000, Currency: "EUR"}
}

func (f *fate) registers() {
	ref := f.ref("registers")
	c := order.Command{Register: f.amount("total")}
	if f.chance("details", 2) {
		c.Details = json.RawMessage(`{"metadata":{"a":1}}`)
	}
	if f.chance("runs out", 3) {
		past := time.Now().Add(-time.Minute)
		c.ExpiresAt = &past
	}
	f.say(store.RegisterID(ref), ref, c)
}

func (f *fate) amends() {
	a := &order.Amendment{}
	if f.chance("total", 2) {
		a.Total = f.amount("new total")
	}
	if f.chance("details", 2) {
		a.Details = json.RawMessage(fmt.Sprintf(`{"metadata":{"b":%d}}`, f.pick("b", 2)))
	}
	if f.chance("expiry", 3) {
		a.Expiry = &order.Expiry{}
	}
	f.say(f.id("amend"), f.ref("amends"), order.Command{Amend: a})
}

func (f *fate) cancels() {
	ref := f.ref("cancels")
	f.say("cancel:"+ref, ref, order.Command{Cancel: true})
}

func (f *fate) dismisses() {
	flags := rapid.SampledFrom([]order.Flags{order.FlagOverpaid, order.FlagReferenceConflict, order.FlagUnderpaid | order.FlagExpiredUnpaid, order.Dismissible}).Draw(f.rt, "flags")
	c := order.Command{Dismiss: flags}
	if f.chance("restores", 3) {
		c = order.Command{Restore: flags}
	}
	f.say(f.id("dismiss"), f.ref("dismisses"), c)
}

func (f *fate) confirms() {
	p := f.names()[0]
	fact := order.Fact{Kind: rapid.SampledFrom([]order.Kind{order.KindCaptured, order.KindAuthorized}).Draw(f.rt, "confirmed"), Amount: 2000, Currency: "EUR"}
	f.say(f.id("confirm"), f.ref("confirms"), order.Command{Confirm: true}, about(p, fact), func(e *store.Event) { e.Strength = order.StrengthPayment })
}

func (f *fate) links() {
	p := f.names()[0]
	ref := f.ref("links")
	if f.chance("takes back", 3) {
		ref = ""
	}
	f.say(f.id("link"), ref, order.Command{Link: true}, about(p))
}

func (f *fate) cash() {
	if len(f.incomes) > 0 && f.chance("void", 2) {
		f.void(f.incomes[f.pick("which", len(f.incomes))])
		return
	}
	ref := f.ref("for")
	var known bool
	require.NoError(f.rt, f.s.Pool().QueryRow(f.ctx, `SELECT EXISTS (SELECT FROM orders WHERE account_id = $1 AND external_ref = $2)`, f.account, ref).Scan(&known))
	if !known {
		ref = ""
	}
	f.incomes = append(f.incomes, f.income(f.id("cash"), ref, 1000))
}

// looks looks at what is due, and answers some of what was called.
func (f *fate) looks() {
	rows, err := f.s.Pool().Query(f.ctx, `SELECT id FROM orders WHERE account_id = $1 AND wake_at IS NOT NULL ORDER BY external_ref`, f.account)
	require.NoError(f.rt, err)
	var due []uuid.UUID
	for rows.Next() {
		var id uuid.UUID
		require.NoError(f.rt, rows.Scan(&id))
		due = append(due, id)
	}
	require.NoError(f.rt, rows.Err())
	lease := time.Minute
	if f.chance("lapses", 3) {
		lease = time.Nanosecond
	}
	for _, id := range due {
		l, err := f.s.Look(f.ctx, f.account, id, lease)
		require.NoError(f.rt, err)
		if l.Claim != nil {
			f.claims = append(f.claims, *l.Claim)
		}
	}
}

func (f *fate) answers() {
	if len(f.claims) == 0 {
		return
	}
	i := f.pick("claim", len(f.claims))
	c := f.claims[i]
	f.claims = slices.Delete(f.claims, i, i+1)
	out, err := f.s.Settle(f.ctx, c, rapid.SampledFrom([]store.Answer{done, done, {Wait: 0, Err: "503"}, later, dead}).Draw(f.rt, "answer"), time.Minute)
	require.NoError(f.rt, err)
	if out.Next != nil {
		f.claims = append(f.claims, *out.Next)
	}
}

func (f *fate) retries() {
	err := f.s.RetryEffects(f.ctx, store.EffectFilter{Account: f.account, States: []order.EffectState{order.EffectDead, order.EffectOpen}}, func(store.Effect, store.RetryOutcome) {})
	require.NoError(f.rt, err)
}

func (f *fate) expires() {
	_, err := f.s.ExpireOrders(f.ctx)
	require.NoError(f.rt, err)
}

func (f *fate) recurs() {
	f.recur("club", period.DateOf(time.Now().UTC().AddDate(0, 0, -f.pick("days", 3))))
}

// moves asks for a refund, or goes on with one.
func (f *fate) moves() {
	if len(f.moving) > 0 {
		c := f.moving[0]
		f.moving = f.moving[1:]
		a := store.MoveAnswer{Status: rapid.SampledFrom([]store.TransactionStatus{store.TransactionSucceeded, store.TransactionFailed, store.TransactionPending}).Draw(f.rt, "moved")}
		if a.Status == store.TransactionSucceeded {
			a.Events = []store.Event{f.hook(f.id("moved"), c.Movement.Payment[0], "", item(order.KindRefunded, "re_"+c.ID.String(), order.StatusOK, c.Amount.Minor))}
		}
		_, err := f.s.SettleMove(f.ctx, c, a)
		require.NoError(f.rt, err)
		return
	}
	n := store.NewTransaction{
		Account: f.account, Kind: order.MovementRefund, Ref: f.id("move"), Realms: []string{"stripe:live"}, Amount: 500, Currency: "EUR",
		Prepare: func(_ store.Origin, m order.Movement) (store.Prepared, error) {
			return store.Prepared{Source: "stripe", Gateway: "stripe", Request: store.Request{Method: "POST", Path: "/", Body: []byte(m.ID)}}, nil
		},
	}
	if err := f.s.Pool().QueryRow(f.ctx, `SELECT id FROM orders WHERE account_id = $1 AND external_ref = $2`, f.account, f.ref("moves")).Scan(&n.Order); err != nil {
		return
	}
	var made store.EnteredTransaction
	err := f.s.InTx(f.ctx, func(tx store.Tx) (err error) {
		made, err = f.s.CreateTransaction(f.ctx, tx, n)
		return err
	})
	var no *store.MoveRefusal
	if errors.As(err, &no) {
		return
	}
	require.NoError(f.rt, err)
	c, err := f.s.ClaimMove(f.ctx, f.account, made.ID, time.Minute)
	require.NoError(f.rt, err)
	if c != nil {
		f.moving = append(f.moving, *c)
	}
}

// Whatever happens to an account, in any order, an audit finds no difference, at no moment.
func TestAnyHistoryIsClean(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		f := &fate{shop: newShop(rt, context.Background(), s, fmt.Sprintf("shop%d", runs)), rt: rt, sources: map[string]bool{}}
		acts := []struct {
			name string
			do   func()
		}{
			{"hooks", f.hooks},
			{"hooks", f.hooks},
			{"hooks", f.hooks},
			{"hooks", f.hooks},
			{"hooks", f.hooks},
			{"registers", f.registers},
			{"registers", f.registers},
			{"amends", f.amends},
			{"cancels", f.cancels},
			{"dismisses", f.dismisses},
			{"confirms", f.confirms},
			{"links", f.links},
			{"links", f.links},
			{"cash", f.cash},
			{"looks", f.looks},
			{"looks", f.looks},
			{"answers", f.answers},
			{"answers", f.answers},
			{"retries", f.retries},
			{"expires", f.expires},
			{"pause", f.pause},
			{"reread", f.reread},
			{"recurs", f.recurs},
			{"moves", f.moves},
			{"moves", f.moves},
		}
		for range rapid.IntRange(1, 20).Draw(rt, "acts") {
			act := acts[f.pick("act", len(acts))]
			act.do()
			if f.chance("audited", 3) {
				f.audited(act.name)
			}
		}
		f.audited("the end")
	})
}

func (f *fate) audited(after string) {
	var lines string
	sum, err := audit.Run(f.ctx, f.s, audit.Options{Account: f.account, Each: func(d audit.Difference) error {
		lines += d.String() + "\n"
		return nil
	}})
	require.NoError(f.rt, err)
	require.Zero(f.rt, sum.Differences, "after %s:\n%s", after, lines)
}
