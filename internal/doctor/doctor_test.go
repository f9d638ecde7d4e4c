package doctor_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/paidonce/paidonce/internal/doctor"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

var update = flag.Bool("update", false, "write the golden files again")

// found is a store that has found something, as of noon.
type found struct {
	what  store.Attention
	err   error
	asked *store.AttentionFilter
}

func (f found) Attention(_ context.Context, filter store.AttentionFilter) (store.Attention, error) {
	if f.asked != nil {
		*f.asked = filter
	}
	f.what.At = noon
	return f.what, f.err
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) *time.Time {
	at := noon.Add(-d)
	return &at
}

func looked(t *testing.T, a store.Attention, opts doctor.Options) doctor.Report {
	t.Helper()
	r, err := doctor.Look(t.Context(), found{what: a}, opts)
	require.NoError(t, err)
	return r
}

// Every flag that alarms has a place among the kinds and a word on what to do, and urgent kinds come before others.
func TestKinds(t *testing.T) {
	t.Parallel()
	var (
		kinds []doctor.Kind
		last  int
		ranks = []doctor.Urgency{doctor.Now, doctor.Today, doctor.Soon}
	)
	for _, k := range doctor.Kinds() {
		require.NotContains(t, kinds, k.Kind)
		kinds = append(kinds, k.Kind)
		require.NotEmpty(t, k.Title)
		rank := slices.Index(ranks, k.Urgency)
		require.GreaterOrEqual(t, rank, last, k.Kind)
		last = rank
	}
	require.Equal(t, doctor.TransactionUncertain, kinds[0], "money first")
	for _, name := range (store.AttentionFlags | order.FlagUnderpaid).Names() {
		require.Contains(t, kinds, doctor.Kind(name))
		r := looked(t, store.Attention{Flagged: []store.OrderNote{{Order: store.Order{Ref: "o"}, Flag: name, Since: noon}}}, doctor.Options{})
		require.Len(t, r.Piles, 1, name)
		require.Contains(t, r.Piles[0].Items[0].Do, "flag", name)
		require.NotContains(t, r.Piles[0].Items[0].Do, "%", name)
		require.Contains(t, r.Piles[0].Items[0].Resolve(), `{"flags": ["`+name+`"], "dismissed": true}`)
	}
}

// The manual has a row for every kind, with its urgency.
func TestManual(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../../docs/OPERATIONS.md")
	require.NoError(t, err)
	for _, k := range doctor.Kinds() {
		require.Regexp(t, "(?m)^\\|[^|]*`"+string(k.Kind)+"`[^|]*\\| "+string(k.Urgency)+" \\|", string(manual))
	}
}

func TestLook(t *testing.T) {
	t.Parallel()
	r := looked(t, store.Attention{}, doctor.Options{})
	require.Equal(t, doctor.Report{At: noon}, r)

	var asked store.AttentionFilter
	sources := []store.SourceKey{{Account: "a", ID: "s"}}
	_, err := doctor.Look(t.Context(), found{asked: &asked}, doctor.Options{Account: "a", Sources: sources})
	require.NoError(t, err)
	require.Equal(t, store.AttentionFilter{Account: "a", Ages: doctor.DefaultAges(), Limit: 1000, Sources: sources}, asked)

	boom := errors.New("boom")
	_, err = doctor.Look(t.Context(), found{err: boom}, doctor.Options{})
	require.ErrorIs(t, err, boom)
	_, err = doctor.Look(t.Context(), nil, doctor.Options{})
	require.Error(t, err)

	effect := func(ref string, d time.Duration) store.Effect {
		return store.Effect{Account: "a", Ref: ref, Effect: order.EffectFulfil, State: order.EffectDead, AskedAt: *ago(d)}
	}
	a := store.Attention{Dead: []store.Effect{effect("young", time.Hour), effect("old", 3*time.Hour)}}
	a.Partly.Pending = true
	r = looked(t, a, doctor.Options{Limit: 2})
	require.Len(t, r.Piles, 1)
	p := r.Piles[0]
	require.Equal(t, 2, p.Count)
	require.Equal(t, 2, r.Count())
	require.True(t, p.More, "as many as are looked for: there may be more")
	require.False(t, looked(t, a, doctor.Options{}).Piles[0].More)
	require.Equal(t, "old", p.Items[0].ExternalRef)
	require.Equal(t, *ago(3 * time.Hour), p.Oldest)
	require.EqualValues(t, 3*3600, p.Items[0].AgeSeconds)
	require.Equal(t, doctor.Now, p.Items[1].Urgency)
	require.Equal(t, []string{"There are more pending orders than are looked through: the newest were."}, r.Notes)
}

