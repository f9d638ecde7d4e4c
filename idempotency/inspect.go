package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// ErrNotFound says that the key is not known: it was never used by this scope, or it has expired and was deleted.
var ErrNotFound = errors.New("idempotency: no such key")

// Record is what is known of a key. It holds nothing of the request's body or of the answer.
type Record struct {
	State        string        // PROCESSING, COMPLETED or FAILED
	Policy       string        // the name of the policy it was last claimed under
	Method, Path string        // of the request; Path has the query, or is a digest
	Attempts     int           // how often this request was begun
	Fence        int64         // of the last claim
	LockAge      time.Duration // how long ago its call last said that it lives; 0 unless PROCESSING
	LockTimeout  time.Duration // after which it is taken to be dead
	CreatedAt    time.Time     // the first use
	CompletedAt  time.Time     // zero unless COMPLETED
	ExpiresAt    time.Time
	Expired      bool
	ResponseCode int    // 0 unless COMPLETED
	ResourceType string // "" where none was set
	ResourceID   uuid.UUID
	LastError    string // why the last attempt failed: a class, such as "SQLSTATE 40001", "status 500", "panic"
	Bound        bool   // another request with this key is refused
	Kept         bool   // the answer is stored

	// Next is what the next call of the same request would get: "replay", "result_unavailable", "in_progress" or "execute".
	Next string

	// NextOther is what another request with this key would get: "key_reused" or "execute".
	NextOther string
}

const sqlInspect = `
SELECT status::text, policy::text, request_method::text, request_path::text, attempts, fence,
  CASE WHEN locked_at IS NOT NULL THEN clock_timestamp() - locked_at END, lock_timeout, created_at, completed_at, expires_at,
  expires_at <= clock_timestamp(), coalesce(locked_at + lock_timeout > clock_timestamp(), false), response_code, resource_type::text,
  resource_id, last_error, hash_bound, response_raw IS NOT NULL
FROM idempotency_keys
WHERE account_id = $1::text AND scope_kind = $2::text AND user_id = $3::uuid AND idempotency_key = $4::text`

// Inspect tells what is known of a key of a scope, and what a call with it would get. The error is [ErrNotFound] for a key of
// anybody else.
func (s *Store) Inspect(ctx context.Context, sc Scope, key string) (Record, error) {
	sc = sc.withDefaults()
	if err := sc.validate(); err != nil {
		return Record{}, err
	}
	if !plain(key) {
		return Record{}, ErrNotFound
	}
	var r Record
	err := s.onPool(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		r, err = inspect(ctx, conn, sc, key)
		return err
	})
	return r, err
}

func inspect(ctx context.Context, conn *pgx.Conn, sc Scope, key string) (Record, error) {
	var r Record
	var age, timeout pgtype.Interval
	var completed *time.Time
	var code *int
	var resourceType, lastError *string
	var resourceID pgtype.UUID
	var live bool
	err := conn.QueryRow(ctx, sqlInspect, sc.Account, sc.Kind, pgUUID(sc.ID), key).Scan(&r.State, &r.Policy, &r.Method, &r.Path,
		&r.Attempts, &r.Fence, &age, &timeout, &r.CreatedAt, &completed, &r.ExpiresAt, &r.Expired, &live, &code, &resourceType,
		&resourceID, &lastError, &r.Bound, &r.Kept)
	if errors.Is(err, pgx.ErrNoRows) {
		return Record{}, ErrNotFound
	}
	if err != nil {
		return Record{}, fmt.Errorf("idempotency: read a key: %w", err)
	}
	r.LockAge, r.LockTimeout = duration(age), duration(timeout)
	if completed != nil {
		r.CompletedAt = *completed
	}
	if code != nil {
		r.ResponseCode = *code
	}
	if resourceType != nil {
		r.ResourceType = *resourceType
	}
	if resourceID.Valid {
		r.ResourceID = resourceID.Bytes
	}
	if lastError != nil {
		r.LastError = *lastError
	}
	r.foresee(live)
	return r, nil
}

// foresee is row.decide in words.
func (r *Record) foresee(live bool) {
	d := row{status: r.State, expired: r.Expired, same: true, bound: r.Bound}
	if live {
		d.lockLeft = 1
	}
	r.Next = map[decision]string{takeOver: "execute", replay: "replay", inFlight: "in_progress"}[d.decide()]
	if r.Next == "replay" && !r.Kept {
		r.Next = "result_unavailable"
	}
	d.same = false
	r.NextOther = map[decision]string{takeOver: "execute", mismatch: "key_reused", inFlight: "in_progress"}[d.decide()]
}
