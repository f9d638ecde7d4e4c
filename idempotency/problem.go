package idempotency

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// The codes of the middleware's own answers, all application/problem+json, none of them ever stored.
const (
	CodeKeyMissing        = "idempotency_key_missing"        // 400: the route requires a key
	CodeKeyInvalid        = "idempotency_key_invalid"        // 400: the header is there, and no key
	CodeBodyInvalid       = "idempotency_body_invalid"       // 400: the body cannot be compared with another; nothing was recorded
	CodeBodyTooSlow       = "idempotency_body_too_slow"      // 408: the body did not arrive in time; nothing was recorded
	CodeUnauthenticated   = "unauthenticated"                // 401: Options.Scope knows nobody
	CodeReplayForbidden   = "idempotency_replay_forbidden"   // 403: Options.Authorize refused the stored answer
	CodeKeyInProgress     = "idempotency_key_in_progress"    // 409: a call with this key is being executed; same key, later
	CodeResultUnavailable = "idempotency_result_unavailable" // 409: it was done, and its answer was not kept
	CodeBodyTooLarge      = "idempotency_body_too_large"     // 413: with a key, bodies have a limit
	CodeKeyReused         = "idempotency_key_reused"         // 422: the key stands for another request
	CodeFailed            = "idempotency_not_committed"      // 500: done, but could not be committed, so not done; 503: try again
	CodeUnavailable       = "idempotency_unavailable"        // 503: the keys cannot be read; nothing was done
	CodeDeadline          = "idempotency_deadline_exceeded"  // 503: it took too long, and was undone
	CodeOutcomeUnknown    = "idempotency_outcome_unknown"    // 503: the same key again will tell, and do nothing twice
	CodeMisconfigured     = "internal"                       // 500: no scope, or no valid policy
)

var titles = map[string]string{
	CodeKeyMissing:        "Idempotency-Key is missing",
	CodeKeyInvalid:        "Idempotency-Key is malformed",
	CodeBodyInvalid:       "The body cannot be read unambiguously",
	CodeBodyTooSlow:       "The body did not arrive in time",
	CodeUnauthenticated:   "Not authenticated",
	CodeReplayForbidden:   "The stored answer is not for this caller any more",
	CodeKeyInProgress:     "A request is outstanding for this Idempotency-Key",
	CodeResultUnavailable: "The request was done, and its answer was not kept",
	CodeBodyTooLarge:      "The body is too large to come with an Idempotency-Key",
	CodeKeyReused:         "Idempotency-Key is already used",
	CodeFailed:            "The request was not committed",
	CodeUnavailable:       "Idempotency-Key cannot be looked up now",
	CodeDeadline:          "The request took too long",
	CodeOutcomeUnknown:    "The outcome is not known yet",
	CodeMisconfigured:     "Internal error",
}

// problem is an error as the caller sees it (RFC 9457).
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`

	Errors    []fieldError `json:"errors,omitempty"`
	DiffersAt []string     `json:"differs_at,omitempty"` // JSON pointers into the body of this call
	Resource  *resource    `json:"resource,omitempty"`

	retryAfter time.Duration // 0: none
	status     string        // of the Idempotency-Status header
	link       string        // where the result is
	close      bool          // of the connection: the body was not read to its end
}

type fieldError struct {
	Pointer string `json:"pointer"`
	Code    string `json:"code"`
	Detail  string `json:"detail"`
}

type resource struct {
	Type string    `json:"type"`
	ID   uuid.UUID `json:"id"`
	Href string    `json:"href,omitempty"`
}

func newProblem(status int, code, detail string) *problem {
	return &problem{Title: titles[code], Status: status, Code: code, Detail: detail}
}

// docs is where the codes are explained unless Options.DocsURL says otherwise.
const docs = "https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header"

func (m *Middleware) write(w http.ResponseWriter, p *problem) {
	h := w.Header()
	p.Type = m.docs + "#" + url.PathEscape(p.Code)
	body, err := json.Marshal(p)
	if err != nil { // a struct of strings
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Add("Link", "<"+m.docs+`>; rel="describedby"`)
	if p.link != "" {
		h.Add("Link", "<"+p.link+`>; rel="related"`)
	}
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((p.retryAfter+time.Second-1)/time.Second), 10))
	}
	if p.status != "" {
		h.Set(HeaderStatus, p.status)
	}
	if p.close {
		h.Set("Connection", "close")
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body)
}

func inProgress(left time.Duration) *problem {
	p := newProblem(http.StatusConflict, CodeKeyInProgress, "a request with this key is being executed; send it again with the same key")
	p.retryAfter, p.status = max(left, time.Second), StatusInProgress
	return p
}

func unavailable(detail string) *problem {
	p := newProblem(http.StatusServiceUnavailable, CodeUnavailable, detail)
	p.retryAfter = time.Second
	return p
}
