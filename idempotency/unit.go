package idempotency

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// ErrPanicked is what [Policy.Classify] is asked about when a handler panicked, or ended its goroutine.
var ErrPanicked = errors.New("idempotency: the handler panicked")

// unit is what a handler that runs under a key can reach through its context.
type unit struct {
	hold hold
	tx   *unitTx // nil: NoTx

	mu           sync.Mutex
	resourceType string
	resourceID   uuid.UUID
	keepWrites   bool
	failure      error
}

type unitKey struct{}

func unitOf(ctx context.Context) *unit {
	u, _ := ctx.Value(unitKey{}).(*unit)
	return u
}

// Tx returns the unit of work of the call that ctx belongs to: what is written through it is committed together with the
// stored answer, or not at all. Its Begin makes savepoints; its Commit and Rollback are refused, since both happen when the handler
// has ended. It reports false where there is none, because the route is not protected, no key was sent, or its policy says NoTx:
// then the handler begins a transaction of its own.
func Tx(ctx context.Context) (pgx.Tx, bool) {
	u := unitOf(ctx)
	if u == nil || u.tx == nil {
		return nil, false
	}
	return u.tx, true
}

// OutboundKey returns a key for a call to another service that this request makes. It is the same in every attempt at this
// request, in whichever process, and another one for every step and every other request; so the other service can tell a repetition.
// It has 52 letters and digits. It reports false where the call does not run under a key.
func OutboundKey(ctx context.Context, step string) (string, bool) {
	u := unitOf(ctx)
	if u == nil {
		return "", false
	}
	return outboundKey(u.hold.id, step, u.hold.epoch), true
}

func outboundKey(id uuid.UUID, step string, epoch int64) string {
	b := append([]byte("paidonce outbound key\x00"), id[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(epoch)) //nolint:gosec // a counter
	b = append(b, step...)
	sum := sha256.Sum256(b)
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
}

// SetResource notes which resource the request has made or changed. It is kept with the answer, also where the answer itself
// is too long to be kept. typ has at most 100 bytes. Without a key it does nothing.
func SetResource(ctx context.Context, typ string, id uuid.UUID) {
	if u := unitOf(ctx); u != nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.resourceType, u.resourceID = typ, id
	}
}

// KeepWrites commits what the handler has written even if it answers 400 or more: an attempt that is counted, a refusal
// that is on record. Without a key it does nothing.
func KeepWrites(ctx context.Context) {
	if u := unitOf(ctx); u != nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.keepWrites = true
	}
}

// Fail says that this request has failed with err, because of which the handler answers 5xx. The middleware decides by
// it what becomes of the key; after a deadlock, a serialization failure or a lock that could not be had (SQLSTATE 40P01,
// 40001, 55P03) it rolls back and runs the handler again, a few times. Without a key, or with a nil err, it does nothing.
func Fail(ctx context.Context, err error) {
	if u := unitOf(ctx); u != nil && err != nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.failure = err
	}
}

// verdict is what a handler has left behind.
type verdict struct {
	resourceType string
	resourceID   uuid.UUID
	keepWrites   bool
	failure      error
}

// end closes the unit: its transaction cannot be used any more.
func (u *unit) end() verdict {
	if u.tx != nil {
		u.tx.closed.Store(true)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return verdict{u.resourceType, u.resourceID, u.keepWrites, u.failure}
}
