package canonical

import (
	"bytes"
	"strconv"
)

// number reads a number, and writes it in its canonical form: digits, "e", exponent. Nothing is computed but the exponent, and
// that digit by digit where it may not fit: its length is the sender's choice.
func (p *parser) number() error {
	start := len(p.text)
	if p.body[p.i] == '-' {
		p.text = append(p.text, '-')
		p.i++
	}
	whole, err := p.digits()
	if err != nil {
		return err
	}
	if len(whole) > 1 && whole[0] == '0' {
		return p.fail(MalformedNumber, p.i-len(whole))
	}
	var fraction, exponent []byte
	var negative bool // the exponent
	if p.i < len(p.body) && p.body[p.i] == '.' {
		p.i++
		if fraction, err = p.digits(); err != nil {
			return err
		}
	}
	if p.i < len(p.body) && p.body[p.i]|0x20 == 'e' {
		p.i++
		if p.i < len(p.body) && (p.body[p.i] == '+' || p.body[p.i] == '-') {
			negative = p.body[p.i] == '-'
			p.i++
		}
		if exponent, err = p.digits(); err != nil {
			return err
		}
	}

	// The digits become a whole number that ends in no zero, and shift is by how much that changes the exponent.
	fraction = bytes.TrimRight(fraction, "0")
	shift := -int64(len(fraction))
	if len(fraction) == 0 {
		zeros := len(whole)
		whole = bytes.TrimRight(whole, "0")
		shift = int64(zeros - len(whole))
	}
	if len(whole) == 0 && len(fraction) == 0 {
		p.text = append(p.text[:start], "0e0"...)
		return nil
	}
	if whole[0] == '0' {
		whole, fraction = nil, bytes.TrimLeft(fraction, "0")
	}
	p.text = append(p.text, whole...)
	p.text = append(p.text, fraction...)
	p.text = append(p.text, 'e')
	p.text = appendSum(p.text, negative, bytes.TrimLeft(exponent, "0"), shift)
	return nil
}

// digits reads at least one.
func (p *parser) digits() ([]byte, error) {
	from := p.i
	for p.i < len(p.body) && digit(p.body[p.i]) {
		p.i++
	}
	switch {
	case p.i > from:
		return p.body[from:p.i], nil
	case p.i == len(p.body):
		return nil, p.fail(Truncated, p.i)
	}
	return nil, p.fail(MalformedNumber, p.i)
}

// appendSum appends ±digits + shift in decimal. Digits have no leading zero; shift is no larger than maxBytes.
func appendSum(to []byte, negative bool, digits []byte, shift int64) []byte {
	if len(digits) <= 18 {
		var n int64
		for _, c := range digits {
			n = n*10 + int64(c-'0')
		}
		if negative {
			n = -n
		}
		return strconv.AppendInt(to, n+shift, 10)
	}
	// More than 18 digits outweigh any shift, so that the sign stays; only the magnitude changes.
	if negative {
		to = append(to, '-')
		shift = -shift
	}
	start := len(to)
	to = append(to, digits...)
	for i := len(to) - 1; shift != 0 && i >= start; i-- {
		sum := int64(to[i]-'0') + shift
		shift = sum / 10
		if sum %= 10; sum < 0 {
			sum += 10
			shift--
		}
		to[i] = '0' + byte(sum)
	}
	switch {
	case shift > 0: // 999… became 1000…
		to = append(to, 0)
		copy(to[start+1:], to[start:])
		to[start] = '0' + byte(shift)
	case to[start] == '0': // 1000… became 999…
		to = append(to[:start], bytes.TrimLeft(to[start:], "0")...)
	}
	return to
}
