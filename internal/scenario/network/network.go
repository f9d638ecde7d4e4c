// Package network is a recording network for tests: everything that a program
// dials, looks up or requests outside ends here, and nothing reaches a wire.
//
// A [Network] listens on loopback. The program under test gets [Dial] and
// [LookupHost] in place of the real ones, in the test's own process or in a
// child: both first say in one line what was asked for. Connections to the
// merchant's host reach the merchant's handler; every other connection, with
// TLS or without, meets answers that the test laid out, or 404. What is not for
// the merchant is counted.
package network

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Options of a [Network].
type Options struct {
	// MerchantHost is the host name (or address) that belongs to the merchant.
	MerchantHost string

	// Merchant answers what is sent there.
	Merchant http.Handler

	// Outside, if not nil, answers what is sent to other hosts, instead of [Network.Answer].
	Outside http.Handler

	// Authority signs for hosts that are called by HTTPS. Without one, their
	// handshakes fail.
	Authority *Authority
}

// Reply is one answer of an outside host.
type Reply struct {
	Status      int
	ContentType string
	Body        string
}

// Network is a recording network. Use New; a Network is safe for concurrent use.
type Network struct {
	opts      Options
	listener  net.Listener
	inside    *http.Server // the merchant
	outside   *http.Server // everybody else
	merchants chanListener
	others    chanListener
	wg        sync.WaitGroup

	mu     sync.Mutex
	routes []*route
	seen   []string
	names  map[netip.Addr]string // addresses handed out by look-ups

	// pending are connections on which too little was said yet to hand them on.
	pending map[net.Conn]struct{}
	closed  bool
}

type route struct {
	method  string
	url     *regexp.Regexp
	replies []Reply
	next    int
}

// New starts a network on loopback. Close ends it.
func New(opts Options) (*Network, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the program's connections: %w", err)
	}
	n := &Network{
		opts: opts, listener: listener,
		merchants: newChanListener(listener.Addr()), others: newChanListener(listener.Addr()),
		names: make(map[netip.Addr]string), pending: make(map[net.Conn]struct{}),
	}
	n.inside = &http.Server{Handler: opts.Merchant, ReadHeaderTimeout: time.Minute}
	n.outside = &http.Server{
		Handler: http.HandlerFunc(n.answer), ReadHeaderTimeout: time.Minute,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, schemeKey{}, schemeOf(c))
		},
	}
	n.wg.Go(func() { _ = n.inside.Serve(n.merchants) })
	n.wg.Go(func() { _ = n.outside.Serve(n.others) })
	n.wg.Go(n.accept)
	return n, nil
}

// Close ends the network and every connection of it.
func (n *Network) Close() {
	_ = n.listener.Close()
	_ = n.inside.Close()
	_ = n.outside.Close()
	n.mu.Lock()
	n.closed = true
	for conn := range n.pending {
		conn.Close()
	}
	n.mu.Unlock()
	n.wg.Wait()
}

// hold keeps a connection where Close finds it, until the returned func is called.
func (n *Network) hold(conn net.Conn) func() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		conn.Close()
	}
	n.pending[conn] = struct{}{}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.pending, conn)
	}
}

// Addr is what Dial and LookupHost need, in any process.
func (n *Network) Addr() string { return n.listener.Addr().String() }

// Answer lays out what an outside host answers to a method and a URL in which
// one * stands for any characters. The replies are used one after another, the
// last again and again. The first route that fits counts.
func (n *Network) Answer(method, url string, replies []Reply) {
	before, after, found := strings.Cut(url, "*")
	pattern := regexp.QuoteMeta(before)
	if found {
		pattern += ".*" + regexp.QuoteMeta(after)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.routes = append(n.routes, &route{method: method, url: regexp.MustCompile("^(?s:" + pattern + ")$"), replies: replies})
}

// Outbound returns what was asked of anything but the merchant, one line each:
// connections, requests and look-ups of names.
func (n *Network) Outbound() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.seen...)
}

func (n *Network) record(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen = append(n.seen, fmt.Sprintf(format, args...))
}

