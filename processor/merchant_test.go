package processor_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/paidonce/paidonce/order"
)

// shop is a merchant that keeps the contract of [processor.Fulfiller], and is as unreliable as real ones. It watches
// whether we keep ours.
type shop struct {
	slowest  time.Duration // calls take up to this
	deadline time.Duration // their callers wait this long; calls without an answer end a quarter later, if the caller stays
	failing  float64       // of calls: 500, of which a quarter did what was asked
	hanging  float64       // of calls: no answer, of which half did what was asked

	mu     sync.Mutex
	orders map[string]*shopOrder
	calls  int
	again  int // calls under a key that had been done
	late   int // calls with a version below the newest

	overlaps []string // orders that were called twice at once
}

type shopOrder struct {
	state   order.Told
	newest  int
	done    map[string]bool // keys
	fulfils int
	live    map[*shopCall]time.Time // the calls that are being answered, and when they came
}

type shopCall struct {
	Data struct {
		OrderID string       `json:"order_id"`
		Version int          `json:"version"`
		Effect  order.Effect `json:"effect"`
		After   order.Told   `json:"after"`
	} `json:"data"`
}

func newShop(slowest, deadline time.Duration, failing, hanging float64) *shop {
	return &shop{slowest: slowest, deadline: deadline, failing: failing, hanging: hanging, orders: map[string]*shopOrder{}}
}

// ServeHTTP takes a callback.
func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var c shopCall
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	key := r.Header.Get("Idempotency-Key")
	o := s.begin(&c)
	dice := rand.Float64()
	fails, hangs := dice < s.failing, dice >= 1-s.hanging
	does := !fails && !hangs || rand.Float64() < map[bool]float64{true: .25, false: .5}[fails]
	select {
	case <-time.After(rand.N(s.slowest)):
	case <-r.Context().Done():
	}
	if does {
		s.do(o, c, key)
	}
	if hangs {
		select {
		case <-time.After(s.deadline*5/4 - s.slowest):
		case <-r.Context().Done():
		}
	}
	s.mu.Lock()
	delete(o.live, &c)
	s.mu.Unlock()
	if fails || hangs {
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// begin notes a call and whether another one of its order is being answered. One that is as old as its caller's deadline
// is not: the caller has hung up, and only the server has yet to notice. Such a call is told from the others by nine
// tenths of the deadline, since its caller began to wait before it was here; no call with an answer is nearly as long.
func (s *shop) begin(c *shopCall) *shopOrder {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	o := s.order(c.Data.OrderID)
	now := time.Now()
	for _, came := range o.live {
		if now.Sub(came) < s.deadline*9/10 {
			s.overlaps = append(s.overlaps, c.Data.OrderID)
		}
	}
	o.live[c] = now
	return o
}

func (s *shop) order(id string) *shopOrder {
	o := s.orders[id]
	if o == nil {
		o = &shopOrder{state: order.ToldNothing, done: map[string]bool{}, live: map[*shopCall]time.Time{}}
		s.orders[id] = o
	}
	return o
}

// do is the contract: a key once, no version below the newest, and the four effects.
func (s *shop) do(o *shopOrder, c shopCall, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.done[key] {
		s.again++
		return
	}
	o.done[key] = true
	if c.Data.Version < o.newest {
		s.late++
		return
	}
	o.newest = c.Data.Version
	switch c.Data.Effect {
	case order.EffectFulfil:
		o.state = order.ToldFulfilled
		o.fulfils++
	case order.EffectHold:
		if o.state == order.ToldNothing {
			o.state = order.ToldHeld
		}
	case order.EffectRevoke:
		if o.state == order.ToldFulfilled {
			o.state = order.ToldRevoked
		}
	case order.EffectRelease:
		switch {
		case c.Data.After != order.ToldHeld:
			o.state = order.ToldFulfilled
		case o.state == order.ToldHeld:
			o.state = order.ToldNothing
		}
	}
}

// owns reports whether what the merchant did is what told says. What it never delivered and what it took back are the
// same goods: a revoke of nothing is a no-op.
func (o *shopOrder) owns(told order.Told) bool {
	goods := func(t order.Told) order.Told {
		if t == order.ToldRevoked {
			return order.ToldNothing
		}
		return t
	}
	return goods(o.state) == goods(told)
}
