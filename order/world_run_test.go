package order_test

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/paidonce/paidonce/order"
)

// run lets things happen in any order, then lets everything come to rest, and returns what is wrong at the end.
func (w *world) run() error {
	total := int64(4)
	if w.roll(3, "registered first") > 0 {
		if err := w.register(total); err != nil {
			return err
		}
	}
	for range 5 + w.roll(45, "steps") {
		var err error
		switch w.roll(13, "step") {
		case 0, 1, 2:
			err = w.ingest()
		case 3:
			err = w.register(total)
		case 4, 5, 6:
			err = w.claim()
		case 7, 8:
			err = w.answer()
		case 9:
			w.now = w.now.Add(time.Duration(w.roll(30, "seconds")) * time.Second)
		case 10:
			err = w.arrive()
		case 11:
			err = w.retry()
		case 12:
			switch w.roll(12, "rare") {
			case 0:
				err = w.change("canceled", func(o *order.Order) { o.Canceled = true })
			case 1:
				total = 5
			case 2:
				err = w.change("linked elsewhere", func(o *order.Order) { delete(o.Payments, pick(w.dice, "payment", "A", "B")) })
			case 3: // nothing has to be paid
				err = w.change("amended", func(o *order.Order) { o.Total = 0 })
			}
		}
		if err != nil {
			return err
		}
	}
	if err := w.rest(total); err != nil {
		return err
	}
	return w.judge()
}

// rest lets the last facts come, the worker come to an end with a merchant that answers, and what was given up arrive.
func (w *world) rest(total int64) error {
	for len(w.events) > 0 {
		if err := w.ingest(); err != nil {
			return err
		}
	}
	if err := w.register(total); err != nil {
		return err
	}
	for range 30 {
		w.now = w.now.Add(time.Minute)
		for range 2 { // what was dead when the claim lapsed is retried, and claimed
			if err := w.claim(); err != nil {
				return err
			}
			if w.out == nil {
				if err := w.retry(); err != nil {
					return err
				}
			}
		}
		if w.out == nil {
			break
		}
		w.merchant.receive(w.out.row)
		if err := w.settle(w.out, order.Result{Done: true}, true); err != nil {
			return err
		}
	}
	for len(w.lost) > 0 {
		if err := w.arrive(); err != nil {
			return err
		}
	}
	return nil
}

// judge compares what the merchant did with what it should do.
func (w *world) judge() error {
	v, told, m := w.table.view, w.table.told, w.merchant.told
	fail := func(what string) error {
		return fmt.Errorf("%s: %+v, told %s, merchant %s: %v", what, v, told, m, w.merchant.log)
	}
	is := w.order.View()
	is.Want = is.Wanted(told)
	if v != is {
		return fail("the stored view is old")
	}
	parked := false
	if b := w.table.open(); b.Open != nil {
		parked = b.Open.Tried && b.Open.Effect != order.Next(told, v.Want)
		if !parked {
			return fail("something is still owed")
		}
		if !b.Due().IsZero() {
			return fail("a parked effect is due")
		}
	}
	switch {
	case v.Kept == 0 && m == order.ToldFulfilled:
		return fail("delivered, and nothing is kept")
	case v.Want == order.WantGo && m != order.ToldFulfilled:
		return fail("paid, and not delivered")
	case v.Want == order.WantStop && m == order.ToldFulfilled:
		return fail("the money is gone, and nothing is taken back")
	case v.Want == order.WantPause && told == order.ToldHeld && m != order.ToldHeld && m != order.ToldFulfilled:
		return fail("not held")
	case w.merchant.fulfils > 1:
		return fail("fulfilled twice")
	case m != told && !parked && !(told == order.ToldRevoked && m == order.ToldNothing):
		// A revocation of something that never arrived leaves the merchant with nothing, which is as good.
		return fail("the merchant knows something else, and nothing says why")
	}
	return w.replay()
}

// replay derives what the merchant was told from the rows alone: the effects done and assumed are a walk from nothing.
func (w *world) replay() error {
	versions := make([]int, 0, len(w.table.rows))
	for v := range w.table.rows {
		versions = append(versions, v)
	}
	slices.Sort(versions)
	told, state, stopped := order.ToldNothing, order.State(""), 0
	for i, v := range versions {
		r := w.table.rows[v]
		if v != i+1 || i > 0 && r.From != state {
			return fmt.Errorf("row %d of %v comes from %q after %q", v, versions, r.From, state)
		}
		state = r.To
		if r.EffectState != order.EffectDone && r.EffectState != order.EffectAssumed {
			continue
		}
		next := order.After(told, r.Effect)
		if next == told || r.After != told {
			return fmt.Errorf("row %d: %s after %s is no edge from %s", v, r.Effect, r.After, told)
		}
		switch r.Effect {
		case order.EffectHold, order.EffectRevoke:
			stopped++
		case order.EffectRelease:
			stopped--
		}
		if stopped < 0 || stopped > 1 {
			return fmt.Errorf("row %d: holds, revocations and releases do not alternate", v)
		}
		told = next
	}
	if told != w.table.told {
		return fmt.Errorf("told %s, but the rows say %s", w.table.told, told)
	}
	return nil
}

// TestWorker: facts race with calls that are done, refused, lost, or done while nobody learns of it; workers die, claims
// lapse, people retry. Once everything is quiet, the merchant has done what it should, or an effect is parked that says
// why not.
func TestWorker(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]rules{
		"Contract":              {versions: true},
		"LateRequests":          {versions: true, late: true},
		"WithoutVersionsOrLate": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				require.NoError(t, newWorld(rapidDice{t}, r).run())
			})
		})
	}
}

// TestWorkerSeesBrokenContract is the control of TestWorker: a merchant that does not look at versions, and requests that
// arrive late, end wrong (goods delivered after the money went), and the same check finds it.
func TestWorkerSeesBrokenContract(t *testing.T) {
	t.Parallel()
	const most = 20_000
	r := rand.New(rand.NewSource(1))
	for i := range most {
		err := newWorld(seedDice{r}, rules{late: true}).run()
		if err != nil {
			t.Logf("run %d of at most %d: %v", i+1, most, err)
			return
		}
	}
	t.Fatalf("%d runs ended right", most)
}
