package reevaluate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/store"
)

// Where says which events somebody asks for: all of its terms hold.
type Where struct {
	store.ReevaluateFilter

	Source  string // of the filter's Sources, as it was named
	Gateway string // for the caller to turn into Sources
	Order   string // an order's id or reference, for the caller to turn into Events
}

// Words lists the terms that a Where may have, for people.
const Words = "account=, source=, gateway=, type=, outcome=, reason=, event=, order=, since=, until=, mapping_version<"

// term begins every term. A comma that no term follows belongs to the value before it.
var term = regexp.MustCompile(`(?:^|,)(account|source|gateway|type|outcome|reason|event|order|since|until|mapping_version)(=|<)`)

var outcomes = []store.Outcome{store.Applied, store.NoChange, store.Waiting, store.Ignored, store.Flagged, store.Quarantined}

// ParseWhere reads terms such as "source=stripe,outcome=quarantined" or "mapping_version<2". A time is RFC 3339, or how
// long before now it was ("24h").
func ParseWhere(texts []string, now time.Time) (Where, error) {
	var w Where
	seen := map[string]bool{}
	for _, text := range texts {
		starts := term.FindAllStringSubmatchIndex(text, -1)
		if len(starts) == 0 || starts[0][0] != 0 {
			return w, fmt.Errorf("%q is no term; there are %s", text, Words)
		}
		for i, m := range starts {
			end := len(text)
			if i+1 < len(starts) {
				end = starts[i+1][0]
			}
			word, sign, value := text[m[2]:m[3]], text[m[4]:m[5]], text[m[1]:end]
			if seen[word] {
				return w, fmt.Errorf("%s stands there twice; all terms must hold, so one is enough", word)
			}
			seen[word] = true
			if (sign == "<") != (word == "mapping_version") {
				return w, fmt.Errorf("%s%s: there are %s", word, sign, Words)
			}
			if value == "" {
				return w, fmt.Errorf("%s%s has no value", word, sign)
			}
			if err := w.set(word, value, now); err != nil {
				return w, err
			}
		}
	}
	return w, nil
}

func (w *Where) set(word, value string, now time.Time) (err error) {
	switch word {
	case "account":
		w.Account = value
	case "source":
		w.Source, w.Sources = value, []string{value}
		if value == store.APISource {
			return fmt.Errorf("source=%s: what the merchant said itself is not read from a gateway's bytes", value)
		}
	case "gateway":
		if _, ok := gateway.Lookup(value); !ok {
			return fmt.Errorf("there is no gateway %q; paidonce gateways lists them", value)
		}
		w.Gateway = value
	case "type":
		w.Type = value
	case "outcome":
		if !slices.Contains(outcomes, store.Outcome(value)) {
			return fmt.Errorf("outcome=%s: there are %v", value, outcomes)
		}
		w.Outcome = store.Outcome(value)
	case "reason":
		w.Reason = value
	case "event":
		w.Event = value
	case "order":
		w.Order = value
	case "since":
		w.Since, err = timeOf(word, value, now)
	case "until":
		w.Until, err = timeOf(word, value, now)
	case "mapping_version":
		w.Mapping, err = strconv.Atoi(value)
		if err != nil || w.Mapping < 1 || w.Mapping > 1<<15 {
			return fmt.Errorf("mapping_version<%s: want a number such as %d", value, gateway.MappingVersion+1)
		}
	}
	return err
}

func timeOf(word, text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil {
		return now.Add(-ago), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("%s=%s: want a time such as 2026-01-31T12:00:00Z, or how long ago, such as 24h", word, strings.TrimSpace(text))
	}
	return t, nil
}
