package order_test

import (
	"encoding/json"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
)

// TestLedgerJSON pins the stored form: it is read by every later version.
func TestLedgerJSON(t *testing.T) {
	t.Parallel()
	l := order.NewLedger()
	l.JoinEvent(order.Event{
		ID: "evt_1", At: epoch, Payment: []string{"pi_1", "ch_1"}, Reference: "o1", Strength: order.StrengthPayment,
		Facts: []order.Fact{
			authorized(5000), phase(order.StatusAuthorized, 7), capturedTotal(5000, 0), capture("cap", order.StatusFailed, all, 3),
			refund("re_1", order.StatusOK, 1000, 0), refundedTotal(1000, 2), released(10),
			via(dispute("dp_1", order.StatusOpen, all, 4)),
			{Kind: order.KindCaptured, Amount: 5, Currency: "EUR", Misfit: order.MisfitMode},
			in("USD", capturedTotal(0, 0)),
		},
	})
	l.JoinEvent(order.Event{ID: "evt_2", Payment: []string{"pi_1"}, Own: &order.Amount{Minor: 5000, Currency: "EUR"}})
	stored(t, l)
	data, err := json.Marshal(l)
	require.NoError(t, err)
	require.JSONEq(t, `{
		"money": {
			"EUR": {
				"authorized": 5000,
				"captures": {"cap": {"seq": 3, "status": "failed", "amount": 9223372036854775807}},
				"captured_total": {"amount": 5000},
				"refunds": {"re_1": {"status": "ok", "amount": 1000, "was": true}},
				"refunded_total": {"seq": 2, "amount": 1000},
				"released": 10,
				"ever": true
			},
			"USD": {}
		},
		"disputes": {"dp_1": {"seq": 4, "status": "open", "amount": 9223372036854775807, "currency": "EUR", "via": true}},
		"phase": {"seq": 7, "status": "authorized"},
		"link": {"ref": "o1", "strength": "payment", "at": 1772366400000000, "event": "evt_1"},
		"ids": ["ch_1", "pi_1"],
		"own": {"minor": 5000, "currency": "EUR"},
		"flags": ["mode_mismatch"]
	}`, string(data))

	empty, err := json.Marshal(order.NewLedger())
	require.NoError(t, err)
	require.Equal(t, "{}", string(empty))
}

