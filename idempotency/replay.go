package idempotency

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
)

// answer is the response as it is stored: what the policy lets be stored of it.
func (c *call) answer(h hold, rec *recorder, v verdict, streamed bool) *answer {
	p := c.q.policy
	a := &answer{code: rec.code}
	if v.resourceType != "" {
		typ := strings.ToValidUTF8(v.resourceType[:min(len(v.resourceType), 100)], "")
		a.resourceType = &typ
		a.resourceID = pgUUID(v.resourceID)
	}
	kept := make(http.Header, len(rec.sent))
	for name, values := range rec.sent {
		if p.stores(name) {
			kept[name] = values
		}
	}
	headers := encodeHeaders(kept)
	body := rec.body.Bytes()
	if p.Redact != nil {
		body = p.Redact(kept.Get("Content-Type"), bytes.Clone(body))
	}
	whole := !streamed && int64(rec.body.Len()) <= p.MaxResponse
	if c.m.opts.Cipher == nil {
		text := string(headers)
		a.headers = &text
		if whole {
			a.raw = append([]byte{}, body...)
			if isJSON(kept.Get("Content-Type")) && kept.Get("Content-Encoding") == "" && fitsJSONB(body) {
				text := string(body)
				a.body = &text
			}
		}
	} else if whole {
		plain := append(binary.AppendUvarint(nil, uint64(len(headers))), headers...)
		sealed, err := c.m.opts.Cipher.Seal(append(plain, body...), c.aad(h))
		if err != nil {
			// The work is done, so the key must not run again: what is lost is the answer.
			c.m.log.ErrorContext(c.r.Context(), "idempotency cipher does not seal", append(c.attrs(h), "err", err)...)
		} else {
			a.raw, a.sealed = sealed, true
		}
	}
	return a
}

// aad binds an answer to its owner, key and call.
func (c *call) aad(h hold) []byte {
	return binary.BigEndian.AppendUint64(c.q.scope.identity(c.q.key), uint64(h.fence)) //nolint:gosec // a counter
}

