package app

import (
	"cmp"
	"encoding/hex"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/processor"
	"github.com/paidonce/paidonce/store"
)

// live is the part of the configuration that a reload replaces: accounts with
// their sources, secrets, API keys and callbacks. A reader sees the old one or
// the new one, never a mixture.
type live struct {
	current atomic.Pointer[snapshot]
}

type snapshot struct {
	config  *config.Config
	sources map[string]gateway.Source
	keys    []api.Key
	named   map[string][]api.Source // by account, sorted by id
}

func newLive(cfg *config.Config) *live {
	l := &live{}
	l.set(cfg)
	return l
}

func (l *live) set(cfg *config.Config) {
	s := &snapshot{config: cfg, sources: cfg.Sources(), named: map[string][]api.Source{}}
	for _, id := range slices.Sorted(maps.Keys(s.sources)) {
		source := s.sources[id]
		if g, ok := gateway.Lookup(source.Gateway); ok {
			s.named[source.Account] = append(s.named[source.Account], api.NewSource(g, source))
		}
	}
	for _, name := range cfg.AccountNames() {
		for _, k := range cfg.Accounts[name].APIKeys {
			key := api.Key{
				Account: name,
				Name:    k.Name,
				Read:    slices.Contains(k.Roles, config.RoleRead),
				Write:   slices.Contains(k.Roles, config.RoleWrite),
				Operate: slices.Contains(k.Roles, config.RoleOperate),
			}
			if n, err := hex.Decode(key.SHA256[:], []byte(k.SHA256)); err != nil || n != len(key.SHA256) {
				continue // the configuration was checked; a key that is not one opens nothing
			}
			s.keys = append(s.keys, key)
		}
	}
	l.current.Store(s)
}

func (l *live) config() *config.Config { return l.current.Load().config }

func (l *live) source(id string) (gateway.Source, bool) {
	s, ok := l.current.Load().sources[id]
	return s, ok
}

// sources are all that are configured, by id.
func (l *live) sources() []gateway.Source {
	all := l.current.Load().sources
	sorted := make([]gateway.Source, 0, len(all))
	for _, id := range slices.Sorted(maps.Keys(all)) {
		sorted = append(sorted, all[id])
	}
	return sorted
}

func (l *live) keys() []api.Key { return l.current.Load().keys }

// sourceKeys are the configured sources of all accounts.
func (l *live) sourceKeys() (keys []store.SourceKey) {
	for id, s := range l.current.Load().sources {
		keys = append(keys, store.SourceKey{Account: s.Account, ID: id})
	}
	return keys
}

// accountSources are the sources of an account, with the name space that their webhooks' payments have, and what makes their calls.
func (l *live) accountSources(account string) []api.Source { return l.current.Load().named[account] }

// policy is how an account's requests are protected by the Idempotency-Key header.
func (l *live) policy(account string) idempotency.Policy {
	set := l.config().Accounts[account].Idempotency
	p := idempotency.Strict()
	if set.Profile == config.ProfileRelaxed {
		p = idempotency.Relaxed()
	}
	p.Require = set.Require
	return p
}

// timeZone is where an account's recurrences begin.
func (l *live) timeZone(account string) string {
	return cmp.Or(l.config().Accounts[account].TimeZone, "UTC")
}

// target is where an account's effects are called out to.
func (l *live) target(account string) (processor.Target, bool) {
	cb := l.config().Accounts[account].Callback
	if cb.URL == "" {
		return processor.Target{}, false
	}
	t := processor.Target{URL: cb.URL, Secrets: []string{string(cb.Secret)}, AllowPrivate: cb.AllowPrivate, Timeout: cb.Timeout}
	if cb.OldSecret != "" {
		t.Secrets = append(t.Secrets, string(cb.OldSecret))
	}
	return t, true
}
