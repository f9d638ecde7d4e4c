package api_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/store"
)

// resolve says what became of a transaction of account a.
func (l *live) resolve(id any, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	return l.do(http.MethodPost, "/v1/transactions/"+id.(string)+"/resolve", operator, body, change...)
}

// uncertain is a refund of 1000 of which only a person can tell.
func (l *live) uncertain(order, ref string) any {
	l.t.Helper()
	tr := l.moved(order, "refunds", `{"data":{"amount":1000,"metadata":{"external_ref":"`+ref+`"}}}`)
	l.answer(tr["id"], unsure())
	return tr["id"]
}

func TestResolve(t *testing.T) {
	t.Parallel()
	l := goLive(t, callable)
	for outcome, tt := range map[string]struct {
		body string
		want map[string]any // of the transaction
		text string
	}{
		"succeeded": {`"gateway_ref":"re_1",`, map[string]any{"status": "succeeded", "gateway_ref": "re_1", "epoch": 1.0}, "was asked of stripe, and succeeded (re_1) at "},
		"failed":    {"", map[string]any{"status": "failed", "gateway_ref": nil, "epoch": 1.0, "next_at": nil}, "was asked of stripe, and was not done at "},
		"not_done": {
			"",
			map[string]any{"status": "pending", "gateway_ref": nil, "epoch": 2.0, "attempts": 0.0, "settled_at": nil, "sent_at": nil},
			"is begun anew (a person says: looked at the dashboard): nothing was done before, so stripe is called for the 2nd time over, under another key.",
		},
	} {
		t.Run(outcome, func(t *testing.T) {
			t.Parallel()
			id := l.paidOrder("ord_" + outcome)
			tid := l.uncertain(id, "rf_"+outcome)
			was := l.transaction(tid)
			require.Equal(t, "uncertain", was["status"])
			require.Equal(t, "stored_failure", was["code"])
			// A second one of the payment has to wait for the first.
			next := l.moved(id, "refunds", `{"data":{"amount":1}}`)
			require.Nil(t, next["next_at"])

			body := `{"data":{"outcome":"` + outcome + `",` + tt.body + `"note":"looked at the dashboard"}}`
			w := l.resolve(tid, body, withKey(outcome))
			require.Equal(t, http.StatusOK, w.Code, w.Body.String())
			tr := data(t, w)
			for name, want := range tt.want {
				require.Equal(t, want, tr[name], name)
			}
			require.Equal(t, "person", tr["code"])
			require.Equal(t, "looked at the dashboard", tr["detail"])
			require.Contains(t, tr["text"], tt.text)
			require.Equal(t, tr, l.transaction(tid))
			require.EqualValues(t, 0, l.read(id)["refunded"], "a person's word moves no money")
			if outcome == "not_done" {
				require.NotEqual(t, was["idempotency_key"], tr["idempotency_key"], "another key")
				require.Equal(t, store.TransactionKey(uuid.MustParse(tid.(string)), 2), tr["idempotency_key"])
				require.NotNil(t, tr["next_at"])
				require.Nil(t, l.transaction(next["id"])["next_at"], "it still has the turn")
				l.answer(tid, done("re_2", hook("evt_2", "pi_ord_not_done", "", refundOf("re_2", 1000))))
				require.EqualValues(t, 1000, l.read(id)["refunded"])
			} else {
				require.Equal(t, was["idempotency_key"], tr["idempotency_key"])
				require.NotNil(t, tr["settled_at"])
			}
			require.NotNil(t, l.transaction(next["id"])["next_at"], "the next one has its turn")

			// The key gets the answer again; without it there is nothing more to say.
			again := l.resolve(tid, body, withKey(outcome))
			require.Equal(t, "true", again.Header().Get("Idempotent-Replayed"))
			require.Equal(t, w.Body.String(), again.Body.String())
			require.EqualValues(t, "not_uncertain", problemOf(t, l.resolve(tid, body)).Code)
		})
	}
}

