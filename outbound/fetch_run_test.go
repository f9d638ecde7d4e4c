package outbound_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/outbound"
	"github.com/paidonce/paidonce/store"
)

// gate holds a call back until the test lets it go.
type gate struct{ begun, end chan struct{} }

func newGate() *gate { return &gate{make(chan struct{}, 100), make(chan struct{})} }

func (g *gate) wait(ctx context.Context) error {
	g.begun <- struct{}{}
	select {
	case <-g.end:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *stage) done(source, id string) func() bool {
	return func() bool { return s.row(source, id).State == "done" }
}

// However often an object is announced while a call is out, one more call follows.
func TestAHundredAnnouncementsAreTwoCalls(t *testing.T) {
	t.Parallel()
	s := newStage(t, outbound.FetchOptions{})
	s.register("ord_1", 5000)
	g := newGate()
	var once sync.Once
	s.api.when("/payment/tr_1", func(ctx context.Context) ([]byte, error) {
		body := `{"id":"tr_1","captured":5000,"order":"ord_1"}`
		once.Do(func() {
			body = `{"id":"tr_1","order":"ord_1"}` // what was so when it began
			_ = g.wait(ctx)
		})
		return []byte(body), nil
	})
	s.run(s.Fetcher)
	s.announce("ping", "tr_1")
	<-g.begun
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for range 10 {
				s.announce("ping", "tr_1")
			}
		})
	}
	wg.Wait()
	close(g.end)
	s.until("both answers are taken in", s.done("ping", "tr_1"))
	require.Equal(t, 2, s.api.count())
	require.Equal(t, []string{"ord_1 paid"}, s.states())
	require.Equal(t, []string{"2"}, s.texts(`SELECT count(*)::text FROM river_job WHERE kind = 'fetch'`))
}

// A flood of ids that nobody knows causes so many rows and calls, however long it lasts, and does not keep what was
// known before from being asked about.
func TestAFloodIsBounded(t *testing.T) {
	t.Parallel()
	s := newStage(t, outbound.FetchOptions{})
	s.register("ord_1", 5000)
	s.api.is(state{ID: "tr_known", Order: "ord_1"})
	s.announce("ping", "tr_known")
	require.Equal(t, "done", s.ask("ping", "tr_known").State)
	before := s.api.count()

	dropped := 0
	for i := range 100 {
		dropped += s.announce("ping", fmt.Sprintf("tr_%d", i), fmt.Sprintf("tr_%d_b", i)).Dropped
	}
	require.Equal(t, 170, dropped)
	for range 8 {
		for _, o := range s.texts(`SELECT object FROM fetches WHERE next_at <= clock_timestamp()`) {
			s.ask("ping", strings.TrimPrefix(o, "payment/"))
		}
		s.later(time.Hour)
	}
	require.Equal(t, 30*6, s.api.count()-before, "thirty objects, six calls each")
	require.Equal(t, []string{"30"}, s.texts(`SELECT count(*)::text FROM fetches WHERE state = 'dead'`))
	require.Equal(t, []string{"payment no_change"}, s.events()[:1])
	require.Len(t, s.events(), 1)

	s.api.is(state{ID: "tr_known", Captured: 5000, Order: "ord_1"})
	s.announce("ping", "tr_known")
	require.Equal(t, "done", s.ask("ping", "tr_known").State)
	require.Equal(t, []string{"ord_1 paid"}, s.states())
}

// One account's API hangs; another's is asked all the same.
func TestAHangingGatewayStarvesNobody(t *testing.T) {
	t.Parallel()
	s := newStage(t, outbound.FetchOptions{Workers: 4})
	g := newGate()
	var hanging []string
	for i := range 20 {
		id := fmt.Sprintf("tr_%d", i)
		hanging = append(hanging, id)
		s.api.when("/payment/"+id, func(ctx context.Context) ([]byte, error) { return nil, g.wait(ctx) })
	}
	s.run(s.Fetcher)
	s.announce("ping", hanging...)
	for range 3 {
		<-g.begun
	}
	for i := range 5 {
		id := fmt.Sprintf("tr_b%d", i)
		s.api.is(state{ID: id, Captured: 100})
		s.announce("beta", id)
		s.until("it is asked while the others hang", s.done("beta", id))
	}
	require.Empty(t, g.begun, "three of four workers are all that one account has")
	close(g.end)
}

// Jobs that were deleted, and calls whose worker was lost, are made good for by the ticker.
func TestTheTickerMakesGood(t *testing.T) {
	t.Parallel()
	s := newStage(t, outbound.FetchOptions{TickEvery: 50 * time.Millisecond})
	s.api.is(state{ID: "tr_1", Captured: 100})
	s.announce("ping", "tr_1")
	_, err := s.pool.Exec(t.Context(), `DELETE FROM river_job`)
	require.NoError(t, err)
	s.later(time.Minute)
	stop := s.run(s.Fetcher)
	s.until("its job is asked for again", s.done("ping", "tr_1"))
	stop()
	require.Equal(t, 1, s.api.count())

	// A worker that is gone between its claim and its settle.
	s.api.is(state{ID: "tr_1", Captured: 200})
	s.announce("ping", "tr_1")
	c, err := s.store.ClaimFetch(t.Context(), "acme", "ping", "payment/tr_1", 40*time.Second)
	require.NoError(t, err)
	require.NotNil(t, c)
	_, err = s.pool.Exec(t.Context(), `DELETE FROM river_job`)
	require.NoError(t, err)
	s.later(time.Minute)
	s.run(s.fetcher(outbound.FetchOptions{TickEvery: 50 * time.Millisecond}))
	s.until("its claim is taken over", s.done("ping", "tr_1"))
	require.Len(t, s.events(), 2)
	late, err := s.store.SettleFetch(t.Context(), *c, store.FetchAnswer{Dead: true})
	require.NoError(t, err)
	require.True(t, late.Stale, "who comes back late writes nothing")
}

