package outbound_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/outbound"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// teller is a gateway of the tests that can be called. It answers {"ruling", "ref"}, and what it says of a refund is a fact.
var teller = &gateway.Gateway{
	Name: "teller", Title: "Teller", Evidence: gateway.Solid, Covers: gateway.Coverage{Of: "body"},
	Calls: &gateway.Calls{
		Live: "https://api.teller.test", KeyHeader: "Idempotency-Key", KeyLife: 24 * time.Hour,
		Make: func(_ gateway.Source, m order.Movement) (gateway.Call, error) {
			body, err := json.Marshal(m)
			return gateway.Call{Method: http.MethodPost, Path: "/" + string(m.Kind) + "s", Header: http.Header{"Content-Type": {"application/json"}}, Body: body}, err
		},
		Authorize: func(s gateway.Source, c gateway.Call) gateway.Call {
			c.Header.Set("Authorization", "Bearer "+s.AccessToken)
			return c
		},
		Read: tellerSays,
		Look: func(_ gateway.Source, m order.Movement) (gateway.Call, error) {
			return gateway.Call{Path: "/lookup/" + m.ID, Header: http.Header{}}, nil
		},
		Found: tellerSays,
	},
}

// mute is a teller that cannot be asked.
var mute = func() *gateway.Gateway {
	g, c := *teller, *teller.Calls
	g.Name, c.Look, c.Found, g.Calls = "mute", nil, nil, &c
	return &g
}()

func tellerSays(_ gateway.Source, m order.Movement, r gateway.Reply) gateway.Verdict {
	var said struct{ Ruling, Ref, Fetch string }
	if r.Status != http.StatusOK || json.Unmarshal(r.Body, &said) != nil {
		return gateway.Verdict{Ruling: gateway.Unsure, Detail: fmt.Sprintf("it answered %d", r.Status)}
	}
	v := gateway.Verdict{Ruling: gateway.Ruling(said.Ruling), Ref: said.Ref}
	if said.Fetch != "" {
		v.Fetch = []gateway.Object{{Kind: "payment", ID: said.Fetch}}
	}
	if v.Ruling == gateway.Done {
		v.Events = []order.Event{{Type: "refund", At: noon, Payment: m.Payment, Facts: []order.Fact{
			{Kind: order.KindRefunded, Ref: said.Ref, Status: order.StatusOK, Amount: m.Amount.Minor, Currency: m.Amount.Currency},
		}}}
	}
	return v
}

// sent is a call that a gateway got.
type sent struct{ path, key, auth, body string }

// till answers calls as it is told, the last answer for ever.
type till struct {
	mu      sync.Mutex
	got     []sent
	answers []func() (gateway.Reply, error)
}

func (a *till) Call(_ context.Context, _ *gateway.Gateway, _ gateway.Source, base string, c gateway.Call) (gateway.Reply, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.got = append(a.got, sent{base + c.Path, c.Header.Get("Idempotency-Key"), c.Header.Get("Authorization"), string(c.Body)})
	say := a.answers[0]
	if len(a.answers) > 1 {
		a.answers = a.answers[1:]
	}
	return say()
}

func says(ruling gateway.Ruling, ref string) func() (gateway.Reply, error) {
	return func() (gateway.Reply, error) {
		return gateway.Reply{Status: 200, Body: fmt.Appendf(nil, `{"ruling":%q,"ref":%q}`, ruling, ref)}, nil
	}
}

func errs(err error) func() (gateway.Reply, error) {
	return func() (gateway.Reply, error) { return gateway.Reply{}, err }
}

// counter is a database with a paid order, a gateway that is called, and a Mover.
type counter struct {
	*stage
	till  *till
	mover *outbound.Mover
	order uuid.UUID
}

func newCounter(t *testing.T, answers ...func() (gateway.Reply, error)) *counter {
	t.Helper()
	s := &stage{t: t, pool: storetest.Open(t)}
	var err error
	s.store, err = store.New(s.pool, store.Options{})
	require.NoError(t, err)
	s.source(gateway.Source{ID: "till", Account: "acme", Gateway: "teller", AccessToken: "token-1"})
	s.source(gateway.Source{ID: "mute", Account: "acme", Gateway: "mute", AccessToken: "token-1"})
	c := &counter{stage: s, till: &till{answers: answers}}
	c.mover = c.another(nil)
	s.register("ord_1", 5000)
	_, err = s.store.Apply(t.Context(), []store.Event{{Account: "acme", Source: "till", Event: order.Event{
		ID: "evt_1", Type: "paid", At: noon, Realm: "teller:live", Payment: []string{"pay_1"}, Reference: "ord_1", Strength: order.StrengthPayment,
		Facts: []order.Fact{{Kind: order.KindCaptured, Amount: 5000, Currency: "EUR"}},
	}}})
	require.NoError(t, err)
	require.NoError(t, s.pool.QueryRow(t.Context(), `SELECT id FROM orders`).Scan(&c.order))
	return c
}

