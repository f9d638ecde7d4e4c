package gateway_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		base   gateway.Source
		change func(*gateway.Source)
		option string // "": nothing is wrong
		text   string
	}{
		{"Stripe", stripeSource(), func(*gateway.Source) {}, "", ""},
		{"Adyen", adyenSource(), func(*gateway.Source) {}, "", ""},
		{"Standard", standardSource(), func(*gateway.Source) {}, "", ""},
		{"BareAdyen", bareAdyen(), func(s *gateway.Source) { s.MerchantAccounts = nil }, "", ""},
		{"TwoSecrets", stripeSource(), func(s *gateway.Source) { s.Secrets = append(s.Secrets, "whsec_second_secret_here") }, "", ""},
		{"ConnectedAccount", stripeSource(), func(s *gateway.Source) { s.StripeAccount = "acct_1A2b3C" }, "", ""},
		{"AllCommon", stripeSource(), func(s *gateway.Source) {
			s.OnUnknownOrder, s.Reference, s.ReferencePattern, s.MaxBody, s.Paused = gateway.Create, "/data/object/description", `^#(\d+)$`, 1<<20, true
		}, "", ""},
		{"AdyenManual", adyenSource(), func(s *gateway.Source) { s.Capture = gateway.CaptureManual }, "", ""},
		{"AdyenColonInPassword", adyenSource(), func(s *gateway.Source) { s.Basic = "u:a:b:" }, "", ""},

		{"NoMode", stripeSource(), func(s *gateway.Source) { s.Mode = "" }, "mode", "live or test"},
		{"OtherMode", adyenSource(), func(s *gateway.Source) { s.Mode = "Live" }, "mode", "live or test"},
		{"NoSecrets", stripeSource(), func(s *gateway.Source) { s.Secrets = nil }, "", "has no secrets"},
		{"EmptySecret", stripeSource(), func(s *gateway.Source) { s.Secrets = []string{""} }, "secrets[0]", "empty"},
		{"APIKeyForSecret", stripeSource(), func(s *gateway.Source) { s.Secrets = []string{"sk_live_SECRETVALUE"} }, "secrets[0]", "cannot be used"},
		{"SecretTwice", stripeSource(), func(s *gateway.Source) { s.Secrets = append(s.Secrets, s.Secrets[0]) }, "secrets[1]", "twice"},
		{"StandardSecret", standardSource(), func(s *gateway.Source) { s.Secrets = []string{"whsec_SECRETVALUE!"} }, "secrets[0]", "cannot be used"},
		{"NoKeys", adyenSource(), func(s *gateway.Source) { s.HMACKeys = nil }, "", "has no hmac_keys"},
		{"ShortKey", adyenSource(), func(s *gateway.Source) { s.HMACKeys = []string{"5EC4E7"} }, "hmac_keys[0]", "cannot be used"},
		{"SecretsOnAdyen", adyenSource(), func(s *gateway.Source) { s.Secrets = []string{stripeSecret} }, "secrets", "no option of gateway adyen"},
		{"KeysOnStripe", stripeSource(), func(s *gateway.Source) { s.HMACKeys = []string{adyenKey} }, "hmac_keys", "no option of gateway stripe"},
		{"BasicOnStripe", stripeSource(), func(s *gateway.Source) { s.Basic = "a:b" }, "basic", "no option"},
		{"CaptureOnStripe", stripeSource(), func(s *gateway.Source) { s.Capture = "manual" }, "capture", "no option"},
		{"MapOnStripe", stripeSource(), func(s *gateway.Source) { s.Map = &gateway.Map{} }, "map", "no option"},
		{"AccountsOnStandard", standardSource(), func(s *gateway.Source) { s.MerchantAccounts = []string{"A"} }, "merchant_accounts", "no option"},
		{"AccountOnAdyen", adyenSource(), func(s *gateway.Source) { s.StripeAccount = "acct_1" }, "account", "no option"},
		{"BasicWithoutColon", adyenSource(), func(s *gateway.Source) { s.Basic = "SECRETVALUE" }, "basic", "user:password"},
		{"BasicWithoutUser", adyenSource(), func(s *gateway.Source) { s.Basic = ":SECRETVALUE" }, "basic", "user:password"},
		{"BasicWithoutPassword", adyenSource(), func(s *gateway.Source) { s.Basic = "u:" }, "basic", "user:password"},
		{"Capture", adyenSource(), func(s *gateway.Source) { s.Capture = "auto" }, "capture", "automatic or manual"},
		{"EmptyMerchantAccount", adyenSource(), func(s *gateway.Source) { s.MerchantAccounts = []string{"A", ""} }, "merchant_accounts[1]", "empty"},
		{"UncoveredReference", adyenSource(), func(s *gateway.Source) { s.Reference = "/additionalData/metadata.order" }, "reference", "signed"},
		{"StripeAccount", stripeSource(), func(s *gateway.Source) { s.StripeAccount = "1A2b" }, "account", "acct_"},
		{"StripeAccountInjection", stripeSource(), func(s *gateway.Source) { s.StripeAccount = "acct_1:live" }, "account", "acct_"},
		{"OnUnknownOrder", stripeSource(), func(s *gateway.Source) { s.OnUnknownOrder = "make" }, "on_unknown_order", "stub, ignore or create"},
		{"NegativeBody", stripeSource(), func(s *gateway.Source) { s.MaxBody = -1 }, "max_body", "negative"},
		{"PointerWithoutSlash", stripeSource(), func(s *gateway.Source) { s.Reference = "data.object.id" }, "reference", "starts with /"},
		{"PointerWithTilde", stripeSource(), func(s *gateway.Source) { s.Reference = "/a~2" }, "reference", "~0"},
		{"Pattern", stripeSource(), func(s *gateway.Source) { s.ReferencePattern = "(" }, "reference_pattern", "no regular expression"},
		{"PatternWithTwoGroups", stripeSource(), func(s *gateway.Source) { s.ReferencePattern = "(a)(b)" }, "reference_pattern", "2 groups"},
		{"MapWithoutType", standardSource(), func(s *gateway.Source) { s.Map.Type = "" }, "map.type", "missing"},
		{"MapWithoutAmount", standardSource(), func(s *gateway.Source) { s.Map.Amount = "" }, "map.amount", "missing"},
		{"MapWithoutFacts", standardSource(), func(s *gateway.Source) { s.Map.Facts = nil }, "map.facts", "missing"},
		{"MapPointer", standardSource(), func(s *gateway.Source) { s.Map.Currency = "currency" }, "map.currency", "starts with /"},
		{"MapKind", standardSource(), func(s *gateway.Source) { s.Map.Facts = map[string]string{"a": "disputed"} }, "map.facts.a", "authorized, captured or refunded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := tt.base
			tt.change(&s)
			err := of(t, s).Check(s)
			if tt.text == "" {
				require.NoError(t, err)
				return
			}
			var option *gateway.OptionError
			require.ErrorAs(t, err, &option)
			require.Equal(t, tt.option, option.Option)
			require.Contains(t, option.Text, tt.text)
			require.NotContains(t, err.Error(), "SECRETVALUE")
			require.NotContains(t, strings.ToUpper(err.Error()), "5EC4E7")
		})
	}
}

