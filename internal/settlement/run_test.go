package settlement_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/paidonce/paidonce/internal/settlement"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// books are payments in memory.
type books struct {
	names    map[store.PaymentName]store.PaymentKey
	payments map[store.PaymentKey]store.BookedPayment
	span     []store.PaymentKey // captured in it
	fail     error
}

func (b *books) Find(_ context.Context, names []store.PaymentName) ([]store.PaymentKey, error) {
	found := make([]store.PaymentKey, len(names))
	for i, n := range names {
		found[i] = b.names[n]
	}
	return found, b.fail
}

func (b *books) Payments(_ context.Context, keys []store.PaymentKey) (found []store.BookedPayment, err error) {
	for _, k := range keys {
		found = append(found, b.payments[k])
	}
	slices.Reverse(found) // in no order
	return found, nil
}

func (b *books) CapturedBetween(_ context.Context, _ []store.Realm, _, _ time.Time, each func(store.BookedPayment) error) error {
	slices.SortFunc(b.span, func(a, b store.PaymentKey) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), bytes.Compare(a.ID[:], b.ID[:]))
	})
	for _, k := range b.span {
		if err := each(b.payments[k]); err != nil {
			return err
		}
	}
	return nil
}

// know enters a payment of an order, known under some ids.
func (b *books) know(n uint32, ref string, ids []string, facts ...order.Fact) store.PaymentKey {
	if b.names == nil {
		b.names, b.payments = map[store.PaymentName]store.PaymentKey{}, map[store.PaymentKey]store.BookedPayment{}
	}
	key := store.PaymentKey{Account: "shop"}
	binary.BigEndian.PutUint32(key.ID[12:], n)
	l := order.NewLedger()
	for _, f := range facts {
		l.Join(f)
	}
	l.IDs = ids
	for _, id := range ids {
		b.names[store.PaymentName{Account: "shop", Realm: "stripe:live", ID: id}] = key
	}
	b.payments[key] = store.BookedPayment{PaymentKey: key, Order: ref, Ledger: l}
	return key
}

var (
	live = []store.Realm{{Account: "shop", Name: "stripe:test"}, {Account: "shop", Name: "stripe:live"}}
	day  = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
)

func run(t *testing.T, b settlement.Books, file string, w settlement.Work) (settlement.Summary, []string) {
	t.Helper()
	r, err := settlement.NewReader(strings.NewReader(file), settlement.Options{})
	require.NoError(t, err)
	var have []string
	w.Realms = live
	w.Each = func(f settlement.Finding) error {
		text := findingText(f)
		if f.Account != "" {
			text += " (" + f.Account + " " + f.Order + ")"
		}
		have = append(have, text)
		return nil
	}
	sum, err := settlement.Run(t.Context(), b, r, w)
	require.NoError(t, err)
	return sum, have
}

const stripeHead = "balance_transaction_id,reporting_category,payment_intent_id,charge_id,source_id,gross,currency,fee,net\n"

