package audit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/audit"
	"github.com/paidonce/paidonce/store"
)

// corruption is something that only somebody who writes by hand, or a bug, can do to the tables.
type corruption struct {
	name string
	sql  string       // in which $order, $payment and the like are looked up by name
	want []audit.Kind // all that is told of it, sorted
}

// The names of rows of the history, in corruptions.
var named = strings.NewReplacer(
	"ORDER(", "(SELECT id FROM orders WHERE external_ref = ",
	"PAYMENT(", "(SELECT payment_id FROM payment_ids WHERE realm = 'stripe:live' AND id = ",
)

var corruptions = []corruption{
	{"EventFacts", `UPDATE processed_events SET facts = jsonb_set(facts, '{facts,0,amount}', '4000') WHERE event_id = 'evt_owed'`, kinds(audit.EventHash, audit.EventBytes, audit.PaymentLedger, audit.OrderFold)},
	{"EventFactsOfARenewal", `UPDATE processed_events SET facts = jsonb_set(facts, '{facts,0,amount}', '901') WHERE event_id = 'evt_renewal'`, kinds(audit.EventBytes, audit.PaymentLedger, audit.OrderFold)},
	{"EventHash", `UPDATE processed_events SET facts_hash = '\x00' WHERE event_id = 'evt_owed'`, kinds(audit.EventHash)},
	{"EventThatCannotBeRead", `UPDATE processed_events SET facts = '{"facts": 1}' WHERE event_id = 'evt_paid_again'`, kinds(audit.EventUnreadable)},
	{"EventOfAFactThatCannotBe", `UPDATE processed_events SET facts = jsonb_set(facts, '{facts,0,amount}', '-1') WHERE event_id = 'evt_paid_again'`, kinds(audit.EventUnreadable)},
	{"EventWithoutAnOutcome", `UPDATE processed_events SET outcome = NULL WHERE event_id = 'evt_owed'`, kinds(audit.EventOutcome)},
	{"EventOfAnotherOutcome", `UPDATE processed_events SET outcome = 'ignored', reason = 'no_money' WHERE event_id = 'evt_owed'`, kinds(audit.EventOutcome)},
	{"EventOfAnotherReason", `UPDATE processed_events SET reason = 'needs_fetch: payment/tr_2' WHERE event_id = 'evt_asked'`, kinds(audit.EventOutcome)},
	{"EventOutOfQuarantine", `UPDATE processed_events SET outcome = 'applied', reason = NULL WHERE event_id = 'evt_broken'`, kinds(audit.EventOutcome)},
	{"EventFlaggedNoMore", `UPDATE processed_events SET outcome = 'no_change', reason = 'already_known' WHERE event_id LIKE 'evt_refund#%'`, kinds(audit.EventOutcome)},
	{
		"EventThatCounts", `UPDATE processed_events SET outcome = 'waiting', reason = 'source_paused', order_id = NULL, order_version_before = NULL, order_version_after = NULL WHERE event_id = 'evt_refund'`,
		kinds(audit.PaymentLedger, audit.OrderFold, audit.VersionCause),
	},
	{"EventOfAnotherPayment", `UPDATE processed_events SET payment = 'pi_owed' WHERE event_id = 'evt_paid_again'`, kinds(audit.EventPayment)},
	{"EventOfNoOrder", `UPDATE processed_events SET order_id = gen_random_uuid() WHERE event_id = 'evt_owed'`, kinds(audit.EventOrder)},
	{"EventOfVersionsThatAreNot", `UPDATE processed_events SET order_version_after = 99 WHERE event_id = 'evt_owed'`, kinds(audit.VersionCause)},
	{"EventOfAnotherVersion", `UPDATE processed_events SET order_version_after = 3 WHERE event_id = 'evt_refunded'`, kinds(audit.VersionCause)},
	{"EventLost", `DELETE FROM processed_events WHERE event_id = 'evt_owed'`, kinds(audit.PaymentLedger, audit.PaymentOrder, audit.OrderFold, audit.VersionCause)},
	{"EventLostAndEnteredAgain", `UPDATE processed_events SET order_version_before = 2, outcome = 'no_change', reason = 'already_known', received_at = now() WHERE event_id = 'evt_owed'`, nil},
	{"RegistrationLost", `DELETE FROM processed_events WHERE event_id = 'register:ord_owed'`, kinds(audit.OrderRegistration, audit.OrderFold, audit.VersionCause)},

	{"PaymentIDLost", `DELETE FROM payment_ids WHERE id = 'ch_paid'`, kinds(audit.PaymentID)},
	{"PaymentIDLostThatIsTheOnlyOne", `DELETE FROM payment_ids WHERE id = 'pi_owed'`, kinds(audit.PaymentID)},
	{"PaymentIDAstray", `UPDATE payment_ids SET payment_id = PAYMENT('pi_owed') WHERE id = 'ch_paid'`, kinds(audit.PaymentID)},
	{"PaymentIDAstrayThatIsTheOnlyOne", `UPDATE payment_ids SET payment_id = PAYMENT('pi_owed') WHERE id = 'pi_waits'`, kinds(audit.PaymentID)},
	{"PaymentIDThatNobodyNamed", `INSERT INTO payment_ids SELECT account_id, realm, 'pi_stranger', payment_id FROM payment_ids WHERE id = 'pi_owed'`, kinds(audit.PaymentID)},
	{"LedgerAmount", `UPDATE payments SET ledger = jsonb_set(ledger, '{money,EUR,captured_total,amount}', '1') WHERE id = PAYMENT('pi_owed')`, kinds(audit.PaymentLedger)},
	{"LedgerLink", `UPDATE payments SET ledger = jsonb_set(ledger, '{link,ref}', '"ord_paid"') WHERE id = PAYMENT('pi_owed')`, kinds(audit.PaymentLedger)},
	{"LedgerFlag", `UPDATE payments SET ledger = ledger || '{"flags": ["id_reused"]}' WHERE id = PAYMENT('pi_owed')`, kinds(audit.PaymentLedger)},
	{"LedgerID", `UPDATE payments SET ledger = jsonb_set(ledger, '{ids}', '["pi_paid"]') WHERE id = PAYMENT('ch_paid')`, kinds(audit.PaymentLedger)},
	{"LedgerEmpty", `UPDATE payments SET ledger = '{}' WHERE id = PAYMENT('pi_owed')`, kinds(audit.PaymentLedger)},
	{"LedgerOfApart", `UPDATE payments SET ledger = ledger #- '{money,EUR,captured_total}' WHERE id = PAYMENT('pi_b')`, kinds(audit.PaymentLedger)},
	{"LedgerOfApartWithMore", `UPDATE payments SET ledger = jsonb_set(ledger, '{money,EUR,captured_total,amount}', '6000') WHERE id = PAYMENT('pi_a')`, kinds(audit.PaymentLedger)},
	{"LedgerThatCannotBeRead", `UPDATE payments SET ledger = '{"odd": 1}' WHERE id = PAYMENT('pi_owed')`, kinds(audit.PaymentUnreadable)},
	{"LedgerOfWhatWasMerged", `UPDATE payments SET ledger = '{"ids": ["pi_made"]}' WHERE merged_into IS NOT NULL`, kinds(audit.PaymentMerged)},
	{"PaymentOnAnotherOrder", `UPDATE payments SET order_id = ORDER('ord_owed') WHERE id = PAYMENT('pi_waits')`, kinds(audit.PaymentOrder, audit.OrderFold)},
	{"PaymentOnNoOrder", `UPDATE payments SET order_id = NULL WHERE id = PAYMENT('pi_waits')`, kinds(audit.PaymentOrder, audit.OrderFold)},
	{"PaymentOnAnOrder", `UPDATE payments SET order_id = ORDER('ord_stub') WHERE id = PAYMENT('pi_nowhere')`, kinds(audit.PaymentOrder)},
	{"PaymentThatAPersonLinked", `UPDATE payments SET order_id = ORDER('ord_canceled') WHERE id = PAYMENT('pi_linked')`, kinds(audit.PaymentOrder, audit.OrderFold)},

	{"OrderState", `UPDATE orders SET state = 'authorized' WHERE external_ref = 'ord_owed'`, kinds(audit.OrderFold, audit.VersionLast)},
	{"OrderSums", `UPDATE orders SET captured = captured + 1, kept = kept + 1 WHERE external_ref = 'ord_owed'`, kinds(audit.OrderFold, audit.VersionLast)},
	{"OrderAuthorized", `UPDATE orders SET authorized = 1 WHERE external_ref = 'ord_owed'`, kinds(audit.OrderFold)},
	{"OrderFlags", `UPDATE orders SET flags = '{overpaid}' WHERE external_ref = 'ord_owed'`, kinds(audit.OrderFold, audit.VersionLast)},
	{"OrderFlagThatIsNone", `UPDATE orders SET flags = '{odd}' WHERE external_ref = 'ord_owed'`, kinds(audit.OrderUnreadable)},
	{"OrderWant", `UPDATE orders SET want = 'wait' WHERE external_ref = 'ord_owed'`, kinds(audit.OrderFold, audit.EffectOwed)},
	{"OrderTotal", `UPDATE orders SET total = 4000 WHERE external_ref = 'ord_owed'`, kinds(audit.OrderRegistration)},
	{"OrderTotalThatWasAmended", `UPDATE orders SET total = 5000 WHERE external_ref = 'ord_amended'`, kinds(audit.OrderRegistration)},
	{"OrderCurrency", `UPDATE orders SET currency = 'USD' WHERE external_ref = 'ord_owed'`, kinds(audit.OrderRegistration)},
	{"OrderCanceled", `UPDATE orders SET canceled = true WHERE external_ref = 'ord_owed'`, kinds(audit.OrderRegistration)},
	{"OrderCanceledNoMore", `UPDATE orders SET canceled = false WHERE external_ref = 'ord_canceled'`, kinds(audit.OrderRegistration)},
	{"OrderUnregistered", `UPDATE orders SET registered = false WHERE external_ref = 'ord_owed'`, kinds(audit.OrderRegistration)},
	{"OrderRegistered", `UPDATE orders SET registered = true, registered_at = now() WHERE external_ref = 'ord_made'`, kinds(audit.OrderRegistration)},
	{"OrderReference", `UPDATE orders SET external_ref = 'ord_other' WHERE external_ref = 'ord_amended'`, kinds(audit.OrderRegistration)},
	{"OrderDetails", `UPDATE orders SET details = jsonb_set(details, '{metadata,y}', '3') WHERE external_ref = 'ord_amended'`, kinds(audit.OrderRegistration)},
	{"OrderExpiry", `UPDATE orders SET expires_at = expires_at + interval '1 day' WHERE external_ref = 'ord_paid'`, kinds(audit.OrderRegistration)},
	{"OrderMark", `UPDATE orders SET marks = '{unexpected_move}' WHERE external_ref = 'ord_owed'`, kinds(audit.OrderFold, audit.OrderMarks)},
	{"OrderMarkLost", `UPDATE orders SET marks = '{}' WHERE external_ref = 'ord_a'`, kinds(audit.OrderFold, audit.OrderMarks)},
	{"OrderMarkOfAnotherKind", `UPDATE orders SET marks = '{overpaid}', flags = '{overpaid}' WHERE external_ref = 'ord_owed'`, kinds(audit.OrderMarks, audit.VersionLast)},
	{"OrderHidesAFlag", `UPDATE orders SET dismissed = '{underpaid}' WHERE external_ref = 'ord_over'`, kinds(audit.OrderFold, audit.OrderMarks)},
	{"OrderHidesWhatNobodyDismissed", `UPDATE orders SET dismissed = '{overpaid}' WHERE external_ref = 'ord_owed'`, kinds(audit.OrderMarks)},
	{"OrderHidesWhatDoesNotHold", `UPDATE orders SET dismissed = '{overpaid}' WHERE external_ref = 'ord_settled'`, kinds(audit.OrderMarks)},
	{"OrderMadeByAPayment", `UPDATE orders SET create_from_payment = false WHERE external_ref = 'ord_made'`, kinds(audit.OrderRegistration, audit.OrderFold, audit.OrderMarks)},

	{"VersionLost", `DELETE FROM order_transitions WHERE order_id = ORDER('ord_refunded') AND version = 2`, kinds(audit.VersionRows)},
	{"VersionTooMany", `INSERT INTO order_transitions (account_id, order_id, version, from_state, to_state, cause) SELECT account_id, id, 3, 'paid', 'paid', 'settle' FROM orders WHERE external_ref = 'ord_owed'`, kinds(audit.VersionRows)},
	{"VersionOfTheOrder", `UPDATE orders SET version = version + 1 WHERE external_ref = 'ord_owed'`, kinds(audit.VersionRows)},
	{"VersionFrom", `UPDATE order_transitions SET from_state = 'failed' WHERE order_id = ORDER('ord_owed') AND version = 2`, kinds(audit.VersionChain)},
	{"VersionTo", `UPDATE order_transitions SET to_state = 'failed' WHERE order_id = ORDER('ord_refunded') AND version = 2`, kinds(audit.VersionChain)},
	{"VersionFirst", `UPDATE order_transitions SET from_state = 'paid' WHERE order_id = ORDER('ord_owed') AND version = 1`, kinds(audit.VersionChain)},
	{"VersionKept", `UPDATE order_transitions SET kept = 1 WHERE order_id = ORDER('ord_owed') AND version = 2`, kinds(audit.VersionLast)},
	{"VersionFlags", `UPDATE order_transitions SET flags = '{overpaid}' WHERE order_id = ORDER('ord_owed') AND version = 2`, kinds(audit.VersionLast)},
	{"VersionOfAnotherEvent", `UPDATE order_transitions SET event_id = 'evt_paid' WHERE order_id = ORDER('ord_owed') AND version = 2`, kinds(audit.VersionCause)},
	{"VersionOfAnotherOfItsEvents", `UPDATE order_transitions SET event_id = 'evt_refund' WHERE order_id = ORDER('ord_refunded') AND version = 2`, kinds(audit.VersionCause)},
	{"VersionOfNoEvent", `UPDATE order_transitions SET event_id = 'evt_nobody' WHERE order_id = ORDER('ord_owed') AND version = 2`, kinds(audit.VersionCause)},
	{"VersionWithoutAnEvent", `UPDATE order_transitions SET source_id = NULL, event_id = NULL WHERE order_id = ORDER('ord_owed') AND version = 2`, kinds(audit.VersionCause)},
	{"VersionOfAnotherCause", `UPDATE order_transitions SET cause = 'settle' WHERE order_id = ORDER('ord_owed') AND version = 2`, kinds(audit.VersionCause)},

	{"Told", `UPDATE orders SET told = 'fulfilled' WHERE external_ref = 'ord_owed'`, kinds(audit.EffectTold)},
	{"ToldLost", `UPDATE orders SET told = 'nothing' WHERE external_ref = 'ord_paid'`, kinds(audit.EffectTold)},
	{"EffectThatWasDone", `UPDATE order_transitions SET effect_state = 'open', next_at = now(), settled_at = NULL WHERE order_id = ORDER('ord_paid') AND version = 2`, kinds(audit.EffectTold)},
	{"EffectOfAnotherKind", `UPDATE order_transitions SET effect = 'hold' WHERE order_id = ORDER('ord_paid') AND version = 2`, kinds(audit.EffectTold)},
	{"EffectAfterAnother", `UPDATE order_transitions SET after = 'held' WHERE order_id = ORDER('ord_owed') AND version = 2`, kinds(audit.EffectOwed)},
	{"EffectLost", `UPDATE order_transitions SET effect = NULL, effect_state = NULL, after = NULL, next_at = NULL WHERE order_id = ORDER('ord_owed') AND version = 2`, kinds(audit.EffectOwed)},
	{"EffectCanceled", `UPDATE order_transitions SET effect_state = 'canceled', next_at = NULL, settled_at = now() WHERE order_id = ORDER('ord_owed') AND version = 2`, kinds(audit.EffectOwed)},
	{"EffectThatIsNotOwed", `UPDATE order_transitions SET effect = 'hold' WHERE order_id = ORDER('ord_owed') AND version = 2`, kinds(audit.EffectOwed)},
	{"EffectCanceledAfterItWasTried", `UPDATE order_transitions SET effect_state = 'canceled', next_at = NULL, settled_at = now() WHERE order_id = ORDER('ord_waits') AND version = 2`, kinds(audit.EffectOwed, audit.EffectRow)},
	{"EffectTwice", `DROP INDEX order_transitions_one_open; UPDATE order_transitions SET effect = 'fulfil', effect_state = 'open', after = 'nothing', next_at = now() WHERE order_id = ORDER('ord_owed') AND version = 1`, kinds(audit.EffectOwed)},
	{"EffectWithoutANextTime", `UPDATE order_transitions SET next_at = NULL WHERE order_id = ORDER('ord_owed') AND version = 2`, kinds(audit.EffectRow)},
	{"EffectNeverTried", `UPDATE order_transitions SET tried = false WHERE order_id = ORDER('ord_waits') AND version = 2`, kinds(audit.EffectRow)},
	{"EffectFence", `UPDATE order_transitions SET fence = 99 WHERE order_id = ORDER('ord_claimed') AND version = 2`, kinds(audit.EffectRow)},
	{"EffectFenceOfTheOrder", `UPDATE orders SET fence = 9 WHERE external_ref = 'ord_claimed'`, kinds(audit.EffectRow)},
	{"EffectEnded", `UPDATE order_transitions SET settled_at = NULL WHERE order_id = ORDER('ord_paid') AND version = 2`, kinds(audit.EffectRow)},
	{"EffectUndoes", `UPDATE order_transitions SET undoes = 1 WHERE order_id = ORDER('ord_doubt') AND effect = 'revoke'`, kinds(audit.EffectRow)},
	{"PromiseLost", `UPDATE orders SET wake_at = NULL WHERE external_ref = 'ord_owed'`, kinds(audit.EffectPromise)},
	{"PromisePutOff", `UPDATE orders SET wake_at = wake_at + interval '1 day' WHERE external_ref = 'ord_waits'`, kinds(audit.EffectPromise)},
	{"PromiseOfAClaimLost", `UPDATE orders SET wake_at = NULL WHERE external_ref = 'ord_claimed'`, kinds(audit.EffectPromise)},

	{"IncomeAmount", `UPDATE incomes SET amount = 1 WHERE external_ref = 'cash_1'`, kinds(audit.IncomeEvent)},
	{"IncomeKind", `UPDATE incomes SET kind = 'card' WHERE external_ref = 'cash_1'`, kinds(audit.IncomeEvent)},
	{"IncomeOfAnotherOrder", `UPDATE incomes SET order_id = ORDER('ord_paid') WHERE external_ref = 'cash_1'`, kinds(audit.IncomeEvent)},
	{"IncomeVoided", `UPDATE incomes SET status = 'voided', voided_at = now() WHERE external_ref = 'cash_1'`, kinds(audit.IncomeEvent)},
	{"IncomeVoidedNoMore", `UPDATE incomes SET status = 'received', voided_at = NULL WHERE external_ref = 'cash_2'`, kinds(audit.IncomeEvent)},
	{"IncomeLost", `DELETE FROM incomes WHERE external_ref = 'cash_1'`, kinds(audit.IncomeEvent)},
	{"IncomeThatNobodyEntered", `INSERT INTO incomes (account_id, id, party, kind, amount, currency) VALUES ('shop', gen_random_uuid(), 'x', 'cash', 1, 'EUR')`, kinds(audit.IncomeEvent)},
	{"RecurrenceCount", `UPDATE recurrences SET created_count = created_count - 1`, kinds(audit.RecurrenceNext)},
	{"RecurrenceAhead", `UPDATE recurrences SET created_count = created_count + 1`, kinds(audit.RecurrenceNext, audit.RecurrenceOrder)},
	{"TransactionAmount", `UPDATE transactions SET amount = 1001 WHERE external_ref = 'move_0'`, kinds(audit.TransactionCall)},
	{"TransactionKind", `UPDATE transactions SET kind = 'capture' WHERE external_ref = 'move_0'`, kinds(audit.TransactionCall)},
	{"TransactionKey", `UPDATE transactions SET key = gen_random_uuid()::text WHERE external_ref = 'move_1'`, kinds(audit.TransactionCall)},
	{"TransactionEpoch", `UPDATE transactions SET epoch = 2 WHERE external_ref = 'move_1'`, kinds(audit.TransactionCall)},
	{"KeyAnswer", `UPDATE idempotency_keys SET response_raw = '{"data": {"amount": 1001}}' WHERE idempotency_key = '/made'`, kinds(audit.KeyAnswer)},
	{"KeyAnswerLost", `UPDATE idempotency_keys SET response_raw = NULL WHERE idempotency_key = '/made'`, kinds(audit.KeyAnswer)},
	{"KeyThatFailedHasAnAnswer", `UPDATE idempotency_keys SET response_code = 201 WHERE idempotency_key = '/failed'`, kinds(audit.KeyAnswer)},
	{"KeyResource", `UPDATE idempotency_keys SET resource_id = gen_random_uuid() WHERE idempotency_key = '/made'`, kinds(audit.KeyResource)},
	{"Bytes", `UPDATE event_payloads SET body = (SELECT body FROM event_payloads WHERE event_id = 'evt_owed') WHERE event_id = 'evt_waits'`, kinds(audit.EventBytes)},
	{"BytesThatCannotBeRead", `UPDATE event_payloads SET body = 'odd' WHERE event_id = 'evt_waits'`, kinds(audit.EventBytes)},
	{"FactsThatAreNotInTheBytes", forged, kinds(audit.EventBytes)},
}

