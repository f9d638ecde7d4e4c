package bank_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/gatewaysim/bank"
	"github.com/paidonce/paidonce/order"
)

// TestMovementsAreBooked: each that is done is one entry, with the id that we gave it.
func TestMovementsAreBooked(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, gw string) {
		s := open(t, bank.Options{})
		held, paid, let := s.pay(gw, "A-1", false), s.pay(gw, "A-2", true), s.pay(gw, "A-3", false)
		require.Equal(t, bank.Sums{Authorized: 5000}, s.book(held).Sums["EUR"])
		require.Equal(t, bank.Sums{Authorized: 5000, Captured: 5000}, s.book(paid).Sums["EUR"])

		require.Contains(t, []int{200, 201}, s.do(gw, s.capture(gw, held, 3000, "m-1", "k-1")).status)
		require.Contains(t, []int{200, 201}, s.do(gw, s.refund(gw, paid, 1000, "m-2", "k-2")).status)
		require.Contains(t, []int{200, 201}, s.do(gw, s.refund(gw, paid, 1500, "m-3", "k-3")).status)
		require.Contains(t, []int{200, 201, 204}, s.do(gw, s.void(gw, let, "m-4", "k-4")).status)

		require.Equal(t, bank.Sums{Authorized: 5000, Captured: 3000}, s.book(held).Sums["EUR"])
		require.Equal(t, bank.Sums{Authorized: 5000, Captured: 5000, Refunded: 2500}, s.book(paid).Sums["EUR"])
		require.True(t, s.book(let).Voided)
		require.Zero(t, s.book(let).Sums["EUR"].Captured)

		captured, refunded, voided := asked(s.book(held)), asked(s.book(paid)), asked(s.book(let))
		require.Len(t, captured, 1)
		require.Len(t, refunded, 2)
		require.Len(t, voided, 1)
		require.Equal(t, order.MovementCapture, captured[0].Kind)
		require.Equal(t, order.Amount{Minor: 3000, Currency: "EUR"}, captured[0].Amount)
		require.Equal(t, order.MovementVoid, voided[0].Kind)
		require.Equal(t, start, voided[0].At)
		require.Equal(t, "m-2", refunded[0].Given)
		require.Equal(t, "m-3", refunded[1].Given)
		require.Equal(t, "k-3", refunded[1].Key)
		require.Equal(t, order.StatusOK, refunded[0].Status)
		require.NotEqual(t, refunded[0].Ref, refunded[1].Ref)
		if gw != "mercadopago" { // which takes no id there
			require.Equal(t, "m-1", captured[0].Given)
		}
		if gw == "adyen" {
			require.Equal(t, "m-4", voided[0].Given)
		}
		c := s.Counts(s.sources[gw].ID)
		require.Equal(t, map[bank.Kind]int{bank.Capture: 1, bank.Refund: 2, bank.Void: 1}, without(c.Calls, bank.Token))
	})
}

func without(m map[bank.Kind]int, kind bank.Kind) map[bank.Kind]int {
	delete(m, kind)
	return m
}

