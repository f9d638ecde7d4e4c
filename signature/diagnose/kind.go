package diagnose

// kind is what must be known of a scheme to speak about it rightly. The zero value
// is the common one: an HMAC over the body, made with a secret.
type kind struct {
	token  bool // a token is sent along and nothing is signed
	query  bool // the URL and headers are signed, and nothing of the body
	fields bool // fields inside the body are signed, and the signature stands there
	public bool // signed with a private key

	field  string // where the signature stands, of fields
	secret string // what verifies: "the webhook verification token"
	wrong  string // what is left when nothing fits; "": said in general
}

// cost is what one verification costs beside reading the body, in bytes of HMAC.
func (k kind) cost() int {
	if k.public {
		return 32 << 10
	}
	return 3 << 10
}

// noun is what the scheme verifies with.
func (k kind) noun() string {
	if k.secret == "" {
		return "the secret"
	}
	return k.secret
}

const (
	publicKey = "the public key"
	changed   = " or what is signed was changed on its way"
)

// kinds are the schemes that are not of the common kind.
var kinds = map[string]kind{
	"xendit": {
		token: true, secret: "the webhook verification token",
		wrong: "The token in X-Callback-Token is not the one that was given: it is that of another account or of the other mode (test and live have one each), or it was made anew. Compare it with the webhook verification token of Xendit's dashboard; the body has no part in it.",
	},
	"flutterwave-v3": {
		token: true, secret: "the secret hash",
		wrong: "The token in Verif-Hash is not the one that was given: it is the secret hash of another account or mode, or it was changed in the dashboard. Compare it with the secret hash there; the body has no part in it.",
	},
	"mercadopago": {
		query: true, secret: "the secret signature",
		wrong: "Nothing that was tried makes it fit: the secret is another application's or of the other mode, or the id in the URL (data.id), X-Request-Id or the time was changed on its way; the body has no part in it. Compare the secret with the one under Webhooks of exactly this application, and pass URL and headers on as they came.",
	},
	"adyen": {
		fields: true, field: "hmacSignature", secret: "the HMAC key",
		wrong: "Nothing that was tried makes it fit: the HMAC key is another endpoint's, of the other environment (test and live), or was made anew; or one of the eight signed fields (pspReference, originalReference, merchantAccountCode, merchantReference, amount, eventCode, success) was changed. Compare the key with the one of exactly this webhook in the Customer Area.",
	},
	"braintree": {
		fields: true, field: "bt_signature", secret: "public_key:private_key",
		wrong: "Nothing that was tried makes it fit: the private key is not the one of that public key (of another merchant account, or of the sandbox), or bt_payload was changed on its way. Compare both API keys, and pass the form on as it came.",
	},
	"midtrans": {
		fields: true, field: "signature_key", secret: "the server key",
		wrong: "Nothing that was tried makes it fit: the server key is another merchant's or that of the other environment (sandbox and production have one each), or order_id, status_code or gross_amount was changed on its way (10000.00 is signed with its decimals). Compare the server key, and pass these three on as they came.",
	},
	"wompi": {
		fields: true, field: "checksum", secret: "the events secret",
		wrong: "Nothing that was tried makes it fit: the events secret is another merchant's or of the other environment (test_events_… and prod_events_…), or one of the signed properties or the timestamp was changed on its way. Compare the secret for events, which is not the one for integrity.",
	},
	"payu-latam": {
		fields: true, field: "sign", secret: "the API key",
		wrong: "Nothing that was tried makes it fit: the API key is another account's or the sandbox's, the algorithm in front of it is not the account's (MD5, SHA1, SHA256), or merchant_id, reference_sale, value, currency or state_pol was changed on its way. Compare both with the account's technical configuration.",
	},
	"redsys": {
		fields: true, field: "Ds_Signature", secret: "the terminal's key",
		wrong: "Nothing that was tried makes it fit: the key is another terminal's or that of the test environment, or Ds_MerchantParameters was changed on its way (a + that became a space, base64 that was decoded). Compare the key with the one of exactly this terminal, for its signature version.",
	},
	"paypal": {
		public: true, secret: "webhook_id:certificate",
		wrong: "Nothing that was tried makes it fit: the webhook id is another webhook's or of the other mode, the certificate is not the one that Paypal-Cert-Url names, or the body or a Paypal-Transmission header was changed on its way. Compare the id with the one of exactly this webhook.",
	},
	"plaid": {
		public: true, secret: "the JSON web key",
		wrong: "No key that was given made this token: its kid is another key's, or it is of the other environment (sandbox and production). Fetch the key with the kid that the token names (/webhook_verification_key/get).",
	},
	"conekta":       {public: true, secret: publicKey},
	"wise":          {public: true, secret: publicKey},
	"ebanx":         {public: true, secret: "the certificate"},
	"midtrans-snap": {public: true, secret: publicKey},
}

func kindOf(scheme string) kind {
	k := kinds[scheme]
	if k.wrong == "" && k.public {
		k.wrong = "Nothing that was tried makes it fit: " + k.secret + " is another one than the sender's (rotated, or of the other mode)," + changed + ". Compare it with the one that the gateway shows today."
	}
	return k
}
