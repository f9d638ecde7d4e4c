package signature_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/paidonce/paidonce/signature"
)

// The fuzz targets below state two properties of each scheme: what was not signed
// with the secret is never accepted, and what Sign returns always is.

// unguessable is nobody's secret; no request made by a fuzzer is signed with it.
const (
	unguessableStripe   = "whsec_unguessable_7f3a"
	unguessableStandard = "whsec_dW5ndWVzc2FibGUtN2YzYS11bmd1ZXNzYWJsZS0="
	unguessableAdyen    = "7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3b"
)

func FuzzStripe(f *testing.F) {
	f.Add("t=1790000000,v1=00", []byte("{}"))
	f.Add("t=,v1=,=", []byte(""))
	f.Add("t=1790000000, v1=6087c00c0d5b9ea20a2dedaa7657b7e273f1c0928b9580518c834f390c3a0b91 ,,", []byte("{}"))
	for _, v := range readVectors(f) {
		if v.Provider == "stripe" {
			f.Add(v.Headers["Stripe-Signature"], []byte(v.Body))
		}
	}
	s, _ := signature.Lookup("stripe")
	secrets := []string{unguessableStripe}
	f.Fuzz(func(t *testing.T, value string, body []byte) {
		forged := signature.Request{Header: headers("Stripe-Signature", value), Body: body}
		if s.Verify(forged, secrets, now) == nil {
			t.Fatalf("accepted the forged header %q", value)
		}
		signed, err := s.Sign(body, unguessableStripe, now, signature.SignOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Verify(signature.Request{Header: signed.Header, Body: signed.Body}, secrets, now); err != nil {
			t.Fatalf("refused %q: %v", signed.Header, err)
		}
		// Whatever stands around a genuine header, it covers no other body.
		for _, h := range []http.Header{
			headers("Stripe-Signature", value+","+signed.Header.Get("Stripe-Signature")),
			headers("Stripe-Signature", signed.Header.Get("Stripe-Signature")+","+value),
		} {
			if s.Verify(signature.Request{Header: h, Body: append(body, 'x')}, secrets, now) == nil {
				t.Fatalf("accepted another body with %q", h)
			}
		}
	})
}

func FuzzStandard(f *testing.F) {
	f.Add("msg_1", "1790000000", "v1,AA== v1a,AA==", []byte("{}"))
	f.Add("", "", " , v1,", []byte("."))
	f.Add("msg", "1", "v1", []byte("a.1790000000.b.1.c"))
	for _, v := range readVectors(f) {
		if s, _ := v.scheme(); s != nil && s.Name == "standard" {
			h := v.request().Header
			f.Add(h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"), h.Get("Webhook-Signature"), []byte(v.Body))
		}
	}
	s, _ := signature.Lookup("standard")
	secrets := []string{unguessableStandard, publicSecret}
	f.Fuzz(func(t *testing.T, id, at, sigs string, body []byte) {
		forged := headers("Webhook-Id", id, "Webhook-Timestamp", at, "Webhook-Signature", sigs)
		err := s.Verify(signature.Request{Header: forged, Body: body}, []string{unguessableStandard}, now)
		if err == nil {
			t.Fatalf("accepted the forged headers %q", forged)
		}
		for _, secret := range []string{unguessableStandard, privateSecret} {
			signed, err := s.Sign(body, secret, now, signature.SignOptions{ID: id})
			if err != nil {
				continue // an id that cannot be verified
			}
			if err := s.Verify(signature.Request{Header: signed.Header, Body: signed.Body}, secrets, now); err != nil {
				t.Fatalf("refused %q: %v", signed.Header, err)
			}
			splitOnce(t, s, signed, secrets)
		}
	})
}

// splitOnce sees that the signed bytes are accepted as one id, time and body only.
func splitOnce(t *testing.T, s *signature.Scheme, signed signature.Signed, secrets []string) {
	t.Helper()
	id, at := signed.Header.Get("Webhook-Id"), signed.Header.Get("Webhook-Timestamp")
	parts := strings.Split(id+"."+at+"."+string(signed.Body), ".")
	for i := 1; i < len(parts)-1 && i < 40; i++ {
		h := signed.Header.Clone()
		h.Set("Webhook-Id", strings.Join(parts[:i], "."))
		h.Set("Webhook-Timestamp", parts[i])
		if h.Get("Webhook-Id") == id {
			continue
		}
		clock := now
		if n := json.Number(parts[i]); n != "" {
			if seconds, err := n.Int64(); err == nil {
				clock = time.Unix(seconds, 0)
			}
		}
		req := signature.Request{Header: h, Body: []byte(strings.Join(parts[i+1:], "."))}
		if s.Verify(req, secrets, clock) == nil {
			t.Fatalf("accepted %q as another message: %q", signed.Header, h)
		}
	}
}

// adyenReader reads a notification as the code after this package may: with
// encoding/json, which finds keys in any case and takes the last of two.
type adyenReader struct {
	NotificationItems []struct {
		NotificationRequestItem struct {
			PspReference        string `json:"pspReference"`
			OriginalReference   string `json:"originalReference"`
			MerchantAccountCode string `json:"merchantAccountCode"`
			MerchantReference   string `json:"merchantReference"`
			Amount              struct {
				Value    json.Number `json:"value"`
				Currency string      `json:"currency"`
			} `json:"amount"`
			EventCode      string `json:"eventCode"`
			Success        string `json:"success"`
			AdditionalData struct {
				HmacSignature string `json:"hmacSignature"`
			} `json:"additionalData"`
		}
	} `json:"notificationItems"`
}

func FuzzAdyen(f *testing.F) {
	f.Add([]byte(adyenBody))
	f.Add([]byte(adyenEnvelope(`{}`, `{"amount":null}`)))
	f.Add([]byte(adyenEnvelope(`{"success":"true","ſuccess":"false"}`)))
	f.Add([]byte(adyenEnvelope(`{"amount":{"value":1,"VALUE":2}}`)))
	f.Add([]byte(adyenEnvelope(` { "additionalData" : { "a\\\"b" : [ { "x" : "}" } ] , "hmacSignature" : null } } `)))
	for _, v := range readVectors(f) {
		if v.Provider == "adyen" {
			f.Add([]byte(v.Body))
		}
	}
	s, _ := signature.Lookup("adyen")
	f.Fuzz(func(t *testing.T, body []byte) {
		if s.Verify(signature.Request{Body: body}, []string{unguessableAdyen}, now) == nil {
			t.Fatalf("accepted the forged body %q", body)
		}
		signed, err := s.Sign(body, unguessableAdyen, now, signature.SignOptions{})
		if err != nil {
			return // no notification
		}
		if err := s.Verify(signature.Request{Body: signed.Body}, []string{unguessableAdyen}, now); err != nil {
			t.Fatalf("refused %q: %v", signed.Body, err)
		}
		again, err := s.Sign(signed.Body, unguessableAdyen, now, signature.SignOptions{})
		if err != nil || string(again.Body) != string(signed.Body) {
			t.Fatalf("signed again: %q, then %q, %v", signed.Body, again.Body, err)
		}
		// What others read is what was signed.
		var read adyenReader
		if err := json.Unmarshal(signed.Body, &read); err != nil {
			t.Fatalf("signed what nobody can read: %q: %v", signed.Body, err)
		}
		if len(read.NotificationItems) == 0 {
			t.Fatalf("signed a delivery without items: %q", signed.Body)
		}
		for _, n := range read.NotificationItems {
			i := n.NotificationRequestItem
			message := strings.Join([]string{
				i.PspReference, i.OriginalReference, i.MerchantAccountCode, i.MerchantReference,
				i.Amount.Value.String(), i.Amount.Currency, i.EventCode, i.Success,
			}, ":")
			if want := adyenSign(t, unguessableAdyen, message); i.AdditionalData.HmacSignature != want {
				t.Fatalf("a reader sees %q, which is not what was signed in %q", message, signed.Body)
			}
		}
	})
}

func FuzzBasic(f *testing.F) {
	f.Add("Basic YWR5ZW4tdXNlcjpwYTpzczox", "adyen-user:pa:ss:1")
	f.Add("basic  ", ":")
	f.Add("", "u:\xff")
	f.Fuzz(func(t *testing.T, value, userpass string) {
		if signature.CheckBasic(headers("Authorization", value), "user:unguessable-7f3a") == nil {
			t.Fatalf("accepted %q", value)
		}
		right := headers("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(userpass)))
		if err := signature.CheckBasic(right, userpass); (err == nil) != (strings.Index(userpass, ":") > 0) {
			t.Fatalf("%q: %v", userpass, err)
		}
	})
}
