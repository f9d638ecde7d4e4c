package idempotency

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Scope is whose keys they are: one caller's keys never meet another's. It must come from what authentication has found out,
// never from something that a client may choose.
type Scope struct {
	// Account leads the unique key of the table. Empty: the text of ID. At most 255 bytes.
	Account string

	// Kind says what ID is the id of: "user", "account", "company". User 7 and company 7 never collide. At most 50 bytes.
	Kind string

	// ID is the user's, account's or company's. It must not be [uuid.Nil]: that would be a bucket for all.
	ID uuid.UUID
}

// ErrUnauthenticated is what [Options.Scope] returns (or wraps) where nobody is known: the caller hears 401. Any other error
// of it is 500.
var ErrUnauthenticated = errors.New("idempotency: no authenticated caller")

func (s Scope) withDefaults() Scope {
	if s.Account == "" {
		s.Account = s.ID.String()
	}
	return s
}

func (s Scope) validate() error {
	switch {
	case s.ID == uuid.Nil:
		return errors.New("idempotency: Scope.ID is the nil UUID")
	case s.Kind == "" || len(s.Kind) > 50 || !plain(s.Kind):
		return fmt.Errorf("idempotency: Scope.Kind has %d bytes, or is no plain text: 1 to 50", len(s.Kind))
	case len(s.Account) > 255 || !plain(s.Account):
		return fmt.Errorf("idempotency: Scope.Account has %d bytes, or is no plain text: up to 255", len(s.Account))
	}
	return nil
}

func plain(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// identity is the bytes of scope and key, of which no two are the same.
func (s Scope) identity(key string) []byte {
	b := make([]byte, 0, 64+len(s.Account)+len(s.Kind)+len(key))
	for _, part := range []string{s.Account, s.Kind, string(s.ID[:]), key} {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	return b
}

// digest names a key in logs, without showing it or its owner.
func (s Scope) digest(key string) string {
	sum := sha256.Sum256(s.identity(key))
	return hex.EncodeToString(sum[:8])
}
