package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// bank is a gateway that can be called: its requests say what they are made of. Its payments called odd_… cannot be moved.
func bank(name string) *gateway.Gateway {
	return &gateway.Gateway{Name: name, Title: strings.ToUpper(name[:1]) + name[1:], Calls: &gateway.Calls{
		KeyHeader: "X-Key",
		Ready: func(s gateway.Source) error {
			if s.AccessToken == "" {
				return errors.New("access_token is missing")
			}
			return nil
		},
		Make: func(s gateway.Source, m order.Movement) (gateway.Call, error) {
			if strings.HasPrefix(m.Payment[0], "odd_") {
				return gateway.Call{}, &gateway.CallError{Detail: "the payment is an odd one"}
			}
			return gateway.Call{
				Method: http.MethodPost, Path: "/" + s.ID + "/" + string(m.Kind),
				Header: http.Header{"Content-Type": {"text/plain"}, "X-Version": {"1", "2"}},
				Body:   fmt.Appendf(nil, "%s %d %s %s %s", m.ID, m.Amount.Minor, m.Amount.Currency, strings.Join(m.Payment, "="), m.Reason),
			}, nil
		},
	}}
}

// sourceOf is a source of account a.
func sourceOf(g *gateway.Gateway, id string, change ...func(*gateway.Source)) api.Source {
	s := gateway.Source{ID: id, Account: "a", Gateway: g.Name, Mode: gateway.Live, AccessToken: "tok_TESTONLY"}
	for _, c := range change {
		c(&s)
	}
	return api.NewSource(g, s)
}

func poor(s *gateway.Source) { s.AccessToken = "" }

// having configures the sources of account a.
func having(sources ...api.Source) func(*api.Options) {
	return func(o *api.Options) {
		o.Sources = func(account string) []api.Source {
			if account != "a" {
				return nil
			}
			return sources
		}
	}
}

// callable has one source, of the realm that hook's events are of.
func callable(o *api.Options) { having(sourceOf(bank("stripe"), "stripe"))(o) }

func authorized(amount int64) order.Fact {
	return order.Fact{Kind: order.KindAuthorized, Amount: amount, Currency: "EUR"}
}

// refundOf is one refund of a payment.
func refundOf(ref string, amount int64) order.Fact {
	return order.Fact{Kind: order.KindRefunded, Ref: ref, Status: order.StatusOK, Amount: amount, Currency: "EUR"}
}

func captureOf(ref string, amount int64) order.Fact {
	return order.Fact{Kind: order.KindCaptured, Ref: ref, Status: order.StatusOK, Amount: amount, Currency: "EUR"}
}

// move posts a movement of an order of account a.
func (l *live) move(order any, what, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	return l.do(http.MethodPost, fmt.Sprintf("/v1/orders/%s/%s", order, what), keyA, body, change...)
}

// moved posts a movement that must be new, and returns it.
func (l *live) moved(order any, what, body string, change ...func(*http.Request)) map[string]any {
	l.t.Helper()
	w := l.move(order, what, body, change...)
	require.Equal(l.t, http.StatusCreated, w.Code, w.Body.String())
	tr := data(l.t, w)
	require.Equal(l.t, "/v1/transactions/"+tr["id"].(string), w.Header().Get("Location"))
	return tr
}

// transaction shows one of account a.
func (l *live) transaction(id any) map[string]any {
	l.t.Helper()
	w := l.do(http.MethodGet, fmt.Sprintf("/v1/transactions/%s", id), readOnly, "")
	require.Equal(l.t, http.StatusOK, w.Code, w.Body.String())
	return data(l.t, w)
}

// answer is what a worker does with a transaction: it claims it, calls, and settles it by what it was answered.
func (l *live) answer(id any, a store.MoveAnswer) {
	l.t.Helper()
	claim, err := l.store.ClaimMove(l.t.Context(), "a", uuid.MustParse(id.(string)), time.Minute)
	require.NoError(l.t, err)
	require.NotNil(l.t, claim, "it is not due")
	s, err := l.store.SettleMove(l.t.Context(), *claim, a)
	require.NoError(l.t, err)
	require.False(l.t, s.Stale)
}

// done is the answer of a gateway that has done it.
func done(ref string, events ...store.Event) store.MoveAnswer {
	return store.MoveAnswer{Status: store.TransactionSucceeded, GatewayRef: ref, Events: events}
}

func declined() store.MoveAnswer {
	return store.MoveAnswer{Status: store.TransactionFailed, Code: "card_declined", Detail: "it answered 402"}
}

// unsure is an answer after which only a webhook or a person can tell.
func unsure() store.MoveAnswer {
	return store.MoveAnswer{Status: store.TransactionUncertain, Stop: true, Code: "stored_failure", Detail: "it answered 500, and would again"}
}
