package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

var _ = conforms("kushki", conformance{
	volatile: map[string]string{"last_four_digits": "0000"}, unknownType: map[string]string{"transaction_type": "SUBSCRIPTION"},
	typ: "SALE.APPROVAL", amount: "approved_transaction_amount", currency: "currency_code",
	badAmounts: []string{`"abc"`, `-50.00`, `50.001`, `5e3`, `"50,00"`, `92233720368547758.07`, `99999999999999999999`, `true`, `{}`},
	noMode:     true, // of payments; refunds: see below
	variants:   map[string]gateway.Source{"test": kushkiSource(false), "unconfirmed": kushkiSource(true)},
})

func kushkiSource(unconfirmed bool) gateway.Source {
	s := gateway.Kushki.Example("main")
	s.ID, s.Unconfirmed = "kushki", unconfirmed
	return s
}

func TestKushkiProbe(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{`{}`: true, " {}\n": true, `{"a":1}`: false, ``: false, `[]`: false, `{ }`: false} {
		_, ok := gateway.Kushki.Probe(kushkiSource(true), gateway.Delivery{Body: []byte(body)})
		require.Equal(t, want, ok, body)
	}
}

// TestKushkiAmounts: the approved amount of a payment, the parts of a refund.
func TestKushkiAmounts(t *testing.T) {
	t.Parallel()
	sale := `"ticket_number":"1","transaction_type":"SALE","transaction_status":"APPROVAL"`
	refund := `"ticketNumber":"2","saleTicketNumber":"1","transactionType":"REFUND","transactionStatus":"APPROVAL"`
	void := `"ticketNumber":"2","saleTicketNumber":"1","transactionType":"VOID","transactionStatus":"APPROVAL"`
	for _, tt := range []struct {
		name, body string
		want       int64 // -1: broken
		currency   string
	}{
		{"Approved", sale + `,"approved_transaction_amount":101.99,"request_amount":200,"currency_code":"USD"`, 10199, "USD"},
		{"SumOfParts", sale + `,"amount":{"subtotalIva":100,"subtotalIva0":0.5,"iva":19,"ice":1.25,"currency":"USD","extraTaxes":{"propina":10,"iac":2}}`, 13275, "USD"},
		{"WithoutDecimals", sale + `,"approved_transaction_amount":1000.0,"currency_code":"CLP"`, 1000, "CLP"},
		{"FractionOfAPeso", sale + `,"approved_transaction_amount":1000.5,"currency_code":"CLP"`, -1, ""},
		{"NoAmount", sale + `,"currency_code":"CLP"`, -1, ""},
		{"NoCurrency", sale + `,"approved_transaction_amount":1000`, -1, ""},
		{"PartNegative", sale + `,"amount":{"subtotalIva":100,"iva":-19,"currency":"USD"}`, -1, ""},
		{"PartsTooGreat", sale + `,"amount":{"subtotalIva":92233720368547758.06,"iva":0.02,"currency":"USD"}`, -1, ""},
		{"PartsAreAll", sale + `,"amount":{"subtotalIva":92233720368547758.06,"iva":0.01,"currency":"USD"}`, -1, ""},
		{"PartTwice", sale + `,"amount":{"iva":1,"iva":2,"currency":"USD"}`, -1, ""},
		{"RefundOfItsParts", refund + `,"amount":{"subtotalIva0":60},"requestAmount":101.99,"approvedTransactionAmount":0.6,"currency":"USD"`, 6000, "USD"},
		{"RefundRequested", refund + `,"requestAmount":60,"currency":"USD"`, 6000, "USD"},
		{"RefundWithEmptyParts", refund + `,"amount":{"subtotalIva0":0,"iva":0},"requestAmount":60,"currency":"USD"`, 6000, "USD"},
		{"VoidOfAll", void + `,"currency":"USD"`, order.All, "USD"},
		{"VoidOfAPart", void + `,"partialVoid":true,"currency":"USD"`, -1, ""},
	} {
		ev := mapped(t, kushkiSource(false), "{"+tt.body+"}")
		if tt.want < 0 {
			require.NotEmpty(t, ev.Broken, tt.name)
			continue
		}
		require.Empty(t, ev.Broken, tt.name)
		require.Len(t, ev.Facts, 1, tt.name)
		require.Equal(t, order.Amount{Minor: tt.want, Currency: tt.currency}, order.Amount{Minor: ev.Facts[0].Amount, Currency: ev.Facts[0].Currency}, tt.name)
	}
}

