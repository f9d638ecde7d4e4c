package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
)

func TestInvalidBodies(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`[`, 40) + strings.Repeat(`]`, 40)
	with := func(field string) string { return `{"data":{"amount":5000,"currency":"EUR",` + field + `}}` }
	tests := []struct {
		name, body string
		status     int
		at         []string // pointer and code of each fault
	}{
		{"Empty", "", 400, nil},
		{"NoJSON", "amount=5000", 400, []string{" unexpected_byte"}},
		{"CutOff", `{"data":{"amount":5000`, 400, []string{"/data truncated"}},
		{"TwoValues", ordinary + `{}`, 400, []string{" trailing_data"}},
		{"TrailingComma", `{"data":{"amount":5000,}}`, 400, []string{"/data unexpected_byte"}},
		{"NotUTF8", strings.Replace(ordinary, "ord_1", "\xff", 1), 400, []string{"/data/metadata/external_ref invalid_utf8"}},
		{"TooDeep", with(`"metadata":{"a":` + deep + `}`), 400, nil},
		{"Null", "null", 422, []string{" type"}},
		{"List", "[]", 422, []string{" type"}},
		{"NoData", "{}", 422, []string{"/data required"}},
		{"DataIsAList", `{"data":[]}`, 422, []string{"/data type"}},
		{"UnknownNull", with(`"ammount":null`), 422, []string{"/data/ammount unknown_field"}},
		{"NothingInIt", `{"data":{}}`, 422, []string{"/data/amount required", "/data/currency required"}},
		{"UnknownTopLevel", `{"data":{"amount":1,"currency":"EUR"},"meta":1}`, 422, []string{"/meta unknown_field"}},
		{"UnknownField", with(`"ammount":5000,"a/b~c":1`), 422, []string{"/data/a~1b~0c unknown_field", "/data/ammount unknown_field"}},
		{"AmountTwice", with(`"amount":1`), 422, []string{"/data/amount duplicate"}},
		{"KeyTwiceByEscapes", `{"data":{"amount":1,"\u0061mount":2,"currency":"EUR"}}`, 422, []string{"/data/amount duplicate"}},
		{"KeyTwiceDeep", with(`"metadata":{"a":[{"b":1,"b":2}]}`), 422, []string{"/data/metadata/a/0/b duplicate"}},
		{"AmountText", `{"data":{"amount":"5000","currency":"EUR"}}`, 422, []string{"/data/amount type"}},
		{"AmountWord", `{"data":{"amount":"abc"}}`, 422, []string{"/data/amount type", "/data/currency required"}},
		{"AmountNull", `{"data":{"amount":null,"currency":"EUR"}}`, 422, []string{"/data/amount required"}},
		{"AmountFloat", `{"data":{"amount":50.00,"currency":"EUR"}}`, 422, []string{"/data/amount not_minor_units"}},
		{"AmountExponent", `{"data":{"amount":5e3,"currency":"EUR"}}`, 422, []string{"/data/amount not_minor_units"}},
		{"AmountNegative", `{"data":{"amount":-1,"currency":"EUR"}}`, 422, []string{"/data/amount not_minor_units"}},
		{"AmountMinusZero", `{"data":{"amount":-0,"currency":"EUR"}}`, 422, []string{"/data/amount not_minor_units"}},
		{"AmountTooLarge", `{"data":{"amount":1000000000000001,"currency":"EUR"}}`, 422, []string{"/data/amount too_large"}},
		{"AmountOverflows", `{"data":{"amount":18446744073709551617,"currency":"EUR"}}`, 422, []string{"/data/amount too_large"}},
		{"CurrencyLower", `{"data":{"amount":1,"currency":"eur"}}`, 422, []string{"/data/currency unknown_currency"}},
		{"CurrencyUnknown", `{"data":{"amount":1,"currency":"ZZZ"}}`, 422, []string{"/data/currency unknown_currency"}},
		{"CurrencyEmpty", `{"data":{"amount":1,"currency":""}}`, 422, []string{"/data/currency unknown_currency"}},
		{"CurrencyNumber", `{"data":{"amount":1,"currency":978}}`, 422, []string{"/data/currency type"}},
		{"ItemsObject", with(`"items":{}`), 422, []string{"/data/items type"}},
		{"ItemText", with(`"items":[{},"A"]`), 422, []string{"/data/items/1 type"}},
		{"TooManyItems", with(`"items":[` + strings.Repeat("{},", 1000) + `{}]`), 422, []string{"/data/items too_many"}},
		{"MetadataList", with(`"metadata":[]`), 422, []string{"/data/metadata type"}},
		{"RefNumber", with(`"metadata":{"external_ref":1}`), 422, []string{"/data/metadata/external_ref type"}},
		{"RefTooLong", with(`"metadata":{"external_ref":"` + strings.Repeat("x", 256) + `"}`), 422, []string{"/data/metadata/external_ref too_long"}},
		{"RefNotPrintable", with(`"metadata":{"external_ref":"a\nb"}`), 422, []string{"/data/metadata/external_ref not_printable"}},
		{"RefInvisible", with(`"metadata":{"external_ref":"a\u200bb"}`), 422, []string{"/data/metadata/external_ref not_printable"}},
		{"RefBroken", with(`"metadata":{"external_ref":"a\ud800"}`), 400, []string{"/data/metadata/external_ref lone_surrogate"}},
		{"RefSpaces", with(`"metadata":{"external_ref":" a"}`), 422, []string{"/data/metadata/external_ref not_trimmed"}},
		{"NULInText", with(`"metadata":{"a":"x\u0000"}`), 422, []string{"/data/metadata/a invalid_text"}},
		{"NULInKey", with(`"metadata":{"x\u0000":1}`), 422, []string{"/data/metadata/x\x00 invalid_text"}},
		{"NumberThatExplodes", with(`"metadata":{"a":1e131072}`), 422, []string{"/data/metadata/a number_too_long"}},
		{"NumberThatVanishes", with(`"metadata":{"a":1E-99999999999999999999}`), 422, []string{"/data/metadata/a number_too_long"}},
		{"NumberTooLong", with(`"metadata":{"a":` + strings.Repeat("1", 65) + `}`), 422, []string{"/data/metadata/a number_too_long"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, api.Options{})
			w := b.post(keyA, tt.body)
			require.Equal(t, tt.status, w.Code, w.Body.String())
			p := problemOf(t, w)
			var at []string
			for _, e := range p.Errors {
				at = append(at, e.Pointer+" "+e.Code)
				require.NotEmpty(t, e.Detail)
			}
			require.Equal(t, tt.at, at)
			require.Empty(t, b.shop.events)
			require.Empty(t, w.Header().Get("Connection"), "the body was read to its end")
		})
	}
}

