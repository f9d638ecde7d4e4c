package signature_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/paidonce/paidonce/signature"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	for scheme, name := range map[string]string{"xendit": "x-callback-token", "flutterwave-v3": "verif-hash"} {
		const token = "token-test-only"
		run(t, scheme, token, []attempt{
			{name: scheme, header: headers(name, token)},
			{name: scheme + "InUpperCase", header: http.Header{strings.ToUpper(name): {token}}},
			{name: scheme + "RotatedNew", header: headers(name, token), secrets: []string{token, "old"}},
			{name: scheme + "RotatedOld", header: headers(name, token), secrets: []string{"new", token}},
			{name: scheme + "AnyBody", header: headers(name, token), body: "{}"},

			{name: scheme + "NoHeader", want: signature.Missing},
			{name: scheme + "EmptyHeader", header: headers(name, ""), want: signature.Missing},
			{name: scheme + "EmptyHeaderAndSecret", header: headers(name, ""), secrets: []string{""}, want: signature.Missing},
			{name: scheme + "EmptySecret", header: headers(name, token), secrets: []string{""}, want: signature.NoSecret},
			{name: scheme + "NoSecrets", header: headers(name, token), secrets: []string{}, want: signature.NoSecret},
			{name: scheme + "Another", header: headers(name, "token-test-onlY"), want: signature.Mismatch},
			{name: scheme + "Shorter", header: headers(name, token[1:]), want: signature.Mismatch},
			{name: scheme + "Longer", header: headers(name, token+"x"), want: signature.Mismatch},
			{name: scheme + "SpaceAfter", header: headers(name, token+" "), want: signature.Mismatch},
			{name: scheme + "TheHashOfIt", header: headers(name, sha256Hex(token)), want: signature.Mismatch},
			{name: scheme + "Twice", header: headers(name, token, name, token), want: signature.Ambiguous},
			{name: scheme + "TwiceInTwoSpellings", header: http.Header{name: {"x"}, strings.ToUpper(name): {token}}, want: signature.Ambiguous},
		})
	}
}
