package diagnose

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// maxNumbers bounds how many numbers of a body are tried one by one.
const maxNumbers = 64

// uniform are ways to write all numbers of a document. Words (true, null) pass.
var uniform = []func(raw string) string{
	same,
	decimals(func(whole, fraction string) string { // money: 72.0 as 72.00
		return whole + "." + fraction + strings.Repeat("0", max(0, 2-len(fraction)))
	}),
	decimals(func(whole, fraction string) string { // 72.0 as 72
		if strings.Trim(fraction, "0") == "" {
			return whole
		}
		return whole + "." + fraction
	}),
	decimals(func(whole, fraction string) string { // 72.00 as 72.0, 72.50 as 72.5
		fraction = strings.TrimRight(fraction, "0")
		return whole + "." + fraction + strings.Repeat("0", max(0, 1-len(fraction)))
	}),
	decimals(func(whole, fraction string) string { // 72.50 as 72.5, 72.00 as 72
		return strings.TrimSuffix(whole+"."+strings.TrimRight(fraction, "0"), ".")
	}),
	expanded,
	integers(".0"),
	integers(".00"),
	func(raw string) string {
		if isNumber(raw) {
			return `"` + raw + `"`
		}
		return raw
	},
}

// decimals rewrites the numbers that have a decimal point.
func decimals(f func(whole, fraction string) string) func(string) string {
	return func(raw string) string {
		whole, fraction, point := strings.Cut(raw, ".")
		if !point || !isNumber(raw) || strings.ContainsAny(raw, "eE") {
			return raw
		}
		return f(whole, fraction)
	}
}

// integers adds decimals to the numbers that have none.
func integers(end string) func(string) string {
	return func(raw string) string {
		if !isNumber(raw) || strings.ContainsAny(raw, ".eE") {
			return raw
		}
		return raw + end
	}
}

func isNumber(raw string) bool {
	return raw != "" && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9')
}

