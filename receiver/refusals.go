package receiver

import (
	"container/list"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// RefusalLimit bounds how many deliveries of one address are refused with 401 before the answer is 429. It only
// changes that answer: every signature is verified, and a good one is never counted.
type RefusalLimit struct {
	// Burst is how many refusals an address may have at once. Default 100.
	Burst int
	// Every is the time after which one of them is forgiven. Default 1 s.
	Every time.Duration
	// Addresses is how many addresses are remembered; beyond it the one unseen for longest is forgotten. IPv6
	// addresses count by their /64. Default 4096.
	Addresses int
}

func (o RefusalLimit) withDefaults() RefusalLimit {
	if o.Burst == 0 {
		o.Burst = 100
	}
	if o.Every == 0 {
		o.Every = time.Second
	}
	if o.Addresses == 0 {
		o.Addresses = 4096
	}
	return o
}

// refusals counts refusals per address. It holds one time per address: the moment at which all of its refusals are
// forgiven (the generic cell rate algorithm).
type refusals struct {
	limit RefusalLimit
	mu    sync.Mutex
	known map[netip.Prefix]*list.Element
	order *list.List // of *offender, the latest seen in front
}

type offender struct {
	from    netip.Prefix
	settled time.Time
}

func newRefusals(limit RefusalLimit) *refusals {
	return &refusals{limit: limit, known: make(map[netip.Prefix]*list.Element), order: list.New()}
}

// count enters one refusal of addr. over reports whether that is beyond the limit, and wait is after how long the next
// one would not be. What is beyond the limit is not added, so an address never waits longer than its burst takes.
func (r *refusals) count(addr netip.Addr, now time.Time) (wait time.Duration, over bool) {
	from := network(addr)
	r.mu.Lock()
	defer r.mu.Unlock()

	e, ok := r.known[from]
	if !ok {
		if r.order.Len() >= r.limit.Addresses {
			last := r.order.Back()
			delete(r.known, last.Value.(*offender).from)
			r.order.Remove(last)
		}
		e = r.order.PushFront(&offender{from: from, settled: now})
		r.known[from] = e
	}
	r.order.MoveToFront(e)

	o := e.Value.(*offender)
	span := time.Duration(r.limit.Burst) * r.limit.Every
	if o.settled.Before(now) || o.settled.Sub(now) > span { // the latter: the clock was set back
		o.settled = now
	}
	if next := o.settled.Add(r.limit.Every); next.Sub(now) <= span {
		o.settled = next
		return 0, false
	}
	return o.settled.Add(r.limit.Every).Sub(now) - span, true
}

// network is what is counted as one sender. Whoever has one IPv6 address usually has its whole /64.
func network(addr netip.Addr) netip.Prefix {
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	p, err := addr.Prefix(bits)
	if err != nil { // no address, as on a Unix socket: all of those are one
		return netip.Prefix{}
	}
	return p
}

// sender is the address that a request came from: that of the connection, or, where the connection is from a trusted
// proxy, the last one in its header that is not a trusted proxy itself. What stands further left is whatever the
// caller wrote there.
func (rc *Receiver) sender(r *http.Request) netip.Addr {
	addr := parseAddr(r.RemoteAddr)
	if !rc.trusted(addr) {
		return addr
	}
	hops := strings.Split(strings.Join(r.Header.Values(rc.opts.ProxyHeader), ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		hop := parseAddr(strings.TrimSpace(hops[i]))
		if !hop.IsValid() {
			break
		}
		addr = hop
		if !rc.trusted(addr) {
			break
		}
	}
	return addr
}

func (rc *Receiver) trusted(addr netip.Addr) bool {
	for _, p := range rc.opts.TrustedProxies {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// parseAddr reads "address" or "address:port"; the zero Addr is neither.
func parseAddr(s string) netip.Addr {
	if a, err := netip.ParseAddrPort(s); err == nil {
		return a.Addr().Unmap().WithZone("")
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}
