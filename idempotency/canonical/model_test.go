package canonical_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// value is a JSON value as the tests know it: read by encoding/json, with numbers by math/big. It shares nothing with the package.
type value struct {
	kind     string // null, true, false, number, string, array, object
	negative bool   // a number is ± digits × 10^exponent
	digits   *big.Int
	exponent *big.Int
	text     string
	values   []value
	names    []string // of an object's values
}

// read reads a text that is known to be JSON.
func read(t require.TestingT, text []byte) value {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return readNext(t, d)
}

func readNext(t require.TestingT, d *json.Decoder) value {
	token, err := d.Token()
	require.NoError(t, err)
	switch token := token.(type) {
	case nil:
		return value{kind: "null"}
	case bool:
		return value{kind: fmt.Sprint(token)}
	case string:
		return value{kind: "string", text: token}
	case json.Number:
		return readNumber(token.String())
	case json.Delim:
		v := value{kind: "array"}
		if token == '{' {
			v.kind = "object"
		}
		for d.More() {
			if v.kind == "object" {
				name, err := d.Token()
				require.NoError(t, err)
				v.names = append(v.names, name.(string))
			}
			v.values = append(v.values, readNext(t, d))
		}
		_, err := d.Token()
		require.NoError(t, err)
		return v
	}
	panic(token)
}

