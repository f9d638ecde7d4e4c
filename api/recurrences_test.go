package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
)

// berlin is an account's time zone.
func berlin(o *api.Options) { o.TimeZone = func(string) string { return "Europe/Berlin" } }

// yearly is a request for a recurrence that began on the first of January two years ago: three of its periods have begun,
// in whatever zone and on whatever day it is.
func yearly(ref string, more string) (body string, names []string) {
	first := time.Now().UTC().Year() - 2
	for y := first; y <= first+2; y++ {
		names = append(names, fmt.Sprintf("%s:%d", ref, y))
	}
	return fmt.Sprintf(`{"data": {"amount": 5000, "currency": "EUR", "interval": "year", "starts_on": "%d-01-02", "items": [{"sku": "A", "price": 1.50}],
		"metadata": {"external_ref": %q, "plan": "gold"}%s}}`, first, ref, more), names
}

func (l *live) recur(body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	return l.do(http.MethodPost, "/v1/recurrences", keyA, body, change...)
}

// begins reports whether a test may have seen a year begin, and its counts therefore mean nothing.
func begins() bool { now := time.Now().UTC(); return now.YearDay() <= 3 || now.YearDay() >= 364 }

func TestCreateRecurrence(t *testing.T) {
	t.Parallel()
	l := goLive(t, berlin)
	body, names := yearly("club_1", "")

	w := l.recur(body)
	require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
	made := data(t, w)
	require.Equal(t, "/v1/recurrences/"+made["id"].(string), w.Header().Get("Location"))
	require.Equal(t, "active", made["state"])
	require.Equal(t, "Europe/Berlin", made["time_zone"])
	require.EqualValues(t, 1, made["every"])
	require.Nil(t, made["ended_at"])
	require.Equal(t, []any{map[string]any{"sku": "A", "price": 1.5}}, made["items"])
	if !begins() {
		require.EqualValues(t, 3, made["created"])
		require.Equal(t, 3, l.count("orders WHERE registered AND external_ref = ANY($1)", names))
		require.Equal(t, fmt.Sprint(time.Now().UTC().Year()+1), made["next_period"])
	}
	w = l.do(http.MethodGet, "/v1/orders?external_ref="+names[0], keyA, "")
	require.Equal(t, http.StatusOK, w.Code)
	var page struct{ Data []map[string]any }
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &page))
	require.Len(t, page.Data, 1)
	require.Equal(t, map[string]any{
		"external_ref": names[0], "plan": "gold", "recurrence_id": made["id"], "period": strings.TrimPrefix(names[0], "club_1:"),
	}, page.Data[0]["metadata"])

	w = l.do(http.MethodGet, "/v1/recurrences/"+made["id"].(string), keyA, "")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, made, data(t, w))

	// POST /v1/orders of a period that was made is a repeat.
	require.Equal(t, http.StatusOK, l.post(keyA, strings.Replace(ordinary, "ord_1", names[1], 1)).Code)
}

func TestCreateRecurrenceAgain(t *testing.T) {
	t.Parallel()
	l := goLive(t, berlin)
	body, _ := yearly("club_1", "")
	first := l.recur(body, withKey("k1"))
	require.Equal(t, http.StatusCreated, first.Code, first.Body.String())
	before := l.written()

	replayed := l.recur(body, withKey("k1"))
	require.Equal(t, http.StatusCreated, replayed.Code)
	require.Equal(t, "true", replayed.Header().Get("Idempotent-Replayed"))
	require.Equal(t, first.Body.String(), replayed.Body.String())
	for _, again := range []*httptest.ResponseRecorder{l.recur(body), l.recur(body, withKey("k2"))} {
		require.Equal(t, http.StatusOK, again.Code)
		require.Equal(t, data(t, first), data(t, again))
	}
	require.NotContains(t, l.log.String(), "external_ref_body_differs", "the same is asked for, in other words or not")
	require.Equal(t, http.StatusOK, l.recur(strings.Replace(body, "5000", "7000", 1)).Code)
	require.Contains(t, l.log.String(), "external_ref_body_differs")
	require.Equal(t, before, l.written(), "a repeat changes nothing")

	other := l.do(http.MethodPost, "/v1/recurrences", keyB, body)
	require.Equal(t, http.StatusCreated, other.Code, "another account's names are its own")
	require.Equal(t, http.StatusNotFound, l.do(http.MethodGet, "/v1/recurrences/"+data(t, other)["id"].(string), keyA, "").Code)
}

