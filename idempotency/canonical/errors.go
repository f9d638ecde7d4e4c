package canonical

import "fmt"

// Reason is why a body was refused, for programs. Reasons are part of the API: none changes its meaning.
type Reason string

// The reasons of [JSON].
const (
	ByteOrderMark    Reason = "byte_order_mark"
	ControlCharacter Reason = "control_character" // unescaped, in a string
	DuplicateName    Reason = "duplicate_name"    // of two members of one object; Offset is where the second begins
	InvalidUTF8      Reason = "invalid_utf8"
	LoneSurrogate    Reason = "lone_surrogate"
	MalformedEscape  Reason = "malformed_escape"
	MalformedNumber  Reason = "malformed_number"
	TooDeep          Reason = "too_deep" // more than MaxDepth
	TooLong          Reason = "too_long" // more than 256 MiB
	TrailingData     Reason = "trailing_data"
	Truncated        Reason = "truncated"
	UnexpectedByte   Reason = "unexpected_byte"
)

// The reasons that [Body] has besides.
const (
	MalformedContentType Reason = "malformed_content_type" // of the request; Offset is 0
	MalformedMultipart   Reason = "malformed_multipart"
)

var sentences = map[Reason]string{
	ByteOrderMark:        "a byte order mark before the JSON text",
	ControlCharacter:     "a control character in a string that is not escaped",
	DuplicateName:        "two members of one name in an object",
	InvalidUTF8:          "a string that is not UTF-8",
	LoneSurrogate:        "half of a surrogate pair",
	MalformedEscape:      "a backslash that begins no escape",
	MalformedNumber:      "a malformed number",
	TooDeep:              "more than 128 levels of arrays and objects",
	TooLong:              "a body that is too long",
	TrailingData:         "something behind the JSON value",
	Truncated:            "the end of the body where more must come",
	UnexpectedByte:       "a byte that must not stand there",
	MalformedContentType: "a malformed Content-Type",
	MalformedMultipart:   "malformed multipart/form-data",
}

// SyntaxError says why and where a body was refused. Its text holds nothing of the body, and may be logged.
type SyntaxError struct {
	// Offset is where it was noticed, in bytes from the start of the body.
	Offset int

	// Pointer is the JSON pointer (RFC 6901) of the value, member or container where that is; empty for the whole document and for
	// bodies that are not JSON. It is made of names in the body: something to answer the sender with, and nothing to log. It ends
	// before a name that would make it longer than 256 bytes, or that has control characters.
	Pointer string

	Reason Reason
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s, at byte %d", sentences[e.Reason], e.Offset)
}
