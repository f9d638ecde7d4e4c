package gateway

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/order"
)

// Redsys maps the online notification of Redsys (and of the banks that resell it):
// a form, or JSON, that holds base64 of JSON. Its rules:
//
//   - A payment is known by Ds_Order, which is the merchant's own number of it, and
//     so the reference too. Shops whose orders have other names put those into
//     Ds_MerchantData and set reference: /ds_merchantdata. Two merchant codes may
//     count alike, so that the code is a part of the payment's id.
//   - Ds_Response says whether it happened: 0000 to 0099 for payments, 0900 for
//     confirmations and refunds, 0400 for cancellations. A refusal of a payment is
//     one attempt of several; that of anything else says nothing.
//   - Captures and refunds go by their Ds_AuthorisationCode.
//   - There is no event id: it is made of what happened to the order.
//   - Names are read in any case, values are decoded from the form's escapes as
//     Redsys writes them (Ds_Date is 30%2F08%2F2022). Currencies are the numbers of
//     ISO 4217.
//   - Ds_Date and Ds_Hour have no zone. It is Spain's for all that is known, and as
//     nobody documents it, the event has no time.
//
// Codes: https://github.com/javiertury/redsys-easy (transaction-types,
// response-codes), which has them from Redsys' manual.
var Redsys = &Gateway{
	Name:     "redsys",
	Title:    "Redsys",
	Docs:     "https://pagosonline.redsys.es/desarrolladores-inicio/",
	Scheme:   "redsys",
	Evidence: Solid,
	Manual: Manual{
		Secret:   "Canales (the portal of Redsys) → the terminal → Ver clave: the key of SHA-256 (32 characters of base64), for SHA-512 its own.",
		EventID:  "Made of Ds_Order, Ds_TransactionType, Ds_Response, Ds_AuthorisationCode, amount, currency, Ds_Date and Ds_Hour: a notification has none.",
		Retries:  "None is documented: what is lost is lost. Compare with the portal's list of operations.",
		Ordering: "None is promised.",
		Notes: "Both versions of the signature are taken, `HMAC_SHA256_V1` and `HMAC_SHA512_V2`; SOAP is not. " +
			"The return of the shopper (URLOK) carries the same fields: it must not be the only thing that pays an order. " +
			"Operations that you make yourself (REST, the portal) may send nothing: look at their answers. " +
			"Not confirmed: the deadline, the zone of `Ds_Date`, that yen have no decimals, and that every partial confirmation and refund has an authorisation code of its own: those of one code count once.",
	},
	Covers: Coverage{Of: "fields", Fields: []string{"Ds_MerchantParameters"}},
	// Redsys names none.
	Deadline:    10 * time.Second,
	ContentType: formType,
	KeepHeaders: []string{"Content-Type", "User-Agent"},
	Options:     []Option{optionSecrets, optionAccounts},
	Parse:       parseRedsys,
	Types:       redsys.rows.types,
	Sample:      sampleRedsys,
	Example: func(seed string) Source {
		key := base64.StdEncoding.EncodeToString([]byte(exampleSecret("redsys", seed)[:24]))
		return Source{Gateway: "redsys", Mode: Test, Secrets: []string{key}}
	},
}

var redsys = layout{
	typ:  "/ds_transactiontype",
	made: redsysID,
	rows: eventRows{
		{"0", "a payment was authorised and captured, or refused", order.StrengthPayment, redsysCapture(true, 99)},
		{"1", "a preauthorisation, or its refusal", order.StrengthPayment, redsysAuthorize},
		{"2", "a preauthorisation was confirmed: the money was captured", order.StrengthModification, redsysCapture(false, 99, 900)},
		{"3", "a payment was refunded, in part or in full", order.StrengthModification, redsysRefund},
		{"5", "the first payment of a recurring one", order.StrengthPayment, redsysCapture(true, 99)},
		{"6", "a further payment of a recurring one", order.StrengthPayment, redsysCapture(true, 99)},
		{"7", "a payment was authenticated, to be confirmed later; no money is held", order.StrengthPayment, redsysAuthenticated},
		{"8", "an authenticated payment was confirmed: the money was captured", order.StrengthModification, redsysCapture(false, 99, 900)},
		{"9", "a preauthorisation was canceled", order.StrengthModification, redsysCancel},
		{"A", "a payment without authentication", order.StrengthPayment, redsysCapture(true, 99)},
		{"O", "a deferred authorisation, or its refusal", order.StrengthPayment, redsysAuthorize},
		{"P", "a deferred authorisation was confirmed: the money was captured", order.StrengthModification, redsysCapture(false, 99, 900)},
		{"Q", "a deferred authorisation was canceled", order.StrengthModification, redsysCancel},
	},
	misfit: func(r *reader) order.Misfit { return r.account("/ds_merchantcode") },
}

