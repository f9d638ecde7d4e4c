package cases

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Assert is what must hold. What is absent is not checked.
type Assert struct {
	Orders         map[string]OrderAssert   `json:"orders"`
	Rows           map[string]Num           `json:"rows"`
	Accounts       map[string]AccountAssert `json:"accounts"`
	Outcomes       []Outcomes               `json:"outcomes"`
	Calls          map[string]Num           `json:"calls"`
	Outbound       *Num                     `json:"outbound"`
	Answers        []AnswerAssert           `json:"answers"`
	SameResponse   [][]int                  `json:"same_response"`
	DifferentOrder [][]int                  `json:"different_order"`
	Replayed       []int                    `json:"replayed"`
	PayloadsKept   []int                    `json:"payloads_kept"`
	PaymentsKnown  []string                 `json:"payments_known"`
	EventTypes     []string                 `json:"event_types"`
	LogsAbsent     []string                 `json:"logs_absent"`
	When           []When                   `json:"when"`
}

// OrderAssert is what must hold of one order.
type OrderAssert struct {
	StateIn     []string `json:"state_in"`
	StateNot    []string `json:"state_not"`
	Captured    *Num     `json:"captured"`
	Refunded    *Num     `json:"refunded"`
	Version     *Num     `json:"version"`
	Flags       []string `json:"flags"`
	FlagsAbsent []string `json:"flags_absent"`
	FlagsOnly   []string `json:"flags_only"`
	ToldIn      []string `json:"told_in"`
	Registered  *bool    `json:"registered"`
	Absent      bool     `json:"absent"`
}

// AccountAssert is what must hold of another account.
type AccountAssert struct {
	Rows map[string]Num `json:"rows" case:"needed"`
}

// AnswerAssert is what must hold of every answer to a request, or of those with
// one of the codes in Status.
type AnswerAssert struct {
	Request        int               `json:"request" case:"needed"`
	Status         []int             `json:"status"`
	HeaderPresent  []string          `json:"header_present"`
	HeaderAbsent   []string          `json:"header_absent"`
	HeaderContains map[string]string `json:"header_contains"`
	BodyEquals     *string           `json:"body_equals"`
	BodyContains   []string          `json:"body_contains"`
	BodyAbsent     []string          `json:"body_absent"`
	MaxMS          *int64            `json:"max_ms"`
}

// When holds further assertions that count only if If does.
type When struct {
	If Condition `json:"if" case:"needed"`
	Assert
}

// Condition is either about the last answer to a request, or about an order.
type Condition struct {
	Request *int     `json:"request"`
	Status  []int    `json:"status"`
	Order   *string  `json:"order"`
	StateIn []string `json:"state_in"`
}

// Num is what a count may be: exactly N, from Min to Max, or one of In.
type Num struct {
	exact    *int64
	min, max *int64
	in       []int64
}

// UnmarshalJSON reads an int, {"min": a, "max": b} or {"in": [a, b]}.
func (n *Num) UnmarshalJSON(data []byte) error {
	*n = Num{}
	if len(data) > 0 && data[0] != '{' {
		var exact *int64
		if err := json.Unmarshal(data, &exact); err != nil || exact == nil {
			return fmt.Errorf("%s is not an int, {min, max} or {in}", data)
		}
		n.exact = exact
		return nil
	}
	var form struct {
		Min *int64  `json:"min"`
		Max *int64  `json:"max"`
		In  []int64 `json:"in"`
	}
	if err := decode(data, &form); err != nil {
		return err
	}
	bounded := form.Min != nil || form.Max != nil
	if bounded == (form.In != nil) || form.In != nil && len(form.In) == 0 {
		return fmt.Errorf("%s is not an int, {min, max} or {in}", data)
	}
	n.min, n.max, n.in = form.Min, form.Max, form.In
	return nil
}

// Holds reports whether got is one of the numbers that n allows.
func (n Num) Holds(got int64) bool {
	switch {
	case n.exact != nil:
		return got == *n.exact
	case n.in != nil:
		return slices.Contains(n.in, got)
	default:
		return (n.min == nil || got >= *n.min) && (n.max == nil || got <= *n.max)
	}
}

// String says what n allows.
func (n Num) String() string {
	switch {
	case n.exact != nil:
		return fmt.Sprint(*n.exact)
	case n.in != nil:
		return "one of " + strings.Trim(fmt.Sprint(n.in), "[]")
	case n.min == nil:
		return fmt.Sprintf("at most %d", *n.max)
	case n.max == nil:
		return fmt.Sprintf("at least %d", *n.min)
	default:
		return fmt.Sprintf("%d to %d", *n.min, *n.max)
	}
}

// Outcomes is what the first send of a request may leave: null (not checked), a
// list of words that each new row must have one of, or how many rows of each
// word there are, and no others.
type Outcomes struct {
	words []string
	exact map[string]int
}

// UnmarshalJSON reads null, [word] or {word: n}.
func (o *Outcomes) UnmarshalJSON(data []byte) error {
	*o = Outcomes{}
	switch {
	case string(data) == "null":
		return nil
	case data[0] == '[':
		return json.Unmarshal(data, &o.words)
	case data[0] == '{':
		if _, _, err := object(data); err != nil {
			return err
		}
		return json.Unmarshal(data, &o.exact)
	}
	return fmt.Errorf("outcomes: %s is not null, a list of words or how many of each", data)
}

