// Package scenario plays stories of payments against a running program: signed
// webhooks over real HTTP, a recording merchant at the other end, and what must
// be true when all is quiet.
//
// A scenario is one YAML file; docs/scenarios.md describes it. Files are read
// strictly: an unknown key, an unknown word or a scenario that expects nothing
// is an error that names the file and the line.
//
// Every scenario has an account of its own, named after it, with sources and
// secrets that are made up when it is prepared. Any number of them share one
// program and one database:
//
//	scs, err := scenario.Load("testdata/scenarios")
//	set, err := scenario.Prepare(scs)    // starts the recording merchant
//	// start the program with set.Accounts() in its configuration
//	summary, err := set.Run(ctx, scenario.Target{URL: url, Pool: pool}, nil)
package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// Scenario is one file.
type Scenario struct {
	Name    string            `yaml:"name"`    // as the file is called; part of ids, so [a-z0-9-] only
	Shows   string            `yaml:"shows"`   // one sentence: what this scenario is there for
	Sources map[string]Source `yaml:"sources"` // changes to the default sources, or further ones
	Orders  []Order           `yaml:"orders"`  // registered before the first step
	Steps   []Step            `yaml:"steps"`
	Expect  Expect            `yaml:"expect"`

	dir string // where its payload files are
}

// Source is a webhook endpoint of the scenario. Secrets are given by names that
// are made up (new, old): the values are generated.
type Source struct {
	Gateway        string   `yaml:"gateway"`          // default: the source's name
	Mode           string   `yaml:"mode"`             // default: live
	Secrets        []string `yaml:"secrets"`          // names; default: [main]
	Capture        string   `yaml:"capture"`          // adyen: automatic or manual
	Account        string   `yaml:"account"`          // stripe: a connected account
	OnUnknownOrder string   `yaml:"on_unknown_order"` // stub, ignore or create
	Reference      string   `yaml:"reference"`        // JSON pointer to the merchant's reference
	NoBasic        bool     `yaml:"no_basic"`         // adyen: without credentials of the sender
	AccessToken    bool     `yaml:"access_token"`     // stripe: with one, so that thin events are asked about
}

// Order is one that the merchant registers by POST /v1/orders.
type Order struct {
	Ref      string `yaml:"ref"`
	Amount   int64  `yaml:"amount"`   // minor units
	Currency string `yaml:"currency"` // default: EUR
	Status   int    `yaml:"status"`   // expected answer; default: 201
}

// Recurrence is what makes an order per period, by POST /v1/recurrences. All of
// its periods have begun already, so that they are made at once, on whatever day
// the scenario is played.
type Recurrence struct {
	Ref       string `yaml:"ref"`
	Amount    int64  `yaml:"amount"`     // minor units
	Currency  string `yaml:"currency"`   // default: EUR
	Interval  string `yaml:"interval"`   // day, week, month, quarter or year
	Every     int    `yaml:"every"`      // default: 1
	StartsOn  string `yaml:"starts_on"`  // a day, in UTC
	EndsAfter int    `yaml:"ends_after"` // how many periods there are
	Status    int    `yaml:"status"`     // expected answer; default: 201
}

// Step is one thing that happens. Exactly one of its fields is set, with
// Parallel and Shuffle beside Deliver.
type Step struct {
	Deliver  []Delivery `yaml:"deliver"`
	Parallel bool       `yaml:"parallel"` // all deliveries at once, from one starting shot
	Shuffle  *uint64    `yaml:"shuffle"`  // a seed: in a random order

	Register *Order      `yaml:"register"`
	Recur    *Recurrence `yaml:"recur"`
	Merchant string      `yaml:"merchant"` // ok, error, hang or gone: how callbacks are answered from now on
	Wait     string      `yaml:"wait"`     // quiet: nothing is owed; called: the merchant got a callback since the last step
	Worker   string      `yaml:"worker"`   // kill or start: SIGKILL of the processes that call merchants
	Check    *Expect     `yaml:"check"`    // must hold now
}

