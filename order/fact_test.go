package order_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
)

func TestFactValidate(t *testing.T) {
	t.Parallel()
	with := func(f order.Fact, change func(*order.Fact)) order.Fact { change(&f); return f }
	tests := map[string]struct {
		fact order.Fact
		want string // "": valid
	}{
		"Authorized":                {authorized(5), ""},
		"CapturedTotal":             {capturedTotal(5, 0), ""},
		"TotalMayBeOK":              {with(capturedTotal(5, 0), func(f *order.Fact) { f.Status = order.StatusOK }), ""},
		"Capture":                   {capture("c", order.StatusOK, 5, 1), ""},
		"FailedCaptureOfAll":        {capture("c", order.StatusFailed, all, 1), ""},
		"RefundOfAll":               {refund("r", order.StatusOK, all, 1), ""},
		"RefundedTotalOfAll":        {refundedTotal(all, 1), ""},
		"Reversal":                  {reversal("r", 5), ""},
		"DisputeOfAll":              {dispute("d", order.StatusOpen, all, 1), ""},
		"NoDispute":                 {order.Fact{Kind: order.KindDisputed, Ref: "d", Status: order.StatusNone}, ""},
		"Via":                       {via(dispute("d", order.StatusLost, 5, 1)), ""},
		"Phase":                     {phase(order.StatusExpired, 3), ""},
		"PhaseWithCurrency":         {in("EUR", phase(order.StatusExpired, 3)), ""},
		"Misfit":                    {with(capturedTotal(5, 0), func(f *order.Fact) { f.Misfit = order.MisfitAccount }), ""},
		"Zero":                      {order.Fact{}, "unknown kind"},
		"UnknownKind":               {order.Fact{Kind: "paid", Amount: 5, Currency: "EUR"}, "unknown kind"},
		"Negative":                  {capturedTotal(-1, 0), "negative amount"},
		"AllCapturedTotal":          {capturedTotal(all, 0), "all"},
		"AllCaptureOK":              {capture("c", order.StatusOK, all, 0), "all"},
		"AllCapturePending":         {capture("c", order.StatusPending, all, 0), "all"},
		"AllAuthorized":             {authorized(all), "all"},
		"AllReleased":               {released(all), "all"},
		"NoCurrency":                {in("", capturedTotal(5, 0)), "no currency"},
		"DisputeWithoutCurrency":    {in("", dispute("d", order.StatusOpen, 5, 0)), "no currency"},
		"LowerCurrency":             {in("eur", capturedTotal(5, 0)), "three capital letters"},
		"LongCurrency":              {in("EURO", capturedTotal(5, 0)), "three capital letters"},
		"PhaseWithBadCurrency":      {in("€", phase(order.StatusExpired, 3)), "three capital letters"},
		"CaptureWithPhasesStatus":   {capture("c", order.StatusCanceled, 5, 0), "status"},
		"CaptureWithoutStatus":      {capture("c", "", 5, 0), "status"},
		"TotalFailed":               {with(capturedTotal(5, 0), func(f *order.Fact) { f.Status = order.StatusFailed }), "status"},
		"AuthorizedPending":         {with(authorized(5), func(f *order.Fact) { f.Status = order.StatusPending }), "status"},
		"ReleasedOpen":              {with(released(5), func(f *order.Fact) { f.Status = order.StatusOpen }), "status"},
		"DisputeOK":                 {dispute("d", order.StatusOK, 5, 0), "status"},
		"PhaseOK":                   {phase(order.StatusOK, 0), "status"},
		"PhaseWithAmount":           {with(phase(order.StatusFailed, 0), func(f *order.Fact) { f.Amount = 5 }), "phase has no amount"},
		"PhaseWithRef":              {with(phase(order.StatusFailed, 0), func(f *order.Fact) { f.Ref = "x" }), "ref"},
		"AuthorizedWithRef":         {with(authorized(5), func(f *order.Fact) { f.Ref = "x" }), "ref"},
		"DisputeWithoutRef":         {dispute("", order.StatusOpen, 5, 0), "no ref"},
		"RefNotUTF8":                {capture("\xff", order.StatusOK, 5, 0), "not text"},
		"RefWithNUL":                {capture("a\x00", order.StatusOK, 5, 0), "not text"},
		"NegativeSeq":               {capturedTotal(5, -1), "negative seq"},
		"ForcedCapture":             {with(capturedTotal(5, 0), func(f *order.Fact) { f.Forced = true }), "forced"},
		"ViaRefund":                 {via(refundedTotal(5, 0)), "via"},
		"UnknownMisfit":             {with(capturedTotal(5, 0), func(f *order.Fact) { f.Misfit = "moon" }), "misfit"},
		"MisfitIsCheckedLikeOthers": {with(capturedTotal(-5, 0), func(f *order.Fact) { f.Misfit = order.MisfitMode }), "negative amount"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tt.fact.Validate()
			l := order.NewLedger()
			l.Join(tt.fact)
			if tt.want == "" {
				require.NoError(t, err)
				require.NotEqual(t, order.NewLedger(), l)
				return
			}
			require.ErrorContains(t, err, tt.want)
			require.Equal(t, order.NewLedger(), l, "what is refused is not joined")
		})
	}
}