// TestRefusals: what a gateway refuses moves nothing, and has the gateway's own word.
func TestRefusals(t *testing.T) {
	t.Parallel()
	type row struct {
		name   string
		before func(s *stage, gw string, held, paid bank.Payment) []ask
		ask    func(s *stage, gw string, held, paid bank.Payment) ask
		status map[string]int
		code   map[string]string // of Adyen the reason of the webhook
	}
	words := map[string]string{
		"stripe": "error.code", "paypal": "details.0.issue", "mercadopago": "cause.0.code",
	}
	nothing := func(*stage, string, bank.Payment, bank.Payment) []ask { return nil }
	refused := map[string]int{"stripe": 400, "adyen": 201, "paypal": 422, "mercadopago": 400}
	const poor = "Insufficient balance on payment"
	for _, r := range []row{
		{"captures more than was authorized", nothing, func(s *stage, gw string, held, _ bank.Payment) ask {
			return s.capture(gw, held, 5751, "m", "k")
		}, refused, map[string]string{"stripe": "amount_too_large", "adyen": poor, "paypal": "MAX_CAPTURE_AMOUNT_EXCEEDED", "mercadopago": "4037"}},
		{"captures twice", func(s *stage, gw string, held, _ bank.Payment) []ask {
			return []ask{s.capture(gw, held, 5000, "m-0", "k-0")}
		}, func(s *stage, gw string, held, _ bank.Payment) ask { return s.capture(gw, held, 5000, "m", "k") }, refused, map[string]string{
			"stripe": "payment_intent_unexpected_state", "adyen": poor, "paypal": "AUTHORIZATION_ALREADY_CAPTURED", "mercadopago": "2018",
		}},
		{"captures what was voided", func(s *stage, gw string, held, _ bank.Payment) []ask { return []ask{s.void(gw, held, "m-0", "k-0")} }, func(s *stage, gw string, held, _ bank.Payment) ask {
			return s.capture(gw, held, 5000, "m", "k")
		}, refused, map[string]string{"stripe": "payment_intent_unexpected_state", "adyen": poor, "paypal": "AUTHORIZATION_VOIDED", "mercadopago": "2018"}},
		{"voids what was captured", func(s *stage, gw string, held, _ bank.Payment) []ask {
			return []ask{s.capture(gw, held, 5000, "m-0", "k-0")}
		}, func(s *stage, gw string, held, _ bank.Payment) ask { return s.void(gw, held, "m", "k") }, refused, map[string]string{
			"stripe": "payment_intent_unexpected_state", "adyen": poor, "paypal": "PREVIOUSLY_CAPTURED", "mercadopago": "2018",
		}},
		{"voids twice", func(s *stage, gw string, held, _ bank.Payment) []ask { return []ask{s.void(gw, held, "m-0", "k-0")} }, func(s *stage, gw string, held, _ bank.Payment) ask {
			return s.void(gw, held, "m", "k")
		}, refused, map[string]string{"stripe": "payment_intent_unexpected_state", "adyen": poor, "paypal": "PREVIOUSLY_VOIDED", "mercadopago": "2018"}},
		{"refunds more than was captured", nothing, func(s *stage, gw string, _, paid bank.Payment) ask {
			return s.refund(gw, paid, 5001, "m", "k")
		}, refused, map[string]string{"stripe": "", "adyen": poor, "paypal": "REFUND_AMOUNT_EXCEEDED", "mercadopago": "2063"}},
		{"refunds more than is left", func(s *stage, gw string, _, paid bank.Payment) []ask {
			return []ask{s.refund(gw, paid, 3000, "m-0", "k-0")}
		}, func(s *stage, gw string, _, paid bank.Payment) ask {
			return s.refund(gw, paid, 2001, "m", "k")
		}, refused, map[string]string{"stripe": "", "adyen": poor, "paypal": "REFUND_AMOUNT_EXCEEDED", "mercadopago": "2063"}},
		{"refunds what was refunded", func(s *stage, gw string, _, paid bank.Payment) []ask {
			return []ask{s.refund(gw, paid, 5000, "m-0", "k-0")}
		}, func(s *stage, gw string, _, paid bank.Payment) ask {
			return s.refund(gw, paid, 1, "m", "k")
		}, refused, map[string]string{"stripe": "charge_already_refunded", "adyen": poor, "paypal": "CAPTURE_FULLY_REFUNDED", "mercadopago": "2063"}},
		{"refunds what was not captured", nothing, func(s *stage, gw string, held, _ bank.Payment) ask {
			return s.refund(gw, held, 1, "m", "k")
		}, map[string]int{"stripe": 400, "adyen": 201, "paypal": 404, "mercadopago": 400}, map[string]string{
			"stripe": "charge_not_refundable", "adyen": poor, "paypal": "INVALID_RESOURCE_ID", "mercadopago": "2063",
		}},
		{"refunds a stranger's payment", nothing, func(s *stage, gw string, _, paid bank.Payment) ask {
			paid.IDs = []string{map[string]string{"stripe": "pi_1", "mercadopago": "1"}[gw]}
			if paid.IDs[0] == "" {
				paid.IDs[0] = "NOBODY"
			}
			return s.refund(gw, paid, 1, "m", "k")
		}, map[string]int{"stripe": 404, "adyen": 422, "paypal": 404, "mercadopago": 404}, map[string]string{
			"stripe": "resource_missing", "adyen": "167", "paypal": "INVALID_RESOURCE_ID", "mercadopago": "2000",
		}},
		{"refunds nothing", nothing, func(s *stage, gw string, _, paid bank.Payment) ask { return s.refund(gw, paid, 0, "m", "k") }, map[string]int{
			"stripe": 400, "adyen": 422, "paypal": 422, "mercadopago": 400,
		}, map[string]string{"stripe": "parameter_invalid_integer", "adyen": "137", "paypal": "CANNOT_BE_ZERO_OR_NEGATIVE", "mercadopago": "4040"}},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, gw string) {
				s := open(t, bank.Options{})
				held, paid := s.pay(gw, "A-1", false), s.pay(gw, "A-2", true)
				for _, a := range r.before(s, gw, held, paid) {
					require.Contains(t, []int{200, 201, 204}, s.do(gw, a).status)
				}
				before := s.Books()
				s.Pump(t.Context())
				s.inbox.clear()
				got := s.do(gw, r.ask(s, gw, held, paid))
				require.Equal(t, r.status[gw], got.status, got.text)
				require.Equal(t, before, s.Books())
				s.Pump(t.Context())
				switch {
				case gw != "adyen":
					require.Equal(t, r.code[gw], got.body.Get(words[gw]).String(), got.text)
					require.Empty(t, s.types())
				case got.status == 201:
					require.Len(t, s.inbox.hook, 1)
					require.Contains(t, string(s.inbox.hook[0].Delivery.Body), `"success":"false"`)
					require.Contains(t, string(s.inbox.hook[0].Delivery.Body), r.code[gw])
				default:
					require.Equal(t, r.code[gw], got.body.Get("errorCode").String())
				}
			})
		})
	}
}

