package settlement_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/unicode"

	"github.com/paidonce/paidonce/internal/settlement"
)

func report(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return data
}

// However a file is encoded, parted and arranged, its lines are the same.
func TestReaderTakesFilesAsTheyCome(t *testing.T) {
	t.Parallel()
	plain := report(t, "stripe-payout.csv")
	_, want := lines(t, bytes.NewReader(plain), settlement.Options{})

	utf16 := func(e unicode.Endianness, bom unicode.BOMPolicy) func(*testing.T) []byte {
		return func(t *testing.T) []byte {
			data, err := unicode.UTF16(e, bom).NewEncoder().Bytes(plain)
			require.NoError(t, err)
			return data
		}
	}
	parted := func(separator rune, arrange func([]string) []string) func(*testing.T) []byte {
		return func(t *testing.T) []byte {
			rows, err := csv.NewReader(bytes.NewReader(plain)).ReadAll()
			require.NoError(t, err)
			var out bytes.Buffer
			w := csv.NewWriter(&out)
			w.Comma = separator
			for _, row := range rows {
				require.NoError(t, w.Write(arrange(row)))
			}
			w.Flush()
			return out.Bytes()
		}
	}
	asIs := func(row []string) []string { return row }
	for name, file := range map[string]func(*testing.T) []byte{
		"a byte order mark":     func(*testing.T) []byte { return append([]byte("\xef\xbb\xbf"), plain...) },
		"UTF-16, little":        utf16(unicode.LittleEndian, unicode.UseBOM),
		"UTF-16, big":           utf16(unicode.BigEndian, unicode.UseBOM),
		"UTF-16 without a mark": utf16(unicode.LittleEndian, unicode.IgnoreBOM),
		"and big":               utf16(unicode.BigEndian, unicode.IgnoreBOM),
		"CRLF":                  func(*testing.T) []byte { return bytes.ReplaceAll(plain, []byte("\n"), []byte("\r\n")) },
		"no last line end":      func(*testing.T) []byte { return bytes.TrimRight(plain, "\n") },
		"semicolons":            parted(';', asIs),
		"tabs":                  parted('\t', asIs),
		"bars":                  parted('|', asIs),
		"columns the other way round": parted(',', func(row []string) []string {
			row = slices.Clone(row)
			slices.Reverse(row)
			return row
		}),
		"columns that are not read": parted(';', func(row []string) []string { return append([]string{"x"}, append(row, "y")...) }),
		"headers in capitals": func(*testing.T) []byte {
			head, rest, _ := bytes.Cut(plain, []byte("\n"))
			return slices.Concat(bytes.ToUpper(head), []byte("\n"), rest)
		},
		"rows of nothing": func(*testing.T) []byte {
			return append(slices.Clone(plain), []byte("\n,,,,,,,,,,,,,,,,,,\n")...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := file(t)
			format, have := lines(t, iotest.HalfReader(bytes.NewReader(data)), settlement.Options{})
			require.Equal(t, "stripe", format.Name)
			require.Equal(t, want, have)
		})
	}
	t.Run("rows before the header", func(t *testing.T) {
		t.Parallel()
		format, have := lines(t, strings.NewReader("Export of a report,2026\n\n"+string(plain)), settlement.Options{})
		require.Equal(t, "stripe", format.Name)
		require.Len(t, have, len(want))
		require.Contains(t, have[0], "4 capture (charge) 50.00 EUR")
	})
}

const head = "balance_transaction_id,reporting_category,payment_intent_id,gross,currency,fee,net\n"

