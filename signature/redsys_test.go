package signature_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"crypto/hmac"
	"crypto/sha512"
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/signature"
)

const redsysSecret = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcY" // the base64 of 1 … 24

// redsysV1 and redsysV2 are the signatures of params, made without the package
// under test.
func redsysV1(tb testing.TB, order, params string) []byte {
	tb.Helper()
	raw, err := base64.StdEncoding.DecodeString(redsysSecret)
	require.NoError(tb, err)
	block, err := des.NewTripleDESCipher(raw)
	require.NoError(tb, err)
	text := append([]byte(order), make([]byte, (8-len(order)%8)%8)...)
	derived := make([]byte, len(text))
	cipher.NewCBCEncrypter(block, make([]byte, 8)).CryptBlocks(derived, text)
	return mac(string(derived), params)
}

func redsysV2(tb testing.TB, order, params string) []byte {
	tb.Helper()
	block, err := aes.NewCipher([]byte(redsysSecret)[:16])
	require.NoError(tb, err)
	n := 16 - len(order)%16
	text := append([]byte(order), bytes.Repeat([]byte{byte(n)}, n)...)
	out := make([]byte, len(text))
	cipher.NewCBCEncrypter(block, make([]byte, 16)).CryptBlocks(out, text)
	h := hmac.New(sha512.New, []byte(base64Text(out)))
	h.Write([]byte(params))
	return h.Sum(nil)
}

func TestRedsys(t *testing.T) {
	t.Parallel()
	const v1, v2 = "HMAC_SHA256_V1", "HMAC_SHA512_V2"
	encode := func(json string) string { return base64Text([]byte(json)) }
	form := func(version, params, sig string) string {
		return url.Values{"Ds_SignatureVersion": {version}, "Ds_MerchantParameters": {params}, "Ds_Signature": {sig}}.Encode()
	}
	body := func(version, params, sig string) string {
		return `{"Ds_SignatureVersion":"` + version + `","Ds_MerchantParameters":"` + params + `","Ds_Signature":"` + sig + `"}`
	}
	std, web, bare := base64.StdEncoding.EncodeToString, base64.URLEncoding.EncodeToString, base64.RawURLEncoding.EncodeToString

	// Parameters whose signatures have the characters in which the alphabets differ.
	const order = "0726qI3H7sZx"
	var params string
	for i := 0; ; i++ {
		params = encode(`{"Ds_Order":"` + order + `","Ds_Amount":"4999","CANARY":"` + strings.Repeat("x", i) + `"}`)
		s1, s2 := std(redsysV1(t, order, params)), std(redsysV2(t, order, params))
		if strings.Contains(s1, "+") && strings.Contains(s1, "/") && strings.ContainsAny(s2, "+/") {
			break
		}
	}
	sig1, sig2 := redsysV1(t, order, params), redsysV2(t, order, params)
	mixed := strings.Replace(std(sig1), "+", "-", 1)
	of := func(json, order string) string {
		return form(v1, encode(json), std(redsysV1(t, order, encode(json))))
	}

	run(t, "redsys", redsysSecret, []attempt{
		{name: "V1", body: form(v1, params, web(sig1))},
		{name: "V1StandardAlphabet", body: form(v1, params, std(sig1))},
		{name: "V1Unpadded", body: form(v1, params, bare(sig1))},
		{name: "V2", body: form(v2, params, bare(sig2))},
		{name: "V2Padded", body: form(v2, params, web(sig2))},
		{name: "V2StandardAlphabet", body: form(v2, params, std(sig2))},
		{name: "V1AsJSON", body: body(v1, params, web(sig1))},
		{name: "V2AsJSON", body: " " + body(v2, params, bare(sig2))},
		{name: "ParametersUnpadded", body: form(v1, strings.TrimRight(params, "="), web(redsysV1(t, order, strings.TrimRight(params, "="))))},
		{name: "RotatedSecret", body: form(v1, params, web(sig1)), secrets: []string{strings.Repeat("A", 32), redsysSecret}},
		{name: "OrderOfOneBlock", body: of(`{"Ds_Order":"12345678"}`, "12345678")},
		{name: "OrderInUpperCase", body: of(`{"DS_ORDER":"0069"}`, "0069")},
		{name: "OrderOfARequest", body: of(`{"DS_MERCHANT_ORDER":"1234567890"}`, "1234567890")},

		{name: "V1SignatureUnderV2", body: form(v2, params, web(sig1)), want: signature.Mismatch},
		{name: "V2SignatureUnderV1", body: form(v1, params, web(sig2)), want: signature.Mismatch},
		{name: "UnknownVersion", body: form("HMAC_SHA999", params, web(sig1)), want: signature.Malformed},
		{name: "SHA512V1", body: form("HMAC_SHA512_V1", params, web(sig2)), want: signature.Malformed},
		{name: "VersionInLowerCase", body: form(strings.ToLower(v1), params, web(sig1)), want: signature.Malformed},
		{name: "NoVersion", body: form("", params, web(sig1)), want: signature.Missing},
		{name: "NoSignature", body: form(v1, params, ""), want: signature.Missing},
		{name: "NoParameters", body: form(v1, "", web(sig1)), want: signature.Missing},
		{name: "MixedAlphabets", body: form(v1, params, mixed), want: signature.Malformed},
		{name: "Hexadecimal", body: form(v1, params, hexText(sig1)), want: signature.Mismatch},
		{name: "PlusNotEscaped", body: strings.ReplaceAll(form(v1, params, std(sig1)), "%2B", "+"), want: signature.Malformed},
		{name: "TruncatedSignature", body: form(v1, params, std(sig1[:31])), want: signature.Mismatch},
		{name: "OtherParameters", body: form(v1, encode(`{"Ds_Order":"0726qI3H7sZx","Ds_Amount":"1"}`), web(sig1)), want: signature.Mismatch},
		{name: "OtherOrder", body: form(v1, params, web(redsysV1(t, "0001", params))), want: signature.Mismatch},
		{name: "AnotherSecret", body: form(v1, params, web(sig1)), secrets: []string{strings.Repeat("A", 32)}, want: signature.Mismatch},
		{name: "SecretThatV1CannotUse", body: form(v1, params, web(sig1)), secrets: []string{"some-other-text-of-32-characters"}, want: signature.Mismatch},
		{name: "NoSecret", body: form(v1, params, web(sig1)), secrets: []string{""}, want: signature.NoSecret},
		{name: "SignatureTwice", body: form(v1, params, web(sig1)) + "&Ds_Signature=x", want: signature.Ambiguous},
		{name: "VersionTwice", body: form(v1, params, web(sig1)) + "&Ds_SignatureVersion=" + v2, want: signature.Ambiguous},
		{name: "JSONKeyTwice", body: strings.Replace(body(v1, params, web(sig1)), "{", `{"Ds_Signature":"x",`, 1), want: signature.Ambiguous},
		{name: "JSONKeyInAnotherCase", body: strings.Replace(body(v1, params, web(sig1)), "{", `{"DS_SIGNATURE":"x",`, 1), want: signature.Ambiguous},
		{name: "JSONNumber", body: `{"Ds_SignatureVersion":1,"Ds_MerchantParameters":"` + params + `"}`, want: signature.Malformed},
		{name: "NoOrder", body: of(`{"Ds_Amount":"1"}`, ""), want: signature.Missing},
		{name: "OrderEmpty", body: of(`{"Ds_Order":""}`, ""), want: signature.Missing},
		{name: "OrderIsANumber", body: of(`{"Ds_Order":1234}`, "1234"), want: signature.Malformed},
		{name: "OrderTwice", body: of(`{"Ds_Order":"0069","DS_ORDER":"0070"}`, "0069"), want: signature.Ambiguous},
		{name: "TwoOrders", body: of(`{"Ds_Order":"0069","Ds_Merchant_Order":"0070"}`, "0069"), want: signature.Ambiguous},
		// An order with zeros at its end has the key of the one without.
		{name: "ZerosInTheOrder", body: of(`{"Ds_Order":"0069\u0000"}`, "0069"), want: signature.Malformed},
		{name: "AmountTwice", body: of(`{"Ds_Order":"0069","Ds_Amount":"1","Ds_Amount":"2"}`, "0069"), want: signature.Ambiguous},
		{name: "ParametersAreNoBase64", body: form(v1, "{}", web(sig1)), want: signature.Malformed},
		{name: "ParametersAreNoJSON", body: form(v1, encode("x"), web(sig1)), want: signature.Malformed},
		{name: "SOAP", body: "<notificacion/>", want: signature.Malformed},
	})
}

