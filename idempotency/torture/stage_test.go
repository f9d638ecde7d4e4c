package torture_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/store/storetest"
	"github.com/paidonce/paidonce/store/storetest/wiretest"
)

// patience bounds waiting for what must happen soon, on a machine that is busy.
const patience = 30 * time.Second

// stage is a database with a wire to it, and a desk.
type stage struct {
	t      *testing.T
	url    string        // of the database, not through the wire
	direct *pgxpool.Pool // likewise
	name   string        // of the sessions through the wire
	wire   *wiretest.Proxy

	bounced  bool   // there is a PgBouncer between the servers and the wire
	database string // what servers connect to
	desk     *desk
	client   *http.Client
}

func newStage(t *testing.T) *stage {
	t.Helper()
	return openStage(t, &stage{})
}

func openStage(t *testing.T, s *stage) *stage {
	t.Helper()
	s.t, s.url = t, storetest.OpenURL(t)
	conf, err := pgxpool.ParseConfig(s.url)
	require.NoError(t, err)
	conf.MaxConns = 8
	s.direct, err = pgxpool.NewWithConfig(t.Context(), conf)
	require.NoError(t, err)
	t.Cleanup(s.direct.Close)
	s.exec(`CREATE TABLE effects (id uuid PRIMARY KEY, key text NOT NULL, body text NOT NULL)`)
	return s.with(t)
}

// with is the same database for a test of its own, through another wire and with another desk. Such tests use different keys.
func (s *stage) with(t *testing.T) *stage {
	t.Helper()
	c := &stage{t: t, url: s.url, direct: s.direct, name: "torture-" + uuid.NewString(), bounced: s.bounced}
	separator := "?"
	if strings.Contains(s.url, "?") {
		separator = "&"
	}
	c.wire = wiretest.New(t, s.url+separator+"application_name="+c.name)
	c.database = c.wire.URL()
	if c.bounced {
		c.database = bounce(t, c.wire.URL())
	}
	c.desk = newDesk(t)
	c.client = &http.Client{Timeout: 2 * patience, Transport: &http.Transport{MaxIdleConnsPerHost: 200}}
	t.Cleanup(c.client.CloseIdleConnections)
	return c
}

// child starts a server in a process of its own, behind the wire.
func (s *stage) child() *child {
	s.t.Helper()
	return startChild(s.t, serverConfig{Database: s.database, Desk: s.desk.URL, MaxConns: 4})
}

// here starts a server in this process, behind the wire. change may be nil.
func (s *stage) here(change func(*serverConfig)) string {
	s.t.Helper()
	c := serverConfig{Database: s.database, Desk: s.desk.URL, MaxConns: 4}
	if change != nil {
		change(&c)
	}
	srv, err := newServer(s.t.Context(), c, s.t.Output())
	require.NoError(s.t, err)
	s.t.Cleanup(srv.pool.Close)
	web := httptest.NewServer(srv)
	s.t.Cleanup(web.Close)
	return web.URL
}

func (s *stage) exec(sql string, args ...any) {
	s.t.Helper()
	_, err := s.direct.Exec(context.Background(), sql, args...)
	require.NoError(s.t, err)
}

func (s *stage) count(sql string, args ...any) (n int) {
	s.t.Helper()
	require.NoError(s.t, s.direct.QueryRow(context.Background(), sql, args...).Scan(&n))
	return n
}

// effects is how many rows handlers have left under a key.
func (s *stage) effects(key string) int {
	s.t.Helper()
	return s.count(`SELECT count(*) FROM effects WHERE key = $1`, key)
}

// eventually polls the database for what must come true.
func (s *stage) eventually(sql string, args ...any) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		var yes bool
		return s.direct.QueryRow(context.Background(), sql, args...).Scan(&yes) == nil && yes
	}, patience, tick, sql)
}

// settled waits until the server has done with every session through the wire, whose clients are gone. PgBouncer keeps some for others.
func (s *stage) settled() {
	s.t.Helper()
	s.eventually(`
		SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = $1 AND state IS DISTINCT FROM 'idle')`, s.name)
}

// age makes the locks of a key old enough to be taken over: their owner says nothing for longer than that.
func (s *stage) age(key string) {
	s.t.Helper()
	s.exec(`UPDATE idempotency_keys SET locked_at = locked_at - lock_timeout - interval '1 second' WHERE idempotency_key = $1 AND status = 'PROCESSING'`, key)
}

// row is what the table knows of the caller's key; an empty state means that there is no row.
func (s *stage) row(key string) idempotency.Record {
	s.t.Helper()
	store, err := idempotency.NewStore(s.direct, idempotency.StoreOptions{})
	require.NoError(s.t, err)
	r, err := store.Inspect(context.Background(), scope(merchant), key)
	if err != nil {
		require.ErrorIs(s.t, err, idempotency.ErrNotFound)
	}
	return r
}

// merchant is the caller of most requests.
const merchant = "merchant"

// request is one call.
type request struct {
	path, key, body, caller string
	do                      []string
}

// reply is what a caller got of it.
type reply struct {
	code   int
	header http.Header
	body   string
	err    error // the connection ended first
}

