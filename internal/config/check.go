package config

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/netaddr"
	"github.com/paidonce/paidonce/period"
)

// name is what accounts and sources may be called: they stand in URLs, rows
// and metrics.
var name = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,63}$`)

// headerName is what HTTP calls a token.
// https://www.rfc-editor.org/rfc/rfc9110#name-tokens
var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// OwnSource is the source of what the merchant says through our own API. No
// webhook endpoint can have this id.
const OwnSource = "api"

// checker collects problems.
type checker struct {
	origin   *origin
	hide     masker
	problems []error
}

func (k *checker) add(path, format string, args ...any) {
	if k.origin.unread(path) {
		return
	}
	k.problems = append(k.problems, newProblem(k.origin.of(path), path, k.hide.hide(fmt.Sprintf(format, args...))))
}

// Check returns everything that is wrong with the values, joined. Load has
// called it; it is exported for configurations that are made by hand.
func (c *Config) Check() error { return inOrder(c.check()) }

func (c *Config) check() []error {
	k := &checker{origin: c.origin, hide: c.masker()}
	c.checkProgram(k)
	seen := make(map[string]string)
	for _, account := range c.AccountNames() {
		path := join("accounts", account)
		if !name.MatchString(account) {
			k.add(path, "is not a name for an account; use 1 to 64 of a-z, 0-9, _, . and -, beginning with a letter or digit")
		}
		c.checkAccount(k, path, c.Accounts[account])
		for _, id := range slices.Sorted(maps.Keys(c.Accounts[account].Sources)) {
			at := path + ".sources." + id
			if other, taken := seen[id]; taken {
				k.add(at, "the id %s is taken by %s; ids of sources are unique over all accounts, because they stand in the URL", id, other)
			}
			seen[id] = at
			checkSource(k, at, id, c.Accounts[account].Sources[id])
		}
	}
	c.checkKeys(k)
	return k.problems
}

func (c *Config) checkProgram(k *checker) {
	checkDatabaseURL(k, "database_url", c.DatabaseURL)
	if c.DirectURL != c.DatabaseURL {
		checkDatabaseURL(k, "direct_url", c.DirectURL)
	}
	if c.Pool.PgBouncer && (c.DirectURL == "" || c.DirectURL == c.DatabaseURL) {
		k.add("pool.pgbouncer", "needs direct_url: migrations take a lock that PgBouncer would give to somebody else")
	}
	checkAddress(k, "listen", c.Listen, false)
	checkAddress(k, "admin_listen", c.AdminListen, true)
	checkAddress(k, "workers.admin_listen", c.Workers.AdminListen, true)
	for i, network := range c.TrustedProxies {
		if _, err := netip.ParsePrefix(network); err != nil {
			k.add(fmt.Sprintf("trusted_proxies[%d]", i), "must be a network such as 10.0.0.0/8 or 192.0.2.7/32")
		}
	}
	if !headerName.MatchString(c.TrustedProxyHeader) {
		k.add("trusted_proxy_header", "must be the name of a header, such as X-Forwarded-For")
	}
	var level slog.Level
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, c.Log.Level) || level.UnmarshalText([]byte(c.Log.Level)) != nil {
		k.add("log.level", "must be debug, info, warn or error, not %q", c.Log.Level)
	}
	if c.Log.Format != "json" && c.Log.Format != "text" {
		k.add("log.format", "must be json or text, not %q", c.Log.Format)
	}
	// A server needs a connection for every committer and some for reads and
	// for /readyz, a worker process one for each claim and some for River.
	checkInt(k, "pool.serve", c.Pool.Serve, 4, 1000)
	checkInt(k, "workers.count", c.Workers.Count, 1, 500)
	checkInt(k, "fetch.workers", c.Fetch.Workers, 1, 500)
	checkInt(k, "fetch.open", c.Fetch.Open, 1, 100_000)
	if c.Reconcile.Every != 0 {
		checkDuration(k, "reconcile.every", c.Reconcile.Every, time.Second, 24*time.Hour)
	}
	checkDuration(k, "reconcile.stuck_after", c.Reconcile.StuckAfter, time.Second, 30*24*time.Hour)
	checkInt(k, "pool.work", c.Pool.Work, min(c.Workers.Count, 500)+4, 1000)
	checkDuration(k, "pool.statement_timeout", c.Pool.StatementTimeout, time.Second, 10*time.Minute)
	checkDuration(k, "pool.lock_timeout", c.Pool.LockTimeout, 10*time.Millisecond, time.Minute)
	checkSize(k, "limits.max_body", c.Limits.MaxBody)
	checkSize(k, "limits.max_header", c.Limits.MaxHeader)
	checkDuration(k, "limits.header_timeout", c.Limits.HeaderTimeout, 100*time.Millisecond, 10*time.Minute)
	checkDuration(k, "limits.body_timeout", c.Limits.BodyTimeout, 100*time.Millisecond, 10*time.Minute)
	checkDuration(k, "limits.idle_timeout", c.Limits.IdleTimeout, time.Second, time.Hour)
	checkDuration(k, "limits.shutdown_timeout", c.Limits.ShutdownTimeout, time.Second, 10*time.Minute)
	checkInt(k, "limits.in_flight", c.Limits.InFlight, 1, 1_000_000)
	if m := c.Limits.BodyMemory; m < c.Limits.MaxBody || m > 64<<30 {
		k.add("limits.body_memory", "must be between limits.max_body and 64GiB, not %s", shortSize(m))
	}
	checkInt(k, "limits.refusals", c.Limits.Refusals, 1, 1_000_000)
	checkInt(k, "limits.refusals_per_minute", c.Limits.RefusalsPerMinute, 1, 1_000_000)
	checkInt(k, "limits.api_rate", c.Limits.APIRate, 1, 1_000_000)
	checkInt(k, "limits.api_burst", c.Limits.APIBurst, 1, 1_000_000)
	checkDuration(k, "retention.payloads", c.Retention.Payloads, 24*time.Hour, 36500*24*time.Hour)
}

func (c *Config) checkAccount(k *checker, path string, a Account) {
	for i, key := range a.APIKeys {
		at := fmt.Sprintf("%s.api_keys[%d]", path, i)
		if key.Name == "" {
			k.add(at, "has no name; give it one, it stands in logs in place of the key")
		}
		if sum, err := hex.DecodeString(key.SHA256); err != nil || len(sum) != 32 {
			k.add(at+".sha256", "must be the SHA-256 of the key as 64 hexadecimal digits, never the key: printf %%s KEY | sha256sum")
		}
		if len(key.Roles) == 0 {
			k.add(at, "has no roles; give it some of read, write and operate")
		}
		for _, role := range key.Roles {
			if role != RoleRead && role != RoleWrite && role != RoleOperate {
				k.add(at+".roles", "there is no role %q; roles are read, write and operate", role)
			}
		}
	}
	if zone := a.TimeZone; zone != "" {
		if _, err := period.LoadZone(zone); err != nil {
			k.add(path+".time_zone", "must be the IANA name of a time zone, such as Europe/Berlin, not %q", zone)
		}
	}
	if p := a.Idempotency.Profile; p != "" && p != ProfileStrict && p != ProfileRelaxed {
		k.add(path+".idempotency.profile", "must be strict or relaxed, not %q", p)
	}
	checkCallback(k, path+".callback", a.Callback)
}

func checkCallback(k *checker, path string, cb Callback) {
	checkDuration(k, path+".timeout", cb.Timeout, time.Second, MaxCallbackTimeout)
	if cb.URL == "" && cb.Secret == "" && cb.OldSecret == "" {
		return // what is owed waits
	}
	if cb.URL == "" {
		k.add(path, "has no url; write where the merchant is to be told, or leave the callback out")
	} else if u, err := url.Parse(cb.URL); err != nil || u.Hostname() == "" || (u.Scheme != "https" && u.Scheme != "http") {
		k.add(path+".url", "must be a URL such as https://shop.example/paidonce")
	} else {
		if u.Port() != "" && !isPort(u.Port(), 1) {
			k.add(path+".url", "must have a port between 1 and 65535, or none")
		}
		if !cb.AllowPrivate && isPrivateHost(u.Hostname()) {
			k.add(path+".url", "leads to an address that is not public; set allow_private: true if it is inside your own network")
		}
		if u.Scheme == "http" && !cb.AllowPrivate {
			k.add(path+".url", "must be https; set allow_private: true if it is inside your own network")
		}
		if u.User != nil || u.Fragment != "" {
			k.add(path+".url", "must not hold a user, a password or a fragment; the secret signs the call")
		}
	}
	if cb.Secret == "" {
		k.add(path, "has no secret; make one with: %s", makeSecret)
	} else if !wellCallbackSecret(cb.Secret) {
		k.add(path+".secret", "must be whsec_ and 24 to 64 bytes in base64; make one with: %s", makeSecret)
	}
	if cb.OldSecret != "" && !wellCallbackSecret(cb.OldSecret) {
		k.add(path+".old_secret", "must be whsec_ and 24 to 64 bytes in base64")
	}
}

// isPrivateHost reports whether a host is written as an address that is not public. What a name resolves to is seen when
// it is called.
func isPrivateHost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true // https://www.rfc-editor.org/rfc/rfc6761#section-6.3
	}
	a, err := netip.ParseAddr(host)
	return err == nil && !netaddr.Public(a)
}

func isPort(s string, low int) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= low && n <= 65535
}

const makeSecret = "echo whsec_$(openssl rand -base64 32)"

// wellCallbackSecret holds what Standard Webhooks asks of senders: base64 of 24
// to 64 bytes behind whsec_. (Of others' secrets package signature asks less.)
// https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
func wellCallbackSecret(secret Secret) bool {
	encoded, ok := strings.CutPrefix(string(secret), "whsec_")
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	return ok && err == nil && len(key) >= 24 && len(key) <= 64
}

func checkSource(k *checker, path, id string, s gateway.Source) {
	if !name.MatchString(id) {
		k.add(path, "is not an id for a source; use 1 to 64 of a-z, 0-9, _, . and -, beginning with a letter or digit")
	}
	if id == OwnSource {
		k.add(path, "the id %s is taken by the program's own API; choose another", OwnSource)
	}
	if s.Gateway == "" {
		k.add(path, "has no gateway; known: %s", strings.Join(gatewayNames(), ", "))
		return
	}
	g, ok := gateway.Lookup(s.Gateway)
	if !ok {
		k.add(path+".gateway", "there is no gateway %q; known: %s", s.Gateway, strings.Join(gatewayNames(), ", "))
		return
	}
	if err := g.Check(s); err != nil {
		for _, err := range split(err) {
			var option *gateway.OptionError
			if errors.As(err, &option) && option.Option != "" {
				k.add(join(path, option.Option), "%s", option.Text)
			} else {
				k.add(path, "%v", err)
			}
		}
	}
	if u, err := url.Parse(s.APIURL); err == nil && !s.APIAllowPrivate && isPrivateHost(u.Hostname()) {
		k.add(path+".api_url", "leads to an address that is not public; set api_allow_private: true if it is inside your own network")
	}
	if s.MaxBody > maxSize {
		k.add(path+".max_body", "must be a size up to 64MiB")
	}
}

// checkKeys refuses one key in two places: a request could not be told whose
// it is.
func (c *Config) checkKeys(k *checker) {
	seen := make(map[string]string)
	for _, account := range c.AccountNames() {
		for i, key := range c.Accounts[account].APIKeys {
			at := fmt.Sprintf("accounts.%s.api_keys[%d]", account, i)
			sum := strings.ToLower(key.SHA256)
			if other, taken := seen[sum]; taken && sum != "" {
				k.add(at, "is the same key as %s; give every account keys of its own", other)
			}
			seen[sum] = at
		}
	}
}

func gatewayNames() []string {
	var names []string
	for _, g := range gateway.All() {
		names = append(names, g.Name)
	}
	slices.Sort(names)
	return names
}

// split takes joined errors apart, one problem each.
func split(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

func checkDatabaseURL(k *checker, path, s string) {
	if s == "" {
		return // dev and the offline commands need none; who needs one asks NeedDatabase
	}
	if strings.Contains(s, "://") {
		u, err := url.Parse(s)
		if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
			k.add(path, "must be a URL such as postgres://user:password@host:5432/database")
			return
		}
	} else if !strings.Contains(s, "=") {
		k.add(path, "must be a URL such as postgres://user:password@host:5432/database")
		return
	}
	// What pgx says may quote a piece of the password, so only the name of a file that is missing is passed on.
	var file *fs.PathError
	if _, err := pgxpool.ParseConfig(s); errors.As(err, &file) {
		k.add(path, "names a file that cannot be read: %v", file)
	} else if err != nil {
		k.add(path, "cannot be used: its port, sslmode, or another of its parameters is not one that Postgres or the pool knows")
	}
}

// NeedDatabase returns the problem of a configuration without a database, for
// the commands that cannot do without.
func (c *Config) NeedDatabase() error {
	if c.DatabaseURL != "" {
		return nil
	}
	return &Problem{Where: c.File(), Path: "database_url", Text: "is not set; write it there or in " + Variable("database_url")}
}

func checkAddress(k *checker, path, s string, offAllowed bool) {
	if offAllowed && s == "off" {
		return
	}
	_, port, err := net.SplitHostPort(s)
	if err == nil && !isPort(port, 0) {
		_, err = new(net.Resolver).LookupPort(context.Background(), "tcp", port) // a name such as http; looks into a file
	}
	if err != nil || port == "" {
		k.add(path, "must be an address to listen on, such as :8080 or 127.0.0.1:9090")
	}
}

func checkInt(k *checker, path string, n, low, high int) {
	if n < low || n > high {
		k.add(path, "must be between %d and %d, not %d", low, high, n)
	}
}

func checkDuration(k *checker, path string, d, low, high time.Duration) {
	if d < low || d > high {
		k.add(path, "must be between %s and %s, not %s", shortDuration(low), shortDuration(high), shortDuration(d))
	}
}

// maxSize bounds what one request may take of memory.
const maxSize = 64 << 20

func checkSize(k *checker, path string, n int64) {
	if n < 1024 || n > maxSize {
		k.add(path, "must be between 1KiB and 64MiB, not %s", shortSize(n))
	}
}