// TestKushkiUnconfirmed: what Kushki's pages leave open grants nothing until the
// source says that it was confirmed.
func TestKushkiUnconfirmed(t *testing.T) {
	t.Parallel()
	capture := `{"ticketNumber":"2","saleTicketNumber":"1","transactionType":"CAPTURE","transactionStatus":"APPROVAL","approvedTransactionAmount":50,"currency":"USD"}`
	chargeback := `{"ticketNumber":"9","saleTicketNumber":"1","transactionType":"CHARGEBACK","transactionStatus":"APPROVAL","currency":"USD"}`
	require.Equal(t, gateway.UnknownType, mapped(t, kushkiSource(false), capture).Ignored)
	require.Equal(t, order.KindCaptured, mapped(t, kushkiSource(true), capture).Facts[0].Kind)
	require.Equal(t, order.StatusOpen, mapped(t, kushkiSource(false), chargeback).Facts[0].Status)
	require.Equal(t, order.StatusWon, mapped(t, kushkiSource(true), chargeback).Facts[0].Status)
	require.NoError(t, gateway.Kushki.Check(kushkiSource(false)))
}

// TestKushkiMisfits: what a webhook says of its mode and merchant can only take
// from it.
func TestKushkiMisfits(t *testing.T) {
	t.Parallel()
	refund := gateway.SampleRequest{Source: kushkiSource(true), Type: "REFUND.APPROVAL", Reference: "ord_7"}
	require.Empty(t, sampled(t, refund).Facts[0].Misfit)
	refund.Mode = gateway.Live
	require.Equal(t, order.MisfitMode, sampled(t, refund).Facts[0].Misfit)

	sale := gateway.SampleRequest{Source: kushkiSource(true), Type: "SALE.APPROVAL", Reference: "ord_7"}
	sale.Source.MerchantAccounts = []string{"20000000000000000001"}
	require.Empty(t, sampled(t, sale).Facts[0].Misfit)
	require.NotNil(t, sampled(t, sale).Own)
	sale.Source.MerchantAccounts = []string{"20000000000000000002"}
	require.Equal(t, order.MisfitAccount, sampled(t, sale).Facts[0].Misfit)
	require.Nil(t, sampled(t, sale).Own)
}

// TestKushkiIDs: one transaction keeps its id however often it is told, and a
// refund needs the sale it is of.
func TestKushkiIDs(t *testing.T) {
	t.Parallel()
	s := kushkiSource(false)
	declined := mapped(t, s, `{"transaction_reference":"r-1","ticket_number":"","transaction_type":"SALE","transaction_status":"DECLINED"}`)
	require.Equal(t, "SALE.DECLINED:r-1", declined.ID)
	require.Equal(t, []string{"r-1"}, declined.Payment)
	require.Equal(t, order.StatusFailed, declined.Facts[0].Status)
	require.NotEmpty(t, mapped(t, s, `{"ticketNumber":"2","transactionType":"REFUND","transactionStatus":"APPROVAL","requestAmount":1,"currency":"USD"}`).Broken)
	require.NotEmpty(t, mapped(t, s, `{"transactionType":"SALE","transactionStatus":"APPROVAL","requestAmount":1,"currency":"USD"}`).Broken)
	require.NotEmpty(t, mapped(t, s, `{"ticketNumber":{},"transactionType":"SALE","transactionStatus":"APPROVAL","totalAmount":1,"currency":"USD"}`).Broken)
	require.Equal(t, gateway.NoFact, mapped(t, s, `{"transactionType":"CHARGEBACK","transactionStatus":"FAILED"}`).Ignored)
	require.Equal(t, gateway.UnknownType, mapped(t, s, `{"transactionType":"PAYOUT","transactionStatus":"approvedTransaction"}`).Ignored)
	require.NotEmpty(t, mapped(t, s, `{"details":{"transactionStatus":"APPROVAL"}}`).Broken)
	void := mapped(t, s, `{"ticketNumber":"2","saleTicketNumber":"1","saleTransactionType":"PREAUTHORIZATION","transactionType":"VOID","transactionStatus":"APPROVAL"}`)
	require.Equal(t, []order.Fact{{Kind: order.KindPhase, Status: order.StatusCanceled}}, void.Facts)
}