func TestExactAmounts(t *testing.T) {
	t.Parallel()
	b := setup(t, api.Options{})
	for i, amount := range []string{"0", "1", "1000000000000000"} {
		w := b.post(keyA, fmt.Sprintf(`{"data":{"amount":%s,"currency":"KWD","items":[{"a":null}],"metadata":{"external_ref":"%d","exact":9007199254740993,"b":null}}}`, amount, i))
		require.Equal(t, http.StatusCreated, w.Code)
		require.Contains(t, w.Body.String(), `"amount":`+amount+`,`)
		require.Contains(t, w.Body.String(), `9007199254740993`, "no number goes through a float")
	}
}

// FuzzRegister: whatever the body, an order is registered with exactly what it says, or nothing is.
func FuzzRegister(f *testing.F) {
	for _, seed := range []string{
		ordinary, `{"data":{"amount":1,"currency":"JPY","metadata":{"external_ref":"a#b"}}}`, `{"data":{"amount":1e3,"currency":"EUR"}}`,
		`{"data":{"amount":1,"amount":2,"currency":"EUR"}}`, "\xff", `{"data":{"amount":01,"currency":"EUR"}}`, `[[[[`, `{"data":{"metadata":{"\ud800":"\u0000"}}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		b := setup(t, api.Options{})
		w := b.post(keyA, body)
		if w.Code != http.StatusCreated {
			require.Contains(t, []int{400, 422}, w.Code, "%q", body)
			problemOf(t, w)
			require.Empty(t, b.shop.events)
			return
		}
		e := b.shop.events[0]
		require.NoError(t, e.Event.Validate())
		require.NotContains(t, string(e.Command.Details), `\u0000`)
		var said struct {
			Data struct {
				Amount   json.Number
				Currency string
			}
		}
		require.NoError(t, json.Unmarshal([]byte(body), &said))
		require.Equal(t, said.Data.Amount.String(), fmt.Sprint(e.Command.Register.Minor))
		require.Equal(t, said.Data.Currency, e.Command.Register.Currency)
	})
}
