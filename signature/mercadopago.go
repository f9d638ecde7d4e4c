package signature

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// mercadoPago is Mercado Pago's own way. Nothing of the body is signed, only
//
//	id:123456789;request-id:2066ca19-…;ts:1750000000;
//
// where id is the parameter data.id of the URL and request-id a header; a pair
// that the request does not have is left out. So nil means that Mercado Pago
// announced something about that id, and what it is must be fetched.
//
//   - The documentation wants the id in lower case, the library of today signs it
//     as it stands: both are tried, lower case first.
//   - ts is in milliseconds or in seconds; its length says which. No tolerance is
//     documented, and none is applied unless the request asks for one.
//   - Names in x-signature may be in upper case and have spaces around them, as in
//     Mercado Pago's library. Versions other than v1 are passed over.
//   - A semicolon in a value would let one pair pose as two: it is refused.
type mercadoPago struct {
	keys *keyring
}

var (
	mercadoSignature = field{name: "X-Signature"}
	mercadoRequestID = field{name: "X-Request-Id"}
	mercadoSyntax    = syntax{sep: ',', cut: '=', trim: true}
)

// mercadoID is the parameter of the URL that is signed.
const mercadoID = "data.id"

func (f *mercadoPago) verify(req Request, secrets []string, now time.Time, tolerance time.Duration) *Error {
	list, err := mercadoSignature.get(req.Header)
	if err != nil {
		return err
	}
	if err := mercadoSyntax.check(list); err != nil {
		return err
	}
	ts, sigs, err := mercadoElements(list)
	if err != nil {
		return err
	}
	signed, err := moment(ts, roleMillis)
	if err != nil {
		return err
	}
	id, requestID, err := mercadoParts(req)
	if err != nil {
		return err
	}
	err = f.keys.matchDigest(secrets, lowerHex, sigs, func(_ *key, m *mac) {
		mercadoMessage(m, strings.ToLower(id), requestID, ts)
	})
	if err != nil && err.Reason == Mismatch && hasUpper(id) {
		err = f.keys.matchDigest(secrets, lowerHex, sigs, func(_ *key, m *mac) { mercadoMessage(m, id, requestID, ts) })
	}
	if err != nil || tolerance == 0 {
		return err
	}
	return checkSkew(signed, now, tolerance)
}

// mercadoElements reads x-signature: its one time, and its signatures of v1.
func mercadoElements(list string) (ts string, sigs []string, err *Error) {
	times := 0
	for list != "" {
		label, value, rest, ok := mercadoSyntax.next(list)
		list = rest
		if !ok {
			continue
		}
		switch value = strings.Trim(value, " \t"); strings.ToLower(strings.Trim(label, " \t")) {
		case "ts":
			ts = value
			times++
		case "v1":
			sigs = append(sigs, value)
		}
	}
	switch {
	case times > 1:
		return "", nil, refuse(Ambiguous, "more than one ts")
	case times == 0:
		return "", nil, refuse(Missing, "no ts")
	}
	return ts, sigs, nil
}

// mercadoParts reads what else is signed; both may be "".
func mercadoParts(req Request) (id, requestID string, err *Error) {
	if id, err = queryValue(req.Query, mercadoID); err != nil {
		return "", "", err
	}
	if requestID, err = mercadoRequestID.optional(req.Header); err != nil {
		return "", "", err
	}
	for _, v := range [...]string{id, requestID} {
		if !visible(v) || strings.IndexByte(v, ';') >= 0 {
			return "", "", refuse(Malformed, "an id has a space, a semicolon or an unprintable character")
		}
	}
	return id, requestID, nil
}

func mercadoMessage(m *mac, id, requestID, ts string) {
	for _, pair := range [...][2]string{{"id:", id}, {"request-id:", requestID}, {"ts:", ts}} {
		if pair[1] != "" {
			m.add(pair[0])
			m.add(pair[1])
			m.add(";")
		}
	}
}

// sign takes data.id from the query, or makes a query of the body's data.id.
func (f *mercadoPago) sign(b []byte, secret string, now time.Time, opt SignOptions) (Signed, *Error) {
	k, err := f.keys.signer(secret)
	if err != nil {
		return Signed{}, err
	}
	query := opt.Query
	if query == "" {
		query = mercadoQuery(b)
	}
	ts := strconv.FormatInt(now.UnixMilli(), 10)
	requestID := opt.ID
	if requestID == "" {
		requestID = defaultID(b)
	}
	h := http.Header{}
	h.Set(mercadoRequestID.name, requestID)
	id, requestID, err := mercadoParts(Request{Query: query, Header: h})
	if err != nil {
		return Signed{}, err
	}
	sig := lowerHex.encode(k.digestOf(func(_ *key, m *mac) { mercadoMessage(m, strings.ToLower(id), requestID, ts) }))
	h.Set(mercadoSignature.name, "ts="+ts+",v1="+sig)
	return Signed{Header: h, Body: b, Query: query}, nil
}

// mercadoQuery is the query that Mercado Pago adds to the URL for a body like
// {"type":"payment","data":{"id":"123"}}; "" if there is no id in it.
func mercadoQuery(b []byte) string {
	var n struct {
		Type string `json:"type"`
		Data struct {
			ID json.RawMessage `json:"id"`
		} `json:"data"`
	}
	if json.Unmarshal(b, &n) != nil {
		return ""
	}
	var id string
	if json.Unmarshal(n.Data.ID, &id) != nil {
		id = string(n.Data.ID) // a number
	}
	if id == "" {
		return ""
	}
	query := mercadoID + "=" + url.QueryEscape(id)
	if n.Type != "" {
		query += "&type=" + url.QueryEscape(n.Type)
	}
	return query
}

func (f *mercadoPago) checkSecret(secret string) *Error {
	return f.keys.wellFormed(secret, wellNot("the secret signature shown under Webhooks, not an access token", "APP_USR-"))
}
