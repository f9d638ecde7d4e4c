package bank

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

// adyenAPI is the modifications of Adyen's Checkout API.
//
//   - All of them are only "received" (https://docs.adyen.com/online-payments/capture, …/refund, …/cancel): whether they are done
//     a webhook tells, with success true or false. What is refused there, like more than is left, is never in the books.
//   - Keys: https://docs.adyen.com/development-resources/api-idempotency. A call under way is answered 409 or 422 (here by the
//     key) with error 704 and transient-error: true. Any answer without that header is the final one for its key, failures too.
//     What another body under a known key gets is not documented: here error 704, which is final.
//   - Errors: https://docs.adyen.com/development-resources/error-codes.
//   - The id that the caller gives is reference, the merchantReference of the webhook. Without one it is the payment's.
//   - There is no list, and nothing to read.
var adyenAPI = api{
	needs: func(s gateway.Source) string {
		if s.AccessToken == "" {
			return "access_token"
		}
		return ""
	},
	open: adyenOpen, refuse: adyenRefuse, find: adyenFind,
	keyHeader: "Idempotency-Key", keyLife: 7 * 24 * time.Hour,
	keyed:    func(r *request) bool { return r.method == http.MethodPost },
	print:    func(r *request) string { return r.path + "\n" + string(r.body) },
	keeps:    func(reply) bool { return true }, // transient errors come before there is anything to keep
	replayed: func(c *call, rep reply) reply { return rep.with("Idempotency-Key", c.key) },
	busy: func(c *call) reply {
		status := http.StatusConflict
		if c.a.bank.draw("status", c.key)%2 == 0 {
			status = http.StatusUnprocessableEntity
		}
		return adyenError(status, "704", "validation", "request already processed or in progress").with("transient-error", "true")
	},
	reused: func(*call, *entry) reply {
		return adyenError(http.StatusUnprocessableEntity, "704", "validation", "request already processed or in progress")
	},
	denied: func(*call) reply { return adyenStranger() },
	tooMany: func(*call) reply {
		return adyenError(http.StatusTooManyRequests, "000", "configuration", "Too many requests").with("Retry-After", "2").with("transient-error", "true")
	},
	failed: func(*call) reply {
		return adyenError(http.StatusServiceUnavailable, "703", "internal", "required resource temporarily unavailable").with("transient-error", "true")
	},
	kept: func(*call) reply {
		return adyenError(http.StatusInternalServerError, "701", "internal", "server could not process request")
	},
}

// adyenExponents: https://docs.adyen.com/development-resources/currency-codes, where they differ from ISO 4217.
var adyenExponents = map[string]int{"CLP": 2, "CVE": 0, "IDR": 0, "ISK": 2}

func adyenError(status int, code, kind, message string) reply {
	return answer(status, fields{"status": status, "errorCode": code, "message": message, "errorType": kind})
}

func adyenStranger() reply {
	return adyenError(http.StatusUnauthorized, "000", "security", "HTTP Status Response - Unauthorized")
}

func adyenRefuse(a *account, r *request) *reply {
	if r.header.Get("X-Api-Key") == a.src.AccessToken {
		return nil
	}
	rep := adyenStranger()
	return &rep
}

func (a *account) adyenMerchant() string {
	if len(a.src.MerchantAccounts) > 0 {
		return a.src.MerchantAccounts[0]
	}
	return "TestMerchant"
}

func adyenOpen(a *account, p *payment, n string) error {
	if !p.Captured && a.src.Capture != gateway.CaptureManual {
		return fmt.Errorf("bank: source %s captures by itself what is authorized (capture: automatic)", a.src.ID)
	}
	p.id = derive(16, "payment", a.src.ID, p.Reference, n)
	a.adyenTell("AUTHORISATION", p, p.id, p.Reference, p.Amount.Minor, "")
	if !p.Captured {
		return nil
	}
	m := &move{Movement: Movement{
		Kind: order.MovementCapture, Amount: p.Amount, Status: order.StatusOK, Opening: true, At: p.created,
		Ref: derive(16, "capture", a.src.ID, p.id, "opening"),
	}}
	p.moves = append(p.moves, m)
	if a.src.Capture == gateway.CaptureManual { // by itself it captures without a word, unless it is asked to tell
		a.adyenTell("CAPTURE", p, m.Ref, p.Reference, p.Amount.Minor, "")
	}
	return nil
}

var adyenPath = regexp.MustCompile(`^(?:/checkout)?/v[0-9]+/payments/([^/]+)/(captures|refunds|cancels)$`)

var adyenKinds = map[string]Kind{"captures": Capture, "refunds": Refund, "cancels": Void}

