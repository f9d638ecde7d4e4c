package cases

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Step is one thing that happens. One key names it, the others are its
// arguments; [Step.UnmarshalJSON] refuses any other.
type Step struct {
	Kind string // the key that names the step

	Send     int
	Parallel []int
	Wait     string
	Check    Assert
	Register StepOrder
	Read     string // read_order: REF
	Advance  int64  // advance_clock_s
	Process  string // start, stop, restart, kill, and the fault kill_process
	Reload   StepReload
	Merchant string
	Fault    string
	Delete   string // delete_rows: a table
	Loop     string // loop_start, loop_stop
	Yes      bool   // clear_faults, expire_keys: always true

	Instance   int
	Status     []int // send: instead of expect.statuses
	RetryWhile []int
	RetryForS  int
	Copies     int
	AtMS       map[int]int
	StaggerMS  int
	On         string
	At         string
	SQLState   string
	MS         int
	Times      int
}

// StepOrder is what register_order takes.
type StepOrder struct {
	Ref      string `json:"ref" case:"needed"`
	Amount   int64  `json:"amount_minor" case:"needed"`
	Currency string `json:"currency" case:"needed"`
}

// StepReload is what reload takes.
type StepReload struct {
	Source  string   `json:"source" case:"needed"`
	Secrets []string `json:"secrets" case:"needed"`
}

// The faults.
const (
	faultSQLError       = "sql_error"
	faultSQLDelay       = "sql_delay"
	faultKillConnection = "kill_connection"
	faultKillProcess    = "kill_process"
)

// stepShape is what a step's JSON object may hold beside the key that names it.
type stepShape struct {
	value  func(*Step) any // where the value of the naming key goes
	needed []string
	others []string
}

var stepShapes = map[string]stepShape{
	"send":            {value: func(s *Step) any { return &s.Send }, others: []string{"instance", "status", "retry_while", "retry_for_s"}},
	"parallel":        {value: func(s *Step) any { return &s.Parallel }, others: []string{"copies", "at_ms", "stagger_ms"}},
	"wait":            {value: func(s *Step) any { return &s.Wait }},
	"check":           {value: func(s *Step) any { return &s.Check }},
	"register_order":  {value: func(s *Step) any { return &s.Register }},
	"read_order":      {value: func(s *Step) any { return &s.Read }},
	"advance_clock_s": {value: func(s *Step) any { return &s.Advance }},
	"start":           {value: func(s *Step) any { return &s.Process }, others: []string{"instance"}},
	"stop":            {value: func(s *Step) any { return &s.Process }, others: []string{"instance"}},
	"restart":         {value: func(s *Step) any { return &s.Process }, others: []string{"instance"}},
	"kill":            {value: func(s *Step) any { return &s.Process }, others: []string{"instance"}},
	"reload":          {value: func(s *Step) any { return &s.Reload }},
	"merchant":        {value: func(s *Step) any { return &s.Merchant }},
	"fault":           {value: func(s *Step) any { return &s.Fault }}, // see faultShapes
	"clear_faults":    {value: func(s *Step) any { return &s.Yes }},
	"delete_rows":     {value: func(s *Step) any { return &s.Delete }},
	"expire_keys":     {value: func(s *Step) any { return &s.Yes }},
	"loop_start":      {value: func(s *Step) any { return &s.Loop }},
	"loop_stop":       {value: func(s *Step) any { return &s.Loop }},
}

var faultShapes = map[string]stepShape{
	faultSQLError:       {needed: []string{"on", "sqlstate"}, others: []string{"times"}},
	faultSQLDelay:       {needed: []string{"on", "ms"}, others: []string{"times"}},
	faultKillConnection: {needed: []string{"on", "at"}, others: []string{"times"}},
	faultKillProcess:    {needed: []string{"process", "on", "at"}, others: []string{"instance"}},
}

// UnmarshalJSON reads a step and refuses a key that does not belong to it.
func (s *Step) UnmarshalJSON(data []byte) error {
	keys, values, err := object(data)
	if err != nil {
		return fmt.Errorf("a step: %w", err)
	}
	*s = Step{Instance: 1, Copies: 1, Times: 1}
	named := -1
	for i, key := range keys {
		if _, ok := stepShapes[key]; !ok {
			continue
		}
		if named >= 0 {
			return fmt.Errorf("a step has two names, %q and %q", keys[named], key)
		}
		named = i
	}
	if named < 0 {
		return fmt.Errorf("no step is named by any of the keys %s", quoted(keys))
	}
	s.Kind = keys[named]
	shape := stepShapes[s.Kind]
	if err := value(s.Kind, values[named], shape.value(s)); err != nil {
		return err
	}
	if s.Kind == "fault" {
		var ok bool
		if shape, ok = faultShapes[s.Fault]; !ok {
			return word("fault", s.Fault, slices.Sorted(maps.Keys(faultShapes)))
		}
	}
	var errs []error
	for i, key := range keys {
		switch {
		case i == named:
		case slices.Contains(shape.needed, key) || slices.Contains(shape.others, key):
			errs = append(errs, s.argument(key, values[i]))
		default:
			errs = append(errs, fmt.Errorf("step %s: no such key %q", s.Kind, key))
		}
	}
	for _, key := range shape.needed {
		if !slices.Contains(keys, key) {
			errs = append(errs, fmt.Errorf("step %s: the key %q is missing", s.Kind, key))
		}
	}
	return errors.Join(errs...)
}

