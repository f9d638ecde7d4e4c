package signature

import (
	"crypto/sha256"
	"time"
)

// fiveMinutes is 300 s in either direction: the default of Stripe's libraries
// (which look at the past alone) and of those of Standard Webhooks.
const fiveMinutes = 300 * time.Second

// table holds every scheme. A gateway that signs like one of these is a new row;
// it needs code only if the parts of its message, the form of its key or the
// place of its signature are new.
var table = []*Scheme{
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
	// specification. How its keys are written is in standard.go.
	{
		Name:      "standard",
		Spec:      "https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md",
		Tolerance: fiveMinutes,
		family: &inHeader{
			header:   field{name: "Webhook-Signature", alt: "Svix-Signature"},
			syntax:   syntax{sep: ' ', cut: ','},
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
	// The signature of each item is in the body, and covers eight of its fields.
	{
		Name:   "adyen",
		Spec:   "https://docs.adyen.com/development-resources/webhooks/secure-webhooks/verify-hmac-signatures",
		family: &adyenItems{keys: &keyring{parse: hexKey("", sha256.New, sha256.Size)}},
	},
}