// TestRedsysSign: parameters become a form; a form or an object is signed in place,
// by the version it names.
func TestRedsysSign(t *testing.T) {
	t.Parallel()
	s, _ := signature.Lookup("redsys")
	params := base64Text([]byte(`{"Ds_Order":"0069"}`))
	for name, tt := range map[string]struct{ body, want string }{
		"Parameters":    {`{"Ds_Order":"0069"}`, "Ds_SignatureVersion=HMAC_SHA256_V1&Ds_MerchantParameters=" + url.QueryEscape(params) + "&Ds_Signature="},
		"Form":          {"Ds_MerchantParameters=" + params[:4] + url.QueryEscape(params[4:]), "Ds_SignatureVersion=HMAC_SHA256_V1&Ds_Signature="},
		"FormOfV2":      {"Ds_SignatureVersion=HMAC_SHA512_V2&Ds_Signature=old&Ds_MerchantParameters=" + url.QueryEscape(params), "Ds_SignatureVersion=HMAC_SHA512_V2&Ds_Signature="},
		"Object":        {`{"Ds_MerchantParameters":"` + params + `"}`, `"Ds_SignatureVersion":"HMAC_SHA256_V1"`},
		"ObjectOfV2":    {`{"Ds_SignatureVersion":"HMAC_SHA512_V2","Ds_MerchantParameters":"` + params + `","Ds_Signature":"old"}`, `"Ds_SignatureVersion":"HMAC_SHA512_V2"`},
		"ObjectOfNulls": {`{"Ds_SignatureVersion":null,"Ds_MerchantParameters":"` + params + `","Ds_Signature":null}`, `"Ds_Signature":"`},
	} {
		signed, err := s.Sign([]byte(tt.body), redsysSecret, now, signature.SignOptions{})
		require.NoError(t, err, name)
		require.Contains(t, string(signed.Body), tt.want, name)
		require.NoError(t, s.Verify(signature.Request{Body: signed.Body}, []string{redsysSecret}, now), name)
	}
	_, err := s.Sign([]byte(`{"Ds_Order":"0069"}`), "some-other-text-of-32-characters", now, signature.SignOptions{})
	require.Equal(t, signature.BadSecret, signature.ReasonOf(err))
}
