package gateway

import (
	"crypto/ecdh"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"sync"
)

// Key pairs of [Gateway].Example, made from a seed like all its secrets: whoever
// knows the seed has the private key, so they prove nothing to anybody.

// exampleStream is n bytes made of what they are derived from.
func exampleStream(n int, from ...string) []byte {
	var out []byte
	for i := 0; len(out) < n; i++ {
		sum := sha256.Sum256([]byte(strings.Join(from, "\x00") + "\x00" + strconv.Itoa(i)))
		out = append(out, sum[:]...)
	}
	return out[:n]
}

// examplePrime is the first prime of that many bits at or after a number made of
// the seed that e can be used with.
func examplePrime(bits int, e int64, from ...string) *big.Int {
	b := exampleStream(bits/8, from...)
	b[0] |= 0xc0 // so that the product of two has twice the bits
	b[len(b)-1] |= 1
	p, one, two := new(big.Int).SetBytes(b), big.NewInt(1), big.NewInt(2)
	for ; ; p.Add(p, two) {
		rest := new(big.Int).Mod(new(big.Int).Sub(p, one), big.NewInt(e))
		if rest.Sign() != 0 && p.ProbablyPrime(20) {
			return p
		}
	}
}

type examplePair struct{ public, private string }

var exampleRSAs sync.Map // string → func() examplePair

// exampleRSA is a key pair of RSA with 2048 bits, in PEM: PKIX and PKCS #8.
func exampleRSA(gateway, seed string) (public, private string) {
	const e = 65537
	once, _ := exampleRSAs.LoadOrStore(gateway+"\x00"+seed, sync.OnceValue(func() examplePair {
		p, q := examplePrime(1024, e, gateway, seed, "p"), examplePrime(1024, e, gateway, seed, "q")
		one := big.NewInt(1)
		phi := new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
		key := &rsa.PrivateKey{
			PublicKey: rsa.PublicKey{N: new(big.Int).Mul(p, q), E: e},
			D:         new(big.Int).ModInverse(big.NewInt(e), phi), Primes: []*big.Int{p, q},
		}
		key.Precompute()
		secret, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			panic(fmt.Sprintf("gateway: example key: %v", err)) // the two primes are a key
		}
		open, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
		if err != nil {
			panic(fmt.Sprintf("gateway: example key: %v", err))
		}
		return examplePair{pemOf("PUBLIC KEY", open), pemOf("PRIVATE KEY", secret)}
	}))
	pair := once.(func() examplePair)() //nolint:forcetypeassert // nothing else is stored
	return pair.public, pair.private
}

func pemOf(typ string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: typ, Bytes: der}))
}

// exampleJWK is a key pair of ECDSA on P-256 as JSON Web Keys (RFC 7517), of that
// key id.
func exampleJWK(gateway, seed, id string) (public, private string) {
	secret := exampleStream(32, gateway, seed, "jwk")
	secret[0] &= 0x7f // below the order of the curve
	key, err := ecdh.P256().NewPrivateKey(secret)
	if err != nil {
		panic(fmt.Sprintf("gateway: example key: %v", err)) // the number is in range
	}
	point, text := key.PublicKey().Bytes(), base64.RawURLEncoding.EncodeToString
	jwk := map[string]any{
		"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": id, "x": text(point[1:33]), "y": text(point[33:]),
		"created_at": 1740000000, "expired_at": nil,
	}
	open, err := json.Marshal(jwk)
	if err != nil {
		panic(fmt.Sprintf("gateway: example key: %v", err))
	}
	jwk["d"] = text(secret)
	closed, err := json.Marshal(jwk)
	if err != nil {
		panic(fmt.Sprintf("gateway: example key: %v", err))
	}
	return string(open), string(closed)
}
