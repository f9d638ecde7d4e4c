package diagnose

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
)

// opened reports whether one of the RSA keys among secrets made one of the
// signatures in the headers, of whatever message: what comes out of it has the
// padding of PKCS #1 v1.5. It tells a wrong key from a message that was changed.
// keys is how many RSA keys there are.
func (s *search) opened(a attempt) (ok bool, keys int) {
	for _, secret := range a.secrets {
		key := publicRSA(secret)
		if key == nil {
			continue
		}
		keys++
		for name, values := range a.request.Header {
			for _, v := range values {
				if carriesSignature(name) && opens(key, v) {
					return true, keys
				}
			}
		}
	}
	return false, keys
}

// publicRSA reads the RSA key in a PEM block, wherever in the secret it begins.
func publicRSA(secret string) *rsa.PublicKey {
	block, _ := pem.Decode([]byte(secret[max(0, strings.Index(secret, "-----BEGIN")):]))
	if block == nil {
		return nil
	}
	if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
		key, _ := cert.PublicKey.(*rsa.PublicKey)
		return key
	}
	if key, err := x509.ParsePKCS1PublicKey(block.Bytes); err == nil {
		return key
	}
	found, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil
	}
	key, _ := found.(*rsa.PublicKey)
	return key
}

// opens reports whether sig, in base64, is a signature of key (RFC 8017, 8.2.2).
func opens(key *rsa.PublicKey, sig string) bool {
	b, err := base64.StdEncoding.DecodeString(sig)
	if err != nil || len(b) != key.Size() || key.N.BitLen() > 8192 {
		return false
	}
	m := new(big.Int).Exp(new(big.Int).SetBytes(b), big.NewInt(int64(key.E)), key.N)
	out := m.FillBytes(make([]byte, key.Size()))
	return bytes.HasPrefix(out, []byte{0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
}
