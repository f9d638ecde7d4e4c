package diagnose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// urls undoes a URL that is configured in another form than at the gateway, for
// schemes that sign it.
func urls(s *search, a attempt, yield func(variant) bool) {
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
		return yield(variant{attempt: v, cause: URL, sentence: "The URL that was signed is " + what + ": configure public_url exactly as it stands at the gateway."})
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
	arrived := s.in.Path
	if arrived == "" {
		arrived = a.request.Path
	}
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
		try(func(c *url.URL) { c.RawPath, c.Path = "", arrived }, "of another path, that of the request") &&
		try(func(c *url.URL) { c.RawPath, c.Path, c.RawQuery = "", arrived, a.request.Query }, "of another path, with the query of the request") &&
		try(func(c *url.URL) { c.Path = "/" }, "without a path") &&
		try(func(c *url.URL) { c.Path = "" }, "without a path") &&
		hosts(a, arrived, try)
}

// hosts tries the hosts that the request itself names. They are never believed
// by verification; here they only show what was signed.
func hosts(a attempt, arrived string, try func(func(*url.URL), string) bool) bool {
	for _, name := range []string{"Host", "X-Forwarded-Host", "X-Original-Host"} {
		host := first(a.request.Header, name)
		if host == "" || strings.ContainsAny(host, "/@? ") {
			continue
		}
		for _, scheme := range []string{"https", "http"} {
			const what = "of another host, the one in the request's "
			if !try(func(c *url.URL) { c.Host, c.Scheme = host, scheme }, what+name+" header") ||
				!try(func(c *url.URL) { c.Host, c.Scheme, c.Path, c.RawPath = host, scheme, arrived, "" }, what+name+" header, and of another path") {
				return false
			}
		}
	}
	return true
}

// ids undoes a change of case in the query, for schemes that sign a part of it.
func ids(s *search, a attempt, yield func(variant) bool) {
	if s.kind.query && !announced(a, yield) {
		return
	}
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
			if !yield(variant{attempt: v, cause: cause, sentence: sentence}) {
				return
			}
		}
	}
}

// announced tries what Mercado Pago signs beside the query that is here: an id that
// the body has, and no id of the request.
func announced(a attempt, yield func(variant) bool) bool {
	var n struct {
		Data struct {
			ID any `json:"id"`
		} `json:"data"`
		ID       any    `json:"id"`
		Resource string `json:"resource"`
	}
	d := json.NewDecoder(bytes.NewReader(a.request.Body))
	d.UseNumber()
	_ = d.Decode(&n) // what cannot be read has no ids
	given, _ := url.ParseQuery(a.request.Query)
	own := given.Get("data.id")
	queries := []string{a.request.Query}
	for _, id := range []string{fmt.Sprint(n.Data.ID), fmt.Sprint(n.ID), n.Resource[strings.LastIndex(n.Resource, "/")+1:], given.Get("id"), given.Get("data_id"), given.Get("data[id]")} {
		if id != "" && id != "<nil>" {
			queries = append(queries, "data.id="+url.QueryEscape(id))
		}
	}
	for _, query := range append(queries, "") {
		for _, requestID := range []bool{true, false} {
			v := a
			v.request.Query = query
			sentence, cause := "", SignedID
			switch id := strings.TrimPrefix(query, "data.id="); {
			case query == a.request.Query:
			case query == "":
				sentence = "What was signed has no data.id, and the URL that was given has one: pass the URL on as it came."
			case own == "":
				sentence = "The URL lacks its query: data.id is signed, and stands in the query that the gateway adds. Give the URL with its whole query (--url)."
			case strings.EqualFold(unescape(id), own):
				sentence, cause = "The id in the query (data.id) was changed to upper or lower case: what was signed has the other one. Pass the URL on as it came.", IDCase
			default:
				sentence = "The id in the query (data.id) is another one than was signed, which is the one in the body: pass the URL on as it came."
			}
			if !requestID {
				if first(v.request.Header, "X-Request-Id") == "" {
					continue
				}
				v.request = withHeader(v.request, func(h http.Header) {
					for name := range h {
						if strings.EqualFold(name, "X-Request-Id") {
							delete(h, name)
						}
					}
				})
				sentence = strings.TrimSpace(sentence + " X-Request-Id was not signed: a proxy adds one of its own. Have it pass the request on as it came.")
			}
			if sentence != "" && !yield(variant{attempt: v, cause: cause, sentence: sentence}) {
				return false
			}
		}
	}
	return true
}
