//go:build unix

package localpg

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Start returns a server in o.Dir, joining the one that runs there or starting it. A
// server it started has been initialised if the directory was empty.
// If there is no PostgreSQL to be had the error is a [*NotFoundError].
//
// The server runs until Stop or the end of this process, and on while other
// processes use it. ctx bounds only the start.
func Start(ctx context.Context, o Options) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c, err := openCluster(o)
	if err != nil {
		return nil, err
	}
	start, err := lockFile(ctx, c.path("start.lock"), exclusive)
	if err != nil {
		return nil, err
	}
	defer start.Close()
	// From here on the keeper cannot find the server unused.
	users, err := lockFile(ctx, c.path("users.lock"), shared)
	if err != nil {
		return nil, err
	}
	s, err := c.joinOrStart(ctx, o)
	if err != nil {
		users.Close()
		return nil, err
	}
	s.users, s.dir, s.linger = users, c.dir, o.Linger
	return s, nil
}

// Stop ends this process's use of the server. If it was the last user and
// Linger is 0, Stop returns when the server has shut down; otherwise the
// server runs on for the others, or for the time it lingers. A second Stop does nothing.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == nil {
		return nil
	}
	users := s.users
	s.users = nil
	defer users.Close()
	if s.linger > 0 {
		return nil
	}

	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	c := cluster{dir: s.dir}
	// No newcomer may look like a user while we find out whether there are any.
	start, err := lockFile(ctx, c.path("start.lock"), exclusive)
	if err != nil {
		return err
	}
	defer start.Close()
	last, err := tryLock(users, exclusive)
	if err != nil {
		return err
	}
	if !last {
		// Other users share the lock; the keeper, if it was faster than we are, does not.
		if others, err := tryLock(users, shared); others || err != nil {
			return err
		}
	}
	if err := unlock(users); err != nil {
		return err
	}
	gone, err := lockFile(ctx, c.path("keeper.lock"), shared)
	if err != nil {
		return fmt.Errorf("localpg: the server in %s has not shut down: %w", s.dir, err)
	}
	return gone.Close()
}

// connect opens a connection to the server's own database.
func (s *Server) connect(ctx context.Context) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(s.URL(""))
	if err != nil {
		return nil, fmt.Errorf("localpg: %w", err)
	}
	cfg.ConnectTimeout = 10 * time.Second
	return pgx.ConnectConfig(ctx, cfg)
}

// ask fills in what only the server knows, and so proves that it answers.
func (s *Server) ask(ctx context.Context) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return fmt.Errorf("localpg: the server in %s does not answer: %w", s.dir, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	s.version, _, _ = strings.Cut(conn.PgConn().ParameterStatus("server_version"), " ") // Debian adds its own
	if s.version == "" {
		return errors.New("localpg: the server does not name its version")
	}
	return nil
}
