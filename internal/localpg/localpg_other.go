//go:build !unix

package localpg

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

var usualFolders []string

// Start always fails here: it takes flock, process groups and users.
func Start(_ context.Context, o Options) (*Server, error) {
	if _, err := o.withDefaults(); err != nil {
		return nil, err
	}
	return nil, &NotFoundError{Looked: []string{"on " + runtime.GOOS + " no private server can be started"}}
}

// Stop does nothing here.
func (s *Server) Stop() error { return nil }

// DefaultDir returns the directory of the cluster that belongs to key.
func DefaultDir(key string, _ func(string) string) string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("paidonce-%x", key))
}

func cacheDir(func(string) string) string { return os.TempDir() }
