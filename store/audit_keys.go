package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// AuditKey is a row of idempotency_keys, of which the answer is not shown: only how its parts fit.
type AuditKey struct {
	Account, Kind, Key string
	ID                 uuid.UUID
	Status             string // PROCESSING, COMPLETED or FAILED
	Code               int    // 0: none
	Answered           bool   // some part of an answer is stored
	Raw, Sealed        bool   // the answer is stored to the byte; encrypted
	BodyFits           bool   // what is stored to be queried is what is stored to be sent
	ResourceType       string // empty: none
	Resource           uuid.UUID
	ResourceThere      bool // its row is there; true of types that this program does not know
}

// sqlResourceThere looks for what a key has made: the words are api's.
const sqlResourceThere = `CASE k.resource_type
	WHEN 'order' THEN EXISTS (SELECT FROM orders o WHERE o.account_id = k.account_id AND o.id = k.resource_id)
	WHEN 'income' THEN EXISTS (SELECT FROM incomes i WHERE i.account_id = k.account_id AND i.id = k.resource_id)
	WHEN 'recurrence' THEN EXISTS (SELECT FROM recurrences r WHERE r.account_id = k.account_id AND r.id = k.resource_id)
	WHEN 'transaction' THEN EXISTS (SELECT FROM transactions t WHERE t.account_id = k.account_id AND t.id = k.resource_id)
	ELSE true END`

// Keys calls each with all idempotency keys of an account, a page at a time.
func (a *AuditSnapshot) Keys(ctx context.Context, account string, each func([]AuditKey) error) error {
	last := AuditKey{}
	var owner uuid.UUID
	for {
		rows, _ := a.tx.Query(ctx, `
			SELECT k.account_id, k.scope_kind, k.user_id, k.idempotency_key, k.id, k.status, coalesce(k.response_code, 0),
				k.response_code IS NOT NULL OR k.response_headers IS NOT NULL OR k.response_body IS NOT NULL OR k.response_raw IS NOT NULL OR k.completed_at IS NOT NULL,
				CASE WHEN NOT k.sealed THEN k.response_raw END, k.response_raw IS NOT NULL, k.sealed, k.response_body,
				coalesce(k.resource_type, ''), k.resource_id, `+sqlResourceThere+`
			FROM idempotency_keys k
			WHERE k.account_id = $1 AND (k.scope_kind, k.user_id, k.idempotency_key) > ($2, $3, $4)
			ORDER BY k.scope_kind, k.user_id, k.idempotency_key LIMIT $5`, account, last.Kind, owner, last.Key, auditPage)
		page, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k AuditKey, err error) {
			var (
				raw, body []byte
				resource  pgtype.UUID
			)
			err = row.Scan(&k.Account, &k.Kind, &owner, &k.Key, &k.ID, &k.Status, &k.Code, &k.Answered, &raw, &k.Raw, &k.Sealed, &body,
				&k.ResourceType, &resource, &k.ResourceThere)
			k.Resource = resource.Bytes
			k.BodyFits = body == nil || k.Raw && !k.Sealed && sameJSON(json.RawMessage(body), json.RawMessage(raw))
			return k, err
		})
		if err != nil {
			return fmt.Errorf("read idempotency keys of account %s: %w", account, err)
		}
		if len(page) == 0 {
			return nil
		}
		if err := each(page); err != nil {
			return err
		}
		last = page[len(page)-1]
	}
}
