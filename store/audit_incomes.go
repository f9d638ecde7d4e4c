package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paidonce/paidonce/order"
)

// AuditIncome is a row of incomes, and the events that it should have come with.
type AuditIncome struct {
	Income
	Entered *AuditEvent // that it was received; nil: there is none of its name
	Voided  *AuditEvent // that it was taken back; nil: there is none
	Payment uuid.UUID   // zero: there is none of its id
}

// Incomes calls each with all incomes of an account, by id, a page at a time.
func (a *AuditSnapshot) Incomes(ctx context.Context, account string, each func([]AuditIncome) error) error {
	var last uuid.UUID
	for {
		rows, _ := a.tx.Query(ctx, sqlIncomes+` WHERE i.account_id = $1 AND i.id > $2 ORDER BY i.id LIMIT $3`, account, last, auditPage)
		found, err := pgx.CollectRows(rows, scanIncome)
		if err != nil {
			return fmt.Errorf("read incomes of account %s: %w", account, err)
		}
		if len(found) == 0 {
			return nil
		}
		page := make([]AuditIncome, len(found))
		var keys []EventKey
		ids := make([]gatewayID, len(found))
		for i, in := range found {
			page[i].Income = in
			keys = append(keys, in.enteredKey(), in.voidedKey())
			ids[i] = gatewayID{account, order.Offline, in.ID.String()}
		}
		events := map[EventKey]*AuditEvent{}
		for len(keys) > 0 {
			n := min(len(keys), auditPage)
			some, err := a.eventsByKey(ctx, keys[:n])
			if err != nil {
				return err
			}
			for _, e := range some {
				events[e.EventKey] = e
			}
			keys = keys[n:]
		}
		roots, err := rootsOf(ctx, a.tx, ids)
		if err != nil {
			return err
		}
		for i := range page {
			p := &page[i]
			p.Entered, p.Voided, p.Payment = events[p.enteredKey()], events[p.voidedKey()], roots[ids[i]]
		}
		if err := each(page); err != nil {
			return err
		}
		last = found[len(found)-1].ID
	}
}

func (in *Income) enteredKey() EventKey {
	return EventKey{in.Account, APISource, incomeEventID(in.Ref, in.ID)}
}

func (in *Income) voidedKey() EventKey {
	return EventKey{in.Account, APISource, incomeVoidedID(in.ID)}
}

// HasIncomes reports, of events that say that money was received or taken back outside of gateways, which have a row of incomes.
func (a *AuditSnapshot) HasIncomes(ctx context.Context, events []*AuditEvent) (map[EventKey]bool, error) {
	var accounts, ids []string
	for _, e := range events {
		name := ""
		if len(e.Event.Payment) > 0 {
			name = e.Event.Payment[0]
		}
		accounts, ids = append(accounts, e.Account), append(ids, name)
	}
	has := map[EventKey]bool{}
	if len(ids) == 0 {
		return has, nil
	}
	rows, _ := a.tx.Query(ctx, `
		SELECT x.n - 1 FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS x(a, i, n)
		CROSS JOIN LATERAL (
			SELECT FROM incomes i WHERE i.account_id = x.a
				AND i.id = CASE WHEN x.i ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN x.i::uuid END LIMIT 1) i`, accounts, ids)
	var n int64
	_, err := pgx.ForEachRow(rows, []any{&n}, func() error {
		has[events[n].EventKey] = true
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find incomes of %d events: %w", len(events), err)
	}
	return has, nil
}
