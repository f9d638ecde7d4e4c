package cases

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	sqlState    = regexp.MustCompile(`^[0-9A-Z]{5}$`)
	placeholder = regexp.MustCompile(`\{\{([^{}]*)\}\}`)
)

// check reports everything in a decoded case that the format does not define.
func (c *Case) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.ID == "" {
		bad("id: it names the subtest and cannot be empty")
	}
	if c.rounds() < 1 {
		bad("rounds: %d is less than 1", c.rounds())
	}
	errs = append(errs, c.Setup.check()...)
	for i := range c.Requests {
		errs = append(errs, c.Requests[i].check(fmt.Sprintf("requests[%d]", i))...)
	}
	if c.Setup.Refused() {
		return errors.Join(errs...) // statuses and steps are not looked at
	}
	if len(c.Expect.Statuses) != len(c.Requests) {
		bad("expect.statuses: %d lists for %d requests", len(c.Expect.Statuses), len(c.Requests))
	}
	for i, list := range c.Expect.Statuses {
		errs = append(errs, codes(fmt.Sprintf("expect.statuses[%d]", i), list)...)
	}
	if c.Steps != nil && len(c.Steps) == 0 {
		bad("steps: an empty list; leave it out to send every request once")
	}
	for i := range c.Steps {
		errs = append(errs, c.Steps[i].check(fmt.Sprintf("steps[%d]", i), c)...)
	}
	errs = append(errs, c.Assert.check("assert", c, false)...)
	return errors.Join(errs...)
}

func (s *Setup) check() []error {
	var errs []error
	add := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	if s.Startup != "" {
		add(word("setup.startup", s.Startup, []string{"ok", "refused"}))
	}
	s.sources = make(map[string]Source)
	for _, id := range slices.Sorted(maps.Keys(s.Sources)) {
		where := "setup.sources." + id
		var source Source
		if err := decode(s.Sources[id], &source); err != nil {
			add(fmt.Errorf("%s: %w", where, err))
			continue
		}
		s.sources[id] = source
		// In a set-up that must be refused, any value may be the bad one.
		if !s.Refused() {
			errs = append(errs, source.check(where)...)
		}
	}
	for i, o := range s.Orders {
		where := fmt.Sprintf("setup.orders[%d]", i)
		add(word(where+".status", o.Status, statusWords))
		errs = append(errs, o.check(where, s)...)
	}
	for i, a := range s.GatewayHTTP {
		where := fmt.Sprintf("setup.gateway_http[%d]", i)
		if len(a.Answers) == 0 {
			add(fmt.Errorf("%s: no answers", where))
		}
		if strings.Count(a.URL, "*") > 1 {
			add(fmt.Errorf("%s: one * at most", where))
		}
		for _, reply := range a.Answers {
			errs = append(errs, codes(where, []int{reply.Status})...)
		}
	}
	return errs
}

func (s *Source) check(where string) []error {
	var errs []error
	if s.Mode != "" {
		errs = append(errs, words(where+".mode", []string{s.Mode}, []string{"live", "test"})...)
	}
	if s.Capture != "" {
		errs = append(errs, words(where+".capture", []string{s.Capture}, []string{"automatic", "manual"})...)
	}
	if s.OnUnknownOrder != "" {
		errs = append(errs, words(where+".on_unknown_order", []string{s.OnUnknownOrder}, []string{"stub", "ignore", "create"})...)
	}
	if s.Map != nil {
		kinds := slices.Sorted(maps.Values(s.Map.Facts))
		errs = append(errs, words(where+".map.facts", kinds, []string{"authorized", "captured", "refunded"})...)
	}
	return errs
}

// money reports whether the status of an order says that a payment took place.
func (o *Order) money() bool {
	return o.Status != "registered" && (o.Status != "canceled" || o.Captured != nil || o.Refunded != nil)
}

func (o *Order) check(where string, s *Setup) []error {
	var errs []error
	if o.Ref == "" || o.Amount < 0 {
		errs = append(errs, fmt.Errorf("%s: an order needs a ref, and an amount of 0 or more", where))
	}
	if (o.Captured != nil && *o.Captured < 0) || (o.Refunded != nil && *o.Refunded < 0) {
		errs = append(errs, fmt.Errorf("%s: amounts are 0 or more", where))
	}
	if o.money() && o.PaymentID == "" {
		errs = append(errs, fmt.Errorf("%s: %s needs a payment_id", where, o.Status))
	}
	if o.PaymentID != "" {
		if _, ok := s.Sources[o.Source]; !ok {
			errs = append(errs, fmt.Errorf("%s: there is no source %q", where, o.Source))
		}
	}
	return errs
}

func (r *Request) check(where string) []error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(where+": "+format, args...)) }
	if r.Method == "" || r.Path == "" {
		bad("a request needs a method and a path")
	}
	for _, text := range slices.Concat([]string{r.Path}, slices.Collect(maps.Values(r.Headers))) {
		for _, found := range placeholder.FindAllStringSubmatch(text, -1) {
			name, ref, hasRef := strings.Cut(found[1], ":")
			known := slices.Contains([]string{"api_key", "api_key_b"}, name) && !hasRef ||
				slices.Contains([]string{"order_id", "etag"}, name) && ref != ""
			if !known {
				bad("no such placeholder: %s", found[0])
			}
		}
	}
	t := r.Transport
	if t == nil {
		return errs
	}
	if t.Fill != "" {
		if b, err := hex.DecodeString(t.Fill); err != nil || len(b) != 1 {
			bad("transport.fill: %q is not one byte in hex", t.Fill)
		}
	}
	if t.ContentLength != nil && (*t.ContentLength < 0 || t.Chunked) {
		bad("transport: content_length is 0 or more, and not for a chunked body")
	}
	if t.GenerateBytes < 0 || t.GenerateBytes > 0 && (!t.Chunked || t.Fill == "") {
		bad("transport: generate_bytes goes with chunked and fill")
	}
	return errs
}
