package api

import (
	"net/http"
	"slices"

	"github.com/paidonce/paidonce/idempotency"
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
	CodeOrderNotFound        Code = "order_not_found"
	CodePreconditionRequired Code = "precondition_required"
	CodeVersionMismatch      Code = "version_mismatch"
	CodeUnregistered         Code = "unregistered"
	CodeCaptured             Code = "captured"
	CodeMoneyKept            Code = "money_kept"
)

// The codes of requests with an Idempotency-Key, and of those that should have one. Package idempotency answers them.
const (
	CodeKeyMissing          Code = idempotency.CodeKeyMissing
	CodeKeyInvalid          Code = idempotency.CodeKeyInvalid
	CodeKeyBodyInvalid      Code = idempotency.CodeBodyInvalid
	CodeKeyBodyTooLarge     Code = idempotency.CodeBodyTooLarge
	CodeKeyInProgress       Code = idempotency.CodeKeyInProgress
	CodeKeyReused           Code = idempotency.CodeKeyReused
	CodeKeyResultGone       Code = idempotency.CodeResultUnavailable
	CodeKeyNotCommitted     Code = idempotency.CodeFailed
	CodeKeyUnavailable      Code = idempotency.CodeUnavailable
	CodeKeyDeadlineExceeded Code = idempotency.CodeDeadline
	CodeKeyOutcomeUnknown   Code = idempotency.CodeOutcomeUnknown
	CodeInternal            Code = idempotency.CodeMisconfigured
)

// keyCodes are the errors of every protected endpoint.
var keyCodes = []Code{
	CodeKeyMissing, CodeKeyInvalid, CodeKeyBodyInvalid, CodeKeyBodyTooLarge, CodeKeyInProgress, CodeKeyReused, CodeKeyResultGone,
	CodeKeyNotCommitted, CodeKeyUnavailable, CodeKeyDeadlineExceeded, CodeKeyOutcomeUnknown, CodeInternal,
}

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

	CodeOrderNotFound:        {http.StatusNotFound, "The account has no such order."},
	CodePreconditionRequired: {http.StatusPreconditionRequired, "If-Match is missing: say which version of the order the change is meant for."},
	CodeVersionMismatch:      {http.StatusPreconditionFailed, "The order is at another version than If-Match names; ETag says at which."},
	CodeUnregistered:         {http.StatusConflict, "Nobody has registered the order yet: only a webhook has named it."},
	CodeCaptured:             {http.StatusConflict, "Money was captured for the order once, so its total and currency stay."},
	CodeMoneyKept:            {http.StatusConflict, "Money is kept for the order; it must go back first."},

	CodeKeyMissing:          {http.StatusBadRequest, "The account asks for an Idempotency-Key, and there is none."},
	CodeKeyInvalid:          {http.StatusBadRequest, "The Idempotency-Key is not 1 to 255 characters of printable ASCII, or stands there twice."},
	CodeKeyBodyInvalid:      {http.StatusBadRequest, "The body cannot be compared with another, so it cannot be repeated; nothing was recorded."},
	CodeKeyBodyTooLarge:     {http.StatusRequestEntityTooLarge, "With an Idempotency-Key the body may not be that large in the account's profile."},
	CodeKeyInProgress:       {http.StatusConflict, "A request with this key is being executed; send it again with the same key after Retry-After."},
	CodeKeyReused:           {http.StatusUnprocessableEntity, "The key stands for another request; differs_at says where the body differs. Take a new key for a new request."},
	CodeKeyResultGone:       {http.StatusConflict, "The request was done, and its answer was not kept; resource says what it was about."},
	CodeKeyNotCommitted:     {http.StatusServiceUnavailable, "The request was not committed, and nothing of it was kept; send it again with the same key."},
	CodeKeyUnavailable:      {http.StatusServiceUnavailable, "The key cannot be looked up now, and nothing was done; send it again with the same key."},
	CodeKeyDeadlineExceeded: {http.StatusServiceUnavailable, "The request took too long, and nothing of it was kept; send it again with the same key."},
	CodeInternal:            {http.StatusInternalServerError, "The program is at fault, and nothing was done."},
	CodeKeyOutcomeUnknown:   {http.StatusServiceUnavailable, "Whether the request was done is not known yet; the same key will tell, and does nothing twice."},
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
