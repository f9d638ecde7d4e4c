package outbound

import (
	"container/list"
	"sync"
	"time"
)

// found is what was found when a key was looked for: a key, or why there is none.
type found struct {
	key string
	err error

	// The key is valid from and until; without one, err is believed until.
	from, until time.Time

	// fresh is until when, by the clock that only runs forward, it is not looked
	// for again. A finder says how long from now.
	fresh time.Duration
}

func (f found) goodAt(now time.Time) bool { return !now.Before(f.from) && now.Before(f.until) }

func (f found) badAt(now time.Time, at time.Duration) bool {
	return now.Before(f.until) && at < f.fresh
}

// keyCache keeps the entries that were used last.
type keyCache struct {
	size int

	mu    sync.Mutex
	m     map[string]*list.Element
	order *list.List // of *keyEntry, the one used last in front
}

type keyEntry struct {
	name string
	found
}

func newKeyCache(size int) *keyCache {
	return &keyCache{size: size, m: map[string]*list.Element{}, order: list.New()}
}

func (c *keyCache) get(name string) (found, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.m[name]
	if !ok {
		return found{}, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*keyEntry).found, true
}

func (c *keyCache) put(name string, f found) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.m[name]; ok {
		e.Value.(*keyEntry).found = f
		c.order.MoveToFront(e)
		return
	}
	c.m[name] = c.order.PushFront(&keyEntry{name, f})
	if c.order.Len() > c.size {
		last := c.order.Back()
		c.order.Remove(last)
		delete(c.m, last.Value.(*keyEntry).name)
	}
}

func (c *keyCache) drop(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.m[name]; ok {
		c.order.Remove(e)
		delete(c.m, name)
	}
}
