package gateway

import (
	"encoding/base64"
	"log/slog"
	"time"
)

// Modes of a source.
const (
	Live = "live"
	Test = "test"
)

// Values of [Source].Capture.
const (
	CaptureAutomatic = "automatic"
	CaptureManual    = "manual"
)

// Values of [Source].OnUnknownOrder.
const (
	Stub   = "stub"
	Ignore = "ignore"
	Create = "create"
)

// Source is one configured webhook endpoint: the options of one entry of
// `sources` in the configuration. The zero value of every optional field works.
type Source struct {
	// ID is the name under which the source is configured, the last part of
	// its path, unique over all accounts. Account is the merchant it belongs to.
	ID      string `json:"-" yaml:"-"`
	Account string `json:"-" yaml:"-"`

	// Gateway is the name of a [Gateway]. Mode is "live" or "test"; an event of
	// the other mode is flagged and never counted.
	Gateway string `json:"gateway" yaml:"gateway"`
	Mode    string `json:"mode" yaml:"mode"`

	// Secrets are what deliveries are signed with, as the gateway shows it (in
	// the form that its entry in package signature takes); all are live at once,
	// so that one can be rolled.
	Secrets []string `json:"secrets,omitempty" yaml:"secrets"`

	// SigningKeys are private keys, for gateways that sign with one and are
	// verified with its public half. Only offline sending, replay and dev use
	// them; nothing is ever verified with them.
	SigningKeys []string `json:"signing_keys,omitempty" yaml:"signing_keys"`

	// HMACKeys are adyen's keys, 64 hexadecimal digits each; all are live.
	HMACKeys []string `json:"hmac_keys,omitempty" yaml:"hmac_keys"`

	// Basic is "user:password" of the Basic credentials that adyen sends; if
	// set, a delivery must carry them. Only with them are the fields believed
	// that adyen's HMAC does not cover (see [Coverage].Sender). Set it from the
	// beginning: without it the order of two events of one object is taken from
	// their kind, with it from their dates, and a source that loses it would
	// rank new events below dated ones.
	Basic string `json:"basic,omitempty" yaml:"basic"`

	// MerchantAccounts are adyen's merchant accounts that are ours; items of
	// any other are flagged and never counted. Empty: all that the key signs for.
	// Calls go to the first of them.
	MerchantAccounts []string `json:"merchant_accounts,omitempty" yaml:"merchant_accounts"`

	// Capture says whether adyen captures by itself after an authorisation:
	// "automatic" (the default) or "manual".
	Capture string `json:"capture,omitempty" yaml:"capture"`

	// StripeAccount is the connected account (acct_…) whose events this source
	// receives. Empty: the account's own; events that carry an account are then
	// somebody else's.
	StripeAccount string `json:"account,omitempty" yaml:"account"`

	// WebhookID is PayPal's id of the endpoint (WH-…): it is signed. RootPEM
	// holds the only certificates that PayPal's may chain to, in PEM; empty:
	// those of the system. VerifyBy is "certificate" (the default) or "api": then
	// PayPal's API is asked about every delivery, with ClientID and ClientSecret.
	WebhookID    string `json:"webhook_id,omitempty" yaml:"webhook_id"`
	RootPEM      string `json:"root_pem,omitempty" yaml:"root_pem"`
	VerifyBy     string `json:"verify_by,omitempty" yaml:"verify_by"`
	ClientID     string `json:"client_id,omitempty" yaml:"client_id"`
	ClientSecret string `json:"client_secret,omitempty" yaml:"client_secret"`

	// PublicURL is the URL of the endpoint exactly as it is configured at the
	// gateway, for gateways that sign it (square). It is never rebuilt from a
	// request.
	PublicURL string `json:"public_url,omitempty" yaml:"public_url"`

	// AccessToken is what the gateway's API is asked and called with: its secret
	// key, access token or "user:password"; see the gateway. Shop is the host of a
	// Shopify shop. APIURL takes the place of the gateway's own address;
	// APIAllowPrivate lets it be http and on a private network.
	AccessToken     string `json:"access_token,omitempty" yaml:"access_token"`
	Shop            string `json:"shop,omitempty" yaml:"shop"`
	APIURL          string `json:"api_url,omitempty" yaml:"api_url"`
	APIAllowPrivate bool   `json:"api_allow_private,omitempty" yaml:"api_allow_private"`

	// Topic is which of Mercado Pago's notifications the source receives: "payment" or
	// "order". Empty: whatever comes is asked about.
	Topic string `json:"topic,omitempty" yaml:"topic"`

	// Authorization is the static Authorization header that checkout sends; if
	// set, a delivery must carry it.
	Authorization string `json:"authorization,omitempty" yaml:"authorization"`

	// Tolerance is how far a signed time may be from now. Zero: the scheme's.
	Tolerance time.Duration `json:"tolerance,omitempty" yaml:"tolerance"`

	// Unconfirmed says that the merchant answers for what we could not confirm; the
	// gateway's options say what (worldpay, flutterwave-v4, kushki, plaid, payu-latam).
	Unconfirmed bool `json:"unconfirmed,omitempty" yaml:"unconfirmed"`

	// Map says where a standard source finds things in its payloads.
	Map *Map `json:"map,omitempty" yaml:"map"`

	// OnUnknownOrder says what an event does whose reference names no order:
	// "stub" (the default), "ignore" or "create".
	OnUnknownOrder string `json:"on_unknown_order,omitempty" yaml:"on_unknown_order"`

	// Reference is a JSON pointer (RFC 6901) to the merchant's reference,
	// instead of the gateway's usual places: from the root of the body, for
	// adyen from the item. It must point into what the signature covers.
	Reference string `json:"reference,omitempty" yaml:"reference"`

	// ReferencePattern is a regular expression (RE2) that a reference of ours
	// matches: its one group is the reference, or the whole match without a
	// group. What does not match is not our reference.
	ReferencePattern string `json:"reference_pattern,omitempty" yaml:"reference_pattern"`

	// Paused: events are kept and not folded until the source resumes.
	Paused bool `json:"paused,omitempty" yaml:"paused"`

	// MaxBody is the largest body accepted, in bytes. Zero: the receiver's.
	MaxBody int64 `json:"max_body,omitempty" yaml:"max_body"`
}

// Map is where a standard source finds things in its payloads: JSON pointers
// (RFC 6901) into the body.
type Map struct {
	Type      string `json:"type" yaml:"type"`
	Payment   string `json:"payment" yaml:"payment"`
	Reference string `json:"reference,omitempty" yaml:"reference"` // optional
	Amount    string `json:"amount" yaml:"amount"`                 // an integer of minor units
	Currency  string `json:"currency" yaml:"currency"`             // an ISO 4217 code

	// Facts says what types of event mean: authorized, captured or refunded.
	// Each is the running total of the payment. Other types are ignored.
	Facts map[string]string `json:"facts" yaml:"facts"`
}

// LogValue keeps secrets out of logs.
func (s Source) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("id", s.ID), slog.String("account", s.Account),
		slog.String("gateway", s.Gateway), slog.String("mode", s.Mode),
		slog.Int("secrets", len(s.Secrets)+len(s.HMACKeys)), slog.Bool("basic", s.Basic != ""),
	)
}

// String keeps secrets out of what is printed.
func (s Source) String() string {
	return "source " + s.ID + " (" + s.Gateway + ", " + s.Mode + ")"
}

// GoString keeps secrets out of what is printed with %#v.
func (s Source) GoString() string { return s.String() }

// basicHeader is the Authorization header of "user:password" (RFC 7617).
func basicHeader(credentials string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(credentials))
}
