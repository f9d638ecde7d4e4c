// Package diagnose finds out why a signature does not match.
//
// It tries the usual ways in which a delivery is spoilt between the gateway and
// the code that verifies it: a framework that parsed the JSON and wrote it again,
// a proxy that changed the URL, an editor that added a line break, a secret that
// was pasted with its quotes. Each way is undone, and the scheme asked again. What
// verifies then was the cause, and that is proof, not a guess: a digest does not
// fit by chance. Only where a change cannot be undone (the wrong secret) it says
// what is left.
//
// The package is pure like package signature. No [Finding] holds a secret, an
// expected digest, or a byte of the request; findings are for the operator and the
// log, never for the caller, who could use them to forge.
package diagnose

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/paidonce/paidonce/signature"
)

// Cause is a word for what spoilt a delivery.
type Cause string

// The causes.
const (
	None           Cause = ""                // it verifies
	Newline        Cause = "newline"         // a line break at the end was added or lost
	LineEnds       Cause = "line_ends"       // CRLF became LF, or the reverse
	Whitespace     Cause = "whitespace"      // space around the body was added or lost
	ByteOrderMark  Cause = "byte_order_mark" // a byte order mark was added or lost
	JSONSpacing    Cause = "json_spacing"    // JSON written again with other spaces
	JSONKeyOrder   Cause = "json_key_order"  // JSON written again with its keys in another order
	JSONEscapes    Cause = "json_escapes"    // JSON written again with other escapes
	JSONNumbers    Cause = "json_numbers"    // JSON written again with other forms of numbers
	JSONEmpty      Cause = "json_empty"      // JSON written again with [] for {}, or the reverse
	JSONString     Cause = "json_string"     // the body was encoded as a JSON string
	Charset        Cause = "charset"         // the body was decoded with the wrong character set
	Compressed     Cause = "compressed"      // the body is still compressed
	Base64Body     Cause = "base64_body"     // the body is still in base64
	FormDecoded    Cause = "form_decoded"    // the form was decoded or encoded again
	Truncated      Cause = "truncated"       // the body ends too early
	ExtraBytes     Cause = "extra_bytes"     // the body has bytes too many at an end
	NoBody         Cause = "no_body"         // the body is empty
	Wrapped        Cause = "wrapped"         // the payload is inside another document
	Quoted         Cause = "quoted"          // the body was printed: in quotes, or as a program's own notation
	HTMLEscaped    Cause = "html_escaped"    // the body was escaped for HTML
	Normalized     Cause = "normalized"      // accents were composed or decomposed
	BodyChanged    Cause = "body_changed"    // the key is right, and the body is another
	SecretQuotes   Cause = "secret_quotes"   // the secret has quotes around it
	SecretSpace    Cause = "secret_space"    // the secret has a space or line break around it
	SecretPrefix   Cause = "secret_prefix"   // the secret has a prefix too many or too few
	SecretEncoding Cause = "secret_encoding" // the secret was decoded, or has to be
	OtherSecret    Cause = "other_secret"    // it fits another secret that was given
	SecretMode     Cause = "secret_mode"     // it fits the secret of the other mode
	WrongSecret    Cause = "wrong_secret"    // nothing fits: another secret, or a body that was changed
	BadSecret      Cause = "bad_secret"      // no secret, or none that can be one
	HeaderMissing  Cause = "header_missing"  // the header with the signature is not there
	HeaderName     Cause = "header_name"     // it is there under another name
	HeaderFolded   Cause = "header_folded"   // its value was wrapped
	HeaderTwice    Cause = "header_twice"    // it is there twice
	HeaderQuoted   Cause = "header_quoted"   // its value has quotes, or was escaped
	HeaderCut      Cause = "header_cut"      // its value is incomplete
	HeaderEncoding Cause = "header_encoding" // hexadecimal where base64 is wanted, or the reverse
	ClockSkew      Cause = "clock_skew"      // genuine, and too old or too new
	SignedTime     Cause = "signed_time"     // the time in the header is not the one that was signed
	URL            Cause = "url"             // the URL that is signed is another one
	IDCase         Cause = "id_case"         // the id in the URL was changed to upper or lower case
	SignedID       Cause = "signed_id"       // another id beside the body is signed than the one given
	Unreadable     Cause = "unreadable"      // what is signed cannot be read at all
	Sender         Cause = "sender"          // it is signed, and the credentials of its sender are not those configured
)

// Labelled is a secret that is not configured for this endpoint and may have
// signed all the same.
type Labelled struct {
	Label  string // for people: "source stripe-test"
	Secret string
	Mode   string // "live" or "test"; "" if unknown
}

// Input is a delivery that does not verify, and what is known about it.
type Input struct {
	Scheme  *signature.Scheme
	Request signature.Request
	Secrets []string
	Now     time.Time

	// Mode is the mode of the endpoint, "live" or "test"; "" if unknown.
	Mode string

	// Others are secrets of other endpoints, which are tried too.
	Others []Labelled

	// Templates are payloads of this gateway in its own key order. They help to
	// undo a change of the order.
	Templates [][]byte

	// Sender is what the check of the sender's credentials said, beside the
	// signature; nil if they are right or none are asked for.
	Sender error

	// Path is that of the request as it arrived, if it may be another than the one
	// in Request, which is the configured one.
	Path string

	// Attempts bounds the work: how often the scheme may be asked. Default 20000.
	Attempts int
}

// Finding is what was found out.
type Finding struct {
	Cause Cause `json:"cause"`

	// Verified: the delivery verifies as it stands.
	Verified bool `json:"verified"`

	// Proved: with the cause undone it verifies. Else the cause is what remains.
	Proved bool `json:"proved"`

	// Reason is what the scheme said of the delivery as it stands; "" if it verifies.
	Reason signature.Reason `json:"reason,omitempty"`

	// Sentence says what is wrong and what to change.
	Sentence string `json:"sentence"`

	// Skew is now minus the signed time, for ClockSkew.
	Skew time.Duration `json:"-"`

	// Attempts is how often the scheme was asked.
	Attempts int `json:"attempts"`
}

