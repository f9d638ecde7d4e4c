package settlement_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/settlement"
	"github.com/paidonce/paidonce/order"
)

func eur(kind order.Kind, ref string, status order.Status, minor int64) order.Fact {
	return order.Fact{Kind: kind, Ref: ref, Status: status, Amount: minor, Currency: "EUR"}
}

// line is one in euros.
func line(n int, kind settlement.Kind, ref string, minor int64) settlement.Line {
	return settlement.Line{Number: n, Kind: kind, Word: string(kind), Payment: []string{"p"}, Ref: ref, Amount: order.Amount{Minor: minor, Currency: "EUR"}}
}

func in(currency string, l settlement.Line) settlement.Line {
	l.Amount.Currency = currency
	return l
}

func findingText(f settlement.Finding) string {
	text := fmt.Sprintf("%d %s", f.Line.Number, f.Reason)
	if f.Ours != nil {
		text += fmt.Sprintf(" ours %s %s", order.Format(f.Ours.Minor, f.Ours.Currency), f.Ours.Currency)
	}
	if f.Detail != "" {
		text += ": " + f.Detail
	}
	return text
}

func TestCheck(t *testing.T) {
	t.Parallel()
	type facts = []order.Fact
	type theirs = []settlement.Line
	captured := func(minor int64) order.Fact { return eur(order.KindCaptured, "", "", minor) }
	for name, tt := range map[string]struct {
		facts  facts
		theirs theirs
		want   []string // nothing: all is explained
	}{
		"captured in all":                {facts{captured(5000)}, theirs{line(2, settlement.Capture, "ch", 5000)}, nil},
		"in several captures":            {facts{captured(5000)}, theirs{line(2, settlement.Capture, "a", 3000), line(3, settlement.Capture, "b", 2000)}, nil},
		"less what was never captured":   {facts{captured(6000)}, theirs{line(2, settlement.Capture, "ch", 10000), line(3, settlement.CaptureReversed, "re", 4000)}, nil},
		"another amount":                 {facts{captured(5000)}, theirs{line(2, settlement.Capture, "ch", 5001)}, []string{"2 amount_differs ours 50.00 EUR"}},
		"one unit of the smallest":       {facts{captured(5000)}, theirs{line(2, settlement.Capture, "ch", 4999)}, []string{"2 amount_differs ours 50.00 EUR"}},
		"several that do not come to it": {facts{captured(5000)}, theirs{line(2, settlement.Capture, "a", 3000), line(3, settlement.Capture, "b", 2500)}, []string{"2 amount_differs ours 50.00 EUR: 2 lines come to 55.00", "3 amount_differs ours 50.00 EUR: 2 lines come to 55.00"}},
		"a reversal that does not fit":   {facts{captured(7000)}, theirs{line(2, settlement.Capture, "ch", 10000), line(3, settlement.CaptureReversed, "re", 4000)}, []string{"2 amount_differs ours 70.00 EUR: 2 lines come to 60.00", "3 amount_differs ours 70.00 EUR: 2 lines come to 60.00"}},
		"not captured":                   {facts{eur(order.KindAuthorized, "", "", 5000)}, theirs{line(2, settlement.Capture, "ch", 5000)}, []string{"2 not_captured"}},
		"of which nothing is known":      {nil, theirs{line(2, settlement.Capture, "ch", 5000)}, []string{"2 not_captured"}},
		"a charge that failed":           {facts{eur(order.KindCaptured, "ch", order.StatusDenied, 5000)}, theirs{line(2, settlement.Capture, "ch", 5000), line(3, settlement.CaptureReversed, "ch", 5000)}, nil},
		"a charge that failed here":      {facts{eur(order.KindCaptured, "ch", order.StatusDenied, 5000)}, theirs{line(2, settlement.Capture, "ch", 5000)}, []string{"2 status_differs ours 50.00 EUR: it is denied here"}},
		"a reversal by itself":           {facts{captured(6000), eur(order.KindAuthorized, "", "", 10000)}, theirs{line(2, settlement.CaptureReversed, "re", 4000)}, nil},
		"a reversal of what is there":    {facts{captured(6000)}, theirs{line(2, settlement.CaptureReversed, "re", 4000)}, []string{"2 status_differs ours 60.00 EUR"}},

		"captures by id":        {facts{eur(order.KindCaptured, "a", order.StatusOK, 3000), eur(order.KindCaptured, "b", order.StatusOK, 2000)}, theirs{line(2, settlement.Capture, "b", 2000)}, nil},
		"by id, another amount": {facts{eur(order.KindCaptured, "a", order.StatusOK, 3000), eur(order.KindCaptured, "b", order.StatusOK, 2000)}, theirs{line(2, settlement.Capture, "b", 3000)}, []string{"2 amount_differs ours 20.00 EUR"}},
		"by amount":             {facts{eur(order.KindCaptured, "a", order.StatusOK, 3000), eur(order.KindCaptured, "b", order.StatusOK, 2000)}, theirs{line(2, settlement.Capture, "", 3000)}, nil},
		"an id that is unknown": {facts{eur(order.KindCaptured, "a", order.StatusOK, 3000)}, theirs{line(2, settlement.Capture, "a", 3000), line(3, settlement.Capture, "b", 2000)}, []string{"3 not_captured"}},
		"one that failed later": {facts{eur(order.KindCaptured, "a", order.StatusOK, 3000), eur(order.KindCaptured, "a", order.StatusFailed, 3000)}, theirs{line(2, settlement.Capture, "a", 3000)}, nil},
		"and was taken off":     {facts{eur(order.KindCaptured, "a", order.StatusFailed, 3000)}, theirs{line(2, settlement.CaptureReversed, "a", 3000)}, nil},
		"one that is pending":   {facts{eur(order.KindCaptured, "a", order.StatusPending, 3000)}, theirs{line(2, settlement.Capture, "a", 3000)}, []string{"2 status_differs ours 30.00 EUR: it is pending here"}},
		"total and ids":         {facts{captured(5000), eur(order.KindCaptured, "a", order.StatusOK, 5000)}, theirs{line(2, settlement.Capture, "a", 5000)}, nil},
		"a total, and an unknown id": {
			facts{captured(5000), eur(order.KindCaptured, "a", order.StatusOK, 2000)},
			theirs{line(2, settlement.Capture, "a", 2000), line(3, settlement.Capture, "x", 3000)},
			nil,
		},

		"refunds in all":           {facts{captured(5000), eur(order.KindRefunded, "", "", 1500)}, theirs{line(2, settlement.Refund, "a", 1000), line(3, settlement.Refund, "b", 500)}, nil},
		"a refund by id":           {facts{captured(5000), eur(order.KindRefunded, "a", order.StatusOK, 1000)}, theirs{line(2, settlement.Refund, "a", 1000)}, nil},
		"of another amount":        {facts{captured(5000), eur(order.KindRefunded, "a", order.StatusOK, 1000)}, theirs{line(2, settlement.Refund, "a", 1100)}, []string{"2 amount_differs ours 10.00 EUR"}},
		"a refund by amount":       {facts{captured(5000), eur(order.KindRefunded, "a", order.StatusOK, 1000), eur(order.KindRefunded, "b", order.StatusOK, 700)}, theirs{line(2, settlement.Refund, "", 700)}, nil},
		"a refund we do not know":  {facts{captured(5000)}, theirs{line(2, settlement.Refund, "a", 1000)}, []string{"2 unknown_refund"}},
		"one more than we know":    {facts{captured(5000), eur(order.KindRefunded, "a", order.StatusOK, 1000)}, theirs{line(2, settlement.Refund, "a", 1000), line(3, settlement.Refund, "b", 1000)}, []string{"3 unknown_refund"}},
		"pending here":             {facts{captured(5000), eur(order.KindRefunded, "a", order.StatusPending, 1000)}, theirs{line(2, settlement.Refund, "a", 1000)}, []string{"2 status_differs ours 10.00 EUR: it is pending here"}},
		"failed later":             {facts{captured(5000), eur(order.KindRefunded, "a", order.StatusOK, 1000), eur(order.KindRefunded, "a", order.StatusFailed, 1000)}, theirs{line(2, settlement.Refund, "a", 1000), line(3, settlement.RefundReversed, "a", 1000)}, nil},
		"failed, and not here":     {facts{captured(5000), eur(order.KindRefunded, "a", order.StatusOK, 1000)}, theirs{line(2, settlement.Refund, "a", 1000), line(3, settlement.RefundReversed, "a", 1000)}, []string{"3 status_differs ours 10.00 EUR: it is ok here"}},
		"failed, another amount":   {facts{captured(5000), eur(order.KindRefunded, "a", order.StatusFailed, 1000)}, theirs{line(3, settlement.RefundReversed, "a", 900)}, []string{"3 amount_differs ours 10.00 EUR"}},
		"failed, by amount":        {facts{captured(5000), eur(order.KindRefunded, "a", order.StatusFailed, 1000), eur(order.KindRefunded, "b", order.StatusOK, 200)}, theirs{line(3, settlement.RefundReversed, "", 1000)}, nil},
		"everything":               {facts{captured(5000), eur(order.KindRefunded, "", "", order.All)}, theirs{line(2, settlement.Refund, "a", 5000)}, nil},
		"an uncaptured rest is no": {facts{captured(5000), eur(order.KindRefunded, "", "", 6000), eur(order.KindReleased, "", "", 5000)}, theirs{line(2, settlement.Refund, "a", 1000)}, nil},

		"a dispute by id":             {facts{captured(5000), eur(order.KindDisputed, "d", order.StatusOpen, 5000)}, theirs{line(2, settlement.Dispute, "d", 5000)}, nil},
		"of another dispute's amount": {facts{captured(5000), eur(order.KindDisputed, "d", order.StatusOpen, 5000)}, theirs{line(2, settlement.Dispute, "d", 4000)}, []string{"2 amount_differs ours 50.00 EUR"}},
		"a dispute by amount":         {facts{captured(5000), eur(order.KindDisputed, "d", order.StatusLost, 5000)}, theirs{line(2, settlement.Dispute, "x", 5000)}, nil},
		"of everything":               {facts{captured(5000), eur(order.KindDisputed, "d", order.StatusLost, order.All)}, theirs{line(2, settlement.Dispute, "", 4321)}, nil},
		"a dispute we do not know":    {facts{captured(5000)}, theirs{line(2, settlement.Dispute, "d", 5000)}, []string{"2 unknown_dispute"}},
		"one that there is none of":   {facts{captured(5000), eur(order.KindDisputed, "d", order.StatusNone, 0)}, theirs{line(2, settlement.Dispute, "d", 5000)}, []string{"2 unknown_dispute"}},
		"or was":                      {facts{captured(5000), eur(order.KindDisputed, "d", order.StatusNone, 5000)}, theirs{line(2, settlement.Dispute, "", 5000)}, []string{"2 unknown_dispute"}},
		"won":                         {facts{captured(5000), eur(order.KindDisputed, "d", order.StatusWon, 5000)}, theirs{line(2, settlement.Dispute, "d", 5000), line(3, settlement.DisputeReversed, "d", 5000)}, nil},
		"won, in another file":        {facts{captured(5000), eur(order.KindDisputed, "d", order.StatusWon, 5000)}, theirs{line(3, settlement.DisputeReversed, "d", 5000)}, nil},
		"won there, lost here":        {facts{captured(5000), eur(order.KindDisputed, "d", order.StatusLost, 5000)}, theirs{line(2, settlement.Dispute, "d", 5000), line(3, settlement.DisputeReversed, "d", 5000)}, []string{"3 status_differs: the dispute is lost here"}},
		"lost the second time":        {facts{captured(5000), eur(order.KindDisputed, "d", order.StatusLost, 5000)}, theirs{line(2, settlement.Dispute, "d", 5000), line(3, settlement.DisputeReversed, "d", 5000), line(4, settlement.Dispute, "d", 5000)}, nil},
		"given back out of nothing":   {facts{captured(5000)}, theirs{line(3, settlement.DisputeReversed, "d", 5000)}, []string{"3 unknown_dispute"}},
		"taken as a refund": {
			facts{captured(5000), {Kind: order.KindRefunded, Ref: "r", Status: order.StatusOK, Amount: 5000, Currency: "EUR", Forced: true}, eur(order.KindDisputed, "d", order.StatusLost, 5000)},
			theirs{line(2, settlement.Dispute, "r", 5000)},
			nil,
		},
		"taken as a refund that is told in all": {
			facts{captured(10000), eur(order.KindRefunded, "", "", 10000)},
			theirs{line(2, settlement.Refund, "", 6000), line(3, settlement.Dispute, "", 4000)},
			nil,
		},
		"two disputes of one amount": {
			facts{captured(10000), eur(order.KindDisputed, "d", order.StatusLost, 4000), eur(order.KindDisputed, "e", order.StatusOpen, 4000)},
			theirs{line(2, settlement.Dispute, "", 4000), line(3, settlement.Dispute, "", 4000)},
			nil,
		},

		"another currency": {
			facts{captured(5000), eur(order.KindRefunded, "", "", 100)},
			theirs{in("USD", line(2, settlement.Capture, "ch", 5400)), in("USD", line(3, settlement.Refund, "re", 108))},
			[]string{"2 currency_differs ours 50.00 EUR", "3 currency_differs ours 1.00 EUR"},
		},
		"a dispute in another currency": {
			facts{captured(5000), eur(order.KindDisputed, "d", order.StatusLost, 5000)},
			theirs{in("USD", line(2, settlement.Dispute, "d", 5400))},
			[]string{"2 currency_differs ours 50.00 EUR"},
		},
		"two currencies, both right": {
			facts{captured(5000), {Kind: order.KindCaptured, Amount: 700, Currency: "USD"}},
			theirs{in("USD", line(2, settlement.Capture, "a", 700)), line(3, settlement.Capture, "b", 5000)},
			nil,
		},
		"what does not fit 64 bits": {
			facts{captured(5000)},
			theirs{line(2, settlement.Capture, "a", order.All-1), line(3, settlement.Capture, "b", order.All-1)},
			[]string{"2 amount_differs ours 50.00 EUR: 2 lines come to 92233720368547758.06", "3 amount_differs ours 50.00 EUR: 2 lines come to 92233720368547758.06"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := order.NewLedger()
			for _, f := range tt.facts {
				require.NoError(t, f.Validate())
				l.Join(f)
			}
			before, err := l.MarshalJSON()
			require.NoError(t, err)
			var have []string
			for _, f := range settlement.Check(tt.theirs, l) {
				have = append(have, findingText(f))
			}
			require.Equal(t, tt.want, have)
			after, err := l.MarshalJSON()
			require.NoError(t, err)
			require.Equal(t, string(before), string(after))
		})
	}
}

// The order of lines in a file decides nothing but which of two equal ones is spoken of.
func TestCheckInAnyOrder(t *testing.T) {
	t.Parallel()
	l := order.NewLedger()
	for _, f := range []order.Fact{
		eur(order.KindCaptured, "", "", 10000), eur(order.KindRefunded, "a", order.StatusOK, 1000), eur(order.KindDisputed, "d", order.StatusWon, 2000),
	} {
		l.Join(f)
	}
	all := []settlement.Line{
		line(2, settlement.Capture, "c", 10000), line(3, settlement.Refund, "a", 1000), line(4, settlement.Dispute, "d", 2000), line(5, settlement.DisputeReversed, "d", 2000),
		line(6, settlement.Refund, "x", 77),
	}
	for range all {
		all = append(all[1:], all[0])
		var have []string
		for _, f := range settlement.Check(all, l) {
			have = append(have, findingText(f))
		}
		require.Equal(t, "6 unknown_refund", strings.Join(have, "; "))
	}
}
