package api

import (
	"net/http"
	"slices"
)

// Code tells the errors of the API apart. A code has one status, and one meaning for ever.
type Code string

// The codes of every endpoint.
const (
	CodeUnauthorized     Code = "unauthorized"
	CodeForbidden        Code = "forbidden"
	CodeRateLimited      Code = "rate_limited"
	CodeNotFound         Code = "not_found"
	CodeMethodNotAllowed Code = "method_not_allowed"
	CodeInvalidParameter Code = "invalid_parameter"
	CodeUnavailable      Code = "unavailable"
)

// The codes of endpoints that take a body.
const (
	CodeUnsupportedMediaType Code = "unsupported_media_type"
	CodeBodyTooLarge         Code = "body_too_large"
	CodeBodyTooSlow          Code = "body_too_slow"
	CodeBodyCutShort         Code = "body_cut_short"
	CodeInvalidJSON          Code = "invalid_json"
	CodeInvalidBody          Code = "invalid_body"
)

// The codes of some endpoints.
const (
	CodeOrderNotFound Code = "order_not_found"
)

type meaning struct {
	status int
	text   string // one sentence, for the document
}

var meanings = map[Code]meaning{
	CodeUnauthorized:     {http.StatusUnauthorized, "There is no valid API key in the request."},
	CodeForbidden:        {http.StatusForbidden, "The API key lacks the role that this endpoint asks for."},
	CodeRateLimited:      {http.StatusTooManyRequests, "The account sends too many requests; Retry-After says when to go on."},
	CodeNotFound:         {http.StatusNotFound, "There is nothing at this path."},
	CodeMethodNotAllowed: {http.StatusMethodNotAllowed, "The path does not know this method; Allow lists those it knows."},
	CodeInvalidParameter: {http.StatusBadRequest, "A parameter of the path, the query or the header is not one that the endpoint takes; errors says which."},
	CodeUnavailable:      {http.StatusServiceUnavailable, "The request could not be completed, and may have taken effect; send it again after Retry-After."},

	CodeUnsupportedMediaType: {http.StatusUnsupportedMediaType, "The body is not application/json."},
	CodeBodyTooLarge:         {http.StatusRequestEntityTooLarge, "The body is larger than the API accepts."},
	CodeBodyTooSlow:          {http.StatusRequestTimeout, "The body did not arrive in time."},
	CodeBodyCutShort:         {http.StatusBadRequest, "The body ended early."},
	CodeInvalidJSON:          {http.StatusBadRequest, "The body is not one JSON value."},
	CodeInvalidBody:          {http.StatusUnprocessableEntity, "The body is JSON and not what the endpoint takes; errors says where."},

	CodeOrderNotFound: {http.StatusNotFound, "The account has no such order."},
}

// Status is the HTTP status that a code comes with. An unknown code has 503: it is a fault of ours.
func (c Code) Status() int {
	if m, ok := meanings[c]; ok {
		return m.status
	}
	return http.StatusServiceUnavailable
}

// Codes returns every code that the API answers, sorted.
func Codes() []Code {
	all := make([]Code, 0, len(meanings))
	for c := range meanings {
		all = append(all, c)
	}
	slices.Sort(all)
	return all
}
