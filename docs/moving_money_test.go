package docs_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// The guide to moving money says of every refusal of its own, every status and every reason what it means, and of none that does
// not exist.
func TestMovingMoneyNamesAllWords(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("moving-money.md")
	require.NoError(t, err)
	first := func(pattern string) (words []string) {
		for _, row := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
			words = append(words, string(row[1]))
		}
		return words
	}
	var statuses []string
	for _, s := range store.TransactionStatuses() {
		statuses = append(statuses, string(s))
	}
	require.Equal(t, statuses, first("(?m)^\\| `([a-z]+)` \\| (?:nothing was sent|it was sent|the gateway|asking)"))
	for _, why := range []order.NotMovable{order.NothingCaptured, order.NothingAuthorized, order.AlreadyCaptured, order.PaymentOver, order.NotSaid} {
		require.Contains(t, string(text), "`"+string(why)+"`")
	}

	// What a refund may be refused for, beside what any call may: with its status.
	var doc struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct{ Description string }
		}
	}
	raw, err := os.ReadFile("openapi.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &doc))
	var codes []string
	for status, r := range doc.Paths["/v1/orders/{id}/refunds"]["post"].Responses {
		if status != "404" && status != "409" {
			continue
		}
		for _, code := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(r.Description, -1) {
			if !strings.HasPrefix(code[1], "idempotency_") {
				codes = append(codes, status+" "+code[1])
			}
		}
	}
	slices.Sort(codes)
	require.Len(t, codes, 7)
	told := first("(?m)^\\| `((?:404|409) [a-z_]+)` \\|")
	slices.Sort(told)
	require.Equal(t, codes, told)
}
