package store

import (
	"fmt"
	"strings"

	"github.com/paidonce/paidonce/order"
)

// What is read of each account, the oldest first. $1 are the accounts and $2 the limit; where rows must be looked through that are not
// all to be listed, $3 is how many at most, and $4 before when something must have begun. What partial indexes stand for is written out.

const ofAccounts = ` FROM unnest($1::text[]) AS a(id) CROSS JOIN LATERAL `

// Code words of transactions that tell a person what to mend: see [Transaction].Code.
const (
	CodeCredentialsDenied = "credentials_denied"     // the gateway does not take the source's credentials
	CodeCannotCall        = "cannot_call"            // the source is not configured for it
	CodeKeyReused         = "idempotency_key_reused" // the gateway took the key for another request's
)

const (
	sqlAttentionUnknown = `
		SELECT ` + transactionRecord + ofAccounts + `(
			SELECT * FROM transactions t
			WHERE t.account_id = a.id AND t.status = 'uncertain' AND (t.next_at IS NULL OR t.code = '` + CodeKeyReused + `')
			ORDER BY t.id LIMIT $2) t
		JOIN orders o ON o.account_id = t.account_id AND o.id = t.order_id
		ORDER BY t.id LIMIT $2`

	sqlAttentionLate = `
		SELECT ` + transactionRecord + ofAccounts + `(
			SELECT * FROM (
				SELECT * FROM transactions t WHERE t.account_id = a.id AND t.` + openTransaction + ` LIMIT $3) t
			WHERE t.next_at IS NOT NULL AND (t.code IN ('` + CodeCredentialsDenied + `', '` + CodeCannotCall + `')
				OR t.status <> 'uncertain' AND coalesce(t.sent_at, t.created_at) <= $4)
			ORDER BY t.id LIMIT $2) t
		JOIN orders o ON o.account_id = t.account_id AND o.id = t.order_id
		ORDER BY t.id LIMIT $2`
)

const attentionEffect = `
		SELECT t.account_id, t.order_id, o.external_ref, t.version, t.effect, t.effect_state, t.after, t.attempts, t.at,
			t.next_at, t.claimed_until, t.settled_at, coalesce(t.last_error, ''), coalesce(t.why, ''), o.state, o.told, o.want`

const sqlAttentionDead = attentionEffect + ofAccounts + `(
			SELECT * FROM order_transitions t WHERE t.account_id = a.id AND t.effect_state = 'dead' ORDER BY t.at LIMIT $2) t
		JOIN orders o ON o.account_id = t.account_id AND o.id = t.order_id
		ORDER BY t.at LIMIT $2`

const moreEffects = `order_transitions t WHERE t.account_id = a.id AND t.effect_state IN ('open', 'claimed', 'dead')`

// sqlAttentionOwed looks through the live effects by their orders, which are by age, and leaves those alone that are not wanted at
// present, and those that are being called.
var sqlAttentionOwed = attentionEffect + ofAccounts + `(
			SELECT t.* FROM (
				SELECT * FROM ` + moreEffects + ` ORDER BY t.order_id LIMIT $3) t
			WHERE t.effect_state = 'open' AND t.at <= $4
			ORDER BY t.at LIMIT $3) t
		JOIN orders o ON o.account_id = t.account_id AND o.id = t.order_id
		WHERE ` + wantedNow() + `
		ORDER BY t.at LIMIT $2`

// wantedNow is the condition under which an effect of t is what its order o wants next: [order.Next].
func wantedNow() string {
	var conds []string
	for _, told := range []order.Told{order.ToldNothing, order.ToldHeld, order.ToldFulfilled, order.ToldRevoked} {
		for _, want := range []order.Want{order.WantWait, order.WantGo, order.WantPause, order.WantStop} {
			if e := order.Next(told, want); e != order.EffectNone {
				conds = append(conds, fmt.Sprintf("('%s', '%s', '%s')", told, want, e))
			}
		}
	}
	return `(o.told, o.want, t.effect) IN (` + strings.Join(conds, ", ") + `)`
}

