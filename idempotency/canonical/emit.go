package canonical

// emit appends the canonical form of a value. It recurses no deeper than MaxDepth.
func (p *parser) emit(to []byte, v item) []byte {
	switch v.kind {
	case null:
		return append(to, "null"...)
	case boolTrue:
		return append(to, "true"...)
	case boolFalse:
		return append(to, "false"...)
	case number:
		return append(to, p.text[v.from:v.to]...)
	case str:
		return appendString(to, p.text[v.from:v.to])
	case array:
		to = append(to, '[')
		for i, e := range p.items[v.from:v.to] {
			if i > 0 {
				to = append(to, ',')
			}
			to = p.emit(to, e)
		}
		return append(to, ']')
	default:
		to = append(to, '{')
		for i, m := range p.items[v.from:v.to] {
			if i > 0 {
				to = append(to, ',')
			}
			to = append(appendString(to, p.name(m)), ':')
			to = p.emit(to, m)
		}
		return append(to, '}')
	}
}

// appendString appends a string as the canonical form has it.
func appendString[T string | []byte](to []byte, s T) []byte {
	const hex = "0123456789abcdef"
	to = append(to, '"')
	plain := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		to = append(to, s[plain:i]...)
		if c < ' ' {
			to = append(to, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		} else {
			to = append(to, '\\', c)
		}
		plain = i + 1
	}
	to = append(to, s[plain:]...)
	return append(to, '"')
}
