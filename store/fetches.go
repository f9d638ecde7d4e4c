package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// How an object is asked about. A row of fetches says that somebody has announced it since it was asked about last;
// its next_at is a promise like orders.wake_at: a job or the ticker comes at or soon after it, so jobs may be deleted,
// doubled or late without harm.
//
//	claim   the row that is due, for the time of a lease, and commit
//	ask     no transaction, no lock; what the answer says is ingested like any event
//	settle  what came of it, if the claim still stands: done, asked again, or given up
//
// However often an object is announced, one call is out and one more follows at most: an announcement that finds the
// row open changes nothing, one that comes while a call is out says that its answer may be too old. Only where the
// gateway did not know the object does an announcement that was signed bring the next call forward.

// Announcement says that an object at a gateway may have changed.
type Announcement struct {
	Account string
	Source  string
	Gateway string // whose API knows it
	Object  string // "kind/id"

	Unsigned bool // anybody may have sent it, and made the object up
}

// Announced counts what became of announcements.
type Announced struct {
	Stored  int // a call was asked for
	Known   int // one that is still to begin was asked for before
	Dropped int // not stored: too many objects of the source are open

	// Displaced counts objects that were deleted to make room: strangers' inventions.
	Displaced int
}

// The ways to fail, [FetchAnswer].Failing, that may mean that an object was made up: the gateway does not know it, does
// not like its id, or says something that is about no such object. Others, such as a gateway that is down, say nothing of it.
const (
	FetchGone       = "gone"
	FetchRefused    = "refused"
	FetchUnreadable = "unreadable"
)

// DefaultMaxOpenFetches is [Options].MaxOpenFetches where that is 0.
const DefaultMaxOpenFetches = 1000

// ErrBadAnnouncement is wrapped by the error of an announcement that no row can be made of.
var ErrBadAnnouncement = errors.New("announcement cannot be stored")

func (a Announcement) check() error {
	kind, id, _ := strings.Cut(a.Object, "/")
	switch {
	case a.Account == "" || a.Source == "" || a.Gateway == "":
		return fmt.Errorf("%w: no account, source or gateway", ErrBadAnnouncement)
	case kind == "" || id == "" || len(a.Object) > 512 || !utf8.ValidString(a.Object) || strings.IndexByte(a.Object, 0) >= 0:
		return fmt.Errorf("%w: the object is not kind/id in 512 bytes of text", ErrBadAnnouncement)
	}
	return nil
}

const (
	// sqlAnnounced looks without a lock. That a row is seen open and unclaimed is enough: whoever claims it later calls
	// later, and the answer will know what is announced here.
	sqlAnnounced = `
		SELECT x.n, f.object IS NULL OR f.state = 'dead' AND f.last_digest IS NULL,
			coalesce(f.state = 'open' AND (f.claimed_until IS NULL OR f.again) AND NOT ($4 AND ` + sqlSooner + `), false)
		FROM unnest($3::text[]) WITH ORDINALITY AS x(object, n)
		LEFT JOIN LATERAL (
			SELECT * FROM fetches f WHERE f.account_id = $1 AND f.source_id = $2 AND f.object = x.object LIMIT 1) f ON true`

	sqlOpenFetches = `
		SELECT count(*) FROM (
			SELECT FROM fetches WHERE account_id = $1 AND source_id = $2 AND next_at IS NOT NULL LIMIT $3) f`

	// sqlDisplace makes room by deleting what the gateway did not know, and never knew: what was asked about most often first.
	sqlDisplace = `
		DELETE FROM fetches f USING (
			SELECT account_id, source_id, object FROM fetches
			WHERE account_id = $1 AND source_id = $2 AND next_at IS NOT NULL
				AND claimed_until IS NULL AND last_digest IS NULL
				AND failing IN ('` + FetchGone + `', '` + FetchRefused + `', '` + FetchUnreadable + `')
			ORDER BY attempts DESC, next_at DESC LIMIT $3
			FOR UPDATE SKIP LOCKED) o
		WHERE f.account_id = o.account_id AND f.source_id = o.source_id AND f.object = o.object`

	// sqlPause is how long after a call that brought nothing new another may begin. It keeps somebody who announces one
	// object on and on from having it asked about all the time.
	sqlPause = `CASE WHEN f.unchanged = 0 THEN interval '0' ELSE interval '1 second' * power(2, least(f.unchanged, 6) - 1) END`

	// sqlRecheck is when an object that the gateway did not know may be asked about again because it was announced by
	// somebody who signed: its API may have caught up with its webhooks. sqlSooner says whether that is sooner than planned.
	sqlRecheck = `greatest(clock_timestamp(), f.asked_at + interval '1 second' * power(2, least(f.attempts, 6) - 1))`
	sqlSooner  = `f.claimed_until IS NULL AND f.failing IN ('` + FetchGone + `', '` + FetchRefused + `', '` + FetchUnreadable + `') AND f.next_at > ` + sqlRecheck

	sqlAnnounce = `
		INSERT INTO fetches AS f (account_id, source_id, object, gateway)
		SELECT $1, $2, object, $3 FROM unnest($4::text[]) AS x(object) ORDER BY object
		ON CONFLICT ON CONSTRAINT fetches_pk DO UPDATE SET
			gateway = excluded.gateway,
			state = 'open',
			again = f.claimed_until IS NOT NULL,
			next_at = CASE WHEN f.state = 'open' AND $5 AND ` + sqlSooner + ` THEN ` + sqlRecheck + `
				WHEN f.state = 'open' THEN f.next_at ELSE greatest(clock_timestamp(), f.asked_at + ` + sqlPause + `) END,
			announced_at = CASE WHEN f.state = 'open' THEN f.announced_at ELSE clock_timestamp() END,
			attempts = CASE WHEN f.state = 'open' THEN f.attempts ELSE 0 END,
			failing = CASE WHEN f.state = 'open' THEN f.failing END,
			last_error = CASE WHEN f.state = 'open' THEN f.last_error END
		WHERE f.state <> 'open' OR f.claimed_until IS NOT NULL AND NOT f.again OR $5 AND ` + sqlSooner + `
		RETURNING f.object, f.again, f.next_at, clock_timestamp()`
)