// attentionOrder are the columns of an [OrderNote]; o is the order.
var attentionOrder = strings.Replace(orderRecord, "o.details", "NULL::jsonb", 1) + `, %s, %s, ARRAY(
			SELECT p.ledger -> 'ids' ->> 0 FROM payments p
			WHERE p.account_id = o.account_id AND p.order_id = o.id AND p.ledger -> 'ids' ->> 0 IS NOT NULL ORDER BY p.id LIMIT 3)`

// flaggedSince is since when the order o has a flag, without a break.
const flaggedSince = `(
			SELECT min(t.at) FROM order_transitions t WHERE t.account_id = o.account_id AND t.order_id = o.id AND t.version > coalesce((
				SELECT max(u.version) FROM order_transitions u
				WHERE u.account_id = o.account_id AND u.order_id = o.id AND NOT %[1]s = ANY(u.flags)), 0))`

// attentionFlags is AttentionFlags as the index orders_attention has it.
var attentionFlags = `'{` + AttentionFlags.String() + `}'::text[]`

var moreFlagged = `orders o WHERE o.account_id = a.id AND o.flags && ` + attentionFlags

// sqlAttentionFlagged bounds each flag by itself, so that many of one hide none of another.
var sqlAttentionFlagged = `
		WITH f AS MATERIALIZED (
			SELECT o.account_id, o.id, x.flag, row_number() OVER (PARTITION BY x.flag ORDER BY o.id) AS n` + ofAccounts + `(
				SELECT o.account_id, o.id, o.flags FROM ` + moreFlagged + ` ORDER BY o.id LIMIT $3) o
			CROSS JOIN LATERAL unnest(o.flags) AS x(flag)
			WHERE x.flag = ANY(` + attentionFlags + `))
		SELECT ` + fmt.Sprintf(attentionOrder, "f.flag", fmt.Sprintf(`coalesce(`+flaggedSince+`, o.updated_at)`, "f.flag")) + `
		FROM f JOIN orders o ON o.account_id = f.account_id AND o.id = f.id
		WHERE f.n <= $2
		ORDER BY o.id, f.flag`

var sqlAttentionStubs = `
		SELECT ` + fmt.Sprintf(attentionOrder, "''", "o.created_at") + ofAccounts + `(
			SELECT o.* FROM (
				SELECT * FROM orders o
				WHERE o.account_id = a.id AND NOT o.registered AND o.total IS NULL AND o.created_at <= $4 ORDER BY o.created_at LIMIT $3) o
			WHERE EXISTS (SELECT FROM payments p WHERE p.account_id = o.account_id AND p.order_id = o.id)
			ORDER BY o.created_at LIMIT $2) o
		ORDER BY o.created_at LIMIT $2`

// becameSince is when the order o came to its state the last time.
const becameSince = `coalesce((
			SELECT max(t.at) FROM order_transitions t
			WHERE t.account_id = o.account_id AND t.order_id = o.id AND t.to_state = o.state AND t.from_state IS DISTINCT FROM o.state), o.created_at)`

var (
	sqlAttentionAuthorized = standing("authorized", "''", becameSince, "true")
	sqlAttentionUnderpaid  = standing("partially_paid", "'underpaid'", becameSince, "o.flags @> '{underpaid}'")
)

// standing are orders that have been in a state for long. $5 is before which id they were made.
func standing(state, flag, since, which string) string {
	return `
		SELECT ` + fmt.Sprintf(attentionOrder, flag, "s.since") + ofAccounts + `(
			SELECT * FROM orders o WHERE o.account_id = a.id AND o.state = '` + state + `' AND o.id < $5 ORDER BY o.id LIMIT $3) o
		CROSS JOIN LATERAL (SELECT ` + since + ` AS since) s
		WHERE s.since <= $4 AND ` + which + `
		ORDER BY s.since LIMIT $2`
}

const morePending = `orders o WHERE o.account_id = a.id AND o.state = 'pending' AND o.id < $3`

