package store

import (
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// conditions puts the WHERE of a list together. A condition that is absent must be absent from the text too, or no index is
// chosen by the others; and partial indexes serve only what is written out. Nothing of a caller's gets into the text: values are
// arguments.
type conditions struct {
	list []string
	args []any
}

// add adds a condition, in which every ? stands for the next of args.
func (c *conditions) add(cond string, args ...any) {
	for _, arg := range args {
		cond = strings.Replace(cond, "?", c.arg(arg), 1)
	}
	c.list = append(c.list, cond)
}

// arg adds an argument, and returns what stands for it.
func (c *conditions) arg(v any) string {
	c.args = append(c.args, v)
	return "$" + strconv.Itoa(len(c.args))
}

// where is the clause, empty without conditions.
func (c *conditions) where() string {
	if len(c.list) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(c.list, " AND ")
}

// created asks for rows that were made from the one time on and before the other, where they are not zero. Rows are listed by
// their ids, which are by age: the bounds on ids are what an index can use.
func (c *conditions) created(table string, from, until time.Time) {
	if !from.IsZero() {
		c.add(table+".created_at >= ? AND "+table+".id >= ?", from, firstID(from.Add(-idSlack)))
	}
	if !until.IsZero() {
		c.add(table+".created_at < ? AND "+table+".id < ?", until, firstID(until.Add(idSlack)))
	}
}

// idSlack is how far the time in a row's id, which is a process's, may be from created_at, which is the database's. Clocks
// that differ by more than minutes have every signature refused.
const idSlack = time.Hour

// firstID is the least UUIDv7 that could have been made at t.
func firstID(t time.Time) uuid.UUID {
	var id uuid.UUID
	ms := uint64(min(max(t.UnixMilli(), 0), 1<<48-1))
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i)))
	}
	return id
}
