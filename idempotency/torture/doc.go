// Package torture holds the hard tests of package idempotency: processes that are killed at every step, a wire to the
// database that is cut at every statement, PgBouncer in between, crowds at several servers, and random schedules against
// a model. There is nothing here but tests.
package torture
