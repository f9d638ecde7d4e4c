package order

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/bojanz/currency"
)

// Exponent returns the number of decimals of an ISO 4217 currency (JPY 0, USD 2, KWD 3), and whether there is one of
// that code. A gateway that counts otherwise corrects that itself.
func Exponent(cur string) (int, bool) {
	digits, ok := currency.GetDigits(cur)
	return int(digits), ok
}

// Errors of [ParseDecimal].
var (
	ErrCurrency = errors.New("order: unknown currency")
	ErrDecimal  = errors.New("order: not a decimal amount")
)

// ParseDecimal returns the minor units of an amount in decimal notation: an optional minus, digits, and perhaps a point
// with more digits. It is exact. More decimals than the currency has are refused unless they are zeros ("10000.00" JPY
// is 10000); so are exponents, a plus, spaces, and amounts that are not less than [All].
func ParseDecimal(s, cur string) (int64, error) {
	exp, ok := Exponent(cur)
	if !ok {
		return 0, fmt.Errorf("%w %q", ErrCurrency, cur)
	}
	digits, negative := strings.CutPrefix(s, "-")
	whole, fraction, point := strings.Cut(digits, ".")
	if !isDigits(whole) || point && !isDigits(fraction) {
		return 0, fmt.Errorf("%w: %q", ErrDecimal, s)
	}
	if extra := len(fraction) - exp; extra > 0 {
		if strings.Trim(fraction[exp:], "0") != "" {
			return 0, fmt.Errorf("%w: %q has more than the %d decimals of %s", ErrDecimal, s, exp, cur)
		}
		fraction = fraction[:exp]
	}
	fraction += strings.Repeat("0", exp-len(fraction))
	minor, err := strconv.ParseInt(whole+fraction, 10, 64)
	if err != nil || minor == All {
		return 0, fmt.Errorf("%w: %q is out of range", ErrDecimal, s)
	}
	if negative {
		minor = -minor
	}
	return minor, nil
}

// Format writes minor units as a decimal number with the decimals of the currency: what [ParseDecimal] reads. [All] is
// "all". Of an unknown currency the decimals are unknown too, so it has none.
func Format(minor int64, cur string) string {
	if minor == All {
		return "all"
	}
	exp, _ := Exponent(cur)
	digits, negative := strings.CutPrefix(strconv.FormatInt(minor, 10), "-")
	if short := exp + 1 - len(digits); short > 0 {
		digits = strings.Repeat("0", short) + digits
	}
	if exp > 0 {
		digits = digits[:len(digits)-exp] + "." + digits[len(digits)-exp:]
	}
	if negative {
		digits = "-" + digits
	}
	return digits
}

func isDigits(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0
}
