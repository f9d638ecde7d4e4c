package settlement

import (
	"bufio"
	"encoding/csv"
	"errors"
	"io"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// headSize is how far into a file its header row may stand.
const headSize = 64 << 10

// maxRecord is how long one row of a report may be, in bytes: a quotation mark that is never closed must not swallow the rest of
// the file.
const maxRecord = 1 << 20

// errRecord ends the reading of a file: where the next row begins is no longer known.
var errRecord = errors.New("a row is longer than 1 MiB; is a quotation mark missing?")

// decoded returns the text in UTF-8, without a byte order mark. UTF-16 is known by its mark, or by the zeros that ASCII has in it.
func decoded(r io.Reader) io.Reader {
	raw := bufio.NewReader(r)
	head, _ := raw.Peek(4)
	t := unicode.BOMOverride(transform.Nop)
	if len(head) == 4 {
		switch {
		case head[0] != 0 && head[1] == 0 && head[2] != 0 && head[3] == 0:
			t = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewDecoder()
		case head[0] == 0 && head[1] != 0 && head[2] == 0 && head[3] != 0:
			t = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM).NewDecoder()
		}
	}
	return transform.NewReader(raw, t)
}

// rows reads rows, each within [maxRecord].
type rows struct {
	csv   *csv.Reader
	limit *limited
}

func newRows(r io.Reader, separator rune) *rows {
	l := &limited{r: r}
	c := csv.NewReader(l)
	c.Comma, c.FieldsPerRecord, c.ReuseRecord = separator, -1, true
	return &rows{csv: c, limit: l}
}

// next returns the next row, valid until the next call, and the line on which it begins. With a [*csv.ParseError] the reading
// may go on behind the row that is broken.
func (r *rows) next() ([]string, int, error) {
	r.limit.left = maxRecord
	row, err := r.csv.Read()
	var broken *csv.ParseError
	switch {
	case errors.As(err, &broken):
		return nil, broken.StartLine, err
	case err != nil:
		return nil, 0, err
	}
	line, _ := r.csv.FieldPos(0)
	return row, line, nil
}

// limited fails once more was read than one row may have.
type limited struct {
	r    io.Reader
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errRecord
	}
	n, err := l.r.Read(p)
	l.left -= n
	return n, err
}
