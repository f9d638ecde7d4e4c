package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// twoStores are two programs on one database.
func twoStores(t *testing.T) [2]*live {
	t.Helper()
	one := goLive(t, callable)
	opts := api.Options{Rate: 1_000_000, Burst: 1_000_000}
	callable(&opts)
	b := onPool(t, one.pool, opts)
	return [2]*live{one, {bench: b.bench, t: t, store: b.st, pool: one.pool}}
}

// atOnce calls f n times at the same moment.
func atOnce(n int, f func(i int)) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

// TestNeverMoreThanThereIs: sixty-four partial refunds, or captures, of one order from two programs move all that there is as far
// as it divides, and never a unit more.
func TestNeverMoreThanThereIs(t *testing.T) {
	t.Parallel()
	for what, fact := range map[string]order.Fact{"refunds": captured(5000), "captures": authorized(5000)} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := twoStores(t)
			id, _ := l[0].order("ord_1")
			l[0].deliver(hook("evt_1", "pi_1", "ord_1", fact))
			answers := make([]*httptest.ResponseRecorder, 64)
			atOnce(len(answers), func(i int) {
				answers[i] = l[i%2].move(id, what, fmt.Sprintf(`{"data":{"amount":%d,"metadata":{"external_ref":"mv_%d"}}}`, 300+i%3, i), withKey(fmt.Sprint("k", i)))
			})
			created := 0
			for _, w := range answers {
				switch w.Code {
				case http.StatusCreated:
					created++
				case http.StatusConflict:
					require.Contains(t, []string{"amount_exceeds", "nothing_to_move"}, string(problemOf(t, w).Code), w.Body.String())
				default:
					t.Fatalf("%d: %s", w.Code, w.Body.String())
				}
			}
			require.Equal(t, 16, created, "16 of at most 302 fit into 5000, and no 17th of at least 300")
			var sum int64
			require.NoError(t, l[0].pool.QueryRow(t.Context(), `SELECT sum(amount) FROM transactions`).Scan(&sum))
			require.LessOrEqual(t, sum, int64(5000))
			require.Equal(t, 1, l[0].count("transactions WHERE next_at IS NOT NULL"), "one has its turn")

			// What is left is what the answer to the rest says, to the unit.
			w := l[1].move(id, what, `{"data":{"amount":5000}}`)
			left := int64(decoded(t, w)["left"].(map[string]any)["amount"].(float64))
			require.Equal(t, 5000-sum, left)
			require.EqualValues(t, left, l[0].moved(id, what, `{"data":{}}`)["amount"])
		})
	}
}

// TestRefundBesideAWebhook: while the merchant refunds here, somebody refunds in the gateway's own dashboard, and the webhook of it
// comes in between: what is asked for here never exceeds what is left by then.
func TestRefundBesideAWebhook(t *testing.T) {
	t.Parallel()
	l := twoStores(t)
	id := l[0].paidOrder("ord_1")
	var asked atomic.Int64
	atOnce(48, func(i int) {
		if i%3 == 0 {
			ref := fmt.Sprint("re_", i)
			_, err := l[i%2].store.Apply(t.Context(), []store.Event{hook("evt_"+ref, "pi_ord_1", "", refundOf(ref, 100))})
			if err != nil {
				t.Error(err)
			}
			return
		}
		w := l[i%2].move(id, "refunds", fmt.Sprintf(`{"data":{"amount":150,"metadata":{"external_ref":"rf_%d"}}}`, i))
		if w.Code == http.StatusCreated {
			asked.Add(150)
		}
	})
	told := l[0].read(id)["refunded"].(float64)
	require.EqualValues(t, 1600, told, "all webhooks were taken in")
	// Those that were asked for before a webhook may exceed what it left, as at any gateway; those after it do not.
	w := l[0].move(id, "refunds", `{"data":{"amount":5000,"metadata":{"external_ref":"rf_last"}}}`)
	if left := 5000 - 1600 - asked.Load(); left > 0 {
		require.EqualValues(t, left, decoded(t, w)["left"].(map[string]any)["amount"])
	} else {
		require.EqualValues(t, "nothing_to_move", problemOf(t, w).Code)
	}
	require.Equal(t, asked.Load(), l[0].moving())
}

// moving is what is asked for and not settled.
func (l *live) moving() (sum int64) {
	l.t.Helper()
	require.NoError(l.t, l.pool.QueryRow(l.t.Context(), `SELECT coalesce(sum(amount), 0) FROM transactions WHERE settled_at IS NULL`).Scan(&sum))
	return sum
}