func TestCreateRecurrenceAtOnce(t *testing.T) {
	t.Parallel()
	l := goLive(t, berlin)
	body, _ := yearly("club_1", "")
	var wg sync.WaitGroup
	codes := make([]int, 16)
	for i := range codes {
		wg.Go(func() {
			if i%2 == 0 {
				codes[i] = l.recur(body, withKey(fmt.Sprintf("k%d", i))).Code
			} else {
				codes[i] = l.recur(body).Code
			}
		})
	}
	wg.Wait()
	made := 0
	for _, code := range codes {
		if code == http.StatusCreated {
			made++
		} else {
			require.Equal(t, http.StatusOK, code)
		}
	}
	require.Equal(t, 1, made)
	require.Equal(t, 1, l.count("recurrences"))
	require.Equal(t, l.count("orders"), l.count("processed_events"))
}

func TestCreateRecurrenceIsRefused(t *testing.T) {
	t.Parallel()
	l := goLive(t, berlin)
	with := func(from, to string) string {
		body, _ := yearly("club_1", "")
		require.Contains(t, body, from)
		return strings.Replace(body, from, to, 1)
	}
	year := fmt.Sprint(time.Now().UTC().Year() - 2)
	l.refuses(http.MethodPost,
		refusal{name: "NoName", path: "/recurrences", body: with(`"external_ref": "club_1", `, ``), status: 422, code: "invalid_body", at: []string{"/data/metadata/external_ref required"}},
		refusal{name: "NoMetadata", path: "/recurrences", body: with(`"metadata": {"external_ref": "club_1", "plan": "gold"}`, `"metadata": null`), status: 422, code: "invalid_body", at: []string{"/data/metadata/external_ref required"}},
		refusal{name: "TooLong", path: "/recurrences", body: with("club_1", strings.Repeat("x", 245)), status: 422, code: "invalid_body", at: []string{"/data/metadata/external_ref too_long"}},
		refusal{name: "Reserved", path: "/recurrences", body: with(`"plan"`, `"period": 1, "recurrence_id": "x", "plan"`), status: 422, code: "invalid_body", at: []string{"/data/metadata/period reserved", "/data/metadata/recurrence_id reserved"}},
		refusal{name: "Interval", path: "/recurrences", body: with(`"year"`, `"fortnight"`), status: 422, code: "invalid_body", at: []string{"/data/interval unknown_value"}},
		refusal{name: "Every", path: "/recurrences", body: with(`"interval"`, `"every": 0, "interval"`), status: 422, code: "invalid_body", at: []string{"/data/every too_small"}},
		refusal{name: "NoDay", path: "/recurrences", body: with(year+"-01-02", year+"-02-30"), status: 422, code: "invalid_body", at: []string{"/data/starts_on invalid_date"}},
		refusal{name: "BeforeAllTime", path: "/recurrences", body: with(year+"-01-02", "1969-12-31"), status: 422, code: "invalid_body", at: []string{"/data/starts_on invalid_date"}},
		refusal{name: "NoStart", path: "/recurrences", body: with(`"starts_on": "`+year+`-01-02", `, ``), status: 422, code: "invalid_body", at: []string{"/data/starts_on required"}},
		refusal{name: "EndsBeforeItStarts", path: "/recurrences", body: with(`"interval"`, `"ends_on": "`+year+`-01-01", "interval"`), status: 422, code: "invalid_body", at: []string{"/data/ends_on before_start"}},
		refusal{name: "EndsAfterNone", path: "/recurrences", body: with(`"interval"`, `"ends_after": 0, "interval"`), status: 422, code: "invalid_body", at: []string{"/data/ends_after too_small"}},
		refusal{name: "TooLongAgo", path: "/recurrences", body: with(`"year", "starts_on": "`+year, `"day", "starts_on": "1999`), status: 422, code: "invalid_body", at: []string{"/data/starts_on too_long_ago"}},
		refusal{name: "ReadOnly", path: "/recurrences", key: readOnly, body: with("club_1", "club_1"), status: 403, code: "forbidden"},
	)
	for ref, more := range map[string]string{"few": `, "ends_after": 1000`, "short": `, "ends_on": "2001-01-01"`, "null": `, "ends_on": null, "ends_after": null`} {
		body, _ := yearly(ref, more)
		if more != `, "ends_on": null, "ends_after": null` {
			body = strings.Replace(body, `"year", "starts_on": "`+year, `"day", "starts_on": "1999`, 1)
		}
		w := l.recur(body)
		require.Equal(t, http.StatusCreated, w.Code, "%s: %s", ref, w.Body.String())
	}
}