func (n *Network) accept() {
	for {
		conn, err := n.listener.Accept()
		if err != nil {
			return
		}
		n.wg.Go(func() { n.route(conn) })
	}
}

// route reads the line that says what the program wanted and hands the
// connection on.
func (n *Network) route(conn net.Conn) {
	defer n.hold(conn)()
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	if err != nil {
		conn.Close()
		return
	}
	verb, what, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	peeked := &peekedConn{Conn: conn, in: in, scheme: "http"}
	if verb == "lookup" {
		defer conn.Close()
		_, _ = fmt.Fprintln(conn, n.lookup(what))
		return
	}
	host := n.hostOf(what)
	if host == n.opts.MerchantHost {
		n.merchants.hand(peeked)
		return
	}
	n.record("connect %s", what)
	first, err := in.Peek(1)
	if err != nil {
		conn.Close()
		return
	}
	if first[0] == 0x16 && n.opts.Authority != nil { // the first byte of a TLS handshake record (RFC 8446, 5.1)
		peeked.scheme = "https"
		secure := tls.Server(peeked, &tls.Config{
			MinVersion: tls.VersionTLS12,
			GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
				if hello.ServerName != "" {
					return n.opts.Authority.certificate(hello.ServerName)
				}
				return n.opts.Authority.certificate(host)
			},
		})
		n.others.hand(&tlsConn{Conn: secure})
		return
	}
	n.others.hand(peeked)
}

// lookup gives every name an address of its own, from the block that is set
// aside for documentation (RFC 5737, TEST-NET-3).
func (n *Network) lookup(name string) netip.Addr {
	if name != n.opts.MerchantHost {
		n.record("lookup %s", name)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name))
	for last := byte(hash.Sum32()); ; last++ {
		addr := netip.AddrFrom4([4]byte{203, 0, 113, last})
		if owner, taken := n.names[addr]; !taken || owner == name {
			n.names[addr] = name
			return addr
		}
	}
}

// hostOf returns the name behind an address that a look-up gave out.
func (n *Network) hostOf(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		if name, ok := n.names[addr.Unmap()]; ok {
			return name
		}
	}
	return host
}

type schemeKey struct{}

func (n *Network) answer(w http.ResponseWriter, r *http.Request) {
	scheme, _ := r.Context().Value(schemeKey{}).(string)
	url := scheme + "://" + r.Host + r.URL.RequestURI()
	n.record("%s %s", r.Method, url)
	if n.opts.Outside != nil {
		n.opts.Outside.ServeHTTP(w, r)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	reply, ok := n.reply(r.Method, url)
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if reply.ContentType != "" {
		w.Header().Set("Content-Type", reply.ContentType)
	}
	w.WriteHeader(reply.Status)
	_, _ = io.WriteString(w, reply.Body)
}

func (n *Network) reply(method, url string) (Reply, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.routes {
		if r.method != method || !r.url.MatchString(url) {
			continue
		}
		reply := r.replies[r.next]
		r.next = min(r.next+1, len(r.replies)-1)
		return reply, true
	}
	return Reply{}, false
}

// Dial connects to addr through the network that listens at recorder. It is
// what the program under test gets as its dialer. The connection says that it
// leads where it was to: to the address, or for a name to one of the public
// Internet, so that a program which calls only those can be tested.
func Dial(ctx context.Context, recorder, network, addr string) (net.Conn, error) {
	conn, err := ask(ctx, recorder, "dial "+addr)
	if err != nil {
		return nil, err
	}
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		to = somewhere
	}
	return &dialled{conn.(*net.TCPConn), net.TCPAddrFromAddrPort(to)}, nil
}

// somewhere is where names lead: only said, and never called.
var somewhere = netip.MustParseAddrPort("8.8.4.4:443")

// LookupHost asks the network that listens at recorder for the address of a name.
func LookupHost(ctx context.Context, recorder, host string) ([]netip.Addr, error) {
	conn, err := ask(ctx, recorder, "lookup "+host)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", host, err)
	}
	addr, err := netip.ParseAddr(strings.TrimSpace(line))
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", host, err)
	}
	return []netip.Addr{addr}, nil
}

func ask(ctx context.Context, recorder, line string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", recorder)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, line+"\n"); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
