package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/gatewaysim/bank"
	"github.com/paidonce/paidonce/internal/scenario/cases"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/outbound"
	"github.com/paidonce/paidonce/store"
)

// quickMoves are the mover's paces, for a test. What they keep of each other is as it is.
func quickMoves() outbound.MoveOptions {
	some := func(n int) []time.Duration { return slices.Repeat([]time.Duration{100 * time.Millisecond}, n) }
	return outbound.MoveOptions{
		Deadline: time.Second, SettleTimeout: 3 * time.Second, Lease: 5 * time.Second, JobTimeout: 8 * time.Second,
		TickEvery: 250 * time.Millisecond, TickGrace: 500 * time.Millisecond, Retry: some(5), Denied: some(1), Lookup: some(500), Settled: 10 * time.Second,
	}
}

// quickFetches are the fetcher's, likewise.
func quickFetches() outbound.FetchOptions {
	some := slices.Repeat([]time.Duration{200 * time.Millisecond}, 200)
	return outbound.FetchOptions{
		Deadline: 2 * time.Second, IngestTimeout: 3 * time.Second, SettleTimeout: 3 * time.Second, Lease: 10 * time.Second, JobTimeout: 14 * time.Second,
		TickEvery: 250 * time.Millisecond, TickGrace: 500 * time.Millisecond, Retry: some, Gone: some, Denied: some,
	}
}

// banked is a world whose gateways are a bank.
type banked struct {
	*world
	bank    *bank.Bank
	sources map[string]gateway.Source
	began   time.Time
}

// bankedGateways are those that are called, all of them.
var bankedGateways = []*gateway.Gateway{gateway.Stripe, gateway.Adyen, gateway.PayPal, gateway.MercadoPago}

// newBanked starts a world that runs on a bank with these odds, in thousandths.
func newBanked(t *testing.T, seed uint64, odds bank.Odds) *banked {
	t.Helper()
	b := &banked{sources: map[string]gateway.Source{}, began: time.Now()}
	opts := bank.Options{
		Now: b.now, Seed: seed, Odds: odds, Delay: 5 * time.Second,
		Deliver: func(ctx context.Context, h bank.Webhook) error {
			// Adyen sends until it is heard, and has no other way to tell.
			if sum := crc32.ChecksumIEEE([]byte(h.ID)); sum%20 == 0 && h.Source.Gateway != gateway.Adyen.Name {
				return nil // lost, and nobody knows
			}
			addr := b.program.Addr(1)
			if addr == "" {
				return errors.New("nobody listens")
			}
			return bank.PostTo(b.client, "http://"+addr+"/webhooks")(ctx, h)
		},
	}
	var err error
	b.bank, err = bank.Start(opts)
	require.NoError(t, err)
	t.Cleanup(b.bank.Close)
	files := map[string][]byte{}
	b.world = newWorld(t, func(s *settings) {
		s.quick = true
		s.outside = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if file, ok := files["https://"+r.Host+r.URL.Path]; ok {
				_, _ = w.Write(file)
				return
			}
			b.bank.ServeHTTP(w, r)
		})
		for _, g := range bankedGateways {
			src := g.Example("books")
			src.ID, src.Account = g.Name, cases.AccountA
			src = called(src)
			src.Capture = map[string]string{"adyen": gateway.CaptureManual}[g.Name]
			src, err := b.bank.Source(src)
			require.NoError(t, err)
			require.NoError(t, g.Check(src))
			if g.Remote != nil && g.Remote.Example != nil {
				ref, found := g.Remote.Example(src)
				files[ref.URL] = found
			}
			b.sources[g.Name] = src
			text, err := json.Marshal(src)
			require.NoError(t, err)
			s.Accounts[cases.AccountA].Sources[src.ID] = text
		}
	})
	return b
}

// called gives a source of an example what it needs to be called.
func called(src gateway.Source) gateway.Source {
	if src.AccessToken == "" {
		src.AccessToken = map[string]string{"stripe": "sk_test_books", "adyen": "AQEbooks"}[src.Gateway]
	}
	if src.Gateway == "paypal" && src.ClientID == "" {
		src.ClientID, src.ClientSecret = "books-client", "books-secret"
	}
	return src
}

