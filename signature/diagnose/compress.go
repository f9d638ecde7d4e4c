package diagnose

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"io"
	"unicode/utf8"
)

// maxInflated bounds what a compressed body may grow to.
const maxInflated = 4 << 20

// inflate undoes gzip and deflate, with and without the frame of zlib.
func inflate(b []byte) (body []byte, how string) {
	switch {
	case bytes.HasPrefix(b, []byte{0x1f, 0x8b}):
		if r, err := gzip.NewReader(bytes.NewReader(b)); err == nil {
			return readAll(r), "gzip"
		}
	case len(b) > 2 && b[0]&15 == 8 && (uint(b[0])<<8|uint(b[1]))%31 == 0:
		if r, err := zlib.NewReader(bytes.NewReader(b)); err == nil {
			return readAll(r), "deflate"
		}
	case len(b) > 2 && !utf8.Valid(b):
		return readAll(flate.NewReader(bytes.NewReader(b))), "deflate"
	}
	return nil, ""
}

// readAll is nil for what cannot be read to its end, or is too long.
func readAll(r io.Reader) []byte {
	body, err := io.ReadAll(io.LimitReader(r, maxInflated+1))
	if err != nil || len(body) > maxInflated {
		return nil
	}
	return body
}

func unbase64(b []byte) ([]byte, bool) {
	text := string(bytes.TrimSpace(b))
	if len(text) < 16 {
		return nil, false
	}
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if body, err := enc.DecodeString(text); err == nil {
			return body, true
		}
	}
	return nil, false
}
