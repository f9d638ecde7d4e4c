package scenario

import (
	"context"

	"github.com/paidonce/paidonce/internal/audit"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/internal/reevaluate"
	"github.com/paidonce/paidonce/store"
)

// mostDifferences is how many differences of one scenario are told.
const mostDifferences = 10

// audit notes what in the scenario's account does not agree: with itself, and with the bytes that came.
func (p *play) audit(ctx context.Context) error {
	st, err := store.New(p.target.Pool, store.Options{})
	if err != nil {
		return err
	}
	account := accountOf(p.scenario.Name)
	reader := reevaluate.Reader{Config: &config.Config{Accounts: map[string]config.Account{account: p.actor.account}}}
	told := 0
	sum, err := audit.Run(ctx, st, audit.Options{
		Account: account, Read: reader.Read, Same: reevaluate.Same,
		Each: func(d audit.Difference) error {
			if told++; told <= mostDifferences {
				p.wrong("audit: %s", d)
			}
			return nil
		},
	})
	if err == nil && sum.Differences > mostDifferences {
		p.wrong("audit: %d differences in all", sum.Differences)
	}
	return err
}
