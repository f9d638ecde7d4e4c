package idempotency

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// request is what a call asks for, as far as its key is concerned.
type request struct {
	scope   Scope
	key     string
	method  string
	target  string // path and query, or a digest of them
	hash    string
	digests []byte // encoded
	policy  *Policy
}

// hold is a key that this call may work on, as long as nobody has taken it over.
type hold struct {
	id    uuid.UUID
	fence int64
	epoch int64
}

// row is what the table knows of a key, as far as the present call must know.
type row struct {
	hold
	status    string
	expired   bool
	same      bool // method, target and hash are this call's
	elsewhere bool // method or target is another
	bound     bool
	lockLeft  time.Duration // not positive: the owner may be dead
	digests   []byte        // of another body only
	stored    stored        // of the same request only
}

// stored is an answer that was kept.
type stored struct {
	code         int
	headers      []byte
	raw          []byte // nil: a tombstone
	sealed       bool
	resourceType string
	resourceID   uuid.UUID
}

// sqlDurable makes the transaction's commit durable, whatever the database's default has become: an answer must not be given
// that a crash takes back.
const sqlDurable = `set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), true)`

// sqlClaim enters a key, or reads the row that has it, in one statement and one implicit transaction. DO NOTHING never waits
// for a row that an effect transaction holds (DO UPDATE would). No row at all: another call entered it just now, or it was
// deleted; ask again.
const sqlClaim = `
WITH claimed AS (
  INSERT INTO idempotency_keys (id, account_id, scope_kind, user_id, idempotency_key, request_method, request_path, request_hash,
    request_digests, policy, lock_timeout, locked_at, created_at, expires_at)
  VALUES ($1::uuid, $2::text, $3::text, $4::uuid, $5::text, $6::text, $7::text, $8::text, $9::bytea, $10::text, $11::interval,
    clock_timestamp(), now(), now() + $12::interval)
  ON CONFLICT (account_id, scope_kind, user_id, idempotency_key) DO NOTHING
  RETURNING id, fence, epoch, status, ` + sqlDurable + ` AS durable
)
SELECT true AS won, id, fence, epoch, status::text, false AS expired, true AS same, false AS elsewhere, true AS bound, NULL::interval AS lock_left,
  NULL::bytea AS digests, NULL::int AS code, NULL::text AS headers, NULL::bytea AS raw, false AS sealed, NULL::text AS resource_type,
  NULL::uuid AS resource_id
FROM claimed
WHERE durable <> 'off'
UNION ALL
SELECT false, k.id, k.fence, k.epoch, k.status::text, k.expires_at <= clock_timestamp(), s.same, NOT h.here, k.hash_bound,
  k.locked_at + k.lock_timeout - clock_timestamp(), CASE WHEN NOT s.same THEN k.request_digests END, k.response_code,
  CASE WHEN s.same THEN k.response_headers::text END, CASE WHEN s.same THEN k.response_raw END, k.sealed, k.resource_type::text,
  k.resource_id
FROM idempotency_keys k,
  LATERAL (SELECT k.request_method = $6::text AND k.request_path = $7::text AS here) h,
  LATERAL (SELECT h.here AND k.request_hash = $8::text AS same) s
WHERE k.account_id = $2::text AND k.scope_kind = $3::text AND k.user_id = $4::uuid AND k.idempotency_key = $5::text
  AND NOT EXISTS (SELECT FROM claimed)`

// claim enters the key under id. It returns the row that is there, and whether this call has made it; errRace if there is none.
func claim(ctx context.Context, conn *pgx.Conn, id uuid.UUID, q *request) (r row, won bool, err error) {
	var lockLeft pgtype.Interval
	var code *int
	var headers, resourceType *string
	var status string
	var rid, resource pgtype.UUID
	err = conn.QueryRow(ctx, sqlClaim, pgUUID(id), q.scope.Account, q.scope.Kind, pgUUID(q.scope.ID), q.key, q.method, q.target, q.hash,
		q.digests, q.policy.Name, interval(q.policy.LockTimeout), interval(q.policy.TTL)).
		Scan(&won, &rid, &r.fence, &r.epoch, &status, &r.expired, &r.same, &r.elsewhere, &r.bound, &lockLeft, &r.digests,
			&code, &headers, &r.stored.raw, &r.stored.sealed, &resourceType, &resource)
	if errors.Is(err, pgx.ErrNoRows) {
		return row{}, false, errRace
	}
	if err != nil {
		return row{}, false, err
	}
	r.id, r.status = rid.Bytes, status
	if lockLeft.Valid {
		r.lockLeft = duration(lockLeft)
	}
	if code != nil {
		r.stored.code = *code
	}
	if headers != nil {
		r.stored.headers = []byte(*headers)
	}
	if resourceType != nil {
		r.stored.resourceType = *resourceType
	}
	if resource.Valid {
		r.stored.resourceID = resource.Bytes
	}
	return r, won, nil
}