func TestResolveIsRefused(t *testing.T) {
	t.Parallel()
	l := goLive(t, callable)
	id := l.paidOrder("ord_1")
	pending := l.moved(id, "refunds", `{"data":{"amount":1}}`)["id"].(string)
	two := l.paidOrder("ord_2")
	settled := l.moved(two, "refunds", `{"data":{"amount":1}}`)["id"].(string)
	l.answer(settled, done("re_1", hook("evt_2", "pi_ord_2", "", refundOf("re_1", 1))))
	three := l.paidOrder("ord_3")
	looking := l.moved(three, "refunds", `{"data":{"amount":1}}`)["id"].(string)
	l.answer(looking, store.MoveAnswer{Status: store.TransactionUncertain})
	claim, err := l.store.ClaimMove(t.Context(), "a", uuid.MustParse(looking), time.Minute)
	require.NoError(t, err)
	require.NotNil(t, claim, "it is being looked up")
	four := l.paidOrder("ord_4")
	open := l.uncertain(four, "rf_4").(string)

	of := func(name, id, body string, status int, code string, at ...string) refusal {
		return refusal{name: name, path: "/transactions/" + id + "/resolve", key: operator, body: body, status: status, code: code, at: at}
	}
	good := `{"data":{"outcome":"failed","note":"seen"}}`
	bad := func(name, body string, at ...string) refusal { return of(name, open, body, 422, "invalid_body", at...) }
	writes := of("Write", open, good, 403, "forbidden")
	writes.key = writeOnly
	l.refuses(http.MethodPost,
		of("Pending", pending, good, 409, "not_uncertain"),
		of("Settled", settled, good, 409, "not_uncertain"),
		of("BeingLookedUp", looking, good, 409, "not_uncertain"),
		of("Unknown", uuid.NewString(), good, 404, "transaction_not_found"),
		of("NoID", "tr_1", good, 404, "transaction_not_found"),
		writes,
		bad("NoNote", `{"data":{"outcome":"failed"}}`, "/data/note required"),
		bad("EmptyNote", `{"data":{"outcome":"failed","note":""}}`, "/data/note too_short"),
		bad("NullNote", `{"data":{"outcome":"failed","note":null}}`, "/data/note required"),
		bad("NoOutcome", `{"data":{"note":"seen"}}`, "/data/outcome required"),
		bad("Pending2", `{"data":{"outcome":"pending","note":"seen"}}`, "/data/outcome unknown_value"),
		bad("MadeByNothing", `{"data":{"outcome":"failed","gateway_ref":"re_1","note":"seen"}}`, "/data/gateway_ref unexpected"),
		bad("MadeByNothing2", `{"data":{"outcome":"not_done","gateway_ref":"re_1","note":"seen"}}`, "/data/gateway_ref unexpected"),
	)
	require.Contains(t, problemOf(t, l.resolve(pending, good)).Detail, "It is pending")
	require.Contains(t, problemOf(t, l.resolve(settled, good)).Detail, "It has succeeded already.")
	require.Contains(t, problemOf(t, l.resolve(looking, good)).Detail, "being looked up at this moment")
}

// Of many persons who say different things one is heard.
func TestResolveAtOnce(t *testing.T) {
	t.Parallel()
	l := goLive(t, callable)
	tid := l.uncertain(l.paidOrder("ord_1"), "rf_1")
	answers := make([]*httptest.ResponseRecorder, 24)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			answers[i] = l.resolve(tid, `{"data":{"outcome":"`+[]string{"succeeded", "failed", "not_done"}[i%3]+`","note":"seen"}}`)
		})
	}
	wg.Wait()
	heard := 0
	for _, w := range answers {
		if w.Code == http.StatusOK {
			heard++
			require.Equal(t, l.transaction(tid), data(t, w))
		} else {
			require.EqualValues(t, "not_uncertain", problemOf(t, w).Code)
		}
	}
	require.Equal(t, 1, heard)
	require.LessOrEqual(t, l.transaction(tid)["epoch"], 2.0, "no two new keys")
}