func TestEndRecurrence(t *testing.T) {
	t.Parallel()
	l := goLive(t, berlin)
	body, _ := yearly("club_1", "")
	made := data(t, l.recur(body))
	path := "/v1/recurrences/" + made["id"].(string) + "/end"
	year := time.Now().UTC().Year()
	end := func(on string, change ...func(*http.Request)) *httptest.ResponseRecorder {
		return l.do(http.MethodPost, path, keyA, `{"data": {`+on+`}}`, change...)
	}
	w := end(fmt.Sprintf(`"ends_on": "%d-06-30"`, year+5))
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	require.Equal(t, fmt.Sprintf("%d-06-30", year+5), data(t, w)["ends_on"])
	require.Equal(t, "active", data(t, w)["state"])
	w = end(fmt.Sprintf(`"ends_on": "%d-07-01"`, year+5))
	require.Equal(t, http.StatusConflict, w.Code)
	require.EqualValues(t, "ends_earlier", problemOf(t, w).Code)

	ended := end("", withKey("k1"))
	require.Equal(t, http.StatusOK, ended.Code)
	require.Equal(t, "ended", data(t, ended)["state"])
	require.Nil(t, data(t, ended)["next_period"])
	before := l.written()
	for _, again := range []*httptest.ResponseRecorder{end("", withKey("k1")), end(""), end(`"ends_on": null`)} {
		require.Equal(t, http.StatusOK, again.Code)
		require.Equal(t, data(t, ended), data(t, again))
	}
	require.Equal(t, before, l.written())

	l.refuses(http.MethodPost,
		refusal{name: "Unknown", path: "/recurrences/" + uuid.NewString() + "/end", body: `{"data": {}}`, status: 404, code: "recurrence_not_found"},
		refusal{name: "NoID", path: "/recurrences/club_1/end", body: `{"data": {}}`, status: 404, code: "recurrence_not_found"},
		refusal{name: "AnotherAccounts", path: strings.TrimPrefix(path, "/v1"), key: keyB, body: `{"data": {}}`, status: 404, code: "recurrence_not_found"},
		refusal{name: "ReadOnly", path: strings.TrimPrefix(path, "/v1"), key: readOnly, body: `{"data": {}}`, status: 403, code: "forbidden"},
		refusal{name: "NoDay", path: strings.TrimPrefix(path, "/v1"), body: `{"data": {"ends_on": "soon"}}`, status: 422, code: "invalid_body", at: []string{"/data/ends_on invalid_date"}},
		refusal{name: "Later", path: strings.TrimPrefix(path, "/v1"), body: fmt.Sprintf(`{"data": {"ends_on": "%d-01-01"}}`, year+9), status: 409, code: "ends_earlier"},
	)
}

func TestListRecurrences(t *testing.T) {
	t.Parallel()
	l := goLive(t, berlin)
	var ids []any
	for i := range 5 {
		body, _ := yearly(fmt.Sprintf("club_%d", i), "")
		ids = append(ids, data(t, l.recur(body))["id"])
	}
	require.Equal(t, http.StatusOK, l.do(http.MethodPost, "/v1/recurrences/"+ids[1].(string)+"/end", keyA, `{"data": {}}`).Code)
	list := func(query string) (found []any, next string) {
		w := l.do(http.MethodGet, "/v1/recurrences"+query, keyA, "")
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		var page struct {
			Data []map[string]any
			Next *string
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &page))
		for _, r := range page.Data {
			found = append(found, r["id"])
		}
		if page.Next != nil {
			next = *page.Next
		}
		return found, next
	}
	page, next := list("?limit=3")
	require.Equal(t, []any{ids[4], ids[3], ids[2]}, page)
	page, next = list("?limit=3&cursor=" + next)
	require.Equal(t, []any{ids[1], ids[0]}, page)
	require.Empty(t, next)
	page, _ = list("?state=ended")
	require.Equal(t, []any{ids[1]}, page)
	page, _ = list("?state=active&external_ref=club_2")
	require.Equal(t, []any{ids[2]}, page)
	page, _ = list("?external_ref=club_9")
	require.Empty(t, page)
	require.Equal(t, http.StatusBadRequest, l.do(http.MethodGet, "/v1/recurrences?state=over", keyA, "").Code)
	require.Equal(t, http.StatusForbidden, l.do(http.MethodGet, "/v1/recurrences", operator, "").Code)
	_, orders := list("?limit=1")
	require.Equal(t, http.StatusBadRequest, l.do(http.MethodGet, "/v1/orders?cursor="+orders, keyA, "").Code, "a cursor is of one list")
}
