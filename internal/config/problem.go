package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a configuration. What Load returns
// joins them; take them apart with [Problems].
type Problem struct {
	// Where is the place: file:line:column, or the environment variable. Empty
	// if the value stands nowhere, because it is missing.
	Where string

	// Path is the setting, as in accounts.shop.sources.stripe.secrets[0].
	Path string

	// Text is the sentence that says what is wrong and what to do. It holds no
	// secret.
	Text string

	at place
}

// newProblem keeps what looks like a secret out of the sentence, whoever wrote it to the wrong place.
func newProblem(at place, path, text string) *Problem {
	return &Problem{Where: at.String(), Path: hideLooks(path), Text: hideLooks(text), at: at}
}

// Error is where, path and text in one line.
func (p *Problem) Error() string {
	var parts []string
	for _, part := range []string{p.Where, p.Path, p.Text} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// Problems takes what Load returned apart. An error that holds none (a file
// that cannot be read) gives none.
func Problems(err error) []*Problem {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*Problem
		for _, err := range joined.Unwrap() {
			all = append(all, Problems(err)...)
		}
		return all
	}
	var p *Problem
	if errors.As(err, &p) {
		return []*Problem{p}
	}
	return nil
}

// inOrder joins problems in the order of the file; those of variables, and of
// what stands nowhere, come last.
func inOrder(problems []error) error {
	slices.SortStableFunc(problems, func(a, b error) int {
		p, q := a.(*Problem).at, b.(*Problem).at //nolint:errorlint,forcetypeassert // made here, never wrapped
		return cmp.Or(cmp.Compare(min(q.line, 1), min(p.line, 1)), cmp.Compare(p.line, q.line), cmp.Compare(p.col, q.col))
	})
	return errors.Join(problems...)
}

// place is where a value was found.
type place struct {
	name      string // a file, or an environment variable
	line, col int    // 0: no line, the whole of it
}

func (p place) String() string {
	if p.line == 0 {
		return p.name
	}
	return fmt.Sprintf("%s:%d:%d", p.name, p.line, p.col)
}

// origin remembers where every setting stood, so that a check that runs later
// can say so too.
type origin struct {
	file    string
	places  map[string]place
	secrets []string // values that came from ${NAME} or file:path
	bad     []string // paths whose value could not be read
}

// of finds the place of a path, or of the nearest setting around it.
func (o *origin) of(path string) place {
	if o == nil {
		return place{}
	}
	for {
		if p, ok := o.places[path]; ok {
			return p
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			return place{name: o.file}
		}
		path = path[:cut]
	}
}

// unread reports whether something at or below the path could not be read: a
// check of it would only repeat that.
func (o *origin) unread(path string) bool {
	return o != nil && slices.ContainsFunc(o.bad, func(bad string) bool {
		rest, ok := strings.CutPrefix(bad, path)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}