// attempt is a delivery with one thing undone.
type attempt struct {
	request signature.Request
	secrets []string
	now     time.Time
}

// variant is an attempt and what it would prove.
type variant struct {
	attempt
	cause    Cause
	sentence string

	// describe finds out cause and sentence of what did verify, where that costs
	// too much to do for every attempt.
	describe func() (Cause, string)
}

// maxBytes bounds the work beside Attempts: how many bytes are written and signed.
const maxBytes = 100 << 20

// search asks the scheme until it has asked enough.
type search struct {
	in    Input
	kind  kind
	left  int
	bytes int // that may still be signed
	asked int
}

// more reports whether there is work left to spend.
func (s *search) more() bool { return s.left > 0 && s.bytes > 0 }

// ask reports whether an attempt verifies. A delivery that is genuine and of
// another time is genuine.
func (s *search) ask(a attempt) bool {
	if !s.more() {
		return false
	}
	s.left--
	s.bytes -= len(a.request.Body) + s.kind.cost()
	s.asked++
	switch signature.ReasonOf(s.in.Scheme.Verify(a.request, a.secrets, a.now)) {
	case "", signature.Stale, signature.Future:
		return true
	}
	return false
}

// Diagnose says why a delivery does not verify.
func Diagnose(in Input) Finding {
	if in.Attempts <= 0 {
		in.Attempts = 20000
	}
	s := &search{in: in, kind: kindOf(in.Scheme.Name), left: in.Attempts, bytes: maxBytes}
	f := s.find()
	f.Attempts = s.asked
	return f
}

func (s *search) find() Finding {
	in := s.in
	whole := attempt{request: in.Request, secrets: in.Secrets, now: in.Now}
	s.asked, s.left = 1, s.left-1
	err := in.Scheme.Verify(whole.request, whole.secrets, whole.now)
	switch {
	case err == nil && in.Sender != nil:
		return Finding{Cause: Sender, Proved: true, Reason: signature.ReasonOf(in.Sender), Sentence: "The signature verifies, and the credentials in the Authorization header are missing or others than the source's: set them at the gateway, and see that no proxy takes the header away."}
	case err == nil:
		return Finding{Verified: true, Proved: true, Sentence: s.verified()}
	}
	var why *signature.Error
	if !errors.As(err, &why) {
		return Finding{Cause: Unreadable, Sentence: "The signature cannot be checked: " + err.Error() + "."}
	}
	f := Finding{Reason: why.Reason}
	if why.Reason == signature.Stale || why.Reason == signature.Future {
		f.Cause, f.Proved, f.Skew, f.Sentence = ClockSkew, true, why.Skew, skewSentence(why)
		return f
	}

	// From what is most often to blame to what costs most to try.
	stages := []stage{headers, times, secrets, urls, ids}
	switch {
	case s.kind.token:
		stages = []stage{headers, secrets}
	case s.kind.query:
		stages = append(stages, drift)
	case s.kind.fields:
		stages = append(stages, bodies, fields, drift)
	default:
		stages = append(stages, bodies, respelled, drift, lost, rewritten)
	}
	for _, variants := range stages {
		if found := s.first(variants, whole); found != nil {
			f.Cause, f.Sentence, f.Proved = found.cause, found.sentence, true
			return f
		}
	}
	// Two at once: a header or secret that was mended, and then the body.
	for _, one := range []stage{headers, secrets, urls} {
		if s.kind.token {
			break
		}
		if found := s.both(one, whole); found != nil {
			f.Cause, f.Sentence, f.Proved = found.cause, found.sentence, true
			return f
		}
	}
	f.Cause, f.Sentence = s.remains(why)
	return f
}

// stage hands the ways to undo one kind of thing to yield, until that is false.
type stage func(s *search, a attempt, yield func(variant) bool)

// first is the first variant of a stage that verifies, nil if there is none.
func (s *search) first(variants stage, a attempt) (found *variant) {
	variants(s, a, func(v variant) bool {
		if s.ask(v.attempt) {
			if v.describe != nil {
				v.cause, v.sentence = v.describe()
			}
			found = &v
			return false
		}
		return s.more()
	})
	return found
}

// both is first for a stage and then the bodies.
func (s *search) both(one stage, a attempt) (found *variant) {
	one(s, a, func(v variant) bool {
		if w := s.first(bodies, v.attempt); w != nil {
			found = &variant{cause: v.cause, sentence: v.sentence + " And then: " + w.sentence}
		}
		return found == nil && s.more()
	})
	return found
}

// skewSentence is about a genuine signature of another time.
func skewSentence(e *signature.Error) string {
	seconds := int64(e.Skew / time.Second)
	if seconds >= 0 {
		return fmt.Sprintf("The signature is genuine and %d s old, more than the %d s allowed: set this machine's clock (NTP) if it is ahead by that; else the delivery waited, or is a replay, and is to be sent again by the gateway.",
			seconds, int64(e.Tolerance/time.Second))
	}
	return fmt.Sprintf("The signature is genuine and from %d s in the future, more than the %d s allowed: this machine's clock is behind; set it (NTP).",
		-seconds, int64(e.Tolerance/time.Second))
}

// withHeader returns a copy of the request with another header.
func withHeader(r signature.Request, change func(http.Header)) signature.Request {
	r.Header = r.Header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	change(r.Header)
	return r
}

func (a attempt) body(b []byte) attempt {
	a.request.Body = b
	return a
}
