package gateway_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

var _ = conforms("payu-latam", conformance{
	volatile: map[string]string{"attempts": "2", "transaction_id": "another"}, unknownType: map[string]string{"state_pol": "9"},
	typ: "state_pol.4", amount: "value", currency: "currency",
	badAmounts:    []string{`-50.00`, `50.001`, `5e3`, `50,00`, `92233720368547758.08`, `92233720368547758.07`, ` 50.00`, `abc`, `.5`},
	badCurrencies: []string{`ZZZ`, `EURO`, `E1R`, ` EU`},
	strict:        true,
	noMode:        true, // in test mode, see TestPayUMisfits
	noTime:        true,
	payment:       func(r gateway.SampleRequest) string { return "508029:" + r.Reference },
	unreadable: map[string]string{
		"Empty": "", "NoReference": "merchant_id=1&value=1&currency=EUR&state_pol=4", "NoState": "merchant_id=1&reference_sale=2&value=1&currency=EUR",
		"Twice":     "merchant_id=1&reference_sale=2&reference_sale=3&value=1&currency=EUR&state_pol=4",
		"TestTwice": "merchant_id=1&reference_sale=2&value=1&currency=EUR&state_pol=4&test=1&test=0",
		"Escape":    "merchant_id=1&reference_sale=%zz&value=1&currency=EUR&state_pol=4", "Semicolon": "merchant_id=1;reference_sale=2",
		"NotUTF8": "merchant_id=1&reference_sale=%FF&value=1&currency=EUR&state_pol=4", "JSON": `{"merchant_id":"1"}`,
		"Control": "merchant_id=1&reference_sale=a%00b&value=1&currency=EUR&state_pol=4",
	},
})

// TestPayUTransactionIDIsNotSigned: a form that is sent again under another
// transaction, or with the value written otherwise, is the same event.
func TestPayUTransactionIDIsNotSigned(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "payu-latam")
	d := deliver(t, source, sample(t, gateway.SampleRequest{Source: source, Type: "state_pol.4", Reference: "ord_7"}))
	want, err := gateway.PayULatam.Events(source, d)
	require.NoError(t, err)
	require.Equal(t, "508029:ord_7:4:50:EUR", want[0].ID)
	form, err := url.ParseQuery(string(d.Body))
	require.NoError(t, err)
	for _, change := range []map[string]string{
		{"transaction_id": "another"}, {"value": "50.0"}, {"value": "50"}, {"attempts": "9"}, {"reference_pol": "1"}, {"response_message_pol": "DECLINED"},
	} {
		again := url.Values{}
		for name := range form {
			again.Set(name, form.Get(name))
		}
		for name, text := range change {
			again.Set(name, text)
		}
		d.Body = []byte(again.Encode())
		require.NoError(t, gateway.PayULatam.Verify(source, d, now), "%v", change)
		got, err := gateway.PayULatam.Events(source, d)
		require.NoError(t, err)
		require.Equal(t, want, got, "%v", change)
	}
	for _, change := range []string{"state_pol", "value", "currency", "merchant_id", "reference_sale"} {
		d.Body = []byte(strings.Replace(form.Encode(), change+"=", change+"=1", 1))
		require.Error(t, gateway.PayULatam.Verify(source, d, now), change)
	}
}

// TestPayUMisfits: a test's confirmation and another merchant's do not count on a
// live source of ours.
func TestPayUMisfits(t *testing.T) {
	t.Parallel()
	r := gateway.SampleRequest{Source: sourceNamed(t, "payu-latam"), Type: "state_pol.4", Reference: "ord_7"}
	require.Empty(t, sampled(t, r).Facts[0].Misfit)
	r.Source.Mode = gateway.Live
	require.Empty(t, sampled(t, r).Facts[0].Misfit)
	r.Mode = gateway.Test
	ev := sampled(t, r)
	require.Equal(t, order.MisfitMode, ev.Facts[0].Misfit)
	require.Nil(t, ev.Own)
	r.Mode, r.Source.MerchantAccounts = gateway.Live, []string{"508029"}
	require.Empty(t, sampled(t, r).Facts[0].Misfit)
	r.Source.MerchantAccounts = []string{"999999"}
	require.Equal(t, order.MisfitAccount, sampled(t, r).Facts[0].Misfit)

	r.Source.Reference = "/reference_sale"
	require.ErrorContains(t, gateway.PayULatam.Check(r.Source), "reference_sale")
}

// TestPayUTestIsNotSigned: whoever sees the signature of a test can say that it is
// none, so a live source must say that its account makes no tests.
func TestPayUTestIsNotSigned(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "payu-latam")
	d := deliver(t, s, sample(t, gateway.SampleRequest{Source: s, Type: "state_pol.4", Reference: "ord_7", Mode: gateway.Test}))
	forged := strings.Replace(string(d.Body), "test=1", "test=0", 1)
	require.NotEqual(t, string(d.Body), forged)
	d.Body = []byte(forged)
	require.NoError(t, gateway.PayULatam.Verify(s, d, now))

	s.Unconfirmed = false
	require.NoError(t, gateway.PayULatam.Check(s))
	s.Mode = gateway.Live
	require.ErrorContains(t, gateway.PayULatam.Check(s), "unconfirmed is not true")
	s.Unconfirmed = true
	require.NoError(t, gateway.PayULatam.Check(s))
}

// TestPayUAlgorithms: every algorithm that an account can have.
func TestPayUAlgorithms(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"MD5:4Vj8eK4rloUd272L48hsrarnUA", "SHA1:4Vj8eK4rloUd272L48hsrarnUA", "SHA256:4Vj8eK4rloUd272L48hsrarnUA", "HMAC-SHA256:4Vj8eK4rloUd272L48hsrarnUA:test123"} {
		s := sourceNamed(t, "payu-latam")
		s.Secrets = []string{secret}
		require.NoError(t, gateway.PayULatam.Check(s))
		require.Equal(t, int64(5000), sampled(t, gateway.SampleRequest{Source: s, Type: "state_pol.4"}).Own.Minor)
	}
}

func TestPayUFlows(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "payu-latam")
	playFlows(t, []flow{
		{"Approved", source, []step{{typ: "state_pol.4"}}, "paid 5000-0-0 go"},
		{"DeclinedThenApproved", source, []step{{typ: "state_pol.6"}, {typ: "state_pol.104", at: 1}, {typ: "state_pol.4", at: 5}}, "paid 5000-0-0 go"},
		{"Declined", source, []step{{typ: "state_pol.7"}, {typ: "state_pol.6", at: 5}}, "failed 0-0-0 wait"},
		{"Expired", source, []step{{typ: "state_pol.7"}, {typ: "state_pol.5", at: 5}}, "expired 0-0-0 wait"},
		{"ApprovedInPart", source, []step{{typ: "state_pol.4", amt: 2000}}, "partially_paid 2000-0-0 wait"},
	})
}
