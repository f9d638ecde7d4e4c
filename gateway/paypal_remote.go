package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/paidonce/paidonce/signature"
)

// Values of [Source].VerifyBy.
const (
	verifyByCertificate = "certificate"
	verifyByAPI         = "api"
)

// PayPal's API. https://developer.paypal.com/api/rest/requests/
const (
	paypalLive    = "https://api-m.paypal.com"
	paypalSandbox = "https://api-m.sandbox.paypal.com"
)

var paypalRemote = Remote{
	Live: paypalLive,
	Test: paypalSandbox,
	Key:  paypalKey,
	Secret: func(s Source, key string) string {
		return s.WebhookID + ":" + key
	},
	Ask:      askPayPal,
	Answered: answeredPayPal,
	Example: func(s Source) (KeyRef, []byte) {
		host := "https://api.sandbox.paypal.com"
		if s.Mode == Live {
			host = paypalLiveHost
		}
		return KeyRef{URL: host + "/v1/notifications/certs/CERT-example", CommonName: paypalName}, []byte(paypalExampleCert)
	},
}

const (
	paypalLiveHost = "https://api.paypal.com"

	// paypalName is what the common name of PayPal's certificates ends with, as
	// https://github.com/paypal/PayPal-Python-SDK checks it.
	paypalName = ".paypal.com"
)

// paypalKey is where the certificate of a delivery is. A URL that is not exactly
// one of PayPal's own is refused before anybody calls it.
func paypalKey(s Source, d Delivery) (KeyRef, error) {
	at, err := signature.PayPalCertURL(d.Header)
	if err != nil {
		return KeyRef{}, err
	}
	if s.Mode == Live && !strings.HasPrefix(at, paypalLiveHost+"/") {
		return KeyRef{}, paypalRefusal(signature.Malformed, "the certificate is of the sandbox, and the source is live")
	}
	return KeyRef{URL: at, CommonName: paypalName}, nil
}

func paypalRefusal(reason signature.Reason, detail string) *signature.Error {
	return &signature.Error{Scheme: "paypal", Reason: reason, Detail: detail}
}

// askPayPal has PayPal verify the delivery. The event must arrive as it came,
// byte for byte, so it is put between the other fields as it is.
// https://developer.paypal.com/docs/api/webhooks/v1/#verify-webhook-signature_post
func askPayPal(s Source, d Delivery) (Call, bool, error) {
	if s.VerifyBy != verifyByAPI {
		return Call{}, false, nil
	}
	if _, err := paypalKey(s, d); err != nil {
		return Call{}, true, err
	}
	if !json.Valid(d.Body) {
		return Call{}, true, paypalRefusal(signature.Malformed, "the body is not JSON")
	}
	ask := map[string]string{"webhook_id": s.WebhookID}
	for field, name := range map[string]string{
		"auth_algo": "Paypal-Auth-Algo", "cert_url": "Paypal-Cert-Url", "transmission_id": "Paypal-Transmission-Id",
		"transmission_sig": "Paypal-Transmission-Sig", "transmission_time": "Paypal-Transmission-Time",
	} {
		values := valuesOf(d.Header, name)
		switch {
		case len(values) == 0 || values[0] == "":
			return Call{}, true, paypalRefusal(signature.Missing, "no "+strings.ToUpper(name))
		case len(values) > 1:
			return Call{}, true, paypalRefusal(signature.Ambiguous, "more than one "+strings.ToUpper(name))
		}
		ask[field] = values[0]
	}
	if err := paypalAge(s, ask["transmission_time"], d.ReceivedAt); err != nil {
		return Call{}, true, err
	}
	text, err := json.Marshal(ask)
	if err != nil {
		return Call{}, true, err
	}
	body := append(bytes.TrimSuffix(text, []byte("}")), `,"webhook_event":`...)
	body = append(append(body, d.Body...), '}')
	return Call{
		Method: http.MethodPost, Path: "/v1/notifications/verify-webhook-signature", Body: body,
		Header: http.Header{"Content-Type": {"application/json"}},
		Grant:  paypalGrant(s),
	}, true, nil
}

// paypalGrant gets a token for the app.
// https://developer.paypal.com/api/rest/authentication/
func paypalGrant(s Source) *Call {
	return &Call{
		Method: http.MethodPost, Path: "/v1/oauth2/token", Body: []byte("grant_type=client_credentials"),
		Header: http.Header{
			"Content-Type":  {"application/x-www-form-urlencoded"},
			"Authorization": {basicHeader(s.ClientID + ":" + s.ClientSecret)},
		},
	}
}

// paypalReady returns why PayPal's API cannot be called for a source.
func paypalReady(s Source) error {
	if s.ClientID == "" || s.ClientSecret == "" {
		return &OptionError{"client_id", "and client_secret, of the app, are missing: PayPal's API is called with them"}
	}
	return nil
}

// paypalAge holds a delivery that PayPal will be asked about to the source's
// tolerance. That the time was signed, PayPal says.
func paypalAge(s Source, signed string, now time.Time) error {
	if s.Tolerance == 0 {
		return nil
	}
	at, err := time.Parse(time.RFC3339, signed)
	if err != nil {
		return paypalRefusal(signature.Malformed, "the time is not a plain date")
	}
	switch skew := now.Sub(at); {
	case skew > s.Tolerance:
		return &signature.Error{Scheme: "paypal", Reason: signature.Stale, Skew: skew, Tolerance: s.Tolerance}
	case skew < -s.Tolerance:
		return &signature.Error{Scheme: "paypal", Reason: signature.Future, Skew: skew, Tolerance: s.Tolerance}
	}
	return nil
}

// answeredPayPal: what is neither of the two documented words says nothing about
// the delivery, and is no *signature.Error.
func answeredPayPal(a Answer) error {
	doc, fault := parseJSON(a.Body)
	if fault != nil {
		return fault
	}
	o, err := doc.members([]string{"verification_status"})
	if err != nil {
		return err
	}
	switch o.get("verification_status").Str {
	case "SUCCESS":
		return nil
	case "FAILURE":
		return paypalRefusal(signature.Mismatch, "PayPal says that it did not sign this")
	}
	return errors.New("the answer has no verification_status")
}

// valuesOf returns all values of a header, however its name is spelt.
func valuesOf(h http.Header, name string) []string {
	var all []string
	for key, values := range h {
		if strings.EqualFold(key, name) {
			all = append(all, values...)
		}
	}
	return all
}
