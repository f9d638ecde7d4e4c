package canonical

import "strconv"

// maxPointer is the longest pointer that is made, in bytes.
const maxPointer = 256

// pointer is a JSON pointer in the making (RFC 6901).
type pointer []byte

// name steps into a member. It reports false, and does nothing, if that has no pointer: one that is too long, or whose name has
// control characters (JSON columns of databases and lines of logs do not take all of them).
func (p *pointer) name(name []byte) bool {
	to := append(*p, '/')
	for _, c := range name {
		switch {
		case c < ' ' || len(to) > maxPointer:
			return false
		case c == '~':
			to = append(to, "~0"...)
		case c == '/':
			to = append(to, "~1"...)
		default:
			to = append(to, c)
		}
	}
	if len(to) > maxPointer {
		return false
	}
	*p = to
	return true
}

// index steps into an element, as name does.
func (p *pointer) index(i int) bool {
	to := strconv.AppendInt(append(*p, '/'), int64(i), 10)
	if len(to) > maxPointer {
		return false
	}
	*p = to
	return true
}