func TestReaderSaysWhatIsWrongWithALine(t *testing.T) {
	t.Parallel()
	for row, want := range map[string]string{
		`txn_1,charge,pi_1,5.00,eur,0.10,4.90`: "2 capture (charge) 5.00 EUR id txn_1 payment pi_1 net 4.90 EUR fee 0.10",
		`txn_1,charge,pi_1,5.00,eur,0.10,`:     "2 capture (charge) 5.00 EUR id txn_1 payment pi_1 net 4.90 EUR fee 0.10",
		`txn_1,charge,pi_1,,eur,,`:             "2 unreadable: it has no gross",
		`txn_1,charge,pi_1,5.005,eur,0,5`:      `2 unreadable: amount "5.005" is no amount`,
		`txn_1,charge,pi_1,5.00,,0,5`:          "2 unreadable: it tells no currency",
		`txn_1,charge,pi_1,5.00,zzz,0,5`:       `2 unreadable: "ZZZ" is not a currency of ISO 4217`,
		`txn_1,charge,pi_1,-5.00,eur,0,-5`:     "2 unreadable: charge is a capture, and its amount has the wrong sign",
		`txn_1,refund,pi_1,5.00,eur,0,5`:       "2 unreadable: refund is a refund, and its amount has the wrong sign",
		`txn_1,charge,pi_1,5.00`:               "2 unreadable: it has 4 cells, and the header 7",
		`txn_1,charge,pi_1,5,00,eur,0,5`:       "2 unreadable: it has 8 cells, and the header 7",
		`txn_1,charge,pi_1,5.00,eur,0,5,,`:     "2 capture (charge) 5.00 EUR id txn_1 payment pi_1 net 5.00 EUR fee 0.00",
		`txn_1,"char"ge,pi_1,5.00,eur,0,5`:     "2 unreadable: the quotation marks of its cells do not fit",
		`txn_1,charge,pi_1,5.00,eur,0,"5`:      "2 unreadable: the quotation marks of its cells do not fit",
		`txn_1,payout,,-5.00,eur,0,-5`:         "2 payout (payout) 5.00 EUR id txn_1 net -5.00 EUR fee 0.00",
		"txn_1,charge,pi_\xff,5.00,eur,0,5":    "2 capture (charge) 5.00 EUR id txn_1 payment pi_\uFFFD net 5.00 EUR fee 0.00",
	} {
		_, have := lines(t, strings.NewReader(head+row+"\n"), settlement.Options{})
		require.Equal(t, []string{want}, have, row)
	}
	// And goes on behind it.
	_, have := lines(t, strings.NewReader(head+"a,\"b\"c\n"+"txn_1,charge,pi_1,x,eur,0,5\n"+"txn_2,charge,pi_2,5.00,eur,0,5\n"), settlement.Options{})
	require.Len(t, have, 3)
	require.Contains(t, have[2], "4 capture (charge) 5.00 EUR id txn_2")
}

func TestReaderCurrencyOfTheCaller(t *testing.T) {
	t.Parallel()
	file := "DATE;SOURCE_ID;DESCRIPTION;NET_CREDIT_AMOUNT;NET_DEBIT_AMOUNT\n2026-11-01;9;payment;10.00;0.00\n"
	_, have := lines(t, strings.NewReader(file), settlement.Options{})
	require.Equal(t, []string{"2 unreadable: it tells no currency"}, have)
	_, have = lines(t, strings.NewReader(file), settlement.Options{Currency: "ARS"})
	require.Equal(t, []string{"2 capture (payment) 10.00 ARS payment 9 net 10.00 ARS fee 0.00"}, have)
}

func TestReaderRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file string
		o    settlement.Options
		want string
	}{
		"nothing":                {file: "", want: "the columns are of no report that is known; the first row is []"},
		"another report":         {file: "a,b,c\n1,2,3\n", want: `the first row is ["a" "b" "c"]`},
		"a header that is short": {file: "balance_transaction_id,gross\n", want: `the first row is ["balance_transaction_id" "gross"]`},
		"one column twice":       {file: "balance_transaction_id,reporting_category,gross,currency,Gross\n", want: "there are two columns called gross: which one counts?"},
		"a header too far down":  {file: strings.Repeat("x\n", 40_000) + head, want: "of no report that is known"},
		"columns that are not there": {
			file: "a,b\n", o: settlement.Options{Columns: map[settlement.Field]string{"payment": "p", "amount": "b"}},
			want: `there is no row with the columns b, p; the first row is ["a" "b"]`,
		},
		"no payment":    {o: settlement.Options{Columns: map[settlement.Field]string{"amount": "b"}}, want: "needs the column of payment"},
		"no amount":     {o: settlement.Options{Columns: map[settlement.Field]string{"payment": "b", "credit": "c"}}, want: "needs the column of amount, or those of credit and debit"},
		"unknown field": {o: settlement.Options{Columns: map[settlement.Field]string{"payment": "b", "amount": "c", "paid": "d"}}, want: `there is no field "paid"`},
	} {
		_, err := settlement.NewReader(strings.NewReader(tt.file), tt.o)
		require.ErrorContains(t, err, tt.want, name)
	}
	_, err := settlement.NewReader(iotest.ErrReader(errors.New("gone")), settlement.Options{})
	require.EqualError(t, err, "gone")
}

