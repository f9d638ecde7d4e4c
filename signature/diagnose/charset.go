package diagnose

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

type bodyChange struct {
	body     []byte
	cause    Cause
	sentence string
}

// charsets undoes the wrong choice of a character set.
func charsets(b []byte) []bodyChange {
	if !utf8.Valid(b) {
		return append(narrowed(b), widened(b)...)
	}
	var all []bodyChange
	for _, t := range []struct {
		name  string
		table func(rune) (byte, bool)
	}{{"Latin-1", toLatin1}, {"Windows-1252", toWindows1252}} {
		if body, ok := encodeAll(b, t.table); ok {
			all = append(all, bodyChange{body, Charset, "The body is UTF-8 that was read as " + t.name + " and written again as UTF-8: every accent became two characters."})
			if body, ok := encodeAll(body, t.table); ok && utf8.Valid(body) {
				all = append(all, bodyChange{body, Charset, "The body is UTF-8 that was read as " + t.name + " and written again as UTF-8, twice."})
			}
		}
	}
	text := string(b)
	for _, t := range []struct {
		from, to []string
		cause    Cause
		sentence string
	}{
		{[]string{"\u00a0"}, []string{" "}, Charset, "Spaces of the body became no-break spaces, as when it is copied from a page."},
		{[]string{"\u2019", "\u2018", "\u201c", "\u201d"}, []string{"'", "'", `"`, `"`}, Quoted, "Straight quotes of the body became typographic ones, as when it is copied through an editor or a chat."},
		{decomposed, composed, Normalized, "The accents of the body were decomposed (a letter and a combining mark, Unicode NFD), and what was signed has them in one character (NFC)."},
		{composed, decomposed, Normalized, "The accents of the body were composed (Unicode NFC), and what was signed has a letter and a combining mark (NFD)."},
	} {
		pairs := make([]string, 0, 2*len(t.from))
		for i, from := range t.from {
			pairs = append(pairs, from, t.to[i])
		}
		if out := strings.NewReplacer(pairs...).Replace(text); out != text {
			all = append(all, bodyChange{[]byte(out), t.cause, t.sentence})
		}
	}
	return append(all, widened(b)...)
}

// narrowed takes a body in a character set of one byte for what it was in UTF-8.
func narrowed(b []byte) []bodyChange {
	latin, windows := make([]rune, len(b)), make([]rune, len(b))
	for i, c := range b {
		latin[i], windows[i] = rune(c), rune(c)
		if c >= 0x80 && c < 0xa0 && windows1252[c-0x80] != 0 {
			windows[i] = windows1252[c-0x80]
		}
	}
	return []bodyChange{
		{[]byte(string(latin)), Charset, "The body was converted from UTF-8 to Latin-1."},
		{[]byte(string(windows)), Charset, "The body was converted from UTF-8 to Windows-1252."},
	}
}

// widened takes a body in UTF-16 for what it was in UTF-8.
func widened(b []byte) []bodyChange {
	if len(b)%2 != 0 || bytes.IndexByte(b, 0) < 0 {
		return nil
	}
	var all []bodyChange
	for _, little := range []bool{true, false} {
		units := make([]uint16, len(b)/2)
		for i := range units {
			lo, hi := b[2*i], b[2*i+1]
			if !little {
				lo, hi = hi, lo
			}
			units[i] = uint16(lo) | uint16(hi)<<8
		}
		text := strings.TrimPrefix(string(utf16.Decode(units)), "\ufeff")
		all = append(all, bodyChange{[]byte(text), Charset, "The body was converted from UTF-8 to UTF-16."},
			bodyChange{[]byte(strings.ReplaceAll(text, "\r\n", "\n")), Charset, "The body was converted from UTF-8 to UTF-16, and its line ends to CRLF."},
			bodyChange{[]byte(strings.TrimRight(text, "\r\n")), Charset, "The body was converted from UTF-8 to UTF-16, with a line break at its end."})
	}
	return all
}