func adyenFind(a *account, r *request) (*operation, *reply) {
	m := adyenPath.FindStringSubmatch(r.path)
	if m == nil || r.method != http.MethodPost {
		return nil, &reply{status: http.StatusNotFound}
	}
	p := a.ids[m[1]]
	if p != nil && p.id != m[1] {
		p = nil // a modification's own reference is no payment
	}
	refuse := func(status int, code, kind, message string) (*operation, *reply) {
		rep := adyenError(status, code, kind, message)
		return nil, &rep
	}
	if !gjson.ValidBytes(r.body) {
		return refuse(http.StatusBadRequest, "702", "validation", "Structure of the request is not valid JSON")
	}
	body := gjson.ParseBytes(r.body)
	if merchant := body.Get("merchantAccount").String(); len(a.src.MerchantAccounts) > 0 && !slices.Contains(a.src.MerchantAccounts, merchant) {
		return refuse(http.StatusForbidden, "901", "security", "Invalid Merchant Account")
	}
	return &operation{kind: adyenKinds[m[2]], about: p, do: func(c *call) reply { return adyenModify(c, m[2], body) }}, nil
}

// adyenModify takes a modification on, and says by webhook what became of it.
func adyenModify(c *call, what string, body gjson.Result) reply {
	p := c.op.about
	final := func(code, message string) reply {
		return adyenMark(c, adyenError(http.StatusUnprocessableEntity, code, "validation", message))
	}
	if p == nil {
		return final("167", "Original pspReference required for this operation")
	}
	amount, whole := body.Get("amount"), order.Amount{Minor: p.Amount.Minor, Currency: p.Amount.Currency}
	if what != "cancels" {
		minor, ok := ours(adyenExponents, amount.Get("value").Int(), p.Amount.Currency)
		switch {
		case !amount.Exists():
			return final("100", "Required object 'amount' is not provided.")
		case !ok || minor <= 0 || amount.Get("currency").String() != p.Amount.Currency:
			return final("137", "Invalid amount specified")
		}
		whole.Minor = minor
	}
	given := body.Get("reference").String()
	ref := derive(16, what, c.a.src.ID, p.id, given, c.key, fmt.Sprint(len(p.moves)))
	m := &move{Movement: Movement{Amount: whole, Given: given, Ref: ref}}
	told := given
	if told == "" {
		told = p.Reference
	}
	switch what {
	case "captures":
		m.Kind = order.MovementCapture
		c.adyenOutcome("CAPTURE", p, m, told, func() error {
			left, err := p.capturable()
			return enough(left, err, m.Amount.Minor)
		})
	case "refunds":
		m.Kind = order.MovementRefund
		c.adyenOutcome("REFUND", p, m, told, func() error {
			left, err := p.refundable(nil)
			return enough(left, err, m.Amount.Minor)
		})
	case "cancels":
		m.Kind = order.MovementVoid
		c.adyenOutcome("CANCELLATION", p, m, told, func() error {
			if p.voided || p.captured() > 0 {
				return errNothing
			}
			p.voided = true
			return nil
		})
	}
	resource := fields{"merchantAccount": c.a.adyenMerchant(), "paymentPspReference": p.id, "pspReference": ref, "reference": given, "status": "received"}
	if what != "cancels" {
		resource["amount"] = raw([]byte(amount.Raw))
	}
	return adyenMark(c, answer(http.StatusCreated, resource))
}

// adyenMark puts the key of a call on its answer.
func adyenMark(c *call, rep reply) reply {
	if c.key == "" {
		return rep
	}
	return rep.with("Idempotency-Key", c.key)
}

// enough says what is wrong with an amount of which so much is left.
func enough(left int64, err error, n int64) error {
	if err == nil && n > left {
		return errTooMuch
	}
	return err
}

// adyenOutcome does a modification if it can be done, and tells what became of it.
func (c *call) adyenOutcome(code string, p *payment, m *move, reference string, try func() error) {
	if err := try(); err != nil {
		c.a.adyenTell(code, p, m.Ref, reference, m.Amount.Minor, "Insufficient balance on payment")
		return
	}
	told := func() { c.a.adyenTell(code, p, m.Ref, reference, m.Amount.Minor, "") }
	if m.Kind != order.MovementRefund {
		c.enter(p, m)
		told()
		return
	}
	c.refund(p, m, told, func() {
		if m.Status == order.StatusFailed {
			c.a.adyenTell("REFUND_FAILED", p, m.Ref, reference, m.Amount.Minor, "")
		}
	})
}

// adyenTell enters a notification. A reason makes it one of something that was not done.
func (a *account) adyenTell(code string, p *payment, psp, reference string, minor int64, reason string) {
	n := theirs(adyenExponents, order.Amount{Minor: minor, Currency: p.Amount.Currency})
	a.emit(p, code, func(_ string, at time.Time) (body, listed []byte) {
		item := fields{
			"additionalData": fields{}, "amount": fields{"currency": p.Amount.Currency, "value": n}, "eventCode": code,
			"eventDate": at.Format("2006-01-02T15:04:05-07:00"), "merchantAccountCode": a.adyenMerchant(), "merchantReference": reference,
			"paymentMethod": "visa", "pspReference": psp, "reason": reason, "success": fmt.Sprint(reason == ""),
		}
		if psp != p.id {
			item["originalReference"] = p.id
		}
		live := strings.ToLower(fmt.Sprint(a.src.Mode == gateway.Live))
		return encode(fields{"live": live, "notificationItems": []any{fields{"NotificationRequestItem": item}}}), nil
	})
}
