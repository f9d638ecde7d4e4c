package signature

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/json"
)

// bodyTable are the schemes that sign the body and nothing else. They carry no
// time that could be trusted, so only the deduplication of events stands against
// a replay.
var bodyTable = []*Scheme{
	// Key: the client secret of the app; of webhooks made in the admin, the one
	// shown there. The newer "events" use the other header.
	ofBody("shopify", "https://shopify.dev/docs/apps/build/webhooks/subscribe/https",
		field{name: "X-Shopify-Hmac-Sha256", alt: "Shopify-Hmac-Sha256"}, base64Text,
		wellNot("the client secret of the app, or the one under Settings, Notifications, Webhooks", "shpat_", "shpca_", "shppa_", "shpua_")),
	ofBody("razorpay", "https://razorpay.com/docs/webhooks/validate-test/",
		field{name: "X-Razorpay-Signature"}, lowerHex,
		wellNot("the secret of the webhook, which you chose in the dashboard", "rzp_live_", "rzp_test_")),
	ofBody("gocardless", "https://developer.gocardless.com/api-reference/#webhooks-overview",
		field{name: "Webhook-Signature"}, hexText,
		wellNot("the secret of the webhook endpoint", "live_", "sandbox_")),
	ofBody("coinbase-commerce", "https://docs.cdp.coinbase.com/commerce/api-architecture/webhooks-security",
		field{name: "X-Cc-Webhook-Signature"}, lowerHex, wellText),
	ofBody("checkout", "https://www.checkout.com/docs/developer-resources/event-notifications/receive-webhooks",
		field{name: "Cko-Signature"}, hexText,
		wellNot("the signature key of the workflow's webhook action", "pk_")),
	ofBody("lemonsqueezy", "https://docs.lemonsqueezy.com/help/webhooks/signing-requests",
		field{name: "X-Signature"}, hexText,
		wellNot("the signing secret of the webhook", "eyJ")),
	// Key: the secret API key itself. Paystack's examples lately show a form with a
	// time (t=…,v1=kid:…) as well; it is not accepted, for where it is sent could not
	// be read.
	{
		Name: "paystack",
		Spec: "https://paystack.com/docs/payments/webhooks/#verify-event-origin",
		family: &inHeader{
			header: field{name: "X-Paystack-Signature"}, encoding: hexText, message: []part{{from: fromBody}},
			keys: &keyring{parse: textKey("", sha512.New)},
			well: wellNot("the secret API key, sk_live_… or sk_test_…", "pk_"),
		},
	},
	// Klarna-Signing-Key-Id says which key; all live ones are tried anyway.
	{
		Name: "klarna",
		Spec: "https://docs.klarna.com/api/webhooks/",
		family: &inHeader{
			header: field{name: "Klarna-Signature"}, encoding: hexText, message: []part{{from: fromBody}},
			names: field{name: "Klarna-Signing-Key-Id"},
			keys:  &keyring{parse: textKey("", sha256.New)},
			well:  wellNot("the signing key of the webhook, shown once when it is made", "klarna_live_api_", "klarna_test_api_"),
		},
	},
	// Unconfirmed: sources disagree on whether this is an HMAC in base64, one in
	// hexadecimal, or the secret itself. Only the first is accepted.
	ofBody("flutterwave-v4", "https://developer.flutterwave.com/docs/webhooks",
		field{name: "Flutterwave-Signature"}, base64Text,
		wellNot("the secret hash that you chose in the dashboard", "FLWSECK", "FLWPUBK")),
	ofBody("adyen-platform", "https://docs.adyen.com/development-resources/webhooks/secure-webhooks/verify-hmac-signatures",
		field{name: "Hmacsignature"}, base64Text, nil),
	// X-Mollie-Signature: sha256=06c4…
	// The prefix may be missing, and the header may be sent once per secret: so in
	// Mollie's PHP library. A request without it is one of the classic webhook,
	// which proves nothing.
	{
		Name: "mollie",
		Spec: "https://docs.mollie.com/reference/webhooks-best-practices",
		family: &inHeader{
			header:   field{name: "X-Mollie-Signature"},
			syntax:   syntax{sep: ',', cut: '=', trim: true, many: true, bare: "sha256"},
			encoding: lowerHex,
			message:  []part{{from: fromBody}},
			keys:     &keyring{parse: textKey("sha256", sha256.New)},
			well:     wellMollie,
		},
	},
	// The secondary one is made with the secret before the last change, for 24 h.
	{
		Name: "primer",
		Spec: "https://primer.io/docs/get-started/api-reference/configure-webhooks",
		family: &inHeader{
			header:   field{name: "X-Signature-Primary"},
			second:   field{name: "X-Signature-Secondary"},
			encoding: base64Text,
			message:  []part{{from: fromBody}},
			keys:     &keyring{parse: textKey("", sha256.New)},
			well:     wellText,
		},
	},
	// Event-Signature: 1/SHA256/5728…,2/SHA256/…
	// Unconfirmed: the page does not say how the signature is written, nor whether
	// the secret is decoded. Hexadecimal and "not at all" are assumed.
	{
		Name: "worldpay",
		Spec: "https://developer.worldpay.com/products/access/events/signature",
		family: &inHeader{
			header:   field{name: "Event-Signature"},
			syntax:   syntax{sep: ',', cut: '/', trim: true, named: true},
			encoding: hexText,
			message:  []part{{from: fromBody}},
			keys:     &keyring{parse: textKey("SHA256", sha256.New)},
			well:     wellText,
		},
	},
	// A hash over token, hyphen and body, without HMAC: who has one can compute
	// that of a longer body, but such a body is no JSON.
	{
		Name: "pagbank",
		Spec: "https://developer.pagbank.com.br/reference/confirmar-autenticidade-da-notificacao",
		family: &inHeader{
			header:   field{name: "X-Authenticity-Token"},
			encoding: hexText,
			message:  []part{{from: fromBody}},
			guard:    oneJSON,
			keys:     &keyring{parse: frontKey("-", sha256.New)},
			well:     wellText,
		},
	},
}

// ofBody is a scheme with the HMAC-SHA-256 of the body in one header, bare. Its
// key is the text of the secret; without a well, it is 32 bytes in hexadecimal.
func ofBody(name, spec string, header field, enc encoding, well func(string) string) *Scheme {
	keys := textKey("", sha256.New)
	if well == nil {
		keys = hexKey("", sha256.New, sha256.Size)
	}
	return &Scheme{Name: name, Spec: spec, family: &inHeader{
		header: header, encoding: enc, message: []part{{from: fromBody}},
		keys: &keyring{parse: keys}, well: well,
	}}
}

// oneJSON refuses a body that is not one JSON value and nothing else.
func oneJSON(req Request) *Error {
	if !json.Valid(req.Body) {
		return refuse(Malformed, "the body is not JSON")
	}
	return nil
}
