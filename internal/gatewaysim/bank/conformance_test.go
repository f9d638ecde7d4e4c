package bank_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/gatewaysim/bank"
	"github.com/paidonce/paidonce/order"
)

// called runs a test for every gateway whose calls are made.
func called(t *testing.T, test func(t *testing.T, g *gateway.Gateway)) {
	t.Helper()
	for _, gw := range gateways {
		g, ok := gateway.Lookup(gw)
		require.True(t, ok)
		if g.Calls == nil {
			continue
		}
		t.Run(gw, func(t *testing.T) {
			t.Parallel()
			test(t, g)
		})
	}
}

var errNoToken = errors.New("no token")

// send makes a call as it is, with the token that its grant gives. An error is that no answer came, or that the call was not made.
func (s *stage) send(ctx context.Context, base string, c gateway.Call) (gateway.Reply, error) {
	if c.Grant != nil {
		got, err := s.send(ctx, base, *c.Grant)
		token := gjson.GetBytes(got.Body, "access_token").String()
		if err != nil || got.Status != http.StatusOK || token == "" {
			return gateway.Reply{}, errNoToken
		}
		c.Header = c.Header.Clone()
		c.Header.Set("Authorization", "Bearer "+token)
	}
	method := c.Method
	if method == "" {
		method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(ctx, method, base+c.Path, strings.NewReader(string(c.Body)))
	require.NoError(s.t, err)
	for name, values := range c.Header {
		r.Header[name] = values
	}
	started := s.now()
	answer, err := s.client.Do(r)
	if err != nil {
		return gateway.Reply{}, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return gateway.Reply{Status: answer.StatusCode, Header: answer.Header, Body: body, Started: started}, err
}

// name is the id of the n-th movement, and key the key of its call under an epoch.
func name(n int) string       { return fmt.Sprintf("0199f1c2-7a54-7c31-9b1e-%012d", n) }
func key(n, epoch int) string { return fmt.Sprintf("0000000%d-5b1c-4e4c-8c5a-%012d", epoch, n) }

// movement is one of the payment that has the reference, made of what its ledger knows.
func (l *ledgers) movement(n int, kind order.MovementKind, reference string, cents int64) order.Movement {
	l.t.Helper()
	for _, one := range l.all() {
		if one.Links().Best().Ref == reference {
			left, err := one.Movable(kind, "EUR")
			require.NoError(l.t, err)
			require.GreaterOrEqual(l.t, left, cents)
			return order.Movement{
				ID: name(n), Kind: kind, Amount: order.Amount{Minor: cents, Currency: "EUR"}, Payment: one.IDs,
				Captures: one.CapturesIn("EUR"), Reference: reference,
			}
		}
	}
	l.t.Fatalf("no payment of %s", reference)
	return order.Movement{}
}

// try makes the call of a movement once, under a key.
func (l *ledgers) try(m order.Movement, key string) (gateway.Verdict, error) {
	l.t.Helper()
	call, err := l.g.Calls.Make(l.src, m)
	require.NoError(l.t, err)
	call.Header = call.Header.Clone()
	call.Header.Set(l.g.Calls.KeyHeader, key)
	return l.judge(m, l.g.Calls.Authorize(l.src, call), false)
}

// look asks what became of a movement.
func (l *ledgers) look(m order.Movement) (gateway.Verdict, error) {
	l.t.Helper()
	call, err := l.g.Calls.Look(l.src, m)
	require.NoError(l.t, err)
	return l.judge(m, l.g.Calls.Authorize(l.src, call), true)
}

func (l *ledgers) judge(m order.Movement, c gateway.Call, look bool) (gateway.Verdict, error) {
	l.t.Helper()
	reply, err := l.s.send(l.t.Context(), l.g.Calls.BaseURL(l.src), c)
	if err != nil {
		return gateway.Verdict{}, err
	}
	v, err := l.g.Judge(l.src, m, reply, look)
	require.NoError(l.t, err)
	return v, nil
}

// take joins what a verdict says, and what it says should be asked about.
func (l *ledgers) take(v gateway.Verdict) {
	l.t.Helper()
	l.join(v.Events)
	for _, o := range v.Fetch {
		l.fetch(o)
	}
}

// refunds and captures are the entries of the payment's ledger that count.
func entries(items map[string]order.Item) (refs []string) {
	for ref, it := range items {
		if it.Status == order.StatusOK {
			refs = append(refs, ref)
		}
	}
	slices.Sort(refs)
	return refs
}

// TestCallsAreDone: what is asked for is done, its answer is understood, and answer and webhook are one entry, whichever comes first.
func TestCallsAreDone(t *testing.T) {
	t.Parallel()
	called(t, func(t *testing.T, g *gateway.Gateway) {
		for title, row := range map[string]struct {
			kind     order.MovementKind
			captured bool
			cents    []int64
		}{
			"capture":           {order.MovementCapture, false, []int64{5000}},
			"capture in part":   {order.MovementCapture, false, []int64{1999}},
			"refund":            {order.MovementRefund, true, []int64{5000}},
			"refund in part":    {order.MovementRefund, true, []int64{1}},
			"refund and refund": {order.MovementRefund, true, []int64{1200, 3800}},
			"void":              {order.MovementVoid, false, []int64{5000}},
		} {
			for _, first := range []string{"answer", "webhook"} {
				t.Run(title+", "+first+" first", func(t *testing.T) {
					t.Parallel()
					s := open(t, bank.Options{})
					l := newLedgers(t, s, g.Name)
					p := s.pay(g.Name, "A-1", row.captured)
					s.Pump(t.Context())
					l.webhooks()
					var mine []bank.Movement
					for n, cents := range row.cents {
						m := l.movement(n, row.kind, "A-1", cents)
						s.clock.add(time.Second)
						before := l.sums("A-1")
						v, err := l.try(m, key(n, 1))
						require.NoError(t, err)
						require.Equal(t, gateway.Done, v.Ruling, v.Detail)
						mine = append(mine, bank.Movement{Kind: m.Kind, Amount: m.Amount, Given: m.ID, Key: key(n, 1), Ref: v.Ref, Status: order.StatusOK})
						again, err := l.try(m, key(n, 1))
						require.NoError(t, err)
						if g.Name == "mercadopago" && row.kind != order.MovementRefund { // there is no key: it is refused, and looked up
							require.Equal(t, gateway.Unsure, again.Ruling)
							again, err = l.look(m)
							require.NoError(t, err)
						}
						require.Equal(t, []any{gateway.Done, v.Ref}, []any{again.Ruling, again.Ref}, "answered again")
						if first == "answer" {
							l.take(v)
							want := bank.Sums{Captured: s.book(p).Sums["EUR"].Captured, Refunded: s.book(p).Sums["EUR"].Refunded}
							if g.Name == "adyen" { // where it is only received
								want = before
							}
							require.Equal(t, want, l.sums("A-1"), "by the answer alone")
						}
						s.Pump(t.Context())
						l.webhooks()
						l.take(v)
						l.take(again)
					}
					book := s.book(p)
					require.Equal(t, bank.Sums{Captured: book.Sums["EUR"].Captured, Refunded: book.Sums["EUR"].Refunded}, l.sums("A-1"))
					require.Equal(t, row.kind == order.MovementVoid, l.view("A-1").State == order.StateCanceled)
					ours := l.books(s.Books())
					for i := range ours.Payments {
						ours.Payments[i].Movements = nil
					}
					ours.Payments[0].Movements = mine
					require.Empty(t, bank.Compare(s.Books(), ours))
					for _, one := range l.all() {
						m := one.Money["EUR"]
						for _, mv := range mine {
							switch {
							case m == nil || row.kind == order.MovementVoid:
							case row.kind == order.MovementRefund && len(m.Refunds) > 0:
								require.Len(t, m.Refunds, len(mine))
								require.Contains(t, entries(m.Refunds), mv.Ref)
							case row.kind == order.MovementCapture && len(m.Captures) > 0:
								require.Equal(t, []string{mv.Ref}, entries(m.Captures))
							}
						}
					}
				})
			}
		}
	})
}
