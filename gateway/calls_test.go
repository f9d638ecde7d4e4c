package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

// movementID is the id of the movements of these tests; the gateways keep it with what they make.
const movementID = "0199f1c2-7a54-7c31-9b1e-3f2a5d0c8e11"

// calling is what TestCalls needs to know of a gateway that is called.
type calling struct {
	// source has all that calls need, with credentials that stand nowhere else. lacking are sources that cannot call, by a word of
	// the sentence that says why.
	source  gateway.Source
	lacking map[string]gateway.Source

	// made are movements of which calls can be made, by name: at least one of every kind that the gateway knows. Where it keeps
	// no id of ours, unnamed says why.
	made    map[string]order.Movement
	unnamed map[string]string

	// impossible are movements of which none can be made, by a word of the sentence that says why.
	impossible map[string]order.Movement

	// done is the gateway's answer to a movement that it does. found is what it answers when it is asked about one that it has
	// done, and absent when it has not; nil: it cannot be asked.
	done          func(testing.TB, order.Movement) string
	found, absent func(testing.TB, order.Movement) string

	// unproven are the names of movements that can be looked up, and not be proven to be done, with the reason: found is then what
	// is answered when it is likely that they are.
	unproven map[string]string

	// silent are the names of movements whose answer says nothing that the ledger can hold, with the reason; and anonymous those
	// whose answer does not name the payment.
	silent, anonymous map[string]string
}

var callers = map[string]calling{}

// calls registers a gateway for TestCalls and FuzzCalls; each does so in its own test file.
func calls(name string, c calling) bool {
	callers[name] = c
	return true
}

// TestCalls is what every gateway that is called promises.
func TestCalls(t *testing.T) {
	t.Parallel()
	for _, g := range gateway.All() {
		if g.Calls == nil {
			require.NotContains(t, callers, g.Name)
			continue
		}
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			c, ok := callers[g.Name]
			require.True(t, ok, "gateway %s does not register: write var _ = calls(%[1]q, calling{…}) into a test file of its own, as stripe_calls_test.go does", g.Name)
			t.Run("Declares", func(t *testing.T) { t.Parallel(); callsDeclare(t, g, c) })
			t.Run("SameMovementSameBytes", func(t *testing.T) { t.Parallel(); callsRepeat(t, g, c) })
			t.Run("NoCredentialsBeforeAuthorize", func(t *testing.T) { t.Parallel(); callsKeepSecrets(t, g, c) })
			t.Run("ImpossibleIsACallError", func(t *testing.T) { t.Parallel(); callsRefuse(t, g, c) })
			t.Run("DoneIsRead", func(t *testing.T) { t.Parallel(); callsAreDone(t, g, c) })
			t.Run("StatusByItself", func(t *testing.T) { t.Parallel(); callsByStatus(t, g, c) })
			t.Run("GarbageDecidesNothing", func(t *testing.T) { t.Parallel(); callsSurvive(t, g, c) })
			t.Run("AnothersAnswerIsNotOurs", func(t *testing.T) { t.Parallel(); callsKnowTheirOwn(t, g, c) })
		})
	}
}

func callsDeclare(t *testing.T, g *gateway.Gateway, c calling) {
	k := g.Calls
	require.Equal(t, http.CanonicalHeaderKey(k.KeyHeader), k.KeyHeader)
	require.NotEmpty(t, k.KeyHeader)
	require.NotEmpty(t, g.Manual.Calls)
	require.GreaterOrEqual(t, k.KeyLife, 24*time.Hour)
	require.Equal(t, k.Look == nil, k.Found == nil)
	require.Equal(t, k.Look == nil, c.found == nil)
	require.Equal(t, k.Look == nil, c.absent == nil)
	for _, base := range []string{k.Live, k.Test} {
		require.False(t, strings.HasSuffix(base, "/"), base)
		require.True(t, base == "" || strings.HasPrefix(base, "https://"), base)
	}
	require.NoError(t, g.Check(c.source))
	require.NoError(t, k.Ready(c.source))
	require.NotEmpty(t, c.lacking)
	for word, s := range c.lacking {
		require.ErrorContains(t, k.Ready(s), word)
	}
	for _, mode := range []string{gateway.Live, gateway.Test} {
		s := c.source
		s.Mode = mode
		require.True(t, k.BaseURL(s) != "" || k.Ready(s) != nil, "ready, and nobody to call in mode %s", mode)
		s.APIURL = "https://api.example/somewhere/"
		require.Equal(t, "https://api.example/somewhere", k.BaseURL(s))
	}
	kinds := map[order.MovementKind]bool{}
	for _, m := range c.made {
		kinds[m.Kind] = true
	}
	require.NotEmpty(t, kinds)
	require.Contains(t, kinds, order.MovementRefund)
}

