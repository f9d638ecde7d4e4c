package e2e_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/scenario/cases"
	"github.com/paidonce/paidonce/order"
)

var update = flag.Bool("update", false, "write testdata/cases and testdata/bad anew")

// TestOwnCases plays testdata/cases: cases of our own, which together use every
// step, fault, transport and assertion that can be used today.
func TestOwnCases(t *testing.T) {
	t.Parallel()
	playFolder(t, filepath.Join("testdata", "cases"))
}

// TestBadCases plays testdata/bad: each file must fail, for the reasons that
// stand in the file of the same name.
func TestBadCases(t *testing.T) {
	t.Parallel()
	files, err := cases.Load(filepath.Join("testdata", "bad"))
	require.NoError(t, err)
	for _, file := range files {
		t.Run(file.Name, func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(strings.TrimSuffix(file.Path, ".json") + ".want")
			require.NoError(t, err)
			c, err := cases.Parse(file.Data)
			if err == nil {
				err = play(t, c)
			}
			require.Error(t, err)
			require.NotErrorAs(t, err, new(*cases.SkipError))
			for _, reason := range strings.Split(strings.TrimSpace(string(want)), "\n") {
				require.ErrorContains(t, err, reason)
			}
		})
	}
}

// TestOwnCaseFiles compares the files with what they are made from (ownCases and
// badCases): bodies in base64 and signatures are nothing to edit by hand.
func TestOwnCaseFiles(t *testing.T) {
	for folder, list := range map[string][]ownCase{"cases": ownCases(), "bad": badCases()} {
		dir := filepath.Join("testdata", folder)
		if *update {
			require.NoError(t, os.RemoveAll(dir))
			require.NoError(t, os.MkdirAll(dir, 0o755))
		}
		var names []string
		for _, c := range list {
			files := map[string][]byte{c.id + ".json": c.json(t)}
			if folder == "bad" {
				files[c.id+".want"] = []byte(strings.Join(c.want, "\n") + "\n")
			}
			for name, data := range files {
				names = append(names, name)
				if *update {
					require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
				}
				have, err := os.ReadFile(filepath.Join(dir, name))
				require.NoError(t, err)
				require.Equal(t, string(data), string(have), "%s: run with -update", name)
			}
		}
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, len(names), "a file of %s is made from nothing", dir)
	}
}

// The clock and the secrets of our own cases.
const (
	ownNow    = 1790000000
	ownSecret = "whsec_TESTONLY_b3duLWNhc2Vz"
	ownOld    = "whsec_TESTONLY_b2xkLXNlY3JldA"
	ownHMAC   = "00112233445566778899AABBCCDDEEFF00112233445566778899AABBCCDDEEFF"
	ownBasic  = "adyen-user:pa:ss"
)

// obj and list are JSON.
type (
	obj  map[string]any
	list []any
)

// ownCase is what a file is made from.
type ownCase struct {
	id, title string
	startup   string
	sources   obj // default: stripe
	orders    list
	requests  list
	steps     list
	rounds    int
	statuses  list
	assert    obj
	want      []string // of a bad case: what its failure says
	change    func(text string) string
}

