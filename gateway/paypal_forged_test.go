package gateway_test

import (
	"bytes"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/signature"
)

// sameCRC writes a letter of pad in the one or the other case until the CRC-32 of
// body is want: the checksum is linear, so each letter flips the same bits of it
// whatever the others are.
func sameCRC(t *testing.T, body []byte, pad string, want uint32) []byte {
	t.Helper()
	at := bytes.Index(body, []byte(pad))
	sum := crc32.ChecksumIEEE(body)
	type row struct {
		flips   uint32
		letters uint64
	}
	var basis [32]row // by the highest bit
	reduce := func(r row) row {
		for bit := 31; bit >= 0; bit-- {
			if r.flips>>bit&1 == 1 && basis[bit].letters != 0 {
				r.flips ^= basis[bit].flips
				r.letters ^= basis[bit].letters
			}
		}
		return r
	}
	for i := range pad {
		body[at+i] ^= 0x20
		r := reduce(row{crc32.ChecksumIEEE(body) ^ sum, 1 << i})
		body[at+i] ^= 0x20
		for bit := 31; bit >= 0; bit-- {
			if r.flips>>bit&1 == 1 {
				basis[bit] = r
				break
			}
		}
	}
	r := reduce(row{flips: sum ^ want})
	require.Zero(t, r.flips, "too few letters")
	for i := range pad {
		if r.letters>>i&1 == 1 {
			body[at+i] ^= 0x20
		}
	}
	require.Equal(t, want, crc32.ChecksumIEEE(body))
	return body
}

// TestPayPalForgedBody holds what PayPal's scheme is worth, as the gateway's notes
// say it: whoever has the signature of one delivery can put any body under it, with
// an id of its own, so that no deduplication bounds what that grants. The time is
// signed, so a tolerance ends it.
func TestPayPalForgedBody(t *testing.T) {
	t.Parallel()
	s := paypalSource()
	genuine, err := gateway.PayPal.Sample(gateway.SampleRequest{Source: s, Type: "PAYMENT.CAPTURE.COMPLETED", ID: "WH-1", Reference: "ord_1", At: now})
	require.NoError(t, err)
	d := deliver(t, s, genuine)
	pad := strings.Repeat("abcdefghijklmnopqrstuvwxyz", 2)
	forged := sameCRC(t, []byte(`{"id":"WH-2","event_type":"PAYMENT.CAPTURE.COMPLETED","resource":{"id":"MINE","status":"COMPLETED",`+
		`"custom_id":"ord_2","amount":{"value":"999.00","currency_code":"EUR"}},"pad":"`+pad+`"}`), pad, crc32.ChecksumIEEE(genuine))
	d.Body = forged
	require.NoError(t, gateway.PayPal.Verify(s, d, now, paypalCertificate()))
	evs, err := gateway.PayPal.Events(s, d)
	require.NoError(t, err)
	require.Equal(t, "WH-2", evs[0].ID)
	require.EqualValues(t, 99900, evs[0].Facts[0].Amount)

	later := now.Add(97 * time.Hour)
	require.NoError(t, gateway.PayPal.Verify(s, d, later, paypalCertificate()), "by default no age is too old")
	s.Tolerance = 96 * time.Hour
	require.NoError(t, gateway.PayPal.Check(s))
	require.NoError(t, gateway.PayPal.Verify(s, d, now.Add(95*time.Hour), paypalCertificate()))
	require.Equal(t, signature.Stale, signature.ReasonOf(gateway.PayPal.Verify(s, d, later, paypalCertificate())))

	// PayPal is not asked about what is too old, either.
	s.VerifyBy, s.RootPEM, s.ClientID, s.ClientSecret = "api", "", "x", "y"
	require.NoError(t, gateway.PayPal.Check(s))
	for at, want := range map[time.Time]signature.Reason{
		now.Add(95 * time.Hour): "", later: signature.Stale, now.Add(-97 * time.Hour): signature.Future, {}: signature.Future,
	} {
		d.ReceivedAt = at
		_, ok, err := gateway.PayPal.Remote.Ask(s, d)
		require.True(t, ok)
		require.Equal(t, want, signature.ReasonOf(err), "%s", at)
	}
	d.ReceivedAt = now
	d.Header.Set("Paypal-Transmission-Time", "yesterday")
	_, _, err = gateway.PayPal.Remote.Ask(s, d)
	require.Equal(t, signature.Malformed, signature.ReasonOf(err))
}