// everyCall runs a test of the call of each movement, and of the call that looks for it.
func everyCall(t *testing.T, g *gateway.Gateway, c calling, test func(t *testing.T, m order.Movement, make func(gateway.Source, order.Movement) (gateway.Call, error))) {
	t.Helper()
	for name, m := range c.made {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, m, g.Calls.Make)
			if g.Calls.Look != nil {
				test(t, m, g.Calls.Look)
			}
		})
	}
}

// reread is the movement as it is after it was stored.
func reread(t testing.TB, m order.Movement) order.Movement {
	t.Helper()
	text, err := json.Marshal(m)
	require.NoError(t, err)
	var again order.Movement
	require.NoError(t, json.Unmarshal(text, &again))
	return again
}

// callsRepeat: the bytes are made of the movement, whatever became of the credentials meanwhile.
func callsRepeat(t *testing.T, g *gateway.Gateway, c calling) {
	everyCall(t, g, c, func(t *testing.T, m order.Movement, makeCall func(gateway.Source, order.Movement) (gateway.Call, error)) {
		want, err := makeCall(c.source, m)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(want.Path, "/"))
		rolled := withSecrets(c.source, "rolled-")
		for range 8 {
			got, err := makeCall(rolled, reread(t, m))
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	})
	for name, m := range c.made {
		call, err := g.Calls.Make(c.source, m)
		require.NoError(t, err)
		require.Contains(t, []string{http.MethodPost, http.MethodPut, http.MethodPatch}, call.Method)
		named := strings.Contains(call.Path+fmt.Sprint(call.Header)+string(call.Body), m.ID)
		require.Equal(t, c.unnamed[name] == "", named, "%s: the gateway is to keep our id (or unnamed says why not)", name)

		other := reread(t, m)
		other.ID = strings.Replace(m.ID, "0199", "0200", 1)
		again, err := g.Calls.Make(c.source, other)
		require.NoError(t, err)
		require.Equal(t, named, !slices.Equal(call.Body, again.Body) || call.Path != again.Path || fmt.Sprint(call.Header) != fmt.Sprint(again.Header))
		if g.Calls.Look != nil {
			look, err := g.Calls.Look(c.source, m)
			require.NoError(t, err)
			require.Contains(t, []string{"", http.MethodGet}, look.Method, "looking changes something")
			require.Empty(t, look.Body)
		}
	}
}

// secretsOf are the credentials of a source.
func secretsOf(s gateway.Source) []string {
	all := slices.Concat(s.Secrets, s.HMACKeys, s.SigningKeys, []string{s.AccessToken, s.ClientID, s.ClientSecret, s.Basic, s.Authorization})
	return slices.DeleteFunc(all, func(text string) bool { return text == "" })
}

// withSecrets is the source with other credentials.
func withSecrets(s gateway.Source, prefix string) gateway.Source {
	for _, text := range []*string{&s.AccessToken, &s.ClientID, &s.ClientSecret, &s.Basic, &s.Authorization} {
		if *text != "" {
			*text = prefix + *text
		}
	}
	s.Secrets, s.HMACKeys, s.SigningKeys = nil, nil, nil
	return s
}

// wire is all that a call says.
func wire(c gateway.Call) string {
	text := c.Method + " " + c.Path + fmt.Sprint(c.Header) + string(c.Body)
	if c.Grant != nil {
		text += wire(*c.Grant)
	}
	return text
}

