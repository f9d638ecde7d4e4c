package signature

import (
	"crypto/hmac"
	"crypto/subtle"
	"hash"
	"strings"
	"sync"
)

// key is a secret made ready for work.
type key struct {
	// bad says what is wrong with the secret; such a key verifies nothing.
	bad string

	// label is the version of the signatures that this key makes and checks:
	// "v1", "v1a". A key never looks at those of another version.
	label string

	// name is what a header or a signature calls the key: a login, the id of a
	// public key, a fingerprint. text is what of the secret is part of the
	// message, end what the message ends with. Most keys have none of them.
	name, text, end string

	// One of these is set, for most. A private key signs and does not verify.
	macs   *sync.Pool // of *mac
	verify func(msg, sig []byte) bool
	sign   func(msg []byte) ([]byte, error)
}

func badKey(why string) *key { return &key{bad: why} }

// hmacKey returns the key for HMACs with that hash.
func hmacKey(label string, h func() hash.Hash, secret []byte) *key {
	return &key{label: label, macs: &sync.Pool{New: func() any {
		return &mac{state: hmac.New(h, secret)}
	}}}
}

// hashKey returns the key for schemes that hash a secret with the message, without
// HMAC. What is in front of the message is hashed first.
func hashKey(label string, h func() hash.Hash, front string) *key {
	return &key{label: label, macs: &sync.Pool{New: func() any {
		return &mac{state: &fronted{Hash: h(), front: []byte(front)}}
	}}}
}

// fronted is a hash of front and what is written to it.
type fronted struct {
	hash.Hash
	front []byte
}

func (f *fronted) Reset() {
	f.Hash.Reset()
	f.Write(f.front)
}

// mac is one keyed HMAC state and the room that a check needs. States are kept
// and used again, because keying one costs a quarter of a 2 kB message.
type mac struct {
	state hash.Hash
	text  []byte // of the message, not yet written to state
	sum   [maxDigest]byte
	got   [maxDigest]byte
}

// mac takes a state out of the pool; give it back with done.
func (k *key) mac() *mac {
	m := k.macs.Get().(*mac) // it holds nothing else
	m.state.Reset()
	m.text = m.text[:0]
	return m
}

func (k *key) done(m *mac) { k.macs.Put(m) }

// add appends a short part to the message.
func (m *mac) add(s string) { m.text = append(m.text, s...) }

// addBody appends the body to the message, without copying it.
func (m *mac) addBody(b []byte) {
	m.state.Write(m.text)
	m.text = m.text[:0]
	m.state.Write(b)
}

// digest ends the message. The result is good until the state is given back.
func (m *mac) digest() []byte {
	m.state.Write(m.text)
	return m.state.Sum(m.sum[:0])
}

// equal compares two digests in constant time.
func equal(a, b []byte) bool { return subtle.ConstantTimeCompare(a, b) == 1 }

// maxKeys bounds a keyring. A process that serves more secrets than that makes
// some of their keys again; it verifies the same.
const maxKeys = 4096

// keyring keeps the keys made from secrets.
type keyring struct {
	parse func(secret string) *key // never nil

	mu   sync.RWMutex
	keys map[string]*key
}

// get returns the key of a secret.
func (r *keyring) get(secret string) *key {
	r.mu.RLock()
	k := r.keys[secret]
	r.mu.RUnlock()
	if k != nil {
		return k
	}

	k = r.parse(secret)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys == nil || len(r.keys) >= maxKeys {
		r.keys = make(map[string]*key)
	}
	r.keys[secret] = k
	return k
}

// match reports whether ok holds for the key of one of secrets: nil if it does,
// else the refusal. Empty secrets are passed over, and so are bad ones as long as
// there is another. t is what the caller knows and what ok adds to it.
func (r *keyring) match(secrets []string, t *tally, ok func(*key) bool) *Error {
	var usable bool
	var bad string
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		k := r.get(secret)
		if k.bad != "" {
			bad = k.bad
			continue
		}
		usable = true
		if ok(k) {
			return nil
		}
	}
	switch {
	case !usable && bad != "":
		return refuse(BadSecret, bad)
	case !usable:
		return refuse(NoSecret, "no secret is configured")
	case !t.seen:
		return refuse(Missing, "no signature of a version that the secrets make")
	case !t.formed:
		return refuse(Malformed, "no signature can be decoded")
	default:
		return refuse(Mismatch, "")
	}
}

// matchDigest reports whether one of sigs, written in enc, is the digest of a
// message that write adds to a keyed state: nil if so, for one of secrets.
func (r *keyring) matchDigest(secrets []string, enc encoding, sigs []string, write func(*key, *mac)) *Error {
	var t tally
	return r.match(secrets, &t, func(k *key) bool {
		m := k.mac()
		defer k.done(m)
		write(k, m)
		m.add(k.end)
		want := m.digest()
		for _, sig := range sigs {
			t.seen = true
			n, ok := enc.decode(&m.got, sig)
			t.formed = t.formed || ok
			if ok && equal(m.got[:n], want) {
				return true
			}
		}
		return false
	})
}

// digestOf is the digest that matchDigest compares with.
func (k *key) digestOf(write func(*key, *mac)) []byte {
	m := k.mac()
	defer k.done(m)
	write(k, m)
	m.add(k.end)
	return append([]byte(nil), m.digest()...)
}

// tally is what a verification has seen of the signatures in the request.
type tally struct {
	seen   bool // one of a version that a secret makes
	formed bool // and it could be decoded
}

// signer returns the key to sign with.
func (r *keyring) signer(secret string) (*key, *Error) {
	if secret == "" {
		return nil, refuse(NoSecret, "no secret to sign with")
	}
	k := r.get(secret)
	switch {
	case k.sign != nil || k.macs != nil:
		return k, nil
	case k.verify != nil:
		return nil, refuse(BadSecret, "a public key cannot sign")
	default:
		return nil, refuse(BadSecret, k.bad)
	}
}

// wellFormed is CheckSecret: what verification needs, and what well, if it is not
// nil, asks beyond.
func (r *keyring) wellFormed(secret string, well func(string) string) *Error {
	if k := r.get(secret); k.bad != "" {
		return refuse(BadSecret, k.bad)
	}
	if well != nil {
		if why := well(secret); why != "" {
			return refuse(BadSecret, why)
		}
	}
	return nil
}

// called reports whether a request that names its key as name may be of k.
func (k *key) called(name string) bool {
	return name == "" || k.name == "" || strings.EqualFold(k.name, name)
}

// signed makes a signature with a private key.
func (k *key) signed(msg []byte) ([]byte, *Error) {
	sig, err := k.sign(msg)
	if err != nil {
		return nil, refuse(BadSecret, "the private key cannot sign this")
	}
	return sig, nil
}