func (c ownCase) json(t *testing.T) []byte {
	t.Helper()
	if c.sources == nil {
		c.sources = obj{"stripe": stripeSource()}
	}
	setup := obj{"sources": c.sources, "orders": orEmpty(c.orders)}
	if c.startup != "" {
		setup["startup"] = c.startup
	}
	doc := obj{
		"id": c.id, "title": c.title, "source": "e2e/own_cases_test.go", "provider": "own", "theme": "the runner",
		"evidence": "made for this test", "now": ownNow, "setup": setup, "requests": orEmpty(c.requests),
		"expect": obj{"statuses": orEmpty(c.statuses)}, "assert": c.assert,
	}
	if c.steps != nil {
		doc["steps"] = c.steps
	}
	if c.rounds > 0 {
		doc["rounds"] = c.rounds
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	require.NoError(t, enc.Encode(doc))
	if c.change == nil {
		return out.Bytes()
	}
	changed := c.change(out.String())
	require.NotEqual(t, out.String(), changed)
	return []byte(changed)
}

func orEmpty(l list) list {
	if l == nil {
		return list{}
	}
	return l
}

func stripeSource() obj {
	return obj{"gateway": "stripe", "mode": "live", "secrets": list{ownSecret, ownOld}}
}

func adyenSource() obj {
	return obj{
		"gateway": "adyen", "mode": "live", "hmac_keys": list{ownHMAC}, "basic": ownBasic,
		"merchant_accounts": list{"TestShop"}, "capture": "automatic",
	}
}

// message is a request of a gateway that is being made.
type message struct {
	gateway   *gateway.Gateway
	source    gateway.Source
	sample    gateway.SampleRequest
	at        time.Time // of the signature
	transport obj
	headers   obj // beside, or instead of, those of the signature; nil removes
	body      []byte
	atS       *int
}

func stripeEvent(kind, ref, id string) message {
	source := gateway.Source{ID: "stripe", Gateway: "stripe", Mode: "live", Secrets: []string{ownSecret}}
	return message{gateway: gateway.Stripe, source: source, at: time.Unix(ownNow, 0), sample: gateway.SampleRequest{
		Source: source, Type: kind, ID: id, Reference: ref, Amount: order.Amount{Minor: 5000, Currency: "EUR"}, At: time.Unix(ownNow-60, 0),
	}}
}

func adyenItem(code, ref, psp string) message {
	source := gateway.Source{
		ID: "adyen", Gateway: "adyen", Mode: "live", HMACKeys: []string{ownHMAC}, Basic: ownBasic, MerchantAccounts: []string{"TestShop"},
	}
	return message{gateway: gateway.Adyen, source: source, at: time.Unix(ownNow, 0), sample: gateway.SampleRequest{
		Source: source, Type: code, Reference: ref, Payment: psp, Amount: order.Amount{Minor: 5000, Currency: "EUR"}, At: time.Unix(ownNow-60, 0),
	}}
}

func (m message) with(change func(*message)) message {
	change(&m)
	return m
}

// request signs the message and returns it as the format has it.
func (m message) request() obj {
	body := m.body
	if body == nil {
		body = must(m.gateway.Sample(m.sample))
	}
	header, body, err := m.gateway.Sign(m.source, body, m.at)
	must(body, err)
	headers := obj{}
	for name := range header {
		headers[name] = header.Get(name)
	}
	for name, value := range m.headers {
		if value == nil {
			delete(headers, name)
			continue
		}
		headers[name] = value
	}
	r := obj{
		"method": http.MethodPost, "path": "/webhooks/" + m.source.ID, "headers": headers,
		"body_base64": base64.StdEncoding.EncodeToString(body),
	}
	if m.transport != nil {
		r["transport"] = m.transport
	}
	if m.atS != nil {
		r["at_s"] = *m.atS
	}
	return r
}

// must is for what cannot fail but by a mistake in this file.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// requestsOf makes the requests of a case.
func requestsOf(messages ...message) list {
	var l list
	for _, m := range messages {
		l = append(l, m.request())
	}
	return l
}

func registered(refs ...string) list {
	var l list
	for _, ref := range refs {
		l = append(l, obj{"ref": ref, "amount_minor": 5000, "currency": "EUR", "status": "registered"})
	}
	return l
}

// paidOnce is what must hold of an order that was paid and fulfilled.
func paidOnce() obj {
	return obj{"state_in": list{"paid"}, "captured": 5000, "refunded": 0, "told_in": list{"fulfilled"}, "flags_only": list{}, "registered": true}
}

func untouched() obj {
	return obj{"state_in": list{"pending"}, "captured": 0, "told_in": list{"nothing"}, "flags_only": list{}}
}

func repeat(code, n int) list {
	return slices.Repeat(list{list{code}}, n)
}
