package signature_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/signature"
)

// fuzzed is a scheme, an example of it and what that is when it is signed.
type fuzzed struct {
	*signature.Scheme
	example
	signed signature.Signed
}

// fuzzedSchemes returns all schemes. Their secrets sign none of the vectors.
func fuzzedSchemes(tb testing.TB) []fuzzed {
	tb.Helper()
	var list []fuzzed
	for _, s := range signature.Schemes() {
		e := examples()[s.Name]
		if s.Name == "adyen" {
			e.secret = unguessableAdyen
		}
		signed, err := s.Sign([]byte(e.body), e.secret, now, e.opt)
		require.NoError(tb, err)
		list = append(list, fuzzed{s, e, signed})
	}
	return list
}

// FuzzHeaders fills the headers of each scheme, as a genuine request has them, with
// anything: nothing is accepted that was not signed, a genuine request is, and not
// with another body.
func FuzzHeaders(f *testing.F) {
	schemes := fuzzedSchemes(f)
	for _, v := range readVectors(f) {
		for i, s := range schemes {
			if own, ok := v.scheme(); ok && own == s.Scheme {
				var values []string
				for _, name := range names(v.request().Header) {
					values = append(values, v.header(name))
				}
				f.Add(uint8(i), strings.Join(values, "\n"), "data.id=1", []byte(v.Body))
			}
		}
	}
	f.Add(uint8(0), "t=1,v1=00\nV2-HMAC-SHA256, Signature: 00", "data.id=%zz", []byte("{}"))
	f.Fuzz(func(t *testing.T, index uint8, text, query string, body []byte) {
		s := schemes[int(index)%len(schemes)]
		names := names(s.signed.Header)
		forged := s.request(s.signed)
		forged.Query, forged.Body, forged.Header = query, body, http.Header{}
		for i, value := range strings.Split(text, "\n") {
			if len(names) > 0 {
				forged.Header.Add(names[i%len(names)], value)
			}
		}
		if err := s.Verify(forged, []string{s.verifier()}, now); err == nil && !s.guessable(forged) {
			t.Fatalf("%s accepted the forged %q", s.Name, forged)
		}

		// Whatever stands in one of the headers of a genuine request, another body is
		// not covered.
		if !s.covers {
			return
		}
		for i, value := range strings.Split(text, "\n") {
			h := s.signed.Header.Clone()
			h[names[i%len(names)]] = []string{value}
			req := s.request(s.signed)
			req.Header, req.Body = h, append([]byte(s.body), ' ')
			if s.Name == "midtrans-snap" {
				req.Body = []byte(strings.Replace(s.body, "evt_1", "evt_2", 1))
			}
			if s.Verify(req, []string{s.verifier()}, now) == nil {
				t.Fatalf("%s accepted another body with %q", s.Name, h)
			}
		}
	})
}

// guessable reports whether a fuzzer may have found what is no secret in these
// tests: the token itself.
func (s fuzzed) guessable(req signature.Request) bool {
	for _, values := range req.Header {
		for _, v := range values {
			if v == s.secret {
				return true
			}
		}
	}
	return false
}

