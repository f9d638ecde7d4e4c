package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRowsAreData adds a gateway that is not in the table: one of a known family
// needs no code, and is verified and signed at once.
func TestRowsAreData(t *testing.T) {
	t.Parallel()
	row := &Scheme{Name: "newcomer", Spec: "https://example.com", Tolerance: time.Minute, family: &inHeader{
		header: field{name: "X-Newcomer"}, syntax: syntax{sep: ',', cut: '='}, encoding: hexText,
		message: []part{
			{from: fromSignature, name: "at", role: roleMillis},
			{from: fromRow, name: "\n"},
			{from: fromURL},
			{from: fromRow, name: "\n"},
			{from: fromBody},
		},
		keys: &keyring{parse: textKey("sig", sha512.New)},
	}}
	const url, secret = "https://merchant.example/hooks", "a secret"
	now := time.UnixMilli(1_790_000_000_123)
	body := []byte(`{"a":1}`)
	signed, err := row.Sign(body, secret, now, SignOptions{URL: url})
	require.NoError(t, err)

	h := hmac.New(sha512.New, []byte(secret))
	h.Write([]byte("1790000000123\n" + url + "\n" + string(body)))
	require.Equal(t, "at=1790000000123,sig="+hex.EncodeToString(h.Sum(nil)), signed.Header.Get("X-Newcomer"))

	req := Request{URL: url, Header: signed.Header, Body: body}
	require.NoError(t, row.Verify(req, []string{secret}, now))
	require.Equal(t, Mismatch, ReasonOf(row.Verify(req, []string{"another"}, now)))
	require.Equal(t, Stale, ReasonOf(row.Verify(req, []string{secret}, now.Add(2*time.Minute))))
	req.Tolerance = time.Hour
	require.NoError(t, row.Verify(req, []string{secret}, now.Add(2*time.Minute)))
}

// TestTable holds what the code of the families takes for granted of a row.
func TestTable(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, s := range table {
		require.NotEmpty(t, s.Name)
		require.NotEmpty(t, s.Spec)
		require.False(t, names[s.Name], "two rows are called %s", s.Name)
		names[s.Name] = true

		f, ok := s.family.(*inHeader)
		if !ok {
			continue
		}
		require.LessOrEqual(t, len(f.message), maxParts, s.Name)
		fields := []field{f.header, f.second, f.names}
		times, bodies := 0, 0
		for _, p := range f.message {
			if p.from == fromHeader {
				fields = append(fields, p.head)
			}
			switch p.from {
			case fromBody, fromChecksum, fromMinified:
				bodies++
			default:
			}
			switch p.role {
			case roleTime, roleMillis, roleDate:
				times++
			default:
			}
		}
		for _, h := range fields {
			require.Equal(t, http.CanonicalHeaderKey(h.name), h.name)
			require.Equal(t, http.CanonicalHeaderKey(h.alt), h.alt)
		}
		require.Equal(t, 1, bodies, s.Name)
		require.LessOrEqual(t, times, 1, s.Name)
		require.False(t, s.Tolerance > 0 && times == 0, "%s: a tolerance, and no time to compare", s.Name)
		require.False(t, f.syntax.sep == 0 && f.keys.get("").label != "", "%s: a label in a header that has none", s.Name)
	}
}

// TestKeyringIsBounded: more secrets than it keeps still verify.
func TestKeyringIsBounded(t *testing.T) {
	t.Parallel()
	made := 0
	r := keyring{parse: func(s string) *key {
		made++
		return hmacKey("", sha256.New, []byte(s))
	}}
	first := r.get("k")
	require.Same(t, first, r.get("k"))
	require.Equal(t, 1, made)
	for i := range maxKeys + 10 {
		r.get(string(rune('a' + i)))
		require.LessOrEqual(t, len(r.keys), maxKeys)
	}
	require.NotNil(t, r.get("k").macs)
}
