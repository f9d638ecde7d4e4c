package migrations

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// The two origins of migrations.
const (
	Paidonce = "paidonce"
	River    = "river"
)

// Step is one migration, of this program or found in a database.
type Step struct {
	Origin  string `json:"origin"` // Paidonce or River
	Version int64  `json:"version"`
	Name    string `json:"name,omitempty"` // empty if the program does not know it

	// AppliedAt is when the database was given it; nil if it is pending.
	AppliedAt *time.Time `json:"applied_at"`

	// Newer reports that the database has it and this program does not: a later
	// release has migrated. That is in order.
	Newer bool `json:"newer"`
}

// Pending reports whether the database still lacks the step.
func (s Step) Pending() bool { return s.AppliedAt == nil }

// Version says where a schema stands. The zero value is an empty database.
type Version struct {
	Paidonce int64
	River    int64
}

func (v Version) String() string { return fmt.Sprintf("%d, River %d", v.Paidonce, v.River) }

// OldSchemaError means that the program must not run on this database before
// it is migrated.
type OldSchemaError struct {
	Have, Need Version // the highest steps applied, and known
}

func (e *OldSchemaError) Error() string {
	if e.Have == (Version{}) {
		return "the database has no Paidonce schema; run paidonce migrate up"
	}
	return fmt.Sprintf("the database's schema is older than this program (it is at %s; needed is %s); run paidonce migrate up",
		e.Have, e.Need)
}

// DB is what reading the schema takes: a pgx connection, pool or transaction.
type DB interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Check returns an [*OldSchemaError] if a migration that this program knows is not applied. A
// schema newer than the program is accepted; [Inspect] shows it.
// Check only reads.
func Check(ctx context.Context, db DB) error {
	return check(ctx, db, files)
}

func check(ctx context.Context, db DB, files fs.FS) error {
	steps, err := inspect(ctx, db, files)
	if err != nil {
		return err
	}
	var e OldSchemaError
	for _, s := range steps {
		if !s.Newer {
			e.Need.reach(s)
		}
		if !s.Pending() {
			e.Have.reach(s)
		}
	}
	if slices.ContainsFunc(steps, Step.Pending) {
		return &e
	}
	return nil
}

func (v *Version) reach(s Step) {
	if s.Origin == River {
		v.River = max(v.River, s.Version)
	} else {
		v.Paidonce = max(v.Paidonce, s.Version)
	}
}

// Status returns every migration, applied or pending, in the order in which
// they are applied. It only reads.
func Status(ctx context.Context, url string) ([]Step, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return Inspect(ctx, conn)
}

// Inspect is [Status] over a connection that is there already.
func Inspect(ctx context.Context, db DB) ([]Step, error) {
	return inspect(ctx, db, files)
}

func inspect(ctx context.Context, db DB, files fs.FS) ([]Step, error) {
	known, err := knownSteps(files)
	if err != nil {
		return nil, err
	}
	applied, err := appliedSteps(ctx, db)
	if err != nil {
		return nil, err
	}
	for _, a := range applied {
		i := slices.IndexFunc(known, func(k Step) bool { return k.Origin == a.Origin && k.Version == a.Version })
		if i >= 0 {
			known[i].AppliedAt = a.AppliedAt
			continue
		}
		a.Newer = true
		last := len(known)
		for last > 0 && (known[last-1].Origin != a.Origin || known[last-1].Version > a.Version) {
			last--
		}
		known = slices.Insert(known, last, a)
	}
	return known, nil
}

// knownSteps returns what this program would apply to an empty database.
func knownSteps(files fs.FS) ([]Step, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	var steps []Step
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return nil, fmt.Errorf("migrations: %s: %w", name, err)
		}
		steps = append(steps, Step{Origin: Paidonce, Version: version, Name: path.Base(name)})
	}
	river, err := riverSteps()
	if err != nil {
		return nil, err
	}
	for _, m := range river {
		steps = append(steps, Step{Origin: River, Version: int64(m.Version), Name: m.Name})
	}
	return steps, nil
}

// appliedSteps reads both accounts. goose's own reader would create its table.
func appliedSteps(ctx context.Context, db DB) ([]Step, error) {
	var ours, river bool
	err := db.QueryRow(ctx, `
		SELECT to_regclass('paidonce_migrations') IS NOT NULL, to_regclass('river_migration') IS NOT NULL`).Scan(&ours, &river)
	if err != nil {
		return nil, fmt.Errorf("migrations: read the schema's version: %w", err)
	}
	var steps []Step
	read := func(sql string) error {
		rows, _ := db.Query(ctx, sql) // CollectRows returns its error
		found, err := pgx.CollectRows(rows, pgx.RowToStructByNameLax[Step])
		if err != nil {
			return fmt.Errorf("migrations: read the schema's version: %w", err)
		}
		steps = append(steps, found...)
		return nil
	}
	if ours {
		err = read(`
			SELECT 'paidonce' AS origin, version_id AS version, min(tstamp) AT TIME ZONE 'UTC' AS applied_at
			FROM paidonce_migrations
			WHERE is_applied AND version_id > 0
			GROUP BY version_id
			ORDER BY version_id`)
	}
	if err == nil && river {
		// The column line came with River's fifth migration.
		err = read(`
			SELECT 'river' AS origin, version, created_at AS applied_at
			FROM river_migration AS m
			WHERE coalesce(to_jsonb(m)->>'line', 'main') = 'main'
			ORDER BY version`)
	}
	return steps, err
}

// Fingerprint returns a hash of everything that [Up] would apply to an empty
// database, in hexadecimal: it names what may be reused, such as a template for tests.
func Fingerprint() (string, error) { return fingerprint(files) }

func fingerprint(files fs.FS) (string, error) {
	sum := sha256.New()
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return "", fmt.Errorf("migrations: %w", err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return "", fmt.Errorf("migrations: %w", err)
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
	}
	river, err := riverSteps()
	if err != nil {
		return "", err
	}
	for _, m := range river {
		fmt.Fprintf(sum, "%d %d\n%s", m.Version, len(m.SQLUp), m.SQLUp)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func riverSteps() ([]rivermigrate.Migration, error) {
	river, err := rivermigrate.New(riverpgxv5.New(nil), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("migrations: River: %w", err)
	}
	return river.AllVersions(), nil
}
