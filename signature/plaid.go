package signature

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"net/http"
	"strings"
	"time"
)

// plaid is Plaid's way: the header Plaid-Verification is a compact JSON web
// signature (RFC 7515) of the one algorithm ES256, whose claims are
//
//	{"iat":1750000000,"request_body_sha256":"5886caad…"}
//
// The algorithm is a constant here and not the token's choice; the key is the
// configured one whose kid the token names, never one inside the token. A member
// that occurs twice in a header or in the claims is refused.
type plaid struct {
	keys *keyring
}

var plaidHeader = field{name: "Plaid-Verification"}

const (
	es256     = "ES256"
	p256Bytes = 32
	maxJWS    = 8192
)

var base64URL = base64.RawURLEncoding.Strict()

// jws is a parsed token.
type jws struct {
	kid    string
	signed []byte // what the signature covers
	sig    []byte
	claims []byte // the JSON of the claims, not yet read
}

func (f *plaid) verify(req Request, secrets []string, now time.Time, tolerance time.Duration) *Error {
	token, err := plaidToken(req.Header)
	if err != nil {
		return err
	}
	err = f.keys.match(secrets, &tally{seen: true, formed: true}, func(k *key) bool {
		return equal([]byte(k.name), []byte(token.kid)) && k.verify(token.signed, token.sig)
	})
	if err != nil {
		return err
	}
	signed, digest, err := plaidClaims(token.claims)
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(req.Body); !equal(sum[:], digest) {
		return refuse(Mismatch, "the token is genuine and of another body")
	}
	return checkSkew(signed, now, tolerance)
}

// PlaidKeyID returns the kid that the token of a request names, so that the caller
// can fetch that key. The request is not verified by this.
func PlaidKeyID(h http.Header) (string, error) {
	token, err := plaidToken(h)
	if err != nil {
		err.Scheme = "plaid"
		return "", err
	}
	return token.kid, nil
}

// plaidToken reads the token in the header, all but its claims.
func plaidToken(h http.Header) (token jws, err *Error) {
	text, err := plaidHeader.get(h)
	if err != nil {
		return jws{}, err
	}
	parts := strings.Split(text, ".")
	if len(text) > maxJWS || len(parts) != 3 {
		return jws{}, refuse(Malformed, "not a compact JWS")
	}
	var raw [3][]byte
	for i, p := range parts {
		b, bad := base64URL.DecodeString(p)
		if bad != nil || hasBreak(p) {
			return jws{}, refuse(Malformed, "a part of the JWS is not base64url")
		}
		raw[i] = b
	}
	doc, top, err := flatObject(raw[0], anyCase, "alg", "kid", "crit", "b64")
	if err != nil {
		return jws{}, err
	}
	if alg, _ := doc.text(top["alg"]); alg != es256 {
		return jws{}, refuse(Malformed, "the algorithm is not "+es256)
	}
	if doc.kind(top["crit"]) != 0 || doc.kind(top["b64"]) != 0 {
		return jws{}, refuse(Malformed, "the JWS has extensions")
	}
	kid, ok := doc.text(top["kid"])
	if !ok || kid == "" {
		return jws{}, refuse(Missing, "no kid")
	}
	if len(raw[2]) != 2*p256Bytes {
		return jws{}, refuse(Malformed, "the signature is not of "+es256)
	}
	return jws{kid: kid, signed: []byte(parts[0] + "." + parts[1]), sig: raw[2], claims: raw[1]}, nil
}

// plaidClaims reads the claims of a token that is genuine.
func plaidClaims(claims []byte) (iat int64, digest []byte, err *Error) {
	doc, top, err := flatObject(claims, anyCase, "iat", "request_body_sha256")
	if err != nil {
		return 0, nil, err
	}
	at := top["iat"]
	if doc.kind(at) == 0 {
		return 0, nil, refuse(Missing, "no iat")
	}
	iat, ok := plainNumber(string(doc.bytes(at)))
	if !ok {
		return 0, nil, refuse(Malformed, "iat is not a plain number")
	}
	text, ok := doc.text(top["request_body_sha256"])
	if !ok {
		return 0, nil, refuse(Missing, "no request_body_sha256")
	}
	digest, bad := hex.DecodeString(text)
	if bad != nil {
		return 0, nil, refuse(Malformed, "request_body_sha256 is not hexadecimal")
	}
	return iat, digest, nil
}

