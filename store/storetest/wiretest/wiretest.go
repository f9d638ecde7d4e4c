// Package wiretest puts a wire between a test and its Postgres that can be cut at a chosen moment.
//
//	wire := wiretest.New(t, storetest.OpenURL(t))
//	pool, err := pgxpool.New(t.Context(), wire.URL())
//	...
//	commit := wire.Trap(wiretest.After, wiretest.SQL(`^commit`))
//	go func() { done <- work(pool) }()
//	commit.Wait() // it is committed, and the client has not heard of it
//	commit.Cut()  // nor will it
//
// A [Proxy] reads the protocol along (version 3, simple and extended, pipelines too) and changes nothing of it. It knows
// which statement each message executes and which reply answers it, so that a [Trap] can stop a connection before a
// statement reaches the server, or after the server has executed it and before the client hears so. What stands in a trap
// stands there until the test decides: no timing is involved. Beside that the whole wire can go down and come up, and
// stall, as a network does that drops every packet.
//
// The wire speaks no TLS. A server that demands it fails the test that uses the wire.
package wiretest

import (
	"context"
	"errors"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// patience is how long a trap is waited for, on a machine that is busy.
const patience = 30 * time.Second

// Moment says at which end of a statement something happens.
type Moment int

const (
	// Before is when a statement has left the client and not reached the server. What went before it in the same
	// pipeline has, and is being executed.
	Before Moment = iota

	// After is when the server has executed a statement and the client has heard nothing of it: neither rows nor that it
	// is done. The server has also reached the end of the pipeline or of the string that the statement stands in, so that
	// what commits by itself has committed.
	After
)

// Statement is one execution of a statement.
type Statement struct {
	// Conn is the number of the connection: 1 is the first that the proxy accepted.
	Conn int

	// PID is the process of the server that has the connection.
	PID uint32

	// SQL is its text, as the client sent it. Several statements that travel as one string are one.
	SQL string

	// Ended is closed when the client has closed its end, or died. A connection that is stopped does not end by that.
	Ended <-chan struct{}
}

// Match reports whether a statement is meant. It must not block.
type Match func(Statement) bool

// SQL matches statements by a regular expression on their text, ignoring case, comments at its beginning and the white
// space around it. It panics if the expression is none.
func SQL(expression string) Match {
	re := regexp.MustCompile("(?is)" + expression)
	return func(s Statement) bool { return re.MatchString(trim(s.SQL)) }
}

// Nth matches the nth statement, 1 being the first, that m matches.
func Nth(n int, m Match) Match {
	var mu sync.Mutex
	return func(s Statement) bool {
		mu.Lock()
		defer mu.Unlock()
		if !m(s) {
			return false
		}
		n--
		return n == 0
	}
}

var comment = regexp.MustCompile(`^\s*(--[^\n]*(\n|$)|/\*(?s:.*?)\*/)`)

func trim(sql string) string {
	for {
		rest := comment.ReplaceAllString(sql, "")
		if rest == sql {
			return strings.TrimSpace(sql)
		}
		sql = rest
	}
}

// Verdict is what becomes of a connection that was stopped.
type Verdict int

const (
	// Pass lets it go on.
	Pass Verdict = iota

	// Cut ends it on both sides: the client's is reset, the server finds its own closed.
	Cut
)

// interceptor decides about the statements it matches.
type interceptor struct {
	at     Moment
	match  Match
	decide func(Statement) Verdict
}

// Proxy is a wire. Use [New]; a Proxy is safe for concurrent use.
type Proxy struct {
	tb       testing.TB
	url      string
	network  string // of the server
	address  string
	listener net.Listener
	wg       sync.WaitGroup
	closed   chan struct{}

	mu           sync.Mutex
	sessions     map[*session]struct{}
	accepted     int
	down         bool
	cancels      bool          // are lost
	flow         chan struct{} // closed while bytes flow
	interceptors []*interceptor
	seen         []Statement
}

// New starts a wire to the server of a connection string, which may be a URL or keywords and values. It lies until the
// test ends.
func New(tb testing.TB, conn string) *Proxy {
	tb.Helper()
	cfg, err := pgconn.ParseConfig(conn)
	if err != nil {
		tb.Fatalf("wiretest: %v", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("wiretest: %v", err)
	}
	p := &Proxy{
		tb: tb, url: redirect(conn, listener.Addr().(*net.TCPAddr).Port), listener: listener,
		closed: make(chan struct{}), sessions: make(map[*session]struct{}), flow: make(chan struct{}),
	}
	p.network, p.address = pgconn.NetworkAddress(cfg.Host, cfg.Port)
	close(p.flow)
	p.wg.Go(p.accept)
	tb.Cleanup(p.close)
	return p
}

// redirect returns a connection string that leads to the port of a proxy.
func redirect(conn string, port int) string {
	u, err := url.Parse(conn)
	if err != nil || !strings.HasPrefix(u.Scheme, "postgres") {
		return conn + " host=127.0.0.1 port=" + strconv.Itoa(port) + " sslmode=disable" // the last ones count
	}
	u.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	query := u.Query()
	query.Del("host")
	query.Del("port")
	query.Set("sslmode", "disable")
	u.RawQuery = query.Encode()
	return u.String()
}

// URL returns the connection string that leads through the wire.
func (p *Proxy) URL() string { return p.url }

// Intercept has decide called for every statement that match matches, at that moment, until the test ends or the returned
// func is called. The connection waits for the verdict. Interceptors are asked in the order of their making, and the
// first that matches decides.
func (p *Proxy) Intercept(at Moment, match Match, decide func(Statement) Verdict) (remove func()) {
	i := &interceptor{at, match, decide}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.interceptors = append(p.interceptors, i)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.interceptors = slices.DeleteFunc(p.interceptors, func(other *interceptor) bool { return other == i })
	}
}

// Seen returns every statement that a client has sent, in order. What stands in a trap before the server is among them.
func (p *Proxy) Seen() []Statement {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.seen)
}

