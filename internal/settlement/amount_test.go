package settlement_test

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/paidonce/paidonce/internal/settlement"
	"github.com/paidonce/paidonce/order"
)

func TestReadAmount(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, currency string
		comma          bool
		want           int64
		err            string
	}{
		{text: "50.00", currency: "EUR", want: 5000},
		{text: "50", currency: "EUR", want: 5000},
		{text: ".5", currency: "EUR", want: 50},
		{text: " -50.5 ", currency: "EUR", want: -5050},
		{text: "−50.50", currency: "EUR", want: -5050},
		{text: "+50.50", currency: "EUR", want: 5050},
		{text: "50.50-", currency: "EUR", want: -5050},
		{text: "(50.50)", currency: "EUR", want: -5050},
		{text: "1,234,567.89", currency: "EUR", want: 123456789},
		{text: "1 234 567.89", currency: "EUR", want: 123456789},
		{text: "1\u00a0234.00", currency: "EUR", want: 123400},
		{text: "1\u202f234.00", currency: "EUR", want: 123400},
		{text: "1'234.00", currency: "CHF", want: 123400},
		{text: "1’234.00", currency: "CHF", want: 123400},
		{text: "12,34,567.00", currency: "INR", want: 123456700},
		{text: "1,234", currency: "EUR", want: 123400},
		{text: "1.234", currency: "KWD", want: 1234},
		{text: "1200", currency: "JPY", want: 1200},
		{text: "1200.00", currency: "JPY", want: 1200},
		{text: "0.00", currency: "EUR", want: 0},
		{text: "90071992547409.93", currency: "EUR", want: 9007199254740993}, // no float holds it
		{text: "1.234,56", currency: "EUR", comma: true, want: 123456},
		{text: "-1.234.567,8", currency: "EUR", comma: true, want: -123456780},
		{text: "1 234,56", currency: "EUR", comma: true, want: 123456},
		{text: "1.234", currency: "EUR", comma: true, want: 123400},

		{text: "1.234", currency: "EUR", err: "is no amount"},
		{text: "1200.50", currency: "JPY", err: "is no amount"},
		{text: "12,34", currency: "EUR", err: "decimal commas, say so with --decimal comma"},
		{text: "1,2345.00", currency: "EUR", err: "parted in threes"},
		{text: ",234", currency: "EUR", err: "parted in threes"},
		{text: "1234,567", currency: "EUR", err: "parted in threes"},
		{text: "1,234 567", currency: "EUR", err: "is no amount"},
		{text: "1.234.567,89", currency: "EUR", err: "is no amount"},
		{text: "1e3", currency: "EUR", err: "is no amount"},
		{text: "€5.00", currency: "EUR", err: "is no amount"},
		{text: "--5", currency: "EUR", err: "is no amount"},
		{text: "(-5)", currency: "EUR", err: "is no amount"},
		{text: "5.", currency: "EUR", err: "is no amount"},
		{text: "", currency: "EUR", err: "is no amount"},
		{text: "n/a", currency: "EUR", err: "is no amount"},
		{text: "٥", currency: "EUR", err: "is no amount"},
		{text: "92233720368547758.07", currency: "EUR", err: "is no amount"},
		{text: "5.00", currency: "XXY", err: "unknown currency"},
	} {
		have, err := settlement.ReadAmount(tt.text, tt.currency, tt.comma, false)
		if tt.err != "" {
			require.ErrorContains(t, err, tt.err, "%q %s", tt.text, tt.currency)
			continue
		}
		require.NoError(t, err, "%q %s", tt.text, tt.currency)
		require.Equal(t, tt.want, have, "%q %s", tt.text, tt.currency)
	}
}

func TestReadMinorUnits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"5000": 5000, "0": 0, "-7": -7, "0012": 12} {
		have, err := settlement.ReadAmount(text, "EUR", false, true)
		require.NoError(t, err, text)
		require.Equal(t, want, have, text)
	}
	for _, text := range []string{"", "5.0", "5,000", "1e3", "+", "+-5", "9223372036854775807", "9223372036854775808"} {
		_, err := settlement.ReadAmount(text, "EUR", false, true)
		require.ErrorContains(t, err, "is no integer of minor units", text)
	}
}

// What a program writes in either notation, with thousands parted or not, is read as exactly that.
func TestAmountsComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cur := rapid.SampledFrom([]string{"EUR", "JPY", "KWD", "CLP"}).Draw(t, "currency")
		minor := rapid.Int64Range(-math.MaxInt64+1, math.MaxInt64-1).Draw(t, "minor")
		comma := rapid.Bool().Draw(t, "comma")
		whole, fraction, _ := strings.Cut(order.Format(minor, cur), ".")
		digits, negative := strings.CutPrefix(whole, "-")
		if rapid.Bool().Draw(t, "parted") {
			var groups []string
			for len(digits) > 3 {
				groups = append(groups, digits[len(digits)-3:])
				digits = digits[:len(digits)-3]
			}
			groups = append(groups, digits)
			slices.Reverse(groups)
			digits = strings.Join(groups, ",")
		}
		text := digits
		if fraction != "" {
			text += "." + fraction
		}
		if comma {
			text = strings.NewReplacer(",", ".", ".", ",").Replace(text)
		}
		if negative {
			text = "-" + text
		}
		have, err := settlement.ReadAmount(text, cur, comma, false)
		if err != nil || have != minor {
			t.Fatalf("%s %s: %d, %v", text, cur, have, err)
		}
	})
}

func TestSort(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		numbers := rapid.SliceOfN(rapid.IntRange(-50, 50), 0, 200).Draw(rt, "numbers")
		size := rapid.IntRange(1, 60).Draw(rt, "size")
		first, second, files, err := settlement.Sort(dir, size, numbers)
		if err != nil {
			rt.Fatal(err)
		}
		want := slices.Sorted(slices.Values(numbers))
		if !slices.Equal(first, want) || !slices.Equal(second, want) {
			rt.Fatalf("%v: %v, then %v", numbers, first, second)
		}
		if files != len(numbers)/size {
			rt.Fatalf("%d files for %d numbers, %d at a time", files, len(numbers), size)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			rt.Fatalf("left behind: %v, %v", left, err)
		}
	})
	_, _, _, err := settlement.Sort("/nowhere/to/be/found", 1, []int{1})
	require.Error(t, err)
}
