package gateway

import (
	"cmp"
	"net/url"
	"strconv"
	"time"

	"github.com/tidwall/sjson"
)

// stripeListing asks for the events of a span, newest first. They are the ones that webhooks bring, with the same ids, and as they
// were made: "the contents of data never change". A webhook endpoint that has an API version of its own brings them in that
// version, though, and the list in the account's: give the endpoint the account's version, or an event that both tell in other
// words (with other ids of the payment, or the rest of a part capture) is taken for a second one, flagged and joined all the same.
//
// https://docs.stripe.com/api/events/list
var stripeListing = &Listing{
	Live: "https://api.stripe.com", Test: "https://api.stripe.com",
	Reach: 30 * 24 * time.Hour, // "List events, going back up to 30 days"
	// Stripe says nothing of how late an event can be in the list. Their times are whole seconds.
	Delay: 10 * time.Minute,
	Ready: stripeListReady,
	Call:  stripeListCall,
	Read:  stripeListed,
}

func stripeListReady(s Source) error {
	if s.AccessToken == "" {
		return callErrorf("has no access_token: a key (rk_…) that may read events is needed to list them")
	}
	return nil
}

// stripePage is the greatest page that there is.
const stripePage = 100

func stripeListCall(s Source, span Span, page string) (Call, error) {
	from, until := span.From.Unix(), span.Until.Unix()
	if span.Until.Nanosecond() > 0 {
		until++ // events have whole seconds; those of this one may be in the span
	}
	query := url.Values{
		"created[gte]": {strconv.FormatInt(from, 10)}, "created[lt]": {strconv.FormatInt(until, 10)}, "limit": {strconv.Itoa(stripePage)},
	}
	if page != "" {
		query.Set("starting_after", page)
	}
	return stripeAuthorize(s, Call{Path: "/v1/events?" + query.Encode(), Header: stripeHeader(s)}), nil
}

// stripeListed reads a page. Events of types that are not mapped are left out: a webhook endpoint would not be sent them.
func stripeListed(s Source, a Answer) (Page, error) {
	doc, fault := parseJSON(a.Body)
	if fault != nil {
		return Page{}, fault
	}
	list, err := doc.members([]string{"object", "data", "has_more"})
	if err != nil {
		return Page{}, parseError("duplicate_key", "the list %v", err)
	}
	more := list.get("has_more")
	if list.get("object").Str != "list" || !list.get("data").IsArray() || !more.isTrue() && !more.isFalse() {
		return Page{}, parseError("shape", "the answer is no list")
	}
	var (
		page Page
		last string
	)
	for _, item := range list.get("data").elements(len(a.Body)) {
		top, err := item.members([]string{"id", "object", "type", "account"})
		if err != nil {
			return Page{}, parseError("duplicate_key", "an event in the list %v", err)
		}
		id, ok := top.get("id").text()
		if !ok || cmp.Or(top.get("object").Str, "event") != "event" {
			return Page{}, parseError("no_event_id", "the list holds what is no event")
		}
		last = id
		if _, known := stripeTypeOf[top.get("type").Str]; known {
			page.Deliveries = append(page.Deliveries, Delivery{Body: stripeListedBody(s, item, top.get("account"))})
		}
	}
	if more.isTrue() {
		if last == "" {
			return Page{}, parseError("shape", "a page of no events says that there are more")
		}
		page.Next = last
	}
	return page, nil
}

// stripeListedBody is an event as the webhook brings it. That of a connected account names the account there; in the account's own
// list, which we asked for with Stripe-Account, it need not. It is written in then: an event without account is the platform's own.
func stripeListedBody(s Source, event, account value) []byte {
	raw := []byte(event.Raw)
	if s.StripeAccount == "" || !account.absent() {
		return raw
	}
	named, err := sjson.SetBytes(raw, "account", s.StripeAccount)
	if err != nil {
		return raw // an object takes any member
	}
	return named
}
