package receiver

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"
)

// Reasons of a refusal that are not a signature's own. They are values of a label and keys of a log: never change one.
const (
	reasonUnknownPath   = "unknown_path"
	reasonUnknownSource = "unknown_source"
	reasonMethod        = "method"
	reasonTooBig        = "too_big"
	reasonTooSlow       = "too_slow"
	reasonCutShort      = "cut_short"
	reasonUnverified    = "unverified"
	reasonUnreadable    = "unreadable"
	reasonOverload      = "overload"
	reasonDeadline      = "deadline"
	reasonIngest        = "ingest"
	reasonNoGateway     = "no_gateway"
	reasonNoVerifier    = "no_verifier"
	reasonVerifier      = "verifier"
	reasonNoAnnouncer   = "no_announcer"
	reasonAnnounce      = "announce"
	reasonTooManyOpen   = "too_many_open"
	reasonPanic         = "panic"
)

// refusal is why a delivery is not answered 200.
type refusal struct {
	status     int
	reason     string        // for the log and the metrics
	err        error         // for the log; holds no bytes of the delivery
	retryAfter time.Duration // of a 429; a 503 always has Options.RetryAfter
}

// said is all that a caller is told, by status. A refusal never says more than this.
var said = map[int]string{
	http.StatusBadRequest:            "the body could not be read\n",
	http.StatusUnauthorized:          "the signature was not accepted\n",
	http.StatusNotFound:              "nothing here\n",
	http.StatusMethodNotAllowed:      "webhooks are sent with POST\n",
	http.StatusRequestTimeout:        "the body came too slowly\n",
	http.StatusRequestEntityTooLarge: "the body is too large\n",
	http.StatusTooManyRequests:       "too many refused deliveries\n",
	http.StatusServiceUnavailable:    "not stored, please send it again\n",
}

// step is one way to handle a request: it returns nil for a 200 that l describes, or a refusal. It does not write.
type step func(w http.ResponseWriter, r *http.Request, l *record) *refusal

// serve runs a step, writes its answer, and then its one log line.
func (rc *Receiver) serve(do step) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		l := &record{began: rc.opts.Now(), remote: rc.sender(r)}
		refused := guarded(do, w, r, l)
		rc.answer(w, r, l, refused)
		rc.metrics.count(l)
		rc.log(r.Context(), l, refused)
	}
}

// guarded turns a panic into a 503: it can only be a bug, nothing was answered, and the gateway keeps the delivery.
func guarded(do step, w http.ResponseWriter, r *http.Request, l *record) (refused *refusal) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		//nolint:errorlint // a panic value is compared, not unwrapped, as net/http does
		if v == http.ErrAbortHandler {
			panic(v)
		}
		// The text of a runtime error holds types and indices; any other value may quote the body.
		var bug runtime.Error
		err := fmt.Errorf("panic: %T", v)
		if e, ok := v.(error); ok && errors.As(e, &bug) {
			err = fmt.Errorf("panic: %w", bug)
		}
		l.stack = string(debug.Stack())
		refused = &refusal{status: http.StatusServiceUnavailable, reason: reasonPanic, err: err}
	}()
	return do(w, r, l)
}

// answer writes the response: the only function that does.
func (rc *Receiver) answer(w http.ResponseWriter, r *http.Request, l *record, refused *refusal) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if refused == nil {
		l.status = http.StatusOK
		if l.ackType != "" {
			h.Set("Content-Type", l.ackType)
		} else {
			h.Set("Content-Type", "text/plain; charset=utf-8")
		}
		l.write(w, l.ackBody)
		return
	}

	l.status, l.reason = refused.status, refused.reason
	h.Set("Content-Type", "text/plain; charset=utf-8")
	switch refused.status {
	case http.StatusMethodNotAllowed:
		h.Set("Allow", http.MethodPost)
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", seconds(rc.opts.RetryAfter))
	case http.StatusTooManyRequests:
		h.Set("Retry-After", seconds(refused.retryAfter))
	}
	if r.ContentLength != 0 && !l.read {
		// The rest of the body is not waited for: without this, net/http reads on to keep the connection.
		h.Set("Connection", "close")
	}
	l.write(w, said[refused.status])
}

// write sends status and body. An error means that the caller is gone; what was committed stays so, and its next
// try is a duplicate.
func (l *record) write(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(l.status)
	if _, err := w.Write([]byte(body)); err != nil && !errors.Is(err, http.ErrBodyNotAllowed) {
		l.unsent = err
	}
}

// seconds is d as Retry-After wants it: whole, rounded up, at least 1.
func seconds(d time.Duration) string {
	return strconv.FormatInt(max(1, int64((d+time.Second-1)/time.Second)), 10)
}

// errAttr is an error as a log attribute.
func errAttr(err error) slog.Attr { return slog.String("err", err.Error()) }