// errRace says that the row came or went while it was looked for.
var errRace = errors.New("idempotency: the key's row came or went")

// decision is what a call does with a key that another call has entered before.
type decision int

const (
	takeOver decision = iota // the key is free, or its owner seems dead
	mismatch
	replay
	inFlight
)

// decide is the order of decisions of the protocol: expiry, then the fingerprint, then the state.
func (r row) decide() decision {
	live := r.status == statusProcessing && r.lockLeft > 0
	switch {
	case r.expired && !live:
		return takeOver
	case r.bound && !r.same:
		return mismatch
	case r.status == statusCompleted:
		return replay
	case live:
		return inFlight
	}
	return takeOver
}

// The states of a key.
const (
	statusProcessing = "PROCESSING"
	statusCompleted  = "COMPLETED"
	statusFailed     = "FAILED"
)

// sqlTakeover hands a key to this call: one that has failed, expired, or whose owner's lock is old. SKIP LOCKED is the proof of
// life: an owner whose effect transaction is open holds the row, however old its lock. Where the request may be another one
// (expired, or unbound) it begins anew, with a new time to live.
const sqlTakeover = `
WITH c AS (
  SELECT id, expires_at <= clock_timestamp() AS expired, NOT hash_bound AS unbound,
    request_method = $3::text AND request_path = $4::text AND request_hash = $5::text AS same, ` + sqlDurable + ` AS durable
  FROM idempotency_keys
  WHERE id = $1::uuid AND fence = $2::bigint
    AND CASE status
        WHEN 'FAILED' THEN true
        WHEN 'COMPLETED' THEN expires_at <= clock_timestamp()
        ELSE locked_at + lock_timeout <= clock_timestamp()
      END
  FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE idempotency_keys k
SET status = 'PROCESSING', locked_at = clock_timestamp(), lock_timeout = $8::interval, fence = k.fence + 1, policy = $7::text,
  attempts = CASE WHEN c.expired OR c.unbound THEN 1 ELSE k.attempts + 1 END,
  epoch = CASE WHEN c.expired OR NOT c.same THEN k.epoch + 1 ELSE k.epoch END,
  request_method = $3::text, request_path = $4::text, request_hash = $5::text, request_digests = $6::bytea, hash_bound = true,
  created_at = CASE WHEN c.expired OR c.unbound THEN now() ELSE k.created_at END,
  expires_at = CASE WHEN c.expired OR c.unbound THEN now() + $9::interval ELSE k.expires_at END,
  response_code = NULL, response_headers = NULL, response_body = NULL, response_raw = NULL, sealed = false,
  resource_id = NULL, resource_type = NULL, last_error = NULL, completed_at = NULL
FROM c
WHERE k.id = c.id AND c.durable <> 'off' AND (c.expired OR c.unbound OR c.same)
RETURNING k.fence, k.epoch`

// takeover takes the key over from the state that r describes. It reports false if that has changed, or if its owner's
// transaction is open.
func takeover(ctx context.Context, conn *pgx.Conn, r row, q *request) (hold, bool, error) {
	h := hold{id: r.id}
	err := conn.QueryRow(ctx, sqlTakeover, pgUUID(r.id), r.fence, q.method, q.target, q.hash, q.digests, q.policy.Name,
		interval(q.policy.LockTimeout), interval(q.policy.TTL)).Scan(&h.fence, &h.epoch)
	if errors.Is(err, pgx.ErrNoRows) {
		return hold{}, false, nil
	}
	return h, err == nil, err
}

func pgUUID(id uuid.UUID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

func interval(d time.Duration) pgtype.Interval {
	return pgtype.Interval{Microseconds: d.Microseconds(), Valid: true}
}

func duration(i pgtype.Interval) time.Duration {
	return time.Duration(i.Microseconds)*time.Microsecond + time.Duration(i.Days)*24*time.Hour + time.Duration(i.Months)*30*24*time.Hour
}