// sqlAttentionPending looks through the newest of the orders that are pending, most of which wait for a customer who went away, for
// those with a payment. Where it has a flag, that tells more of what is to be done, and whether a person has done it.
var sqlAttentionPending = `
		SELECT ` + fmt.Sprintf(attentionOrder, "''", "s.since") + ofAccounts + `(
			SELECT * FROM ` + strings.Replace(morePending, "$3", "$5", 1) + ` ORDER BY o.id DESC LIMIT $3) o
		CROSS JOIN LATERAL (SELECT max(p.created_at) AS since FROM payments p WHERE p.account_id = o.account_id AND p.order_id = o.id) s
		WHERE s.since <= $4 AND o.total IS NOT NULL AND NOT (o.flags || o.dismissed) && ` + attentionFlags + `
		ORDER BY s.since LIMIT $2`

const sqlAttentionQuarantined = `
		SELECT ` + eventRecord + ofAccounts + `(
			SELECT * FROM processed_events e
			WHERE e.account_id = a.id AND e.outcome = 'quarantined' AND e.dismissed_at IS NULL ORDER BY e.received_at LIMIT $2) e
		ORDER BY e.received_at LIMIT $2`

const moreUnplaced = `processed_events e
				WHERE e.account_id = a.id AND e.outcome = 'waiting' AND e.reason = 'no_reference' AND e.dismissed_at IS NULL AND e.received_at <= $3`

// sqlAttentionUnplaced looks through the newest events that came without an order, most of whose payments have one since, for those
// whose payment, under whichever name it goes now, has none and has moved money.
var sqlAttentionUnplaced = `
		SELECT ` + eventRecord + ofAccounts + `(
			SELECT * FROM ` + strings.Replace(moreUnplaced, "$3", "$4", 1) + ` ORDER BY e.received_at DESC LIMIT $3) e
		LEFT JOIN LATERAL (
			WITH RECURSIVE r(order_id, ledger, up) AS (
				SELECT p.order_id, p.ledger, p.merged_into FROM payment_ids i JOIN payments p ON p.account_id = i.account_id AND p.id = i.payment_id
				WHERE i.account_id = e.account_id AND i.realm = e.realm AND i.id = e.payment
			UNION ALL
				SELECT p.order_id, p.ledger, p.merged_into FROM r JOIN payments p ON p.account_id = e.account_id AND p.id = r.up)
			SELECT r.order_id, r.ledger FROM r WHERE r.up IS NULL) p ON true
		WHERE p.order_id IS NULL AND (p.ledger IS NULL OR p.ledger ?| '{money,disputes,confirmed}')
		ORDER BY e.received_at LIMIT $2`

const sqlAttentionFetches = `
		SELECT f.account_id, f.source_id, f.object, f.gateway, f.state, f.attempts, f.announced_at, f.asked_at, f.next_at, coalesce(f.last_error, '')
		FROM fetches f WHERE f.state = 'dead' AND f.account_id = ANY($1)
		ORDER BY f.settled_at LIMIT $2`

// sqlAttentionSilent are sources of $4 and $5 that have not received since $3, while another one did a short time ago. How often they
// receive is told from the last 2000 events that their account had by then.
const sqlAttentionSilent = `
		SELECT s.account_id, s.id, s.last_received_at, h.n, coalesce(h.first, s.last_received_at)
		FROM unnest($4::text[], $5::text[]) AS x(account, source)
		JOIN sources s ON s.account_id = x.account AND s.id = x.source
		CROSS JOIN LATERAL (
			SELECT count(*) AS n, min(e.received_at) AS first FROM (
				SELECT e.source_id, e.received_at FROM processed_events e
				WHERE e.account_id = s.account_id AND e.received_at <= s.last_received_at + interval '2 hours'
				ORDER BY e.received_at DESC LIMIT 2000) e
			WHERE e.source_id = s.id) h
		WHERE s.account_id = ANY($1) AND s.last_received_at <= $3 AND EXISTS (
			SELECT FROM sources o WHERE o.last_received_at > clock_timestamp() - interval '3 hours')
		ORDER BY s.last_received_at LIMIT $2`
