package idempotency

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/paidonce/paidonce/idempotency/canonical"
)

// readBody reads the body to its end, and takes its fingerprint.
func (c *call) readBody() *problem {
	limit := c.q.policy.MaxBody
	tooLarge := func() *problem {
		p := newProblem(http.StatusRequestEntityTooLarge, CodeBodyTooLarge, "the body is longer than this operation takes with a key")
		p.close = c.r.ProtoMajor == 1
		return p
	}
	if limit > 0 && c.r.ContentLength > limit {
		return tooLarge() // before a byte of it is asked for
	}
	if c.r.Body != nil && c.r.Body != http.NoBody {
		src := io.Reader(c.r.Body)
		if limit > 0 {
			src = io.LimitReader(src, limit+1)
		}
		body, err := readAll(src, c.r.ContentLength)
		var outer *http.MaxBytesError
		switch {
		case errors.As(err, &outer), limit > 0 && int64(len(body)) > limit:
			return tooLarge()
		case errors.Is(err, os.ErrDeadlineExceeded):
			p := newProblem(http.StatusRequestTimeout, CodeBodyTooSlow, "the body did not arrive in time; nothing was recorded: send it again with the same key")
			p.close = c.r.ProtoMajor == 1
			return p
		case err != nil:
			p := newProblem(http.StatusBadRequest, CodeBodyInvalid, "the body did not arrive whole; nothing was recorded")
			p.close = c.r.ProtoMajor == 1
			return p
		}
		c.body = body
	}
	return c.fingerprint()
}

// readAll is io.ReadAll with a first guess of the length, which is not trusted.
func readAll(r io.Reader, length int64) ([]byte, error) {
	var b bytes.Buffer
	if length > 0 {
		b.Grow(int(min(length, 1<<20)) + bytes.MinRead)
	}
	_, err := b.ReadFrom(r)
	return b.Bytes(), err
}

func (c *call) fingerprint() *problem {
	contentType := c.r.Header.Get("Content-Type")
	if enc := strings.ToLower(strings.TrimSpace(c.r.Header.Get("Content-Encoding"))); enc != "" && enc != "identity" && len(c.body) > 0 {
		// Whoever decodes bodies does so behind us: they are compared as they were sent.
		h := sha256.New()
		for _, part := range []string{enc, contentType, string(c.body)} {
			_ = binary.Write(h, binary.BigEndian, uint64(len(part)))
			h.Write([]byte(part))
		}
		c.q.hash = hex.EncodeToString(h.Sum(nil))
		return nil
	}
	f, err := canonical.Body(contentType, c.body)
	var syntax *canonical.SyntaxError
	if errors.As(err, &syntax) {
		p := newProblem(http.StatusBadRequest, CodeBodyInvalid, syntax.Error()+"; nothing was recorded, and the key is still free")
		p.Errors = []fieldError{{Pointer: syntax.Pointer, Code: string(syntax.Reason), Detail: syntax.Error()}}
		return p
	}
	if err != nil {
		return newProblem(http.StatusBadRequest, CodeBodyInvalid, "the body could not be read")
	}
	c.q.hash = f.String()
	c.print = f
	return nil
}

// target is the request's path and query as they were sent. One that does not fit the column is known by its digest: cut off, two
// of them could become one.
func target(r *http.Request) string {
	t := r.RequestURI
	if !strings.HasPrefix(t, "/") {
		t = r.URL.RequestURI() // made by a client in this process, or in the absolute form
	}
	if len(t) > 500 || !plain(t) {
		sum := sha256.Sum256([]byte(t))
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	return t
}

// secretSize is the length of the key of a row's digests, in bytes.
const secretSize = 16

// digest takes digests of the body's parts, for the caller whose next body differs and who wants to know where. They are HMACs
// under a random key that lies beside them in the row: that makes equal values of two rows different, so that rows
// cannot be compared or looked up in a prepared list. Against somebody who reads the row and guesses small values
// nothing helps but [Options.Cipher], since the row must be enough to compare.
func (c *call) digest() ([]byte, error) {
	b := make([]byte, secretSize, 1024)
	_, _ = rand.Read(b) // never fails
	digests := c.print.Digests(b[:secretSize:secretSize])
	for _, p := range slices.Sorted(maps.Keys(digests)) {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(append(b, p...), digests[p]...)
	}
	if c.m.opts.Cipher != nil {
		return c.m.opts.Cipher.Seal(b, c.q.scope.identity(c.q.key))
	}
	return b, nil
}

// differences says where this body differs from the one whose digests were stored: pointers into this one, since the
// other may tell nothing of itself. What only the other one has is told as a difference of what would contain it.
func (c *call) differences(stored []byte) []string {
	if c.m.opts.Cipher != nil {
		var err error
		if stored, err = c.m.opts.Cipher.Open(stored, c.q.scope.identity(c.q.key)); err != nil {
			return nil
		}
	}
	if len(stored) < secretSize {
		return nil
	}
	was := map[string][]byte{}
	for b := stored[secretSize:]; len(b) > 0; {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > 1<<16 || len(b)-size < int(n)+canonical.DigestSize { //nolint:gosec // bounded
			return nil
		}
		at := size + int(n) //nolint:gosec // bounded
		was[string(b[size:at])] = b[at : at+canonical.DigestSize]
		b = b[at+canonical.DigestSize:]
	}
	is := c.print.Digests(stored[:secretSize:secretSize])
	var at []string
	for _, p := range canonical.Differences(was, is) {
		for {
			if _, known := is[p]; known || p == "" {
				break
			}
			p = p[:strings.LastIndexByte(p, '/')]
		}
		at = append(at, p)
	}
	slices.Sort(at)
	return slices.Compact(at)
}
