package signature

import (
	"crypto/sha256"
	"net/http"
	"strings"
)

// CheckBasic reports whether the request carries the credentials userpass
// ("user:password") by HTTP Basic authentication (RFC 7617): nil, or an [*Error]
// of the scheme "basic". The user ends at the first colon, so the password may
// have more of them; nothing is split here, the two are compared whole, in
// constant time and without telling their length.
//
// It is the second thing to check of an Adyen delivery, whose signature leaves
// most of the body uncovered. [BadSecret]: userpass has no user or no colon.
func CheckBasic(header http.Header, userpass string) error {
	err := checkBasic(header, userpass)
	if err == nil {
		return nil
	}
	err.Scheme = "basic"
	return err
}

// CheckAuthorization reports whether the request carries an Authorization header
// of exactly this value: nil, or an [*Error] of the scheme "authorization". It is
// for gateways that were told to send a fixed text (checkout), and compares in
// constant time, without telling its length. [BadSecret]: want is no header.
func CheckAuthorization(header http.Header, want string) error {
	err := checkAuthorization(header, want)
	if err == nil {
		return nil
	}
	err.Scheme = "authorization"
	return err
}

func checkAuthorization(h http.Header, want string) *Error {
	if want == "" {
		return refuse(NoSecret, "no header is configured")
	}
	if strings.TrimSpace(want) != want || strings.ContainsAny(want, "\r\n\x00") {
		return refuse(BadSecret, "want the value of a header")
	}
	value, err := field{name: "Authorization"}.get(h)
	if err != nil {
		return err
	}
	got, expected := sha256.Sum256([]byte(value)), sha256.Sum256([]byte(want))
	if !equal(got[:], expected[:]) {
		return refuse(Mismatch, "")
	}
	return nil
}

func checkBasic(h http.Header, userpass string) *Error {
	if userpass == "" {
		return refuse(NoSecret, "no credentials are configured")
	}
	if strings.IndexByte(userpass, ':') < 1 {
		return refuse(BadSecret, "want user:password")
	}
	value, err := field{name: "Authorization"}.get(h)
	if err != nil {
		return err
	}
	kind, text, _ := strings.Cut(value, " ")
	if !strings.EqualFold(kind, "Basic") {
		return refuse(Missing, "the Authorization is of another kind than Basic")
	}
	sent, ok := decodeBase64(strings.TrimLeft(text, " "))
	if !ok {
		return refuse(Malformed, "the credentials are not base64")
	}
	got, want := sha256.Sum256(sent), sha256.Sum256([]byte(userpass))
	if !equal(got[:], want[:]) {
		return refuse(Mismatch, "")
	}
	return nil
}
