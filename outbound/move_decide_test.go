package outbound_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/outbound"
	"github.com/paidonce/paidonce/store"
)

// sending is the claim of a call that is made for the n-th time; looking of one that is looked up for the n-th time.
func sending(n int) store.MoveClaim {
	c := store.MoveClaim{Since: noon}
	c.Status, c.Attempts, c.Epoch, c.Gateway = store.TransactionSent, n, 1, "mover"
	c.SentAt = &noon
	return c
}

func looking(n int) store.MoveClaim {
	c := sending(1)
	c.Status, c.Lookups, c.Code = store.TransactionUncertain, n, "outcome_unknown"
	return c
}

var patient = outbound.MoveOptions{
	Retry: []time.Duration{time.Second, 10 * time.Second}, Denied: []time.Duration{time.Minute}, Lookup: []time.Duration{2 * time.Second, 20 * time.Second},
}

func about(t *testing.T, want, got time.Duration) {
	t.Helper()
	require.InDelta(t, want.Seconds(), got.Seconds(), want.Seconds()/5+.001)
}

func TestT102_UnansweredIsRepeatedUnderTheSameKey(t *testing.T) {
	t.Parallel()
	for n, wait := range map[int]time.Duration{1: time.Second, 2: 10 * time.Second, 30: 10 * time.Second} {
		for _, err := range []error{failure(outbound.Retry, 0, 0), failure(outbound.Retry, 503, 0), failure(outbound.Refused, 200, 0), context.DeadlineExceeded, errors.New("?")} {
			r := outbound.Unanswered(patient, sending(n), true, err)
			require.Equal(t, store.TransactionSent, r.Status, "%v", err)
			require.False(t, r.Free)
			require.Equal(t, "unanswered", r.Code)
			about(t, wait, r.Wait)
		}
	}
	r := outbound.Unanswered(patient, sending(1), true, failure(outbound.Retry, 503, time.Minute))
	require.GreaterOrEqual(t, r.Wait, time.Minute, "Retry-After is obeyed")

	// A call that was not made costs no attempt, and says so.
	r = outbound.Unanswered(patient, sending(1), true, failure(outbound.Retry, 0, 3*time.Second))
	require.True(t, r.Free)
	require.Equal(t, 3*time.Second, r.Wait)
	r = outbound.Unanswered(patient, sending(1), true, failure(outbound.Refused, 0, 0))
	require.True(t, r.Free)
	require.True(t, r.Alarm)
	require.Equal(t, "cannot_call", r.Code)
	about(t, time.Minute, r.Wait)

	// A question that is not answered is asked again, and what is known of the call stays.
	r = outbound.Unanswered(patient, looking(1), true, failure(outbound.Retry, 500, 0))
	require.Equal(t, []any{store.TransactionUncertain, "outcome_unknown", false}, []any{r.Status, r.Code, r.Stop})
	about(t, 2*time.Second, r.Wait)
	r = outbound.Unanswered(patient, looking(3), true, failure(outbound.Retry, 500, 0))
	require.True(t, r.Stop, "asked often enough: a webhook or a person")
}

func TestT103_InProgressWaits(t *testing.T) {
	t.Parallel()
	for n := range 50 {
		r := outbound.Judged(patient, sending(n+1), true, gateway.Verdict{Ruling: gateway.Later, Code: "in_progress"})
		require.Equal(t, []any{store.TransactionSent, false, "in_progress"}, []any{r.Status, r.Stop, r.Code})
		require.Positive(t, r.Wait)
	}
	r := outbound.Judged(patient, sending(1), true, gateway.Verdict{Ruling: gateway.Later, After: time.Hour})
	require.Equal(t, time.Hour, r.Wait)
}

func TestT104_AKeyThatIsAnothersStopsAndAlarms(t *testing.T) {
	t.Parallel()
	r := outbound.Judged(patient, sending(1), true, gateway.Verdict{Ruling: gateway.Reused})
	require.Equal(t, []any{store.TransactionUncertain, "idempotency_key_reused", true, false}, []any{r.Status, r.Code, r.Alarm, r.Stop})
	require.True(t, outbound.Judged(patient, sending(1), false, gateway.Verdict{Ruling: gateway.Reused}).Stop, "where nobody can be asked, a person must look at once")

	// What became of it may still be found; another key is not made, even if nothing was done.
	c := looking(1)
	c.Code = "idempotency_key_reused"
	require.Equal(t, store.TransactionSucceeded, outbound.Judged(patient, c, true, gateway.Verdict{Ruling: gateway.Done}).Status)
	r = outbound.Judged(patient, c, true, gateway.Verdict{Ruling: gateway.Absent})
	require.Equal(t, []any{store.TransactionUncertain, true, true}, []any{r.Status, r.Stop, r.Alarm})
	require.Equal(t, "idempotency_key_reused", outbound.Judged(patient, c, true, gateway.Verdict{Ruling: gateway.Unsure}).Code)
}