// expanded writes a number with an exponent in full.
func expanded(raw string) string {
	if !isNumber(raw) || !strings.ContainsAny(raw, "eE") || len(raw) > 40 {
		return raw
	}
	f, ok := float(raw)
	if !ok || math.Abs(f) >= 1e21 || math.Abs(f) < 1e-12 {
		return raw
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// float reads a number as the programs do that are imitated here: nothing is counted
// with it.
func float(raw string) (float64, bool) {
	f, err := strconv.ParseFloat(raw, 64) //nolint:forbidigo // it is what spoils the numbers that are looked for
	return f, err == nil
}

// numberForms are other ways to write a number.
func numberForms(raw string) []string {
	if !isNumber(raw) || len(raw) > 40 {
		return nil
	}
	if strings.ContainsAny(raw, "eE") {
		plain := expanded(raw)
		return []string{plain, plain + ".0", plain + ".00", strings.ToUpper(raw), strings.ToLower(raw), strings.Replace(raw, "+", "", 1)}
	}
	whole, fraction, point := strings.Cut(raw, ".")
	forms := []string{whole + ".00", whole + ".0"}
	if point {
		short := strings.TrimRight(fraction, "0")
		forms = append(forms, raw+"0", raw+"00", whole+"."+short+strings.Repeat("0", max(0, 2-len(short))), strings.TrimSuffix(whole+"."+short, "."))
		if f, ok := float(raw); ok {
			if len(fraction) > 6 {
				forms = append(forms, strconv.FormatFloat(f, 'f', 2, 64), strconv.FormatFloat(f, 'f', 1, 64), strconv.FormatFloat(f, 'g', 15, 64))
			}
			forms = append(forms, strconv.FormatFloat(f, 'f', 17, 64), strconv.FormatFloat(f, 'g', 17, 64))
		}
	} else {
		forms = append(forms, whole+".000", whole+".0000")
	}
	forms = append(forms, exponents(raw)...)
	return append(forms, `"`+raw+`"`)
}

// exponents are the ways to write a number with an exponent.
func exponents(raw string) []string {
	digits := strings.TrimLeft(strings.Replace(strings.TrimPrefix(raw, "-"), ".", "", 1), "0")
	digits = strings.TrimRight(digits, "0")
	f, ok := float(raw)
	if !ok || f == 0 || len(digits) > 17 {
		return nil
	}
	sci := strconv.FormatFloat(f, 'e', -1, 64) // 1.299e+05
	mantissa, exp, _ := strings.Cut(sci, "e")
	n, _ := strconv.Atoi(exp)
	end := strconv.Itoa(n)
	var all []string
	for _, m := range []string{mantissa, mantissa + ".0"} {
		if strings.Count(m, ".") > 1 {
			continue
		}
		for _, e := range []string{"e", "E", "e+", "E+"} {
			if n < 0 {
				e = e[:1]
			}
			all = append(all, m+e+end)
		}
	}
	return append(all, sci, strings.ToUpper(sci))
}

// bare is the number in a string that holds one, as it may have been.
func bare(raw string) (string, bool) {
	if len(raw) < 3 || raw[0] != '"' {
		return "", false
	}
	text := raw[1 : len(raw)-1]
	return text, isNumber(text) && json.Valid([]byte(text))
}

// oneNumber tries other forms of one number at a time, all else as it stands.
func (r *rewriter) oneNumber() bool {
	for _, at := range numbersOf(r.was) {
		for _, form := range numberForms(string(r.was[at[0]:at[1]])) {
			if !r.once(splice(r.was, at, form), "") {
				return false
			}
		}
	}
	count, ok := 0, true
	r.tree.each(func(m *node) {
		text, is := bare(m.raw)
		if !ok || !is || m.kind != '"' || count == maxNumbers {
			return
		}
		count++
		ok = r.once(splice(r.was, [2]int{m.from, m.to}, text), "")
	})
	if !ok {
		return false
	}
	for _, t := range uniform[1:] {
		if !r.once(numbersInPlace(r.was, t), "") {
			return false
		}
	}
	return true
}

func splice(b []byte, at [2]int, with string) []byte {
	return append(append(bytes.Clone(b[:at[0]]), with...), b[at[1]:]...)
}

// numbersInPlace rewrites the numbers of a document and leaves all else.
func numbersInPlace(b []byte, number func(string) string) []byte {
	var out []byte
	from := 0
	for _, at := range allNumbers(b, maxNodes) {
		out = append(append(out, b[from:at[0]]...), number(string(b[at[0]:at[1]]))...)
		from = at[1]
	}
	return append(out, b[from:]...)
}

// numbersOf returns where the first numbers of a JSON document stand.
func numbersOf(b []byte) [][2]int { return allNumbers(b, maxNumbers) }

func allNumbers(b []byte, most int) [][2]int {
	var all [][2]int
	for i := 0; i < len(b) && len(all) < most; {
		switch c := b[i]; {
		case c == '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			i++
		case c == '-' || c >= '0' && c <= '9':
			from := i
			for i < len(b) && strings.IndexByte("+-.eE0123456789", b[i]) >= 0 {
				i++
			}
			all = append(all, [2]int{from, i})
		default:
			i++
		}
	}
	return all
}

// numbers tries one form for all numbers, in every usual way to write the rest.
func (r *rewriter) numbers(n *node) bool {
	for _, o := range r.origins() {
		for _, t := range uniform {
			if !r.try(n.write(o.style, o.text, t), o.hint) {
				return false
			}
		}
	}
	return true
}

// kept marks the text of a number that uniform forms must leave.
const kept = "\x00"

// keeping is a uniform form for all numbers but those that are marked.
func keeping(t func(string) string) func(string) string {
	return func(raw string) string {
		if text, ok := strings.CutPrefix(raw, kept); ok {
			return text
		}
		return t(raw)
	}
}

// restNumbers tries one number, or those of some keys, in a form of its own while
// the others have a common one; and integers that lost their last digits.
func (r *rewriter) restNumbers() bool {
	var numbers []*node
	byKey := map[string][]*node{}
	var keys []string
	r.tree.each(func(m *node) {
		for i, kid := range m.kids {
			if kid.kind != 0 || !isNumber(kid.raw) {
				continue
			}
			if numbers = append(numbers, kid); m.kind != '{' {
				continue
			}
			if byKey[m.keys[i]] == nil {
				keys = append(keys, m.keys[i])
			}
			byKey[m.keys[i]] = append(byKey[m.keys[i]], kid)
		}
	})
	numbers = numbers[:min(len(numbers), maxNumbers)]
	keys = keys[:min(len(keys), 10)]
	return r.oneApart(numbers) && r.keysApart(keys, byKey) && r.digitsLost(numbers)
}

// oneApart tries one number in a form of its own, in every usual way to write the
// rest.
func (r *rewriter) oneApart(numbers []*node) bool {
	return r.eitherEmpty(func() bool {
		for i, o := range r.origins() {
			for _, m := range numbers {
				forms := numberForms(m.raw)
				if i > 4 {
					forms = forms[:min(len(forms), 4)]
				}
				for _, form := range forms {
					if !r.with(o, uniform[1], []*node{m}, func(string) string { return form }) {
						return false
					}
				}
			}
		}
		return true
	})
}

// keysApart tries integers under some keys with decimals: prices that lost theirs.
func (r *rewriter) keysApart(keys []string, byKey map[string][]*node) bool {
	return r.eitherEmpty(func() bool {
		for _, o := range r.origins()[:4] {
			for set := 1; set < 1<<len(keys); set++ {
				var nodes []*node
				for i, key := range keys {
					if set>>i&1 == 1 {
						nodes = append(nodes, byKey[key]...)
					}
				}
				if !r.with(o, uniform[1], nodes, integers(".00")) {
					return false
				}
			}
		}
		return true
	})
}

// digitsLost tries the integers that a large one may have been before a float.
func (r *rewriter) digitsLost(numbers []*node) bool {
	for _, o := range r.origins()[:4] {
		for _, m := range numbers {
			for _, form := range unrounded(m.raw) {
				if !r.with(o, uniform[1], []*node{m}, func(string) string { return form }) {
					return false
				}
			}
		}
	}
	return true
}

// with writes the document with some numbers in a form of their own.
func (r *rewriter) with(o origin, others func(string) string, nodes []*node, form func(string) string) bool {
	was := make([]string, len(nodes))
	for i, m := range nodes {
		was[i] = m.raw
		m.raw = kept + form(others(m.raw))
	}
	body := r.tree.write(o.style, o.text, keeping(others))
	for i, m := range nodes {
		m.raw = was[i]
	}
	return r.once(body, o.hint)
}

// rounded reports whether a number is an integer beyond what a float holds exactly,
// and looks as if one had held it.
func rounded(raw string) bool {
	whole := wholeOf(raw)
	if whole == nil || whole.CmpAbs(big.NewInt(1<<53)) <= 0 {
		return false
	}
	text := whole.String()
	f, _ := new(big.Float).SetInt(whole).Float64()
	return strings.ContainsAny(raw, "eE") || strings.HasSuffix(text, "00") && shortest(f) == strings.TrimPrefix(text, "-")
}

// wholeOf reads an integer of at most 20 digits in any form; nil for others.
func wholeOf(raw string) *big.Int {
	if f, ok := float(raw); len(raw) > 26 || !isNumber(raw) || !ok || math.Abs(f) > 1e21 || f != 0 && math.Abs(f) < 1 {
		return nil
	}
	q, ok := new(big.Rat).SetString(raw)
	if !ok || !q.IsInt() || q.Num().BitLen() > 66 {
		return nil
	}
	return q.Num()
}

func shortest(f float64) string {
	return strings.TrimPrefix(strconv.FormatFloat(f, 'f', -1, 64), "-")
}

// unrounded are the integers that a float shows as this number.
func unrounded(raw string) []string {
	whole := wholeOf(raw)
	if whole == nil || whole.CmpAbs(big.NewInt(1<<53)) <= 0 || !rounded(raw) && !strings.HasSuffix(raw, "0") && len(raw) < 17 {
		return nil
	}
	f, _ := new(big.Float).SetInt(whole).Float64()
	ulp := math.Nextafter(math.Abs(f), math.Inf(1)) - math.Abs(f)
	center, _ := new(big.Float).SetFloat64(f).Int(nil)
	half := int64(ulp / 2)
	if half > 1024 {
		return nil
	}
	var all []string
	for d := int64(0); d <= half; d++ {
		all = append(all, new(big.Int).Add(center, big.NewInt(d)).String())
		if d > 0 {
			all = append(all, new(big.Int).Sub(center, big.NewInt(d)).String())
		}
	}
	return all
}
