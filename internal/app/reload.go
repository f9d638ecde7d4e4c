package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"strings"
	"syscall"

	"github.com/paidonce/paidonce/internal/config"
)

// OnHangup returns a channel for [Edges].Reload that delivers at every SIGHUP
// until ctx ends.
func OnHangup(ctx context.Context) <-chan func(error) {
	signals, out := make(chan os.Signal, 1), make(chan func(error))
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		defer signal.Stop(signals)
		for {
			select {
			case <-signals:
				select {
				case out <- func(error) {}:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// reloadLoop reads the configuration again when asked to, until ctx ends.
func (p *program) reloadLoop(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case tell := <-p.edges.Reload:
			tell(p.reload(ctx))
		}
	}
}

// reload puts the accounts of the new configuration into force. On any problem
// the old one stays as it is.
func (p *program) reload(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			p.log.ErrorContext(ctx, "configuration not reloaded: the old one stays in force", "err", err)
		}
	}()
	if p.edges.Load == nil {
		return errors.New("this program has no configuration to read again")
	}
	next, err := p.edges.Load()
	if err != nil {
		return err
	}
	if err := p.checkSources(ctx, next); err != nil {
		return err
	}
	if err := p.enterAccounts(ctx, next); err != nil {
		return err
	}
	old := p.live.config()
	p.live.set(next)
	p.log.InfoContext(ctx, "configuration reloaded", "config", next)
	if changed := needRestart(old, next); len(changed) > 0 {
		p.log.WarnContext(ctx, "these settings change only with a restart", "settings", strings.Join(changed, ", "))
	}
	p.resumeSoon()
	return nil
}

// enterAccounts makes the rows that all others of an account refer to.
func (p *program) enterAccounts(ctx context.Context, cfg *config.Config) error {
	if err := p.store.EnsureAccounts(ctx, cfg.AccountNames()); err != nil {
		return fmt.Errorf("enter the accounts: %w", err)
	}
	return nil
}

// needRestart names the settings in which two configurations differ and which a
// reload leaves as they were: all but the accounts.
func needRestart(old, next *config.Config) []string {
	var changed []string
	a, b := reflect.ValueOf(*old), reflect.ValueOf(*next)
	for f := range a.Type().Fields() {
		if !f.IsExported() || f.Name == "Accounts" {
			continue
		}
		if !reflect.DeepEqual(a.FieldByIndex(f.Index).Interface(), b.FieldByIndex(f.Index).Interface()) {
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			changed = append(changed, name)
		}
	}
	return changed
}
