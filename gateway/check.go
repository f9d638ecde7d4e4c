package gateway

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/paidonce/paidonce/signature"
)

// OptionError is one thing that is wrong with a source. What [Gateway].Check
// returns joins them.
type OptionError struct {
	Option string // "secrets[0]"; "" for the source as a whole
	Text   string // what is wrong and what to do, following the option's name
}

// Error is the option and the text, as one sentence. It shows no secret.
func (e *OptionError) Error() string {
	if e.Option == "" {
		return e.Text
	}
	return e.Option + " " + e.Text
}

// Checker collects what is wrong with a source.
type Checker struct {
	s    Source
	g    *Gateway
	errs []error
}

func (c *Checker) add(option, format string, args ...any) {
	c.errs = append(c.errs, &OptionError{Option: option, Text: fmt.Sprintf(format, args...)})
}

func (c *Checker) err() error { return errors.Join(c.errs...) }

// common checks the options that every source has, and that no option is set
// that means nothing to this gateway.
func (c *Checker) common() {
	s := c.s
	if s.Mode != Live && s.Mode != Test {
		c.add("mode", "must be live or test")
	}
	switch s.OnUnknownOrder {
	case "", Stub, Ignore, Create:
	default:
		c.add("on_unknown_order", "must be stub, ignore or create")
	}
	if s.MaxBody < 0 {
		c.add("max_body", "must not be negative")
	}
	if s.Reference != "" {
		if err := checkPointer(s.Reference); err != nil {
			c.add("reference", "%v", err)
		}
	}
	if s.ReferencePattern != "" {
		if re, err := regexp.Compile(s.ReferencePattern); err != nil {
			c.add("reference_pattern", "is no regular expression: %v", err)
		} else if re.NumSubexp() > 1 {
			c.add("reference_pattern", "has %d groups; one group is the reference, write the others as (?:…)", re.NumSubexp())
		}
	}
	for i, account := range s.MerchantAccounts {
		if !isName(account) {
			c.add(fmt.Sprintf("merchant_accounts[%d]", i), "is empty or no plain text")
		}
	}
	for _, o := range optional {
		if o.set(s) && !c.g.takes(o.name) {
			c.add(o.name, "is no option of gateway %s; take it out", c.g.Name)
		}
	}
}

// secrets checks that the secrets of an option are well formed, and none twice.
func (c *Checker) secrets(option string, secrets []string) {
	sch, ok := signature.Lookup(c.g.Scheme)
	if !ok {
		c.add("", "cannot be verified: there is no signature scheme %q", c.g.Scheme)
		return
	}
	for i, secret := range secrets {
		at := fmt.Sprintf("%s[%d]", option, i)
		var bad *signature.Error
		switch err := sch.CheckSecret(secret); {
		case err == nil:
		case errors.As(err, &bad) && bad.Detail != "":
			c.add(at, "cannot be used: %s", bad.Detail)
		default:
			c.add(at, "cannot be used: %v", err)
		}
		if slices.Contains(secrets[:i], secret) {
			c.add(at, "stands there twice")
		}
	}
}
