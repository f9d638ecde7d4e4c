package canonical

import (
	"bytes"
	"unicode/utf8"
)

// str reads a string, and writes it in its canonical form.
func (p *parser) str() error {
	p.text = append(p.text, '"')
	p.i++
	for {
		plain := p.i
		for p.i < len(p.body) && plainASCII[p.body[p.i]] {
			p.i++
		}
		p.text = append(p.text, p.body[plain:p.i]...)
		if p.i == len(p.body) {
			return p.fail(Truncated, p.i)
		}
		switch c := p.body[p.i]; {
		case c == '"':
			p.i++
			p.text = append(p.text, '"')
			return nil
		case c == '\\':
			if err := p.escape(); err != nil {
				return err
			}
		case c < ' ':
			return p.fail(ControlCharacter, p.i)
		default:
			r, size := utf8.DecodeRune(p.body[p.i:])
			if r == utf8.RuneError && size == 1 {
				return p.fail(InvalidUTF8, p.i)
			}
			p.text = append(p.text, p.body[p.i:p.i+size]...)
			p.i += size
		}
	}
}

// plainASCII are the bytes that are a whole character, and stand for it.
var plainASCII = func() (plain [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		plain[c] = c != '"' && c != '\\'
	}
	return plain
}()

var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escape reads an escape, or two that make one character, and writes that character.
func (p *parser) escape() error {
	at := p.i
	if at+1 == len(p.body) {
		return p.fail(Truncated, at+1)
	}
	c := p.body[at+1]
	if c != 'u' {
		if escapes[c] == 0 {
			return p.fail(MalformedEscape, at)
		}
		p.text = appendASCII(p.text, escapes[c])
		p.i += 2
		return nil
	}
	r, err := p.unit()
	if err != nil {
		return err
	}
	switch {
	case r < utf8.RuneSelf:
		p.text = appendASCII(p.text, byte(r))
		return nil
	case r >= 0xdc00 && r <= 0xdfff:
		return p.fail(LoneSurrogate, at)
	case r >= 0xd800 && r <= 0xdbff:
		if rest := p.body[p.i:]; len(rest) == 0 || len(rest) == 1 && rest[0] == '\\' {
			return p.fail(Truncated, len(p.body))
		} else if rest[0] != '\\' || rest[1] != 'u' {
			return p.fail(LoneSurrogate, at)
		}
		low, err := p.unit()
		if err != nil {
			return err
		}
		if low < 0xdc00 || low > 0xdfff {
			return p.fail(LoneSurrogate, at)
		}
		r = (r-0xd800)<<10 + (low - 0xdc00) + 0x10000
	}
	p.text = utf8.AppendRune(p.text, r)
	return nil
}

// unit reads \uXXXX, of which the first two bytes are known.
func (p *parser) unit() (rune, error) {
	var r rune
	for j := p.i + 2; j < p.i+6; j++ {
		if j >= len(p.body) {
			return 0, p.fail(Truncated, len(p.body))
		}
		switch c := p.body[j]; {
		case digit(c):
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, p.fail(MalformedEscape, p.i)
		}
	}
	p.i += 6
	return r, nil
}

// appendASCII writes a character of ASCII as it stands in a canonical string.
func appendASCII(to []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch {
	case c < ' ':
		return append(to, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
	case c == '"' || c == '\\':
		return append(to, '\\', c)
	}
	return append(to, c)
}

// appendString writes a string that is not from a JSON text as if it were.
func appendString(to []byte, s string) []byte {
	to = append(to, '"')
	for i := range len(s) {
		to = appendASCII(to, s[i])
	}
	return append(to, '"')
}

// appendUnescaped undoes a canonical string, without its quotes.
func appendUnescaped(to, s []byte) []byte {
	for {
		i := bytes.IndexByte(s, '\\')
		if i < 0 {
			return append(to, s...)
		}
		to = append(to, s[:i]...)
		if s[i+1] == 'u' {
			to = append(to, unhex(s[i+4])<<4|unhex(s[i+5]))
			s = s[i+6:]
		} else {
			to = append(to, s[i+1])
			s = s[i+2:]
		}
	}
}

func unhex(c byte) byte {
	if digit(c) {
		return c - '0'
	}
	return c - 'a' + 10
}