// TestLedgerRefusesWhatItWouldLose: a ledger of a newer program, or a broken one, is not read, and so never written back
// without what this program does not know.
func TestLedgerRefusesWhatItWouldLose(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"UnknownField":       `{"reserve":5}`,
		"UnknownMoneyField":  `{"money":{"EUR":{"fee":5}}}`,
		"UnknownItemField":   `{"money":{"EUR":{"captures":{"c":{"status":"ok","note":"x"}}}}}`,
		"UnknownItemStatus":  `{"money":{"EUR":{"captures":{"c":{"status":"blocked"}}}}}`,
		"UnknownDispute":     `{"disputes":{"d":{"status":"appealed"}}}`,
		"UnknownPhase":       `{"phase":{"status":"asleep"}}`,
		"UnknownFlag":        `{"flags":["sanctioned"]}`,
		"UnknownStrength":    `{"link":{"ref":"o","strength":"oracle"}}`,
		"PhaseOfOtherKind":   `{"phase":{"status":"ok"}}`,
		"Currency":           `{"money":{"euro":{}}}`,
		"NullMoney":          `{"money":{"EUR":null}}`,
		"DisputeCurrency":    `{"disputes":{"d":{"status":"open","currency":"x"}}}`,
		"DisputeWithoutRef":  `{"disputes":{"":{"status":"open"}}}`,
		"NegativeTotal":      `{"money":{"EUR":{"captured_total":{"amount":-1}}}}`,
		"NegativeRefunded":   `{"money":{"EUR":{"refunded_total":{"seq":-1}}}}`,
		"NegativeReleased":   `{"money":{"EUR":{"released":-1}}}`,
		"NegativeItem":       `{"money":{"EUR":{"refunds":{"r":{"status":"ok","amount":-1}}}}}`,
		"NegativeDispute":    `{"disputes":{"d":{"status":"open","amount":-1}}}`,
		"NegativePhase":      `{"phase":{"seq":-1}}`,
		"TooGreat":           `{"money":{"EUR":{"released":9223372036854775808}}}`,
		"Fraction":           `{"money":{"EUR":{"released":1.5}}}`,
		"IDsNotSorted":       `{"ids":["b","a"]}`,
		"OwnOfNothing":       `{"own":{"minor":0,"currency":"EUR"}}`,
		"TwoValues":          `{}{}`,
		"NotAnObject":        `[]`,
		"Nothing":            ``,
		"FlagsNotAnArray":    `{"flags":"mode_mismatch"}`,
		"StrengthNotAString": `{"link":{"ref":"o","strength":2}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := order.NewLedger()
			l.Join(authorized(5))
			before := l.Clone()
			require.Error(t, l.UnmarshalJSON([]byte(data)))
			require.Equal(t, before, l, "and leaves what was there")
		})
	}
}

func TestLink(t *testing.T) {
	t.Parallel()
	link := func(ref string, s order.Strength, at int64, event string) order.Link {
		return order.Link{Ref: ref, Strength: s, At: at, Event: event}
	}
	// Rising: the last one holds against all before it.
	links := []order.Link{
		{},
		link("o1", order.StrengthModification, 0, "b"),
		link("o2", order.StrengthModification, 0, "a"),
		link("o3", order.StrengthModification, 8, "a"),
		link("o4", order.StrengthModification, 7, "b"),
		link("o6", order.StrengthModification, 7, "a"),
		link("o5", order.StrengthModification, 7, "a"), // one event id with two references
		link("o1", order.StrengthPayment, 0, "z"),
		link("o1", order.StrengthPayment, 9, "z"),
		link("o1", order.StrengthPerson, 0, "z"),
	}
	for i, weak := range links {
		require.Equal(t, weak, weak.Join(weak))
		for _, strong := range links[i+1:] {
			require.Equal(t, strong, weak.Join(strong))
			require.Equal(t, strong, strong.Join(weak))
		}
	}
}

func TestLinkOfAnEvent(t *testing.T) {
	t.Parallel()
	l := order.NewLedger()
	l.JoinEvent(order.Event{ID: "evt_1", At: epoch, Payment: []string{"p"}})
	require.Zero(t, l.Link, "no reference, no link")
	l.JoinEvent(order.Event{ID: "evt_1", At: epoch, Payment: []string{"p"}, Reference: "o1"})
	require.Equal(t, order.StrengthModification, l.Link.Strength, "the weakest, where it does not say")

	// An id that came again with other facts is stored with a suffix, and which of the two got it depends on arrival.
	first := order.Event{ID: "evt_1", At: epoch, Reference: "o1", Strength: order.StrengthPayment}
	second := order.Event{ID: "evt_1#0123456789abcdef", At: epoch, Reference: "o2", Strength: order.StrengthPayment}
	swapped := []order.Event{first, second}
	swapped[0].ID, swapped[1].ID = second.ID, first.ID
	a, b := order.NewLedger(), order.NewLedger()
	for i := range swapped {
		a.JoinEvent([]order.Event{first, second}[i])
		b.JoinEvent(swapped[i])
	}
	require.Equal(t, a, b)
}

func TestBaseID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"evt_1":                  "evt_1",
		"evt_1#0123456789abcdef": "evt_1",
		"a#b#0123456789abcdef":   "a#b",
		"evt#1":                  "evt#1",
		"evt_1#0123456789ABCDEF": "evt_1#0123456789ABCDEF",
		"evt_1#not hexadecimal":  "evt_1#not hexadecimal",
		"#0123456789abcdef":      "#0123456789abcdef",
		"":                       "",
	} {
		require.Equal(t, want, order.BaseID(id), "%q", id)
	}
}

// TestLedgerSize: a payment of ordinary life fits in about a kilobyte.
func TestLedgerSize(t *testing.T) {
	t.Parallel()
	l := order.NewLedger()
	l.JoinEvent(order.Event{
		ID: "evt_1PgafmB7WZ01zgkWxKmrKzRx", At: epoch, Reference: "ord-2026-0000123", Strength: order.StrengthPayment,
		Payment: []string{
			"pi_3PgafmB7WZ01zgkW0mPdC9pN", "ch_3PgafmB7WZ01zgkW0RbFhUsk",
			"cs_test_a1L8QnhkQ0PpgBuAQJvGXPtXkFqFn2eVbFSCyDyXJbOXPtXkFqFn2eVb",
		},
		Own: &order.Amount{Minor: 5000, Currency: "EUR"},
		Facts: []order.Fact{
			phase(order.StatusAuthorized, 1772366400), authorized(5000), capturedTotal(5000, 0), refundedTotal(1500, 0),
			refund("re_3PgafmB7WZ01zgkW0RbFhUs1", order.StatusOK, 1000, 0),
			refund("re_3PgafmB7WZ01zgkW0RbFhUs2", order.StatusOK, 500, 0),
			dispute("dp_1PgafmB7WZ01zgkWxKmrKzRx", order.StatusWon, 5000, 1772366400),
		},
	})
	data, err := json.Marshal(l)
	require.NoError(t, err)
	require.Less(t, len(data), 1024, "%s", data)
}

func TestIDsAreASet(t *testing.T) {
	t.Parallel()
	ids := []string{"ch_1", "cs_1", "in_1", "pi_1"}
	shuffled := append(slices.Clone(ids), ids...)
	rand.New(rand.NewSource(1)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	l := order.NewLedger()
	l.JoinEvent(order.Event{ID: "1", At: time.Time{}, Payment: append(shuffled, "", "\xff")})
	require.Equal(t, ids, l.IDs)
}