func (c *counter) another(change func(*outbound.MoveOptions)) *outbound.Mover {
	c.t.Helper()
	opts := outbound.MoveOptions{
		Gateways: func(name string) (*gateway.Gateway, bool) {
			for _, g := range []*gateway.Gateway{teller, mute} {
				if g.Name == name {
					return g, true
				}
			}
			return nil, false
		},
		Logger: slog.New(slog.NewJSONHandler(&c.log, nil)),
	}
	if change != nil {
		change(&opts)
	}
	m, err := outbound.NewMover(c.store, c.till, c.find, opts)
	require.NoError(c.t, err)
	return m
}

// refund enters a refund through a source.
func (c *counter) refund(source string, minor int64, ref string) store.Transaction {
	c.t.Helper()
	src, _ := c.find(source)
	var got store.EnteredTransaction
	require.NoError(c.t, c.store.InTx(c.t.Context(), func(tx store.Tx) (err error) {
		got, err = c.store.CreateTransaction(c.t.Context(), tx, store.NewTransaction{
			Account: "acme", Order: c.order, Kind: order.MovementRefund, Amount: minor, Ref: ref, Realms: []string{"teller:live"},
			Prepare: func(_ store.Origin, m order.Movement) (store.Prepared, error) {
				call, err := teller.Calls.Make(src, m)
				return store.Prepared{Source: source, Gateway: src.Gateway, Request: store.Request{
					Method: call.Method, Path: call.Path, Header: map[string]string{"Content-Type": "application/json"}, Body: call.Body,
				}}, err
			},
		})
		return err
	}))
	return got.Transaction
}

// works runs the job of a transaction as River would, and says how it stands.
func (c *counter) works(tr store.Transaction) store.Transaction {
	c.t.Helper()
	require.NoError(c.t, outbound.Move(c.t.Context(), c.mover, store.MoveArgs{Account: "acme", Transaction: tr.ID}))
	got, err := c.store.GetTransaction(c.t.Context(), "acme", tr.ID)
	require.NoError(c.t, err)
	return got
}

// passes lets time pass for the transactions.
func (c *counter) passes(by time.Duration) {
	c.t.Helper()
	_, err := c.pool.Exec(c.t.Context(), `UPDATE transactions SET next_at = next_at - $1::interval, claimed_until = claimed_until - $1::interval, sent_at = sent_at - $1::interval`, by)
	require.NoError(c.t, err)
}

func (c *counter) kept() (n int) {
	c.t.Helper()
	require.NoError(c.t, c.pool.QueryRow(c.t.Context(), `SELECT kept FROM orders`).Scan(&n))
	return n
}

var lost = errs(failure(outbound.Retry, 0, 0))

func TestMoverMovesMoneyOnce(t *testing.T) {
	t.Parallel()
	c := newCounter(t, lost, lost, says(gateway.Done, "re_1"))
	tr := c.refund("till", 2000, "")
	require.Equal(t, store.TransactionSent, c.works(tr).Status)
	c.passes(time.Minute)
	require.Equal(t, store.TransactionSent, c.works(tr).Status)
	require.Equal(t, 5000, c.kept())
	c.passes(time.Minute)
	got := c.works(tr)
	require.Equal(t, []any{store.TransactionSucceeded, "re_1", ""}, []any{got.Status, got.GatewayRef, got.Code})
	require.Equal(t, 3000, c.kept())
	require.Equal(t, got, c.works(tr), "no call is made any more")

	require.Len(t, c.till.got, 3)
	for _, s := range c.till.got {
		require.Equal(t, sent{"https://api.teller.test/refunds", tr.Key, "Bearer token-1", c.till.got[0].body}, s)
	}
	require.NotContains(t, c.log.String(), "token-1")
	// What it said is kept to be read again, and joined with what its webhook says.
	var body, movement string
	require.NoError(t, c.pool.QueryRow(t.Context(), `SELECT convert_from(body, 'UTF8'), header->>'Paidonce-Movement' FROM event_payloads WHERE source_id = 'till' AND body IS NOT NULL`).Scan(&body, &movement))
	require.JSONEq(t, `{"ruling":"done","ref":"re_1"}`, body)
	require.Contains(t, movement, tr.ID.String())
	events, err := teller.Read(gateway.Source{ID: "till", Account: "acme", Gateway: "teller", Mode: gateway.Live}, gateway.Delivery{Body: []byte(body), Header: http.Header{
		"Paidonce-Movement": {movement}, "Paidonce-Reply": {"answer 200"}, "Paidonce-Started": {noon.Format(time.RFC3339Nano)},
	}})
	require.NoError(t, err)
	require.Equal(t, "re_1", events[0].Facts[0].Ref)
}