// callsKeepSecrets: neither credentials nor key are in what is stored, and Authorize adds the ones, leaves out the other, and
// changes nothing that was there.
func callsKeepSecrets(t *testing.T, g *gateway.Gateway, c calling) {
	require.NotEmpty(t, secretsOf(c.source))
	everyCall(t, g, c, func(t *testing.T, m order.Movement, makeCall func(gateway.Source, order.Movement) (gateway.Call, error)) {
		call, err := makeCall(c.source, m)
		require.NoError(t, err)
		require.Nil(t, call.Grant)
		for name := range call.Header {
			require.Equal(t, http.CanonicalHeaderKey(name), name)
			require.NotContains(t, []string{"Authorization", "X-Api-Key", "Cookie", g.Calls.KeyHeader}, name)
		}
		for _, secret := range secretsOf(c.source) {
			require.NotContains(t, wire(call), secret)
		}

		before := wire(call)
		sent := g.Calls.Authorize(c.source, call)
		require.Equal(t, before, wire(call), "the stored call was changed")
		require.Equal(t, []any{call.Method, call.Path, call.Body}, []any{sent.Method, sent.Path, sent.Body})
		for name, values := range call.Header {
			require.Equal(t, values, sent.Header[name])
		}
		require.Empty(t, sent.Header.Get(g.Calls.KeyHeader))
		require.NotEqual(t, before, wire(sent), "no credentials were added")
		rolled := g.Calls.Authorize(withSecrets(c.source, "rolled-"), call)
		require.NotEqual(t, wire(sent), wire(rolled), "credentials of yesterday")
	})
}

func callsRefuse(t *testing.T, g *gateway.Gateway, c calling) {
	require.NotEmpty(t, c.impossible)
	one := order.Movement{ID: movementID, Kind: order.MovementRefund, Amount: order.Amount{Minor: 1, Currency: "EUR"}}
	impossible := map[string]order.Movement{"no ids": one}
	for word, m := range c.impossible {
		impossible[word] = m
	}
	for name, m := range c.made {
		m.Amount.Currency = "ZZZ"
		impossible[name+": currency"] = m
		m.Kind = "transfer"
		impossible[name+": kind"] = m
	}
	for word, m := range impossible {
		_, err := g.Calls.Make(c.source, m)
		if strings.HasSuffix(word, ": currency") && m.Kind == order.MovementVoid && err == nil {
			continue // what is voided is voided whole, whatever it was
		}
		var bad *gateway.CallError
		require.ErrorAs(t, err, &bad, word)
		require.NotEmpty(t, bad.Detail)
		if _, ours := c.impossible[word]; ours {
			require.ErrorContains(t, err, word)
		}
	}
}

func callsAreDone(t *testing.T, g *gateway.Gateway, c calling) {
	for name, m := range c.made {
		v := judged(t, c.source, m, answered(200, c.done(t, m)), false)
		require.Equal(t, gateway.Done, v.Ruling, "%s: %s", name, v.Detail)
		require.Equal(t, c.silent[name] == "", len(v.Events) > 0, "%s: what it says of the payment (or silent says why nothing)", name)
		require.Equal(t, v, judged(t, c.source, reread(t, m), answered(201, c.done(t, m)), false), "%s: created, or there already (T107)", name)
		require.Equal(t, v, judged(t, c.source, m, answered(200, c.done(t, m), "Idempotent-Replayed", "true"), false), "%s: told again", name)
		if g.Calls.Look == nil {
			continue
		}
		if found := judged(t, c.source, m, answered(200, c.found(t, m)), true); c.unproven[name] != "" {
			require.Equal(t, gateway.Unsure, found.Ruling, "%s: %s", name, found.Detail)
		} else {
			require.Equal(t, gateway.Done, found.Ruling, "%s: %s", name, found.Detail)
			require.Equal(t, v.Ref, found.Ref, "%s: what is found has another name", name)
			require.NotEmpty(t, found.Events, name)
		}
		missing := judged(t, c.source, m, answered(200, c.absent(t, m)), true)
		require.Equal(t, gateway.Absent, missing.Ruling, "%s: %s", name, missing.Detail)
	}
}

// callsByStatus: what a status says at every gateway, whatever came with it (T102, T109).
func callsByStatus(t *testing.T, g *gateway.Gateway, c calling) {
	want := map[int]gateway.Ruling{
		401: gateway.Denied, 403: gateway.Denied,
		408: gateway.Later, 423: gateway.Later, 425: gateway.Later, 429: gateway.Later,
		500: gateway.Later, 502: gateway.Later, 503: gateway.Later, 504: gateway.Later, 520: gateway.Later,
		301: gateway.Unsure, 302: gateway.Unsure, 307: gateway.Unsure, 308: gateway.Unsure,
	}
	for name, m := range c.made {
		for status, ruling := range want {
			for _, body := range []string{"", "{}", "<html>busy</html>"} {
				for _, lookup := range []bool{false, g.Calls.Look != nil} {
					v := judged(t, c.source, m, answered(status, body), lookup)
					require.Equal(t, ruling, v.Ruling, "%s: %d %q", name, status, body)
					require.Empty(t, v.Events)
				}
			}
		}
		for text, after := range map[string]time.Duration{
			"7": 7 * time.Second, now.Add(time.Minute).Format(http.TimeFormat): time.Minute, "": 0, "soon": 0, "-1": 0, now.Add(-time.Minute).Format(http.TimeFormat): 0,
		} {
			require.Equal(t, after, judged(t, c.source, m, answered(429, "", "Retry-After", text), false).After, text)
			require.Equal(t, after, judged(t, c.source, m, answered(503, "", "Retry-After", text), false).After, text)
		}
	}
}

