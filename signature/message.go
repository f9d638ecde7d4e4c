package signature

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash/crc32"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// inHeader is the family of schemes that join parts of the request to a message,
// sign it, and put the signatures in a header: the body alone, as most do, or the
// body with a time, an id, the URL. The signature is an HMAC, a hash over a secret
// and the message, or that of a private key: the keyring says.
type inHeader struct {
	header   field
	second   field // more signatures of the same message, made with other secrets
	syntax   syntax
	encoding encoding
	message  []part // at most maxParts

	// names is the header that tells which key signed. A key that has a name
	// checks only what is sent under it, or under none.
	names field

	// guard refuses requests for more than their signature; also adds to a signed
	// message what the guard asks for. May be nil.
	guard func(Request) *Error
	also  func(http.Header, SignOptions)

	// keys makes keys from secrets; well adds what only CheckSecret asks, and
	// returns what is wrong. nil: nothing.
	keys *keyring
	well func(secret string) string
}

// maxParts is the most parts a message has.
const maxParts = 7

// part is one part of a message.
type part struct {
	from source
	name string // the text of a part that the row gives; the label of an element; the layout of a date
	head field  // the header
	role role
}

type source uint8

const (
	fromRow       source = iota // name itself
	fromHeader                  // the value of head
	fromSignature               // the element called name beside the signatures
	fromURL                     // Request.URL
	fromPath                    // Request.Path
	fromKey                     // the text of the key
	fromChecksum                // CRC-32 (IEEE) of the body, in decimal
	fromMinified                // SHA-256 of the body without the spaces of JSON, in hexadecimal
	fromBody                    // Request.Body
)

// role is what a part means, beyond being signed.
type role uint8

const (
	roleNone   role = iota
	roleTime        // the signed time, seconds since the Unix epoch
	roleMillis      // the same in milliseconds, or in seconds
	roleDate        // the same as a date and time with a zone
	roleID          // the id of the message, in front of a full stop
	roleBarID       // the same, in front of a vertical bar
)

// values are the texts of the parts of one message, by their index.
type values [maxParts]string

// lists are the values of header and second.
type lists [2]string

func (f *inHeader) verify(req Request, secrets []string, now time.Time, tolerance time.Duration) *Error {
	sigs, err := f.signatures(req.Header)
	if err != nil {
		return err
	}
	if f.guard != nil {
		if err := f.guard(req); err != nil {
			return err
		}
	}
	var vals values
	signed, timed, err := f.read(req, sigs[0], &vals)
	if err != nil {
		return err
	}
	name, err := f.names.optional(req.Header)
	if err != nil {
		return err
	}
	var t tally
	err = f.keys.match(secrets, &t, func(k *key) bool {
		if !k.called(name) {
			t.seen, t.formed = true, true
			return false
		}
		return f.signedBy(k, &sigs, &vals, req.Body, &t)
	})
	if err != nil || tolerance == 0 || !timed {
		return err
	}
	return checkSkew(signed, now, tolerance)
}

// signatures reads the headers that carry them.
func (f *inHeader) signatures(h http.Header) (sigs lists, err *Error) {
	for i, head := range [...]field{f.header, f.second} {
		if sigs[i], err = f.syntax.list(head, h); err != nil {
			return sigs, err
		}
		if err = f.syntax.check(sigs[i]); err != nil {
			return sigs, err
		}
	}
	if sigs[0] == "" && sigs[1] == "" {
		return sigs, refuse(Missing, "no "+f.header.name)
	}
	return sigs, nil
}

// read fills in the parts of the message that are neither the body nor the key's,
// and returns the signed time, if there is one.
func (f *inHeader) read(req Request, list string, vals *values) (signed int64, timed bool, err *Error) {
	for i := range f.message {
		p := &f.message[i]
		switch p.from {
		case fromRow:
			vals[i] = p.name
		case fromHeader:
			vals[i], err = p.head.get(req.Header)
		case fromSignature:
			vals[i], err = f.syntax.only(list, p.name)
		case fromURL:
			if vals[i] = req.URL; req.URL == "" {
				err = refuse(Missing, "the URL of the endpoint is not configured")
			}
		case fromPath:
			if vals[i] = req.Path; req.Path == "" {
				err = refuse(Missing, "the path of the endpoint is not known")
			}
		case fromChecksum:
			vals[i] = strconv.FormatUint(uint64(crc32.ChecksumIEEE(req.Body)), 10)
		case fromMinified:
			vals[i], err = minified(req.Body)
		case fromKey, fromBody:
		}
		if err != nil {
			return 0, false, err
		}
		switch p.role {
		case roleTime, roleMillis, roleDate:
			timed = true
			signed, err = moment(vals[i], p.role)
		case roleID:
			err = checkID(vals[i])
		case roleBarID:
			err = checkBarID(vals[i])
		case roleNone:
		}
		if err != nil {
			return 0, false, err
		}
	}
	return signed, timed, nil
}