// TestT108_TheStoredBytesAreSent: whatever has become of the program that made them.
func TestT108_TheStoredBytesAreSent(t *testing.T) {
	t.Parallel()
	c := newCounter(t, lost, says(gateway.Done, "re_1"))
	tr := c.refund("till", 2000, "")
	_, err := c.pool.Exec(t.Context(), `UPDATE transactions SET body = 'as an older version wrote it', path = '/v0/refunds'`)
	require.NoError(t, err)
	c.works(tr)
	c.passes(time.Minute)
	c.works(tr)
	for _, s := range c.till.got {
		require.Equal(t, sent{"https://api.teller.test/v0/refunds", tr.Key, "Bearer token-1", "as an older version wrote it"}, s)
	}
}

func TestMoverLooksUpWhatItCannotKnow(t *testing.T) {
	t.Parallel()
	broken := func() (gateway.Reply, error) { return gateway.Reply{Status: 500}, nil }
	c := newCounter(t, broken, says(gateway.Unsure, ""), says(gateway.Absent, ""), says(gateway.Done, "re_2"))
	tr := c.refund("till", 2000, "")
	require.Equal(t, store.TransactionUncertain, c.works(tr).Status)
	c.passes(time.Minute)
	require.Equal(t, store.TransactionUncertain, c.works(tr).Status)
	c.passes(time.Minute)
	got := c.works(tr)
	require.Equal(t, []any{store.TransactionPending, 2}, []any{got.Status, got.Epoch})
	c.passes(time.Hour)
	require.Equal(t, store.TransactionSucceeded, c.works(tr).Status)
	require.Equal(t, []string{"/refunds", "/lookup/" + tr.ID.String(), "/lookup/" + tr.ID.String(), "/refunds"}, paths(c.till.got))
	require.Equal(t, []string{tr.Key, "", "", store.TransactionKey(tr.ID, 2)}, keys(c.till.got))
	require.Equal(t, c.till.got[0].body, c.till.got[3].body, "the bytes stay")
	for _, s := range c.till.got {
		require.Equal(t, "Bearer token-1", s.auth)
	}
	require.Equal(t, 3000, c.kept())
}

func paths(all []sent) (out []string) {
	for _, s := range all {
		out = append(out, s.path[len("https://api.teller.test"):])
	}
	return out
}

func keys(all []sent) (out []string) {
	for _, s := range all {
		out = append(out, s.key)
	}
	return out
}

// TestT102_NoCallAfterTheKeysLife: what the gateway may have forgotten could be done twice. It is asked instead, and where that cannot
// be, a person must look.
func TestT102_NoCallAfterTheKeysLife(t *testing.T) {
	t.Parallel()
	c := newCounter(t, lost, says(gateway.Done, "re_1"))
	tr := c.refund("till", 2000, "")
	c.works(tr)
	c.passes(22 * time.Hour)
	c.till.answers = []func() (gateway.Reply, error){lost}
	require.Equal(t, store.TransactionSent, c.works(tr).Status)
	c.passes(time.Hour + time.Minute)
	got := c.works(tr)
	require.Equal(t, []any{store.TransactionUncertain, "key_window_over"}, []any{got.Status, got.Code})
	require.Len(t, c.till.got, 2)
	c.passes(time.Hour)
	c.till.answers = []func() (gateway.Reply, error){says(gateway.Done, "re_1")}
	require.Equal(t, store.TransactionSucceeded, c.works(tr).Status)
	require.Equal(t, "/lookup/"+tr.ID.String(), paths(c.till.got)[2])

	c.till.answers = []func() (gateway.Reply, error){lost}
	tr = c.refund("mute", 1000, "")
	c.works(tr)
	c.passes(24 * time.Hour)
	got = c.works(tr)
	require.Equal(t, store.TransactionUncertain, got.Status)
	require.Nil(t, got.NextAt)
}

