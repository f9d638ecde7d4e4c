package store

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// RegisterID is the id of the event that registers the order of a reference, whoever says so: the merchant's API or the
// schedule of a recurrence. There is one per reference, so that a second registration is a duplicate of the first.
// References that hold the mark which ids of events must not hold go by their hash.
func RegisterID(ref string) string {
	if strings.Contains(ref, "#") {
		sum := sha256.Sum256([]byte(ref))
		return "register-sha256:" + hex.EncodeToString(sum[:])
	}
	return "register:" + ref
}
