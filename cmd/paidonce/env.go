package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/paidonce/paidonce/internal/app"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/internal/dev"
	"github.com/paidonce/paidonce/migrations"
	"github.com/paidonce/paidonce/store"
)

// file returns the configuration file to read; empty if there is none, which
// leaves the environment.
func (e *env) file() string {
	for _, name := range []string{e.config, e.getenv("PAIDONCE_CONFIG")} {
		if name != "" {
			return name
		}
	}
	for _, name := range []string{config.DefaultFile, dev.File} {
		if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			return name
		}
	}
	return ""
}

// load reads the configuration.
func (e *env) load() (*config.Config, error) {
	return config.Load(e.file(), e.getenv, e.environ...)
}

// loadAccounts is load for commands that need somebody's account.
func (e *env) loadAccounts() (*config.Config, error) {
	cfg, err := e.load()
	if err != nil {
		return nil, err
	}
	if len(cfg.Accounts) > 0 {
		return cfg, nil
	}
	if cfg.File() == "" {
		return nil, fmt.Errorf("there is no %s here; begin with paidonce config example > %[1]s, or try paidonce dev", config.DefaultFile)
	}
	return nil, fmt.Errorf("%s has no accounts; paidonce config example shows what one looks like", cfg.File())
}

// openStore connects to the database of the configuration, for a command that
// looks or changes something by hand. What it returns must be closed.
func (e *env) openStore(ctx context.Context) (*store.Store, func(), error) {
	cfg, err := e.load()
	if err != nil {
		return nil, nil, err
	}
	pool, err := app.OpenPool(ctx, cfg, "command", 2)
	if err != nil {
		switch _, none := os.Stat(dev.DatabaseFile); {
		case app.Unreachable(err) && cfg.File() == dev.File:
			err = fmt.Errorf("%w; is paidonce dev running here?", err)
		case cfg.DatabaseURL == "" && none == nil:
			err = fmt.Errorf("%w; for that of paidonce dev: export %s=file:$PWD/%s", err, config.Variable("database_url"), dev.DatabaseFile)
		case cfg.DatabaseURL == "" && cfg.File() == "":
			err = fmt.Errorf("%w; there is no %s here, nor what paidonce dev makes", err, config.DefaultFile)
		}
		return nil, nil, err
	}
	if err := migrations.Check(ctx, pool); err != nil {
		pool.Close()
		return nil, nil, err
	}
	st, err := store.New(pool, store.Options{})
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	return st, pool.Close, nil
}