// send sends a request to a server.
func (s *stage) send(ctx context.Context, url string, q request) reply {
	if q.path == "" {
		q.path = ordersPath
	}
	if q.body == "" {
		q.body = `{"amount":5000}`
	}
	if q.caller == "" {
		q.caller = merchant
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+q.path, strings.NewReader(q.body))
	if err != nil {
		return reply{err: err}
	}
	// In lower case, since Go's client repeats a request that has this header by itself.
	r.Header["idempotency-key"] = []string{q.key}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Test-Caller", q.caller)
	r.Header.Set(doHeader, strings.Join(q.do, ","))
	resp, err := s.client.Do(r)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{code: resp.StatusCode, header: resp.Header, body: string(body), err: err}
}

// post is send for those who wait for the answer.
func (s *stage) post(url string, q request) reply {
	s.t.Helper()
	r := s.send(s.t.Context(), url, q)
	require.NoError(s.t, r.err)
	return r
}

// insist sends a request until it is answered with something else than a dead connection, 409 or 503, as a client does that was told
// to come back.
func (s *stage) insist(ctx context.Context, q request, urls ...string) reply {
	for try := 0; ; try++ {
		r := s.send(ctx, urls[try%len(urls)], q)
		if r.err == nil && r.code != http.StatusConflict && r.code != http.StatusServiceUnavailable || ctx.Err() != nil {
			return r
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// start is send for those who do not.
func (s *stage) start(url string, q request) <-chan reply {
	c := make(chan reply, 1)
	go func() { c <- s.send(context.Background(), url, q) }()
	return c
}

// kind tells replies apart, as the case tables write them.
func (r reply) kind() string {
	switch {
	case r.err != nil:
		return "none"
	case r.header.Get(idempotency.HeaderReplayed) == "true":
		return strconv.Itoa(r.code) + "R"
	case r.header.Get(idempotency.HeaderStatus) == idempotency.StatusExecuted:
		return strconv.Itoa(r.code) + "*"
	}
	return strconv.Itoa(r.code)
}

// refused asserts a problem of the middleware's, and that the caller hears when to come back if that makes sense.
func (r reply) refused(t testing.TB, status int, code string) {
	t.Helper()
	require.NoError(t, r.err)
	require.Equal(t, status, r.code, r.body)
	require.Equal(t, "application/problem+json", r.header.Get("Content-Type"))
	var p struct{ Code string }
	require.NoError(t, json.Unmarshal([]byte(r.body), &p))
	require.Equal(t, code, p.Code)
	if status == http.StatusConflict || status == http.StatusServiceUnavailable {
		after, err := strconv.Atoi(r.header.Get("Retry-After"))
		require.NoError(t, err)
		require.GreaterOrEqual(t, after, 1)
	}
}

// id is what an answer of the handlers names.
func (r reply) id(t testing.TB) string {
	t.Helper()
	var doc struct{ ID string }
	require.NoError(t, r.err)
	require.NoError(t, json.Unmarshal([]byte(r.body), &doc), r.body)
	return doc.ID
}

// desk is what servers call while they handle a request: a gate that holds them back, and a provider that takes charges.
type desk struct {
	*httptest.Server
	arrived chan int      // the process that stands at the gate
	open    chan struct{} // closed: nobody is held back any more

	mu       sync.Mutex
	charges  map[string]string // by outbound key: the provider does not charge twice under one
	calls    []string          // the keys of all calls
	onCharge func()            // after a charge, before the answer; nil: nothing
}

func newDesk(t *testing.T) *desk {
	d := &desk{arrived: make(chan int, 1000), open: make(chan struct{}), charges: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /gate", func(_ http.ResponseWriter, r *http.Request) {
		pid, _ := strconv.Atoi(r.FormValue("pid"))
		d.mu.Lock()
		open := d.open
		d.mu.Unlock()
		d.arrived <- pid
		select {
		case <-open:
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("POST /charge", func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		key := r.FormValue("key")
		d.calls = append(d.calls, key)
		if d.charges[key] == "" {
			d.charges[key] = uuid.NewString()
		}
		id, hook := d.charges[key], d.onCharge
		d.mu.Unlock()
		if hook != nil {
			hook()
		}
		_ = json.NewEncoder(w).Encode(id)
	})
	d.Server = httptest.NewServer(mux)
	t.Cleanup(d.Close)
	t.Cleanup(d.openGate)
	return d
}

func (d *desk) openGate() {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.open:
	default:
		close(d.open)
	}
}

// shut shuts the gate again for those who come from now on.
func (d *desk) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = make(chan struct{})
}

// await returns the process that comes to the gate next.
func (d *desk) await(t testing.TB) (pid int) {
	t.Helper()
	select {
	case pid = <-d.arrived:
	case <-time.After(patience):
		require.FailNow(t, "nobody came to the gate")
	}
	return pid
}

// charged returns the charges and the calls that were made.
func (d *desk) charged() (charges, calls int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.charges), len(d.calls)
}

// tick is how often something is looked at that nobody tells of.
const tick = 2 * time.Millisecond