func names(h http.Header) []string {
	var list []string
	for name := range h {
		if name != "Content-Type" {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// FuzzBodies gives each scheme any body to sign. What it signs it accepts, with the
// same answer when it is signed again; what it signs inside the body must have one
// reading for others too.
func FuzzBodies(f *testing.F) {
	schemes := fuzzedSchemes(f)
	for i, s := range schemes {
		f.Add(uint8(i), []byte(s.body))
		for _, v := range readVectors(f) {
			if own, ok := v.scheme(); ok && own == s.Scheme {
				f.Add(uint8(i), []byte(v.Body))
			}
		}
	}
	f.Fuzz(func(t *testing.T, index uint8, body []byte) {
		s := schemes[int(index)%len(schemes)]
		if err := s.Verify(signature.Request{URL: "https://x", Path: "/x", Body: body}, []string{s.verifier()}, now); err == nil {
			t.Fatalf("%s accepted a body without headers: %q", s.Name, body)
		}
		signed, err := s.Sign(body, s.secret, now, s.opt)
		if err != nil {
			return // such a body could not be verified
		}
		if err := s.Verify(s.request(signed), []string{s.verifier()}, now); err != nil {
			t.Fatalf("%s refused what it signed: %q %q: %v", s.Name, signed.Header, signed.Body, err)
		}
		if s.Verify(s.request(signed), []string{s.other}, now) == nil {
			t.Fatalf("%s accepted another secret for %q", s.Name, signed.Body)
		}
		readOnce(t, s, signed.Body)
	})
}

// readOnce reads a signed body as the code after this package may, with the standard
// library, and sees that it finds what was signed, once.
func readOnce(t *testing.T, s fuzzed, body []byte) {
	t.Helper()
	switch s.Name {
	case "braintree", "payu-latam":
		requireForm(t, body)
	case "redsys":
		if !json.Valid(body) {
			requireForm(t, body)
		}
	case "midtrans":
		var n struct {
			Order  string `json:"order_id"`
			Status string `json:"status_code"`
			Amount string `json:"gross_amount"`
			Key    string `json:"signature_key"`
		}
		require.NoError(t, json.Unmarshal(body, &n))
		require.Equal(t, sha512Hex(n.Order+n.Status+n.Amount+s.secret), n.Key)
	case "wompi":
		var n struct {
			Data      map[string]json.RawMessage
			Signature struct {
				Properties []string
				Checksum   string
			}
			Timestamp json.Number
		}
		require.NoError(t, json.Unmarshal(body, &n))
		require.Contains(t, n.Signature.Properties, "transaction.amount_in_cents")
		require.Len(t, n.Timestamp.String(), 10)
	}
}

func requireForm(t *testing.T, body []byte) {
	t.Helper()
	values, err := url.ParseQuery(string(body))
	require.NoError(t, err)
	for name, v := range values {
		require.Len(t, v, 1, "two of %q", name)
	}
}

// FuzzForm: a form that is read is read as everybody reads it, and setting a field
// changes that field alone.
func FuzzForm(f *testing.F) {
	for _, s := range []string{"a=1&b=2", "a=%31+%C3%B1&=", "a=1&a=2", "%61=1&a=2", "a=1;b=2", "a=1&&b=2", "a", "", "a=%", "sign=a&b=c%26d"} {
		f.Add(s, "b", "x y&z")
	}
	f.Fuzz(func(t *testing.T, body, name, value string) {
		fields, ok := signature.ParseForm(body)
		if !ok {
			return
		}
		values, err := url.ParseQuery(body)
		require.NoError(t, err)
		require.Len(t, values, len(fields))
		for name, v := range fields {
			require.Equal(t, []string{v}, values[name])
		}
		if name == "" {
			return
		}
		edited, ok := signature.ParseForm(signature.SetField(body, name, value))
		require.True(t, ok)
		fields[name] = value
		require.Equal(t, fields, edited)
	})
}

// FuzzDate: what is taken for a date is one that the standard library reads too, at
// the same time, once its zone has a colon.
func FuzzDate(f *testing.F) {
	for _, s := range []string{"2026-09-21T13:33:20Z", "2026-09-21T13:33:20.123+0700", "2026-09-21T13:33:20-03:00", "2026-02-30T00:00:00Z", "2026-09-21T13:33:20.Z"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := signature.PlainDate(s)
		if !ok {
			return
		}
		want, err := time.Parse(time.RFC3339, s)
		if err != nil {
			want, err = time.Parse("2006-01-02T15:04:05.999999999-0700", s)
		}
		require.NoError(t, err)
		require.Equal(t, want.Unix(), got.Unix())
	})
}

// FuzzSecrets: anything may be configured. It never panics, an error does not tell
// it, and what a secret signs is accepted by it if it may verify at all.
func FuzzSecrets(f *testing.F) {
	schemes := fuzzedSchemes(f)
	for i, s := range schemes {
		f.Add(uint8(i), s.secret)
		f.Add(uint8(i), s.verifier())
	}
	f.Fuzz(func(t *testing.T, index uint8, secret string) {
		s := schemes[int(index)%len(schemes)]
		const canary = "CANARY"
		for _, told := range []string{secret + canary, canary + secret} {
			if err := s.CheckSecret(told); err != nil && strings.Contains(err.Error(), canary) {
				t.Fatalf("%s told the secret", s.Name)
			}
		}
		err := s.CheckSecret(secret)
		signed, signErr := s.Sign([]byte(s.body), secret, now, s.opt)
		verifyErr := s.Verify(s.request(signed), []string{secret}, now)
		if signErr == nil && verifyErr != nil && signature.ReasonOf(verifyErr) != signature.BadSecret {
			t.Fatalf("%s refused what %q signed: %v", s.Name, secret, verifyErr)
		}
		if signErr == nil && err == nil && verifyErr != nil {
			t.Fatalf("%s says the secret is fine, and refused what it signed: %v", s.Name, verifyErr)
		}
	})
}