// argument sets one of the arguments.
func (s *Step) argument(key string, raw json.RawMessage) error {
	to := map[string]any{
		"instance": &s.Instance, "status": &s.Status, "retry_while": &s.RetryWhile, "retry_for_s": &s.RetryForS,
		"copies": &s.Copies, "stagger_ms": &s.StaggerMS, "on": &s.On, "at": &s.At, "sqlstate": &s.SQLState,
		"ms": &s.MS, "times": &s.Times, "process": &s.Process,
	}
	if key != "at_ms" {
		return value(s.Kind+"."+key, raw, to[key])
	}
	var byName map[string]int
	if err := value(s.Kind+"."+key, raw, &byName); err != nil {
		return err
	}
	s.AtMS = make(map[int]int, len(byName))
	for text, ms := range byName {
		i, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("step %s: at_ms: %q is no index of a request", s.Kind, text)
		}
		s.AtMS[i] = ms
	}
	return nil
}

// value decodes one value strictly.
func value(where string, raw json.RawMessage, v any) error {
	holder := walk(where, raw, typeOf(v))
	if len(holder) > 0 {
		return errors.Join(holder...)
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	return nil
}

func quoted(keys []string) string {
	all := make([]string, len(keys))
	for i, key := range keys {
		all[i] = strconv.Quote(key)
	}
	return strings.Join(all, ", ")
}

// check reports what of a step is not defined. requests is how many there are.
func (s *Step) check(where string, c *Case) []error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf(where+": "+format, args...))
	}
	index := func(i int) {
		if i < 0 || i >= len(c.Requests) {
			bad("there is no request %d", i)
		}
	}
	oneOf := func(what, got string, allowed ...string) {
		if err := word(where+": "+what, got, allowed); err != nil {
			errs = append(errs, err)
		}
	}
	switch s.Kind {
	case "send":
		index(s.Send)
		errs = append(errs, codes(where+": status", s.Status)...)
		errs = append(errs, codes(where+": retry_while", s.RetryWhile)...)
		if (s.RetryForS > 0) != (len(s.RetryWhile) > 0) || s.RetryForS < 0 {
			bad("retry_while and retry_for_s go together")
		}
	case "parallel":
		if len(s.Parallel) == 0 {
			bad("nothing to send")
		}
		for _, i := range s.Parallel {
			index(i)
		}
		for i, ms := range s.AtMS {
			if !slices.Contains(s.Parallel, i) || ms < 0 {
				bad("at_ms: %d is not sent here, or earlier than the start", i)
			}
		}
		if s.Copies < 1 || s.StaggerMS < 0 {
			bad("copies must be 1 or more, stagger_ms 0 or more")
		}
	case "wait":
		oneOf("wait", s.Wait, "quiet")
	case "check":
		errs = append(errs, s.Check.check(where, c, true)...)
	case "register_order":
		if s.Register.Ref == "" || s.Register.Amount < 0 {
			bad("an order needs a ref, and an amount of 0 or more")
		}
	case "read_order":
		if s.Read == "" {
			bad("read_order needs a reference")
		}
	case "start", "stop", "restart", "kill":
		oneOf(s.Kind, s.Process, "serve", "work")
	case "reload":
		if _, ok := c.Setup.Sources[s.Reload.Source]; !ok {
			bad("there is no source %q", s.Reload.Source)
		}
	case "merchant":
		oneOf("merchant", s.Merchant, "ok", "error", "hang")
	case "fault":
		errs = append(errs, s.checkFault(where)...)
	case "clear_faults", "expire_keys":
		if !s.Yes {
			bad("%s is true, or is not there", s.Kind)
		}
	case "delete_rows":
		oneOf("delete_rows", s.Delete, "processed_events")
	case "loop_start", "loop_stop":
		oneOf(s.Kind, s.Loop, "sweep_keys")
	}
	if s.Instance < 1 {
		bad("instances are counted from 1")
	}
	return errs
}

func (s *Step) checkFault(where string) []error {
	var errs []error
	add := func(err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", where, err))
		}
	}
	verb, table, ok := strings.Cut(s.On, " ")
	if !ok {
		add(fmt.Errorf("on: %q is not a verb, a space and a table", s.On))
	} else {
		add(word("on", verb, faultVerbs))
		add(word("on", table, faultTables))
	}
	if s.Times < 0 {
		add(errors.New("times must be 0 or more"))
	}
	switch s.Fault {
	case faultSQLError:
		if !sqlState.MatchString(s.SQLState) {
			add(fmt.Errorf("sqlstate: %q is not five digits and capital letters", s.SQLState))
		}
	case faultSQLDelay:
		if s.MS <= 0 {
			add(errors.New("ms must be above 0"))
		}
	default:
		add(word("at", s.At, []string{"before_commit"}))
	}
	if s.Fault == faultKillProcess {
		add(word("process", s.Process, []string{"serve", "work"}))
	}
	return errs
}