// redsysParams finds the parameters in a form or a JSON object, as text.
func redsysParams(body []byte) (string, *ParseError) {
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return formField(body, "Ds_MerchantParameters")
	}
	doc, fault := parseJSON(body)
	if fault != nil {
		return "", fault
	}
	top, err := doc.members([]string{"Ds_MerchantParameters"})
	if err != nil {
		return "", parseError("duplicate_key", "%v", err)
	}
	return top.get("Ds_MerchantParameters").Str, nil
}

// redsysBase64 decodes either alphabet, with or without padding.
func redsysBase64(text string) ([]byte, error) {
	plain := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	return base64.RawStdEncoding.DecodeString(plain)
}

func parseRedsys(s Source, d Delivery) ([]order.Event, error) {
	params, fault := redsysParams(d.Body)
	if fault != nil {
		return nil, fault
	}
	text, err := redsysBase64(params)
	if err != nil || len(text) == 0 {
		return nil, parseError("shape", "Ds_MerchantParameters is missing or not base64")
	}
	doc, fault := parseJSON(text)
	if fault != nil {
		return nil, fault
	}
	return redsys.read(s, redsysDecoded(doc), text)
}

// redsysDecoded is the same object with names in lower case, and values that are
// decoded text.
func redsysDecoded(doc value) value {
	var out []byte
	doc.ForEach(func(key, member gjson.Result) bool {
		out = append(out, ',')
		out = gjson.AppendJSONString(out, strings.ToLower(key.Str))
		out = append(out, ':')
		text := member.Str
		switch member.Type {
		case gjson.Number:
			text = member.Raw
		case gjson.String:
			if plain, err := url.QueryUnescape(text); err == nil {
				text = plain
			}
		default:
			out = append(out, member.Raw...)
			return true
		}
		out = gjson.AppendJSONString(out, text)
		return true
	})
	if len(out) > 0 {
		out = out[1:]
	}
	return value{gjson.ParseBytes(append(append([]byte{'{'}, out...), '}'))}
}

func redsysID(r *reader) string {
	id := r.text("/ds_order")
	if r.broken() {
		return ""
	}
	for _, at := range []string{"transactiontype", "response", "authorisationcode", "amount", "currency", "date", "hour"} {
		id += ":" + strings.TrimSpace(r.at("/ds_"+at).Str)
	}
	return id
}

// redsysPayment reads what all notifications have: the order and the amount.
func redsysPayment(r *reader) order.Amount {
	id := r.text("/ds_order")
	r.Payment, r.Reference = []string{id}, id
	if merchant := r.first("/ds_merchantcode"); merchant != "" {
		r.Payment[0] = merchant + "/" + id
	}
	number := r.at("/ds_currency").Str
	cur, known := numericCurrencies()[strings.Repeat("0", max(0, 3-len(number)))+number]
	if !known {
		r.fail("/ds_currency is no number of ISO 4217")
	}
	return r.minorText("/ds_amount", cur)
}

// redsysAnswer is Ds_Response as a number.
func redsysAnswer(r *reader) int {
	text := r.at("/ds_response").Str
	n, err := strconv.Atoi(text)
	if err != nil || !isDigits(text) || len(text) > 4 {
		r.fail("/ds_response is no code")
		return -1
	}
	return n
}

// redsysOK reports whether a code is one of 0000 to below, or one of the others.
func redsysOK(code int, codes []int) bool {
	for i, ok := range codes {
		if code == ok || i == 0 && code >= 0 && code <= ok {
			return true
		}
	}
	return false
}

// redsysRef names an operation of an order.
func redsysRef(r *reader) string {
	if ref := strings.TrimSpace(r.at("/ds_authorisationcode").Str); ref != "" {
		return ref
	}
	return r.ID
}

