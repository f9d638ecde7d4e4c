package outbound

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/paidonce/paidonce/internal/egress"
)

const (
	// MaxAfter bounds what a gateway can ask us to wait: longer is taken for a mistake.
	MaxAfter = time.Hour

	// busyAfter is how long to wait after a 429 that does not say.
	busyAfter = 10 * time.Second

	// drained is how much of a body that nobody needs is read, so that the
	// connection can be used again.
	drained = 64 << 10
)

// answer is what came back on a request, whatever its status.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// exchange sends a request and reads its answer, up to limit bytes. A refusal is an error with its status, beside the answer that
// says so; without an answer, or with one that cannot be read, the answer is nil.
func (c *Client) exchange(ctx context.Context, client *http.Client, req *http.Request, t target, limit int64) (*answer, *Error) {
	resp, err := client.Do(req)
	if err != nil {
		return nil, unanswered(ctx, t, err)
	}
	defer func() { _ = resp.Body.Close() }()
	a := &answer{status: resp.StatusCode, header: resp.Header}
	refused := c.refusal(t, resp)
	if refused != nil {
		limit = min(limit, drained)
	}
	body, bad := readBody(ctx, t, resp, limit)
	switch {
	case bad == nil:
		a.body = body
	case refused != nil && bad.Status == 0: // it broke off: who cares for the status gets that
		return nil, refused
	case refused == nil:
		return nil, bad
	}
	return a, refused
}

// refusal is what an answer other than 2xx means.
func (c *Client) refusal(t target, resp *http.Response) *Error {
	code := resp.StatusCode
	if code/100 == 2 {
		return nil
	}
	e := &Error{Kind: Refused, Status: code, gateway: t.gateway, text: fmt.Sprintf("it answered %d %s", code, http.StatusText(code))}
	switch {
	case code/100 == 3:
		e.text += ", and redirects are not followed"
	case code/100 == 5, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout,
		code == http.StatusConflict, code == http.StatusLocked, code == http.StatusTooEarly:
		e.Kind = Retry
		e.After = min(egress.RetryAfter(resp.Header.Get("Retry-After"), c.opts.Now()), MaxAfter)
		if code == http.StatusTooManyRequests && e.After == 0 {
			e.After = busyAfter
		}
	case code == http.StatusNotFound, code == http.StatusGone:
		e.Kind = Gone
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		e.Kind = Denied
	}
	return e
}

// readBody reads what an answer holds, unpacked, within bounds.
func readBody(ctx context.Context, t target, resp *http.Response, limit int64) ([]byte, *Error) {
	limited := &io.LimitedReader{R: resp.Body, N: limit + 1}
	in := io.Reader(limited)
	switch strings.ToLower(resp.Header.Get("Content-Encoding")) {
	case "", "identity":
	case "gzip", "x-gzip":
		unpacked, err := gzip.NewReader(limited)
		if err != nil {
			return nil, unread(ctx, t, resp, err)
		}
		in = io.LimitReader(unpacked, limit+1)
	default:
		return nil, &Error{Kind: Refused, Status: resp.StatusCode, gateway: t.gateway, text: "its answer is packed in a way we did not ask for"}
	}
	body, err := io.ReadAll(in)
	switch {
	case int64(len(body)) > limit || limited.N <= 0:
		return nil, &Error{
			Kind: Refused, Status: resp.StatusCode, gateway: t.gateway,
			text: fmt.Sprintf("its answer is larger than %d bytes", limit),
		}
	case err != nil:
		return nil, unread(ctx, t, resp, err)
	case ctx.Err() != nil: // it ended because we gave it up, as some servers do in good form: that is no answer
		return nil, unread(ctx, t, resp, ctx.Err())
	}
	return body, nil
}

// unread is an answer that broke off.
func unread(ctx context.Context, t target, resp *http.Response, err error) *Error {
	e := unanswered(ctx, t, err)
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		e.Kind, e.Status, e.text = Refused, resp.StatusCode, "its answer is not packed as it says"
	}
	return e
}

// unanswered says in words of our own why there is no answer: texts of net/http
// quote URLs, and bytes of what the other side sent.
func unanswered(ctx context.Context, t target, err error) *Error {
	e := &Error{Kind: Retry, gateway: t.gateway, text: "the connection broke before there was an answer"}
	var (
		name    *net.DNSError
		op      *net.OpError
		cert    *tls.CertificateVerificationError
		invalid x509.CertificateInvalidError
		host    x509.HostnameError
		unknown x509.UnknownAuthorityError
		timeout net.Error
	)
	switch {
	case errors.Is(err, egress.ErrNotPublic):
		e.Kind, e.text = Refused, "its host has an address that is not public; set api_allow_private if that is meant"
	case errors.Is(ctx.Err(), context.Canceled):
		e.cause, e.text = context.Canceled, "the call was given up"
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		e.cause, e.text = context.DeadlineExceeded, "no answer in time"
	case errors.As(err, &name):
		e.text = "its host cannot be resolved"
	case errors.As(err, &host):
		e.text = "its host's certificate is for another name"
	case errors.As(err, &unknown):
		e.text = "its host's certificate is by an authority that is not trusted"
	case errors.As(err, &cert), errors.As(err, &invalid):
		e.text = "its host's certificate is not valid"
	case errors.As(err, &op) && op.Op == "dial":
		e.text = "its host cannot be connected to"
	}
	return e
}
