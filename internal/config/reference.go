package config

import (
	_ "embed" // the example
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Example is a configuration to start from.
//
//go:embed example.yaml
var Example string

// Setting is one line of the reference.
type Setting struct {
	// Path is where the setting stands, as in accounts.{account}.callback.url.
	Path string `json:"path"`

	// Variable is the environment variable that sets it; what stands in braces
	// is replaced by the name in upper case.
	Variable string `json:"variable"`

	// Default is the value if it is not set, empty if there is none.
	Default string `json:"default,omitempty"`

	// Help says what it does.
	Help string `json:"help"`
}

// Reference lists everything that can be set, in the order of the file.
func Reference() []Setting {
	return settings(reflect.ValueOf(*Defaults()), "")
}

func settings(v reflect.Value, path string) []Setting {
	var all []Setting
	for f := range v.Type().Fields() {
		name := fieldName(f)
		if name == "" {
			continue
		}
		field, at := v.FieldByIndex(f.Index), join(path, name)
		if f.Type.Kind() == reflect.Pointer {
			field = reflect.Zero(f.Type.Elem())
		}
		switch t := field.Type(); {
		case t.Kind() == reflect.Struct:
			all = append(all, settings(field, at)...)
			continue
		case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Struct:
			one := map[string]string{"accounts": "{account}", "sources": "{source}"}[name]
			all = append(all, settings(reflect.Zero(t.Elem()), at+"."+one)...)
			continue
		}
		help := f.Tag.Get("help")
		if strings.Contains(at, ".sources.") {
			help = sourceHelp[at[strings.LastIndex(at, "{source}.")+len("{source}."):]]
		}
		all = append(all, Setting{Path: at, Variable: placeholder(at), Default: defaultOf(field), Help: help})
	}
	return all
}

// placeholder is Variable for a path with names in braces.
func placeholder(path string) string {
	parts := strings.Split(path, ".")
	for i, part := range parts {
		if !strings.HasPrefix(part, "{") {
			parts[i] = strings.TrimPrefix(Variable(part), prefix)
		} else {
			parts[i] = strings.ToUpper(part)
		}
	}
	return prefix + strings.Join(parts, "_")
}

func defaultOf(v reflect.Value) string {
	if v.IsZero() {
		return ""
	}
	switch v := v.Interface().(type) {
	case time.Duration:
		return shortDuration(v)
	case int64:
		return shortSize(v)
	default:
		return fmt.Sprint(v)
	}
}

// shortDuration writes 90d and 2m, not 2160h0m0s and 2m0s.
func shortDuration(d time.Duration) string {
	if day := 24 * time.Hour; d >= day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func shortSize(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", n>>10)
	default:
		return fmt.Sprint(n)
	}
}

// sourceHelp says what the options of a source do; those of a gateway's own are
// explained where the gateway is (paidonce gateways).
var sourceHelp = map[string]string{
	"gateway":           "whose endpoint it is: a name of paidonce gateways",
	"mode":              "live or test; events of the other mode are flagged, never counted",
	"secrets":           "what deliveries are signed with, as the gateway shows it; all are live, so that one can be rolled",
	"signing_keys":      "private keys with which send, replay and dev sign, for gateways that sign with one; serve needs none",
	"hmac_keys":         "adyen, adyen-platform: HMAC keys, 64 hexadecimal digits each; all are live",
	"basic":             "adyen: user:password of the notifications; needed for dates, disputes and modifications to be believed",
	"merchant_accounts": "the gateway's ids of the accounts that are ours; events of another are flagged. Default: all that are signed",
	"capture":           "adyen: automatic (default) or manual",
	"account":           "stripe: the connected account (acct_…) whose events arrive here. Default: our own",
	"webhook_id":        "paypal: the id of the endpoint (WH-…); it is signed",
	"root_pem":          "paypal: the only root certificates that its own may chain to, in PEM. Default: those of the system",
	"verify_by":         "paypal: certificate (default), or api: PayPal is asked about every delivery",
	"client_id":         "paypal, plaid: what the API is asked with",
	"client_secret":     "paypal, plaid: what the API is asked with",
	"public_url":        "square: the URL of the endpoint exactly as it is configured there; it is signed",
	"access_token":      "what the gateway's API is asked with: its secret key, access token or user:password",
	"shop":              "shopify: the host of the shop, e.g. example.myshopify.com",
	"api_url":           "where the gateway's API is asked, instead of its own address",
	"api_allow_private": "true: api_url may be http, and on a loopback or private address",
	"topic":             "mercadopago: payment or order, which notifications arrive here; others are not asked about, and lists need payment",
	"authorization":     "checkout: the Authorization header that you set for the workflow; then deliveries must carry it",
	"tolerance":         "how far a signed time may be from now (e.g. 300s). Default: the scheme's",
	"unconfirmed":       "true: you answer for what we could not confirm of the gateway (worldpay, flutterwave-v4, kushki, plaid, payu-latam; docs/gateways.md says what)",
	"map.type":          "standard: JSON pointer to the type of the event",
	"map.payment":       "standard: JSON pointer to the id of the payment",
	"map.reference":     "standard: JSON pointer to the order's external_ref",
	"map.amount":        "standard: JSON pointer to the amount, an integer of minor units",
	"map.currency":      "standard: JSON pointer to the ISO 4217 code",
	"map.facts":         "standard: what a type means: authorized, captured or refunded",
	"on_unknown_order":  "what an event does whose order is not known: stub (default: kept until the order is registered), ignore, or create (the gateway's amount is trusted)",
	"reference":         "JSON pointer to the order's external_ref, instead of the gateway's usual places",
	"reference_pattern": "regular expression (RE2) that our references match; its group is the reference",
	"paused":            "true: events are kept, and folded when it is false again",
	"max_body":          "largest body, in bytes. Default: limits.max_body",
}