// now is the bank's time: the program's, which begins where all worlds do and goes on.
func (b *banked) now() time.Time { return time.Unix(ownNow, 0).Add(time.Since(b.began)) }

// turn lets things happen at the bank, and the programs' clocks follow, until ctx ends.
func (b *banked) turn(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := b.program.SetClock(b.now()); err != nil {
			b.t.Error(err)
		}
		b.bank.Pump(ctx)
		<-tick.C
	}
}

// ask says something to /v1 until it is answered by other than 5xx, 409 in progress or nothing, and returns the last answer.
func (b *banked) ask(ctx context.Context, path, key, body string) (int, map[string]any, error) {
	for {
		code, doc := b.askOnce(ctx, path, key, body)
		if code/100 == 2 || code/100 == 4 && doc["code"] != "idempotency_key_in_progress" && code != 429 {
			return code, doc, nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return code, doc, ctx.Err()
		}
	}
}

func (b *banked) askOnce(ctx context.Context, path, key, body string) (int, map[string]any) {
	addr := b.program.Addr(1)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+path, strings.NewReader(body))
	if err != nil {
		return 0, nil
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+apiKeys[cases.AccountA])
	r.Header.Set("Idempotency-Key", key)
	resp, err := b.client.Do(r)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	var doc map[string]any
	if err != nil || json.Unmarshal(text, &doc) != nil {
		return 0, nil
	}
	return resp.StatusCode, doc
}

// ours are the books as the database has them.
func (b *banked) ours() bank.Books {
	b.t.Helper()
	rows, _ := b.Pool.Query(b.t.Context(), `
		SELECT p.id, p.ledger, (SELECT min(i.realm) FROM payment_ids i WHERE i.account_id = p.account_id AND i.payment_id = p.id)
		FROM payments p WHERE p.merged_into IS NULL`)
	var books bank.Books
	index := map[uuid.UUID]int{}
	var id uuid.UUID
	var doc []byte
	var realm string
	_, err := pgx.ForEachRow(rows, []any{&id, &doc, &realm}, func() error {
		l := order.NewLedger()
		if err := json.Unmarshal(doc, l); err != nil {
			return err
		}
		p := bank.Payment{IDs: l.IDs, Reference: l.Link.Ref, Sums: map[string]bank.Sums{}}
		for name, src := range b.sources {
			g, _ := gateway.Lookup(name)
			if g.Realm(src) == realm {
				p.Source = name
			}
		}
		for cur := range l.Money {
			o := order.Order{Registered: true, Currency: cur, Payments: map[string]*order.Ledger{"p": l}}
			v := o.View()
			p.Sums[cur] = bank.Sums{Authorized: v.Authorized, Captured: v.Captured, Refunded: v.Refunded}
		}
		index[id] = len(books.Payments)
		books.Payments = append(books.Payments, p)
		return nil
	})
	require.NoError(b.t, err)
	rows, _ = b.Pool.Query(b.t.Context(), `
		WITH RECURSIVE r(tx, id) AS (
			SELECT id, payment_id FROM transactions
			UNION ALL SELECT r.tx, p.merged_into FROM r JOIN payments p ON p.id = r.id WHERE p.merged_into IS NOT NULL)
		SELECT t.id, r.id, t.kind, t.amount, t.currency, t.key, coalesce(t.gateway_ref, '')
		FROM transactions t JOIN r ON r.tx = t.id JOIN payments p ON p.id = r.id AND p.merged_into IS NULL
		WHERE t.status = 'succeeded'`)
	var tx, payment uuid.UUID
	var m bank.Movement
	_, err = pgx.ForEachRow(rows, []any{&tx, &payment, &m.Kind, &m.Amount.Minor, &m.Amount.Currency, &m.Key, &m.Ref}, func() error {
		m.Given = tx.String()
		p := &books.Payments[index[payment]]
		p.Movements = append(p.Movements, m)
		return nil
	})
	require.NoError(b.t, err)
	return books
}