func (o Outcomes) unchecked() bool { return o.words == nil && o.exact == nil }

// Holds reports whether the words found are allowed.
func (o Outcomes) Holds(found []string) bool {
	if o.exact == nil {
		return o.unchecked() || !slices.ContainsFunc(found, func(w string) bool { return !slices.Contains(o.words, w) })
	}
	counts := make(map[string]int)
	for _, w := range found {
		counts[w]++
	}
	want := maps.Clone(o.exact)
	maps.DeleteFunc(want, func(_ string, n int) bool { return n == 0 })
	return maps.Equal(counts, want)
}

// String says what o allows.
func (o Outcomes) String() string {
	switch {
	case o.exact != nil:
		return fmt.Sprint(o.exact)
	case o.words != nil:
		return fmt.Sprint(o.words)
	}
	return "anything"
}

// rowNames are the tables that rows counts.
var rowNames = []string{"events", "transitions", "payments", "orders", "idempotency_keys"}

var callNames = []string{"fulfil", "hold", "release", "revoke", "total"}

// check reports words, indices and combinations that are not defined. In a step
// named check, what is about the whole run is not allowed.
func (a *Assert) check(where string, c *Case, inStep bool) []error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf(where+": "+format, args...))
	}
	indices := func(what string, list []int) {
		for _, i := range list {
			if i < 0 || i >= len(c.Requests) {
				bad("%s: there is no request %d", what, i)
			}
		}
	}
	if inStep && (a.Outcomes != nil || a.SameResponse != nil || a.Replayed != nil) {
		bad("outcomes, same_response and replayed belong to the end, not to a check")
	}
	for ref, o := range a.Orders {
		errs = append(errs, o.check(where+": orders."+ref)...)
	}
	errs = append(errs, words(where+": rows", slices.Sorted(maps.Keys(a.Rows)), rowNames)...)
	for account, b := range a.Accounts {
		if account != "b" {
			bad("accounts: %q is not b", account)
		}
		errs = append(errs, words(where+": accounts."+account+".rows", slices.Sorted(maps.Keys(b.Rows)), rowNames)...)
	}
	if a.Outcomes != nil && len(a.Outcomes) != len(c.Requests) {
		bad("outcomes: %d for %d requests", len(a.Outcomes), len(c.Requests))
	}
	for i, o := range a.Outcomes {
		at := fmt.Sprintf("%s: outcomes[%d]", where, i)
		errs = append(errs, words(at, o.words, outcomeWords)...)
		errs = append(errs, words(at, slices.Sorted(maps.Keys(o.exact)), outcomeWords)...)
		if o.words != nil && len(o.words) == 0 {
			bad("outcomes[%d]: an empty list allows nothing", i)
		}
	}
	errs = append(errs, words(where+": calls", slices.Sorted(maps.Keys(a.Calls)), callNames)...)
	for i, answer := range a.Answers {
		indices("answers", []int{answer.Request})
		errs = append(errs, codes(fmt.Sprintf("%s: answers[%d]", where, i), answer.Status)...)
	}
	for what, groups := range map[string][][]int{"same_response": a.SameResponse, "different_order": a.DifferentOrder} {
		for _, group := range groups {
			indices(what, group)
		}
	}
	indices("replayed", a.Replayed)
	indices("payloads_kept", a.PayloadsKept)
	for i, when := range a.When {
		at := fmt.Sprintf("%s: when[%d]", where, i)
		errs = append(errs, when.If.check(at, c)...)
		errs = append(errs, when.Assert.check(at, c, inStep)...)
	}
	return errs
}

func (o *OrderAssert) check(where string) []error {
	errs := slices.Concat(
		words(where+".state_in", o.StateIn, stateWords),
		words(where+".state_not", o.StateNot, stateWords),
		words(where+".flags", o.Flags, flagWords),
		words(where+".flags_absent", o.FlagsAbsent, flagWords),
		words(where+".flags_only", o.FlagsOnly, flagWords),
		words(where+".told_in", o.ToldIn, toldWords),
	)
	if o.StateIn != nil && len(o.StateIn) == 0 || o.ToldIn != nil && len(o.ToldIn) == 0 {
		errs = append(errs, fmt.Errorf("%s: an empty list allows nothing", where))
	}
	return errs
}

func (i *Condition) check(where string, c *Case) []error {
	switch {
	case i.Request != nil && i.Status != nil && i.Order == nil && i.StateIn == nil:
		if *i.Request < 0 || *i.Request >= len(c.Requests) {
			return []error{fmt.Errorf("%s: there is no request %d", where, *i.Request)}
		}
		return codes(where+": if", i.Status)
	case i.Order != nil && i.StateIn != nil && i.Request == nil && i.Status == nil:
		return words(where+": if", i.StateIn, stateWords)
	}
	return []error{errors.New(where + `: if is {"request", "status"} or {"order", "state_in"}`)}
}

// codes reports what is no HTTP status. 0 is a connection that was dropped.
func codes(where string, list []int) []error {
	var errs []error
	for _, code := range list {
		if code != 0 && (code < 100 || code > 599) {
			errs = append(errs, fmt.Errorf("%s: %d is no HTTP status", where, code))
		}
	}
	return errs
}