// The accented letters of Latin-1 and Latin Extended-A, in both forms. The
// standard library cannot normalize, and payments are seldom about more.
var composed, decomposed = func() (one, two []string) {
	for _, set := range []struct {
		mark    string
		letters string // base and accented letter in turn
	}{
		{"\u0300", "AÀEÈIÌOÒUÙaàeèiìoòuùNǸnǹ"},
		{"\u0301", "AÁEÉIÍOÓUÚYÝaáeéiíoóuúyýCĆcćLĹlĺNŃnńRŔrŕSŚsśZŹzź"},
		{"\u0302", "AÂEÊIÎOÔUÛaâeêiîoôuûCĈcĉGĜgĝHĤhĥJĴjĵSŜsŝWŴwŵYŶyŷ"},
		{"\u0303", "AÃNÑOÕaãnñoõIĨiĩUŨuũ"},
		{"\u0308", "AÄEËIÏOÖUÜaäeëiïoöuüyÿYŸ"},
		{"\u030a", "AÅaåUŮuů"},
		{"\u0327", "CÇcçGĢKĶkķLĻlļNŅnņRŖrŗSŞsşTŢtţ"},
		{"\u030c", "CČcčDĎdďEĚeěNŇnňRŘrřSŠsšTŤtťZŽzž"},
		{"\u0304", "AĀaāEĒeēIĪiīOŌoōUŪuū"},
		{"\u0306", "AĂaăGĞgğUŬuŭ"},
		{"\u0307", "CĊcċEĖeėGĠgġIİZŻzż"},
		{"\u0328", "AĄaąEĘeęIĮiįUŲuų"},
		{"\u030b", "OŐoőUŰuű"},
	} {
		letters := []rune(set.letters)
		for i := 0; i+1 < len(letters); i += 2 {
			one, two = append(one, string(letters[i+1])), append(two, string(letters[i])+set.mark)
		}
	}
	return one, two
}()

func toLatin1(r rune) (byte, bool) { return byte(r), r < 0x100 }

// windows1252 are the characters at 0x80 to 0x9f; 0 where there is none.
var windows1252 = [32]rune{
	0x20ac, 0, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0, 0x017d, 0,
	0, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0, 0x017e, 0x0178,
}

func toWindows1252(r rune) (byte, bool) {
	if i := slices.Index(windows1252[:], r); i >= 0 && r != 0 {
		return byte(0x80 + i), true
	}
	return toLatin1(r)
}

// encodeAll writes UTF-8 in another character set; ok is false if that changes
// nothing or a character is not in it.
func encodeAll(b []byte, table func(rune) (byte, bool)) ([]byte, bool) {
	out := make([]byte, 0, len(b))
	for _, r := range string(b) {
		c, ok := table(r)
		if !ok {
			return nil, false
		}
		out = append(out, c)
	}
	return out, len(out) != len(b)
}

// accents are what is lost most often.
var accents = []rune("éèêëáàâãäåçíìîïñóòôõöøúùûüýÉÈÀÁÂÃÇÍÑÓÔÕÖÚÜßœæ€’–—“”«»°ºª¿¡£")

// accentsLost puts accents back where a conversion left marks, up to two of them.
func accentsLost(b []byte, yield func(bodyChange) bool) bool {
	for _, mark := range []string{"?", "\ufffd", "\ufffd\ufffd", "\ufffd\ufffd\ufffd", "??", ""} {
		if mark == "" || !bytes.Contains(b, []byte(mark)) {
			continue
		}
		n := bytes.Count(b, []byte(mark))
		if n > 3 {
			continue
		}
		const sentence = "Accents of the body were lost, and stand there as question marks or replacement characters: it was converted to a character set that lacks them."
		parts := bytes.Split(b, []byte(mark))
		// One letter for one mark at a time, the others staying; then two.
		for i := 1; i < len(parts); i++ {
			for _, one := range accents {
				body := join(parts, mark, map[int]rune{i: one})
				if !yield(bodyChange{body, Charset, sentence}) {
					return false
				}
			}
		}
		for i := 1; i < len(parts); i++ {
			for j := i + 1; j < len(parts); j++ {
				for _, one := range accents {
					for _, two := range accents {
						if !yield(bodyChange{join(parts, mark, map[int]rune{i: one, j: two}), Charset, sentence}) {
							return false
						}
					}
				}
			}
		}
	}
	return true
}

// join puts the parts of a body together again, with letters for some marks.
func join(parts [][]byte, mark string, letters map[int]rune) []byte {
	out := bytes.Clone(parts[0])
	for i, part := range parts[1:] {
		if r, ok := letters[i+1]; ok {
			out = utf8.AppendRune(out, r)
		} else {
			out = append(out, mark...)
		}
		out = append(out, part...)
	}
	return out
}