func readNumber(s string) value {
	v := value{kind: "number", digits: new(big.Int), exponent: new(big.Int)}
	s, v.negative = strings.CutPrefix(strings.ToLower(s), "-")
	mantissa, exponent, _ := strings.Cut(s, "e")
	if exponent != "" {
		v.exponent.SetString(exponent, 10)
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	v.digits.SetString(whole+fraction, 10)
	v.exponent.Sub(v.exponent, big.NewInt(int64(len(fraction))))
	return v
}

// equal compares as the package comment says, slowly.
func equal(a, b value) bool {
	if a.kind != b.kind || a.text != b.text || len(a.values) != len(b.values) {
		return false
	}
	switch a.kind {
	case "number":
		if a.digits.Sign() == 0 || b.digits.Sign() == 0 {
			return a.digits.Sign() == b.digits.Sign()
		}
		// Divided by ten until there is a rest, both are what they are in one way only.
		a, b = reduced(a), reduced(b)
		return a.negative == b.negative && a.digits.Cmp(b.digits) == 0 && a.exponent.Cmp(b.exponent) == 0
	case "object":
		for i, name := range a.names {
			j := slices.Index(b.names, name)
			if j < 0 || !equal(a.values[i], b.values[j]) {
				return false
			}
		}
		return true
	}
	return slices.EqualFunc(a.values, b.values, equal)
}

func reduced(v value) value {
	text := v.digits.String()
	short := strings.TrimRight(text, "0")
	v.digits, _ = new(big.Int).SetString(short, 10)
	v.exponent = new(big.Int).Add(v.exponent, big.NewInt(int64(len(text)-len(short))))
	return v
}

// spell writes a value in one of the ways that it can be written.
func spell(r *rand.Rand, v value) []byte {
	var b bytes.Buffer
	spellTo(&b, r, v)
	space(&b, r)
	return b.Bytes()
}

func space(b *bytes.Buffer, r *rand.Rand) {
	for r.IntN(3) == 0 {
		b.WriteByte(" \t\r\n"[r.IntN(4)])
	}
}

func spellTo(b *bytes.Buffer, r *rand.Rand, v value) {
	space(b, r)
	switch v.kind {
	case "string":
		spellString(b, r, v.text)
	case "number":
		spellNumber(b, r, v)
	case "array", "object":
		order := make([]int, len(v.values))
		for i := range order {
			order[i] = i
		}
		if v.kind == "object" {
			r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		brackets := map[string]string{"array": "[]", "object": "{}"}[v.kind]
		b.WriteByte(brackets[0])
		for n, i := range order {
			if n > 0 {
				b.WriteByte(',')
			}
			if v.kind == "object" {
				space(b, r)
				spellString(b, r, v.names[i])
				space(b, r)
				b.WriteByte(':')
			}
			spellTo(b, r, v.values[i])
			space(b, r)
		}
		space(b, r)
		b.WriteByte(brackets[1])
	default:
		b.WriteString(v.kind)
	}
}

func spellString(b *bytes.Buffer, r *rand.Rand, s string) {
	short := map[rune]byte{'"': '"', '\\': '\\', '/': '/', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}
	b.WriteByte('"')
	for _, c := range s {
		escape, has := short[c]
		format := []string{`\u%04x`, `\u%04X`}[r.IntN(2)]
		switch way := r.IntN(3); {
		case has && way == 0:
			b.WriteByte('\\')
			b.WriteByte(escape)
		case c > 0xffff && way == 1:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(b, format+format, high, low)
		case c <= 0xffff && way == 1, c < ' ' || c == '"' || c == '\\':
			fmt.Fprintf(b, format, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
}

func spellNumber(b *bytes.Buffer, r *rand.Rand, v value) {
	exponent := new(big.Int).Set(v.exponent)
	digits := v.digits.String()
	if digits == "0" {
		exponent.SetInt64(r.Int64() - r.Int64())
	}
	if v.negative != (digits == "0" && r.IntN(2) == 0) {
		b.WriteByte('-')
	}
	more := r.IntN(4)
	digits += strings.Repeat("0", more)
	exponent.Sub(exponent, big.NewInt(int64(more)))
	point := r.IntN(len(digits) + 4) // so many digits behind it
	exponent.Add(exponent, big.NewInt(int64(point)))
	digits = strings.Repeat("0", max(0, point+1-len(digits))) + digits
	whole := strings.TrimLeft(digits[:len(digits)-point], "0")
	if whole == "" {
		whole = "0"
	}
	b.WriteString(whole)
	if point > 0 {
		b.WriteString("." + digits[len(digits)-point:])
	}
	if exponent.Sign() != 0 || r.IntN(2) == 0 {
		b.WriteByte("eE"[r.IntN(2)])
		if exponent.Sign() < 0 {
			b.WriteByte('-')
		} else if r.IntN(2) == 0 {
			b.WriteByte('+')
		}
		b.WriteString(strings.Repeat("0", r.IntN(3)) + new(big.Int).Abs(exponent).String())
	}
}

// change returns a value that differs in one place, and the JSON pointer of where.
func change(r *rand.Rand, v value) (value, string) {
	if n := len(v.values); n > 0 && r.IntN(6) > 0 {
		i := r.IntN(n)
		inner, where := change(r, v.values[i])
		v.values = slices.Clone(v.values)
		v.values[i] = inner
		step := fmt.Sprint(i)
		if v.kind == "object" {
			step = strings.NewReplacer("~", "~0", "/", "~1").Replace(v.names[i])
		}
		return v, "/" + step + where
	}
	other := v
	switch v.kind {
	case "null":
		other.kind = "false"
	case "true":
		other = value{kind: "string", text: "true"}
	case "false":
		other = value{kind: "number", digits: new(big.Int), exponent: new(big.Int)}
	case "number":
		switch way := r.IntN(4); {
		case way == 0:
			other = value{kind: "string", text: fmt.Sprintf("%de%d", v.digits, v.exponent)}
		case way == 1 && v.digits.Sign() != 0:
			other.negative = !v.negative
		case way == 2 && v.digits.Sign() != 0:
			other.exponent = new(big.Int).Add(v.exponent, big.NewInt(1))
		default:
			other.digits = new(big.Int).Add(v.digits, big.NewInt(1))
		}
	case "string":
		switch cut, size := utf8.DecodeLastRuneInString(v.text); {
		case v.text != "" && r.IntN(3) == 0:
			other.text = v.text[:len(v.text)-size]
		case v.text != "" && r.IntN(2) == 0:
			other.text = v.text[:len(v.text)-size] + string(cut+1+rune(r.IntN(2))*0x100)
			if !utf8.ValidString(other.text) || strings.HasSuffix(other.text, "\ufffd") {
				other.text = v.text + "x"
			}
		default:
			other.text += string(rune(r.IntN(0x300)))
		}
	case "array":
		switch n := len(v.values); {
		case n == 0:
			other.kind = "object"
		case n > 1 && !equal(v.values[0], v.values[n-1]) && r.IntN(2) == 0:
			other.values = slices.Clone(v.values)
			other.values[0], other.values[n-1] = v.values[n-1], v.values[0]
		case r.IntN(2) == 0:
			other.values = v.values[:n-1]
		default:
			other.values = append(slices.Clone(v.values), v.values[0])
		}
	case "object":
		name := "n"
		for slices.Contains(v.names, name) {
			name += "n"
		}
		other.names, other.values = slices.Clone(v.names), slices.Clone(v.values)
		if n := len(v.values); n > 0 && r.IntN(2) == 0 {
			other.names[r.IntN(n)] = name
		} else {
			other.names, other.values = append(other.names, name), append(other.values, value{kind: "null"})
		}
	}
	return other, ""
}

// at looks up a pointer.
func at(v value, pointer string) (value, bool) {
	if pointer == "" {
		return v, true
	}
	for _, step := range strings.Split(pointer[1:], "/") {
		i := -1
		if v.kind == "object" {
			i = slices.Index(v.names, strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
		} else if n := 0; v.kind == "array" {
			if _, err := fmt.Sscan(step, &n); err == nil && n < len(v.values) {
				i = n
			}
		}
		if i < 0 {
			return value{}, false
		}
		v = v.values[i]
	}
	return v, true
}