// redsysRefused: a payment that was refused has failed, and one that waits for the
// shopper's bank (9998, 9999) has not.
func redsysRefused(r *reader, code int) {
	phase := order.StatusFailed
	if code == 9998 || code == 9999 {
		phase = order.StatusProcessing
	}
	r.phase(phase, 0)
}

// redsysCapture: codes are what says that it happened.
func redsysCapture(own bool, codes ...int) func(*reader) {
	return func(r *reader) {
		m, code := redsysPayment(r), redsysAnswer(r)
		if own {
			r.own(m)
		}
		switch {
		case redsysOK(code, codes):
			r.add(order.Fact{Kind: order.KindCaptured, Ref: redsysRef(r), Status: order.StatusOK}, m)
		case own:
			redsysRefused(r, code)
		}
	}
}

func redsysAuthorize(r *reader) {
	m, code := redsysPayment(r), redsysAnswer(r)
	r.own(m)
	if !redsysOK(code, []int{99}) {
		redsysRefused(r, code)
		return
	}
	r.phase(order.StatusAuthorized, 0)
	r.add(order.Fact{Kind: order.KindAuthorized}, m)
}

// redsysAuthenticated: the shopper was recognised. No money is held for it, so that
// the confirmation may yet be refused.
func redsysAuthenticated(r *reader) {
	m, code := redsysPayment(r), redsysAnswer(r)
	r.own(m)
	if !redsysOK(code, []int{99}) {
		redsysRefused(r, code)
		return
	}
	r.phase(order.StatusProcessing, 0)
}

func redsysRefund(r *reader) {
	m, code := redsysPayment(r), redsysAnswer(r)
	if redsysOK(code, []int{99, 900}) {
		r.add(order.Fact{Kind: order.KindRefunded, Ref: redsysRef(r), Status: order.StatusOK}, m)
	}
}

func redsysCancel(r *reader) {
	redsysPayment(r)
	if redsysOK(redsysAnswer(r), []int{99, 400, 900}) {
		r.phase(order.StatusCanceled, 0)
	}
}

// sampleRedsys makes a form without its signature. What a request sets is set in
// the parameters: "Ds_Amount".
func sampleRedsys(r SampleRequest) ([]byte, error) {
	if redsys.rows.find(r.Type) == nil {
		return nil, unknownSample("redsys", r.Type, redsys.rows.types(r.Source))
	}
	r = r.withDefaults()
	n, err := exponents(nil).theirsText(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	response := map[string]string{"2": "0900", "3": "0900", "8": "0900", "P": "0900", "9": "0400", "Q": "0400"}[r.Type]
	if response == "" {
		response = "0000"
	}
	payment := r.Payment
	if payment == "" && r.Source.Reference == "" {
		payment = r.Reference // Ds_Order is both
	}
	if payment == "" {
		payment = "0001" + derive(8, "payment", r.Reference, r.Mode)
	}
	ref := derive(6, "authorisation", payment)
	if r.Type == "3" {
		ref = r.refID("", 6, payment)
	}
	merchant := "999008881"
	if len(r.Source.MerchantAccounts) > 0 {
		merchant = r.Source.MerchantAccounts[0]
	}
	text, err := render(fields{
		"Ds_Date": url.QueryEscape(r.At.Format("02/01/2006")), "Ds_Hour": url.QueryEscape(r.At.Format("15:04")), "Ds_Amount": n,
		"Ds_Currency": numericOf(r.Amount.Currency), "Ds_Order": payment, "Ds_MerchantCode": merchant, "Ds_Terminal": "001",
		"Ds_Response": response, "Ds_MerchantData": url.QueryEscape(r.Reference), "Ds_SecurePayment": "1", "Ds_TransactionType": r.Type,
		"Ds_Card_Country": "724", "Ds_AuthorisationCode": ref, "Ds_ConsumerLanguage": "1",
	}, r.Set, same)
	if err != nil {
		return nil, err
	}
	form := url.Values{"Ds_MerchantParameters": {base64.StdEncoding.EncodeToString(text)}, "Ds_SignatureVersion": {"HMAC_SHA256_V1"}}
	return []byte(form.Encode()), nil
}
