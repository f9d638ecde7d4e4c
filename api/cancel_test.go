package api_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestCancel(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	id, _ := l.order("ord_1")
	cancel := func(change ...func(*http.Request)) int {
		w := l.do(http.MethodPost, "/v1/orders/"+id+"/cancel", keyA, "", change...)
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		require.Equal(t, "canceled", data(t, w)["state"])
		require.Equal(t, `"2"`, w.Header().Get("ETag"))
		return w.Code
	}
	cancel(withKey("k1"))
	cancel()
	cancel(withKey("k1"))
	cancel(withKey("k2"))
	require.Equal(t, 1, l.count(`processed_events WHERE event_id LIKE 'cancel:%'`))

	// Money that comes after all changes nothing of that: saying it again is still no error.
	l.deliver(hook("evt_1", "pi_1", "ord_1", captured(5000)))
	w := l.do(http.MethodPost, "/v1/orders/"+id+"/cancel", keyA, "")
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, data(t, w)["flags"], "paid_after_cancel")
}

func TestCancelAtOnce(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	id, _ := l.order("ord_1")
	var wg sync.WaitGroup
	codes := make([]int, 16)
	for i := range codes {
		wg.Go(func() { codes[i] = l.do(http.MethodPost, "/v1/orders/"+id+"/cancel", keyA, "").Code })
	}
	wg.Wait()
	for _, code := range codes {
		require.Equal(t, http.StatusOK, code)
	}
	require.EqualValues(t, 2, l.read(id)["version"])
}

func TestCancelIsRefused(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	paid, _ := l.order("paid")
	l.deliver(hook("evt_1", "pi_1", "paid", captured(2000)))
	l.deliver(hook("evt_2", "pi_2", "stub", captured(2000)))
	var stub uuid.UUID
	require.NoError(t, l.pool.QueryRow(t.Context(), `SELECT id FROM orders WHERE external_ref = 'stub'`).Scan(&stub))

	l.refuses(http.MethodPost,
		refusal{name: "MoneyKept", path: "/orders/" + paid + "/cancel", status: 409, code: "money_kept"},
		refusal{name: "Unregistered", path: "/orders/" + stub.String() + "/cancel", status: 409, code: "unregistered"},
		refusal{name: "Unknown", path: "/orders/" + uuid.NewString() + "/cancel", status: 404, code: "order_not_found"},
		refusal{name: "NoID", path: "/orders/ord_1/cancel", status: 404, code: "order_not_found"},
		refusal{name: "AnotherAccounts", path: "/orders/" + paid + "/cancel", key: keyB, status: 404, code: "order_not_found"},
		refusal{name: "ReadOnly", path: "/orders/" + paid + "/cancel", key: readOnly, status: 403, code: "forbidden"},
	)

	// The money goes back: now it can be canceled.
	l.deliver(hook("evt_3", "pi_1", "paid", refunded(2000)))
	require.Equal(t, http.StatusOK, l.do(http.MethodPost, "/v1/orders/"+paid+"/cancel", keyA, "").Code)
}
