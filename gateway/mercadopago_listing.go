package gateway

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// mercadoListing lists the payments that changed in a span, in the order in which they did; each is asked about then. Payments of
// orders stand there too, under ids that cannot be joined with those of the orders, so a source is asked only if it says that its
// topic is payment.
//
// https://www.mercadopago.com.br/developers/en/reference/online-payments/checkout-pro/search-payments/get ("the last twelve
// months"). How late a change comes into it is not documented.
var mercadoListing = Listing{
	Live: mercadoAPI, Test: mercadoAPI,
	Reach: 365 * 24 * time.Hour, Delay: 15 * time.Minute,
	Ready: mercadoListReady, Call: callMercadoList, Read: readMercadoList,
}

const mercadoPageSize = 50

// mercadoDay is how the search takes times, in UTC.
const mercadoDay = "2006-01-02T15:04:05.000Z"

func mercadoListReady(s Source) error {
	if s.Topic != mercadoTopics[0] {
		return &OptionError{"topic", "is not payment: payments of orders (/v1/orders) would be listed under other ids, and count twice"}
	}
	return mercadoReady(s)
}

// callMercadoList goes on from the time up to which pages were read, not from their number: a payment that changes meanwhile leaves
// its place, and those after it move up.
func callMercadoList(s Source, span Span, page string) (Call, error) {
	if err := mercadoListReady(s); err != nil {
		return Call{}, err
	}
	from, offset := span.From, 0
	if page != "" {
		var err error
		if from, offset, err = mercadoFrom(page); err != nil {
			return Call{}, parseError("shape", "the next page is none of ours")
		}
	}
	query := url.Values{
		"sort": {"date_last_updated"}, "criteria": {"asc"}, "range": {"date_last_updated"},
		"begin_date": {from.UTC().Truncate(time.Millisecond).Format(mercadoDay)},
		"end_date":   {span.Until.UTC().Add(time.Millisecond - time.Nanosecond).Truncate(time.Millisecond).Format(mercadoDay)},
		"limit":      {strconv.Itoa(mercadoPageSize)}, "offset": {strconv.Itoa(offset)},
	}
	return bearerCall(s, "/v1/payments/search?"+query.Encode()), nil
}

// mercadoFrom reads the name of a page: "2026-01-01T10:00:00.000Z+50".
func mercadoFrom(page string) (from time.Time, offset int, err error) {
	day, n, ok := strings.Cut(page, "+")
	if from, err = time.Parse(mercadoDay, day); err != nil || !ok {
		return from, 0, errors.New("no page")
	}
	offset, err = strconv.Atoi(n)
	return from, offset, err
}

func readMercadoList(_ Source, a Answer) (Page, error) {
	doc, fault := parseJSON(a.Body)
	if fault != nil {
		return Page{}, fault
	}
	top, err := doc.members([]string{"paging", "results"})
	if err != nil {
		return Page{}, parseError("duplicate_key", "%v", err)
	}
	if !top.get("results").IsArray() || !top.get("paging").IsObject() {
		return Page{}, parseError("shape", "the answer has no results, or no paging")
	}
	paging, err := top.get("paging").members([]string{"limit", "offset"})
	if err != nil {
		return Page{}, parseError("duplicate_key", "%v", err)
	}
	all := top.get("results").elements(maxPage + 1)
	if len(all) > maxPage {
		return Page{}, parseError("shape", "the answer has more than %d results", maxPage)
	}
	var p Page
	var first, last time.Time
	for i, v := range all {
		r, err := v.members([]string{"id", "date_last_updated"})
		if err != nil {
			return Page{}, parseError("shape", "a payment %v", err)
		}
		id, _ := r.get("id").name()
		o := Object{"payment", id}
		last = rfc3339(r.get("date_last_updated"))
		if !askable(o, mercadoKinds) || last.IsZero() {
			return Page{}, parseError("shape", "a payment has no id, or no time")
		}
		if i == 0 {
			first = last
		}
		p.Objects = append(p.Objects, o)
	}
	limit, _ := paging.get("limit").integer()
	offset, ok := paging.get("offset").integer()
	if !ok || limit < 1 || offset > maxOffset {
		return Page{}, parseError("shape", "paging has no limit, or no offset")
	}
	if int64(len(all)) < limit {
		return p, nil // the last
	}
	p.Next = mercadoNext(first, last, int(offset), len(all))
	return p, nil
}

// maxOffset is more than any page of one moment begins at.
const maxOffset = 1_000_000

// mercadoNext names the page after one that begins and ends at these times. It begins a moment before the last that was read; where a
// page is of one moment, after as many as there were.
func mercadoNext(first, last time.Time, offset, n int) string {
	switch from := last.Add(-time.Millisecond); {
	case from.After(first):
		return from.UTC().Format(mercadoDay) + "+0"
	case last.After(first):
		return last.UTC().Format(mercadoDay) + "+0"
	default:
		return first.UTC().Format(mercadoDay) + "+" + strconv.Itoa(offset+n)
	}
}

// mercadoAbout asks about the payments and orders among the ids.
func mercadoAbout(s Source, ids []string) []Object {
	if mercadoReady(s) != nil {
		return nil
	}
	var all []Object
	for _, id := range distinct(ids) {
		if of, ok := mercadoOrderOf(id); ok {
			return []Object{{"order", of}}
		}
		if o := (Object{"payment", id}); askable(o, mercadoKinds) {
			all = append(all, o)
		}
	}
	return all
}

// mercadoOrderID is the made id that says of which order a payment is: without it, nobody can ask about it.
func mercadoOrderID(of, payment string) string { return "orders/" + of + "/payments/" + payment }

// mercadoOrderOf reads it.
func mercadoOrderOf(id string) (string, bool) {
	rest, ok := strings.CutPrefix(id, "orders/")
	of, payment, more := strings.Cut(rest, "/payments/")
	return of, ok && more && payment != "" && mercadoKinds["order"].MatchString(of)
}