// callsSurvive: what is no answer of the gateway's never says that something was done, or that it was not.
func callsSurvive(t *testing.T, g *gateway.Gateway, c calling) {
	garbage := []string{
		"", " ", "null", "[]", "{}", `""`, "0", "true", "<html><body>ok</body></html>", "ok", "{", `{"error":{}}`, `{"status":"ok"}`, `{"data":[]}`,
		`{"id":"1","object":"x"}`, "\xff\xfe", strings.Repeat("[", 5000),
	}
	for name, m := range c.made {
		for _, lookup := range []bool{false, true} {
			if lookup && g.Calls.Look == nil {
				continue
			}
			whole := []string{c.done(t, m)}
			if lookup {
				whole = []string{c.found(t, m), c.absent(t, m)}
			}
			bodies := slices.Clone(garbage)
			if lookup { // an empty list is an answer, if nothing was made
				bodies = slices.DeleteFunc(bodies, func(body string) bool { return body == c.absent(t, m) })
			}
			for _, body := range whole {
				for n := 0; n < len(body)-1; n += 1 + len(body)/60 {
					bodies = append(bodies, body[:n])
				}
			}
			for _, body := range bodies {
				for _, status := range []int{200, 201, 202, 204, 400, 404, 409, 422} {
					if v := judged(t, c.source, m, answered(status, body), lookup); status/100 == 2 {
						require.Contains(t, []gateway.Ruling{gateway.Unsure, gateway.Later}, v.Ruling, "%s: %d %q", name, status, body)
					} else {
						require.NotContains(t, []gateway.Ruling{gateway.Done, gateway.Absent}, v.Ruling, "%s: %d %q", name, status, body)
					}
				}
			}
		}
	}
}

// callsKnowTheirOwn: an answer about another payment, or about another amount, is not taken for ours; and no word of an answer
// is told on.
func callsKnowTheirOwn(t *testing.T, g *gateway.Gateway, c calling) {
	for name, m := range c.made {
		body := c.done(t, m)
		if c.anonymous[name] == "" {
			other := body
			for _, id := range m.Payment {
				other = strings.ReplaceAll(other, id, id[:len(id)-1]+"~")
			}
			v := judged(t, c.source, m, answered(200, other), false)
			require.Equal(t, gateway.Unsure, v.Ruling, "%s: another's payment", name)
		}
		if m.Kind != order.MovementVoid {
			more := reread(t, m)
			more.Amount.Minor++
			v := judged(t, c.source, more, answered(200, body), false)
			require.NotEqual(t, gateway.Done, v.Ruling, "%s: another amount", name)
		}
		if g.Calls.Look != nil && m.Kind == order.MovementRefund {
			another := reread(t, m)
			another.ID = strings.Replace(m.ID, "0199", "0200", 1)
			v := judged(t, c.source, another, answered(200, c.found(t, m)), true)
			require.NotEqual(t, gateway.Done, v.Ruling, "%s: another's refund was found", name)
		}
		const word = "Zebra4711"
		for _, lookup := range []bool{false, g.Calls.Look != nil} {
			for _, status := range []int{200, 400, 402, 403, 404, 409, 422, 500} {
				for _, said := range []string{`{"error":{"message":"%s","type":"%[1]s x","code":"%[1]s x"},"message":"%[1]s","errorCode":"%[1]s x","name":"%[1]s x","details":[{"issue":"%[1]s x","description":"%[1]s"}]}`} {
					v := judged(t, c.source, m, answered(status, fmt.Sprintf(said, word)), lookup)
					require.NotContains(t, v.Detail+v.Code, word)
				}
			}
		}
	}
}