// TestT109_NewCredentialsOldKey: what was refused for its credentials goes again with the new ones, under the same key.
func TestT109_NewCredentialsOldKey(t *testing.T) {
	t.Parallel()
	c := newCounter(t, says(gateway.Denied, ""), says(gateway.Done, "re_1"))
	tr := c.refund("till", 2000, "")
	require.Equal(t, store.TransactionSent, c.works(tr).Status)
	c.source(gateway.Source{ID: "till", Account: "acme", Gateway: "teller", AccessToken: "token-2"})
	c.passes(time.Hour)
	require.Equal(t, store.TransactionSucceeded, c.works(tr).Status)
	require.Equal(t, []sent{
		{"https://api.teller.test/refunds", tr.Key, "Bearer token-1", c.till.got[0].body},
		{"https://api.teller.test/refunds", tr.Key, "Bearer token-2", c.till.got[0].body},
	}, c.till.got)
}

func TestMoverWithoutASource(t *testing.T) {
	t.Parallel()
	c := newCounter(t, says(gateway.Done, "re_1"))
	tr := c.refund("till", 2000, "")
	src, _ := c.find("till")
	for name, other := range map[string]gateway.Source{
		"gone": {ID: "elsewhere"}, "another's": {ID: "till", Account: "beta", Gateway: "teller"}, "another gateway": {ID: "till", Account: "acme", Gateway: "mute"},
	} {
		c.sources.Delete("till")
		c.source(other)
		got := c.works(tr)
		require.Equal(t, []any{store.TransactionSent, "cannot_call", 0}, []any{got.Status, got.Code, got.Attempts}, name)
		c.passes(24 * time.Hour)
		_, err := c.pool.Exec(t.Context(), `UPDATE transactions SET sent_at = clock_timestamp()`)
		require.NoError(t, err)
	}
	require.Empty(t, c.till.got)
	c.source(src)
	require.Equal(t, store.TransactionSucceeded, c.works(tr).Status)
}

func TestMoverSurvivesPanicsAndWhatCannotBeStored(t *testing.T) {
	t.Parallel()
	c := newCounter(t, func() (gateway.Reply, error) { panic("no") }, func() (gateway.Reply, error) {
		return gateway.Reply{Status: 200, Body: []byte(`{"ruling":"done","ref":"re_\u0000"}`)}, nil
	})
	tr := c.refund("till", 2000, "")
	got := c.works(tr)
	require.Equal(t, store.TransactionSent, got.Status)
	require.Contains(t, c.log.String(), "panic")
	c.passes(time.Hour)
	require.Equal(t, store.TransactionSucceeded, c.works(tr).Status, "it was done, whatever else it says")
	require.Equal(t, 5000, c.kept(), "the webhook will tell")
}

// TestMoverAsksAgainWhatItCannotRead: an answer of success that cannot be read is given again under the same key. A lookup might not
// show yet what a call before is still doing.
func TestMoverAsksAgainWhatItCannotRead(t *testing.T) {
	t.Parallel()
	page := func() (gateway.Reply, error) { return gateway.Reply{Status: 200, Body: []byte("<html>")}, nil }
	c := newCounter(t, lost, page, says(gateway.Done, "re_1"))
	tr := c.refund("till", 2000, "")
	for range 3 {
		c.works(tr)
		c.passes(time.Minute)
	}
	require.Equal(t, []string{tr.Key, tr.Key, tr.Key}, keys(c.till.got))
	require.Equal(t, store.TransactionSucceeded, c.works(tr).Status)

	c.till.answers = []func() (gateway.Reply, error){page}
	tr = c.refund("till", 1000, "x")
	for range 7 {
		c.works(tr)
		c.passes(20 * time.Minute)
	}
	got, err := c.store.GetTransaction(t.Context(), "acme", tr.ID)
	require.NoError(t, err)
	require.Equal(t, store.TransactionUncertain, got.Status, "not for ever")
}

// TestMoverTellsWhatElseToAskAbout: where the answer does not tell all, the object is asked about.
func TestMoverTellsWhatElseToAskAbout(t *testing.T) {
	t.Parallel()
	c := newCounter(t, func() (gateway.Reply, error) {
		return gateway.Reply{Status: 200, Body: []byte(`{"ruling":"done","ref":"re_1","fetch":"pay_1"}`)}, nil
	})
	c.works(c.refund("till", 2000, ""))
	require.Equal(t, []string{"payment/pay_1"}, c.texts(`SELECT object FROM fetches`))
}

