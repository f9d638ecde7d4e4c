package diagnose

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
)

// prefixes are what gateways put in front of secrets and digests.
var prefixes = []string{"whsec_", "sha256=", "whpk_", "Bearer ", "secret=", "Basic "}

// secrets undoes what happens to a secret on its way into a configuration.
func secrets(s *search, a attempt, yield func(variant) bool) {
	try := func(secret string, cause Cause, sentence string) bool {
		v := a
		v.secrets = []string{secret}
		return yield(variant{v, cause, sentence})
	}
	for _, secret := range a.secrets {
		for _, c := range secretChanges(secret) {
			if c.secret != "" && c.secret != secret && !try(c.secret, c.cause, c.sentence) {
				return
			}
		}
	}
	for _, o := range s.in.Others {
		cause := OtherSecret
		if otherMode(s.in.Mode, o) {
			cause = SecretMode
		}
		if !try(o.Secret, cause, otherSentence(s.in.Mode, o)) {
			return
		}
	}
}

// otherMode reports whether a secret is known to be of the other mode.
func otherMode(mode string, o Labelled) bool { return mode != "" && o.Mode != "" && mode != o.Mode }

// otherSentence is about a delivery that another secret fits.
func otherSentence(mode string, o Labelled) string {
	if otherMode(mode, o) {
		return "It was signed with the " + o.Mode + " secret (" + o.Label + "), and this endpoint verifies with the " + mode +
			" one: the gateway's " + o.Mode + " mode sends to the wrong endpoint, or the secrets were mixed up."
	}
	return "It was signed with another secret that was given (" + o.Label + "): configure that one here, or send these deliveries there."
}

type secretChange struct {
	secret, sentence string
	cause            Cause
}

func secretChanges(secret string) []secretChange {
	all := []secretChange{
		{strings.Trim(secret, `"'`+"`"), "The secret was given with quotes around it: take them away.", SecretQuotes},
		{strings.Trim(secret, "\u201c\u201d\u2018\u2019\u00ab\u00bb"), "The secret was given with typographic quotes around it: take them away.", SecretQuotes},
		{strings.TrimSpace(secret), "The secret has a space or a line break around it (a file that ends with one?): take it away.", SecretSpace},
		{strings.Trim(secret, "\ufeff\u200b\u00a0 \t\r\n"), "The secret has an invisible character around it: take it away.", SecretSpace},
		{strings.Trim(strings.TrimSpace(secret), `"' `), "The secret has quotes and space around it: take them away.", SecretQuotes},
		{strings.TrimPrefix(secret, "$"), "The secret begins with a $ that does not belong to it.", SecretPrefix},
	}
	for _, p := range prefixes {
		all = append(all,
			secretChange{strings.TrimPrefix(secret, p), "The secret has the prefix " + strings.TrimSpace(p) + ", which does not belong to it here: take it away.", SecretPrefix},
			secretChange{p + secret, "The secret lacks its prefix " + strings.TrimSpace(p) + ": give the whole text that the gateway shows.", SecretPrefix})
	}
	if name, value, ok := strings.Cut(secret, "="); ok && strings.ToUpper(name) == name {
		all = append(all, secretChange{strings.Trim(value, `"' `), "The secret was given with the name of its variable in front (NAME=…): give what stands behind the equals sign.", SecretPrefix})
	}
	bare := strings.TrimPrefix(secret, "whsec_")
	if b, err := hex.DecodeString(secret); err == nil {
		all = append(all, secretChange{string(b), "The secret was given in hexadecimal, and is the text behind it: decode it.", SecretEncoding},
			secretChange{base64.StdEncoding.EncodeToString(b), "The secret was given in hexadecimal where base64 is wanted.", SecretEncoding})
	}
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if b, err := enc.DecodeString(bare); err == nil {
			all = append(all, secretChange{string(b), "The secret was given in base64, and is the text behind it: decode it once.", SecretEncoding},
				secretChange{base64.StdEncoding.EncodeToString(b), "The secret is in another form of base64: give it in the standard alphabet with its padding.", SecretEncoding},
				secretChange{hex.EncodeToString(b), "The secret was given in base64 where hexadecimal is wanted.", SecretEncoding})
			break
		}
	}
	all = append(all,
		secretChange{base64.StdEncoding.EncodeToString([]byte(secret)), "The secret was decoded from base64, and is the text before: give it as the gateway shows it.", SecretEncoding},
		secretChange{hex.EncodeToString([]byte(secret)), "The secret was decoded from hexadecimal, and is the text before: give it as the gateway shows it.", SecretEncoding},
		secretChange{strings.ToLower(secret), "The secret was given in upper case.", SecretEncoding},
		secretChange{strings.ToUpper(secret), "The secret was given in lower case.", SecretEncoding},
	)
	if u, err := url.QueryUnescape(secret); err == nil {
		all = append(all, secretChange{u, "The secret is percent-encoded: decode it.", SecretEncoding})
	}
	all = append(all, secretChange{strings.ReplaceAll(secret, `\n`, "\n"), `The line breaks of the key were written as \n: put real line breaks in.`, SecretEncoding})
	return all
}
