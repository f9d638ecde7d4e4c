package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/store"
)

// stricter are the codes of faults that a JSON Schema cannot state, or states as a format of ours: in them alone we may
// refuse what the document's schema takes.
var stricter = []string{
	"not_minor_units", "not_integer", "unknown_currency", "not_printable", "not_trimmed", "too_long", "invalid_uuid", "invalid_time",
	"number_too_long", "invalid_text", "not_retryable", "unknown_source", "unknown_gateway", "other_gateway", "ambiguous", "unexpected",
	"unidentified", "same_currency", "reserved", "before_start", "too_long_ago", "in_the_past",
}

// TestSchemaAndCheckAgree: of every body that is made from the document's example by changes anywhere in it, we refuse what
// another validator refuses by the document's schema, and refuse no more save for what a schema cannot say.
func TestSchemaAndCheckAgree(t *testing.T) {
	t.Parallel()
	o := oracleOf(t)
	o.operations(func(pattern, method string, op map[string]any) {
		if _, ok := op["requestBody"]; !ok {
			return
		}
		t.Run(op["operationId"].(string), func(t *testing.T) {
			t.Parallel()
			at := []string{"paths", pattern, method, "requestBody", "content", "application/json"}
			example, _, ok := o.at(append(slices.Clone(at), "example")...)
			require.True(t, ok)
			key := map[string]string{"write": keyA, "operate": operator}[op["security"].([]any)[0].(map[string]any)["api_key"].([]any)[0].(string)]
			b := setup(t, api.Options{Rate: 1 << 30, Burst: 1 << 30})
			refused, taken := 0, 0
			rapid.Check(t, func(rt *rapid.T) {
				body := change(rt, copied(example))
				if rapid.Bool().Draw(rt, "twice") {
					body = change(rt, body)
				}
				path := strings.NewReplacer("{id}", uuid.NewString(), "{key}", "k").Replace(pattern)
				w := b.do(strings.ToUpper(method), path, key, jsonOf(t, body))
				judged := o.judge(body, append(slices.Clone(at), "schema")...)
				if judged != nil {
					refused++
					if w.Code != http.StatusUnprocessableEntity {
						rt.Fatalf("answered %d, though the document refuses %s: %v", w.Code, jsonOf(t, body), judged)
					}
					if len(problemOf(t, w).Errors) == 0 {
						rt.Fatalf("no place is named")
					}
					return
				}
				taken++
				if w.Code != http.StatusUnprocessableEntity && w.Code != http.StatusBadRequest {
					return
				}
				for _, e := range problemOf(t, w).Errors {
					// Metadata is of one form everywhere; only what comes back must have a name in it.
					unnamed := e.Pointer == "/data/metadata/external_ref" && e.Code == "required"
					if !slices.Contains(stricter, e.Code) && !unnamed {
						rt.Fatalf("refused for %v, though the document takes %s", e, jsonOf(t, body))
					}
				}
			})
			require.Positive(t, refused)
			require.Positive(t, taken)
		})
	})
}

func copied(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for k, e := range v {
			m[k] = copied(e)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, e := range v {
			l[i] = copied(e)
		}
		return l
	}
	return v
}

// change replaces, adds or takes away something, anywhere in v.
func change(rt *rapid.T, v any) any {
	switch v := v.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		switch what := rapid.IntRange(0, 5).Draw(rt, "what"); {
		case len(names) > 0 && what < 3:
			name := rapid.SampledFrom(names).Draw(rt, "member")
			v[name] = change(rt, v[name])
			return v
		case len(names) > 0 && what == 3:
			delete(v, rapid.SampledFrom(names).Draw(rt, "without"))
			return v
		case what == 4:
			v[rapid.SampledFrom([]string{"amount", "Amount", "items", "metadata", "expires_at", "dry_run", "filter", "states", "order_id", "x", "a/b~c", ""}).Draw(rt, "with")] = anything(rt)
			return v
		}
	case []any:
		if len(v) > 0 && rapid.Bool().Draw(rt, "inside") {
			i := rapid.IntRange(0, len(v)-1).Draw(rt, "element")
			v[i] = change(rt, v[i])
			return v
		}
		if rapid.Bool().Draw(rt, "longer") {
			for range rapid.SampledFrom([]int{1, 4, 1001}).Draw(rt, "more") {
				v = append(v, anything(rt))
			}
			return v
		}
	}
	return anything(rt)
}

func anything(rt *rapid.T) any {
	return rapid.SampledFrom([]any{
		nil, true, false, 0, 1, -1, 5000, 1_000_000_000_000_000, 1_000_000_000_000_001, 1.5, "", "x", "EUR", "eur", "ZZZ", "open", "dead", "fulfil",
		" x", "a\nb", "2026-10-01T00:00:00Z", "2026-10-01", "0199a1b2-0000-7000-8000-000000000001", strings.Repeat("é", 128), strings.Repeat("x", 256),
		[]any{},
		[]any{map[string]any{}},
		[]any{1},
		map[string]any{},
		map[string]any{"external_ref": "ord_9"},
		map[string]any{"external_ref": 1},
		map[string]any{"a": map[string]any{"b": []any{nil}}},
	}).Draw(rt, "anything")
}

// TestUncheckedSchema: a document that promises what nobody checks is no document, and no API.
func TestUncheckedSchema(t *testing.T) {
	t.Parallel()
	s := &shop{orders: map[string]*store.Order{}}
	for name, want := range map[string]string{
		"multipleOf": "api: try/data: its schema has MultipleOf, which nobody checks",
		"float":      "api: try/data: its schema has the type number, which nobody checks",
		"format":     "api: try/data: its schema has the format ipv4, which nobody checks",
		"enum":       "api: try/data: its schema has an enum that null is not in, which nobody checks",
		"oneOf":      "api: try/data/*: its schema has OneOf, which nobody checks",
	} {
		_, err := api.NewWithBody(s, keys, name)
		require.EqualError(t, err, want, name)
	}
	_, err := api.NewWithBody(s, keys, "plain")
	require.NoError(t, err)
}

// TestEnumsHoldEveryWord: what the document calls a state or an effect is what there is.
func TestEnumsHoldEveryWord(t *testing.T) {
	t.Parallel()
	o := oracleOf(t)
	enum := func(pointer ...string) string {
		v, _, ok := o.at(append(append([]string{"components", "schemas"}, pointer...), "enum")...)
		require.True(t, ok, pointer)
		return fmt.Sprint(v)
	}
	require.Equal(t, "[pending authorized partially_paid paid partially_refunded refunded disputed charged_back failed canceled expired]", enum("Order", "properties", "state"))
	require.Equal(t, "[nothing held fulfilled revoked]", enum("Order", "properties", "told"))
	require.Equal(t, "[fulfil hold release revoke]", enum("Effect", "properties", "effect"))
	require.Equal(t, "[open claimed done canceled assumed dead]", enum("Effect", "properties", "state"))
	require.Equal(t, "[applied no_change waiting ignored flagged quarantined]", enum("Event", "properties", "outcome"))
	require.Equal(t, fmt.Sprint(api.Codes()), enum("Problem", "properties", "code"))
}
