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
		return yield(variant{attempt: v, cause: cause, sentence: sentence})
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
	if !strings.Contains(secret, "-----BEGIN") {
		all = append(all, secretChange{strings.Join(strings.Fields(secret), ""), "The secret has a space or a line break inside: it was wrapped when it was copied. Give it in one piece.", SecretSpace})
	}
	for _, sign := range []string{"=", ":"} {
		if _, value, ok := strings.Cut(secret, sign); ok {
			for _, bare := range []string{value, strings.TrimSpace(value), strings.Trim(value, "\"' \r\n;,")} {
				all = append(all, secretChange{bare, "The secret was given with the name of its variable in front (NAME=… or name: …): give what stands behind it.", SecretPrefix})
			}
		}
	}
	if word, value, ok := strings.Cut(secret, " "); ok && len(word) < 12 {
		all = append(all, secretChange{strings.TrimSpace(value), "The secret has a word in front that does not belong to it: take it away.", SecretPrefix})
	}
	all = append(all,
		secretChange{strings.Trim(secret, ";,. \r\n"), "The secret has a character at its end that does not belong to it (; , .): take it away.", SecretSpace},
		secretChange{strings.Trim(secret, "<>[](){}"), "The secret has brackets around it: take them away.", SecretQuotes},
		secretChange{strings.ReplaceAll(secret, `\n`, ""), `The secret has the two characters \n in it, which stand for a line break: take them away.`, SecretSpace},
		secretChange{strings.TrimSuffix(secret, `\`), "The secret has a backslash at its end: take it away.", SecretSpace},
		secretChange{strings.ReplaceAll(secret, `\`, ""), "The secret has backslashes that a shell or a configuration added: take them away.", SecretQuotes},
		secretChange{strings.ReplaceAll(secret, "$$", "$"), "The secret has its $ doubled, as some configurations write it: write it once.", SecretQuotes},
		secretChange{secret + "\n", "The secret that signed has a line break at its end: it was stored with one at the sender.", SecretSpace},
		secretChange{secret + " ", "The secret that signed has a space at its end: it was stored with one at the sender.", SecretSpace},
		secretChange{dashes.Replace(secret), "The hyphens of the secret became dashes, as when it is copied from a document: type hyphens.", SecretQuotes},
	)
	if half := len(secret) / 2; half > 0 && secret[:half] == secret[len(secret)-half:] {
		all = append(all, secretChange{secret[:half], "The secret was given twice in a row: give it once.", SecretPrefix})
	}
	if n := strings.Index(secret, "-----BEGIN"); n >= 0 {
		all = append(all, pemChanges(secret[:n], secret[n:])...)
	}
	bare := strings.TrimPrefix(secret, "whsec_")
	if b, err := hex.DecodeString(secret); err == nil {
		all = append(all, secretChange{string(b), "The secret was given in hexadecimal, and is the text behind it: decode it.", SecretEncoding},
			secretChange{base64.StdEncoding.EncodeToString(b), "The secret was given in hexadecimal where base64 is wanted.", SecretEncoding})
	}
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if b, err := enc.DecodeString(bare); err == nil {
			all = append(all, secretChange{strings.TrimSpace(string(b)), "The secret was given in base64, made of it with a line break at its end (echo without -n): decode it, and take the line break away.", SecretEncoding}, secretChange{string(b), "The secret was given in base64, and is the text behind it: decode it once.", SecretEncoding},
				secretChange{base64.StdEncoding.EncodeToString(b), "The secret is in another form of base64: give it in the standard alphabet with its padding.", SecretEncoding},
				secretChange{hex.EncodeToString(b), "The secret was given in base64 where hexadecimal is wanted.", SecretEncoding})
			break
		}
	}
	all = append(all, keyForms(secret)...)
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

var dashes = strings.NewReplacer("\u2013", "-", "\u2014", "-", "\u2010", "-", "\u2011", "-", "\u2212", "-")

// pemChanges undoes what happens to a key in PEM whose lines were lost; before is
// what stands in front of it (a webhook id, a name).
func pemChanges(before, text string) []secretChange {
	const sentence = "The line breaks of the key were lost, or its lines were indented: give it in PEM as it was handed out, with its lines."
	text = strings.NewReplacer(`\r`, "", `\n`, "\n").Replace(text)
	head, rest, ok := strings.Cut(strings.TrimPrefix(text, "-----"), "-----")
	if !ok {
		return nil
	}
	body, _, ok := strings.Cut(rest, "-----END")
	if !ok {
		return []secretChange{}
	}
	name := strings.TrimPrefix(head, "BEGIN ")
	key := "-----BEGIN " + name + "-----\n" + strings.TrimSuffix(brokenAt(strings.Join(strings.Fields(body), ""), 64), "\n") + "\n-----END " + name + "-----\n"
	return []secretChange{
		{before + key, sentence, SecretEncoding},
		{strings.Trim(before, "\"' \r\n=") + key, "The key has quotes or space around it: take them away.", SecretQuotes},
		{key, "There is something in front of the key: give the PEM alone.", SecretPrefix},
	}
}

// keyForms takes a key that lacks the first and last line of PEM.
func keyForms(secret string) []secretChange {
	before, text, ok := strings.Cut(secret, ":")
	if !ok {
		before, text = "", secret
	} else {
		before += ":"
	}
	text = strings.Join(strings.Fields(text), "")
	if !strings.HasPrefix(text, "MI") || len(text) < 100 {
		return nil
	}
	var all []secretChange
	for _, name := range []string{"PUBLIC KEY", "CERTIFICATE", "RSA PUBLIC KEY"} {
		all = append(all, secretChange{
			before + "-----BEGIN " + name + "-----\n" + brokenAt(text, 64) + "-----END " + name + "-----\n",
			"The key lacks its first and last line (-----BEGIN " + name + "-----): give it in PEM, with them.", SecretPrefix,
		})
	}
	return all
}
