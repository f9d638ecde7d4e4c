package settlement_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/settlement"
)

const (
	document = "../../docs/settlement.md"
	begin    = "<!-- What follows is written by go test ./internal/settlement -run TestDocument -update -->\n"
)

// The document says of every format what is read of it, and of every reason what it means.
func TestDocument(t *testing.T) {
	t.Parallel()
	var doc strings.Builder
	doc.WriteString(begin + "\n## Reasons\n\n| reason | what it means |\n|---|---|\n")
	for _, r := range settlement.Reasons() {
		require.NotEqual(t, string(r), r.Sentence())
		fmt.Fprintf(&doc, "| `%s` | %s |\n", r, r.Sentence())
	}
	for _, f := range settlement.Formats() {
		require.NotEmpty(t, f.Docs)
		fmt.Fprintf(&doc, "\n## %s\n\nDocumentation: <%s>\n\n| field | columns | needed |\n|---|---|---|\n", f.Title, f.Docs)
		for _, c := range f.Columns {
			need := ""
			if c.Must {
				need = "yes"
			}
			fmt.Fprintf(&doc, "| %s | `%s` | %s |\n", c.Field, strings.Join(c.Headers, "`, `"), need)
		}
		words(&doc, f.Words)
		fmt.Fprintf(&doc, "\n%s\n", f.Notes)
	}
	doc.WriteString("\n## Files of your own\n\n| field of `--columns` | what it is |\n|---|---|\n")
	for field, is := range settlement.OwnFields() {
		fmt.Fprintf(&doc, "| %s | %s |\n", field, is)
	}
	own := map[string]settlement.Kind{}
	for _, k := range kinds {
		for _, w := range settlement.OwnWords(k) {
			own[w] = k
		}
	}
	words(&doc, own)

	have, err := os.ReadFile(document)
	require.NoError(t, err)
	intro, _, found := strings.Cut(string(have), begin)
	require.True(t, found)
	if *update {
		require.NoError(t, os.WriteFile(document, []byte(intro+doc.String()), 0o644))
		return
	}
	require.Equal(t, intro+doc.String(), string(have), "write it again with -update")
}

var kinds = []settlement.Kind{
	settlement.Capture, settlement.CaptureReversed, settlement.Refund, settlement.RefundReversed, settlement.Dispute, settlement.DisputeReversed,
	settlement.Fee, settlement.Payout, settlement.Reserve, settlement.Other,
}

// words is the table of what lines are called.
func words(doc *strings.Builder, of map[string]settlement.Kind) {
	doc.WriteString("\n| kind | called |\n|---|---|\n")
	for _, k := range kinds {
		var called []string
		for _, w := range slices.Sorted(maps.Keys(of)) {
			if of[w] == k {
				called = append(called, w)
			}
		}
		if len(called) > 0 {
			fmt.Fprintf(doc, "| %s | `%s` |\n", k, strings.Join(called, "`, `"))
		}
	}
}
