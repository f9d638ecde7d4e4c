package egress

import (
	"sync"
	"time"
)

// Circuits keep callers away from endpoints that only fail. After a number of
// failures in a row an endpoint's circuit is open: nobody calls it for a while,
// then one probe at a time does. What is a failure the caller says; anything else
// closes the circuit. Safe for concurrent use.
type Circuits struct {
	after   int
	openFor time.Duration
	elapsed func() time.Duration

	mu sync.Mutex
	m  map[string]*circuit // endpoints whose last call failed
}

type circuit struct {
	failures int           // in a row
	until    time.Duration // no probe before
	probe    *Pass
}

// Pass is the permission to call an endpoint. It must be given back by Leave.
type Pass struct {
	endpoint string
	circuit  *circuit // set: this is the probe of an open circuit
}

// NewCircuits returns Circuits that open after so many failures in a row, for so
// long by the clock elapsed, which only runs forward.
func NewCircuits(after int, openFor time.Duration, elapsed func() time.Duration) *Circuits {
	return &Circuits{after: after, openFor: openFor, elapsed: elapsed, m: map[string]*circuit{}}
}

// Enter asks for permission to call endpoint; nil means no.
func (c *Circuits) Enter(endpoint string) *Pass {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &Pass{endpoint: endpoint}
	k := c.m[endpoint]
	if k == nil || k.failures < c.after {
		return p
	}
	if k.probe != nil || c.elapsed() < k.until {
		return nil
	}
	k.probe, p.circuit = p, k
	return p
}

// Leave ends a pass, whether or not it was used.
func (c *Circuits) Leave(p *Pass) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.circuit != nil && p.circuit.probe == p {
		p.circuit.probe = nil
	}
}

// Report records how a call to endpoint ended, and reports whether that opened or
// closed its circuit.
func (c *Circuits) Report(endpoint string, failed bool) (opened, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.m[endpoint]
	if !failed {
		delete(c.m, endpoint)
		return false, k != nil && k.failures >= c.after
	}
	if k == nil {
		k = &circuit{}
		c.m[endpoint] = k
	}
	k.failures++
	if k.failures >= c.after {
		k.until = c.elapsed() + c.openFor
	}
	return k.failures == c.after, false
}

// Closed reports whether calls to endpoint may go on without asking again.
func (c *Circuits) Closed(endpoint string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.m[endpoint]
	return k == nil || k.failures < c.after
}

// Wait is how long endpoint's circuit admits nobody yet; 0 if it is closed, or a
// probe is due or on its way.
func (c *Circuits) Wait(endpoint string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.m[endpoint]; k != nil && k.failures >= c.after {
		return max(0, k.until-c.elapsed())
	}
	return 0
}

// Open is the number of endpoints whose circuit is open.
func (c *Circuits) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, k := range c.m {
		if k.failures >= c.after {
			n++
		}
	}
	return n
}
