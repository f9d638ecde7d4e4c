package idempotency

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
)

// Cipher encrypts what is stored of requests and responses. aad binds the text to its row: what was sealed for one key opens for
// no other. Both must be safe for concurrent use.
type Cipher interface {
	Seal(plaintext, aad []byte) ([]byte, error)
	Open(ciphertext, aad []byte) ([]byte, error)
}

// ErrSealed says that a stored answer cannot be opened: its key is not in the keyring any more, or the row was changed.
var ErrSealed = errors.New("idempotency: cannot be opened")

// Keyring is a [Cipher] of AES-256-GCM in envelopes: every text has a random key of its own, which the keyring's current key
// seals. Older keys still open what they have sealed, so a key is rotated by adding one, and removed when
// the longest TTL has passed.
type Keyring struct {
	current string
	keys    map[string]cipher.AEAD
}

// NewKeyring returns a keyring of keys by name (1 to 255 bytes), 32 bytes each, that seals with current.
func NewKeyring(current string, keys map[string][]byte) (*Keyring, error) {
	k := &Keyring{current: current, keys: map[string]cipher.AEAD{}}
	for name, key := range keys {
		if name == "" || len(name) > 255 || len(key) != dataKeySize {
			return nil, fmt.Errorf("idempotency: key %q of the keyring has %d bytes: 32, and a name of 1 to 255", name, len(key))
		}
		aead, err := gcm(key)
		if err != nil {
			return nil, fmt.Errorf("idempotency: key %q of the keyring: %w", name, err)
		}
		k.keys[name] = aead
	}
	if k.keys[current] == nil {
		return nil, fmt.Errorf("idempotency: the keyring has no key %q", current)
	}
	return k, nil
}

const (
	dataKeySize  = 32
	wrappedSize  = 12 + dataKeySize + 16
	envelopeV1   = 1
	envelopeHead = 2 // version and length of the name
)

func gcm(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// Seal returns version, name of the key, sealed data key, and sealed plaintext.
func (k *Keyring) Seal(plaintext, aad []byte) ([]byte, error) {
	var dataKey [dataKeySize]byte
	_, _ = rand.Read(dataKey[:]) // never fails
	data, err := gcm(dataKey[:])
	if err != nil {
		return nil, err
	}
	out := append([]byte{envelopeV1, byte(len(k.current))}, k.current...)
	out = k.keys[k.current].Seal(out, nil, dataKey[:], aad)
	return data.Seal(out, nil, plaintext, aad), nil
}

// Open undoes Seal. The error is [ErrSealed].
func (k *Keyring) Open(sealed, aad []byte) ([]byte, error) {
	if len(sealed) < envelopeHead || sealed[0] != envelopeV1 {
		return nil, ErrSealed
	}
	at := envelopeHead + int(sealed[1])
	if len(sealed) < at+wrappedSize {
		return nil, ErrSealed
	}
	key := k.keys[string(sealed[envelopeHead:at])]
	if key == nil {
		return nil, ErrSealed
	}
	dataKey, err := key.Open(nil, nil, sealed[at:at+wrappedSize], aad)
	if err != nil {
		return nil, ErrSealed
	}
	data, err := gcm(dataKey)
	if err != nil {
		return nil, ErrSealed
	}
	plaintext, err := data.Open(nil, nil, sealed[at+wrappedSize:], aad)
	if err != nil {
		return nil, ErrSealed
	}
	return plaintext, nil
}
