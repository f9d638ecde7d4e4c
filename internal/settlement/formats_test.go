package settlement_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/settlement"
	"github.com/paidonce/paidonce/order"
)

// lines reads a report to its end, one text for each line.
func lines(t *testing.T, r io.Reader, o settlement.Options) (*settlement.Format, []string) {
	t.Helper()
	reader, err := settlement.NewReader(r, o)
	require.NoError(t, err)
	var all []string
	for {
		l, err := reader.Next()
		var bad *settlement.LineError
		switch {
		case errors.Is(err, io.EOF):
			return reader.Format(), all
		case errors.As(err, &bad):
			require.Equal(t, settlement.Line{Number: l.Number}, l, "a line that cannot be read has nothing but its number")
			all = append(all, fmt.Sprintf("%d unreadable: %s", l.Number, bad.Why))
			continue
		}
		require.NoError(t, err)
		all = append(all, lineText(l))
	}
}

func lineText(l settlement.Line) string {
	text := fmt.Sprintf("%d %s (%s) %s %s", l.Number, l.Kind, l.Word, order.Format(l.Amount.Minor, l.Amount.Currency), l.Amount.Currency)
	for _, part := range []struct{ name, value string }{
		{"id", l.ID}, {"payment", strings.Join(l.Payment, "=")}, {"ref", l.Ref}, {"for", l.Reference},
	} {
		if part.value != "" {
			text += " " + part.name + " " + part.value
		}
	}
	return text + fmt.Sprintf(" net %s %s fee %s", order.Format(l.Net, l.NetCurrency), l.NetCurrency, order.Format(l.Fee, l.NetCurrency))
}

var ownColumns = map[settlement.Field]string{
	settlement.FieldID: "Buchung", settlement.FieldType: "Art", settlement.FieldPayment: "Zahlung", settlement.FieldRef: "Vorgang",
	settlement.FieldAmount: "Betrag", settlement.FieldCurrency: "Währung", settlement.FieldFee: "Gebühr", settlement.FieldReference: "Unsere Nr.",
}

func TestFormats(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for file, tt := range map[string]struct {
		format string
		o      settlement.Options
	}{
		"stripe-payout.csv":          {format: "stripe"},
		"adyen-settlement.csv":       {format: "adyen"},
		"paypal-stl.csv":             {format: "paypal"},
		"paypal-trr.txt":             {format: "paypal"},
		"mercadopago-released.csv":   {format: "mercadopago-released"},
		"mercadopago-settlement.csv": {format: "mercadopago-settlement"},
		"own.csv":                    {format: "own", o: settlement.Options{Columns: ownColumns, DecimalComma: true}},
	} {
		seen[tt.format] = true
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			f, err := os.Open(filepath.Join("testdata", file))
			require.NoError(t, err)
			defer f.Close()
			format, all := lines(t, f, tt.o)
			require.Equal(t, tt.format, format.Name)
			golden(t, filepath.Join("testdata", file+".golden"), strings.Join(all, "\n")+"\n")
		})
	}
	for _, f := range settlement.Formats() {
		require.True(t, seen[f.Name], "%s has no report in testdata", f.Name)
	}
}