func TestRun(t *testing.T) {
	t.Parallel()
	b := &books{}
	b.know(1, "ord_1", []string{"pi_1", "ch_1"}, eur(order.KindCaptured, "", "", 5000), eur(order.KindRefunded, "re_1", order.StatusOK, 1000))
	b.know(2, "", []string{"pi_2"}, eur(order.KindCaptured, "", "", 700))
	k3 := b.know(3, "ord_3", []string{"pi_3"}, eur(order.KindCaptured, "", "", 300))
	k4 := b.know(4, "ord_4", []string{"pi_4"}, eur(order.KindCaptured, "", "", 400))
	k5 := b.know(5, "ord_5", []string{"pi_5"}, eur(order.KindCaptured, "", "", 500), eur(order.KindCaptured, "c", order.StatusFailed, order.All))
	file := stripeHead +
		"txn_1,charge,pi_1,ch_1,ch_1,50.00,eur,1.00,49.00\n" + // 2
		"txn_2,charge,pi_2,ch_2,ch_2,7.01,eur,0.10,6.91\n" + // 3: another amount
		"txn_3,refund,pi_1,ch_1,re_1,-10.00,eur,0.00,-10.00\n" + // 4
		"txn_4,fee,,,,-2.00,eur,0.00,-2.00\n" + // 5
		"txn_5,charge,pi_9,ch_9,ch_9,9.00,eur,0.00,9.00\n" + // 6: no payment of ours
		"txn_6,refund,,,re_8,-9.00,eur,0.00,-9.00\n" + // 7: no payment at all
		"txn_7,magic,pi_1,,,-1.00,eur,0.00,-1.00\n" + // 8
		"txn_8,charge,pi_1,ch_1,ch_1,x,eur,0.00,9.00\n" + // 9
		"txn_1,charge,pi_1,ch_1,ch_1,50.00,eur,1.00,49.00\n" + // 10: line 2 again
		"txn_4,fee,,,,-2.00,eur,0.00,-2.00\n" + // 11: line 5 again
		"txn_9,fee,,,,-3.00,eur,0.00,-3.00\n" + // 12
		"txn_10,payout,,,po_1,-100.00,eur,0.00,-100.00\n" + // 13
		"txn_11,charge,,,pi_3,3.00,eur,0.05,2.95\n" + // 14
		"txn_12,magic,,,,-1.50,eur,0.00,-1.50\n" // 15: a new word, of no payment

	sum, have := run(t, b, file, settlement.Work{})
	want := []string{
		"3 amount_differs ours 7.00 EUR (shop )",
		"6 unknown_payment",
		"7 no_payment_id",
		"8 unknown_type",
		`9 unreadable: amount "x" is no amount`,
		"10 twice: it is line 2 again (shop )",
		"11 twice: it is line 5 again",
	}
	require.Equal(t, want, have)
	require.Equal(t, 7, sum.Odd())
	require.Equal(t, []int{14, 3, 0}, []int{sum.Lines, sum.Payments, sum.InSpan})
	require.Equal(t, []settlement.Total{
		{Kind: settlement.Capture, Currency: "EUR", Lines: 2, Minor: 5300}, {Kind: settlement.Refund, Currency: "EUR", Lines: 1, Minor: -1000},
	}, sum.Explained)
	require.Equal(t, []settlement.Total{
		{Kind: settlement.Fee, Word: "fee", Currency: "EUR", Lines: 2, Minor: -500},
		{Kind: settlement.Payout, Word: "payout", Currency: "EUR", Lines: 1, Minor: -10000},
		{Kind: settlement.Unknown, Word: "magic", Currency: "EUR", Lines: 1, Minor: -150},
	}, sum.Others)
	require.Equal(t, []settlement.Total{{Kind: settlement.Fee, Currency: "EUR", Lines: 3, Minor: -115}}, sum.Fees)

	// What was captured in the span of the file must be in it.
	b.span = []store.PaymentKey{k4, k3, k5}
	sum, have = run(t, b, file, settlement.Work{From: day, Until: day.AddDate(0, 0, 1)})
	require.Equal(t, append(want, "0 not_in_file ours 4.00 EUR (shop ord_4)"), have)
	require.Equal(t, 3, sum.InSpan)
	_, have = run(t, b, file, settlement.Work{From: day})
	require.Equal(t, want, have, "a span has two ends")
}

// A hold and its end have one id, and are two bookings.
func TestRunBookingsOfOneID(t *testing.T) {
	t.Parallel()
	r, err := settlement.NewReader(bytes.NewReader(report(t, "paypal-stl.csv")), settlement.Options{})
	require.NoError(t, err)
	sum, err := settlement.Run(t.Context(), &books{}, r, settlement.Work{Realms: live, Each: func(f settlement.Finding) error {
		require.NotEqual(t, settlement.Twice, f.Reason)
		return nil
	}})
	require.NoError(t, err)
	held := 0
	for _, o := range sum.Others {
		if o.Kind == settlement.Reserve {
			held++
		}
	}
	require.Equal(t, 2, held)
}

func TestRunAllExplained(t *testing.T) {
	t.Parallel()
	b := &books{}
	b.know(1, "ord_1", []string{"ch_1"}, eur(order.KindCaptured, "", "", 5000))
	sum, have := run(t, b, stripeHead+"txn_1,charge,pi_1,ch_1,ch_1,50.00,eur,1.00,49.00\n", settlement.Work{})
	require.Empty(t, have)
	require.Zero(t, sum.Odd())
	sum, have = run(t, b, stripeHead, settlement.Work{})
	require.Empty(t, have)
	require.Zero(t, sum.Lines)
}

// A payment of which a file has more lines than anybody has does not fill the memory.
func TestRunTooManyLinesOfOnePayment(t *testing.T) {
	t.Parallel()
	b := &books{}
	b.know(1, "ord_1", []string{"pi_1"}, eur(order.KindCaptured, "", "", 10_000))
	var file strings.Builder
	file.WriteString(stripeHead)
	for i := range 10_002 {
		fmt.Fprintf(&file, "txn_%05d,charge,pi_1,,,0.01,eur,0,0.01\n", i)
	}
	_, have := run(t, b, file.String(), settlement.Work{Hold: 3000, TempDir: t.TempDir()})
	require.Len(t, have, 2)
	for _, f := range have {
		require.Contains(t, f, " too_many (shop )")
	}
}

func TestRunErrors(t *testing.T) {
	t.Parallel()
	open := func(file string) *settlement.Reader {
		r, err := settlement.NewReader(strings.NewReader(file), settlement.Options{})
		require.NoError(t, err)
		return r
	}
	each := func(settlement.Finding) error { return errors.New("enough") }
	_, err := settlement.Run(t.Context(), &books{fail: errors.New("gone")}, open(stripeHead+"txn_1,charge,pi_1,,,5.00,eur,0,5\n"), settlement.Work{Realms: live, Each: each})
	require.EqualError(t, err, "gone")
	_, err = settlement.Run(t.Context(), &books{}, open(stripeHead+"txn_1,charge,pi_1,,,5.00,eur,0,5\n"), settlement.Work{Realms: live, Each: each})
	require.EqualError(t, err, "enough")
	_, err = settlement.Run(t.Context(), &books{}, open(stripeHead+strings.Repeat("x\n", 5)), settlement.Work{Each: each, Hold: 2, TempDir: "/nowhere/at/all"})
	require.ErrorIs(t, err, os.ErrNotExist)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = settlement.Run(ctx, &books{}, open(stripeHead), settlement.Work{Each: each})
	require.ErrorIs(t, err, context.Canceled)
}

