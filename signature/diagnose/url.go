package diagnose

import (
	"net/url"
	"strings"
)

// urls undoes a URL that is configured in another form than at the gateway, for
// schemes that sign it.
func urls(_ *search, a attempt, yield func(variant) bool) {
	if a.request.URL == "" {
		return
	}
	u, err := url.Parse(a.request.URL)
	if err != nil || u.Host == "" {
		return
	}
	try := func(change func(*url.URL), what string) bool {
		c := *u
		change(&c)
		text := c.String()
		if text == a.request.URL {
			return true
		}
		v := a
		v.request.URL = text
		return yield(variant{v, URL, "The URL that was signed is " + what + ": configure public_url exactly as it stands at the gateway."})
	}
	slash := func(c *url.URL) {
		if strings.HasSuffix(c.Path, "/") {
			c.Path = strings.TrimSuffix(c.Path, "/")
		} else {
			c.Path += "/"
		}
	}
	scheme := func(c *url.URL) {
		if c.Scheme == "https" {
			c.Scheme = "http"
		} else {
			c.Scheme = "https"
		}
	}
	host := u.Hostname()
	_ = try(slash, "with or without the slash at its end") &&
		try(scheme, "of the other scheme (http and https): TLS ends at a proxy") &&
		try(func(c *url.URL) { slash(c); scheme(c) }, "of the other scheme, and with or without the slash at its end") &&
		try(func(c *url.URL) { c.Host = host }, "without a port") &&
		try(func(c *url.URL) { c.Host = host + ":443" }, "with the port 443") &&
		try(func(c *url.URL) { c.Host = "www." + host }, "with www. in front of its host") &&
		try(func(c *url.URL) { c.Host = strings.TrimPrefix(c.Host, "www.") }, "without www. in front of its host") &&
		try(func(c *url.URL) { c.Host = strings.ToLower(c.Host) }, "with its host in lower case") &&
		try(func(c *url.URL) { c.RawQuery = "" }, "without its query") &&
		try(func(c *url.URL) { c.RawQuery = a.request.Query }, "with the query of the request") &&
		try(func(c *url.URL) { c.Path = strings.ToLower(c.Path) }, "with its path in lower case") &&
		hosts(a, try)
}

// hosts tries the hosts that the request itself names. They are never believed
// by verification; here they only show what was signed.
func hosts(a attempt, try func(func(*url.URL), string) bool) bool {
	for _, name := range []string{"Host", "X-Forwarded-Host", "X-Original-Host"} {
		host := first(a.request.Header, name)
		if host == "" || strings.ContainsAny(host, "/@? ") {
			continue
		}
		for _, scheme := range []string{"https", "http"} {
			if !try(func(c *url.URL) { c.Host, c.Scheme = host, scheme }, "of another host, the one in the request's "+name+" header") {
				return false
			}
		}
	}
	return true
}

// ids undoes a change of case in the query, for schemes that sign a part of it.
func ids(_ *search, a attempt, yield func(variant) bool) {
	fields := strings.Split(a.request.Query, "&")
	for i, f := range fields {
		name, value, ok := strings.Cut(f, "=")
		if !ok || value == "" {
			continue
		}
		for _, other := range []string{strings.ToUpper(value), strings.ToLower(value), unescape(value), url.QueryEscape(value)} {
			if other == value {
				continue
			}
			changed := append([]string(nil), fields...)
			changed[i] = name + "=" + other
			v := a
			v.request.Query = strings.Join(changed, "&")
			cause, sentence := IDCase, "The id in the query ("+name+") was changed to upper or lower case: what was signed has the other one. Pass the URL on as it came."
			if !strings.EqualFold(other, value) {
				cause, sentence = FormDecoded, "The query was decoded, or encoded again: pass the URL on as it came."
			}
			if !yield(variant{v, cause, sentence}) {
				return
			}
		}
	}
}