// TestMoverRuns: through River, two processes, jobs that vanish, answers that are lost.
func TestMoverRuns(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	var mu sync.Mutex
	calls, done := map[string]int{}, map[string]bool{}
	c.till.answers = []func() (gateway.Reply, error){nil}
	books := caller(func(call gateway.Call) (gateway.Reply, error) {
		mu.Lock()
		defer mu.Unlock()
		key := call.Header.Get("Idempotency-Key")
		calls[key]++
		if calls[key] == 1 {
			return gateway.Reply{}, failure(outbound.Retry, 0, 0) // not done
		}
		done[key] = true
		if calls[key] == 2 {
			return gateway.Reply{}, failure(outbound.Retry, 0, 0) // done, and the answer is lost
		}
		return says(gateway.Done, "re_"+key)()
	})
	quick := func(o *outbound.MoveOptions) {
		o.Retry, o.TickEvery, o.TickGrace = []time.Duration{time.Millisecond}, 50*time.Millisecond, 50*time.Millisecond
	}
	for range 2 {
		opts := outbound.MoveOptions{Gateways: func(string) (*gateway.Gateway, bool) { return teller, true }}
		quick(&opts)
		m, err := outbound.NewMover(c.store, books, c.find, opts)
		require.NoError(t, err)
		c.run(m)
	}
	for i := range 10 {
		c.refund("till", 500, fmt.Sprint(i))
	}
	_, err := c.pool.Exec(t.Context(), `DELETE FROM river_job WHERE state <> 'running'`)
	require.NoError(t, err)
	c.until("all are done", func() bool {
		return c.texts(`SELECT count(*)::text FROM transactions WHERE status = 'succeeded'`)[0] == "10"
	})
	require.Zero(t, c.kept())
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, done, 10, "ten keys, however often")
}

// caller is a function that answers calls.
type caller func(gateway.Call) (gateway.Reply, error)

func (f caller) Call(_ context.Context, _ *gateway.Gateway, _ gateway.Source, _ string, c gateway.Call) (gateway.Reply, error) {
	return f(c)
}

// TestT110_NoKeyLeaks: each call carries its own key and no other, and a redirect takes none to another host.
func TestT110_NoKeyLeaks(t *testing.T) {
	t.Parallel()
	var got []string
	h := newHost(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Idempotency-Key"))
		w.Header().Set("Location", "https://elsewhere.example/")
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	client := h.client(t, &hand{}, nil)
	for _, key := range []string{"k1", "", "k2"} {
		call := gateway.Call{Method: http.MethodPost, Path: "/v1/refunds", Header: http.Header{"Authorization": {"Bearer sk_header"}}, Body: []byte("x")}
		if key != "" {
			call.Header.Set("Idempotency-Key", key)
		}
		reply, err := client.Call(t.Context(), asked, shop, "https://example.com", call)
		require.NoError(t, err)
		require.Equal(t, http.StatusTemporaryRedirect, reply.Status)
	}
	require.Equal(t, []string{"k1", "", "k2"}, got, "once each: nothing is followed")
}

func TestCallReturnsRefusals(t *testing.T) {
	t.Parallel()
	h := newHost(t, status(402, "X-Code", "declined"))
	client := h.client(t, &hand{}, nil)
	reply, err := client.Call(t.Context(), asked, shop, "https://example.com", gateway.Call{Path: "/x"})
	require.NoError(t, err)
	require.Equal(t, []any{402, "sk_body", "declined"}, []any{reply.Status, string(reply.Body), reply.Header.Get("X-Code")})
	h.now(status(429, "Retry-After", "30"))
	reply, err = client.Call(t.Context(), asked, shop, "https://example.com", gateway.Call{Path: "/x"})
	require.NoError(t, err)
	require.Equal(t, 429, reply.Status)
	_, err = client.Call(t.Context(), asked, shop, "https://example.com", gateway.Call{Path: "/x"})
	require.Equal(t, 30*time.Second, fails(t, err, outbound.Retry).after, "its pace is kept by the next one")
	_, err = client.Call(t.Context(), asked, shop, "http://example.com", gateway.Call{Path: "/x"})
	var e *outbound.Error
	require.True(t, errors.As(err, &e) && e.Kind == outbound.Refused && e.Status == 0)
}
