package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/paidonce/paidonce/order"
)

// EventID makes the id of an event of ours: its kind and what it is about, with colons between, so that the same thing said
// twice is a duplicate. One part at most may be free text, so that no two lists read the same. Where the parts are longer than
// [order.MaxReference] bytes, or hold the mark that ids of events must not hold ("#"), their hash takes their place.
func EventID(kind string, parts ...string) string {
	text := strings.Join(parts, ":")
	if len(text) <= order.MaxReference && !strings.Contains(text, "#") {
		return kind + ":" + text
	}
	h := sha256.New()
	for _, p := range parts {
		if len(parts) > 1 {
			_, _ = fmt.Fprintf(h, "%d:", len(p))
		}
		_, _ = h.Write([]byte(p))
	}
	return kind + "-sha256:" + hex.EncodeToString(h.Sum(nil))
}

// RegisterID is the id of the event that registers the order of a reference, whoever says so: the merchant's API or the
// schedule of a recurrence. There is one per reference, so that a second registration is a duplicate of the first.
func RegisterID(ref string) string { return EventID("register", ref) }
