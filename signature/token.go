package signature

import (
	"crypto/sha256"
	"net/http"
	"time"
)

// sharedToken is the family of gateways that sign nothing and send a secret along,
// the same with every request. It proves who sent the request, as long as nobody
// else has seen one, and nothing about the body.
type sharedToken struct {
	header field
	keys   *keyring
	well   func(string) string
}

// tokenTable are the schemes that send a token. Whatever the body says is to be
// fetched from the gateway before it is believed.
var tokenTable = []*Scheme{
	{
		Name: "xendit",
		Spec: "https://docs.xendit.co/docs/handling-webhooks",
		family: &sharedToken{
			header: field{name: "X-Callback-Token"},
			keys:   &keyring{parse: tokenKey},
			well: wellNot("the webhook verification token",
				"xnd_development_", "xnd_production_", "xnd_public_"),
		},
	},
	{
		Name: "flutterwave-v3",
		Spec: "https://developer.flutterwave.com/v3.0/docs/webhooks",
		family: &sharedToken{
			header: field{name: "Verif-Hash"},
			keys:   &keyring{parse: tokenKey},
			well:   wellNot("the secret hash that you chose in the dashboard", "FLWSECK", "FLWPUBK"),
		},
	},
}

// tokenKey keeps the text of the token.
func tokenKey(secret string) *key {
	if secret == "" {
		return badKey("the token is empty")
	}
	return &key{text: secret, sign: func([]byte) ([]byte, error) { return []byte(secret), nil }}
}

// verify compares digests of the tokens, so that not even their length shows in
// the time it takes.
func (f *sharedToken) verify(req Request, secrets []string, _ time.Time, _ time.Duration) *Error {
	sent, err := f.header.get(req.Header)
	if err != nil {
		return err
	}
	got := sha256.Sum256([]byte(sent))
	return f.keys.match(secrets, &tally{seen: true, formed: true}, func(k *key) bool {
		want := sha256.Sum256([]byte(k.text))
		return equal(got[:], want[:])
	})
}

func (f *sharedToken) sign(b []byte, secret string, _ time.Time, _ SignOptions) (Signed, *Error) {
	k, err := f.keys.signer(secret)
	if err != nil {
		return Signed{}, err
	}
	h := http.Header{}
	h.Set(f.header.name, k.text)
	return Signed{Header: h, Body: b}, nil
}

func (f *sharedToken) checkSecret(secret string) *Error { return f.keys.wellFormed(secret, f.well) }
