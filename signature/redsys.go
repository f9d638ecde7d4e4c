package signature

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"hash"
	"net/http"
	"strings"
	"time"
)

// redsys is the way of Redsys: the body is a form, or a JSON object, with
//
//	Ds_SignatureVersion    HMAC_SHA256_V1 or HMAC_SHA512_V2
//	Ds_MerchantParameters  base64 of a JSON object
//	Ds_Signature           an HMAC of the text of the parameters, in base64
//
// The key of the HMAC is made of the secret and the order number in the
// parameters. The version in the request says how, and is never tried as another
// one; both need the secret. Base64 may be of either alphabet, with padding or
// without: decoded bytes are compared.
type redsys struct {
	keys *keyring
}

const (
	redsysVersion   = "Ds_SignatureVersion"
	redsysParams    = "Ds_MerchantParameters"
	redsysSignature = "Ds_Signature"

	redsysV1 = "HMAC_SHA256_V1"
	redsysV2 = "HMAC_SHA512_V2"

	// In notifications the order is Ds_Order, in requests DS_MERCHANT_ORDER.
	redsysOrder        = "Ds_Order"
	redsysRequestOrder = "Ds_Merchant_Order"
)

// redsysMessage is what matters of a body.
type redsysMessage struct {
	version, params, signature string
	order                      string
}

func (f *redsys) verify(req Request, secrets []string, _ time.Time, _ time.Duration) *Error {
	msg, err := redsysRead(req.Body)
	if err != nil {
		return err
	}
	if msg.signature == "" {
		return refuse(Missing, "no "+redsysSignature)
	}
	got, formed := redsysBase64(msg.signature)
	return f.keys.match(secrets, &tally{seen: true, formed: formed}, func(k *key) bool {
		want := msg.digest(k.text)
		return formed && want != nil && equal(got, want)
	})
}

// redsysRead reads a form or a JSON object.
func redsysRead(body []byte) (msg redsysMessage, err *Error) {
	if strings.HasPrefix(strings.TrimLeft(string(body), " \t\r\n"), "{") {
		msg, err = redsysJSON(body)
	} else {
		var fields map[string]string
		fields, err = parseForm(string(body))
		msg = redsysMessage{version: fields[redsysVersion], params: fields[redsysParams], signature: fields[redsysSignature]}
	}
	switch {
	case err != nil:
		return msg, err
	case msg.version == "":
		return msg, refuse(Missing, "no "+redsysVersion)
	case msg.version != redsysV1 && msg.version != redsysV2:
		return msg, refuse(Malformed, "an unknown "+redsysVersion)
	case msg.params == "":
		return msg, refuse(Missing, "no "+redsysParams)
	}
	msg.order, err = redsysOrderOf(msg.params)
	return msg, err
}

func redsysJSON(body []byte) (msg redsysMessage, err *Error) {
	doc, top, err := flatObject(body, anyCase, redsysVersion, redsysParams, redsysSignature)
	if err != nil {
		return msg, err
	}
	for _, m := range [...]struct {
		name  string
		value *string
	}{{redsysVersion, &msg.version}, {redsysParams, &msg.params}, {redsysSignature, &msg.signature}} {
		if doc.null(top[m.name]) {
			continue
		}
		var ok bool
		if *m.value, ok = doc.text(top[m.name]); !ok {
			return msg, refuse(Malformed, m.name+" is not a string")
		}
	}
	return msg, nil
}

// redsysOrderOf is the order number in the parameters.
func redsysOrderOf(params string) (string, *Error) {
	text, ok := redsysBase64(params)
	if !ok {
		return "", refuse(Malformed, redsysParams+" is not base64")
	}
	doc, top, err := flatObject(text, foldCase, redsysOrder, redsysRequestOrder)
	if err != nil {
		return "", err
	}
	at, other := top[redsysOrder], top[redsysRequestOrder]
	switch {
	case doc.kind(at) != 0 && doc.kind(other) != 0:
		return "", refuse(Ambiguous, "the parameters have two orders")
	case doc.kind(at) == 0:
		at = other
	}
	order, err := requiredText(doc, at, redsysOrder)
	if err == nil && !visible(order) {
		err = refuse(Malformed, redsysOrder+" has a space or an unprintable character")
	}
	return order, err
}

// redsysBase64 decodes either alphabet, not a mixture, padded or not.
func redsysBase64(s string) ([]byte, bool) {
	if s == "" || hasBreak(s) {
		return nil, false
	}
	enc := base64.StdEncoding
	if strings.ContainsAny(s, "-_") {
		enc = base64.URLEncoding
	}
	if !strings.HasSuffix(s, "=") {
		enc = enc.WithPadding(base64.NoPadding)
	}
	b, err := enc.Strict().DecodeString(s)
	return b, err == nil
}

