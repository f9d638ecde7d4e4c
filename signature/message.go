package signature

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"
)

// inHeader is the family of schemes that join parts of the request to a message,
// sign it, and put the signatures in a header: Stripe's, and both of Standard
// Webhooks.
type inHeader struct {
	header   field
	syntax   syntax
	encoding encoding
	message  []part // at most maxParts

	// keys makes keys from secrets; well adds what only CheckSecret asks, and
	// returns what is wrong. nil: nothing.
	keys *keyring
	well func(secret string) string
}

// maxParts is the most parts a message has.
const maxParts = 5

// part is one part of a message.
type part struct {
	from source
	name string // the text of a part that the row gives; the label of an element
	head field  // the header
	role role
}

type source uint8

const (
	fromRow       source = iota // name itself
	fromHeader                  // the value of head
	fromSignature               // the element called name beside the signatures
	fromURL                     // Request.URL
	fromBody                    // Request.Body
)

// role is what a part means, beyond being signed.
type role uint8

const (
	roleNone role = iota
	roleTime      // the signed time, seconds since the Unix epoch
	roleID        // the id of the message
)

// values are the texts of the parts of one message, by their index.
type values [maxParts]string

func (f *inHeader) verify(req Request, secrets []string, now time.Time, tolerance time.Duration) *Error {
	list, err := f.header.get(req.Header)
	if err != nil {
		return err
	}
	if err := f.syntax.check(list); err != nil {
		return err
	}
	var vals values
	signed, err := f.read(req, list, &vals)
	if err != nil {
		return err
	}
	var t tally
	err = f.keys.match(secrets, &t, func(k *key) bool {
		return f.signedBy(k, list, &vals, req.Body, &t)
	})
	if err != nil || tolerance == 0 {
		return err
	}
	return checkSkew(signed, now, tolerance)
}

// read fills in the parts of the message that are not the body, and returns the
// signed time, 0 if there is none.
func (f *inHeader) read(req Request, list string, vals *values) (signed int64, err *Error) {
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
		case fromBody:
		}
		if err != nil {
			return 0, err
		}
		switch p.role {
		case roleTime:
			var ok bool
			if signed, ok = plainNumber(vals[i]); !ok {
				err = refuse(Malformed, "the time is not a plain number")
			}
		case roleID:
			err = checkID(vals[i])
		case roleNone:
		}
		if err != nil {
			return 0, err
		}
	}
	return signed, nil
}

// signedBy reports whether k made one of the signatures in the list.
func (f *inHeader) signedBy(k *key, list string, vals *values, b []byte, t *tally) bool {
	if k.public != nil {
		var got [maxDigest]byte
		msg := f.bytes(vals, b)
		return f.find(k, list, &got, t, func(sig []byte) bool {
			return len(sig) == ed25519.SignatureSize && ed25519.Verify(k.public, msg, sig)
		})
	}
	m := k.mac()
	defer k.done(m)
	want := f.digest(m, vals, b)
	return f.find(k, list, &m.got, t, func(sig []byte) bool { return equal(sig, want) })
}

// find looks for a signature of k's version for which ok holds. got is room.
func (f *inHeader) find(k *key, list string, got *[maxDigest]byte, t *tally, ok func(sig []byte) bool) bool {
	for list != "" {
		label, value, rest, labelled := f.syntax.next(list)
		list = rest
		if !labelled || label != k.label {
			continue
		}
		t.seen = true
		n, decoded := f.encoding.decode(got, value)
		if !decoded {
			continue
		}
		t.formed = true
		if ok(got[:n]) {
			return true
		}
	}
	return false
}

// digest is the HMAC of the message.
func (f *inHeader) digest(m *mac, vals *values, b []byte) []byte {
	for i := range f.message {
		if f.message[i].from == fromBody {
			m.addBody(b)
		} else {
			m.add(vals[i])
		}
	}
	return m.digest()
}

// bytes is the message in one piece, as Ed25519 needs it.
func (f *inHeader) bytes(vals *values, b []byte) []byte {
	msg := make([]byte, 0, len(b)+128)
	for i := range f.message {
		if f.message[i].from == fromBody {
			msg = append(msg, b...)
		} else {
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
	var vals values
	for _, p := range f.message {
		v := opt.URL
		switch p.role {
		case roleTime:
			v = strconv.FormatInt(now.Unix(), 10)
		case roleID:
			if v = opt.ID; v == "" {
				v = defaultID(b)
			}
		case roleNone:
		}
		switch p.from {
		case fromHeader:
			h.Set(p.head.name, v)
		case fromSignature:
			elements += f.syntax.join(p.name, v) + string(f.syntax.sep)
		case fromRow, fromURL, fromBody:
		}
	}
	// What is signed is what a receiver will read.
	if _, err := f.read(Request{URL: opt.URL, Header: h}, elements, &vals); err != nil {
		return Signed{}, err
	}

	var sig []byte
	if k.private != nil {
		sig = ed25519.Sign(k.private, f.bytes(&vals, b))
	} else {
		m := k.mac()
		defer k.done(m)
		sig = f.digest(m, &vals, b)
	}
	h.Set(f.header.name, elements+f.syntax.join(k.label, f.encoding.encode(sig)))
	return Signed{Header: h, Body: b}, nil
}

func (f *inHeader) checkSecret(secret string) *Error {
	if err := f.keys.check(secret); err != nil {
		return err
	}
	if f.well != nil {
		if why := f.well(secret); why != "" {
			return refuse(BadSecret, why)
		}
	}
	return nil
}

// defaultID names a message by its body, so the same body has the same id.
func defaultID(b []byte) string {
	sum := sha256.Sum256(b)
	return "msg_" + hex.EncodeToString(sum[:16])
}
