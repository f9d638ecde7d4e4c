package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Problem is an error as the caller sees it: RFC 9457, with a code for programs. Its Detail never quotes the request, nor
// what a store or a library said.
type Problem struct {
	_ struct{} `additionalProperties:"true"`

	Type   string `json:"type" doc:"about:blank, or where the code is explained: programs go by code."`
	Title  string `json:"title" doc:"The status in words."`
	Status int    `json:"status" doc:"The HTTP status."`
	Code   Code   `json:"code"`
	Detail string `json:"detail,omitempty" doc:"For people: what happened, and what to do."`

	// Errors are the places in the request that are at fault, all of them.
	Errors []FieldError `json:"errors,omitempty" nullable:"false" doc:"The places in the request that are at fault, all of them."`

	// Of the Idempotency-Key header, whose problems are package idempotency's.
	DiffersAt []string     `json:"differs_at,omitempty" nullable:"false" doc:"Where the body differs from that of the request that the Idempotency-Key stands for, as JSON pointers."`
	Resource  *resourceDoc `json:"resource,omitempty" doc:"What the request has made, where its answer was not kept; what is there already, where the request seems to be the same."`

	// Of money that is to be moved.
	Left *leftDoc `json:"left,omitempty" doc:"How much can be moved at most."`

	allow      []string      // of a 405
	etag       string        // how the order stands that a command was refused for
	retryAfter time.Duration // of a 429
}

type resourceDoc struct {
	_ struct{} `additionalProperties:"true"`

	Type string `json:"type"`
	ID   string `json:"id" format:"uuid"`
	Href string `json:"href,omitempty"`
}

type leftDoc struct {
	_ struct{} `additionalProperties:"true"`

	Amount   int64  `json:"amount" doc:"Minor units of currency."`
	Currency string `json:"currency"`
	UnderWay int64  `json:"under_way" doc:"What calls that are not settled are moving, in the same units: it is not part of amount."`
}

// FieldError is one fault of a request: of its body at Pointer, or of a parameter.
type FieldError struct {
	Pointer   string // JSON pointer (RFC 6901) into the body: /data/amount; empty: the whole body
	Parameter string // name of a parameter of the path, the query or the header; empty: the fault is in the body
	Code      string
	Detail    string
}

type bodyFault struct {
	Pointer string `json:"pointer"`
	Code    string `json:"code"`
	Detail  string `json:"detail"`
}

type parameterFault struct {
	Parameter string `json:"parameter"`
	Code      string `json:"code"`
	Detail    string `json:"detail"`
}

// MarshalJSON writes a pointer, which may be empty, or the parameter.
func (e FieldError) MarshalJSON() ([]byte, error) {
	if e.Parameter != "" {
		return json.Marshal(parameterFault{e.Parameter, e.Code, e.Detail})
	}
	return json.Marshal(bodyFault{e.Pointer, e.Code, e.Detail})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *FieldError) UnmarshalJSON(b []byte) error {
	var doc struct{ Pointer, Parameter, Code, Detail string }
	if err := json.Unmarshal(b, &doc); err != nil {
		return err
	}
	*e = FieldError(doc)
	return nil
}

// Schema documents what MarshalJSON writes.
func (FieldError) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeObject, Required: []string{"code", "detail"}, AdditionalProperties: false,
		Description: "One fault of the request: of its body at pointer, or of a parameter.",
		Properties: map[string]*huma.Schema{
			"pointer":   {Type: huma.TypeString, Description: "JSON pointer (RFC 6901) into the body; empty: the whole body.", Examples: []any{"/data/amount"}},
			"parameter": {Type: huma.TypeString, Description: "Name of the parameter, in place of a pointer.", Examples: []any{"limit"}},
			"code":      {Type: huma.TypeString, Description: "For programs.", Examples: []any{"required"}},
			"detail":    {Type: huma.TypeString, Description: "For people.", Examples: []any{"is missing"}},
		},
	}
}

// Error makes a Problem an error.
func (p *Problem) Error() string { return string(p.Code) + ": " + p.Detail }

// GetStatus makes a Problem an error that huma passes on.
func (p *Problem) GetStatus() int { return p.Status }

// problem makes the Problem of a code; detail says in a sentence what happened, and what to do.
func problem(code Code, detail string) *Problem {
	status := code.Status()
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

func problemf(code Code, format string, args ...any) *Problem {
	return problem(code, fmt.Sprintf(format, args...))
}

// invalid is the problem of a body that is JSON and that we refuse.
func invalid(faults []FieldError) *Problem {
	p := problem(CodeInvalidBody, "The body is not what this endpoint takes; see errors.")
	p.Errors = faults
	return p
}
