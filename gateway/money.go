package gateway

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"sync"

	currencies "github.com/bojanz/currency"
	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/order"
)

// exponents are the currencies that a gateway counts in other minor units than
// ISO 4217 does: how many decimals its amounts have. All others are as in ISO.
type exponents map[string]int

// stripeExponents: https://docs.stripe.com/currencies (zero-decimal currencies,
// special cases). ISK and UGX have no decimals any more, and Stripe's amounts
// keep two of them, always 00, for compatibility; the ariary has two in ISO
// (fifths, really) and none at Stripe. HUF and TWD differ in payouts only.
var stripeExponents = exponents{"ISK": 2, "UGX": 2, "MGA": 0}

// adyenExponents: https://docs.adyen.com/development-resources/currency-codes,
// the rows that say "differs from standard".
var adyenExponents = exponents{"CLP": 2, "CVE": 0, "IDR": 0, "ISK": 2}

// hundredths are the currencies without decimals in ISO 4217, for gateways that
// speak of "cents" and say nothing about those. Read so, a wrong guess makes too
// little of an amount, and never too much.
var hundredths = exponents{
	"BIF": 2, "CLP": 2, "DJF": 2, "GNF": 2, "ISK": 2, "JPY": 2, "KMF": 2, "KRW": 2, "PYG": 2, "RWF": 2, "UGX": 2, "VND": 2, "VUV": 2,
	"XAF": 2, "XOF": 2, "XPF": 2,
}

var (
	errCurrency = errors.New("not a currency of ISO 4217")
	errAmount   = errors.New("not an integer of at least 0 that fits 64 bits")
	errFraction = errors.New("a fraction of the currency's smallest unit")
	errTooGreat = errors.New("too great for 64 bits")
	errDecimal  = errors.New("not a decimal amount of at least 0")
)

// currency reads an ISO 4217 code in either case.
func currency(v value) (string, error) {
	text, ok := v.text()
	code := strings.ToUpper(text)
	if !ok || len(text) != 3 {
		return "", errCurrency
	}
	if _, known := order.Exponent(code); !known {
		return "", errCurrency
	}
	return code, nil
}

// numericCurrencies are the codes of ISO 4217 by its numbers ("978": EUR).
var numericCurrencies = sync.OnceValue(func() map[string]string {
	m := map[string]string{}
	for _, code := range currencies.GetCurrencyCodes() {
		if number, ok := currencies.GetNumericCode(code); ok {
			m[number] = code
		}
	}
	return m
})

// numericOf is the number of a currency; "" if it has none.
func numericOf(cur string) string {
	number, _ := currencies.GetNumericCode(cur)
	return number
}

// amount reads an amount in the gateway's minor units and returns it in those
// of ISO 4217. The greatest integer is refused: it means "all" to a fold.
func (x exponents) amount(v value, cur string) (int64, error) {
	n, ok := v.integer()
	if !ok || n == order.All {
		return 0, errAmount
	}
	theirs, differs := x[cur]
	ours, _ := order.Exponent(cur)
	if !differs || theirs == ours {
		return n, nil
	}
	for ; theirs < ours; theirs++ {
		if n > math.MaxInt64/10-1 {
			return 0, errTooGreat
		}
		n *= 10
	}
	for ; theirs > ours; theirs-- {
		if n%10 != 0 {
			return 0, errFraction
		}
		n /= 10
	}
	return n, nil
}

// textAmount is amount for gateways that write their minor units as a text of
// digits, without a sign or a leading zero.
func (x exponents) textAmount(v value, cur string) (int64, error) {
	if v.Type != gjson.String || !isDigits(v.Str) || len(v.Str) > 1 && v.Str[0] == '0' {
		return 0, errAmount
	}
	return x.amount(value{gjson.Result{Type: gjson.Number, Raw: v.Str}}, cur)
}

// theirs is the reverse of amount: minor units of ISO 4217 in the gateway's. A
// fraction of its smallest unit is refused.
func (x exponents) theirs(n int64, cur string) (int64, error) {
	ours, known := order.Exponent(cur)
	theirs, differs := x[cur]
	switch {
	case !known:
		return 0, errCurrency
	case n < 0:
		return 0, errAmount
	case !differs:
		return n, nil
	}
	for ; theirs > ours; theirs-- {
		if n > math.MaxInt64/10 {
			return 0, errTooGreat
		}
		n *= 10
	}
	for ; theirs < ours; theirs++ {
		if n%10 != 0 {
			return 0, errFraction
		}
		n /= 10
	}
	return n, nil
}

// theirsText is the reverse of textAmount.
func (x exponents) theirsText(n int64, cur string) (string, error) {
	n, err := x.theirs(n, cur)
	return strconv.FormatInt(n, 10), err
}

// decimal reads an amount in major units, a JSON text or the digits of a JSON
// number ("50.00", 50, 50.0), and returns it in minor units of ISO 4217. More
// decimals than the currency has are refused unless they are zeros: "10000.00"
// JPY is 10000. A sign, an exponent and spaces are refused, and the greatest
// integer, which means "all" to a fold.
func decimal(v value, cur string) (int64, error) {
	text := v.Str
	switch v.Type {
	case gjson.Number:
		text = v.Raw
	case gjson.String:
	default:
		return 0, errDecimal
	}
	if strings.HasPrefix(text, "-") {
		return 0, errDecimal
	}
	n, err := order.ParseDecimal(text, cur)
	if err != nil {
		return 0, errDecimal // the fault of package order quotes the text
	}
	return n, nil
}

// major is the reverse of decimal: minor units of ISO 4217 as a decimal text of
// major units, with all decimals of the currency.
func major(n int64, cur string) (string, error) {
	switch _, known := order.Exponent(cur); {
	case !known:
		return "", errCurrency
	case n < 0 || n == order.All:
		return "", errAmount
	}
	return order.Format(n, cur), nil
}

// majorNumber is major as a JSON number: 50.00.
func majorNumber(n int64, cur string) (json.Number, error) {
	text, err := major(n, cur)
	return json.Number(text), err
}