// Delivery is one signed HTTP request of a gateway.
type Delivery struct {
	Source string `yaml:"source"` // default: stripe

	Item    `yaml:",inline"`
	Batch   []Item `yaml:"batch"`   // adyen: several items in one notification, instead of an own one
	Payload string `yaml:"payload"` // a file beside the scenario, instead of a generated body
	Body    string `yaml:"body"`    // the text itself, instead of a generated body

	Copies    int           `yaml:"copies"`     // default: 1
	Delay     time.Duration `yaml:"delay"`      // waits so long before
	Secret    string        `yaml:"secret"`     // name; default: the source's first. stranger: one that is not configured
	SignedAgo time.Duration `yaml:"signed_ago"` // the signature's age
	Unsigned  bool          `yaml:"unsigned"`

	// Tamper overwrites values after signing, by path like Set.
	Tamper map[string]string `yaml:"tamper"`

	// Of gateways that are asked (gateway.Fetch). Answer is the type in whose
	// state the API shows the object from then on; default: Type, where all is
	// asked. PingOnly announces the object although nothing has changed. API makes
	// the next calls about the object fail.
	Answer   string `yaml:"answer"`
	PingOnly bool   `yaml:"ping_only"`
	API      *API   `yaml:"api"`

	Status int `yaml:"status"` // expected answer of every copy; default: 200
}

// API is how a gateway's API fails.
type API struct {
	Status     int           `yaml:"status"`      // default: 503, or 200 with an answer
	RetryAfter time.Duration `yaml:"retry_after"` // sent along, whole seconds
	Location   string        `yaml:"location"`    // sent along: a redirect
	Answer     string        `yaml:"answer"`      // garbage, oversize or hang
	Times      int           `yaml:"times"`       // default: 1
}

// Item is what an event says.
type Item struct {
	Type     string            `yaml:"type"`
	ID       string            `yaml:"id"` // default: generated, another one for every delivery
	Order    string            `yaml:"order"`
	Payment  string            `yaml:"payment"`
	Ref      string            `yaml:"ref"`      // id of the refund, capture or dispute
	Amount   *int64            `yaml:"amount"`   // minor units; default: that of the order
	Currency string            `yaml:"currency"` // default: that of the order
	At       time.Duration     `yaml:"at"`       // when it happened, after the scenario's beginning
	Mode     string            `yaml:"mode"`
	Set      map[string]string `yaml:"set"` // overwrites values before signing
}

// Expect is what must hold once all is quiet. What is not listed must not be
// there.
type Expect struct {
	Orders   map[string]OrderEnd `yaml:"orders"`
	Outcomes map[string]Count    `yaml:"outcomes"` // of events, with duplicate
	Statuses map[int]Count       `yaml:"statuses"` // HTTP codes of all deliveries
	Calls    map[string]Count    `yaml:"calls"`    // distinct keys that the merchant got, by effect
	Asked    map[string]Count    `yaml:"asked"`    // calls to the gateway's API, by source
}

// OrderEnd is how an order must stand.
type OrderEnd struct {
	State      string   `yaml:"state"`
	Flags      []string `yaml:"flags"` // exactly these
	Captured   *int64   `yaml:"captured"`
	Refunded   *int64   `yaml:"refunded"`
	Told       string   `yaml:"told"`
	Version    int      `yaml:"version"`     // exactly
	VersionMax int      `yaml:"version_max"` // at most
	Effects    []string `yaml:"effects"`     // what the merchant did for it, in order, each key once
	Goods      string   `yaml:"goods"`       // where that left the merchant: held, delivered or returned
	Dead       bool     `yaml:"dead"`        // its effect was given up
	Absent     bool     `yaml:"absent"`      // there is no such order
}

// Load reads the *.yaml files of a folder, or one file, sorted by name. The
// error joins what is wrong with any of them.
func Load(path string) ([]Scenario, error) {
	paths := []string{path}
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.IsDir() {
		if paths, err = filepath.Glob(filepath.Join(path, "*.yaml")); err != nil {
			return nil, err
		}
		if len(paths) == 0 {
			return nil, fmt.Errorf("no *.yaml in %s", path)
		}
	}
	slices.Sort(paths)
	var (
		all  []Scenario
		errs []error
	)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		s, err := Parse(path, data)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, s)
	}
	return all, errors.Join(errs...)
}

// Parse reads one scenario; path says where its payload files are, and what it
// must be called.
func Parse(path string, data []byte) (Scenario, error) {
	var s Scenario
	dec := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict())
	if err := dec.Decode(&s); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the file is empty")
		}
		return s, fmt.Errorf("%s: %s", path, strings.TrimSpace(yaml.FormatError(err, false, false)))
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return s, fmt.Errorf("%s: holds more than one document", path)
	}
	s.dir = filepath.Dir(path)
	problems := check(&s, strings.TrimSuffix(filepath.Base(path), ".yaml"))
	if len(problems) == 0 {
		return s, nil
	}
	lines, err := newLines(data)
	if err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	errs := make([]error, len(problems))
	for i, p := range problems {
		errs[i] = fmt.Errorf("%s:%d: %s: %s", path, lines.of(p.path), p.path, p.text)
	}
	return s, errors.Join(errs...)
}