// An answer that was taken in twice, because nobody recorded the first time, moves nothing twice.
func TestLostBetweenIngestAndSettle(t *testing.T) {
	t.Parallel()
	s := newStage(t, outbound.FetchOptions{})
	s.register("ord_1", 5000)
	s.api.is(state{ID: "tr_1", Captured: 5000, Order: "ord_1"})
	s.announce("ping", "tr_1")
	_, err := s.pool.Exec(t.Context(), `
		CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'lost'; END $$;
		CREATE TRIGGER lose BEFORE UPDATE ON fetches FOR EACH ROW WHEN (OLD.claimed_until IS NOT NULL AND NEW.claimed_until IS NULL) EXECUTE FUNCTION lose()`)
	require.NoError(t, err)
	require.Error(t, outbound.Work(t.Context(), s.Fetcher, store.FetchArgs{Account: "acme", Source: "ping", Object: "payment/tr_1"}))
	require.Equal(t, []string{"ord_1 paid"}, s.states(), "what was taken in stays so")
	_, err = s.pool.Exec(t.Context(), `DROP TRIGGER lose ON fetches`)
	require.NoError(t, err)
	s.later(time.Minute)
	require.Equal(t, "done", s.ask("ping", "tr_1").State)
	require.Equal(t, 2, s.api.count())
	require.Equal(t, []string{"payment applied", "payment no_change"}, s.events())
	require.Equal(t, []string{"1"}, s.texts(`SELECT count(*)::text FROM order_transitions WHERE effect = 'fulfil'`))
}

func TestEventsThatWaitedAreResolved(t *testing.T) {
	t.Parallel()
	s := newStage(t, outbound.FetchOptions{})
	s.register("ord_1", 5000)
	s.api.is(state{ID: "tr_1", Captured: 5000, Order: "ord_1"})
	pointer := store.Event{Account: "acme", Source: "signed"}
	pointer.ID, pointer.Type, pointer.Fetch = "evt_1", "changed", "payment/tr_1"
	_, err := s.store.Apply(t.Context(), []store.Event{pointer})
	require.NoError(t, err)
	s.announce("signed", "tr_1")
	require.Equal(t, []string{"changed waiting"}, s.events())
	require.Equal(t, "done", s.ask("signed", "tr_1").State)
	require.Equal(t, []string{"changed no_change", "payment applied"}, s.events())
	require.Equal(t, []string{"ord_1 paid"}, s.states())
}

// envChild makes the test binary a process that asks on the database it names.
const envChild = "PAIDONCE_OUTBOUND_TEST_URL"

// Two processes, one of which is killed while its calls are out: each object is taken in, and by one at a time.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	s := newStage(t, outbound.FetchOptions{TickEvery: 100 * time.Millisecond})
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), envChild+"="+s.pool.Config().ConnString())
	in, err := cmd.StdinPipe() // its end is the child's
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})

	var ids []string
	for i := range 20 {
		ids = append(ids, fmt.Sprintf("tr_%d", i))
		s.api.is(state{ID: ids[i], Captured: int64(100 + i)})
	}
	s.announce("ping", ids...)
	s.until("the child has calls out", func() bool {
		return s.texts(`SELECT (count(*) > 2)::text FROM fetches WHERE claimed_until IS NOT NULL`)[0] == "true"
	})
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	s.until("the server has seen that the child is gone", func() bool { // until then it may still commit a claim of its
		return s.texts(`SELECT (count(*) = 0)::text FROM pg_stat_activity WHERE datname = current_database() AND application_name = '` + childName + `'`)[0] == "true"
	})
	orphans := s.texts(`SELECT object FROM fetches WHERE claimed_until IS NOT NULL`)
	s.run(s.Fetcher)
	// Done, not only claimed: the time that passes below would end claims of this process too.
	s.until("what it had not claimed is taken in", func() bool {
		return len(s.texts(`SELECT object FROM fetches WHERE state = 'done'`)) == 20-len(orphans)
	})
	require.ElementsMatch(t, orphans, s.texts(`SELECT object FROM fetches WHERE claimed_until IS NOT NULL`), "its claims stand until they lapse")
	s.later(time.Minute)
	s.until("and the rest after the lease", func() bool {
		return s.texts(`SELECT (count(*) = 20)::text FROM fetches WHERE state = 'done'`)[0] == "true"
	})
	require.Len(t, s.events(), 20)
	require.Equal(t, 20, s.api.count())
	require.Positive(t, metric(t, s.metrics, "paidonce_fetches_total", "result", "changed"))
}