// TestBooksAgree: captures, refunds and voids at four gateways that fail in every way they know, each at 5 %, while workers and the
// server are killed and merchants ask again and again. In the end the gateways' books and ours are equal: nothing was moved twice, and
// nothing that was asked for is missing. PAIDONCE_STRESS=some has 24 orders, full 2,000.
func TestBooksAgree(t *testing.T) {
	t.Parallel()
	orders, kills := 24, 2
	switch os.Getenv("PAIDONCE_STRESS") {
	case "full":
		orders, kills = 2000, 20
	case "":
		t.Skip("it takes minutes on a small machine: PAIDONCE_STRESS=some has 24 orders, full 2,000")
	}
	odds := bank.Odds{}
	for _, f := range bank.Faults() {
		odds[f] = 50
	}
	odds[bank.HookDropped] = 0 // they are lost on the way
	b := newBanked(t, 7, odds)
	require.NoError(t, b.program.Start(t.Context(), "work", 2))
	ctx, stop := context.WithCancel(t.Context())
	var turning sync.WaitGroup
	turning.Go(func() { b.turn(ctx) })
	t.Cleanup(func() { stop(); turning.Wait() })

	var asked atomic.Int64
	var wg sync.WaitGroup
	next := make(chan int)
	for range 12 {
		wg.Go(func() {
			for i := range next {
				if err := b.tellsAStory(ctx, i, &asked); err != nil {
					t.Errorf("order %d: %v", i, err)
				}
			}
		})
	}
	killed := make(chan error, 1)
	go func() { killed <- b.killsAtRandom(ctx, kills) }()
	for i := range orders {
		next <- i
	}
	close(next)
	wg.Wait()
	require.NoError(t, <-killed)

	within := 90*time.Second + time.Duration(orders)*200*time.Millisecond
	b.eventually(within, func() string {
		if n := b.count(`SELECT count(*) FROM transactions WHERE status NOT IN ('succeeded', 'failed')`); n > 0 {
			return fmt.Sprintf("%d transactions are open: %v", n, b.open())
		}
		return ""
	})
	stop()
	turning.Wait()
	require.NoError(t, b.program.SetClock(b.now()))
	b.bank.Settle(t.Context())
	b.heal(within)
	b.eventually(within, func() string { return bank.Compare(b.bank.Books(), b.ours()) })
	require.Positive(t, asked.Load())
	for name := range b.sources {
		c := b.bank.Counts(name)
		require.Positive(t, c.Calls[bank.Refund], name)
		require.Zero(t, c.Reused, "%s: a key came with another call", name)
		t.Logf("%s: %v calls, %v faults, %d answers given again, %d at once", name, c.Calls, c.Faults, c.Replays, c.Conflicts)
	}
}

// open tells some of the transactions that are not settled.
func (b *banked) open() (all []string) {
	b.t.Helper()
	rows, _ := b.Pool.Query(b.t.Context(), `
		SELECT gateway || ' ' || kind || ' ' || status || ' ' || attempts || '/' || lookups || ' ' || coalesce(code, '') || ': ' || coalesce(detail, '')
		FROM transactions WHERE status NOT IN ('succeeded', 'failed') LIMIT 5`)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(b.t, err)
	return all
}

