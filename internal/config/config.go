// Package config reads the one file that says how a Paidonce runs:
// paidonce.yaml, or what --config names.
//
// What it guarantees:
//
//   - Every value can be set by an environment variable, [Variable] says which.
//   - A text value may be taken from the environment (${NAME}) or from a file
//     (file:path), so that no secret needs to stand in the YAML.
//   - All problems are reported at once, each with the place where it stands.
//     A key that is not known, a value of the wrong type, a gateway that does
//     not exist, a secret that cannot be one: each is a problem, and the
//     program does not start with any.
//   - No problem, and no way of printing a [Config], shows a secret.
//
// The rest of the program gets values from here and never reads the
// environment or the file itself.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/paidonce/paidonce/gateway"
)

// DefaultFile is the file that is read, from the working directory, when no
// other is named.
const DefaultFile = "paidonce.yaml"

// Config is everything that can be set. Load fills in the defaults, so a field
// is what the program uses. The tag env names a variable that differs from the
// usual mapping, help is the line of the reference (see [Reference]).
type Config struct {
	DatabaseURL string `yaml:"database_url" secret:"url" help:"Postgres 15 or newer, e.g. postgres://user:password@host/database. Needed by everything but dev and the offline commands"`
	DirectURL   string `yaml:"direct_url" secret:"url" help:"the same database without PgBouncer in between; used by migrate. Default: database_url"`
	Listen      string `yaml:"listen" help:"address of serve: /webhooks/{source} and /v1"`
	AdminListen string `yaml:"admin_listen" help:"address of serve for /healthz, /readyz and /metrics; keep it private. off: none"`

	// The header is believed of connections from TrustedProxies alone: anybody
	// else could write into it what they like.
	TrustedProxies     []string `yaml:"trusted_proxies" help:"networks of your own reverse proxies, e.g. 10.0.0.0/8. Default: none; the connection's address is the sender's"`
	TrustedProxyHeader string   `yaml:"trusted_proxy_header" help:"header in which they append the address they were called from"`

	Log       Log       `yaml:"log"`
	Pool      Pool      `yaml:"pool"`
	Limits    Limits    `yaml:"limits"`
	Workers   Workers   `yaml:"workers"`
	Fetch     Fetch     `yaml:"fetch"`
	Reconcile Reconcile `yaml:"reconcile"`
	Retention Retention `yaml:"retention"`

	// Accounts are the merchants, by name. A name stands in the rows of the
	// database and is never changed.
	Accounts map[string]Account `yaml:"accounts" help:"the merchants, by name"`

	origin *origin // where things stand in the file; nil for a Config made by hand
}

// Log says what is logged, to stderr.
type Log struct {
	Level  string `yaml:"level" help:"debug, info, warn or error"`
	Format string `yaml:"format" help:"json or text"`
}

// Pool sizes the connections to Postgres. A server process opens at most Serve,
// a worker process at most Work, plus one for migrate; Postgres must allow
// (instances of serve × Serve) + (instances of work × Work) + some for people.
type Pool struct {
	Serve            int           `yaml:"serve" help:"most connections of one serve process"`
	Work             int           `yaml:"work" help:"most connections of one work process. Default: workers.count + fetch.workers + 8"`
	StatementTimeout time.Duration `yaml:"statement_timeout" help:"longest time of one SQL statement"`
	LockTimeout      time.Duration `yaml:"lock_timeout" help:"longest wait for a lock of the database; tried again inside, then 503"`
	PgBouncer        bool          `yaml:"pgbouncer" help:"database_url goes through PgBouncer in transaction mode: no prepared statements, no LISTEN; set the timeouts with ALTER ROLE. Needs direct_url"`
}