// A source is silent if it was not before: by ten times the pause that it makes as a rule.
func TestSilence(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		events        int
		every, silent time.Duration
		want          bool
	}{
		{"hourly, a day", 25, time.Hour, 24 * time.Hour, true},
		{"hourly, half a day", 25, time.Hour, 9 * time.Hour, false},
		{"daily, three days", 30, 24 * time.Hour, 72 * time.Hour, false},
		{"daily, two weeks", 30, 24 * time.Hour, 14 * 24 * time.Hour, true},
		{"little is known", 9, time.Minute, 72 * time.Hour, false},
		{"all at once", 30, 0, 24 * time.Hour, true},
		{"nothing is known", 0, 0, 72 * time.Hour, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			at := *ago(tt.silent)
			q := store.Silence{SourceKey: store.SourceKey{Account: "a", ID: "s"}, At: at, Events: tt.events, First: at.Add(-tt.every * time.Duration(max(0, tt.events-1)))}
			r := looked(t, store.Attention{Silent: []store.Silence{q}}, doctor.Options{})
			require.Equal(t, tt.want, r.Count() == 1)
		})
	}
}

// The sentences, and what resolves it, of each case that there is.
func TestSentences(t *testing.T) {
	t.Parallel()
	id := uuid.MustParse("0199a1b2-0000-7000-8000-000000000004")
	eur, total := "EUR", int64(5000)
	move := func(status store.TransactionStatus, code string, next *time.Time) store.Transaction {
		return store.Transaction{
			Account: "shop", ID: id, Order: id, OrderRef: "ord_1", Source: "stripe", Gateway: "stripe", Kind: order.MovementRefund, Key: "KEY",
			Amount: order.Amount{Minor: 2000, Currency: "EUR"}, Movement: order.Movement{Payment: []string{"pi_1"}}, Status: status, Code: code, Attempts: 2,
			SentAt: ago(2 * time.Hour), NextAt: next, CreatedAt: *ago(3 * time.Hour),
		}
	}
	effect := func(ref string, state order.EffectState, attempts int, next *time.Time, last string) store.Effect {
		return store.Effect{
			Account: "shop", Order: id, Ref: ref, Version: 2, Effect: order.EffectFulfil, State: state, Attempts: attempts, AskedAt: *ago(90 * time.Minute),
			NextAt: next, LastError: last,
		}
	}
	note := func(flag string, state order.State, payments ...string) store.OrderNote {
		return store.OrderNote{
			Order: store.Order{Account: "shop", ID: id, Ref: "ord_1", Total: &total, Currency: &eur, State: state, Authorized: 5000, Kept: 6000, Captured: 2000},
			Flag:  flag, Since: *ago(96 * time.Hour), Payments: payments,
		}
	}
	stub := note("", order.StatePending, "pi_1", "pi_2")
	stub.Total, stub.Currency, stub.Ref = nil, nil, `it's "7"`
	nameless := note("", order.StatePending)
	nameless.Total = nil
	event := func(outcome store.Outcome, reason string, payment ...string) store.StoredEvent {
		return store.StoredEvent{Account: "shop", Source: "main", ID: "evt/1 2", Type: "payment", Outcome: outcome, Reason: reason, Payment: payment, ReceivedAt: *ago(5 * time.Hour)}
	}
	fetch := store.Fetch{Account: "shop", Source: "mollie", Object: "payment/tr_1", Gateway: "mollie", State: store.FetchDead, Attempts: 7, AnnouncedAt: *ago(50 * time.Hour)}
	failed := fetch
	failed.LastError = "mollie answered 404."
	later := noon.Add(time.Hour)
	opts := doctor.Options{NoCallback: func(account string) bool { return account == "mute" }}
	mute := effect("ord_1", order.EffectOpen, 0, ago(time.Hour), "")
	mute.Account = "mute"
	a := store.Attention{
		Unknown: []store.Transaction{
			move(store.TransactionUncertain, "outcome_unknown", nil), move(store.TransactionUncertain, store.CodeKeyReused, &later),
		},
		Late: []store.Transaction{
			move(store.TransactionSent, store.CodeCredentialsDenied, &later), move(store.TransactionUncertain, store.CodeCannotCall, &later),
			move(store.TransactionSent, "unanswered", &later), move(store.TransactionPending, "", ago(time.Hour)),
		},
		Dead: []store.Effect{effect("-7", order.EffectDead, 11, nil, "422 Unprocessable Entity.")},
		Owed: []store.Effect{
			effect("it's 7", order.EffectOpen, 1, &later, "503"), effect(id.String(), order.EffectOpen, 3, ago(time.Hour), "503"),
			effect("ord_1", order.EffectOpen, 2, ago(time.Minute), ""), mute,
		},
		Flagged: []store.OrderNote{note("overpaid", order.StatePaid)},
		Stubs:   []store.OrderNote{stub, nameless}, Authorized: []store.OrderNote{note("", order.StateAuthorized)},
		Underpaid: []store.OrderNote{note("underpaid", order.StatePartiallyPaid)}, Pending: []store.OrderNote{note("", order.StatePending, "pi_1")},
		Quarantined: []store.StoredEvent{event(store.Quarantined, "unreadable: no amount")},
		Unplaced:    []store.StoredEvent{event(store.Waiting, store.ReasonNoReference, "pi_1"), event(store.Waiting, store.ReasonNoReference)},
		Fetches:     []store.Fetch{fetch, failed},
		Silent:      []store.Silence{{SourceKey: store.SourceKey{Account: "shop", ID: "main"}, At: *ago(72 * time.Hour), Events: 11, First: *ago(82 * time.Hour)}},
	}
	var b strings.Builder
	for _, p := range looked(t, a, opts).Piles {
		for _, i := range p.Items {
			fmt.Fprintf(&b, "%s %s %s %s\n  %s\n  %s\n  > %s\n", i.Urgency, i.Kind, i.Account, i.What, i.Text, i.Do, i.Resolve())
			require.NotEqual(t, i.Command == "", i.Request == nil)
			require.True(t, strings.HasSuffix(i.Text, ".") && !strings.HasSuffix(i.Text, ".."), i.Text)
		}
	}
	const file = "testdata/sentences.golden"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "write it again with -update")
}

// Whatever things are called: a shell reads the command as the words that were meant, and runs nothing else.
func TestCommandsAreQuoted(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	check := func(t require.TestingT, object string) {
		r, err := doctor.Look(context.Background(), found{what: store.Attention{Fetches: []store.Fetch{{Account: "shop", Source: "s", Object: object}}}}, doctor.Options{})
		require.NoError(t, err)
		line := r.Piles[0].Items[0].Command
		out, err := exec.Command(sh, "-c", `paidonce() { for a; do printf '%s\0' "$a"; done; }; `+line).Output()
		require.NoError(t, err, line)
		require.Equal(t, []string{"fetches", "retry", "--account", "shop", "--source", "s", "--object", object, "--yes", ""}, strings.Split(string(out), "\x00"))
	}
	for c := range 127 {
		if c > 0 {
			check(t, string(rune(c)))
			check(t, "a"+string(rune(c))+"b")
		}
	}
	check(t, "")
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.OneOf(rapid.StringMatching(`[ -~é]{1,12}`), rapid.StringMatching("['\"`$;&|<>()\\\\ *?~#!-]{1,6}")).Draw(t, "object"))
	})
}
