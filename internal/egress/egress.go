// Package egress is how the program calls strangers: only where it is allowed to
// ([PublicDial]), only while they answer ([Circuits]), and not before they said
// ([RetryAfter]), with workers shared out among accounts ([Share]). Merchants' callbacks and gateways' APIs are called through it.
package egress

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxRetryAfter is what [RetryAfter] makes of a number that is too great to be
// one of seconds: longer than any caller waits.
const MaxRetryAfter = (1<<31 - 1) * time.Second

// RetryAfter reads the two forms of the header, seconds and a date; 0 if it is
// neither, or in the past. Parts of a second, which Shopify writes ("2.0"), are
// rounded up.
// https://www.rfc-editor.org/rfc/rfc9110#name-retry-after
func RetryAfter(v string, now time.Time) time.Duration {
	var more time.Duration
	if whole, part, ok := strings.Cut(v, "."); ok && part != "" && strings.Trim(part, "0123456789") == "" {
		v = whole
		if strings.Trim(part, "0") != "" {
			more = time.Second
		}
	}
	n, err := strconv.ParseUint(v, 10, 31)
	switch {
	case err == nil:
		return time.Duration(n)*time.Second + more
	case errors.Is(err, strconv.ErrRange):
		return MaxRetryAfter
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(0, t.Sub(now))
	}
	return 0
}
