package store

import (
	"strconv"
	"strings"
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
