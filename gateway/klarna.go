package gateway

import (
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// Klarna maps the webhooks of the Klarna network (payment requests and disputes).
// Its rules:
//
//   - The event comes wrapped, {metadata, payload}, or flat. What metadata says
//     counts where it is there.
//   - A payment is known by payment_request_id; payment_transaction_id is its other
//     name, under which alone disputes know it.
//   - payment.request.state-change.completed says that the shopper approved. No
//     money is authorised before the merchant's own call made a transaction of it,
//     and none is captured before another call. No webhook whose fields could be
//     confirmed tells of that money, so that none is counted here.
//   - A dispute has an amount when it begins, and may have none when it ends. One
//     that was lost without saying how much is put aside for a person.
//   - The reference is the merchant's own of the request, the transaction or the
//     purchase.
//   - metadata.live tells live from test.
//
// Classic Klarna Payments and Checkout push unsigned requests: they are another
// thing, and not taken.
//
// Disputes: https://github.com/klarna (SDK, payment-dispute-state-change); states of
// requests: https://docs.klarna.com/klarna-network-distribution/payments
var Klarna = &Gateway{
	Name:     "klarna",
	Title:    "Klarna",
	Docs:     "https://docs.klarna.com/acquirer/klarna-direct/",
	Scheme:   "klarna",
	Evidence: Usable,
	Manual: Manual{
		Secret:   "Klarna Partner Portal → Webhooks → signing keys (or by the API): the key is shown once, when it is made. `Klarna-Signing-Key-Id` names it in a delivery.",
		EventID:  "`event_id` of the metadata.",
		Retries:  "With growing pauses, for up to 12 hours, until the answer is 200, 201, 202 or 204.",
		Ordering: "None is promised; each event says when it occurred.",
		Notes: "**No webhook here pays an order.** `payment.request.state-change.completed` is the shopper's approval only: the money is authorised and captured by your own calls of Klarna's API, " +
			"and their answers are what tells that an order is paid. Not confirmed: the fields of `payment.transaction.*`, which are therefore kept and ignored, the deadline, " +
			"and which field of a payment request holds the merchant's reference (`payment_request_reference` and `purchase_reference` are looked at; `reference` overrides).",
	},
	Covers: Coverage{Of: "body"},
	// Klarna's pages that could be read name none.
	Deadline:    10 * time.Second,
	KeepHeaders: []string{"Content-Type", "User-Agent", "Klarna-Signature", "Klarna-Signing-Key-Id"},
	Options:     []Option{optionSecrets, optionAccounts},
	Parse:       parseKlarna,
	Types:       klarnaWrapped.rows.types,
	Sample:      sampleKlarna,
	Example: func(seed string) Source {
		return Source{Gateway: "klarna", Mode: Test, Secrets: []string{exampleSecret("klarna", seed)}}
	},
}

var klarnaRows = eventRows{
	{"payment.request.state-change.submitted", "a payment was asked for", order.StrengthPayment, klarnaRequest(order.StatusProcessing)},
	{"payment.request.state-change.in-progress", "the shopper is on Klarna's pages", order.StrengthPayment, klarnaRequest(order.StatusProcessing)},
	{"payment.request.state-change.completed", "the shopper approved; no money is authorised yet", order.StrengthPayment, klarnaRequest(order.StatusProcessing)},
	{"payment.request.state-change.authorized", "the payment was authorised (older versions)", order.StrengthPayment, klarnaRequest(order.StatusAuthorized)},
	{"payment.request.state-change.declined", "Klarna declined", order.StrengthPayment, klarnaRequest(order.StatusFailed)},
	{"payment.request.state-change.canceled", "the payment was canceled", order.StrengthPayment, klarnaRequest(order.StatusCanceled)},
	{"payment.request.state-change.expired", "the shopper did not finish in time", order.StrengthPayment, klarnaRequest(order.StatusExpired)},
	{"payment.dispute.state-change.initiated", "the shopper disputes a payment", order.StrengthModification, klarnaDispute},
	{"payment.dispute.state-change.closed", "a dispute was decided", order.StrengthModification, klarnaDispute},
}

// klarnaSilent are known and move nothing: a dispute that goes on stays open.
var klarnaSilent = []string{
	"payment.dispute.state-change.representment", "payment.dispute.state-change.pre-arbitration", "payment.dispute.state-change.arbitration",
	"payment.dispute.updated", "payment.transaction.state-change.authorized", "payment.transaction.state-change.completed",
	"payment.transaction.state-change.expired", "payment.transaction.state-change.closed",
}

// The two shapes of a body.
var (
	klarnaWrapped = klarnaLayout("/metadata")
	klarnaFlat    = klarnaLayout("")
)

func klarnaLayout(meta string) layout {
	return layout{
		id: meta + "/event_id", typ: meta + "/event_type", rows: klarnaRows, silent: klarnaSilent,
		at: func(r *reader) time.Time { return r.date(meta + "/occurred_at") },
		misfit: func(r *reader) order.Misfit {
			live := r.at(meta + "/live")
			if live.isTrue() && r.source.Mode != Live || live.isFalse() && r.source.Mode == Live {
				return order.MisfitMode
			}
			if len(r.source.MerchantAccounts) == 0 || r.account(meta+"/merchant_id") == "" || r.account(meta+"/subject_account_id") == "" {
				return ""
			}
			return order.MisfitAccount
		},
	}
}

func parseKlarna(s Source, d Delivery) ([]order.Event, error) {
	doc, fault := parseJSON(d.Body)
	if fault != nil {
		return nil, fault
	}
	meta, err := doc.at("/metadata")
	if err != nil {
		return nil, parseError("duplicate_key", "%v", err)
	}
	if meta.IsObject() {
		return klarnaWrapped.read(s, doc, d.Body)
	}
	return klarnaFlat.read(s, doc, d.Body)
}

// klarnaAt is where the object of the event begins: in payload, or at the root.
func klarnaAt(r *reader) string {
	if r.at("/payload").IsObject() {
		return "/payload"
	}
	return ""
}

// klarnaReference is the merchant's own name of what the event is about.
func klarnaReference(r *reader, at string) {
	r.Reference = r.first(at+"/payment_request_reference", at+"/payment_transaction_reference", at+"/purchase_reference")
}

// klarnaRequest: a payment request, in the order of its events. One that was
// authorised names its transaction.
func klarnaRequest(phase order.Status) func(*reader) {
	return func(r *reader) {
		at := klarnaAt(r)
		r.Payment = []string{
			r.text(at + "/payment_request_id"), r.first(at+"/payment_transaction_id", at+"/state_context/payment_transaction_id"),
		}
		klarnaReference(r, at)
		r.phase(phase, r.order())
	}
}

// klarnaDispute: open when it begins; when it is closed the outcome decides, and
// the money at stake must be known if it was lost.
func klarnaDispute(r *reader) {
	at := klarnaAt(r)
	r.Payment = []string{r.text(at + "/payment_transaction_id")}
	klarnaReference(r, at)
	f := order.Fact{Kind: order.KindDisputed, Ref: r.text(at + "/payment_dispute_id"), Status: order.StatusOpen, Seq: r.order()}
	if strings.HasSuffix(r.Type, ".closed") {
		switch r.at(at + "/dispute_outcome").Str {
		case "WON":
			f.Status = order.StatusWon
		case "LOST":
			f.Status = order.StatusLost
		default:
			r.fail("%s/dispute_outcome is neither WON nor LOST", at)
		}
	}
	details := at + "/dispute_details"
	if f.Status == order.StatusWon && r.at(details).absent() {
		r.add(f, order.Amount{}) // nothing is lost, however much it was
		return
	}
	r.add(f, r.minor(details+"/dispute_amount", r.currency(details+"/currency")))
}

// sampleKlarna makes a webhook in the wrapped shape.
func sampleKlarna(r SampleRequest) ([]byte, error) {
	if klarnaRows.find(r.Type) == nil {
		return nil, unknownSample("klarna", r.Type, klarnaRows.types(r.Source))
	}
	r = r.withDefaults()
	n, err := exponents(nil).theirs(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	request := r.paymentID("krn:payment:eu1:request:", 32)
	transaction := "krn:payment:eu1:authorization:" + derive(32, "klarna transaction", request)
	at, state := r.At.Format(time.RFC3339), r.Type[strings.LastIndexByte(r.Type, '.')+1:]
	payload := fields{"state": strings.ToUpper(strings.ReplaceAll(state, "-", "_")), "updated_at": at}
	if strings.HasPrefix(r.Type, "payment.dispute.") {
		if r.Payment != "" {
			transaction = r.Payment
		}
		payload["payment_transaction_id"], payload["payment_transaction_reference"] = transaction, r.Reference
		payload["payment_dispute_id"] = r.refID("krn:network:eu1:payment:dispute:", 16, transaction)
		payload["dispute_details"] = fields{"dispute_amount": n, "currency": r.Amount.Currency, "created_by": "CUSTOMER"}
		if state == "closed" {
			payload["dispute_outcome"] = "LOST"
		}
	} else {
		payload["payment_request_id"], payload["payment_request_reference"] = request, r.Reference
		if state == "authorized" {
			payload["state_context"] = fields{"payment_transaction_id": transaction}
		}
	}
	account := "K000001"
	if len(r.Source.MerchantAccounts) > 0 {
		account = r.Source.MerchantAccounts[0]
	}
	id := r.ID
	if id == "" {
		id = strings.ToLower(derive(32, r.Type, request, r.Ref, r.Amount.Currency, r.At.String(), r.Mode))
	}
	return render(fields{
		"metadata": fields{
			"event_type": r.Type, "event_id": id, "event_version": "v2", "occurred_at": at, "merchant_id": account, "live": r.Mode == Live,
		},
		"payload": payload,
	}, r.Set, same)
}
