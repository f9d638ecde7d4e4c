package egress_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/egress"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 9, 21, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"120": 2 * time.Minute, "0": 0, "": 0, "soon": 0, "-5": 0, "+5": 0, "5 s": 0,
		"2.0": 2 * time.Second, "2.5": 3 * time.Second, "0.5": time.Second, "0.0": 0, "2.": 0, ".5": 0, "2.x": 0, "1.2.3": 0, "-1.5": 0,
		"2147483648": egress.MaxRetryAfter, "99999999999999999999": egress.MaxRetryAfter,
		noon.Add(time.Hour).Format(http.TimeFormat): time.Hour, noon.Add(-time.Hour).Format(http.TimeFormat): 0,
	} {
		require.Equal(t, want, egress.RetryAfter(value, noon), value)
	}
}
