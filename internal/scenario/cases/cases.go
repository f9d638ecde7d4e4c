// Package cases reads and plays failure cases: JSON files that say what to set
// up, what to send to the program, and what must hold afterwards. The format
// stands in testdata/cases/FORMAT.md; this package is its meaning.
//
// [Parse] refuses a file with a key, a word or a type that the format does not
// define, so that a misspelt assertion can never pass by not being looked at.
// [Run] plays a case on a [Stage]: an empty database, the program, a recording
// merchant and a recording network. It says what did not hold as one error, or
// returns a [*SkipError] for the one reason the format allows.
//
// The package never reaches into the program: faults are triggers of the
// database and signals to processes.
package cases

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Case is one file.
type Case struct {
	ID       string `json:"id" case:"needed"`
	Title    string `json:"title" case:"needed"`
	Source   string `json:"source" case:"needed"`
	Provider string `json:"provider" case:"needed"`
	Theme    string `json:"theme" case:"needed"`
	Evidence string `json:"evidence" case:"needed"`

	// Now is where the program's clock stands, in seconds since the Unix epoch.
	Now int64 `json:"now" case:"needed"`

	// Secret is what the sender signs with. It is for people.
	Secret json.RawMessage `json:"secret"`

	Setup    Setup     `json:"setup" case:"needed"`
	Requests []Request `json:"requests" case:"needed"`

	// Steps is nil if every request is sent once, in order.
	Steps []Step `json:"steps"`

	// Rounds is how often the whole case is played. Default 1.
	Rounds *int `json:"rounds"`

	Expect        Expect `json:"expect" case:"needed"`
	Assert        Assert `json:"assert" case:"needed"`
	NoteUnchecked string `json:"note_unchecked"`
}

// Setup is what stands before the first step.
type Setup struct {
	Startup string `json:"startup"` // ok (default) or refused

	// Sources is kept as it stands: its keys are the option names of the
	// program's own configuration. See [Source].
	Sources map[string]json.RawMessage `json:"sources" case:"needed"`

	Orders      []Order  `json:"orders" case:"needed"`
	GatewayHTTP []Answer `json:"gateway_http"`

	sources map[string]Source
}

// Refused reports whether the program must not start with this set-up.
func (s Setup) Refused() bool { return s.Startup == "refused" }

// Source holds every option that the format defines for a webhook endpoint.
type Source struct {
	Gateway          string     `json:"gateway" case:"needed"`
	Mode             string     `json:"mode"`
	Secrets          []string   `json:"secrets"`
	HMACKeys         []string   `json:"hmac_keys"`
	Basic            string     `json:"basic"`
	MerchantAccounts []string   `json:"merchant_accounts"`
	Capture          string     `json:"capture"`
	Account          string     `json:"account"`
	WebhookID        string     `json:"webhook_id"`
	RootPEM          string     `json:"root_pem"`
	PublicURL        string     `json:"public_url"`
	AccessToken      string     `json:"access_token"`
	Shop             string     `json:"shop"`
	Map              *SourceMap `json:"map"`
	OnUnknownOrder   string     `json:"on_unknown_order"`
	Reference        string     `json:"reference"`
}

// SourceMap maps the bodies of a source of the gateway standard.
type SourceMap struct {
	Type      string            `json:"type"`
	Payment   string            `json:"payment"`
	Reference string            `json:"reference"`
	Amount    string            `json:"amount"`
	Currency  string            `json:"currency"`
	Facts     map[string]string `json:"facts"`
}

// secrets returns what of a source must never be in a log.
func (s Source) secrets() []string {
	all := slices.Concat(s.Secrets, s.HMACKeys)
	for _, one := range []string{s.Basic, s.AccessToken} {
		if one != "" {
			all = append(all, one)
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// Order is an order that exists before the first step. Amounts are minor units.
type Order struct {
	Ref       string `json:"ref" case:"needed"`
	Amount    int64  `json:"amount_minor" case:"needed"`
	Currency  string `json:"currency" case:"needed"`
	Status    string `json:"status" case:"needed"`
	PaymentID string `json:"payment_id"`
	Source    string `json:"source"`
	Captured  *int64 `json:"captured"`
	Refunded  *int64 `json:"refunded"`
}

// Answer is what an outside host says when the program calls it.
type Answer struct {
	Method  string        `json:"method" case:"needed"`
	URL     string        `json:"url" case:"needed"` // one * stands for any characters
	Answers []AnswerReply `json:"answers" case:"needed"`
}

// AnswerReply is one reply; each is given once, the last again and again.
type AnswerReply struct {
	Status      int    `json:"status" case:"needed"`
	ContentType string `json:"content_type"`
	Body        string `json:"body"`
}

// Request is something that can be sent.
type Request struct {
	Method    string            `json:"method" case:"needed"`
	Path      string            `json:"path" case:"needed"`
	Headers   map[string]string `json:"headers"`
	Body      []byte            `json:"body_base64"`
	AtS       *int64            `json:"at_s"`
	Transport *Transport        `json:"transport"`
	Note      string            `json:"note"`
	Sign      json.RawMessage   `json:"sign"`
}

// Transport is what an ordinary HTTP client would not send.
type Transport struct {
	KeepHeaderCase    bool        `json:"keep_header_case"`
	RawHeaders        [][2]string `json:"raw_headers"`
	HeaderBytesLatin1 bool        `json:"header_bytes_latin1"`
	ContentLength     *int64      `json:"content_length"`
	Fill              string      `json:"fill"`
	ExpectEarlyClose  bool        `json:"expect_early_close"`
	Chunked           bool        `json:"chunked"`
	GenerateBytes     int64       `json:"generate_bytes"`
}

// Expect is what the answers may be.
type Expect struct {
	Statuses [][]int         `json:"statuses" case:"needed"`
	Effect   json.RawMessage `json:"effect"`
}

// File is one case file of a folder.
type File struct {
	Path string
	Name string // without folder and extension
	Data []byte
}

// Load reads the *.json files of a folder, sorted by name. A folder without any
// is an error: nothing to check must not look like nothing wrong.
func Load(dir string) ([]File, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no *.json in %s", dir)
	}
	slices.Sort(paths)
	files := make([]File, len(paths))
	for i, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		files[i] = File{Path: path, Name: strings.TrimSuffix(filepath.Base(path), ".json"), Data: data}
	}
	return files, nil
}

// Parse reads one case and checks every key, word, type and index of it. The
// error joins all that is wrong.
func Parse(data []byte) (*Case, error) {
	c := new(Case)
	if err := decode(data, c); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	return c, nil
}

// rounds is Rounds with its default.
func (c *Case) rounds() int {
	if c.Rounds == nil {
		return 1
	}
	return *c.Rounds
}

// NeedsProcesses reports whether serve and work must be processes of their own:
// a step ends or adds one, or signals it.
func (c *Case) NeedsProcesses() bool {
	return c.Setup.Refused() || slices.ContainsFunc(c.Steps, func(s Step) bool {
		switch s.Kind {
		case "start", "stop", "restart", "kill", "reload":
			return true
		case "fault":
			return s.Fault == faultKillProcess
		}
		return false
	})
}
