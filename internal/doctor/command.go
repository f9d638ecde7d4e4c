package doctor

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"

	"github.com/google/uuid"
)

// Request is a call of /v1 that resolves something; words in capitals are for the person to fill in.
type Request struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Body   string `json:"body,omitempty"`
}

// String is the request in one line.
func (r Request) String() string { return strings.TrimSpace(r.Method + " " + r.Path + " " + r.Body) }

// post is a request; parts are the segments of the path below /v1, each of which may hold anything.
func post(body string, parts ...string) *Request {
	path := "/v1"
	for _, p := range parts {
		path += "/" + url.PathEscape(p)
	}
	return &Request{Method: "POST", Path: path, Body: body}
}

// quoted is a text as a string of JSON.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		return "TEXT" // not of a string
	}
	return string(b)
}

// command is a command line of paidonce as a shell reads it.
func command(args ...string) string {
	line := "paidonce"
	for _, a := range args {
		line += " " + shell(a)
	}
	return line
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

// shell quotes a word for a POSIX shell, where it needs that: https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html#tag_19_02
func shell(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// orderName is what commands call an order: the merchant's reference where that cannot be mistaken for an id or a flag.
func orderName(ref string, id uuid.UUID) string {
	if _, err := uuid.Parse(ref); err == nil || !plain.MatchString(ref) || strings.HasPrefix(ref, "-") {
		return id.String()
	}
	return ref
}