// forged is a payment of twice the money, in every table alike, by somebody who knows them: only the bytes tell.
const forged = `
	UPDATE processed_events SET facts = jsonb_set(facts, '{facts,0,amount}', '4000'), facts_hash =
		substr(sha256(convert_to('{"payment":["pi_stub"],"reference":"ord_stub","strength":"payment","facts":[{"kind":"captured","amount":4000,"currency":"EUR"}]}', 'UTF8')), 1, 16)
	WHERE event_id = 'evt_stub';
	UPDATE payments SET ledger = jsonb_set(ledger, '{money,EUR,captured_total,amount}', '4000') WHERE id = PAYMENT('pi_stub');
	UPDATE orders SET captured = 4000, kept = 4000 WHERE external_ref = 'ord_stub';
	UPDATE order_transitions SET kept = 4000 WHERE order_id = ORDER('ord_stub') AND version = 2`

func kinds(list ...audit.Kind) []audit.Kind {
	slices.Sort(list)
	return list
}

// tables are what an audit reads, in an order in which they can be filled.
var tables = []string{
	"processed_events", "event_meanings", "event_payloads", "recurrences", "orders", "payments", "payment_ids", "order_transitions", "incomes", "transactions", "idempotency_keys",
}

// keep copies all tables, and returns what puts everything back as it was.
func keep(t *testing.T, pool *pgxpool.Pool) (reset func()) {
	t.Helper()
	sql := "CREATE SCHEMA keep;"
	for _, table := range tables {
		sql += fmt.Sprintf("CREATE TABLE keep.%[1]s AS SELECT * FROM %[1]s;", table)
	}
	exec(t, pool, sql)
	var back strings.Builder
	for _, table := range slices.Backward(tables) {
		fmt.Fprintf(&back, "DELETE FROM %s;", table)
	}
	for _, table := range tables {
		fmt.Fprintf(&back, "INSERT INTO %[1]s SELECT * FROM keep.%[1]s;", table)
	}
	back.WriteString(`CREATE UNIQUE INDEX IF NOT EXISTS order_transitions_one_open ON order_transitions (account_id, order_id) WHERE effect_state IN ('open', 'claimed', 'dead')`)
	return func() { exec(t, pool, back.String()) }
}

