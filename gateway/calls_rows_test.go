package gateway_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

// answered is a reply to a call that began now.
func answered(status int, body string, header ...string) gateway.Reply {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return gateway.Reply{Status: status, Header: h, Body: []byte(body), Started: now}
}

// judged is what a reply means; its events are read again from the bytes that are stored, and must be the same.
func judged(t testing.TB, s gateway.Source, m order.Movement, r gateway.Reply, lookup bool) gateway.Verdict {
	t.Helper()
	g := of(t, s)
	v, err := g.Judge(s, m, r, lookup)
	if err != nil {
		var parse *gateway.ParseError
		require.ErrorAs(t, err, &parse)
		require.Empty(t, v)
		return gateway.Verdict{}
	}
	requireVerdict(t, s, m, v, lookup)

	kept, err := gateway.KeepReply(m, r, lookup)
	require.NoError(t, err)
	h := http.Header{}
	for name, text := range kept {
		h.Set(name, text)
	}
	again, err := g.Read(s, gateway.Delivery{Header: h, Body: r.Body})
	if len(v.Events) == 0 {
		var parse *gateway.ParseError
		require.ErrorAs(t, err, &parse, "nothing was said about the payment, and something is read again")
		return v
	}
	require.NoError(t, err)
	require.Equal(t, v.Events, again, "the stored bytes say something else")
	return v
}

// requireVerdict is the form of every verdict.
func requireVerdict(t testing.TB, s gateway.Source, m order.Movement, v gateway.Verdict, lookup bool) {
	t.Helper()
	rulings := []gateway.Ruling{gateway.Done, gateway.Declined, gateway.Later, gateway.Denied, gateway.Unsure, gateway.Reused}
	if lookup {
		rulings = append(rulings, gateway.Absent)
	}
	require.Contains(t, rulings, v.Ruling)
	require.LessOrEqual(t, len(v.Code), 100)
	require.Empty(t, strings.Trim(v.Code, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-"))
	require.LessOrEqual(t, len(v.Detail), 300)
	if v.Ruling != gateway.Done {
		require.Empty(t, v.Ref)
		require.NotEmpty(t, v.Detail, "%s without a word why", v.Ruling)
		require.True(t, lookup || len(v.Events) == 0, "%s tells what it did", v.Ruling)
	}
	if v.Ruling != gateway.Later {
		require.Zero(t, v.After)
	}
	require.GreaterOrEqual(t, v.After, time.Duration(0))
	requireForm(t, s, v.Events)
	ids := map[string]bool{}
	for _, ev := range v.Events {
		require.False(t, ids[ev.ID], "two events of one id")
		ids[ev.ID] = true
		require.Empty(t, ev.Ignored, "what says nothing is no event")
		require.Empty(t, ev.Broken)
		require.True(t, slices.ContainsFunc(ev.Payment, func(id string) bool { return slices.Contains(m.Payment, id) }), "an event about another payment")
	}
	if v.Ruling == gateway.Done && v.Ref != "" && len(v.Events) > 0 {
		require.True(t, slices.ContainsFunc(v.Events, func(ev order.Event) bool {
			return slices.ContainsFunc(ev.Facts, func(f order.Fact) bool { return f.Ref == v.Ref })
		}), "no fact is about what was made")
	}
}

// goldenCall is a call as golden files show it: what is stored, and what Authorize adds.
func goldenCall(stored, sent gateway.Call) any {
	added := http.Header{}
	for name, values := range sent.Header {
		if _, was := stored.Header[name]; !was {
			added[name] = values
		}
	}
	return struct {
		Method, Path string
		Header       http.Header
		Body         string
		Authorized   http.Header
	}{stored.Method, stored.Path, stored.Header, string(stored.Body), added}
}

// answerRow is an answer to a movement, and what it means.
type answerRow struct {
	name   string
	reply  gateway.Reply
	ruling gateway.Ruling
	code   string
}

// playAnswers judges each row, and finds no word of the answers in what is told of them: they all say Zebra.
func playAnswers(t *testing.T, s gateway.Source, m order.Movement, rows []answerRow) {
	t.Helper()
	playReplies(t, s, m, false, rows)
}

// playLookups is playAnswers for what is answered to the question what became of the movement.
func playLookups(t *testing.T, s gateway.Source, m order.Movement, rows []answerRow) {
	t.Helper()
	playReplies(t, s, m, true, rows)
}

func playReplies(t *testing.T, s gateway.Source, m order.Movement, lookup bool, rows []answerRow) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			v := judged(t, s, m, row.reply, lookup)
			require.Equal(t, row.ruling, v.Ruling, v.Detail)
			require.Equal(t, row.code, v.Code)
			require.NotContains(t, v.Detail, "Zebra")
		})
	}
}

// ledgerOf joins events in their order.
func ledgerOf(evs []order.Event) *order.Ledger {
	l := order.NewLedger()
	for _, ev := range evs {
		l.JoinEvent(ev)
	}
	return l
}

// orders returns every order of the events, each also with its first one once more at the end.
func orders(evs []order.Event) [][]order.Event {
	if len(evs) <= 1 {
		return [][]order.Event{evs}
	}
	var all [][]order.Event
	for i := range evs {
		rest := slices.Delete(slices.Clone(evs), i, i+1)
		for _, tail := range orders(rest) {
			one := append([]order.Event{evs[i]}, tail...)
			all = append(all, one, append(slices.Clone(one), evs[i]))
		}
	}
	return all
}
