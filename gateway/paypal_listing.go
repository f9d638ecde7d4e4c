package gateway

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// paypalListing lists the events that PayPal has for the app's webhooks, each as the webhook brings it, under the same id.
// https://developer.paypal.com/docs/api/webhooks/v1/#webhooks-events_list; that they are kept for 30 days:
// https://developer.paypal.com/api/rest/webhooks/events-dashboard/. How late one may come into the list is not documented.
var paypalListing = Listing{
	Live: paypalLive, Test: paypalSandbox,
	Reach: 30 * 24 * time.Hour, Delay: time.Hour,
	Ready: paypalReady, Call: callPayPalList, Read: readPayPalList,
}

const (
	paypalEventsPath = "/v1/notifications/webhooks-events"
	paypalPageSize   = 100
)

// callPayPalList: both ends of the span are inclusive and of whole seconds, so the page may have more than was asked for.
func callPayPalList(s Source, span Span, page string) (Call, error) {
	if err := paypalReady(s); err != nil {
		return Call{}, err
	}
	query := url.Values{
		"start_time": {span.From.UTC().Format(time.RFC3339)},
		"end_time":   {span.Until.UTC().Add(time.Second - time.Nanosecond).Format(time.RFC3339)},
		"page_size":  {strconv.Itoa(paypalPageSize)},
	}
	if page != "" {
		more, err := url.ParseQuery(page)
		if err != nil {
			return Call{}, parseError("shape", "the next page is no query")
		}
		query = more
	}
	return Call{Path: paypalEventsPath + "?" + query.Encode(), Header: http.Header{"Accept": {"application/json"}}, Grant: paypalGrant(s)}, nil
}

func readPayPalList(_ Source, a Answer) (Page, error) {
	doc, fault := parseJSON(a.Body)
	if fault != nil {
		return Page{}, fault
	}
	top, err := doc.members([]string{"events", "links"})
	if err != nil {
		return Page{}, parseError("duplicate_key", "%v", err)
	}
	if !top.get("events").IsArray() {
		return Page{}, parseError("shape", "the answer has no events")
	}
	var p Page
	all := top.get("events").elements(maxPage + 1)
	if len(all) > maxPage {
		return Page{}, parseError("shape", "the answer has more than %d events", maxPage)
	}
	for _, v := range all {
		e, err := v.members([]string{"id", "event_type"})
		if err != nil {
			return Page{}, parseError("shape", "an event %v", err)
		}
		if _, ok := e.get("id").text(); !ok {
			return Page{}, parseError("no_event_id", "the id of an event is missing or no plain text")
		}
		if paypalTypeOf[e.get("event_type").Str] == nil {
			continue
		}
		p.Deliveries = append(p.Deliveries, Delivery{
			Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(v.Raw),
		})
	}
	if len(all) > 0 {
		p.Next, err = paypalNextPage(top.get("links"))
	}
	return p, err
}

// paypalNextPage is the query of the link to the next page, whose host is not believed.
func paypalNextPage(links value) (string, error) {
	for _, link := range links.elements(maxListed) {
		l, err := link.members([]string{"rel", "href"})
		if err != nil {
			return "", parseError("shape", "a link %v", err)
		}
		if l.get("rel").Str != "next" {
			continue
		}
		u, err := url.Parse(l.get("href").Str)
		if err != nil || !strings.HasSuffix(u.Path, paypalEventsPath) || u.RawQuery == "" {
			return "", parseError("shape", "the link to the next page leads elsewhere")
		}
		query, err := url.ParseQuery(u.RawQuery)
		if err != nil {
			return "", parseError("shape", "the link to the next page has no query")
		}
		return query.Encode(), nil
	}
	return "", nil
}
