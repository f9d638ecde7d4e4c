package torture_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSchedulesGoEverywhere: a few of them are enough to see every verdict, so that the rest of them mean something.
func TestSchedulesGoEverywhere(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	for seed := range 8 {
		require.NoError(t, h.play(schedules.Example(seed)))
	}
	for _, kind := range []string{"run", "replay", "reused", "busy", "own", "unknown", "panic"} {
		require.NotZero(t, h.kinds[kind], kind)
	}
}

// TestSchedulesFindFaults breaks what the middleware stands on, one promise at a time, and has schedules find it by what callers see
// and what is left in the database.
func TestSchedulesFindFaults(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.blind = true
	// trigger changes or drops what is written to the table.
	trigger := func(when, does string) func() {
		return func() {
			h.s.exec(`CREATE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ` + does + ` RETURN NEW; END $$`)
			h.s.exec(`CREATE TRIGGER fault BEFORE ` + when + ` EXECUTE FUNCTION fault()`)
		}
	}
	const (
		always    = `UPDATE ON idempotency_keys FOR EACH ROW`
		failed    = `UPDATE ON idempotency_keys FOR EACH ROW WHEN (NEW.status = 'FAILED')`
		completed = `UPDATE ON idempotency_keys FOR EACH ROW WHEN (NEW.status = 'COMPLETED')`
		taken     = `UPDATE ON idempotency_keys FOR EACH ROW WHEN (NEW.fence > OLD.fence)`
	)
	for name, fault := range map[string]func(){
		"TheFenceStandsStill":    trigger(always, `NEW.fence := OLD.fence;`),
		"TheAnswerIsNotTheSame":  trigger(completed, `NEW.response_raw := NEW.response_raw || ' '::bytea;`),
		"TheAnswerIsNotKept":     trigger(completed, `NEW.response_raw := NULL;`),
		"KeysDieYoung":           trigger(completed, `NEW.expires_at := NEW.created_at + interval '1 hour';`),
		"KeysLiveLonger":         trigger(completed, `NEW.expires_at := NEW.completed_at + interval '48 hours';`),
		"FailuresFreeTheBody":    trigger(failed, `NEW.hash_bound := false;`),
		"FailuresBindTheBody":    trigger(failed, `NEW.hash_bound := true;`),
		"FailuresKeepTheLock":    trigger(failed, `RETURN NULL;`),
		"LocksDoNotGrowOld":      trigger(`INSERT ON idempotency_keys FOR EACH ROW`, `NEW.lock_timeout := interval '1 year';`),
		"TheOutboundKeyChanges":  trigger(taken, `NEW.epoch := OLD.epoch + 1;`),
		"TheOutboundKeyStays":    trigger(taken, `NEW.epoch := OLD.epoch;`),
		"TheSweeperTakesNothing": trigger(`DELETE ON idempotency_keys FOR EACH ROW`, `RETURN NULL;`),
		"EffectsEscape":          func() { h.leaks = true },
		"BodiesLookAlike":        func() { h.alike = true },
	} {
		t.Run(name, func(t *testing.T) {
			fault()
			defer func() {
				h.s.exec(`DROP FUNCTION IF EXISTS fault CASCADE`)
				h.leaks, h.alike = false, false
			}()
			var err error
			seed := 0
			for ; err == nil && seed < 40; seed++ {
				err = h.play(schedules.Example(seed))
			}
			require.Error(t, err, "nobody noticed")
			said, _, _ := strings.Cut(err.Error(), "\n")
			t.Logf("after %d schedules: %.200s", seed, said)
		})
	}
}

// TestInterleavingsFindFaults has scores find what is broken on purpose.
func TestInterleavingsFindFaults(t *testing.T) {
	t.Parallel()
	twice := []part{{Body: `{"amount":5000}`}, {Body: `{"amount":5000}`}}
	for name, fault := range map[string]struct {
		path  string
		calls []part // nil: those of the score
		make  func(*testing.T) *conductor
	}{
		"EffectsEscape": {ordersPath, nil, func(t *testing.T) *conductor { return newConductor(t, true) }},
		"TheFenceStandsStill": {chargesPath, twice, func(t *testing.T) *conductor {
			c := newConductor(t, false)
			c.aging = 12
			c.exec(`CREATE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.fence := OLD.fence; RETURN NEW; END $$`)
			c.exec(`CREATE TRIGGER fault BEFORE UPDATE ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION fault()`)
			return c
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fault.make(t)
			var err error
			seed := 0
			for ; err == nil && seed < 200; seed++ {
				s := scores.Example(seed)
				if s.Path = fault.path; fault.calls != nil {
					s.Calls = fault.calls
				}
				err = c.perform(s)
			}
			require.Error(t, err, "nobody noticed")
			t.Logf("after %d scores: %s", seed, err)
		})
	}
}
