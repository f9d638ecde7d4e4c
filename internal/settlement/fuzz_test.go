package settlement_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/unicode"

	"github.com/paidonce/paidonce/internal/settlement"
	"github.com/paidonce/paidonce/order"
)

// readAll reads a report of whatever it is, and checks what holds of every line.
func readAll(t *testing.T, data []byte, o settlement.Options) []string {
	t.Helper()
	r, err := settlement.NewReader(bytes.NewReader(data), o)
	if err != nil {
		return []string{err.Error()}
	}
	var all []string
	for last := 0; ; {
		l, err := r.Next()
		var bad *settlement.LineError
		switch {
		case errors.Is(err, io.EOF):
			return all
		case errors.As(err, &bad):
			all = append(all, bad.Why)
		case err != nil:
			return append(all, err.Error())
		default:
			require.NotEmpty(t, l.Kind)
			require.NotEmpty(t, l.Same)
			require.GreaterOrEqual(t, l.Amount.Minor, int64(0))
			require.Less(t, l.Amount.Minor, int64(order.All))
			for _, cur := range []string{l.Amount.Currency, l.NetCurrency} {
				_, known := order.Exponent(cur)
				require.True(t, known || cur == "" && !l.Kind.OfPayment(), "currency %q", cur)
			}
			for _, id := range append(l.Payment, l.ID, l.Ref, l.Reference, l.Word) {
				require.True(t, utf8.ValidString(id))
				require.Equal(t, strings.TrimSpace(id), id)
			}
			all = append(all, lineText(l))
		}
		require.Greater(t, l.Number, last, "lines come in the order of the file")
		last = l.Number
	}
}

// Whatever a file holds, it is read to its end or refused, amounts are exact and in range, and its encoding changes nothing.
func FuzzReader(f *testing.F) {
	files, err := filepath.Glob("testdata/*.csv")
	require.NoError(f, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(data, false, false)
	}
	f.Add([]byte(head+"txn_1,charge,pi_1,5.00,eur,0,5\n"), false, false)
	f.Add([]byte("Zahlung;Betrag\np;1.234,56\n"), true, true)
	f.Add([]byte(head+"txn_1,\"charge\n"), false, false)
	f.Fuzz(func(t *testing.T, data []byte, comma, own bool) {
		o := settlement.Options{DecimalComma: comma, Currency: "EUR"}
		if own {
			o.Columns = map[settlement.Field]string{settlement.FieldPayment: "Zahlung", settlement.FieldAmount: "Betrag"}
		}
		have := readAll(t, data, o)
		if !utf8.Valid(data) || bytes.ContainsAny(data, "\x00\uFEFF") {
			return
		}
		wide, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().Bytes(data)
		require.NoError(t, err)
		require.Equal(t, have, readAll(t, wide, o), "in UTF-16")
		require.Equal(t, have, readAll(t, append([]byte("\xef\xbb\xbf"), data...), o), "with a byte order mark")
	})
}

// What is read of an amount is what it says: written again, it is the same.
func FuzzAmount(f *testing.F) {
	for _, text := range []string{"50.00", "-1,234.56", "1.234,56", "(1'000)", "1 234", "12,34", ".5", "9223372036854775807"} {
		f.Add(text, false, false)
		f.Add(text, true, true)
	}
	f.Fuzz(func(t *testing.T, text string, comma, minor bool) {
		for _, cur := range []string{"EUR", "JPY", "KWD"} {
			have, err := settlement.ReadAmount(text, cur, comma, minor)
			if err != nil {
				continue
			}
			digits := strings.Map(func(r rune) rune {
				if r >= '0' && r <= '9' {
					return r
				}
				return -1
			}, text)
			exp, _ := order.Exponent(cur)
			require.Equal(t, strings.TrimLeft(digits, "0"), strings.TrimLeft(digitsOf(have, digits, exp, minor), "0"), "%q %s", text, cur)
			again, err := settlement.ReadAmount(order.Format(have, cur), cur, false, false)
			require.NoError(t, err)
			require.Equal(t, have, again)
		}
	})
}

// digitsOf are the digits of an amount with as many decimals as its text has: decimals that are missing or zero are no digits.
func digitsOf(minor int64, like string, exp int, isMinor bool) string {
	digits := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, order.Format(minor, "JPY"))
	if isMinor {
		return digits
	}
	trimmed, liked := strings.TrimLeft(digits, "0"), strings.TrimLeft(like, "0")
	for len(trimmed) > len(liked) && strings.HasSuffix(trimmed, "0") {
		trimmed = trimmed[:len(trimmed)-1]
	}
	for len(trimmed) < len(liked) {
		trimmed += "0"
	}
	return trimmed
}