// Announce enters that objects may have changed, all of one source, and asks for the jobs that will find out: both
// commit together. Announcing is idempotent.
//
// At most [Options].MaxOpenFetches objects of a source are open at once; objects beyond that are not stored, save those
// that were asked about before with success: their number is not a stranger's to choose.
func (s *Store) Announce(ctx context.Context, list []Announcement) (Announced, error) {
	var out Announced
	if len(list) == 0 {
		return out, nil
	}
	first := list[0]
	objects := make([]string, 0, len(list))
	for _, a := range list {
		if err := a.check(); err != nil {
			return out, err
		}
		if a.Account != first.Account || a.Source != first.Source || a.Gateway != first.Gateway {
			return out, fmt.Errorf("%w: of several sources", ErrBadAnnouncement)
		}
		objects = append(objects, a.Object)
	}
	slices.Sort(objects)
	objects = slices.Compact(objects)

	out, err := retry(ctx, &s.retried, func() (Announced, error) { return s.announce(ctx, first, objects) })
	if err != nil {
		return Announced{}, fmt.Errorf("announce %d objects of source %s: %w", len(objects), first.Source, err)
	}
	return out, nil
}

func (s *Store) announce(ctx context.Context, a Announcement, objects []string) (Announced, error) {
	var (
		out           Announced
		strange       []string // that count against the source's bound
		wanted        []string
		limit         = s.opts.MaxOpenFetches
		open          int
		n             int
		isNew, waits  bool
		countOpenInto = func(row pgx.Row) error { return row.Scan(&open) }
		b             pgx.Batch
	)
	b.Queue("BEGIN READ ONLY")
	b.Queue(sqlSettings)
	b.Queue(sqlAnnounced, a.Account, a.Source, objects, !a.Unsigned).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&n, &isNew, &waits}, func() error {
			switch {
			case waits:
				out.Known++
			case isNew:
				strange = append(strange, objects[n-1])
			default:
				wanted = append(wanted, objects[n-1])
			}
			return nil
		})
		return err
	})
	b.Queue(sqlOpenFetches, a.Account, a.Source, limit).QueryRow(countOpenInto)
	b.Queue("COMMIT")
	if err := s.inPipe(ctx, func(tx *pipedTx) error { return send(ctx, tx, &b) }); err != nil {
		return out, err
	}
	if len(strange)+len(wanted) == 0 {
		return out, nil
	}
	err := s.inPipe(ctx, func(tx *pipedTx) error {
		var b pgx.Batch
		b.Queue("BEGIN")
		b.Queue(sqlSettings)
		// Near the bound, those who add to a source take turns, so that it holds. Further off, as many as there can be
		// connections do not reach it together.
		if len(strange) > 0 && open+len(strange) > limit-max(limit/4, 64) {
			b.Queue(`SELECT pg_advisory_xact_lock(hashtextextended('paidonce: fetches of ' || $1 || '/' || $2, 0))`, a.Account, a.Source)
			b.Queue(sqlOpenFetches, a.Account, a.Source, limit).QueryRow(countOpenInto)
		}
		if err := send(ctx, tx, &b); err != nil {
			return err
		}
		if short := len(strange) - max(0, limit-open); short > 0 && a.Unsigned {
			tag, err := tx.Exec(ctx, sqlDisplace, a.Account, a.Source, short)
			if err != nil {
				return err
			}
			out.Displaced = int(tag.RowsAffected())
		}
		room := min(len(strange), max(0, limit-open)+out.Displaced)
		out.Dropped = len(strange) - room
		wanted := append(wanted, strange[:room]...)
		slices.Sort(wanted)
		out.Stored = len(wanted)
		b = pgx.Batch{}
		jobs, now, err := s.reopen(ctx, tx, a, wanted)
		if err != nil {
			return err
		}
		if len(jobs) > 0 && s.fetchBell.rings(now) {
			queueFetchBell(&b)
		}
		b.Queue("COMMIT")
		return send(ctx, tx, &b)
	})
	return out, err
}

// reopen opens rows, or marks those that are being asked about, and enqueues what has to be.
func (s *Store) reopen(ctx context.Context, tx *pipedTx, a Announcement, objects []string) ([]fetchJob, time.Time, error) {
	var (
		jobs      []fetchJob
		object    string
		again     bool
		next, now time.Time
	)
	rows, _ := tx.Query(ctx, sqlAnnounce, a.Account, a.Source, a.Gateway, objects, !a.Unsigned)
	_, err := pgx.ForEachRow(rows, []any{&object, &again, &next, &now}, func() error {
		if !again { // else the settle of the call that is out goes on
			jobs = append(jobs, fetchAt(FetchArgs{a.Account, a.Source, object}, next, now))
		}
		return nil
	})
	if err != nil {
		return nil, now, err
	}
	return jobs, now, s.enqueueFetches(ctx, tx, jobs)
}