// replay answers with what was stored.
func (c *call) replay(r row) {
	if c.m.opts.Authorize != nil {
		ctx, cancel := c.m.store.detached(c.r.Context())
		rec, err := inspect(ctx, c.conn.Conn(), c.q.scope, c.q.key)
		cancel()
		c.free()
		if err != nil {
			c.unavailable("the key could not be read", err)
			return
		}
		if c.m.opts.Authorize(c.r, rec) != nil {
			c.refuse(newProblem(http.StatusForbidden, CodeReplayForbidden, "the call was done before; its answer is not for this caller any more"))
			return
		}
	}
	headers, body := r.stored.headers, r.stored.raw
	if r.stored.sealed && body != nil {
		var err error
		if headers, body, err = c.open(r); err != nil {
			c.m.log.ErrorContext(c.r.Context(), "stored answer cannot be opened", append(c.attrs(r.hold), "err", err)...)
			headers, body = nil, nil
		}
	}
	kept, err := decodeHeaders(headers)
	if err != nil {
		c.m.log.ErrorContext(c.r.Context(), "stored headers cannot be read", append(c.attrs(r.hold), "err", err)...)
		body = nil
	}
	if body == nil {
		c.tombstone(r, kept)
		return
	}
	c.free()
	h := c.w.Header()
	for name, values := range kept {
		h[name] = values
	}
	if kept["Content-Type"] == nil {
		h["Content-Type"] = nil // none is made up
	}
	h.Set("Cache-Control", "no-store")
	h.Set(HeaderStatus, StatusReplayed)
	if !c.q.policy.NoReplayHeader {
		h.Set(HeaderReplayed, "true")
	}
	if bodyAllowed(r.stored.code) {
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	c.m.metrics.count(replayed, c.q.policy)
	c.w.WriteHeader(r.stored.code)
	if bodyAllowed(r.stored.code) {
		_, _ = c.w.Write(body)
	}
}

func (c *call) open(r row) (headers, body []byte, err error) {
	if c.m.opts.Cipher == nil {
		return nil, nil, ErrSealed
	}
	plain, err := c.m.opts.Cipher.Open(r.stored.raw, c.aad(r.hold))
	if err != nil {
		return nil, nil, err
	}
	n, size := binary.Uvarint(plain)
	if size <= 0 || n > uint64(len(plain)-size) {
		return nil, nil, ErrSealed
	}
	at := size + int(n) //nolint:gosec // bounded
	return plain[size:at], plain[at:], nil
}

// tombstone answers a call that was done and whose answer was not kept: with where the result is, and never by doing it again.
func (c *call) tombstone(r row, kept http.Header) {
	c.m.metrics.count(tombstoned, c.q.policy)
	p := newProblem(http.StatusConflict, CodeResultUnavailable, "it was done, with status "+strconv.Itoa(r.stored.code)+", and the answer was not kept; look the resource up")
	p.status = StatusReplayed
	p.link = kept.Get("Location")
	if r.stored.resourceID != uuid.Nil {
		p.Resource = &resource{Type: r.stored.resourceType, ID: r.stored.resourceID}
		if c.m.opts.ResourceURL != nil {
			p.link = c.m.opts.ResourceURL(r.stored.resourceType, r.stored.resourceID)
		}
		p.Resource.Href = p.link
	}
	c.write(p)
}

// binaryValue is a header value that JSON cannot hold as text.
type binaryValue struct {
	Base64 []byte `json:"base64"`
}

// encodeHeaders writes headers as JSON, every line as it was.
func encodeHeaders(h http.Header) []byte {
	m := make(map[string][]any, len(h))
	for name, values := range h {
		lines := make([]any, len(values))
		for i, v := range values {
			if lines[i] = v; !plain(v) {
				lines[i] = binaryValue{[]byte(v)}
			}
		}
		m[name] = lines
	}
	b, err := json.Marshal(m)
	if err != nil { // strings and bytes
		return []byte("{}")
	}
	return b
}

func decodeHeaders(b []byte) (http.Header, error) {
	h := http.Header{}
	if len(b) == 0 {
		return h, nil
	}
	var m map[string][]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return h, err
	}
	for name, lines := range m {
		for _, line := range lines {
			var s string
			if json.Unmarshal(line, &s) != nil {
				var v binaryValue
				if err := json.Unmarshal(line, &v); err != nil {
					return h, err
				}
				s = string(v.Base64)
			}
			h[name] = append(h[name], s)
		}
	}
	return h, nil
}

func isJSON(contentType string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && (t == "application/json" || strings.HasSuffix(t, "+json"))
}

// maxLevels and maxDigits are far below what JSONB takes.
const (
	maxLevels = 64
	maxDigits = 1000
)

// fitsJSONB reports whether the type JSONB takes the text for certain. It refuses some texts that JSONB would take; for those the
// column is empty, and nothing else.
func fitsJSONB(b []byte) bool {
	if !utf8.Valid(b) || !json.Valid(b) {
		return false
	}
	depth := 0
	for i := 0; i < len(b); i++ {
		switch ch := b[i]; {
		case ch == '{' || ch == '[':
			if depth++; depth > maxLevels {
				return false
			}
		case ch == '}' || ch == ']':
			depth--
		case ch == '"':
			for i++; b[i] != '"'; i++ {
				if b[i] != '\\' {
					continue
				}
				if i++; b[i] == 'u' && (string(b[i+1:i+5]) == "0000" || b[i+1]|0x20 == 'd' && b[i+2] >= '8') {
					return false // JSONB has no NUL; and a surrogate may be half of a pair
				}
			}
		case ch == '-' || ch >= '0' && ch <= '9':
			from := i
			exponent := false
			for i+1 < len(b) && strings.IndexByte("0123456789+-.eE", b[i+1]) >= 0 {
				i++
				exponent = exponent || b[i] == 'e' || b[i] == 'E'
			}
			if i-from > maxDigits || exponent && !smallExponent(string(b[from:i+1])) {
				return false
			}
		}
	}
	return true
}

func smallExponent(number string) bool {
	_, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	n, err := strconv.Atoi(exponent)
	return err == nil && n > -maxDigits && n < maxDigits
}
