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

// checker collects what is wrong with a source.
type checker struct {
	s    Source
	errs []error
}

func (c *checker) add(option, format string, args ...any) {
	c.errs = append(c.errs, &OptionError{Option: option, Text: fmt.Sprintf(format, args...)})
}

func (c *checker) err() error { return errors.Join(c.errs...) }

// common checks the options that every source has, and that no option is set
// that means nothing to this gateway; own are those it has besides.
func (c *checker) common(own ...string) {
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
	for _, o := range []struct {
		name string
		set  bool
	}{
		{"secrets", len(s.Secrets) > 0},
		{"hmac_keys", len(s.HMACKeys) > 0},
		{"basic", s.Basic != ""},
		{"merchant_accounts", len(s.MerchantAccounts) > 0},
		{"capture", s.Capture != ""},
		{"account", s.StripeAccount != ""},
		{"map", s.Map != nil},
	} {
		if o.set && !slices.Contains(own, o.name) {
			c.add(o.name, "is no option of gateway %s; take it out", s.Gateway)
		}
	}
}

// secrets checks what deliveries are signed with: at least one, all well formed.
func (c *checker) secrets(scheme, option string, secrets []string) {
	if len(secrets) == 0 {
		c.add("", "has no %s; without them nothing can be verified", option)
		return
	}
	sch, ok := signature.Lookup(scheme)
	if !ok {
		c.add("", "cannot be verified: there is no signature scheme %q", scheme)
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