// Limits bound what a sender can make the server do.
type Limits struct {
	MaxBody           int64         `yaml:"max_body" help:"largest body of a webhook, in bytes (or 512KiB, 1MiB); a source can set its own"`
	MaxHeader         int64         `yaml:"max_header" help:"largest head of a request, in bytes"`
	HeaderTimeout     time.Duration `yaml:"header_timeout" help:"time to send the head of a request"`
	BodyTimeout       time.Duration `yaml:"body_timeout" help:"time to send the body; beyond: 408"`
	IdleTimeout       time.Duration `yaml:"idle_timeout" help:"how long an idle connection is kept; longer than your load balancer keeps it"`
	InFlight          int           `yaml:"in_flight" help:"verified deliveries that may wait for their commit at once; beyond: 503"`
	BodyMemory        int64         `yaml:"body_memory" help:"bytes that the bodies of all deliveries may hold at once; beyond: 503"`
	Refusals          int           `yaml:"refusals" help:"bad signatures that one address may send before 401 becomes 429"`
	RefusalsPerMinute int           `yaml:"refusals_per_minute" help:"how many of them are forgiven in a minute"`
	APIRate           int           `yaml:"api_rate" help:"requests that an account may send to /v1 of one process in a second; beyond: 429"`
	APIBurst          int           `yaml:"api_burst" help:"how many of them may come at once"`
	ShutdownTimeout   time.Duration `yaml:"shutdown_timeout" help:"time for open requests and calls to finish after SIGTERM"`
}

// Workers sizes a process that tells merchants what to do.
type Workers struct {
	Count       int    `yaml:"count" help:"effects that one work process handles at once"`
	AdminListen string `yaml:"admin_listen" help:"address of work for /healthz, /readyz and /metrics. off: none"`
}

// Fetch bounds what is asked of gateways whose webhooks do not say it all.
type Fetch struct {
	Workers int `yaml:"workers" help:"objects that one work process asks gateways about at once"`
	Open    int `yaml:"open" help:"objects of one source that may wait to be asked about; of a gateway that signs nothing, what is announced beyond them is dropped and counted"`
}

// Reconcile says how what webhooks lost is looked for.
type Reconcile struct {
	Every      time.Duration `yaml:"every" help:"how often work asks each gateway what happened, to find what its webhooks lost; 0: never (paidonce reconcile does it by hand)"`
	StuckAfter time.Duration `yaml:"stuck_after" help:"how long after the last event of its payment the gateway is asked about an order that is not over; then less and less often"`
}

// Retention says how long rows are kept.
type Retention struct {
	Payloads time.Duration `yaml:"payloads" help:"how long raw bodies are kept (e.g. 90d). Those of events that are waiting, flagged, quarantined or ignored stay until that is resolved"`
}

// Account is one merchant.
type Account struct {
	APIKeys     []APIKey                  `yaml:"api_keys" help:"keys of the merchant's own API: a list of {name, sha256, roles}; sha256 is the hex digest of the key, roles are read, write and operate"`
	TimeZone    string                    `yaml:"time_zone" help:"IANA name of the time zone in which the periods of recurrences begin (Europe/Berlin); default UTC. A recurrence keeps the one that it was made with"`
	Idempotency Idempotency               `yaml:"idempotency"`
	Callback    Callback                  `yaml:"callback"`
	Sources     map[string]gateway.Source `yaml:"sources" help:"webhook endpoints by id: POST /webhooks/{id}. An id is unique over all accounts and never changes"`
}

// APIKey is one key of /v1. The key itself is never stored.
type APIKey struct {
	Name   string   `yaml:"name" json:"name" help:"for people and logs"`
	SHA256 string   `yaml:"sha256" json:"sha256" help:"SHA-256 of the key, in hex: paidonce keys new, or printf %s KEY | sha256sum"`
	Roles  []string `yaml:"roles" json:"roles" help:"what it may do: read, write, operate; none implies another"`
}

// Idempotency is how an account's requests to /v1 are repeated.
type Idempotency struct {
	Profile string `yaml:"profile" help:"strict (default): keys last 48 h, refusals are remembered too; relaxed: 24 h, successes alone"`
	Require bool   `yaml:"require" help:"true: POST and PATCH are refused without an Idempotency-Key"`
}

// Callback is where a merchant is told to fulfil, hold, release or revoke. An
// account without one owes its effects until it has one.
type Callback struct {
	URL          string        `yaml:"url" help:"gets a signed POST for every effect"`
	Secret       Secret        `yaml:"secret" secret:"all" help:"signs it (Standard Webhooks): whsec_ and 24 to 64 bytes in base64"`
	OldSecret    Secret        `yaml:"old_secret" secret:"all" help:"signs it too, while the merchant changes over to secret"`
	AllowPrivate bool          `yaml:"allow_private" help:"allow http, and loopback and private addresses"`
	Timeout      time.Duration `yaml:"timeout" help:"time for the merchant to answer, at most 10s"`
}

// Roles that an API key can have. None implies another.
const (
	RoleRead    = "read"    // look, save at the bytes that gateways sent
	RoleWrite   = "write"   // what a shop does: orders and their amounts
	RoleOperate = "operate" // what a person decides: link, dismiss, replay, retry; and see the bytes
)

