// Package audittest audits the database of a test: whatever a test has done to it through this program, it agrees with itself.
package audittest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paidonce/paidonce/internal/audit"
	"github.com/paidonce/paidonce/store"
)

// Clean fails the test if an audit of the database finds a difference. It sees one moment, so that it may be called while others write.
func Clean(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	CleanAccount(t, pool, "")
}

// CleanAccount is [Clean] for one account.
func CleanAccount(t testing.TB, pool *pgxpool.Pool, account string) {
	t.Helper()
	found, err := Differences(context.WithoutCancel(t.Context()), pool, account)
	if err != nil {
		t.Fatalf("audit: %v", err)
	}
	if len(found) > 0 {
		t.Fatalf("the audit finds %d differences:\n%s", len(found), strings.Join(found, "\n"))
	}
}

// most bounds how many differences are told.
const most = 20

// Differences are what an audit of an account (empty: all) finds, a line each; of many the first.
func Differences(ctx context.Context, pool *pgxpool.Pool, account string) ([]string, error) {
	st, err := store.New(pool, store.Options{})
	if err != nil {
		return nil, err
	}
	var found []string
	sum, err := audit.Run(ctx, st, audit.Options{Account: account, Each: func(d audit.Difference) error {
		if len(found) < most {
			line := d.String()
			for i, e := range d.Events {
				line += fmt.Sprintf("\n    %d. event %s of source %s", i+1, e.ID, e.Source)
			}
			found = append(found, line)
		}
		return nil
	}})
	if err == nil && sum.Differences > len(found) {
		found = append(found, fmt.Sprintf("… and %d more", sum.Differences-len(found)))
	}
	return found, err
}