func (f *plaid) sign(b []byte, secret string, now time.Time, _ SignOptions) (Signed, *Error) {
	k, err := f.keys.signer(secret)
	if err != nil {
		return Signed{}, err
	}
	kid, bad := json.Marshal(k.name)
	if bad != nil {
		return Signed{}, refuse(BadSecret, "the kid cannot be written")
	}
	sum := sha256.Sum256(b)
	head := `{"alg":"` + es256 + `","kid":` + string(kid) + `,"typ":"JWT"}`
	claims := `{"iat":` + formatMoment(now, roleTime, "") + `,"request_body_sha256":"` + hex.EncodeToString(sum[:]) + `"}`
	text := base64URL.EncodeToString([]byte(head)) + "." + base64URL.EncodeToString([]byte(claims))
	sig, err := k.signed([]byte(text))
	if err != nil {
		return Signed{}, err
	}
	h := http.Header{}
	h.Set(plaidHeader.name, text+"."+base64URL.EncodeToString(sig))
	return Signed{Header: h, Body: b}, nil
}

func (f *plaid) checkSecret(secret string) *Error { return f.keys.wellFormed(secret, nil) }

// jwkKey makes the key of a JSON web key (RFC 7517) on the curve P-256, as Plaid's
// /webhook_verification_key/get returns it under "key". With "d" it is a private
// key, which signs and verifies nothing. A key with expired_at is refused, as
// Plaid's own example does: it is set once the key is no longer used.
func jwkKey(secret string) *key {
	var jwk struct {
		Kty, Crv, Alg, Use, Kid, X, Y, D string
		ExpiredAt                        *json.Number `json:"expired_at"`
	}
	if json.Unmarshal([]byte(secret), &jwk) != nil || jwk.Kty == "" {
		return badKey(`want a JWK, a JSON object with kty, crv, kid, x and y`)
	}
	switch {
	case jwk.Kty != "EC" || jwk.Crv != "P-256" || jwk.Alg != "" && jwk.Alg != es256 || jwk.Use != "" && jwk.Use != "sig":
		return badKey("want a JWK of kty EC and crv P-256, for alg ES256 and use sig")
	case jwk.Kid == "":
		return badKey("the JWK has no kid")
	case jwk.ExpiredAt != nil:
		return badKey("the JWK has expired; get the current one")
	}
	public, err := jwkPublic(jwk.X, jwk.Y)
	if err != nil {
		return badKey("x and y of the JWK are not a point of P-256")
	}
	if jwk.D != "" {
		return jwkPrivate(jwk.Kid, jwk.D, public)
	}
	return &key{name: jwk.Kid, verify: func(msg, sig []byte) bool {
		sum := sha256.Sum256(msg)
		r, s := new(big.Int).SetBytes(sig[:p256Bytes]), new(big.Int).SetBytes(sig[p256Bytes:])
		return ecdsa.Verify(public, sum[:], r, s)
	}}
}

func jwkPublic(x, y string) (*ecdsa.PublicKey, error) {
	point := []byte{4} // uncompressed
	for _, coordinate := range [...]string{x, y} {
		b, err := base64URL.DecodeString(coordinate)
		if err != nil {
			return nil, err
		}
		point = append(point, b...)
	}
	return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
}

func jwkPrivate(kid, d string, public *ecdsa.PublicKey) *key {
	raw, err := base64URL.DecodeString(d)
	if err != nil {
		return badKey("d of the JWK is not base64url")
	}
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw)
	if err != nil || !private.PublicKey.Equal(public) {
		return badKey("d of the JWK does not belong to x and y")
	}
	k := badKey(`the JWK has "d": that is the sender's private key; a receiver needs the public one`)
	k.name = kid
	k.sign = func(msg []byte) ([]byte, error) {
		sum := sha256.Sum256(msg)
		der, err := private.Sign(nil, sum[:], crypto.SHA256) // nil: the deterministic way of RFC 6979
		if err != nil {
			return nil, err
		}
		var pair struct{ R, S *big.Int }
		if _, err := asn1.Unmarshal(der, &pair); err != nil {
			return nil, err
		}
		sig := make([]byte, 2*p256Bytes)
		pair.R.FillBytes(sig[:p256Bytes])
		pair.S.FillBytes(sig[p256Bytes:])
		return sig, nil
	}
	return k
}