// TestOpeningsThatCannotBe are the test's own mistakes.
func TestOpeningsThatCannotBe(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{})
	for _, o := range []bank.Opening{
		{Source: "nobody", Amount: order.Amount{Minor: 1, Currency: "EUR"}},
		{Source: "a.stripe", Amount: order.Amount{Minor: 0, Currency: "EUR"}},
		{Source: "a.stripe", Amount: order.Amount{Minor: 1, Currency: "ZZZ"}},
	} {
		_, err := s.Open(o)
		require.Error(t, err)
	}
	automatic := credentials(gateway.Adyen.Example("automatic"))
	automatic.ID, automatic.Capture = "b.adyen", ""
	_, err := s.Source(automatic)
	require.NoError(t, err)
	_, err = s.Open(bank.Opening{Source: "b.adyen", Amount: order.Amount{Minor: 1, Currency: "EUR"}})
	require.ErrorContains(t, err, "captures by itself")
	_, err = s.Open(bank.Opening{Source: "b.adyen", Amount: order.Amount{Minor: 1, Currency: "EUR"}, Captured: true})
	require.NoError(t, err)

	for _, src := range []gateway.Source{{ID: "x", Gateway: "klarna"}, {Gateway: "stripe", AccessToken: "k"}, {ID: "x", Gateway: "stripe"}, s.sources["stripe"]} {
		_, err := s.Source(src)
		require.Error(t, err)
	}
	for _, opts := range []bank.Options{
		{}, {Now: s.now, Odds: bank.Odds{"x": 1}}, {Now: s.now, Odds: bank.Odds{bank.Slow: -1}}, {Now: s.now, Odds: bank.Odds{bank.Slow: 600, bank.Late: 600}},
	} {
		_, err := bank.Start(opts)
		require.Error(t, err)
	}
}
