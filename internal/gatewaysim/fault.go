package gatewaysim

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/paidonce/paidonce/gateway"
)

// Fault is how an API fails.
type Fault struct {
	// Status is answered. Default 503, or 200 where Answer says what.
	Status int

	// RetryAfter is sent along, in whole seconds.
	RetryAfter time.Duration

	// Location is sent along: a redirect.
	Location string

	// Answer is the body: "garbage" is a page in HTML, "oversize" 8 MiB of JSON;
	// "hang" is no answer at all until the caller hangs up. Default: none.
	Answer string

	// Times is how often it fails. Default: until another Fault.
	Times int
}

// Answers of a [Fault].
const (
	Garbage  = "garbage"
	Oversize = "oversize"
	Hang     = "hang"
)

// Fail makes calls about an object of a source fail; for the zero Object all of
// its API, tokens too. nil: no longer.
func (s *Sim) Fail(source string, o gateway.Object, f *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.sources[source]
	switch {
	case a == nil:
	case o == gateway.Object{}:
		a.fault = f.clone()
	default:
		a.object(o).fault = f.clone()
	}
}

// FailKey makes the host of the certificate at a URL fail, for all sources.
func (s *Sim) FailKey(url string, f *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key := s.keys[url]; key != nil {
		key.fault = f.clone()
	}
}

func (f *Fault) clone() *Fault {
	if f == nil {
		return nil
	}
	c := *f
	if c.Times == 0 {
		c.Times = -1
	}
	return &c
}

// take returns the fault if it is not over, once less often from then on.
func (f *Fault) take() *Fault {
	if f == nil || f.Times == 0 {
		return nil
	}
	if f.Times > 0 {
		f.Times--
	}
	return f
}

// fail answers as a fault says.
func (s *Sim) fail(w http.ResponseWriter, r *http.Request, f *Fault) {
	if f.Answer == Hang {
		select {
		case <-r.Context().Done():
		case <-s.closing:
		}
		panic(http.ErrAbortHandler) // not even an empty answer
	}
	status := f.Status
	switch {
	case status != 0:
	case f.Location != "":
		status = http.StatusFound
	case f.Answer != "":
		status = http.StatusOK
	default:
		status = http.StatusServiceUnavailable
	}
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter.Seconds())))
	}
	if f.Location != "" {
		w.Header().Set("Location", f.Location)
	}
	w.WriteHeader(status)
	switch f.Answer {
	case Garbage:
		_, _ = w.Write([]byte("<html><body>It works!</body></html>"))
	case Oversize:
		_, _ = w.Write([]byte(`"` + strings.Repeat("a", 8<<20) + `"`))
	}
}