// TestCheckReportsEverything: all that is wrong is said at once.
func TestCheckReportsEverything(t *testing.T) {
	t.Parallel()
	err := gateway.Adyen.Check(gateway.Source{Gateway: "adyen", Capture: "x", Basic: "x", Secrets: []string{"x"}})
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok)
	require.Len(t, joined.Unwrap(), 5)
	require.NotErrorAs(t, err, new(*gateway.ParseError))
}

// TestSourceHidesSecrets: a source can be logged and printed.
func TestSourceHidesSecrets(t *testing.T) {
	t.Parallel()
	s := adyenSource()
	s.Secrets = []string{stripeSecret}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "source", s)
	for _, text := range []string{log.String(), fmt.Sprint(s), fmt.Sprintf("%+v", s), fmt.Sprintf("%#v", s), s.String(), fmt.Sprintf("%v", []gateway.Source{s})} {
		require.Contains(t, text, "adyen")
		for _, secret := range []string{stripeSecret, adyenKey, "hooks", "pa:ss"} {
			require.NotContains(t, text, secret)
		}
	}
}

// TestSourceYAML: the option names are those of the documentation, and none of
// them sets what the configuration decides by place.
func TestSourceYAML(t *testing.T) {
	t.Parallel()
	var s gateway.Source
	require.NoError(t, yaml.UnmarshalWithOptions([]byte(`
gateway: standard
mode: live
secrets: [a]
hmac_keys: [b]
basic: u:p
merchant_accounts: [m]
capture: manual
account: acct_1
on_unknown_order: create
reference: /a
reference_pattern: "^x$"
paused: true
max_body: 5
map:
  type: /t
  payment: /p
  reference: /r
  amount: /a
  currency: /c
  facts: {x: captured}
`), &s, yaml.Strict()))
	require.Equal(t, gateway.Source{
		Gateway: "standard", Mode: "live", Secrets: []string{"a"}, HMACKeys: []string{"b"}, Basic: "u:p", MerchantAccounts: []string{"m"},
		Capture: "manual", StripeAccount: "acct_1", OnUnknownOrder: "create", Reference: "/a", ReferencePattern: "^x$", Paused: true, MaxBody: 5,
		Map: &gateway.Map{Type: "/t", Payment: "/p", Reference: "/r", Amount: "/a", Currency: "/c", Facts: map[string]string{"x": "captured"}},
	}, s)
	require.Error(t, yaml.UnmarshalWithOptions([]byte("id: x"), &s, yaml.Strict()))
}
