package gateway

import (
	"net/url"
	"slices"
	"strings"
)

// Option is an option that a source of a gateway takes.
type Option struct {
	Name     string // as in the configuration: "access_token"
	Required bool
	Help     string // what it is, one line
}

type optionRow struct {
	name string
	set  func(Source) bool
}

// optional are the options of [Source] that only some gateways take, and whether
// a source has them set.
var optional = []optionRow{
	{"secrets", func(s Source) bool { return len(s.Secrets) > 0 }},
	{"signing_keys", func(s Source) bool { return len(s.SigningKeys) > 0 }},
	{"hmac_keys", func(s Source) bool { return len(s.HMACKeys) > 0 }},
	{"basic", func(s Source) bool { return s.Basic != "" }},
	{"merchant_accounts", func(s Source) bool { return len(s.MerchantAccounts) > 0 }},
	{"capture", func(s Source) bool { return s.Capture != "" }},
	{"account", func(s Source) bool { return s.StripeAccount != "" }},
	{"webhook_id", func(s Source) bool { return s.WebhookID != "" }},
	{"root_pem", func(s Source) bool { return s.RootPEM != "" }},
	{"verify_by", func(s Source) bool { return s.VerifyBy != "" }},
	{"client_id", func(s Source) bool { return s.ClientID != "" }},
	{"client_secret", func(s Source) bool { return s.ClientSecret != "" }},
	{"public_url", func(s Source) bool { return s.PublicURL != "" }},
	{"access_token", func(s Source) bool { return s.AccessToken != "" }},
	{"shop", func(s Source) bool { return s.Shop != "" }},
	{"api_url", func(s Source) bool { return s.APIURL != "" }},
	{"api_allow_private", func(s Source) bool { return s.APIAllowPrivate }},
	{"topic", func(s Source) bool { return s.Topic != "" }},
	{"authorization", func(s Source) bool { return s.Authorization != "" }},
	{"tolerance", func(s Source) bool { return s.Tolerance != 0 }},
	{"unconfirmed", func(s Source) bool { return s.Unconfirmed }},
	{"map", func(s Source) bool { return s.Map != nil }},
}

// Options that several gateways share.
var (
	optionSecrets = Option{"secrets", true, "what deliveries are signed with, as the gateway shows it; all are live, so that one can be rolled"}

	optionSigningKeys = Option{"signing_keys", false, "private keys with which send, replay and dev sign; a receiver needs none"}

	optionAccounts = Option{"merchant_accounts", false, "the gateway's ids of the accounts that are ours; events of another are flagged and never counted. Default: all that are signed"}

	optionTolerance = Option{"tolerance", false, "how far the time in a signature may be from now, like 30m for a queue in between. Default: 5m"}

	optionAccessToken = Option{"access_token", true, "what the gateway's API is asked with"}

	optionsAPI = []Option{
		{"api_url", false, "where the gateway's API is asked, instead of its own address"},
		{"api_allow_private", false, "true: api_url may be http, and a loopback or private address"},
	}
)

// Check reports everything that is wrong with a source of this gateway, as
// joined [*OptionError]s: sentences that name the option and show no secret.
func (g *Gateway) Check(s Source) error {
	c := &Checker{s: s, g: g}
	c.common()
	for _, o := range g.Options {
		if o.Required && !slices.ContainsFunc(optional, func(p optionRow) bool { return p.name == o.Name && p.set(s) }) {
			if o.Name == "secrets" || o.Name == "hmac_keys" {
				c.add("", "has no %s; without them nothing can be verified", o.Name)
			} else {
				c.add(o.Name, "is missing: %s", o.Help)
			}
		}
	}
	for option, secrets := range map[string][]string{"secrets": s.Secrets, "hmac_keys": s.HMACKeys} {
		if g.Scheme != "" && g.takes(option) {
			c.secrets(option, secrets)
		}
	}
	c.urls()
	if g.Evidence == Unconfirmed && !s.Unconfirmed {
		c.add("unconfirmed", "is not true: how %s signs could not be confirmed (see paidonce gateways %s); check it in its sandbox, then set unconfirmed: true", g.Title, g.Name)
	}
	if s.Tolerance < 0 {
		c.add("tolerance", "must not be negative")
	}
	if g.CheckMore != nil {
		g.CheckMore(c)
	}
	return c.err()
}

// takes reports whether sources of the gateway have the option.
func (g *Gateway) takes(option string) bool {
	return slices.ContainsFunc(g.Options, func(o Option) bool { return o.Name == option })
}

// urls checks the options that are URLs or hosts.
func (c *Checker) urls() {
	if s := c.s.APIURL; s != "" {
		u, err := url.Parse(s)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
			c.add("api_url", "is not a URL such as https://api.example")
		case u.User != nil || u.RawQuery != "" || u.Fragment != "":
			c.add("api_url", "must have no user, query or fragment")
		case u.Scheme != "https" && !c.s.APIAllowPrivate:
			c.add("api_url", "must be https; http is for a test on a private network, with api_allow_private: true")
		}
	}
	if s := c.s.PublicURL; s != "" {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			c.add("public_url", "is not a URL such as https://shop.example/webhooks/square")
		}
	}
	if s := c.s.Shop; s != "" && !isHost(s) {
		c.add("shop", "is not the host of a shop such as example.myshopify.com")
	}
}

// isHost reports whether s is a host name with at least one dot, and nothing
// that could lead elsewhere: no port, path, user or address.
func isHost(s string) bool {
	labels := strings.Split(s, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") ||
			strings.Trim(strings.ToLower(label), "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
	}
	last := labels[len(labels)-1]
	return len(s) <= 253 && len(labels) > 1 && strings.Trim(last, "0123456789") != ""
}
