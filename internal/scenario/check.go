package scenario

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/gatewaysim"
	"github.com/paidonce/paidonce/order"
)

// problem is something in a file that has no meaning.
type problem struct{ path, text string }

// nameForm bounds a name: with the name of a source it becomes a source's id,
// which the configuration limits to 64 characters.
var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

var sourceForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,19}$`)

// The words of the format, beside those of package order.
var (
	states = []string{
		"pending", "authorized", "partially_paid", "paid", "partially_refunded", "refunded", "disputed", "charged_back",
		"failed", "canceled", "expired",
	}
	toldWords    = []string{"nothing", "held", "fulfilled", "revoked"}
	effectWords  = []string{"fulfil", "hold", "release", "revoke"}
	goodsWords   = []string{"held", "delivered", "returned"}
	outcomeWords = []string{"applied", "no_change", "waiting", "ignored", "flagged", "quarantined", "duplicate"}
)

type checker struct {
	s        *Scenario
	sources  map[string]Source
	problems []problem
}

// check returns what the format does not define. base is the file's name.
func check(s *Scenario, base string) []problem {
	c := &checker{s: s, sources: sourcesOf(s)}
	if s.Name != base {
		c.bad("name", "is %q, and the file is called %q", s.Name, base)
	}
	if !nameForm.MatchString(s.Name) {
		c.bad("name", "must be 1 to 40 of a-z, 0-9 and -")
	}
	if strings.TrimSpace(s.Shows) == "" {
		c.bad("shows", "is missing: one sentence that says what the scenario is there for")
	}
	for name, source := range c.sources {
		c.source("sources."+name, name, source)
	}
	for i, o := range s.Orders {
		c.order(fmt.Sprintf("orders[%d]", i), o)
	}
	if len(s.Steps) == 0 {
		c.bad("steps", "nothing happens")
	}
	for i := range s.Steps {
		c.step(fmt.Sprintf("steps[%d]", i), &s.Steps[i])
	}
	c.expect("expect", &s.Expect)
	return c.problems
}

func (c *checker) bad(path, format string, args ...any) {
	c.problems = append(c.problems, problem{path, fmt.Sprintf(format, args...)})
}

func (c *checker) word(path, got string, allowed ...string) {
	if got != "" && !slices.Contains(allowed, got) {
		c.bad(path, "%q is not one of %s", got, strings.Join(allowed, ", "))
	}
}

func (c *checker) source(path, name string, s Source) {
	if !sourceForm.MatchString(name) {
		c.bad(path, "a source is named with 1 to 20 of a-z, 0-9 and -")
	}
	g, ok := gateway.Lookup(s.Gateway)
	if !ok {
		c.bad(path+".gateway", "there is no gateway %q", s.Gateway)
		return
	}
	if g.Example == nil {
		c.bad(path+".gateway", "no secrets can be made up for %s", g.Name)
	}
	c.word(path+".mode", s.Mode, gateway.Live, gateway.Test)
	c.word(path+".capture", s.Capture, gateway.CaptureAutomatic, gateway.CaptureManual)
	c.word(path+".on_unknown_order", s.OnUnknownOrder, gateway.Stub, gateway.Ignore, gateway.Create)
	if s.AccessToken && s.Gateway != gateway.Stripe.Name {
		c.bad(path+".access_token", "sources of %s have one, or need none", g.Name)
	}
	if slices.Contains(s.Secrets, stranger) {
		c.bad(path+".secrets", "%q is the name of a secret that is never configured", stranger)
	}
}

func (c *checker) order(path string, o Order) {
	if o.Ref == "" {
		c.bad(path+".ref", "is missing")
	}
	if o.Amount < 0 {
		c.bad(path+".amount", "must be 0 or more")
	}
	if _, ok := order.Exponent(o.Currency); o.Currency != "" && !ok {
		c.bad(path+".currency", "%q is no currency of ISO 4217", o.Currency)
	}
}

func (c *checker) recurrence(path string, r Recurrence) {
	c.order(path, Order{Ref: r.Ref, Amount: r.Amount, Currency: r.Currency})
	if r.Interval == "" {
		c.bad(path+".interval", "is missing")
	}
	c.word(path+".interval", r.Interval, "day", "week", "month", "quarter", "year")
	if _, err := time.Parse(time.DateOnly, r.StartsOn); err != nil {
		c.bad(path+".starts_on", "is no day like 2020-10-05")
	}
	if r.EndsAfter < 1 {
		c.bad(path+".ends_after", "is missing: how many orders there are must not depend on the day")
	}
}

func (c *checker) step(path string, s *Step) {
	kinds := 0
	for _, set := range []bool{len(s.Deliver) > 0, s.Register != nil, s.Recur != nil, s.Merchant != "", s.Wait != "", s.Worker != "", s.Check != nil} {
		if set {
			kinds++
		}
	}
	if kinds != 1 {
		c.bad(path, "a step is exactly one of deliver, register, recur, merchant, wait, worker and check")
	}
	if (s.Parallel || s.Shuffle != nil) && len(s.Deliver) == 0 {
		c.bad(path, "parallel and shuffle belong to deliver")
	}
	c.word(path+".merchant", s.Merchant, "ok", "error", "hang", "gone")
	c.word(path+".wait", s.Wait, "quiet", "called")
	c.word(path+".worker", s.Worker, "kill", "start")
	for i := range s.Deliver {
		c.delivery(fmt.Sprintf("%s.deliver[%d]", path, i), &s.Deliver[i])
	}
	if s.Register != nil {
		c.order(path+".register", *s.Register)
	}
	if s.Recur != nil {
		c.recurrence(path+".recur", *s.Recur)
	}
	if s.Check != nil {
		c.expect(path+".check", s.Check)
	}
}

func (c *checker) delivery(path string, d *Delivery) {
	source, ok := c.sources[d.sourceName()]
	if !ok {
		c.bad(path+".source", "there is no source %q", d.Source)
		return
	}
	kinds := 0
	for _, set := range []bool{d.Type != "", len(d.Batch) > 0, d.Payload != "", d.Body != ""} {
		if set {
			kinds++
		}
	}
	if kinds != 1 {
		c.bad(path, "a delivery has exactly one of type, batch, payload and body")
	}
	if len(d.Batch) > 0 && source.Gateway != "adyen" {
		c.bad(path+".batch", "only adyen sends several events in one request")
	}
	if d.Payload != "" {
		if _, err := os.Stat(filepath.Join(c.s.dir, d.Payload)); err != nil {
			c.bad(path+".payload", "cannot be read: %v", err)
		}
	}
	if d.Copies < 0 || d.Delay < 0 {
		c.bad(path, "copies and delay are 0 or more")
	}
	if d.Secret != "" && d.Secret != stranger && !slices.Contains(source.Secrets, d.Secret) {
		c.bad(path+".secret", "the source has no secret %q", d.Secret)
	}
	if d.Unsigned && (d.Secret != "" || d.SignedAgo != 0) {
		c.bad(path+".unsigned", "nothing else can be said about a signature that is not there")
	}
	c.api(path, d, source)
	c.item(path, &d.Item)
	for i := range d.Batch {
		c.item(fmt.Sprintf("%s.batch[%d]", path, i), &d.Batch[i])
	}
}

// api checks what is said about the gateway's API.
func (c *checker) api(path string, d *Delivery, source Source) {
	g, ok := gateway.Lookup(source.Gateway)
	if !ok {
		return // said already
	}
	if d.answerType(g) == "" && (d.PingOnly || d.API != nil) {
		c.bad(path, "ping_only and api are for deliveries after which the API is asked")
	}
	if d.Answer != "" && (!g.Announces() || g.Fetch.Sample == nil) {
		c.bad(path+".answer", "%s is not asked", g.Name)
	}
	if a := d.API; a != nil {
		c.word(path+".api.answer", a.Answer, gatewaysim.Garbage, gatewaysim.Oversize, gatewaysim.Hang)
		if a.Times < 0 || a.RetryAfter < 0 || a.Status != 0 && (a.Status < 100 || a.Status > 599) {
			c.bad(path+".api", "times and retry_after are 0 or more, status is an HTTP status")
		}
	}
}

func (c *checker) item(path string, i *Item) {
	c.word(path+".mode", i.Mode, gateway.Live, gateway.Test)
	if i.Amount != nil && *i.Amount < 0 {
		c.bad(path+".amount", "must be 0 or more; what is no amount goes into set")
	}
	if _, ok := order.Exponent(i.Currency); i.Currency != "" && !ok {
		c.bad(path+".currency", "%q is no currency of ISO 4217", i.Currency)
	}
}

func (c *checker) expect(path string, e *Expect) {
	if len(e.Orders) == 0 && e.Outcomes == nil && e.Statuses == nil && e.Calls == nil && e.Asked == nil {
		c.bad(path, "expects nothing")
	}
	for ref, o := range e.Orders {
		c.orderEnd(path+".orders."+ref, o)
	}
	for _, w := range slices.Sorted(maps.Keys(e.Outcomes)) {
		c.word(path+".outcomes."+w, w, outcomeWords...)
	}
	for _, w := range slices.Sorted(maps.Keys(e.Calls)) {
		c.word(path+".calls."+w, w, effectWords...)
	}
	for name := range e.Asked {
		if _, ok := c.sources[name]; !ok {
			c.bad(path+".asked", "there is no source %q", name)
		}
	}
	for code := range e.Statuses {
		if code < 100 || code > 599 {
			c.bad(path+".statuses", "%d is no HTTP status", code)
		}
	}
}

func (c *checker) orderEnd(path string, o OrderEnd) {
	c.word(path+".state", o.State, states...)
	c.word(path+".told", o.Told, toldWords...)
	c.word(path+".goods", o.Goods, goodsWords...)
	if _, err := order.ParseFlags(o.Flags); err != nil {
		c.bad(path+".flags", "%v", err)
	}
	for _, e := range o.Effects {
		c.word(path+".effects", e, effectWords...)
	}
	nothing := o.State == "" && o.Flags == nil && o.Captured == nil && o.Refunded == nil && o.Told == "" && o.Version == 0 &&
		o.VersionMax == 0 && o.Effects == nil && o.Goods == "" && !o.Dead
	if nothing != o.Absent {
		c.bad(path, "says nothing about the order, or more than that it is absent")
	}
}
