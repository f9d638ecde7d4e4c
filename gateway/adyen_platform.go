package gateway

import (
	"time"

	"github.com/paidonce/paidonce/order"
)

// AdyenPlatform takes the webhooks of Adyen's platforms, banking and management
// APIs, which are signed over the whole body. They tell of accounts and of money
// that moves between them. What a payment of a shopper's did is told by standard
// notifications (gateway adyen), and only by them: the transfers that a payment
// causes are one for each of its splits, after fees and in the currency of the
// account, so that no sum of them is a captured or refunded amount. So nothing
// here moves an order: the types that are known carry no fact.
//
// The source is worth having where one endpoint gets both, or where the events are
// to be kept.
//
// https://docs.adyen.com/platforms/payment-webhooks
var AdyenPlatform = &Gateway{
	Name:     "adyen-platform",
	Title:    "Adyen for Platforms",
	Docs:     "https://docs.adyen.com/development-resources/webhooks",
	Scheme:   "adyen-platform",
	Evidence: Solid,
	Manual: Manual{
		Secret:   "Customer Area, or the Balance Platform's → Developers → Webhooks → the webhook → HMAC key (64 hexadecimal digits).",
		EventID:  "A hash of the body: not every webhook has an id of its own, and a repetition has the same bytes.",
		Retries:  "After 9, 18 and 27 s, then with pauses of 2 minutes up to 8 hours, for 30 days. The queue of an endpoint waits for the delivery that failed.",
		Ordering: "None is promised.",
		Notes: "These webhooks move no order: they tell of accounts and transfers, one for each split of a payment. Payments come with standard notifications: use gateway `adyen` for those. " +
			"Not confirmed: that a retry repeats the bytes. `balancePlatform.authorisation.relayed` wants a decision in the answer, which we do not give: do not send it here.",
	},
	Covers: Coverage{Of: "body"},
	// https://docs.adyen.com/development-resources/webhooks/handle-webhook-events
	Deadline:             10 * time.Second,
	QuarantineUnreadable: true,
	KeepHeaders:          []string{"Content-Type", "User-Agent", "Hmacsignature"},
	Options:              []Option{optionSecrets},
	Parse:                adyenPlatform.parse,
	Types:                adyenPlatform.rows.types,
	Sample:               sampleAdyenPlatform,
	Example: func(seed string) Source {
		return Source{Gateway: "adyen-platform", Mode: Test, Secrets: []string{derive(64, "adyen-platform", seed)}}
	},
}

// noFact is how a type is read that is known and moves nothing.
func noFact(*reader) {}

var adyenPlatform = layout{
	typ: "/type",
	at: func(r *reader) time.Time {
		if at := r.date("/timestamp"); !at.IsZero() {
			return at
		}
		return r.date("/createdAt") // of the management API
	},
	rows: eventRows{
		{"balancePlatform.transfer.created", "money is to move on the platform", order.StrengthModification, noFact},
		{"balancePlatform.transfer.updated", "the movement of money went on", order.StrengthModification, noFact},
		{"balancePlatform.transaction.created", "money was booked on a balance account", order.StrengthModification, noFact},
		{"balancePlatform.accountHolder.created", "an account holder was created", order.StrengthModification, noFact},
		{"balancePlatform.accountHolder.updated", "an account holder changed", order.StrengthModification, noFact},
		{"balancePlatform.balanceAccount.created", "a balance account was created", order.StrengthModification, noFact},
		{"balancePlatform.balanceAccount.updated", "a balance account changed", order.StrengthModification, noFact},
		{"balancePlatform.balanceAccountSweep.created", "a sweep of a balance account was set up", order.StrengthModification, noFact},
		{"balancePlatform.balanceAccountSweep.updated", "a sweep of a balance account changed", order.StrengthModification, noFact},
		{"balancePlatform.paymentInstrument.created", "a card or account number was issued", order.StrengthModification, noFact},
		{"balancePlatform.paymentInstrument.updated", "an issued card or account number changed", order.StrengthModification, noFact},
		{"balancePlatform.report.created", "a report can be downloaded", order.StrengthModification, noFact},
		{"merchant.created", "a merchant account was created", order.StrengthModification, noFact},
		{"merchant.updated", "a merchant account changed", order.StrengthModification, noFact},
		{"paymentMethod.created", "a payment method was added to a merchant account", order.StrengthModification, noFact},
	},
}

// sampleAdyenPlatform makes a webhook with what all of them have.
func sampleAdyenPlatform(r SampleRequest) ([]byte, error) {
	if adyenPlatform.rows.find(r.Type) == nil {
		return nil, unknownSample("adyen-platform", r.Type, adyenPlatform.rows.types(r.Source))
	}
	r = r.withDefaults()
	n, err := adyenExponents.theirs(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	id := r.ID
	if id == "" {
		id = r.paymentID("", 16)
	}
	return render(fields{
		"type": r.Type, "environment": r.Mode, "timestamp": r.At.Format(time.RFC3339),
		"data": fields{
			"balancePlatform": "ExamplePlatform", "id": id, "reference": r.Reference, "status": "captured", "category": "platformPayment",
			"amount": fields{"value": n, "currency": r.Amount.Currency}, "sequenceNumber": 1,
		},
	}, r.Set, same)
}
