package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	reference = regexp.MustCompile(`\$?\$\{[^}]*\}`)
	envName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// expand replaces a text that is file:path by what that file holds, less the
// line ends at its end, and every ${NAME} by that environment variable. A
// variable that is missing or empty is a problem: it would otherwise be a
// secret that is empty. $${NAME} stands for the characters ${NAME}. What was
// put in is not looked at again.
func (d *decoder) expand(text string, at place, path string, vars bool) (string, bool) {
	if name, ok := strings.CutPrefix(text, "file:"); ok {
		return d.fromFile(name, at, path)
	}
	if !vars {
		return text, true
	}
	good := true
	expanded := reference.ReplaceAllStringFunc(text, func(ref string) string {
		if strings.HasPrefix(ref, "$$") {
			return ref[1:]
		}
		name := ref[2 : len(ref)-1]
		if !envName.MatchString(name) {
			d.unreadable(at, path, "holds ${…} with something else than the name of an environment variable in it; write $${…} for these characters themselves")
			good = false
			return ""
		}
		value := d.getenv(name)
		if value == "" {
			d.unreadable(at, path, "needs the environment variable %s, which is not set or empty", name)
			good = false
		}
		d.secrets = append(d.secrets, value)
		return value
	})
	return expanded, good
}

// fromFile reads a value from a file; a relative path starts at the folder of
// the configuration.
func (d *decoder) fromFile(name string, at place, path string) (string, bool) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(d.file), name)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		d.unreadable(at, path, "cannot be read from its file: %v", err)
		return "", false
	}
	value := strings.TrimRight(string(data), "\r\n")
	if value == "" {
		d.unreadable(at, path, "is to be read from the file %s, which is empty", name)
		return "", false
	}
	d.secrets = append(d.secrets, value)
	return value, true
}
