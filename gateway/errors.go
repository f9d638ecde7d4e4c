package gateway

import "fmt"

// ParseError says why a verified delivery is not a payload of its gateway. It
// means: answer 400 and store nothing, unless the gateway is one whose queue
// would block ([Gateway].QuarantineUnreadable). No byte of the payload is in it.
type ParseError struct {
	// Code is a word for metrics: not_utf8, not_json, too_deep, duplicate_key,
	// shape, no_event_id.
	Code string

	// Detail says what and where, in one short sentence.
	Detail string
}

// Error describes the fault in one line.
func (e *ParseError) Error() string {
	return fmt.Sprintf("unreadable payload: %s: %s", e.Code, e.Detail)
}

func parseError(code, format string, args ...any) *ParseError {
	return &ParseError{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// unreadableType is the type of an event whose own cannot be read.
const unreadableType = "unreadable"
