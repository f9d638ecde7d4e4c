package settlement

import (
	"errors"
	"strconv"
	"strings"

	"github.com/paidonce/paidonce/order"
)

// notation is how a report writes its amounts.
type notation struct {
	// comma: decimals follow a comma, and points part thousands. Which of the two it is cannot be seen in "1.234", so it is said.
	comma bool

	// minor: integers of minor units, without any separator.
	minor bool
}

// Errors of [notation.read].
var (
	errNoAmount   = errors.New("is no amount")
	errGroups     = errors.New("has thousands that are not parted in threes; if the file has decimal commas, say so with --decimal comma")
	errNotInteger = errors.New("is no integer of minor units")
)

// read returns the minor units of an amount as a spreadsheet or a gateway writes it: with a sign before or behind it or in
// brackets, and with thousands parted by spaces, apostrophes, or the one of point and comma that is not the decimal sign.
func (n notation) read(text, currency string) (int64, error) {
	digits, negative := unsigned(text)
	if n.minor {
		v, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || v == order.All || v < 0 || strings.TrimLeft(digits, "0123456789") != "" {
			return 0, errNotInteger
		}
		return signed(v, negative), nil
	}
	point, groups := ".", ","
	if n.comma {
		point, groups = groups, point
	}
	whole, fraction, hasPoint := strings.Cut(digits, point)
	whole, err := ungrouped(whole, groups)
	if err != nil {
		return 0, err
	}
	if hasPoint {
		if whole == "" {
			whole = "0"
		}
		whole += "." + fraction
	}
	v, err := order.ParseDecimal(whole, currency)
	switch {
	case errors.Is(err, order.ErrCurrency):
		return 0, err
	case err != nil:
		return 0, errNoAmount
	}
	return signed(v, negative), nil
}

func signed(v int64, negative bool) int64 {
	if negative {
		return -v
	}
	return v
}

// unsigned takes the sign off, of which there may be one.
func unsigned(text string) (digits string, negative bool) {
	text = strings.TrimSpace(text)
	for _, s := range []struct {
		before, behind string
		negative       bool
	}{{"-", "", true}, {"−", "", true}, {"+", "", false}, {"", "-", true}, {"(", ")", true}} {
		if rest, ok := strings.CutPrefix(text, s.before); ok {
			if rest, ok = strings.CutSuffix(rest, s.behind); ok {
				return strings.TrimSpace(rest), s.negative
			}
		}
	}
	return text, false
}

// spaces part thousands in some languages, as the apostrophe does in others.
const spaces = " \u00a0\u202f\u2009'’"

// ungrouped takes the separators of thousands out, where they part groups as people write them: three digits at the end, and two
// or three before (India), by one and the same sign.
func ungrouped(whole, sign string) (string, error) {
	used := ""
	for _, r := range whole {
		switch s := string(r); {
		case r >= '0' && r <= '9':
		case s != sign && !strings.ContainsRune(spaces, r), used != "" && used != s:
			return "", errNoAmount
		default:
			used = s
		}
	}
	if used == "" {
		return whole, nil
	}
	groups := strings.Split(whole, used)
	last := len(groups) - 1
	for i, g := range groups {
		switch {
		case i == last && len(g) != 3,
			i == 0 && (g == "" || len(g) > 3),
			i > 0 && i < last && len(g) != 2 && len(g) != 3:
			return "", errGroups
		}
	}
	return strings.Join(groups, ""), nil
}
