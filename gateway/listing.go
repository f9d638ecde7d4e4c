package gateway

import (
	"time"
)

// Listing says how a gateway is asked what happened in a span of time, so that what its webhooks lost is found. Its functions are
// pure.
type Listing struct {
	// Live and Test are the base URLs of the API, without a slash at the end. The source's api_url takes their place.
	Live, Test string

	// Reach is how far back the gateway's list goes, by its documentation. Older spans are answered with less than there was.
	Reach time.Duration

	// Delay is how long after it happened something may still be missing from the list: spans overlap by at least as much.
	Delay time.Duration

	// Ready returns why a source cannot be asked, as a sentence about the option that it lacks; nil: it can.
	Ready func(Source) error

	// Call makes the call for one page of what happened in the span; page is [Page].Next of the one before, "" for the first. It is
	// complete, with credentials or a Grant.
	Call func(s Source, span Span, page string) (Call, error)

	// Read reads a page. What stands in it that is no event of ours is left out. An error is a [*ParseError]: the page cannot be
	// read, and nothing of it is taken in.
	Read func(Source, Answer) (Page, error)
}

// Span is from From, inclusive, to Until, exclusive.
type Span struct{ From, Until time.Time }

// Page is a part of a list.
type Page struct {
	// Deliveries are events as the webhook would have brought them, in the form that [Gateway.Read] takes, with the same ids: what
	// is known is a duplicate.
	Deliveries []Delivery

	// Objects are what has to be asked about ([Gateway.Fetch]), where the list does not tell all of it.
	Objects []Object

	Next string // of the next page; "": this was the last
}

// BaseURL is where the source's API is asked, without a slash at the end.
func (l *Listing) BaseURL(s Source) string { return baseURL(s, l.Live, l.Test) }