func TestKushkiFlows(t *testing.T) {
	t.Parallel()
	source := kushkiSource(true)
	preauthorized := set("saleTransactionType", "PREAUTHORIZATION")
	part := func(amount string) map[string]string {
		return map[string]string{"amount.subtotalIva0": amount}
	}
	playFlows(t, []flow{
		{"Card", source, []step{{typ: "SALE.APPROVAL"}}, "paid 5000-0-0 go"},
		{"CardDeclined", source, []step{{typ: "SALE.DECLINED"}}, "failed 0-0-0 wait"},
		{"Captured", source, []step{{typ: "PREAUTHORIZATION.APPROVAL"}, {typ: "CAPTURE.APPROVAL", at: 5}}, "paid 5000-0-0 go"},
		{"CaptureDeclined", source, []step{{typ: "PREAUTHORIZATION.APPROVAL"}, {typ: "CAPTURE.DECLINED", at: 5}}, "authorized 0-0-0 wait"},
		{"AuthorizationVoided", source, []step{{typ: "PREAUTHORIZATION.APPROVAL"}, {typ: "VOID.APPROVAL", at: 5, set: preauthorized}}, "canceled 0-0-0 wait"},
		{"Voided", source, []step{{typ: "SALE.APPROVAL"}, {typ: "VOID.APPROVAL", at: 5}}, "refunded 5000-5000-0 stop"},
		{"PartialRefunds", source, []step{
			{typ: "SALE.APPROVAL"}, {typ: "REFUND.APPROVAL", at: 5, ref: "R1", set: part("10")}, {typ: "REFUND.APPROVAL", at: 6, ref: "R2", set: part("5.5")},
		}, "partially_refunded 5000-1550-0 go"},
		{"RefundDeclined", source, []step{{typ: "SALE.APPROVAL"}, {typ: "REFUND.DECLINED", at: 5}}, "paid 5000-0-0 go"},
		{"Transfer", source, []step{{typ: "initializedTransaction"}, {typ: "approvedTransaction", at: 9}}, "paid 5000-0-0 go"},
		{"CashExpired", source, []step{{typ: "initializedTransaction"}, {typ: "expiredTransaction", at: 9}}, "expired 0-0-0 wait"},
		{"Chargeback", source, []step{{typ: "SALE.APPROVAL"}, {typ: "CHARGEBACK.INITIALIZED", at: 5}, {typ: "CHARGEBACK.REVIEW", at: 6}}, "disputed 5000-0-0 pause"},
		{"ChargebackWon", source, []step{
			{typ: "SALE.APPROVAL"}, {typ: "CHARGEBACK.INITIALIZED", at: 5}, {typ: "CHARGEBACK.REVIEW", at: 6}, {typ: "CHARGEBACK.APPROVAL", at: 7},
		}, "paid 5000-0-0 go"},
		{"ChargebackWonUnconfirmed", kushkiSource(false), []step{
			{typ: "SALE.APPROVAL"}, {typ: "CHARGEBACK.INITIALIZED", at: 5}, {typ: "CHARGEBACK.APPROVAL", at: 7},
		}, "disputed 5000-0-0 pause"},
		{"ChargebackLost", source, []step{
			{typ: "SALE.APPROVAL"}, {typ: "CHARGEBACK.INITIALIZED", at: 5}, {typ: "CHARGEBACK.EXPIRED", at: 7},
		}, "charged_back 5000-0-5000 stop"},
	})
}

// TestKushkiCardPayout: what Kushki tells of money that goes out to a card has its
// fields in details, and is none of ours.
func TestKushkiCardPayout(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "kushki")
	ev := event(t, source, []byte(`{"details":{"transactionStatus":"APPROVAL","transactionType":"PAYOUT","transactionId":"1"},"ticketNumber":"2"}`))
	require.Empty(t, ev.Broken)
	require.Equal(t, gateway.UnknownType, ev.Ignored)
	require.Empty(t, ev.Facts)
}