func TestT105_AStoredFailureIsLookedUp(t *testing.T) {
	t.Parallel()
	r := outbound.Judged(patient, sending(1), true, gateway.Verdict{Ruling: gateway.Unsure})
	require.Equal(t, []any{store.TransactionUncertain, false, "outcome_unknown"}, []any{r.Status, r.Stop, r.Code})
	about(t, 2*time.Second, r.Wait)
	// Where nobody can be asked in another way, the same call is repeated, as long as its key lives.
	r = outbound.Judged(patient, sending(1), false, gateway.Verdict{Ruling: gateway.Unsure})
	require.Equal(t, []any{store.TransactionSent, false, "outcome_unknown"}, []any{r.Status, r.Stop, r.Code})
	about(t, time.Second, r.Wait)

	// Only what is proven not to be done is done anew; and only a lookup proves it.
	r = outbound.Judged(patient, looking(1), true, gateway.Verdict{Ruling: gateway.Absent})
	require.Equal(t, []any{store.TransactionPending, "not_done"}, []any{r.Status, r.Code})
	require.Positive(t, r.Wait)
	require.Equal(t, store.TransactionUncertain, outbound.Judged(patient, sending(1), true, gateway.Verdict{Ruling: gateway.Absent}).Status)
	for _, unproven := range []gateway.Ruling{gateway.Unsure, gateway.Later, gateway.Denied, ""} {
		require.Equal(t, store.TransactionUncertain, outbound.Judged(patient, looking(1), true, gateway.Verdict{Ruling: unproven}).Status, unproven)
	}
	require.Equal(t, store.TransactionFailed, outbound.Judged(patient, looking(1), true, gateway.Verdict{Ruling: gateway.Declined, Code: "x"}).Status, "found, and come to nothing")

	// What is not there yet may come, if a call before was not answered: that it is absent is believed a while later.
	c := looking(1)
	c.Attempts, c.Since = 2, noon.Add(14*time.Minute)
	r = outbound.Judged(patient, c, true, gateway.Verdict{Ruling: gateway.Absent})
	require.Equal(t, store.TransactionUncertain, r.Status)
	require.GreaterOrEqual(t, r.Wait, time.Minute)
	c.Since = noon.Add(15 * time.Minute)
	require.Equal(t, store.TransactionPending, outbound.Judged(patient, c, true, gateway.Verdict{Ruling: gateway.Absent}).Status)

	// A refusal that may have been about an earlier try, of which there was none, is the end.
	r = outbound.Judged(patient, sending(1), true, gateway.Verdict{Ruling: gateway.Unsure, Code: "charge_already_refunded"})
	require.Equal(t, []any{store.TransactionUncertain, "charge_already_refunded"}, []any{r.Status, r.Code})
	c = looking(1)
	c.Code = "charge_already_refunded"
	r = outbound.Judged(patient, c, true, gateway.Verdict{Ruling: gateway.Absent})
	require.Equal(t, []any{store.TransactionFailed, "charge_already_refunded"}, []any{r.Status, r.Code})

	c = looking(1)
	c.Epoch = 3
	r = outbound.Judged(patient, c, true, gateway.Verdict{Ruling: gateway.Absent})
	require.Equal(t, []any{store.TransactionFailed, true}, []any{r.Status, r.Alarm}, "tried often enough, and surely not done")
}

func TestT106_DeclinedIsTheEnd(t *testing.T) {
	t.Parallel()
	r := outbound.Judged(patient, sending(7), true, gateway.Verdict{Ruling: gateway.Declined, Code: "insufficient_funds", Detail: "no"})
	require.Equal(t, []any{store.TransactionFailed, "insufficient_funds", "no"}, []any{r.Status, r.Code, r.Detail})
}

func TestT107_DoneIsDone(t *testing.T) {
	t.Parallel()
	for _, c := range []store.MoveClaim{sending(1), sending(9), looking(1)} {
		r := outbound.Judged(patient, c, true, gateway.Verdict{Ruling: gateway.Done, Ref: "re_1"})
		require.Equal(t, []any{store.TransactionSucceeded, "re_1", ""}, []any{r.Status, r.GatewayRef, r.Code})
	}
}

func TestT109_DeniedWaitsForAPerson(t *testing.T) {
	t.Parallel()
	for _, r := range []outbound.Ruled{
		outbound.Judged(patient, sending(1), true, gateway.Verdict{Ruling: gateway.Denied}),
		outbound.Unanswered(patient, sending(1), true, failure(outbound.Denied, 401, 0)),
	} {
		require.Equal(t, []any{store.TransactionSent, "credentials_denied", true, false}, []any{r.Status, r.Code, r.Alarm, r.Stop})
		about(t, time.Minute, r.Wait)
	}
	require.Equal(t, store.TransactionUncertain, outbound.Judged(patient, looking(1), true, gateway.Verdict{Ruling: gateway.Denied}).Status)
}