// Down cuts every connection, and every new one as soon as it is made, until [Proxy.Up].
func (p *Proxy) Down() {
	p.mu.Lock()
	p.down = true
	sessions := p.list()
	p.mu.Unlock()
	for _, s := range sessions {
		s.cut()
	}
}

// Up ends [Proxy.Down].
func (p *Proxy) Up() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}

// Stall holds every byte back in both directions, also of new connections, until [Proxy.Flow]. Nothing is lost, and
// neither side learns of it.
func (p *Proxy) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.flow:
		p.flow = make(chan struct{})
	default: // stalled already
	}
}

// Flow ends [Proxy.Stall].
func (p *Proxy) Flow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.flow:
	default:
		close(p.flow)
	}
}

// LoseCancels has requests to cancel a statement lost on their way from now on. They travel on connections of their own, and
// clients send one when a connection of theirs breaks, which ends what the server is still at.
func (p *Proxy) LoseCancels() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancels = true
}

func (p *Proxy) losesCancels() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cancels
}

// Connections returns how many connections lie through the wire now.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sessions)
}

func (p *Proxy) list() []*session {
	var all []*session
	for s := range p.sessions {
		all = append(all, s)
	}
	return all
}

// close ends everything, and waits for it.
func (p *Proxy) close() {
	close(p.closed)
	_ = p.listener.Close()
	p.mu.Lock()
	sessions := p.list()
	p.mu.Unlock()
	for _, s := range sessions {
		s.cut()
	}
	p.wg.Wait()
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(conn.(*net.TCPConn)) })
	}
}

// serve is one connection, from its beginning to its end.
func (p *Proxy) serve(client *net.TCPConn) {
	p.mu.Lock()
	down := p.down
	p.mu.Unlock()
	if down {
		reset(client)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	server, err := new(net.Dialer).DialContext(ctx, p.network, p.address)
	cancel()
	if err != nil {
		reset(client)
		return
	}
	p.mu.Lock()
	p.accepted++
	s := newSession(p, p.accepted, client, server)
	p.sessions[s] = struct{}{}
	down = p.down || p.isClosed()
	p.mu.Unlock()
	if down {
		s.cut()
	}
	if err := s.run(); err != nil && !errors.Is(err, net.ErrClosed) {
		p.tb.Logf("wiretest: connection %d: %v", s.number, err)
	}
	p.mu.Lock()
	delete(p.sessions, s)
	p.mu.Unlock()
}

func (p *Proxy) isClosed() bool {
	select {
	case <-p.closed:
		return true
	default:
		return false
	}
}

// flowing waits until bytes may pass.
func (p *Proxy) flowing(s *session) {
	p.mu.Lock()
	flow := p.flow
	p.mu.Unlock()
	select {
	case <-flow:
	case <-s.done:
	}
}

// note enters a statement that a client has sent.
func (p *Proxy) note(s Statement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, s)
}

// find returns the interceptor that decides about a statement at a moment, or nil.
func (p *Proxy) find(at Moment, s Statement) *interceptor {
	p.mu.Lock()
	all := slices.Clone(p.interceptors)
	p.mu.Unlock()
	for _, i := range all {
		if i.at == at && i.match(s) {
			return i
		}
	}
	return nil
}

// reset closes a connection so that the peer sees it reset, and not ended.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
