package scenario

import (
	"cmp"
	"fmt"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/gatewaysim"
)

// change is what a delivery's gateway knows by the time it sends it.
type change struct {
	n      int // of the delivery
	source gateway.Source
	object gateway.Object
	body   []byte            // what the API answers from then on; nil: what it did before
	fault  *gatewaysim.Fault // of the next calls
}

// state names what an API knows.
type state struct {
	source string
	object gateway.Object
}

// answerType is the type in whose state the API shows the object of a delivery;
// "" if the delivery is about none.
func (d *Delivery) answerType(g *gateway.Gateway) string {
	switch {
	case !g.Announces():
		return ""
	case g.Fetch.Always:
		return cmp.Or(d.Answer, d.Type)
	default:
		return d.Answer
	}
}

// change makes what the API says after delivery n.
func (p *play) change(g *gateway.Gateway, name string, d *Delivery, id string, n int) (*change, error) {
	typ := d.answerType(g)
	if typ == "" {
		return nil, nil
	}
	// As the program has it: the call must carry the same credentials.
	source := p.actor.account.Sources[p.scenario.Name+"."+name]
	item := d.Item
	item.Type = typ
	object, body, err := g.Fetch.Sample(p.sample(source, &item, id))
	if err != nil {
		return nil, err
	}
	c := &change{n: n, source: source, object: object}
	if !d.PingOnly {
		c.body = body
	}
	if a := d.API; a != nil {
		c.fault = &gatewaysim.Fault{
			Status: a.Status, RetryAfter: a.RetryAfter, Location: a.Location, Answer: a.Answer, Times: max(1, a.Times),
		}
	}
	return c, nil
}

// make makes a change happen. What the API says never goes back to an earlier
// delivery's: deliveries may arrive in another order, the gateway's own state
// does not.
func (p *play) make(c *change) error {
	if c == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.fault != nil {
		p.sim.Fail(c.source.ID, c.object, c.fault)
	}
	at := state{c.source.ID, c.object}
	if c.body == nil || p.states[at] > c.n {
		return nil
	}
	p.states[at] = c.n
	if err := p.sim.Set(c.source, c.object, c.body); err != nil {
		return fmt.Errorf("the gateway's API: %w", err)
	}
	return nil
}

// asked counts the calls that the program made to the APIs, by source.
func (p *play) asked() map[string]int {
	all := make(map[string]int)
	for name := range p.actor.sources {
		all[name] = p.sim.Calls(p.scenario.Name+"."+name, gateway.Object{})
	}
	return all
}
