package signature

import "time"

// What fuzz targets look at beside verification: the parsers of forms and dates.

func ParseForm(body string) (map[string]string, bool) {
	fields, err := parseForm(body)
	return fields, err == nil
}

func SetField(body, name, value string) string { return setField(body, name, value) }

func PlainDate(s string) (time.Time, bool) {
	n, ok := plainDate(s)
	return time.Unix(n, 0), ok
}
