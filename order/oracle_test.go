package order_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
)

// The files of testdata/fold were written once by an independent implementation of the same rules (a prototype that is
// not part of this repository). They are never regenerated from the code that they check.

type oracleFact struct {
	Payment string `json:"payment"`
	order.Fact
}

type oracleView struct {
	State      order.State `json:"state"`
	Flags      []string    `json:"flags"`
	Want       order.Want  `json:"want"`
	Captured   int64       `json:"captured"`
	Refunded   int64       `json:"refunded"`
	Lost       int64       `json:"lost"`
	Kept       int64       `json:"kept"`
	AtRisk     int64       `json:"at_risk"`
	Authorized int64       `json:"authorized"`
}

// require compares a view with what the oracle says. It knew no flag for stubs, and no total in the view.
func (w oracleView) require(t *testing.T, v order.View, msg ...any) {
	t.Helper()
	want, err := order.ParseFlags(w.Flags)
	require.NoError(t, err)
	require.Equal(t, order.View{
		State: w.State, Flags: want, Want: w.Want,
		Captured: w.Captured, Refunded: w.Refunded, Lost: w.Lost, Kept: w.Kept, AtRisk: w.AtRisk, Authorized: w.Authorized,
	}, oracular(v), msg...)
}

// oracular is v without what the oracle does not know.
func oracular(v order.View) order.View {
	v.Flags &^= order.FlagUnregistered
	v.Registered, v.Total, v.Currency = false, 0, ""
	return v
}

func readOracle[T any](t *testing.T, name string) []T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "testdata", "fold", name))
	require.NoError(t, err)
	var cases []T
	require.NoError(t, json.Unmarshal(data, &cases))
	require.NotEmpty(t, cases)
	return cases
}

func joinAll(o *order.Order, facts []oracleFact) {
	for _, f := range facts {
		join(o, f.Payment, f.Fact)
	}
}

// TestGatewaySequences folds what Stripe, Adyen, PayPal and Mercado Pago say about 80 histories, in every order, with
// registration first and last and every event twice.
func TestGatewaySequences(t *testing.T) {
	t.Parallel()
	type sequence struct {
		Name     string         `json:"name"`
		Total    int64          `json:"total"`
		Currency string         `json:"currency"`
		Events   [][]oracleFact `json:"events"`
		View     oracleView     `json:"view"`
		Owed     order.Effect   `json:"owed"`
	}
	for _, s := range readOracle[sequence](t, "gateways.json") {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			for _, first := range []bool{true, false} {
				permute(s.Events, func(events [][]oracleFact) {
					o := stub()
					o.Registered, o.Total, o.Currency = first, s.Total, s.Currency
					book := order.NewBook(1, order.ToldNothing, o.View(), 0, nil)
					book.Step("registered", o.View(), epoch)
					for i := range events {
						joinAll(o, events[i])
						joinAll(o, events[i/2])
						book.Step("facts", o.View(), epoch)
					}
					o.Registered = true
					book.Step("registered", o.View(), epoch)

					s.View.require(t, o.View(), "events %v", events)
					got := order.EffectNone
					if book.Open != nil {
						got = book.Open.Effect
					}
					if s.Total > 0 { // a free order is paid before its facts come
						require.Equal(t, s.Owed, got)
					}
					require.Equal(t, s.Owed, owed(o.View()))
				})
			}
		})
	}
}

// permute calls f with every permutation of s.
func permute[T any](s []T, f func([]T)) {
	var rec func(k int)
	rec = func(k int) {
		if k == len(s) {
			f(s)
			return
		}
		for i := k; i < len(s); i++ {
			s[k], s[i] = s[i], s[k]
			rec(k + 1)
			s[k], s[i] = s[i], s[k]
		}
	}
	rec(0)
}

// TestRandomFactsAgreeWithOracle folds 2400 random sets of facts about two payments.
func TestRandomFactsAgreeWithOracle(t *testing.T) {
	t.Parallel()
	type set struct {
		Facts    []oracleFact `json:"facts"`
		Total    *int64       `json:"total"`
		Currency string       `json:"currency"`
		Canceled bool         `json:"canceled"`
		View     oracleView   `json:"view"`
		Owed     order.Effect `json:"owed"`
	}
	for i, s := range readOracle[set](t, "random.json") {
		o := stub()
		o.Canceled = s.Canceled
		if s.Total != nil {
			o.Registered, o.Total, o.Currency = true, *s.Total, s.Currency
		}
		for _, f := range s.Facts {
			require.NoError(t, f.Validate())
		}
		joinAll(o, s.Facts)
		s.View.require(t, o.View(), "set %d: %v", i, s.Facts)
		require.Equal(t, s.Owed, owed(o.View()))
	}
}

// TestBookAgreesWithOracle runs 500 random histories of facts, claims, late and lost answers and retries, and compares
// every row.
func TestBookAgreesWithOracle(t *testing.T) {
	t.Parallel()
	type op struct {
		Do       string       `json:"do"`
		Total    int64        `json:"total"`
		Facts    []oracleFact `json:"facts"`
		Version  int          `json:"version"`
		Fence    int64        `json:"fence"`
		Done     bool         `json:"done"`
		Accepted bool         `json:"accepted"`
	}
	type row struct {
		Version     int               `json:"version"`
		From        order.State       `json:"from"`
		To          order.State       `json:"to"`
		Effect      order.Effect      `json:"effect"`
		EffectState order.EffectState `json:"effect_state"`
		After       order.Told        `json:"after"`
		Attempts    int               `json:"attempts"`
		Tried       bool              `json:"tried"`
		Fence       int64             `json:"fence"`
		Undoes      int               `json:"undoes"`
	}
	type history struct {
		Ops  []op       `json:"ops"`
		Told order.Told `json:"told"`
		Rows []row      `json:"rows"`
	}
	for i, h := range readOracle[history](t, "engine.json") {
		o := stub()
		b := order.NewBook(0, order.ToldNothing, oracular(o.View()), 0, nil)
		b.MaxAttempts = 3
		for j, op := range h.Ops {
			switch op.Do {
			case "register":
				o.Registered, o.Total, o.Currency = true, op.Total, "EUR"
				b.Step("register", oracular(o.View()), epoch)
			case "ingest":
				joinAll(o, op.Facts)
				b.Step("facts", oracular(o.View()), epoch)
			case "claim":
				version := 0
				if r := b.Claim(epoch, time.Minute); r != nil {
					version = r.Version
				}
				require.Equal(t, op.Version, version, "history %d op %d", i, j)
			case "settle":
				ok := b.Settle(op.Version, op.Fence, order.Result{Done: op.Done, Next: epoch}, epoch)
				require.Equal(t, op.Accepted, ok, "history %d op %d", i, j)
			case "retry":
				b.Retry(epoch)
			default:
				t.Fatalf("unknown op %q", op.Do)
			}
		}
		rows := make([]row, 0, len(b.New()))
		for _, r := range b.New() {
			got := row{
				r.Version, r.From, r.To, r.Effect, r.EffectState, r.After, r.Attempts, r.Tried, r.Fence, 0,
			}
			if r.Undoes != nil && r.EffectState.Live() {
				got.Undoes = r.Undoes.Version
			}
			rows = append(rows, got)
		}
		require.Equal(t, h.Rows, rows, "history %d", i)
		require.Equal(t, h.Told, b.Told, "history %d", i)
	}
}