func TestEventValidate(t *testing.T) {
	t.Parallel()
	good := order.Event{
		ID: "evt_1", At: epoch, Payment: []string{"pi_1", "ch_1"}, Reference: "o1", Strength: order.StrengthPayment,
		Facts: []order.Fact{capturedTotal(5, 0)}, Own: &order.Amount{Minor: 5, Currency: "EUR"},
	}
	require.NoError(t, good.Validate())
	require.NoError(t, order.Event{ID: "evt_2", Ignored: "unknown_type"}.Validate())
	for name, change := range map[string]func(*order.Event){
		"NoID":             func(e *order.Event) { e.ID = "" },
		"IDNotText":        func(e *order.Event) { e.ID = "\xff" },
		"NoPayment":        func(e *order.Event) { e.Payment = nil },
		"EmptyPaymentID":   func(e *order.Event) { e.Payment = []string{"pi_1", ""} },
		"PaymentIDNotText": func(e *order.Event) { e.Payment = []string{"pi\x00"} },
		"BadFact":          func(e *order.Event) { e.Facts = []order.Fact{capturedTotal(-5, 0)} },
		"BadReference":     func(e *order.Event) { e.Reference = "\xff" },
		"UnknownStrength":  func(e *order.Event) { e.Strength = 9 },
		"NegativeOwn":      func(e *order.Event) { e.Own = &order.Amount{Minor: -5, Currency: "EUR"} },
		"OwnOfAll":         func(e *order.Event) { e.Own = &order.Amount{Minor: all, Currency: "EUR"} },
		"OwnCurrency":      func(e *order.Event) { e.Own = &order.Amount{Minor: 5, Currency: "euro"} },
		"FarFuture":        func(e *order.Event) { e.At = time.Unix(1<<50, 0) },
		"FarPast":          func(e *order.Event) { e.At = time.Unix(-1<<50, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := good
			change(&e)
			require.Error(t, e.Validate())
		})
	}
}

func TestEventJSON(t *testing.T) {
	t.Parallel()
	e := order.Event{
		ID: "evt_1", Type: "charge.refunded", At: epoch, Realm: "stripe:live", Payment: []string{"pi_1", "ch_1"}, Reference: "o1",
		Strength: order.StrengthPayment, Facts: []order.Fact{capturedTotal(5, 0), via(dispute("d", order.StatusLost, all, 7))},
		Own: &order.Amount{Minor: 5, Currency: "EUR"}, Command: &order.Command{Register: &order.Amount{Minor: 0, Currency: "EUR"}},
	}
	data, err := json.Marshal(e)
	require.NoError(t, err)
	var back order.Event
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, e, back)

	data, err = json.Marshal(order.Event{ID: "evt_2", Ignored: "unknown_type"})
	require.NoError(t, err)
	require.JSONEq(t, `{"id":"evt_2","ignored":"unknown_type"}`, string(data))
}
