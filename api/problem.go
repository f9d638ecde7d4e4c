package api

import "net/http"

// Problem is an error as the caller sees it: RFC 9457, with a code for programs. Its Detail never quotes what a store
// or a library said.
type Problem struct {
	Type   string `json:"type"` // always about:blank: Code tells them apart
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail,omitempty"`

	// Errors are the places in the body that are at fault, all of them.
	Errors []FieldError `json:"errors,omitempty"`

	allow    []string // of a 405
	bodyRead bool     // nothing of the body is left in the connection
}

// FieldError is one fault of a body.
type FieldError struct {
	Pointer string `json:"pointer"` // JSON pointer: /data/amount
	Code    string `json:"code"`
	Detail  string `json:"detail"`
}

// Error makes a Problem an error.
func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

func problem(status int, code, detail string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

// afterBody marks a problem that was found once the body had been read to its end.
func (p *Problem) afterBody() *Problem {
	p.bodyRead = true
	return p
}