// exec runs statements in one transaction.
func exec(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	_, err := pool.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
}

// Every corruption is found, and nothing but what follows from it.
func TestPlanted(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	w := newShop(t, t.Context(), s, "shop")
	w.history(t)
	reset := keep(t, pool)
	found := map[audit.Kind]bool{}
	for _, c := range corruptions {
		exec(t, pool, named.Replace(c.sql))
		got, lines := auditOf(t, s, w)
		require.Equal(t, c.want, got, "%s:\n%s", c.name, strings.Join(lines, "\n"))
		for _, k := range got {
			found[k] = true
		}
		reset()
	}
	for _, k := range audit.Kinds() {
		require.True(t, found[k], "no corruption is told of as %s", k)
	}
	got, lines := auditOf(t, s, w)
	require.Empty(t, got, strings.Join(lines, "\n"))
}

// auditOf is what an audit with bytes finds: the kinds, each once, and the differences.
func auditOf(t *testing.T, s *store.Store, w *shop) (found []audit.Kind, lines []string) {
	t.Helper()
	_, err := audit.Run(t.Context(), s, audit.Options{Read: w.read, Each: func(d audit.Difference) error {
		found, lines = append(found, d.Kind), append(lines, d.String())
		return nil
	}})
	require.NoError(t, err)
	slices.Sort(found)
	return slices.Compact(found), lines
}
