package app_test

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/app"
)

// Memory is collected less often than Go would, unless GOGC says how often. Not
// parallel: the setting is the process's.
func TestTuneMemoryLeavesGOGCAlone(t *testing.T) {
	was := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(was) })
	for _, tt := range []struct{ before, after int }{{100, 400}, {50, 50}, {-1, -1}, {800, 800}} {
		debug.SetGCPercent(tt.before)
		app.TuneMemory()
		require.Equal(t, tt.after, debug.SetGCPercent(100))
	}
}