// A quotation mark that is never closed does not take the whole file into memory.
func TestReaderBoundsARow(t *testing.T) {
	t.Parallel()
	endless := io.MultiReader(strings.NewReader(head+`txn_1,"`), &endlessly{t: t, limit: 4 << 20})
	r, err := settlement.NewReader(endless, settlement.Options{})
	require.NoError(t, err)
	_, err = r.Next()
	require.EqualError(t, err, "a row is longer than 1 MiB; is a quotation mark missing?")
}

type endlessly struct {
	t           *testing.T
	read, limit int
}

func (e *endlessly) Read(p []byte) (int, error) {
	require.Less(e.t, e.read, e.limit, "read on and on")
	e.read += len(p)
	return copy(p, bytes.Repeat([]byte("x\n"), len(p)/2+1)), nil
}

// Own files: signs or kinds, one column or two, one id or several.
func TestReaderOwnFiles(t *testing.T) {
	t.Parallel()
	columns := func(pairs ...string) settlement.Options {
		o := settlement.Options{Currency: "EUR", Columns: map[settlement.Field]string{}}
		for i := 0; i < len(pairs); i += 2 {
			o.Columns[settlement.Field(pairs[i])] = pairs[i+1]
		}
		return o
	}
	for name, tt := range map[string]struct {
		o    settlement.Options
		file string
		want []string
	}{
		"signs": {columns("payment", "p", "amount", "a"), "p,a\n1,5.00\n1,-2.00\n", []string{
			"2 capture () 5.00 EUR payment 1 net 5.00 EUR fee 0.00", "3 refund () 2.00 EUR payment 1 net -2.00 EUR fee 0.00",
		}},
		"debit and credit": {columns("payment", "p", "credit", "in", "debit", "out"), "p,in,out\n1,5.00,\n1,,2.00\n1,,\n1,-1,\n", []string{
			"2 capture () 5.00 EUR payment 1 net 5.00 EUR fee 0.00", "3 refund () 2.00 EUR payment 1 net -2.00 EUR fee 0.00",
			"4 unreadable: it has no amount", "5 unreadable: a debit or a credit is less than 0",
		}},
		"several ids": {columns("payment", "p+q", "amount", "a"), "p,q,a\n1,2,5.00\n1,1,5.00\n,2,5.00\n", []string{
			"2 capture () 5.00 EUR payment 1=2 net 5.00 EUR fee 0.00", "3 capture () 5.00 EUR payment 1 net 5.00 EUR fee 0.00",
			"4 capture () 5.00 EUR payment 2 net 5.00 EUR fee 0.00",
		}},
		"net": {columns("payment", "p", "amount", "a", "net", "n", "type", "t"), "p,a,n,t\n1,5.00,4.00,sale\n1,5.00,-5.00,REFUND\n", []string{
			"2 capture (sale) 5.00 EUR payment 1 net 4.00 EUR fee 0.00", "3 refund (REFUND) 5.00 EUR payment 1 net -5.00 EUR fee 0.00",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, have := lines(t, strings.NewReader(tt.file), tt.o)
			require.Equal(t, tt.want, have)
		})
	}
	var fields []string
	for f, is := range settlement.OwnFields() {
		require.NotEmpty(t, is)
		fields = append(fields, string(f))
	}
	require.Contains(t, fields, "payment")
	require.Contains(t, settlement.OwnWords(settlement.Dispute), "chargeback")
}
