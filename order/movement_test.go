package order_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
)

// Each row is what a gateway has told, and how much can move after it, or why nothing can.
func TestMovable(t *testing.T) {
	t.Parallel()
	fact := func(kind order.Kind, ref string, status order.Status, minor int64) order.Fact {
		f := order.Fact{Kind: kind, Ref: ref, Status: status, Amount: minor, Currency: "EUR", Seq: 1}
		if kind == order.KindPhase {
			f.Currency = ""
		}
		if kind == order.KindAuthorized || kind == order.KindReleased {
			f.Seq = 0
		}
		return f
	}
	capture := func(minor int64) order.Fact { return fact(order.KindCaptured, "", "", minor) }
	auth := func(minor int64) order.Fact { return fact(order.KindAuthorized, "", "", minor) }
	refund := func(ref string, s order.Status, minor int64) order.Fact {
		return fact(order.KindRefunded, ref, s, minor)
	}
	for name, tt := range map[string]struct {
		facts []order.Fact
		kind  order.MovementKind
		left  int64
		why   order.NotMovable
	}{
		"refund: all of a capture":               {[]order.Fact{capture(5000)}, order.MovementRefund, 5000, ""},
		"refund: nothing was captured":           {[]order.Fact{auth(5000)}, order.MovementRefund, 0, order.NothingCaptured},
		"refund: the rest":                       {[]order.Fact{capture(5000), refund("re_1", order.StatusOK, 2000)}, order.MovementRefund, 3000, ""},
		"refund: what is on its way is gone":     {[]order.Fact{capture(5000), refund("re_1", order.StatusPending, 2000)}, order.MovementRefund, 3000, ""},
		"refund: what was denied is not":         {[]order.Fact{capture(5000), refund("re_1", order.StatusDenied, 2000)}, order.MovementRefund, 5000, ""},
		"refund: what failed came back":          {[]order.Fact{capture(5000), refund("re_1", order.StatusFailed, 2000)}, order.MovementRefund, 5000, ""},
		"refund: a total that knows more":        {[]order.Fact{capture(5000), refund("re_1", order.StatusOK, 1000), refund("", "", 4000)}, order.MovementRefund, 1000, ""},
		"refund: a total that knows less":        {[]order.Fact{capture(5000), refund("re_1", order.StatusPending, 3000), refund("", "", 1000)}, order.MovementRefund, 2000, ""},
		"refund: a total with what failed in it": {[]order.Fact{capture(5000), refund("re_1", order.StatusFailed, 3000), refund("", "", 3000)}, order.MovementRefund, 5000, ""},
		"refund: all of it":                      {[]order.Fact{capture(5000), refund("", "", order.All)}, order.MovementRefund, 0, order.NothingCaptured},
		"refund: a lost dispute has taken it":    {[]order.Fact{capture(5000), {Kind: order.KindDisputed, Ref: "dp", Status: order.StatusLost, Amount: 5000, Currency: "EUR"}}, order.MovementRefund, 0, order.NothingCaptured},
		"refund: an open dispute has not":        {[]order.Fact{capture(5000), {Kind: order.KindDisputed, Ref: "dp", Status: order.StatusOpen, Amount: 5000, Currency: "EUR"}}, order.MovementRefund, 5000, ""},
		"refund: a released rest was never here": {[]order.Fact{capture(3000), refund("", "", 2000), fact(order.KindReleased, "", "", 2000)}, order.MovementRefund, 3000, ""},
		"capture: what is authorized":            {[]order.Fact{auth(5000)}, order.MovementCapture, 5000, ""},
		"capture: the rest":                      {[]order.Fact{auth(5000), capture(2000)}, order.MovementCapture, 3000, ""},
		"capture: what is on its way is taken":   {[]order.Fact{auth(5000), fact(order.KindCaptured, "cap", order.StatusPending, 2000)}, order.MovementCapture, 3000, ""},
		"capture: all was":                       {[]order.Fact{auth(5000), capture(5000)}, order.MovementCapture, 0, order.NothingAuthorized},
		"capture: what was released is gone":     {[]order.Fact{auth(5000), capture(2000), fact(order.KindReleased, "", "", 2500)}, order.MovementCapture, 500, ""},
		"capture: the rest was released":         {[]order.Fact{auth(5000), capture(2000), fact(order.KindReleased, "", "", 3000)}, order.MovementCapture, 0, order.NothingAuthorized},
		"capture: over":                          {[]order.Fact{auth(5000), fact(order.KindPhase, "", order.StatusExpired, 0)}, order.MovementCapture, 0, order.PaymentOver},
		"void: what is authorized":               {[]order.Fact{auth(5000)}, order.MovementVoid, 5000, ""},
		"void: something was captured":           {[]order.Fact{auth(5000), capture(1)}, order.MovementVoid, 0, order.AlreadyCaptured},
		"void: something is being captured":      {[]order.Fact{auth(5000), fact(order.KindCaptured, "cap", order.StatusPending, 1)}, order.MovementVoid, 0, order.AlreadyCaptured},
		"void: over":                             {[]order.Fact{auth(5000), fact(order.KindPhase, "", order.StatusCanceled, 0)}, order.MovementVoid, 0, order.PaymentOver},
		"void: nothing is known":                 {nil, order.MovementVoid, 0, order.NothingAuthorized},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := order.NewLedger()
			for _, f := range tt.facts {
				require.NoError(t, f.Validate())
				l.Join(f)
			}
			left, err := l.Movable(tt.kind, "EUR")
			require.Equal(t, tt.left, left)
			if tt.why == "" {
				require.NoError(t, err)
			} else {
				var no *order.NotMovableError
				require.ErrorAs(t, err, &no)
				require.Equal(t, tt.why, no.Why)
			}
			_, err = l.Movable(tt.kind, "USD")
			require.Error(t, err, "in another currency there is nothing")
		})
	}
}

// What only a checkout has said moves nothing: the gateway must have told of it.
func TestMovableGoesByTheGatewayAlone(t *testing.T) {
	t.Parallel()
	l := order.NewLedger()
	l.JoinEvent(order.Event{ID: "e", Payment: []string{"p"}, Command: &order.Command{Confirm: true}, Facts: []order.Fact{{Kind: order.KindCaptured, Amount: 5000, Currency: "EUR"}}})
	for _, kind := range order.MovementKinds() {
		_, err := l.Movable(kind, "EUR")
		var no *order.NotMovableError
		require.ErrorAs(t, err, &no)
		require.Equal(t, order.NotSaid, no.Why, kind)
	}
}

func TestCapturesIn(t *testing.T) {
	t.Parallel()
	l := order.NewLedger()
	for ref, s := range map[string]order.Status{"b": order.StatusOK, "a": order.StatusOK, "c": order.StatusDenied, "d": order.StatusPending} {
		l.Join(order.Fact{Kind: order.KindCaptured, Ref: ref, Status: s, Amount: 100, Currency: "EUR"})
	}
	require.Equal(t, []order.Capture{{Ref: "a", Minor: 100}, {Ref: "b", Minor: 100}}, l.CapturesIn("EUR"))
	require.Empty(t, l.CapturesIn("USD"))
}
