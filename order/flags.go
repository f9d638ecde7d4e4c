package order

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Flags is a set of things that somebody should look at. None of them changes the state or holds an effect back: what
// is flagged is not counted.
type Flags uint32

// The flags.
const (
	FlagOverpaid          Flags = 1 << iota // more is kept than the total
	FlagUnderpaid                           // something was captured, less than the total
	FlagOverRefunded                        // of one payment more was refunded than captured
	FlagDisputeOpen                         // a dispute is open that would not leave the order short
	FlagPaidAfterCancel                     // money is kept for an order that the merchant canceled
	FlagCurrencyMismatch                    // money in another currency than the order's; not counted
	FlagModeMismatch                        // a test event on a live source, or the other way round; not counted
	FlagAccountMismatch                     // of another account at the gateway; not counted
	FlagAmountUnknown                       // a capture without a usable amount; not counted
	FlagIDReused                            // one event id came with different facts
	FlagReferenceConflict                   // a payment names this order and another one
	FlagUnexpectedMove                      // a move that no cause of its event explains
	FlagUnregistered                        // the merchant has not registered it: total and currency are unknown
	FlagTotalDiffers                        // a payment's amount had created the order, and the registered total is another
	FlagExpiredUnpaid                       // its time ran out before it was paid
)

var flagNames = [...]string{
	"overpaid", "underpaid", "over_refunded", "dispute_open", "paid_after_cancel", "currency_mismatch",
	"mode_mismatch", "account_mismatch", "amount_unknown", "id_reused", "reference_conflict", "unexpected_move",
	"unregistered", "total_differs", "expired_unpaid",
}

const allFlags = Flags(1)<<len(flagNames) - 1

// Has reports whether every flag of g is in f.
func (f Flags) Has(g Flags) bool { return f&g == g }

// Names returns the names of the flags in f, sorted. It is never nil.
func (f Flags) Names() []string {
	names := make([]string, 0, bits.OnesCount32(uint32(f)))
	for i, name := range flagNames {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// String returns the sorted names with commas between them.
func (f Flags) String() string { return strings.Join(f.Names(), ",") }

// ParseFlags returns the set of the flags with these names, in any order. A name that is no flag is an error.
func ParseFlags(names []string) (Flags, error) {
	var f Flags
	for _, name := range names {
		i := slices.Index(flagNames[:], name)
		if i < 0 {
			return 0, fmt.Errorf("order: unknown flag %q", name)
		}
		f |= 1 << i
	}
	return f, nil
}

// MarshalJSON returns the sorted names as an array.
func (f Flags) MarshalJSON() ([]byte, error) {
	if f&^allFlags != 0 {
		return nil, fmt.Errorf("order: unknown flags %#x", uint32(f&^allFlags))
	}
	return json.Marshal(f.Names())
}

// UnmarshalJSON reads an array of names.
func (f *Flags) UnmarshalJSON(data []byte) error {
	var names []string
	if err := json.Unmarshal(data, &names); err != nil {
		return fmt.Errorf("order: flags: %w", err)
	}
	g, err := ParseFlags(names)
	if err != nil {
		return err
	}
	*f = g
	return nil
}
