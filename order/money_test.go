package order_test

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/paidonce/paidonce/order"
)

func TestExponent(t *testing.T) {
	t.Parallel()
	// https://www.six-group.com/en/products-services/financial-information/data-standards.html (ISO 4217, list one)
	for cur, want := range map[string]int{
		"JPY": 0, "KRW": 0, "CLP": 0, "ISK": 0, "UGX": 0, "VND": 0, "USD": 2, "EUR": 2, "BRL": 2, "IDR": 2, "HUF": 2, "TWD": 2,
		"COP": 2, "KWD": 3, "BHD": 3, "JOD": 3, "OMR": 3, "TND": 3, "IQD": 3, "CLF": 4,
	} {
		got, ok := order.Exponent(cur)
		require.True(t, ok, cur)
		require.Equal(t, want, got, cur)
	}
	for _, cur := range []string{"", "eur", "EURO", "XYZ", "BTC"} {
		_, ok := order.Exponent(cur)
		require.False(t, ok, cur)
	}
}

func TestParseDecimal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in, cur string
		want    int64
	}{
		{"50.00", "EUR", 5000},
		{"50", "EUR", 5000},
		{"50.5", "EUR", 5050},
		{"0.01", "EUR", 1},
		{"0", "EUR", 0},
		{"-0.00", "EUR", 0},
		{"-12.34", "EUR", -1234},
		{"007.00", "EUR", 700},
		{"19.99", "USD", 1999}, // 1998.9999… as a float
		{"1.10", "USD", 110},
		{"10000", "JPY", 10000},
		{"10000.00", "JPY", 10000},
		{"12.340000", "EUR", 1234},
		{"1.234", "KWD", 1234},
		{"1.2340", "KWD", 1234},
		{"1.2", "KWD", 1200},
		{"92233720368547758.06", "EUR", order.All - 1},
		{"-92233720368547758.06", "EUR", -(order.All - 1)},
	} {
		got, err := order.ParseDecimal(tt.in, tt.cur)
		require.NoError(t, err, "%s %s", tt.in, tt.cur)
		require.Equal(t, tt.want, got, "%s %s", tt.in, tt.cur)
	}
	for _, tt := range []struct{ in, cur string }{
		{"", "EUR"},
		{"-", "EUR"},
		{".", "EUR"},
		{".5", "EUR"},
		{"5.", "EUR"},
		{"+5", "EUR"},
		{"--5", "EUR"},
		{"5-", "EUR"},
		{" 5", "EUR"},
		{"5 ", "EUR"},
		{"5\n", "EUR"},
		{"1e2", "EUR"},
		{"1E2", "EUR"},
		{"0x10", "EUR"},
		{"1_000", "EUR"},
		{"1,00", "EUR"},
		{"1.000,00", "EUR"},
		{"1.0.0", "EUR"},
		{"1.-5", "EUR"},
		{"NaN", "EUR"},
		{"Inf", "EUR"},
		{"٥", "EUR"}, // a digit, but not one of ours
		{"12.345", "EUR"},
		{"10000.01", "JPY"},
		{"1.2345", "KWD"},
		{"92233720368547758.07", "EUR"}, // would be All
		{"92233720368547758.08", "EUR"},
		{"99999999999999999999999999", "EUR"},
	} {
		_, err := order.ParseDecimal(tt.in, tt.cur)
		require.ErrorIs(t, err, order.ErrDecimal, "%q %s", tt.in, tt.cur)
	}
	for _, cur := range []string{"", "eur", "XYZ"} {
		_, err := order.ParseDecimal("5", cur)
		require.ErrorIs(t, err, order.ErrCurrency)
	}
}

func TestFormat(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		minor int64
		cur   string
		want  string
	}{
		{5000, "EUR", "50.00"},
		{5, "EUR", "0.05"},
		{0, "EUR", "0.00"},
		{-5, "EUR", "-0.05"},
		{-1234, "KWD", "-1.234"},
		{5000, "JPY", "5000"},
		{12345, "CLF", "1.2345"},
		{5000, "XYZ", "5000"},
		{order.All, "EUR", "all"},
		{-order.All - 1, "EUR", "-92233720368547758.08"},
	} {
		require.Equal(t, tt.want, order.Format(tt.minor, tt.cur))
	}
}

func TestFormatIsParsedBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		minor := rapid.Int64Range(-order.All+1, order.All-1).Draw(t, "minor")
		cur := rapid.SampledFrom([]string{"EUR", "JPY", "KWD", "CLF"}).Draw(t, "currency")
		got, err := order.ParseDecimal(order.Format(minor, cur), cur)
		require.NoError(t, err)
		require.Equal(t, minor, got)
	})
}

// FuzzParseDecimal compares with exact arithmetic: what is accepted is exactly that amount, and what is an exact amount
// in plain notation is accepted.
func FuzzParseDecimal(f *testing.F) {
	for _, s := range []string{"50.00", "-0.05", "10000.00", "1e5", "1.", ".1", "92233720368547758.07", "19.99", ""} {
		f.Add(s, "EUR")
		f.Add(s, "JPY")
	}
	f.Add("1.234", "KWD")
	f.Fuzz(func(t *testing.T, s, cur string) {
		minor, err := order.ParseDecimal(s, cur)
		if err != nil {
			require.Zero(t, minor)
			return
		}
		exp, known := order.Exponent(cur)
		require.True(t, known)
		value, ok := new(big.Rat).SetString(s)
		require.True(t, ok, "%q is no number", s)
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(exp)), nil)
		value.Mul(value, new(big.Rat).SetInt(scale))
		require.Zero(t, value.Cmp(new(big.Rat).SetInt64(minor)), "%q %s is not %d", s, cur, minor)
		require.NotEqual(t, int64(order.All), minor)

		again, err := order.ParseDecimal(order.Format(minor, cur), cur)
		require.NoError(t, err)
		require.Equal(t, minor, again)
	})
}
