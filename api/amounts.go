package api

import (
	"fmt"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/paidonce/paidonce/order"
)

// minorUnits marks the schema of an amount.
const minorUnits = "x-minor-units"

// maxAmount leaves room to add up payments.
const maxAmount = 1_000_000_000_000_000

// minor is an amount that a request names: minor units, 0 or more, digits only.
type minor int64

// Schema documents and bounds it.
func (minor) Schema(huma.Registry) *huma.Schema {
	least, most := 0.0, maxAmount*1.0 // as a schema keeps the bounds of an integer
	return &huma.Schema{
		Type: huma.TypeInteger, Format: "int64", Minimum: &least, Maximum: &most, Extensions: map[string]any{minorUnits: true},
		Description: "Minor units of the currency (1000 is 10.00 EUR, and 1000 JPY): digits only, neither 1000.0 nor 1e3.",
		Examples:    []any{5000},
	}
}

// currencyCode is a currency that a request names.
type currencyCode string

const (
	formatCurrency  = "iso-4217"
	formatReference = "external-ref"
)

// Schema documents it.
func (currencyCode) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: formatCurrency, Description: "ISO 4217 code in upper case.", Examples: []any{"EUR"}}
}

func isCurrency(s string) (code, detail string) {
	if _, known := order.Exponent(s); !known {
		return "unknown_currency", "must be an ISO 4217 code in upper case, like EUR"
	}
	return "", ""
}

// externalRef is the merchant's own name of something. Absent, null and empty are one thing: none.
func externalRef() *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeString, Nullable: true, Format: formatReference,
		Description: fmt.Sprintf("Your own name of it, unique in your account for ever: at most %d bytes of printable text without a space at either end. "+
			"A repeat answers with what has the name already.", order.MaxReference),
		Examples: []any{"ord_123"},
	}
}

func isReference(s string) (code, detail string) {
	switch {
	case s == "":
		return "", ""
	case len(s) > order.MaxReference:
		return "too_long", fmt.Sprintf("must have at most %d bytes", order.MaxReference)
	case !order.IsPrintable(s):
		return "not_printable", "must have printable characters only"
	case strings.TrimSpace(s) != s:
		return "not_trimmed", "must not begin or end with a space"
	}
	return "", ""
}