// Profiles of idempotency.
const (
	ProfileStrict  = "strict"
	ProfileRelaxed = "relaxed"
)

// MaxCallbackTimeout is the longest a callback may take: half of the time for
// which a worker claims an effect, so that a claim never ends during a call.
const MaxCallbackTimeout = 10 * time.Second

// Defaults returns a Config in which everything that has a default has it.
func Defaults() *Config {
	return &Config{
		Listen:      ":8080",
		AdminListen: "127.0.0.1:9090",

		TrustedProxyHeader: "X-Forwarded-For",

		Log: Log{Level: "info", Format: "json"},
		Pool: Pool{
			Serve:            16,
			StatementTimeout: 30 * time.Second,
			LockTimeout:      time.Second,
		},
		Limits: Limits{
			MaxBody:           1 << 20,
			MaxHeader:         32 << 10,
			HeaderTimeout:     5 * time.Second,
			BodyTimeout:       10 * time.Second,
			IdleTimeout:       2 * time.Minute,
			InFlight:          1024,
			BodyMemory:        64 << 20,
			Refusals:          100,
			RefusalsPerMinute: 60,
			APIRate:           100,
			APIBurst:          200,
			ShutdownTimeout:   20 * time.Second,
		},
		Workers:   Workers{Count: 16, AdminListen: "127.0.0.1:9091"},
		Fetch:     Fetch{Workers: 8, Open: 1000},
		Reconcile: Reconcile{Every: 5 * time.Minute, StuckAfter: time.Hour},
		Retention: Retention{Payloads: 90 * 24 * time.Hour},
	}
}

// Load reads the file at path and the environment. With an empty path it reads
// DefaultFile if there is one, and the environment alone otherwise. The error
// joins all problems, each one line that starts with its place; see [Problem].
//
// names are the names of all variables that there are. One that begins with
// PAIDONCE_ and sets nothing is a problem; without names, none is looked for.
func Load(path string, getenv func(string) string, names ...string) (*Config, error) {
	name := path
	if name == "" {
		name = DefaultFile
	}
	data, err := os.ReadFile(name)
	switch {
	case err == nil:
		return Parse(name, data, getenv, names...)
	case path == "" && errors.Is(err, fs.ErrNotExist):
		return Parse("", nil, getenv, names...)
	default:
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
}

// Parse is Load for a file that has been read: name stands in problems, and
// its folder is where file:relative/path starts.
func Parse(name string, data []byte, getenv func(string) string, names ...string) (*Config, error) {
	c := Defaults()
	d := newDecoder(name, getenv)
	c.origin = &d.origin
	if root, ok := d.parse(data); ok {
		d.config(c, root)
		d.strangers(names)
	}
	c.derive()
	if err := inOrder(append(d.problems, c.check()...)); err != nil {
		return nil, err
	}
	return c, nil
}

// derive fills in what follows from other values.
func (c *Config) derive() {
	if c.Pool.Work == 0 {
		c.Pool.Work = c.Workers.Count + c.Fetch.Workers + 8
	}
	if c.DirectURL == "" {
		c.DirectURL = c.DatabaseURL
	}
	for name, account := range c.Accounts {
		if account.TimeZone == "" {
			account.TimeZone = "UTC"
		}
		if account.Idempotency.Profile == "" {
			account.Idempotency.Profile = ProfileStrict
		}
		if account.Callback.Timeout == 0 {
			account.Callback.Timeout = MaxCallbackTimeout
		}
		for id, source := range account.Sources {
			source.Account, source.ID = name, id
			if source.MaxBody == 0 {
				source.MaxBody = c.Limits.MaxBody
			}
			account.Sources[id] = source
		}
		c.Accounts[name] = account
	}
}

// File returns the name of the file that was read, empty if there was none.
func (c *Config) File() string {
	if c.origin == nil {
		return ""
	}
	return c.origin.file
}

// Sources returns the sources of all accounts, by id, with their Account and
// ID set.
func (c *Config) Sources() map[string]gateway.Source {
	all := make(map[string]gateway.Source)
	for _, account := range c.Accounts {
		maps.Copy(all, account.Sources)
	}
	return all
}

// AccountNames returns the names of the accounts, sorted.
func (c *Config) AccountNames() []string {
	return slices.Sorted(maps.Keys(c.Accounts))
}
