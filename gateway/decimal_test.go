package gateway_test

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

// TestDecimalAmounts: amounts of major units are read from their digits.
func TestDecimalAmounts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		raw, currency string
		want          int64 // -1: refused
	}{
		{`"50.00"`, "EUR", 5000},
		{`50.00`, "EUR", 5000},
		{`50`, "EUR", 5000},
		{`50.0`, "EUR", 5000},
		{`72.1`, "BRL", 7210},
		{`0`, "EUR", 0},
		{`0.29`, "USD", 29}, // through a float it is 28.999…
		{`1.001`, "KWD", 1001},
		{`"10000.00"`, "JPY", 10000},
		{`10000.00`, "IDR", 1000000},
		{`"50.0000"`, "EUR", 5000},
		{`92233720368547758.06`, "EUR", math.MaxInt64 - 1},
		{`92233720368547758.07`, "EUR", -1}, // "all"
		{`92233720368547758.08`, "EUR", -1},
		{`99999999999999999999999999`, "EUR", -1},
		{`50.001`, "EUR", -1},
		{`10000.5`, "JPY", -1},
		{`-50.00`, "EUR", -1},
		{`"-0"`, "EUR", -1},
		{`"+50"`, "EUR", -1},
		{`5e3`, "EUR", -1},
		{`5E+3`, "EUR", -1},
		{`"5e3"`, "EUR", -1},
		{`" 50.00"`, "EUR", -1},
		{`"50.00 "`, "EUR", -1},
		{`"50,00"`, "EUR", -1},
		{`"1,000.00"`, "EUR", -1},
		{`"50."`, "EUR", -1},
		{`".5"`, "EUR", -1},
		{`""`, "EUR", -1},
		{`"٥٠"`, "EUR", -1}, // digits, but not ours
		{`"NaN"`, "EUR", -1},
		{`null`, "EUR", -1},
		{`true`, "EUR", -1},
		{`{"value":"50.00"}`, "EUR", -1},
		{`["50.00"]`, "EUR", -1},
		{``, "EUR", -1},
		{`"50.00"`, "ZZZ", -1},
		{`"50.00"`, "", -1},
	} {
		got, err := gateway.Decimal(tt.raw, tt.currency)
		if tt.want < 0 {
			require.Error(t, err, "%s %s", tt.raw, tt.currency)
			require.Zero(t, got)
			require.NotContains(t, err.Error(), "50", "a byte of the payload stands in the error")
			continue
		}
		require.NoError(t, err, "%s %s", tt.raw, tt.currency)
		require.Equal(t, tt.want, got, "%s %s", tt.raw, tt.currency)
	}
}

// TestDecimalsComeBack: what a sample writes in major units is read as the same
// money, as a text and as a number.
func TestDecimalsComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.Int64Range(0, order.All-1).Draw(t, "minor")
		cur := rapid.SampledFrom(currencies).Draw(t, "currency")
		text, err := gateway.Major(want, cur)
		require.NoError(t, err)
		for _, raw := range []string{text, strconv.Quote(text)} {
			got, err := gateway.Decimal(raw, cur)
			require.NoError(t, err, raw)
			require.Equal(t, want, got, raw)
		}
	})
	for _, bad := range []order.Amount{{Minor: -1, Currency: "EUR"}, {Minor: order.All, Currency: "EUR"}, {Minor: 1, Currency: "ZZZ"}} {
		_, err := gateway.Major(bad.Minor, bad.Currency)
		require.Error(t, err, "%+v", bad)
	}
}

// TestLocalTimes: a time without a zone is read only where the zone is known.
func TestLocalTimes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		raw, layout, zone string
		want              time.Time
	}{
		{`"2026-01-01 16:00:00"`, time.DateTime, "Asia/Jakarta", now},
		{`"2026-07-01 11:00:00"`, time.DateTime, "Europe/Madrid", now.AddDate(0, 6, 0)}, // summer
		{`"2026-01-01 16:00:00"`, time.DateTime, "", time.Time{}},
		{`"2026-01-01 16:00:00"`, time.DateTime, "Nowhere/Land", time.Time{}},
		{`"2026-13-01 16:00:00"`, time.DateTime, "UTC", time.Time{}},
		{`"1969-12-31 16:00:00"`, time.DateTime, "UTC", time.Time{}},
		{`null`, time.DateTime, "UTC", time.Time{}},
		{`7`, time.DateTime, "UTC", time.Time{}},
	} {
		require.Equal(t, tt.want, gateway.LocalTime(tt.raw, tt.layout, tt.zone), "%+v", tt)
	}
}