// How much is held in memory changes nothing, and neither does the order of the lines: only their numbers.
func TestRunHoweverMuchIsHeld(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		b := &books{}
		for n := range uint32(5) {
			k := b.know(n+1, "", []string{fmt.Sprintf("pi_%d", n)}, eur(order.KindCaptured, "", "", int64(100*n)))
			b.span = append(b.span, k)
		}
		var rows []string
		for range rapid.IntRange(0, 40).Draw(rt, "rows") {
			rows = append(rows, fmt.Sprintf("txn_%d,%s,pi_%d,,,%s,eur,0,0\n", rapid.IntRange(0, 30).Draw(rt, "id"),
				rapid.SampledFrom([]string{"charge", "fee", "magic"}).Draw(rt, "type"), rapid.IntRange(0, 7).Draw(rt, "payment"),
				rapid.SampledFrom([]string{"0.00", "1.00", "2.00", "3.00", "x"}).Draw(rt, "amount")))
		}
		file := stripeHead + strings.Join(rows, "")
		w := settlement.Work{From: day, Until: day.AddDate(0, 0, 1), TempDir: t.TempDir()}
		sum, want := run(t, b, file, w)
		w.Hold = rapid.IntRange(1, 10).Draw(rt, "hold")
		again, have := run(t, b, file, w)
		if !slices.Equal(want, have) {
			rt.Fatalf("%d held: %q, not %q", w.Hold, have, want)
		}
		if fmt.Sprint(sum) != fmt.Sprint(again) {
			rt.Fatalf("%d held: %+v, not %+v", w.Hold, again, sum)
		}
	})
}

// many is a report of n charges and as many fees that is made while it is read.
type many struct {
	n, next int
	buf     bytes.Buffer
}

func (m *many) Read(p []byte) (int, error) {
	if m.next == 0 {
		m.buf.WriteString(stripeHead)
	}
	for m.buf.Len() < len(p) && m.next < m.n {
		fmt.Fprintf(&m.buf, "txn_%08d,charge,pi_%08d,ch_%[1]d,ch_%[1]d,%[3]d.00,eur,0.25,1.00\n", m.next, (m.next*7919)%m.n, 1+m.next%3)
		fmt.Fprintf(&m.buf, "txn_f%08d,fee,,,,-0.01,eur,0,-0.01\n", m.next)
		m.next++
	}
	if m.buf.Len() == 0 {
		return 0, io.EOF
	}
	return m.buf.Read(p)
}

// endless are books that know every payment, and keep none.
type endless struct{ books }

func (endless) Find(_ context.Context, names []store.PaymentName) ([]store.PaymentKey, error) {
	found := make([]store.PaymentKey, len(names))
	for i, n := range names {
		if strings.HasPrefix(n.ID, "pi_") {
			found[i] = store.PaymentKey{Account: n.Account, ID: uuid.NewSHA1(uuid.NameSpaceOID, []byte(n.ID))}
		}
	}
	return found, nil
}

func (endless) Payments(_ context.Context, keys []store.PaymentKey) ([]store.BookedPayment, error) {
	found := make([]store.BookedPayment, len(keys))
	for i, k := range keys {
		l := order.NewLedger()
		l.Join(eur(order.KindCaptured, "", "", 200))
		found[i] = store.BookedPayment{PaymentKey: k, Ledger: l}
	}
	return found, nil
}

// A report of any length takes no more memory than a short one: of four times the lines, two thirds of which cannot be
// explained, no more is held.
func TestRunBoundsMemory(t *testing.T) {
	peak := func(n int) uint64 {
		r, err := settlement.NewReader(&many{n: n}, settlement.Options{})
		require.NoError(t, err)
		var most uint64
		measure := func() {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
		odd, steps := 0, 0
		sum, err := settlement.Run(t.Context(), &endless{}, r, settlement.Work{
			Realms: live[:1], Hold: 2000, TempDir: t.TempDir(),
			Progress: func(int, bool) {
				if steps++; steps%16 == 0 {
					measure()
				}
			},
			Each: func(settlement.Finding) error {
				if odd++; odd%2000 == 1 {
					measure()
				}
				return nil
			},
		})
		require.NoError(t, err)
		require.Equal(t, 2*n, sum.Lines)
		require.Equal(t, n-(n+1)/3, odd)
		require.Equal(t, odd, sum.Odd())
		return most
	}
	small := peak(10_000)
	large := peak(40_000)
	t.Logf("%d KiB for 20,000 lines, %d KiB for 80,000", small>>10, large>>10)
	require.Less(t, large, small+small/2)
}