// TestRefundBesideItsOwnAnswer: refunds are asked for while earlier ones are called and settled. At no moment is an amount counted
// neither as asked for nor as refunded, so that no more than the payment is ever refunded.
func TestRefundBesideItsOwnAnswer(t *testing.T) {
	t.Parallel()
	l := twoStores(t)
	id := l[0].paidOrder("ord_1")
	worker := func(l *live) error {
		for {
			c, err := l.store.PullMove(t.Context(), "a", 60e9)
			if err != nil {
				return err
			}
			if c == nil {
				if l.count("transactions WHERE settled_at IS NULL") == 0 {
					return nil
				}
				continue
			}
			ref := "re_" + c.ID.String()
			answer := done(ref, hook("evt_"+ref, "pi_ord_1", "", refundOf(ref, c.Amount.Minor)))
			if c.Amount.Minor%2 == 1 {
				answer = declined()
			}
			if _, err := l.store.SettleMove(t.Context(), *c, answer); err != nil {
				return err
			}
		}
	}
	var wg sync.WaitGroup
	var asked atomic.Int64
	failed := make(chan error, 4)
	for i := range 64 {
		wg.Go(func() {
			w := l[i%2].move(id, "refunds", fmt.Sprintf(`{"data":{"amount":%d,"metadata":{"external_ref":"rf_%d"}}}`, 240+i%4, i))
			if w.Code == http.StatusCreated {
				asked.Add(1)
			}
			if i%16 == 5 {
				if err := worker(l[i%2]); err != nil {
					failed <- err
				}
			}
		})
	}
	wg.Wait()
	for _, l := range l {
		require.NoError(t, worker(l))
	}
	select {
	case err := <-failed:
		require.NoError(t, err)
	default:
	}
	var done int64
	require.NoError(t, l[0].pool.QueryRow(t.Context(), `SELECT coalesce(sum(amount), 0) FROM transactions WHERE status = 'succeeded'`).Scan(&done))
	require.LessOrEqual(t, done, int64(5000))
	require.EqualValues(t, done, l[0].read(id)["refunded"])
	require.NotContains(t, l[0].read(id)["flags"], "over_refunded")
	require.GreaterOrEqual(t, asked.Load(), int64(20))
	if w := l[0].move(id, "refunds", `{"data":{}}`); w.Code == http.StatusCreated {
		require.EqualValues(t, 5000-done, data(t, w)["amount"])
	} else {
		require.Equal(t, int64(5000), done)
	}
}

// TestCancelAndCaptureAtOnce: of an authorization that is captured and whose order is canceled at the same moment one of the two
// is asked for, never both.
func TestCancelAndCaptureAtOnce(t *testing.T) {
	t.Parallel()
	l := twoStores(t)
	for round := range 8 {
		ref := fmt.Sprint("ord_", round)
		id, _ := l[0].order(ref)
		l[0].deliver(hook("evt_"+ref, "pi_"+ref, ref, authorized(5000)))
		answers := make([]*httptest.ResponseRecorder, 8)
		atOnce(len(answers), func(i int) {
			if i%2 == 0 {
				answers[i] = l[i/2%2].do(http.MethodPost, "/v1/orders/"+id+"/cancel", keyA, "")
			} else {
				answers[i] = l[i/2%2].move(id, "captures", `{"data":{}}`)
			}
		})
		for i, w := range answers {
			if i%2 == 0 {
				require.Equal(t, http.StatusOK, w.Code, w.Body.String())
			}
		}
		require.Equal(t, 1, l[0].count("transactions WHERE order_id = $1", uuid.MustParse(id)))
	}
}

// No call is entered by a unit that does not commit.
func TestNothingIsCalledThatWasNotCommitted(t *testing.T) {
	t.Parallel()
	l := goLive(t, callable)
	id := l.paidOrder("ord_1")
	before := l.written()
	source := sourceOf(bank("stripe"), "stripe")
	broken := errors.New("broken on purpose")
	err := l.store.InTx(t.Context(), func(tx store.Tx) error {
		_, err := l.store.CreateTransaction(t.Context(), tx, store.NewTransaction{
			Account: "a", Order: uuid.MustParse(id), Kind: order.MovementRefund, Realms: []string{"stripe:live"},
			Prepare: func(_ store.Origin, m order.Movement) (store.Prepared, error) {
				r, err := source.Prepare(m)
				return store.Prepared{Source: "stripe", Gateway: "stripe", Request: r}, err
			},
		})
		require.NoError(t, err)
		return broken
	})
	require.ErrorIs(t, err, broken)
	require.Equal(t, before, l.written())
}
