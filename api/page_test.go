package api_test

import (
	"encoding/base64"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// A cursor that somebody has made up is refused, or is a place in the caller's own list: it is never a failure of ours.
func TestCursorsMadeUp(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	const id = "0199a1b2-0000-7000-8000-000000000001"
	for _, tt := range []struct {
		list, doc string
		status    int
	}{
		{"effects", `{"v":1,"l":"effects","o":"` + id + `","n":2}`, http.StatusOK},
		{"effects", `{"v":1,"l":"effects","o":"` + id + `","n":-1}`, http.StatusOK},
		{"effects", `{"v":1,"l":"effects","o":"` + id + `","n":2147483647}`, http.StatusOK},
		{"effects", `{"v":1,"l":"effects","o":"` + id + `","n":2147483648}`, http.StatusBadRequest},
		{"effects", `{"v":1,"l":"effects","o":"` + id + `","n":9007199254740993}`, http.StatusBadRequest},
		{"effects", `{"v":1,"l":"orders","o":"` + id + `"}`, http.StatusBadRequest},
		{"effects", `{"v":2,"l":"effects","o":"` + id + `","n":2}`, http.StatusBadRequest},
		{"orders", `{"v":1,"l":"orders","o":"` + id + `"}`, http.StatusOK},
		{"orders", `{"v":1,"l":"orders","o":"` + id + `" }`, http.StatusBadRequest},
		{"orders", `{"v":1,"l":"orders","o":"` + id + `","a":"b"}`, http.StatusBadRequest},
		{"events", `{"v":1,"l":"events","t":"2026-01-01T00:00:00Z","s":"stripe","e":"evt_1"}`, http.StatusOK},
		{"events", `{"v":1,"l":"events","t":"0000-01-01T00:00:00Z","s":"stripe","e":"evt_1"}`, http.StatusOK},
		{"events", `{"v":1,"l":"events","t":"9999-12-31T23:59:59.999999999Z","s":"stripe","e":"evt_1"}`, http.StatusOK},
		{"events", `{"v":1,"l":"events","t":"2026-01-01T00:00:00Z","s":"stripe","e":"\u0000"}`, http.StatusBadRequest},
		{"events", `{"v":1,"l":"events","s":"stripe"}`, http.StatusOK},
		{"events", `null`, http.StatusBadRequest},
	} {
		w := l.do(http.MethodGet, "/v1/"+tt.list+"?cursor="+base64.RawURLEncoding.EncodeToString([]byte(tt.doc)), keyA, "")
		require.Equal(t, tt.status, w.Code, "%s: %s", tt.doc, w.Body.String())
		if tt.status == http.StatusBadRequest {
			require.EqualValues(t, "invalid_cursor", problemOf(t, w).Code)
		}
	}
}
