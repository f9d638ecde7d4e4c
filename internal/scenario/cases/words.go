package cases

import (
	"fmt"
	"slices"
	"strings"
)

// The words of the format. A word that is not here is a mistake in the file,
// never something to pass over.
var (
	stateWords = []string{
		"pending", "authorized", "partially_paid", "paid", "partially_refunded", "refunded", "disputed", "charged_back",
		"failed", "canceled", "expired",
	}
	flagWords = []string{
		"overpaid", "underpaid", "over_refunded", "dispute_open", "paid_after_cancel", "currency_mismatch",
		"mode_mismatch", "account_mismatch", "amount_unknown", "id_reused", "reference_conflict", "unexpected_move",
		"unregistered", "total_differs", "expired_unpaid",
	}
	toldWords    = []string{"nothing", "held", "fulfilled", "revoked"}
	outcomeWords = []string{
		"applied", "no_change", "waiting", "ignored", "flagged", "quarantined", "duplicate", "none",
	}
	statusWords = []string{"registered", "authorized", "paid", "shipped", "refunded", "canceled", "disputed"}
	faultVerbs  = []string{"INSERT", "UPDATE"}
	faultTables = []string{"orders", "order_transitions", "processed_events", "idempotency_keys", "river_job"}
)

// word reports a word that is not one of those allowed.
func word(where, got string, allowed []string) error {
	if slices.Contains(allowed, got) {
		return nil
	}
	return fmt.Errorf("%s: %q is not one of %s", where, got, strings.Join(allowed, ", "))
}

func words(where string, got, allowed []string) []error {
	var errs []error
	for _, w := range got {
		if err := word(where, w, allowed); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
