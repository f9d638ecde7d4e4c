package signature

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"hash"
	"net/http"
	"strings"
	"time"
)

// payU is the way of PayU Latam's confirmation page: the body is a form with the
// field sign, a digest in hexadecimal of
//
//	apiKey~merchant_id~reference_sale~value~currency~state_pol
//
// where value has one decimal if its second is zero (150.00 is signed as 150.0,
// 150.25 as it is). The account says which algorithm, never the request. Only
// reference_sale may hold a tilde: between fields that have none, its ends are
// certain.
type payU struct {
	keys *keyring
}

const payUSign = "sign"

// payUFields are the signed fields after the API key, in their order, and how each
// must look.
var payUFields = [...]struct {
	name string
	ok   func(string) bool
}{
	{"merchant_id", digits},
	{"reference_sale", func(s string) bool { return s != "" && strings.IndexFunc(s, control) < 0 }},
	{payUValue, plainDecimal},
	{"currency", func(s string) bool { return len(s) == 3 && plainName(s) }},
	{"state_pol", digits},
}

const payUValue = "value"

func control(r rune) bool { return r < ' ' || r == 0x7f }

func (f *payU) verify(req Request, secrets []string, _ time.Time, _ time.Duration) *Error {
	fields, message, err := payURead(req.Body)
	if err != nil {
		return err
	}
	if fields[payUSign] == "" {
		return refuse(Missing, "no "+payUSign)
	}
	return f.keys.matchDigest(secrets, hexText, []string{fields[payUSign]}, payUMessage(message))
}

func payUMessage(rest string) func(*key, *mac) {
	return func(k *key, m *mac) {
		m.add(k.text)
		m.add(rest)
	}
}

// payURead reads the form, and what is signed of it: "~508029~…".
func payURead(body []byte) (fields map[string]string, message string, err *Error) {
	if fields, err = parseForm(string(body)); err != nil {
		return nil, "", err
	}
	for _, f := range payUFields {
		v := fields[f.name]
		if v == "" {
			return nil, "", refuse(Missing, "no "+f.name)
		}
		if !f.ok(v) {
			return nil, "", refuse(Malformed, f.name+" is of another form")
		}
		if f.name == payUValue {
			if v, err = payUDecimal(v); err != nil {
				return nil, "", err
			}
		}
		message += "~" + v
	}
	return fields, message, nil
}

// payUDecimal writes a plain decimal as PayU signs it, with one decimal at least
// and two if the second is not zero. More have no rule.
func payUDecimal(v string) (string, *Error) {
	whole, fraction, _ := strings.Cut(v, ".")
	switch {
	case len(fraction) > 2:
		return "", refuse(Malformed, "value has more than two decimals")
	case fraction == "":
		fraction = "0"
	case len(fraction) == 2 && fraction[1] == '0':
		fraction = fraction[:1]
	}
	return whole + "." + fraction, nil
}

func (f *payU) sign(b []byte, secret string, _ time.Time, _ SignOptions) (Signed, *Error) {
	k, err := f.keys.signer(secret)
	if err != nil {
		return Signed{}, err
	}
	_, message, err := payURead(b)
	if err != nil {
		return Signed{}, err
	}
	sig := hexText.encode(k.digestOf(payUMessage(message)))
	h := http.Header{}
	h.Set("Content-Type", formType)
	return Signed{Header: h, Body: []byte(setField(string(b), payUSign, sig))}, nil
}

func (f *payU) checkSecret(secret string) *Error { return f.keys.wellFormed(secret, wellText) }

// payUKey takes the algorithm, the API key and, for HMAC, the secret key:
// "MD5:api_key", "SHA1:api_key", "SHA256:api_key", "HMAC-SHA256:api_key:secret_key".
func payUKey(secret string) *key {
	const want = "want MD5:api_key, SHA1:api_key, SHA256:api_key or HMAC-SHA256:api_key:secret_key"
	algorithm, text, _ := strings.Cut(secret, ":")
	var plain func() hash.Hash
	switch algorithm {
	case "MD5":
		plain = md5.New
	case "SHA1":
		plain = sha1.New
	case "SHA256":
		plain = sha256.New
	case "HMAC-SHA256":
		api, own, _ := strings.Cut(text, ":")
		if api == "" || own == "" {
			return badKey(want)
		}
		k := hmacKey("", sha256.New, []byte(own))
		k.text = api
		return k
	}
	if plain == nil || text == "" {
		return badKey(want)
	}
	k := hashKey("", plain, "")
	k.text = text
	return k
}
