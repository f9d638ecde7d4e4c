package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/paidonce/paidonce/gateway"
)

// masked stands in for a secret wherever one would be printed.
const masked = "***"

// Secret is a text that does not print: only string(s) has it.
type Secret string

// Format prints *** for every verb, %x and %#v included.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.mask()) }

// MarshalJSON writes "***".
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.mask()) }

// MarshalYAML writes "***".
func (s Secret) MarshalYAML() (any, error) { return s.mask(), nil }

// LogValue is ***.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.mask()) }

func (s Secret) mask() string {
	if s == "" {
		return ""
	}
	return masked
}

// Format prints the configuration as YAML with every secret masked, whatever
// the verb.
func (c Config) Format(f fmt.State, _ rune) { _, _ = f.Write(c.YAML()) }

// MarshalJSON writes the configuration with every secret masked.
func (c Config) MarshalJSON() ([]byte, error) { return json.Marshal(plain(c.tree())) }

// LogValue is the configuration with every secret masked.
func (c Config) LogValue() slog.Value { return slog.AnyValue(plain(c.tree())) }

// YAML writes the configuration as it is in force, defaults and variables
// included, with every secret masked: *** takes the place of every value that
// is one by its kind, that a gateway verifies with, or that came from ${NAME}
// or file:path.
func (c Config) YAML() []byte {
	data, err := yaml.Marshal(c.tree())
	if err != nil {
		panic(fmt.Sprintf("config: a tree of texts and numbers does not marshal: %v", err))
	}
	return data
}

// Format prints the account with every secret masked, whatever the verb.
func (a Account) Format(f fmt.State, _ rune) {
	data, err := json.Marshal(a)
	if err != nil {
		panic(fmt.Sprintf("config: a tree of texts and numbers does not marshal: %v", err))
	}
	_, _ = f.Write(data)
}

// MarshalJSON writes the account with every secret masked.
func (a Account) MarshalJSON() ([]byte, error) {
	m := newMasker(a.secrets())
	return json.Marshal(plain(m.value(reflect.ValueOf(a), "")))
}

// LogValue is the account with every secret masked.
func (a Account) LogValue() slog.Value {
	m := newMasker(a.secrets())
	return slog.AnyValue(plain(m.value(reflect.ValueOf(a), "")))
}

func (c Config) tree() yaml.MapSlice {
	tree, _ := c.masker().value(reflect.ValueOf(c), "").(yaml.MapSlice)
	return tree
}

func (c Config) masker() masker {
	secrets := c.secrets()
	if c.origin != nil {
		secrets = append(secrets, c.origin.secrets...)
	}
	return newMasker(secrets)
}

// secrets returns every value that must not be seen.
func (c Config) secrets() []string {
	var all []string
	for _, account := range c.Accounts {
		all = append(all, account.secrets()...)
	}
	return all
}

func (a Account) secrets() []string {
	all := []string{string(a.Callback.Secret), string(a.Callback.OldSecret)}
	for _, source := range a.Sources {
		all = append(all, secretsOf(source)...)
	}
	return all
}

// secretsOf returns what a gateway verifies with, and every field that has the
// name of a secret, so that a source whose gateway is misspelt is masked too.
func secretsOf(source gateway.Source) []string {
	var all []string
	if g, ok := gateway.Lookup(source.Gateway); ok {
		all = append(all, g.LiveSecrets(source)...)
	}
	v := reflect.ValueOf(source)
	for name, f := range fieldsOf(v.Type()) {
		if !secretNames[name] {
			continue
		}
		switch field := v.FieldByIndex(f.Index); field.Kind() {
		case reflect.String:
			all = append(all, field.String())
		case reflect.Slice:
			for i := range field.Len() {
				all = append(all, field.Index(i).String())
			}
		}
	}
	return all
}

// secretNames are the options of sources that are secret.
var secretNames = map[string]bool{
	"secrets": true, "signing_keys": true, "hmac_keys": true, "basic": true, "access_token": true, "client_secret": true, "authorization": true,
}

type masker struct{ secret map[string]bool }

func newMasker(secrets []string) masker {
	m := masker{secret: make(map[string]bool)}
	for _, s := range secrets {
		m.secret[s] = true
	}
	delete(m.secret, "")
	return m
}

// value turns a value into maps, lists and texts that hold no secret.
func (m masker) value(v reflect.Value, kind string) any {
	switch {
	case v.Type() == durationType:
		return fmt.Sprint(v.Interface())
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return m.value(v.Elem(), kind)
	case v.Kind() == reflect.Struct:
		var out yaml.MapSlice
		for f := range v.Type().Fields() {
			name := fieldName(f)
			if name == "" || v.FieldByIndex(f.Index).IsZero() {
				continue
			}
			out = append(out, yaml.MapItem{Key: name, Value: m.value(v.FieldByIndex(f.Index), f.Tag.Get("secret"))})
		}
		return out
	case v.Kind() == reflect.Map:
		var out yaml.MapSlice
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			out = append(out, yaml.MapItem{Key: key.String(), Value: m.value(v.MapIndex(key), kind)})
		}
		return out
	case v.Kind() == reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = m.value(v.Index(i), kind)
		}
		return out
	case v.Kind() == reflect.String:
		return m.text(v.String(), kind)
	default:
		return v.Interface()
	}
}

func (m masker) text(s, kind string) string {
	switch {
	case kind == "url":
		return MaskURL(s)
	case kind == "all" && s != "", m.secret[s]:
		return masked
	}
	return m.hide(s)
}

// hide masks secrets inside a longer text, save those so short that they may
// stand there by chance.
func (m masker) hide(s string) string {
	for secret := range m.secret {
		if len(secret) >= 6 {
			s = strings.ReplaceAll(s, secret, masked)
		}
	}
	return hidePrefixed(s)
}

// prefixed is what looks like a secret of a gateway, or one of ours, by how it begins.
var (
	prefixed = regexp.MustCompile(`\b(?:whsec|whpk|whsk|sk|pk|rk)_[A-Za-z0-9+/=_.-]{4,}`)
	hexKey   = regexp.MustCompile(`\b[0-9A-Fa-f]{64}\b`)
)

func hidePrefixed(s string) string { return prefixed.ReplaceAllString(s, masked) }

// hideLooks masks what looks like a secret wherever it stands: in a key, a name, or a value that is none.
func hideLooks(s string) string { return hexKey.ReplaceAllString(hidePrefixed(s), masked) }

// MaskURL returns a database URL without its password; what cannot be taken
// apart is masked as a whole.
func MaskURL(s string) string {
	if s == "" {
		return ""
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" {
		return masked // key=value form, or not a URL: the password is somewhere in it
	}
	query := u.Query()
	for _, name := range []string{"password", "sslpassword"} {
		if query.Has(name) {
			query.Set(name, masked)
		}
	}
	u.RawQuery = query.Encode()
	out := u.Redacted()
	return hideLooks(strings.Replace(out, ":xxxxx@", ":"+masked+"@", 1))
}

// plain turns ordered maps into maps, which JSON and slog write as objects.
func plain(v any) any {
	switch v := v.(type) {
	case yaml.MapSlice:
		out := make(map[string]any, len(v))
		for _, item := range v {
			out[fmt.Sprint(item.Key)] = plain(item.Value)
		}
		return out
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
		return v
	default:
		return v
	}
}
