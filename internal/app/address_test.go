package app_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/app"
)

func TestURL(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]string{
		":8080":            "http://127.0.0.1:8080",
		"0.0.0.0:8080":     "http://127.0.0.1:8080",
		"[::]:8080":        "http://127.0.0.1:8080",
		"127.0.0.1:8080":   "http://127.0.0.1:8080",
		"[::1]:8080":       "http://[::1]:8080",
		"shop.example:443": "http://shop.example:443",
	} {
		require.Equal(t, want, app.URL(listen))
	}
}
