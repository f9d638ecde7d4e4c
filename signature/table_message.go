package signature

import (
	"crypto/sha256"
)

// messageTable are the schemes that sign the body with something else: mostly a
// time, which says how old the request is.
var messageTable = []*Scheme{
	// Stripe-Signature: t=1750000000,v1=6087…,v1=…,v0=…
	// The key is the text of the secret, "whsec_" included. Versions other than
	// v1 are passed over: v0 is made by test tools with no secret worth the name.
	{
		Name:      "stripe",
		Spec:      "https://docs.stripe.com/webhooks#verify-manually",
		Tolerance: fiveMinutes,
		family: &inHeader{
			header:   field{name: "Stripe-Signature"},
			syntax:   syntax{sep: ',', cut: '=', strict: true},
			encoding: hexText,
			message: []part{
				{from: fromSignature, name: "t", role: roleTime},
				{from: fromRow, name: "."},
				{from: fromBody},
			},
			keys: &keyring{parse: textKey("v1", sha256.New)},
			well: wellStripe,
		},
	},
	// Webhook-Signature: v1,g0hM9SsE… v1a,hnO3f9T8…
	// Also Svix (its header names), Lithic and everybody else who follows the
	// specification. How its keys are written is in secrets.go.
	{
		Name:      "standard",
		Spec:      "https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md",
		Tolerance: fiveMinutes,
		family: &inHeader{
			header:   field{name: "Webhook-Signature", alt: "Svix-Signature"},
			syntax:   syntax{sep: ' ', cut: ',', trim: true},
			encoding: base64Text,
			message: []part{
				{from: fromHeader, head: field{name: "Webhook-Id", alt: "Svix-Id"}, role: roleID},
				{from: fromRow, name: "."},
				{from: fromHeader, head: field{name: "Webhook-Timestamp", alt: "Svix-Timestamp"}, role: roleTime},
				{from: fromRow, name: "."},
				{from: fromBody},
			},
			keys: &keyring{parse: standardKey},
		},
	},
	// Paddle-Signature: ts=1750000000;h1=1dd5…;h1=…
	// Paddle's libraries look 5 s back (Node) or not at all (Go), and both take
	// one h1 alone; the documentation has several while a secret is rolled.
	{
		Name:      "paddle",
		Spec:      "https://developer.paddle.com/webhooks/signature-verification",
		Tolerance: fiveMinutes,
		family: &inHeader{
			header:   field{name: "Paddle-Signature"},
			syntax:   syntax{sep: ';', cut: '=', strict: true},
			encoding: lowerHex,
			message: []part{
				{from: fromSignature, name: "ts", role: roleTime},
				{from: fromRow, name: ":"},
				{from: fromBody},
			},
			keys: &keyring{parse: textKey("h1", sha256.New)},
			well: wellNot("the secret key of the notification destination, pdl_ntfset_…",
				"pdl_live_apikey_", "pdl_sdbx_apikey_"),
		},
	},
	// The URL is the one that was typed into Square's dashboard, to the last slash.
	{
		Name: "square",
		Spec: "https://developer.squareup.com/docs/webhooks/step3validate",
		family: &inHeader{
			header:   field{name: "X-Square-Hmacsha256-Signature"},
			encoding: base64Text,
			message:  []part{{from: fromURL}, {from: fromBody}},
			keys:     &keyring{parse: textKey("", sha256.New)},
			well:     wellNot("the signature key of the webhook subscription", "sq0idp-", "sq0csp-", "sandbox-sq0idb-", "sandbox-sq0csb-", "EAAA"),
		},
	},
	// X-signature covers no body at all: mercadopago.go.
	{
		Name:   "mercadopago",
		Spec:   "https://www.mercadopago.com/developers/en/docs/your-integrations/notifications/webhooks",
		family: &mercadoPago{keys: &keyring{parse: textKey("v1", sha256.New)}},
	},
	// Authorization: V2-HMAC-SHA256, Signature: 1ee5…
	// The date stands between the login, which we know, and the body: only a plain
	// date there tells where the body begins. No tolerance is documented, and a
	// delivery is repeated for days.
	{
		Name: "dlocal",
		Spec: "https://docs.dlocal.com/docs/receive-notifications",
		family: &inHeader{
			header:   field{name: "Authorization"},
			syntax:   syntax{prefix: "V2-HMAC-SHA256, Signature: "},
			encoding: hexText,
			message: []part{
				{from: fromKey},
				{from: fromHeader, head: field{name: "X-Date"}, role: roleDate, name: "2006-01-02T15:04:05.000Z"},
				{from: fromBody},
			},
			names: field{name: "X-Login"},
			keys:  &keyring{parse: loginKey},
			well:  wellText,
		},
	},
	// X-Kushki-SimpleSignature covers the id alone and is never looked at.
	{
		Name: "kushki",
		Spec: "https://docs.kushki.com/co/en/notifications/webhooks/overview",
		family: &inHeader{
			header:   field{name: "X-Kushki-Signature"},
			encoding: hexText,
			message: []part{
				{from: fromBody},
				{from: fromRow, name: "."},
				{from: fromHeader, head: field{name: "X-Kushki-Id"}, role: roleMillis},
			},
			keys: &keyring{parse: textKey("", sha256.New)},
			well: wellText,
		},
	},
}
