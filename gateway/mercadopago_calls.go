package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// mercadoCalls moves the money of payments (/v1/payments). Its rules:
//
//   - Orders (/v1/orders) are not called: they are captured and canceled as a whole, whatever payments they have.
//   - An authorisation is captured once. What was not taken is let go, and the payment is of the lesser amount from then on.
//   - A refund carries the movement's id in its metadata. That Mercado Pago shows it again could not be confirmed: lookups do not
//     go by its absence.
//   - Refunds that are under way are answered with 400, as if they had failed, unless X-Render-In-Process-Refunds asks for them.
//     https://www.mercadopago.com.br/developers/en/docs/checkout-api/payment-management/cancellations-and-refunds/refund-pix
//   - How long a key is known is published for the refunds of orders only: 24 hours. That changes of a payment (PUT) look at keys is
//     published nowhere; they do not need one, since there is one capture at most, and one cancellation.
//     https://www.mercadopago.com.br/developers/en/docs/qr-code/resources/refund-errors
//
// https://www.mercadopago.com.br/developers/en/reference/chargebacks/_payments_id_refunds/post,
// https://www.mercadopago.com.br/developers/en/reference/payments/_payments_id/put
var mercadoCalls = Calls{
	Live: mercadoAPI, Test: mercadoAPI,
	KeyHeader: "X-Idempotency-Key",
	KeyLife:   24 * time.Hour,
	Ready:     mercadoReady,
	Make:      makeMercado,
	Authorize: func(s Source, c Call) Call { return withHeader(c, "Authorization", "Bearer "+s.AccessToken) },
	Read:      readMercado, Look: lookMercado, Found: foundMercado,
}

const mercadoAPI = "https://api.mercadopago.com"

// mercadoMark is the member of a refund's metadata that holds the movement's id.
const mercadoMark = "paidonce_transaction"

func mercadoReady(s Source) error {
	if s.AccessToken == "" {
		return &OptionError{"access_token", "is missing: Mercado Pago's API is called with it"}
	}
	return nil
}

// mercadoPaid is the payment of a movement.
func mercadoPaid(m order.Movement) (string, error) {
	if slices.ContainsFunc(m.Payment, func(id string) bool { _, ok := mercadoOrderOf(id); return ok }) {
		return "", callErrorf("the payment is of an order of Mercado Pago (/v1/orders), and these are not called: move its money there")
	}
	ids := slices.DeleteFunc(slices.Clone(m.Payment), func(id string) bool { return !mercadoKinds["payment"].MatchString(id) })
	if len(ids) != 1 {
		return "", callErrorf("the payment has %d ids that are of a payment of Mercado Pago, and one is needed", len(ids))
	}
	return ids[0], nil
}

// mercadoNumber is an amount as a JSON number, of exact digits: whole amounts have no decimals, which some currencies must not have.
func mercadoNumber(m order.Amount) (json.Number, error) {
	text, err := major(m.Minor, m.Currency)
	if err != nil {
		return "", callErrorf("the amount: %v", err)
	}
	if whole := wholeNumber(text); whole != "" {
		text = whole
	}
	return json.Number(text), nil
}

func makeMercado(_ Source, m order.Movement) (Call, error) {
	id, err := mercadoPaid(m)
	if err != nil {
		return Call{}, err
	}
	amount, err := mercadoNumber(m.Amount)
	if err != nil {
		return Call{}, err
	}
	c := Call{Method: http.MethodPut, Path: "/v1/payments/" + id, Header: http.Header{
		"Accept": {"application/json"}, "Content-Type": {"application/json"},
	}}
	var body any
	switch m.Kind {
	case order.MovementRefund:
		c.Method, c.Path = http.MethodPost, c.Path+"/refunds"
		c.Header.Set(mercadoRender, "true")
		body = struct {
			Amount   json.Number       `json:"amount"`
			Metadata map[string]string `json:"metadata"`
		}{amount, map[string]string{mercadoMark: m.ID}}
	case order.MovementCapture:
		body = struct {
			Capture bool        `json:"capture"`
			Amount  json.Number `json:"transaction_amount"`
		}{true, amount}
	case order.MovementVoid:
		body = struct {
			Status string `json:"status"`
		}{"cancelled"}
	default:
		return Call{}, callErrorf("there is no %q at Mercado Pago", m.Kind)
	}
	if c.Body, err = json.Marshal(body); err != nil {
		return Call{}, callErrorf("the body: %v", err)
	}
	return c, nil
}

// mercadoRender is the header with which refunds that are under way are shown.
const mercadoRender = "X-Render-In-Process-Refunds"

func readMercado(s Source, m order.Movement, r Reply) Verdict {
	if v, ok := statusVerdict(r); ok {
		return v
	}
	id, err := mercadoPaid(m)
	switch {
	case err != nil:
		return unsure(r, "it is not known what about")
	case r.Status == http.StatusOK, r.Status == http.StatusCreated:
	case r.Status/100 == 2:
		return unsure(r, "that is no answer to what was asked")
	default:
		return mercadoRefused(r)
	}
	if m.Kind != order.MovementRefund {
		v := mercadoStands(s, m, id, r)
		if v.Ruling != Done {
			return unsure(r, v.Detail)
		}
		return v
	}
	doc, fault := parseJSON(r.Body)
	if fault != nil {
		return unsure(r, "the answer cannot be read")
	}
	made := mercadoMade(doc, m, id)
	switch {
	case made.broken():
		return unsure(r, "the refund in the answer cannot be read")
	case !made.ours(m, id, made.marked == ""):
		return unsure(r, "the refund is another than was asked for")
	}
	return made.verdict()
}

