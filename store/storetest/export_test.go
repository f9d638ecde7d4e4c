package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	ClosePool    = closePool
	WithDatabase = withDatabase
	ModuleRoot   = moduleRoot
)

// Maintenance returns a pool on the server's own database.
func Maintenance(t testing.TB) *pgxpool.Pool {
	t.Helper()
	s, err := theServer()
	if err != nil {
		t.Fatal(err)
	}
	return s.admin
}

// NewOwner registers with the server as another process would. Whatever it has left behind may be swept
// when leave has been called.
func NewOwner(t testing.TB) (create func() string, leave func()) {
	t.Helper()
	s, err := theServer()
	if err != nil {
		t.Fatal(err)
	}
	other, err := connect(t.Context(), s.url(""), s.url)
	if err != nil {
		t.Fatal(err)
	}
	create = func() string {
		name := other.newName()
		if err := other.empty(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		return name
	}
	leave = func() {
		other.admin.Close()
		if err := other.alive.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	return create, leave
}

// Template returns the name of the template of this process's server.
func Template(t testing.TB) string {
	t.Helper()
	s, err := theServer()
	if err != nil {
		t.Fatal(err)
	}
	name, err := s.ensureTemplate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// SetPatience changes how long a pool may take to close, until the test ends.
func SetPatience(t testing.TB, d time.Duration) {
	t.Helper()
	old := patience
	patience = d
	t.Cleanup(func() { patience = old })
}
