package bank

import (
	"time"
)

// entry is what is kept under an idempotency key.
type entry struct {
	print   string // of the call: method, endpoint and body
	path    string
	created time.Time
	busy    bool // it is under way
	asked   int  // how often it was asked for meanwhile
	finish  func()
	rep     *reply
	latest  func() reply // how what it did stands now, where the gateway tells that
}

// lookup finds what is kept under the key of a call; nil if nothing is, or no longer. While it is late the third question is the
// last that finds it under way.
func (a *account) lookup(c *call) *entry {
	e := a.keys[c.key]
	if e == nil {
		return nil
	}
	if !a.bank.now().Before(e.created.Add(a.api.keyLife)) && !e.busy {
		delete(a.keys, c.key)
		return nil
	}
	if e.finish != nil {
		if e.asked++; e.asked > 3 {
			e.finish()
		}
	}
	return e
}

// repeated answers a call whose key is known.
func (a *account) repeated(c *call, e *entry) reply {
	switch {
	case e.print != a.api.print(c.r):
		a.counts.Reused++
		return a.api.reused(c, e)
	case e.busy:
		a.counts.Conflicts++
		return a.api.busy(c)
	}
	a.counts.Replays++
	rep := *e.rep
	if e.latest != nil {
		rep = e.latest()
	}
	return a.api.replayed(c, rep)
}

// keep puts an answer under the key, or frees the key where the gateway does not keep such an answer. What was done is known, whatever
// was answered.
func (a *account) keep(c *call, rep reply) {
	if c.key == "" {
		return
	}
	e := a.keys[c.key]
	e.busy, e.finish = false, nil
	if !a.api.keeps(rep) && c.latest == nil {
		delete(a.keys, c.key)
		return
	}
	e.rep = &rep
	if a.api.fresh {
		e.latest = c.latest
	}
}
