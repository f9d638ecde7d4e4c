package signature

import (
	"crypto"
	"crypto/rsa"
	_ "crypto/sha1" // EBANX still signs with it
	_ "crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"strings"
)

// minRSA is the shortest modulus we take, in bits: what crypto/rsa still verifies.
const minRSA = 1024

// rsaKey makes the key of a PEM block for signatures of RSA (PKCS #1 v1.5) with
// that hash. A public key or a certificate verifies; a certificate is also named
// by its SHA-1 fingerprint. A private key makes signatures and verifies nothing: a
// receiver that holds it can forge. Who the certificate belongs to and until when
// is for the caller to see.
func rsaKey(h crypto.Hash) func(string) *key {
	return func(secret string) *key {
		block, rest := pem.Decode([]byte(secret))
		switch {
		case block == nil && strings.Contains(secret, `\n`):
			return badKey(`want PEM; this has the two characters \n where its line breaks belong`)
		case block == nil:
			return badKey("want PEM, which begins with -----BEGIN PUBLIC KEY----- or -----BEGIN CERTIFICATE-----")
		case strings.TrimSpace(string(rest)) != "":
			return badKey("there is something after the first PEM block; want one")
		}
		return rsaBlock(h, block)
	}
}

func rsaBlock(h crypto.Hash, block *pem.Block) *key {
	var found any
	var err error
	name := ""
	switch block.Type {
	case "PUBLIC KEY":
		found, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		found, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		var cert *x509.Certificate
		if cert, err = x509.ParseCertificate(block.Bytes); err == nil {
			found, name = cert.PublicKey, fingerprint(cert.Raw)
		}
	case "PRIVATE KEY":
		found, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		found, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		return badKey("want a PEM block that is a public key or a certificate")
	}
	if err != nil {
		return badKey("the PEM block cannot be read")
	}
	switch found := found.(type) {
	case *rsa.PublicKey:
		if found.N.BitLen() < minRSA {
			return badKey("the RSA key is too short")
		}
		return &key{name: name, verify: func(msg, sig []byte) bool {
			return rsa.VerifyPKCS1v15(found, h, digestOf(h, msg), sig) == nil
		}}
	case *rsa.PrivateKey:
		k := badKey("that is the sender's private key; a receiver needs the public one")
		k.sign = func(msg []byte) ([]byte, error) { return rsa.SignPKCS1v15(nil, found, h, digestOf(h, msg)) }
		return k
	default:
		return badKey("the key is not one of RSA")
	}
}

func digestOf(h crypto.Hash, msg []byte) []byte {
	state := h.New()
	state.Write(msg)
	return state.Sum(nil)
}

// fingerprint is SHA-1 of a certificate in hexadecimal, as EBANX writes it.
func fingerprint(raw []byte) string {
	return strings.ToUpper(hex.EncodeToString(digestOf(crypto.SHA1, raw)))
}

// paypalKey takes "webhook_id:" and PEM. The id is part of the message, and comes
// from configuration alone: one in a request would be the sender's choice.
func paypalKey(secret string) *key {
	id, text, ok := strings.Cut(secret, ":")
	if !ok || id == "" || !visible(id) || strings.HasPrefix(id, "-----BEGIN") {
		return badKey("want webhook_id:PEM, the id of the webhook and the certificate with a colon between them")
	}
	k := *rsaKey(crypto.SHA256)(text)
	k.name, k.text = "", id
	return &k
}