// tellsAStory is one order: it is paid for at a gateway, and then money moves.
func (b *banked) tellsAStory(ctx context.Context, i int, asked *atomic.Int64) error {
	random := rand.New(rand.NewPCG(7, uint64(i))) //nolint:gosec // a test that repeats itself
	g := bankedGateways[i%len(bankedGateways)]
	ref := fmt.Sprint("book-", i)
	code, doc, err := b.ask(ctx, "/v1/orders", ref, `{"data":{"amount":5000,"currency":"EUR","metadata":{"external_ref":"`+ref+`"}}}`)
	if err != nil || code/100 != 2 {
		return fmt.Errorf("register: %d %v, %w", code, doc, err)
	}
	id, _ := doc["data"].(map[string]any)["id"].(string)
	captured := random.IntN(3) > 0
	currency := "EUR"
	if _, err := b.bank.Open(bank.Opening{
		Source: g.Name, Reference: ref, Amount: order.Amount{Minor: 5000, Currency: currency}, Captured: captured, Hooks: bank.Step{},
	}); err != nil {
		return err
	}
	if err := b.knows(ctx, ref); err != nil {
		return err
	}
	move := func(what, name string, amount int) error {
		body := `{"data":{"metadata":{"external_ref":"` + ref + ":" + name + `"}}}`
		if amount > 0 {
			body = fmt.Sprintf(`{"data":{"amount":%d,"metadata":{"external_ref":"%s:%s"}}}`, amount, ref, name)
		}
		asked.Add(1)
		code, doc, err := b.ask(ctx, "/v1/orders/"+id+"/"+what, ref+name, body)
		if err != nil || code >= 500 {
			return fmt.Errorf("%s: %d %v, %w", what, code, doc, err)
		}
		return nil
	}
	if !captured {
		if random.IntN(2) == 0 {
			return move("voids", "void", 0)
		}
		if err := move("captures", "capture", 0); err != nil {
			return err
		}
		if err := b.settled(ctx, id); err != nil {
			return err
		}
	}
	var wg sync.WaitGroup
	errs := make([]error, 3)
	for n := range errs { // more than there is, at once
		amount := 1000 + random.IntN(2000)
		wg.Go(func() { errs[n] = move("refunds", fmt.Sprint("refund-", n), amount) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// knows waits until the order knows of its payment.
func (b *banked) knows(ctx context.Context, ref string) error {
	return b.until(ctx, `SELECT count(*) > 0 FROM orders WHERE external_ref = $1 AND (captured > 0 OR authorized > 0)`, ref)
}

// settled waits until nothing is on its way for the order.
func (b *banked) settled(ctx context.Context, id string) error {
	return b.until(ctx, `SELECT count(*) = 0 FROM transactions WHERE order_id = $1::uuid AND status NOT IN ('succeeded', 'failed')`, id)
}

func (b *banked) until(ctx context.Context, sql string, args ...any) error {
	for {
		var holds bool
		if err := b.Pool.QueryRow(ctx, sql, args...).Scan(&holds); err != nil || holds {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%w: never %s %v", ctx.Err(), sql, args)
		}
	}
}

// killsAtRandom ends processes with SIGKILL, and starts them again.
func (b *banked) killsAtRandom(ctx context.Context, kills int) error {
	random := rand.New(rand.NewPCG(7, 7)) //nolint:gosec // a test that repeats itself
	for k := range kills {
		select {
		case <-time.After(time.Duration(500+random.IntN(1500)) * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
		process, number := "work", 1+k%2
		if k%4 == 3 {
			process, number = "serve", 1
		}
		if err := b.program.Kill(ctx, process, number); err != nil {
			return err
		}
		if err := b.program.Start(ctx, process, number); err != nil {
			return err
		}
	}
	return nil
}

// heal has every gateway asked about every payment, as a reconciliation does for what webhooks did not tell.
func (b *banked) heal(within time.Duration) {
	b.t.Helper()
	for name, src := range b.sources {
		g, _ := gateway.Lookup(name)
		if g.Fetch == nil || g.Fetch.About == nil {
			continue
		}
		var list []store.Announcement
		for _, p := range b.bank.Books().Payments {
			if p.Source != name {
				continue
			}
			for _, o := range g.Fetch.About(src, p.IDs) {
				list = append(list, store.Announcement{Account: cases.AccountA, Source: name, Gateway: name, Object: o.String()})
			}
		}
		for chunk := range slices.Chunk(list, 100) {
			_, err := b.Store.Announce(b.t.Context(), chunk)
			require.NoError(b.t, err)
		}
	}
	b.eventually(within, func() string {
		if n := b.count(`SELECT count(*) FROM fetches WHERE state = 'open'`); n > 0 {
			return fmt.Sprintf("%d objects are to be asked about", n)
		}
		return ""
	})
}
