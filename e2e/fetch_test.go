package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/scenario/cases"
	"github.com/paidonce/paidonce/internal/scenario/network"
)

// fetchHealsWithin is how long after the kill of a worker its call to a gateway is
// made again: the claim lapses after 40 s, and is 5 s late before a tick sees it.
const fetchHealsWithin = 70 * time.Second

// newAskedWorld is a world with a source of Mollie's classic webhooks, which say
// nothing but an id.
func newAskedWorld(t *testing.T) *world {
	t.Helper()
	return newWorld(t, func(s *settings) {
		source, err := json.Marshal(obj{"gateway": "mollie-classic", "mode": "live", "access_token": "live_TESTONLYfetch"})
		require.NoError(t, err)
		s.Accounts[cases.AccountA].Sources["mollie"] = source
	})
}

// mollie lays out what the API says of a payment of an order of 50.00 EUR, one
// status after another.
func (w *world) mollie(id, ref string, statuses ...string) {
	w.t.Helper()
	var replies []network.Reply
	for _, status := range statuses {
		body, err := json.Marshal(obj{
			"resource": "payment", "id": id, "mode": "live", "status": status, "createdAt": "2026-09-21T08:00:00+00:00",
			"amount": obj{"value": "50.00", "currency": "EUR"}, "metadata": obj{"order_id": ref},
			"_embedded": obj{"refunds": list{}, "chargebacks": list{}},
		})
		require.NoError(w.t, err)
		replies = append(replies, network.Reply{Status: http.StatusOK, ContentType: "application/hal+json", Body: string(body)})
	}
	w.Network.Answer("GET", "https://api.mollie.com/v2/payments/"+id+"*", replies)
}

// ping sends what Mollie sends, or anybody.
func (w *world) ping(id string) int {
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, "http://"+w.program.Addr(1)+"/webhooks/mollie", strings.NewReader("id="+id))
	require.NoError(w.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := w.client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// asked counts the calls about a payment.
func (w *world) asked(id string) (n int) {
	for _, line := range w.Network.Outbound() {
		if strings.HasPrefix(line, "GET ") && strings.Contains(line, "/v2/payments/"+id) {
			n++
		}
	}
	return n
}

// paidBy says what keeps the order from being paid and its merchant from being told so.
func (w *world) paidBy(ref string) func() string {
	return func() string {
		if w.count(`SELECT count(*) FROM orders WHERE external_ref = $1 AND state = 'paid' AND told = 'fulfilled'`, ref) == 0 {
			return ref + " is not paid and fulfilled"
		}
		if n := w.count(`SELECT count(*) FROM fetches WHERE state = 'open'`); n > 0 {
			return fmt.Sprintf("%d objects are to be asked about", n)
		}
		return w.owed()
	}
}

// TestForgedPings: whoever knows a payment's id can have the gateway asked, a few
// times, and nothing else.
func TestForgedPings(t *testing.T) {
	t.Parallel()
	w := newAskedWorld(t)
	w.register("asked-1")
	w.mollie("tr_open1", "asked-1", "open", "open", "open", "open", "open", "open", "paid")
	began := time.Now()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				require.Equal(t, http.StatusOK, w.ping("tr_open1"))
			}
		})
	}
	wg.Wait()
	calls := w.asked("tr_open1")
	// The pause after the second call that said the same is 1 s, then 2, 4, 8 …
	require.LessOrEqual(t, calls, 5+int(time.Since(began)/(8*time.Second)), "four hundred pings")
	require.Zero(t, w.count(`SELECT count(*) FROM orders WHERE state <> 'pending'`))
	require.Equal(t, 1, w.count(`SELECT count(*) FROM fetches`))
	require.Equal(t, http.StatusBadRequest, w.ping("tr_1/../../v2/customers"))
	require.Equal(t, http.StatusOK, w.ping("ord_1"), "it is Mollie's, and nothing that moves money")

	w.mollie("tr_paid1", "asked-1", "paid")
	require.Equal(t, http.StatusOK, w.ping("tr_paid1"))
	w.eventually(30*time.Second, func() string {
		if w.count(`SELECT count(*) FROM orders WHERE state = 'paid' AND told = 'fulfilled'`) == 0 {
			return "the order is not paid"
		}
		return ""
	})
	require.Equal(t, []string{"fulfil"}, w.Merchant.Effects("asked-1"))
	require.Equal(t, 1, w.asked("tr_paid1"))
}

// TestKillNineFetch kills work at every station of a call to a gateway: before its
// claim commits, before its answer is taken in, and before that is settled.
func TestKillNineFetch(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]struct {
		verb, table string
		skip, calls int
	}{
		"BeforeTheClaimCommits":  {"UPDATE", "fetches", 0, 1},
		"BeforeTheAnswerCommits": {"INSERT", "processed_events", 0, 2},
		"BeforeTheSettleCommits": {"UPDATE", "fetches", 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newAskedWorld(t)
			w.register("asked-1")
			w.mollie("tr_paid1", "asked-1", "paid")
			f := w.hold("work", 1, at.skip, at.verb, at.table)
			require.Equal(t, http.StatusOK, w.ping("tr_paid1"))
			killed := w.killHeld(f, "work", 1)
			require.NoError(t, w.Program.Start(t.Context(), "work", 1))
			w.eventually(time.Until(killed.Add(fetchHealsWithin)), w.paidBy("asked-1"))
			t.Logf("healed %s after the kill", time.Since(killed).Round(10*time.Millisecond))
			require.Equal(t, at.calls, w.asked("tr_paid1"))
			require.Equal(t, []string{"fulfil"}, w.Merchant.Effects("asked-1"))
			require.Empty(t, w.Merchant.Violations())
		})
	}
}
