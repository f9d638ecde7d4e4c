package processor

import (
	"sync"
	"time"
)

// circuits keeps workers away from endpoints that only time out. After a number of time-outs in a row an endpoint's
// circuit is open: nobody calls it for a while, then one probe at a time does. Any answer closes it, a refusal as well
// as a success: an endpoint that says no costs no worker its deadline.
type circuits struct {
	after   int
	openFor time.Duration
	elapsed func() time.Duration

	mu sync.Mutex
	m  map[string]*circuit // endpoints whose last call timed out
}

type circuit struct {
	timeouts int           // in a row
	until    time.Duration // no probe before
	probe    *pass
}

// pass is the permission to call an endpoint. It must be given back by leave.
type pass struct {
	endpoint string
	circuit  *circuit // set: this is the probe of an open circuit
}

func newCircuits(after int, openFor time.Duration, elapsed func() time.Duration) *circuits {
	return &circuits{after: after, openFor: openFor, elapsed: elapsed, m: map[string]*circuit{}}
}

// enter asks for permission to call endpoint; nil means no.
func (c *circuits) enter(endpoint string) *pass {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &pass{endpoint: endpoint}
	k := c.m[endpoint]
	if k == nil || k.timeouts < c.after {
		return p
	}
	if k.probe != nil || c.elapsed() < k.until {
		return nil
	}
	k.probe, p.circuit = p, k
	return p
}

// leave ends a pass, whether or not it was used.
func (c *circuits) leave(p *pass) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.circuit != nil && p.circuit.probe == p {
		p.circuit.probe = nil
	}
}

// report records how a call to endpoint ended, and reports whether that opened or closed its circuit.
func (c *circuits) report(endpoint string, timedOut bool) (opened, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.m[endpoint]
	if !timedOut {
		delete(c.m, endpoint)
		return false, k != nil && k.timeouts >= c.after
	}
	if k == nil {
		k = &circuit{}
		c.m[endpoint] = k
	}
	k.timeouts++
	if k.timeouts >= c.after {
		k.until = c.elapsed() + c.openFor
	}
	return k.timeouts == c.after, false
}

// closed reports whether calls to endpoint may go on without asking again.
func (c *circuits) closed(endpoint string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.m[endpoint]
	return k == nil || k.timeouts < c.after
}

// open is the number of endpoints whose circuit is open.
func (c *circuits) open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, k := range c.m {
		if k.timeouts >= c.after {
			n++
		}
	}
	return n
}
