package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paidonce/paidonce/order"
)

// AuditLoosePayment is a payment that stands on no order: nobody has named one yet, or it was merged into another payment.
type AuditLoosePayment struct {
	AuditPayment
	Into uuid.UUID            // zero: it was not merged
	Refs map[string]uuid.UUID // as of an order
}

// LoosePayments calls each with the payments of an account that stand on no order, by id, a page at a time. Call it after
// [AuditSnapshot.Strays].
func (a *AuditSnapshot) LoosePayments(ctx context.Context, account string, each func([]*AuditLoosePayment) error) error {
	var last uuid.UUID
	for {
		rows, _ := a.tx.Query(ctx, `
			SELECT p.account_id, p.id, p.merged_into, p.ledger FROM payments p
			WHERE p.account_id = $1 AND p.id > $2 AND p.order_id IS NULL ORDER BY p.id LIMIT $3`, account, last, auditPage)
		page, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*AuditLoosePayment, error) {
			var (
				p    AuditLoosePayment
				into pgtype.UUID
				doc  []byte
			)
			if err := row.Scan(&p.Account, &p.ID, &into, &doc); err != nil {
				return nil, err
			}
			p.Into, p.Ledger = into.Bytes, order.NewLedger()
			p.Unreadable = why(json.Unmarshal(doc, p.Ledger))
			return &p, nil
		})
		if err != nil {
			return fmt.Errorf("read payments of account %s: %w", account, err)
		}
		if len(page) == 0 {
			return nil
		}
		var alone []*AuditPayment
		for _, p := range page {
			if p.Into == uuid.Nil {
				alone = append(alone, &p.AuditPayment)
			}
		}
		if err := a.eventsOf(ctx, alone); err != nil {
			return fmt.Errorf("read events of payments of account %s: %w", account, err)
		}
		refs, err := a.refsOf(ctx, alone)
		if err != nil {
			return fmt.Errorf("find what payments of account %s name: %w", account, err)
		}
		for _, p := range page {
			p.Refs = refs[account]
		}
		if err := each(page); err != nil {
			return err
		}
		last = page[len(page)-1].ID
	}
}

// PaymentIDs calls each with how many ids of an account were looked at, and those that lead to a payment which does not know
// them, though it knows others and though no event that waits for its source to resume names them.
func (a *AuditSnapshot) PaymentIDs(ctx context.Context, account string, each func(seen int, strays []AuditStray) error) error {
	var last gatewayID
	for {
		rows, _ := a.tx.Query(ctx, `
			SELECT i.realm, i.id FROM payment_ids i
			WHERE i.account_id = $1 AND (i.realm, i.id) > ($2, $3) ORDER BY i.realm, i.id LIMIT $4`, account, last.realm, last.id, auditPage)
		page, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (gatewayID, error) {
			k := gatewayID{account: account}
			return k, row.Scan(&k.realm, &k.id)
		})
		if err != nil {
			return fmt.Errorf("read payment ids of account %s: %w", account, err)
		}
		if len(page) == 0 {
			return nil
		}
		strays, err := a.straysOf(ctx, page)
		if err != nil {
			return fmt.Errorf("follow payment ids of account %s: %w", account, err)
		}
		if err := each(len(page), strays); err != nil {
			return err
		}
		last = page[len(page)-1]
	}
}

func (a *AuditSnapshot) straysOf(ctx context.Context, page []gatewayID) ([]AuditStray, error) {
	accounts, realms, names := idColumns(page)
	rows, _ := a.tx.Query(ctx, sqlLeads, accounts, realms, names)
	var (
		n      int64
		l      lead
		astray []gatewayID
		leads  = map[gatewayID]uuid.UUID{}
	)
	if _, err := pgx.ForEachRow(rows, []any{&n, &l.root, &l.knows, &l.empty}, func() error {
		id := page[n]
		if !l.knows && !l.empty && !slices.Contains(a.extra[paymentKey{id.account, l.root}], id.id) {
			astray, leads[id] = append(astray, id), l.root
		}
		return nil
	}); err != nil || len(astray) == 0 {
		return nil, err
	}
	known, err := a.whoKnows(ctx, astray)
	if err != nil {
		return nil, err
	}
	var out []AuditStray
	for _, id := range astray {
		// An event that came again with other facts while its source was paused has its ids, and no facts in the ledger yet.
		var waits bool
		if err := a.tx.QueryRow(ctx, `
			SELECT EXISTS (SELECT FROM processed_events e WHERE e.account_id = $1 AND e.outcome = 'waiting' AND e.reason = $2 AND e.realm = $3
				AND e.facts -> 'payment' ? $4)`, id.account, ReasonSourcePaused, id.realm, id.id).Scan(&waits); err != nil {
			return nil, err
		}
		if !waits {
			out = append(out, AuditStray{Account: id.account, Realm: id.realm, ID: id.id, Leads: leads[id], Known: known[id]})
		}
	}
	return out, nil
}