// digest is the HMAC of the parameters, nil if the secret cannot make one of this
// version.
func (msg redsysMessage) digest(secret string) []byte {
	h := sha512.New
	derived := redsysKeyV2(secret, msg.order)
	if msg.version == redsysV1 {
		h = sha256.New
		derived = redsysKeyV1(secret, msg.order)
	}
	if derived == nil {
		return nil
	}
	return redsysHMAC(h, derived, msg.params)
}

func redsysHMAC(h func() hash.Hash, derived []byte, params string) []byte {
	m := hmac.New(h, derived)
	m.Write([]byte(params))
	return m.Sum(nil)
}

// redsysKeyV1 encrypts the order, filled up with zeros, with 3DES in CBC mode. The
// key is the secret decoded; nil if that is not one.
func redsysKeyV1(secret, order string) []byte {
	raw, ok := decodeBase64(secret)
	if !ok || len(raw) != 24 {
		return nil
	}
	block, err := des.NewTripleDESCipher(raw)
	if err != nil {
		return nil
	}
	text := []byte(order)
	for len(text)%des.BlockSize != 0 {
		text = append(text, 0)
	}
	return encryptCBC(block, text)
}

// redsysKeyV2 encrypts the order, padded as in PKCS #7, with AES-128 in CBC mode,
// and takes the base64 text of that. The key is the beginning of the text of the
// secret.
func redsysKeyV2(secret, order string) []byte {
	raw := []byte(secret + strings.Repeat("0", aes.BlockSize))[:aes.BlockSize]
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil
	}
	n := aes.BlockSize - len(order)%aes.BlockSize
	text := append([]byte(order), strings.Repeat(string(rune(n)), n)...)
	return []byte(base64.StdEncoding.EncodeToString(encryptCBC(block, text)))
}

// encryptCBC encrypts whole blocks, in place; the initial vector is zero.
func encryptCBC(block cipher.Block, text []byte) []byte {
	cipher.NewCBCEncrypter(block, make([]byte, block.BlockSize())).CryptBlocks(text, text)
	return text
}

// sign takes a body with Ds_MerchantParameters, or the JSON object that is to be
// them. A body that names no version is signed with the first.
func (f *redsys) sign(b []byte, secret string, _ time.Time, _ SignOptions) (Signed, *Error) {
	k, err := f.keys.signer(secret)
	if err != nil {
		return Signed{}, err
	}
	body, isJSON, err := redsysEnvelope(b)
	if err != nil {
		return Signed{}, err
	}
	msg, err := redsysRead(body)
	if err != nil {
		return Signed{}, err
	}
	digest := msg.digest(k.text)
	if digest == nil {
		return Signed{}, refuse(BadSecret, "the secret is not the base64 of 24 bytes, as "+redsysV1+" needs it")
	}
	sig := base64.URLEncoding.EncodeToString(digest)
	h := http.Header{}
	if !isJSON {
		h.Set("Content-Type", formType)
		return Signed{Header: h, Body: []byte(setField(string(body), redsysSignature, sig))}, nil
	}
	doc, top, err := flatObject(body, anyCase, redsysSignature)
	if err != nil {
		return Signed{}, err
	}
	return Signed{Header: h, Body: doc.put(doc.root(), top[redsysSignature], redsysSignature, `"`+sig+`"`)}, nil
}

// redsysEnvelope completes a body that is to be signed.
func redsysEnvelope(b []byte) (body []byte, isJSON bool, err *Error) {
	if !strings.HasPrefix(strings.TrimLeft(string(b), " \t\r\n"), "{") {
		fields, err := parseForm(string(b))
		if err == nil && fields[redsysVersion] == "" {
			b = []byte(setField(string(b), redsysVersion, redsysV1))
		}
		return b, false, err
	}
	doc, top, err := flatObject(b, anyCase, redsysVersion, redsysParams)
	if err != nil {
		return nil, false, err
	}
	if doc.null(top[redsysParams]) {
		form := redsysVersion + "=" + redsysV1
		return []byte(setField(form, redsysParams, base64.StdEncoding.EncodeToString(b))), false, nil
	}
	if doc.null(top[redsysVersion]) {
		b = doc.put(doc.root(), top[redsysVersion], redsysVersion, `"`+redsysV1+`"`)
	}
	return b, true, nil
}

// checkSecret wants what Redsys shows: base64, of 24 bytes for V1. V2 takes any
// text, but not a short one.
func (f *redsys) checkSecret(secret string) *Error {
	return f.keys.wellFormed(secret, func(secret string) string {
		switch {
		case !visible(secret):
			return "it has a space, a line break or another character that Redsys does not use"
		case len(secret) < aes.BlockSize:
			return "the key of a Redsys terminal is longer; it has 32 characters"
		default:
			return wellText(secret)
		}
	})
}

// redsysKey keeps the text of the secret; the keys of messages depend on them.
func redsysKey(secret string) *key {
	if secret == "" {
		return badKey("the secret is empty")
	}
	return &key{text: secret, sign: func([]byte) ([]byte, error) { return nil, nil }}
}
