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
	CodeInvalidCursor Code = "invalid_cursor"
	CodeOrderNotFound Code = "order_not_found"

	CodePreconditionRequired Code = "precondition_required"
	CodeVersionMismatch      Code = "version_mismatch"
	CodeUnregistered         Code = "unregistered"
	CodeCaptured             Code = "captured"
	CodeMoneyKept            Code = "money_kept"
	CodePaymentNotFound      Code = "payment_not_found"
	CodePaymentAmbiguous     Code = "payment_ambiguous"

	CodeIncomeNotFound    Code = "income_not_found"
	CodePossibleDuplicate Code = "possible_duplicate"

	CodeTransactionNotFound Code = "transaction_not_found"
	CodeNothingToMove       Code = "nothing_to_move"
	CodeAmountExceeds       Code = "amount_exceeds"
	CodeNotCallable         Code = "not_callable"
	CodeNotUncertain        Code = "not_uncertain"

	CodeEventNotFound      Code = "event_not_found"
	CodeEventAmbiguous     Code = "event_ambiguous"
	CodeEventNotReplayable Code = "event_not_replayable"
	CodeEffectNotFound     Code = "effect_not_found"
	CodeEffectNotRetryable Code = "effect_not_retryable"
	CodeKeyNotFound        Code = "idempotency_key_not_found"

	CodeRecurrenceNotFound Code = "recurrence_not_found"
	CodeEndsEarlier        Code = "ends_earlier"
)

// The codes of the Idempotency-Key header, which package idempotency answers.
var keyCodes = []Code{
	idempotency.CodeKeyMissing, idempotency.CodeKeyInvalid, idempotency.CodeBodyInvalid, idempotency.CodeBodyTooSlow, idempotency.CodeKeyInProgress,
	idempotency.CodeResultUnavailable, idempotency.CodeBodyTooLarge, idempotency.CodeKeyReused, idempotency.CodeFailed,
	idempotency.CodeUnavailable, idempotency.CodeDeadline, idempotency.CodeOutcomeUnknown,
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

	CodeInvalidCursor: {http.StatusBadRequest, "The cursor is none of this list."},
	CodeOrderNotFound: {http.StatusNotFound, "The account has no such order."},

	CodePreconditionRequired: {http.StatusPreconditionRequired, "If-Match is missing: say which version of the order the change is meant for."},
	CodeVersionMismatch:      {http.StatusPreconditionFailed, "The order is at another version than If-Match names; ETag says at which."},
	CodeUnregistered:         {http.StatusConflict, "Nobody has registered the order yet: only a webhook has named it."},
	CodeCaptured:             {http.StatusConflict, "Money was captured for the order once, so its total and currency stay."},
	CodePaymentNotFound:      {http.StatusNotFound, "No event has named such a payment, of the account or of the order that is meant."},
	CodePaymentAmbiguous:     {http.StatusConflict, "Several payments fit, at several gateways or of one order; errors says what tells them apart."},
	CodeMoneyKept:            {http.StatusConflict, "Money is kept for the order; it must go back first."},

	CodeIncomeNotFound:    {http.StatusNotFound, "The account has no such income."},
	CodePossibleDuplicate: {http.StatusConflict, "The same money was entered within this minute; resource names it. Another one needs an external_ref of its own."},

	CodeTransactionNotFound: {http.StatusNotFound, "The account has no such transaction."},
	CodeNothingToMove:       {http.StatusConflict, "Of the order's payments there is nothing to capture, refund or void; errors says why."},
	CodeAmountExceeds:       {http.StatusConflict, "There is less to move than the amount; left says how much, and what is under way already."},
	CodeNotCallable:         {http.StatusConflict, "The money is there, and its gateway cannot be asked to move it: no source of the account has what that needs."},
	CodeNotUncertain:        {http.StatusConflict, "The transaction is settled, still on its way, or being looked up: there is nothing for a person to say."},

	CodeEventNotFound:      {http.StatusNotFound, "The account has no such event."},
	CodeEventAmbiguous:     {http.StatusConflict, "Several sources of the account have an event of that id; say which with source."},
	CodeEventNotReplayable: {http.StatusConflict, "The event was not read from a gateway's bytes, or this server does not read events again."},
	CodeEffectNotFound:     {http.StatusNotFound, "The account has no such effect."},
	CodeEffectNotRetryable: {http.StatusConflict, "The effect is being called, or is over."},
	CodeKeyNotFound:        {http.StatusNotFound, "The account has used no such Idempotency-Key, or it has expired."},

	CodeRecurrenceNotFound: {http.StatusNotFound, "The account has no such recurrence."},
	CodeEndsEarlier:        {http.StatusConflict, "The recurrence ends before the day that is named."},

	idempotency.CodeKeyMissing:        {http.StatusBadRequest, "The account requires an Idempotency-Key here, and there is none."},
	idempotency.CodeKeyInvalid:        {http.StatusBadRequest, "The Idempotency-Key is none."},
	idempotency.CodeBodyInvalid:       {http.StatusBadRequest, "The body cannot be compared with another, so that no key can stand for it; errors says where."},
	idempotency.CodeBodyTooSlow:       {http.StatusRequestTimeout, "The body did not arrive in time, and nothing was recorded; send it again, with the same key."},
	idempotency.CodeKeyInProgress:     {http.StatusConflict, "A request with this key is being executed; send it again after Retry-After, with the same key."},
	idempotency.CodeResultUnavailable: {http.StatusConflict, "The request was done, and its answer was not kept; resource says what it made."},
	idempotency.CodeBodyTooLarge:      {http.StatusRequestEntityTooLarge, "With an Idempotency-Key, a body is at most so large."},
	idempotency.CodeKeyReused:         {http.StatusUnprocessableEntity, "The key stands for another request; differs_at says where that differs from this one."},
	idempotency.CodeFailed:            {http.StatusServiceUnavailable, "The request was done and could not be committed, so it is not done (500: it will not be, as it is)."},
	idempotency.CodeUnavailable:       {http.StatusServiceUnavailable, "Keys cannot be read now, and nothing was done; send it again, with the same key."},
	idempotency.CodeDeadline:          {http.StatusServiceUnavailable, "The request took too long, and was undone; send it again, with the same key."},
	idempotency.CodeOutcomeUnknown:    {http.StatusServiceUnavailable, "Nobody knows whether it was committed: the same key tells, and does nothing twice."},
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