// minified is the digest of body without the spaces between its tokens.
func minified(body []byte) (string, *Error) {
	var text bytes.Buffer
	if err := json.Compact(&text, body); err != nil {
		return "", refuse(Malformed, "the body is not JSON")
	}
	sum := sha256.Sum256(text.Bytes())
	return hex.EncodeToString(sum[:]), nil
}

// signedBy reports whether k made one of the signatures.
func (f *inHeader) signedBy(k *key, sigs *lists, vals *values, b []byte, t *tally) bool {
	if k.verify != nil {
		msg := f.bytes(k, vals, b)
		return f.find(k, sigs, func(value string) bool {
			sig, ok := f.encoding.decodeAny(value)
			t.formed = t.formed || ok
			return ok && k.verify(msg, sig)
		}, t)
	}
	m := k.mac()
	defer k.done(m)
	want := f.digest(k, m, vals, b)
	return f.find(k, sigs, func(value string) bool {
		n, ok := f.encoding.decode(&m.got, value)
		t.formed = t.formed || ok
		return ok && equal(m.got[:n], want)
	}, t)
}

// find looks for a signature of k's version for which ok holds.
func (f *inHeader) find(k *key, sigs *lists, ok func(value string) bool, t *tally) bool {
	for _, list := range sigs {
		for list != "" {
			label, value, rest, labelled := f.syntax.next(list)
			list = rest
			if !labelled || label != k.label {
				continue
			}
			t.seen = true
			if ok(value) {
				return true
			}
		}
	}
	return false
}

// digest is the HMAC or hash of the message.
func (f *inHeader) digest(k *key, m *mac, vals *values, b []byte) []byte {
	for i := range f.message {
		switch f.message[i].from {
		case fromBody:
			m.addBody(b)
		case fromKey:
			m.add(k.text)
		default:
			m.add(vals[i])
		}
	}
	return m.digest()
}

// bytes is the message in one piece, as public keys need it.
func (f *inHeader) bytes(k *key, vals *values, b []byte) []byte {
	msg := make([]byte, 0, len(b)+128)
	for i := range f.message {
		switch f.message[i].from {
		case fromBody:
			msg = append(msg, b...)
		case fromKey:
			msg = append(msg, k.text...)
		default:
			msg = append(msg, vals[i]...)
		}
	}
	return msg
}

func (f *inHeader) sign(b []byte, secret string, now time.Time, opt SignOptions) (Signed, *Error) {
	k, err := f.keys.signer(secret)
	if err != nil {
		return Signed{}, err
	}
	h := http.Header{}
	var elements string
	for _, p := range f.message {
		v := ""
		switch p.role {
		case roleTime, roleMillis, roleDate:
			v = formatMoment(now, p.role, p.name)
		case roleID, roleBarID:
			if v = opt.ID; v == "" {
				v = defaultID(b)
			}
		case roleNone:
		}
		switch p.from {
		case fromHeader:
			h.Set(p.head.name, v)
		case fromSignature:
			elements += f.syntax.join("", p.name, v) + string(f.syntax.sep)
		default:
		}
	}
	if f.also != nil {
		f.also(h, opt)
	}
	id := opt.KeyID
	if k.name != "" {
		id = k.name
	}
	if f.names.name != "" && id != "" {
		h.Set(f.names.name, id)
	}
	if id == "" {
		id = "1"
	}
	sig, err := f.signature(k, Request{URL: opt.URL, Path: pathOf(opt.URL), Header: h, Body: b}, elements)
	if err != nil {
		return Signed{}, err
	}
	h.Set(f.header.name, elements+f.syntax.join(id, k.label, f.encoding.encode(sig)))
	return Signed{Header: h, Body: b}, nil
}

// signature signs what a receiver of req will read.
func (f *inHeader) signature(k *key, req Request, elements string) ([]byte, *Error) {
	if f.guard != nil {
		if err := f.guard(req); err != nil {
			return nil, err
		}
	}
	var vals values
	if _, _, err := f.read(req, elements, &vals); err != nil {
		return nil, err
	}
	if k.sign != nil {
		return k.signed(f.bytes(k, &vals, req.Body))
	}
	m := k.mac()
	defer k.done(m)
	return append([]byte(nil), f.digest(k, m, &vals, req.Body)...), nil
}

// pathOf is the path of a URL, "" if there is none.
func pathOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.EscapedPath()
}

func (f *inHeader) checkSecret(secret string) *Error { return f.keys.wellFormed(secret, f.well) }

// defaultID names a message by its body, so the same body has the same id.
func defaultID(b []byte) string {
	sum := sha256.Sum256(b)
	return "msg_" + hex.EncodeToString(sum[:16])
}