// mercadoRefund is a refund as the API shows it by itself.
type mercadoRefundNow struct {
	draft
	id, of, word, marked string
	status               order.Status
	amount               order.Amount
}

// mercadoMade reads a refund, whose currency is the payment's. Its item has the version of a snapshot: when it was made.
// https://www.mercadopago.com.br/developers/en/reference/chargebacks/_payments_id_refunds_refund_id/get
func mercadoMade(v value, m order.Movement, payment string) *mercadoRefundNow {
	r := &mercadoRefundNow{}
	o := r.members(v, "the refund", "id", "payment_id", "amount", "status", "date_created", "metadata")
	var ok bool
	if r.id, ok = o.get("id").name(); !ok {
		r.fail("the id of the refund is missing or no plain text")
	}
	r.of, _ = o.get("payment_id").name()
	r.word, _ = o.get("status").kind()
	if r.status, ok = mercadoRefunds[r.word]; !ok || r.word == "" {
		r.fail("the status of the refund is none that a refund has")
	}
	if metadata := o.get("metadata"); metadata.IsObject() {
		r.marked = r.members(metadata, "the metadata", mercadoMark).get(mercadoMark).Str
	}
	r.amount = r.decimal(o.get("amount"), textValue(m.Amount.Currency), "the amount of the refund")
	r.At = rfc3339(o.get("date_created"))
	f := order.Fact{Kind: order.KindRefunded, Ref: r.id, Status: r.status}
	if !r.At.IsZero() {
		f.Seq = max(r.At.UnixMilli(), 0)
	}
	r.Type, r.Payment, r.Strength = "refund."+r.word, []string{payment}, order.StrengthModification
	r.add(f, r.amount)
	return r
}

// ours reports whether it is the refund of a movement: of its payment and amount, and marked, or as good as.
func (r *mercadoRefundNow) ours(m order.Movement, payment string, anyway bool) bool {
	return r.of == payment && r.amount == m.Amount && (r.marked == m.ID || anyway)
}

func (r *mercadoRefundNow) verdict() Verdict {
	if r.status == order.StatusFailed {
		return Verdict{Ruling: Declined, Code: codeWord(r.word), Detail: "the refund is " + r.word}
	}
	// The payment says what it comes to now, and goes on saying what becomes of the refund.
	return Verdict{Ruling: Done, Ref: r.id, Events: r.done(), Fetch: []Object{{"payment", r.Payment[0]}}}
}

// mercadoIssues are the codes of refusals that are more, or less, than a refusal.
var mercadoIssues = map[string]Ruling{
	"2018": Unsure, // The action requested is not valid for the current payment state: ours may have brought it there
	"2063": Unsure, // the same, of refunds
	"3005": Unsure, // Not valid action, the resource is in a state that does not allow this operation
	"2001": Later,  // Already posted the same request in the last minute

	// https://www.mercadopago.com.br/developers/en/docs/order/status-errors/integration-errors
	"idempotency_key_already_used": Reused, "refund_in_progress": Later,
}

// mercadoRefusals are the codes that nothing of ours can have brought about.
var mercadoRefusals = []string{
	"2000", "2024", "2032", "2085", "3012", "3024", "4040", "4041", "4211", "4248", "4291", "4292", "4293", "4294", "4295", "4296", "4297", "15016",
}

var mercadoWord = regexp.MustCompile(`^[0-9A-Za-z_]{1,60}$`)

// mercadoRefused reads a refusal: {"message","error","status","cause":[{"code","description"}]}. One whose code is not documented
// may be about what an earlier try did, or about a refund that is under way.
func mercadoRefused(r Reply) Verdict {
	code := mercadoCode(r.Body)
	ruling, known := mercadoIssues[code]
	switch {
	case known:
	case code == "": // it is not Mercado Pago that answered, or not as it documents
		return laterVerdict(r, "it answered %d, and names no error", r.Status)
	case r.Status == http.StatusConflict:
		ruling = Later
	case r.Status == http.StatusNotFound, slices.Contains(mercadoRefusals, code):
		ruling = Declined
	default:
		ruling = Unsure
	}
	if ruling == Later {
		return laterVerdict(r, "it answered %d%s", r.Status, coded("code", code))
	}
	return Verdict{Ruling: ruling, Code: code, Detail: fmt.Sprintf("it answered %d", r.Status) + coded("code", code)}
}

// mercadoCode is the first cause's code, else the error's name; "" if it has neither.
func mercadoCode(body []byte) string {
	doc, fault := parseJSON(body)
	if fault != nil {
		return ""
	}
	top, err := doc.members([]string{"error", "cause", "errors"})
	if err != nil {
		return ""
	}
	for _, list := range []string{"cause", "errors"} {
		for _, cause := range top.get(list).elements(1) {
			if c, err := cause.members([]string{"code"}); err == nil {
				if code, ok := c.get("code").name(); ok && mercadoWord.MatchString(code) {
					return code
				}
			}
		}
	}
	if name := strings.ReplaceAll(top.get("error").Str, " ", "_"); mercadoWord.MatchString(name) {
		return name
	}
	return ""
}
