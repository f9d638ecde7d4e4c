package e2e_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/internal/audit/audittest"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/internal/scenario/cases"
	"github.com/paidonce/paidonce/internal/scenario/merchant"
	"github.com/paidonce/paidonce/internal/scenario/network"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// TestCases plays every failure case of a folder, each as a subtest named by its id.
func TestCases(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("PAIDONCE_CASES")
	switch _, err := os.Stat(dir); {
	case dir == "":
		dir = filepath.Join("..", "testdata", "cases")
	case err != nil && !filepath.IsAbs(dir):
		dir = filepath.Join("..", dir) // as seen from where go test was called
	}
	playFolder(t, dir)
}

func playFolder(t *testing.T, dir string) {
	t.Helper()
	files, err := cases.Load(dir)
	require.NoError(t, err)
	for _, file := range files {
		c, err := cases.Parse(file.Data)
		if err != nil {
			t.Run(file.Name, func(t *testing.T) { t.Errorf("%s: %v", file.Path, err) })
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			switch err := play(t, c); {
			case errors.As(err, new(*cases.SkipError)):
				t.Skip(err)
			case err != nil:
				t.Errorf("%s: %s\n%v", c.ID, c.Title, err)
			}
		})
	}
}

// play plays one case on stages that end with the test.
func play(t *testing.T, c *cases.Case) error {
	t.Helper()
	return cases.Run(t.Context(), c, cases.Options{
		HasGateway: func(name string) bool {
			_, ok := gateway.Lookup(name)
			return ok
		},
		Note: func(text string) { t.Log(text) },
		Open: func(ctx context.Context, c *cases.Case) (*cases.Stage, error) { return openStage(ctx, t, c) },
	})
}

// The merchant of all stages. The network knows it by its name.
const (
	merchantHost   = "merchant.test"
	callbackURL    = "http://merchant.test/paidonce"
	callbackSecret = "whsec_ZTJlLW1lcmNoYW50LWNhbGxiYWNrLXNlY3JldC0wMDE="
)

// apiKeys are keys of the two accounts.
var apiKeys = map[string]string{cases.AccountA: "key_e2e_account_a_0001", cases.AccountB: "key_e2e_account_b_0001"}

// openStage makes what a case plays on, and starts one serve and one work.
func openStage(ctx context.Context, t *testing.T, c *cases.Case) (*cases.Stage, error) {
	t.Helper()
	url := storetest.OpenURL(t)
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, err
	}
	stage, p, err := newStage(t, url, pool, c.NeedsProcesses(), settingsOf(c))
	if err != nil {
		return nil, err
	}
	end := stage.Close
	stage.Close = func() {
		end()
		pool.Close()
	}
	if err := p.SetClock(time.Unix(c.Now, 0)); err != nil {
		return nil, err
	}
	if c.Setup.Refused() {
		return stage, nil
	}
	if err := startBoth(ctx, p); err != nil {
		stage.Close()
		return nil, err
	}
	return stage, nil
}

// newStage makes everything around a program that is still to be started.
func newStage(t *testing.T, url string, pool *pgxpool.Pool, processes bool, conf settings) (*cases.Stage, *program, error) {
	t.Helper()
	st, err := store.New(pool, store.Options{})
	if err != nil {
		return nil, nil, err
	}
	keys, err := idempotency.NewStore(pool, idempotency.StoreOptions{})
	if err != nil {
		return nil, nil, err
	}
	s := &cases.Stage{Pool: pool, Store: st, APIKeys: apiKeys, SweepKeys: func(ctx context.Context) error {
		_, err := keys.Sweep(ctx)
		return err
	}, Audit: func(ctx context.Context) ([]string, error) {
		return audittest.Differences(ctx, pool, "")
	}}
	var p *program
	s.Merchant, err = merchant.New(merchant.Options{
		Secrets: func() []string { return []string{callbackSecret} },
		Now:     func() time.Time { return p.clock() },
	})
	if err != nil {
		return nil, nil, err
	}
	s.Network, err = network.New(network.Options{MerchantHost: merchantHost, Merchant: s.Merchant, Authority: authority, Outside: conf.outside})
	if err != nil {
		return nil, nil, err
	}
	p, err = newProgram(t.TempDir(), url, s.Network.Addr(), processes, conf)
	if err != nil {
		return nil, nil, err
	}
	s.Program = p
	s.Close = func() {
		s.Merchant.Close()
		p.close()
		s.Network.Close()
	}
	return s, p, nil
}

// startBoth starts one of each.
func startBoth(ctx context.Context, p *program) error {
	for _, process := range []string{"serve", "work"} {
		if err := p.Start(ctx, process, 1); err != nil {
			return errors.Join(err, errors.New(tail(p.Logs())))
		}
	}
	return nil
}

// tail is the end of a log.
func tail(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// settingsOf is the configuration of a case: its sources, as they stand, are account A's.
func settingsOf(c *cases.Case) settings {
	s := plainSettings()
	a := s.Accounts[cases.AccountA]
	for id, source := range c.Setup.Sources {
		a.Sources[id] = source
	}
	return s
}

// plainSettings has the two accounts, without sources. Pools are small: many
// programs share one server.
func plainSettings() settings {
	s := settings{
		Listen: "127.0.0.1:0", AdminListen: "off",
		Log:      map[string]any{"level": "debug"},
		Pool:     map[string]any{"serve": 8, "work": 10},
		Workers:  map[string]any{"count": 6, "admin_listen": "off"},
		Accounts: make(map[string]account),
	}
	for name, key := range apiKeys {
		sum := sha256.Sum256([]byte(key))
		s.Accounts[name] = account{
			APIKeys: []config.APIKey{{
				Name: "e2e", SHA256: hex.EncodeToString(sum[:]), Roles: []string{config.RoleRead, config.RoleWrite, config.RoleOperate},
			}},
			Callback: map[string]any{"url": callbackURL, "secret": callbackSecret, "allow_private": true},
			Sources:  make(map[string]json.RawMessage),
		}
	}
	return s
}
