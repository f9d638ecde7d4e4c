package capture

import (
	"errors"
	"net/http"
	"os"
	"strings"
)

// command reads a curl command as a shell would, and as curl would: --data takes
// line breaks out of files, --data-binary does not.
func command(text string) (Request, error) {
	words, err := shellWords(strings.TrimPrefix(text, "$ "))
	if err != nil {
		return Request{}, err
	}
	r := Request{Header: http.Header{}}
	var data []string
	for i := 1; i < len(words); i++ {
		name, value, long := strings.Cut(words[i], "=")
		if !long || !strings.HasPrefix(words[i], "--") {
			name, value, long = words[i], "", false
		}
		if len(name) > 2 && name[0] == '-' && name[1] != '-' && strings.IndexByte("XHdu", name[1]) >= 0 {
			name, value, long = words[i][:2], words[i][2:], true
		}
		next := func() string {
			if long {
				return value
			}
			if i++; i < len(words) {
				return words[i]
			}
			return ""
		}
		switch name {
		case "-X", "--request":
			r.Method = next()
		case "-H", "--header":
			h, v, _ := strings.Cut(next(), ":")
			r.Header.Add(strings.TrimSpace(h), strings.TrimSpace(v))
		case "-d", "--data", "--data-ascii", "--data-raw", "--data-binary":
			part := next()
			if file, ok := strings.CutPrefix(part, "@"); ok && name != "--data-raw" {
				b, err := os.ReadFile(file)
				if err != nil {
					return r, err
				}
				part = string(b)
				if name != "--data-binary" {
					part = strings.NewReplacer("\r", "", "\n", "").Replace(part)
				}
			}
			data = append(data, part)
		case "--url":
			r.URL = next()
		case "-o", "--output", "-m", "--max-time", "-A", "--user-agent", "-u", "--user", "--connect-timeout", "-w", "--write-out":
			next()
		default:
			if !strings.HasPrefix(name, "-") && r.URL == "" {
				r.URL = words[i]
			}
		}
	}
	if r.URL == "" {
		return r, errors.New("the curl command has no URL")
	}
	if data != nil {
		r.Body, r.HasBody = []byte(strings.Join(data, "&")), true
		if r.Method == "" {
			r.Method = http.MethodPost
		}
	}
	if r.Method == "" {
		r.Method = http.MethodGet
	}
	return r, nil
}

// shellWords splits a command by the quoting rules of POSIX, and $'…' of bash.
// https://pubs.opengroup.org/onlinepubs/9699919799/utilities/V3_chap02.html#tag_18_02
func shellWords(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	open := false
	end := func() {
		if open {
			words = append(words, word.String())
		}
		word.Reset()
		open = false
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case ' ', '\t', '\n', '\r':
			end()
		case '\\':
			if i++; i < len(s) {
				if s[i] == '\r' && i+1 < len(s) && s[i+1] == '\n' {
					i++
				}
				if s[i] != '\n' {
					word.WriteByte(s[i])
					open = true
				}
			}
		case '\'':
			n := strings.IndexByte(s[i+1:], '\'')
			if n < 0 {
				return nil, errors.New("the curl command has a quote that does not end")
			}
			word.WriteString(s[i+1 : i+1+n])
			open, i = true, i+1+n
		case '"':
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("\"\\$`\n", s[i+1]) >= 0 {
					if i++; s[i] == '\n' {
						continue
					}
				}
				word.WriteByte(s[i])
			}
			if i >= len(s) {
				return nil, errors.New("the curl command has a quote that does not end")
			}
			open = true
		default:
			if c == '$' && i+1 < len(s) && s[i+1] == '\'' {
				text, n, err := ansiQuoted(s[i+2:])
				if err != nil {
					return nil, err
				}
				word.WriteString(text)
				open, i = true, i+1+n
				continue
			}
			word.WriteByte(c)
			open = true
		}
	}
	end()
	return words, nil
}

// ansiQuoted reads the text of $'…' up to its quote; n is how long it is with it.
func ansiQuoted(s string) (text string, n int, err error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\'':
			return b.String(), i + 1, nil
		case s[i] == '\\' && i+1 < len(s):
			i++
			if at := strings.IndexByte("nrt", s[i]); at >= 0 {
				b.WriteByte("\n\r\t"[at])
			} else {
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return "", 0, errors.New("the curl command has a quote that does not end")
}
