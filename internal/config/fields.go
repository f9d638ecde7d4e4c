package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// prefix begins every variable.
const prefix = "PAIDONCE_"

// Variable returns the name of the environment variable that sets what stands
// at path: PAIDONCE_ and the path in upper case, with every character that is
// not a letter or a digit written as _. So PAIDONCE_LIMITS_MAX_BODY sets
// limits.max_body, and PAIDONCE_ACCOUNTS_SHOP_SOURCES_STRIPE_SECRETS sets
// accounts.shop.sources.stripe.secrets.
//
// The variable of a list of texts holds them with commas between, that of any
// other list or group holds YAML. An empty variable counts as not set. What a
// variable holds is taken as it stands, save that file:path is read from that
// file.
func Variable(path string) string {
	return prefix + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		default:
			return '_'
		}
	}, path)
}

// fieldName is the YAML name of a field, empty if it is not read.
func fieldName(f reflect.StructField) string {
	if !f.IsExported() {
		return ""
	}
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	if name == "-" {
		return ""
	}
	return name
}

// fieldsOf returns the fields of a struct by their YAML names.
func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	fields := make(map[string]reflect.StructField)
	for f := range t.Fields() {
		if name := fieldName(f); name != "" {
			fields[name] = f
		}
	}
	return fields
}

// suggest names the key that was probably meant, or all there are.
func suggest(key string, fields map[string]reflect.StructField) string {
	names := slices.Sorted(maps.Keys(fields))
	best, distance := "", max(3, len(key)/3+1)
	for _, name := range names {
		if strings.HasPrefix(name, key) {
			best = name
			break
		}
		if d := editDistance(key, name); d < distance {
			best, distance = name, d
		}
	}
	if best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return "; known here: " + strings.Join(names, ", ")
}

// editDistance counts the letters to insert, delete or change (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
