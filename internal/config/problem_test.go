package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/config"
)

// source writes a file with one source.
func source(options string) string {
	return "accounts:\n  shop:\n    sources:\n      pay:\n        " + strings.ReplaceAll(strings.TrimSpace(options), "\n", "\n        ") + "\n"
}

const goodStripe = "gateway: stripe\nmode: live\nsecrets: [whsec_aaaaaaaaaaaaaaaaaaaaaaaa]"

func TestProblems(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"NotYAML", "listen: [", "paidonce.yaml:1:9: is not YAML: sequence end token ']' not found"},
		{"TwoDocuments", "listen: :1\n---\nlisten: :2\n", "paidonce.yaml: holds 2 YAML documents; keep one"},
		{"NoKeys", "- a\n- b\n", "paidonce.yaml: must hold keys with values, not a list"},
		{"KeyTwice", "listen: :1\nlisten: :2\n", `paidonce.yaml:2:1: is not YAML: mapping key "listen" already defined at [1:1]`},
		{"UnknownKeyAtTheTop", "sauces: x\n", `paidonce.yaml:1:1: unknown key "sauces"; known here: accounts, admin_listen, database_url, direct_url, fetch, limits, listen, log, pool, reconcile, retention, trusted_proxies, trusted_proxy_header, workers`},
		{"UnknownKeyInside", "limits:\n  max_bodies: 1\n", `paidonce.yaml:2:3: limits: unknown key "max_bodies"; did you mean "max_body"?`},
		{"UnknownKeyOfASource", source(goodStripe + "\nsecret: whsec_x"), `paidonce.yaml:8:9: accounts.shop.sources.pay: unknown key "secret"; did you mean "secrets"?`},
		{"NotAList", source("gateway: stripe\nmode: live\nsecrets: whsec_aaaaaaaaaaaaaaaaaaaaaaaa"), "paidonce.yaml:7:9: accounts.shop.sources.pay.secrets: must be a list, not one value"},
		{"NotOneValue", "listen: {a: b}\n", "paidonce.yaml:1:1: listen: must be one value, not keys with values"},
		{"NotATime", "limits: {idle_timeout: soon}\n", "paidonce.yaml:1:10: limits.idle_timeout: must be a time such as 500ms, 30s, 10m, 24h or 90d"},
		{"TimeOutOfBounds", "retention: {payloads: 1h}\n", "paidonce.yaml:1:13: retention.payloads: must be between 1d and 36500d, not 1h"},
		{"ReconciledTooOften", "reconcile: {every: 10ms}\n", "paidonce.yaml:1:13: reconcile.every: must be between 1s and 1d, not 10ms"},
		{"NotASize", "limits: {max_body: 1 MB}\n", "paidonce.yaml:1:10: limits.max_body: must be a size in bytes, such as 1048576, 512KiB or 1MiB"},
		{"SizeOutOfBounds", "limits: {max_body: 1}\n", "paidonce.yaml:1:10: limits.max_body: must be between 1KiB and 64MiB, not 1"},
		{"NotANumber", "workers: {count: 1.5}\n", "paidonce.yaml:1:11: workers.count: must be a whole number"},
		{"NotTrue", source(goodStripe + "\npaused: yes"), "paidonce.yaml:8:9: accounts.shop.sources.pay.paused: must be true or false"},
		{"TooFewConnections", "pool: {work: 8}\n", "paidonce.yaml:1:8: pool.work: must be between 20 and 1000, not 8"},
		{"PgBouncerAlone", "database_url: postgres://h/d\npool: {pgbouncer: true}\n", "paidonce.yaml:2:8: pool.pgbouncer: needs direct_url: migrations take a lock that PgBouncer would give to somebody else"},
		{"NotAnAddress", "listen: 8080\n", "paidonce.yaml:1:1: listen: must be an address to listen on, such as :8080 or 127.0.0.1:9090"},
		{"NotADatabase", "database_url: mysql://h/d\n", "paidonce.yaml:1:1: database_url: must be a URL such as postgres://user:password@host:5432/database"},
		{"NotALevel", "log: {level: loud}\n", `paidonce.yaml:1:7: log.level: must be debug, info, warn or error, not "loud"`},
		{"NotANetwork", "trusted_proxies: [10.0.0.1]\n", "paidonce.yaml:1:19: trusted_proxies[0]: must be a network such as 10.0.0.0/8 or 192.0.2.7/32"},
		{"NotAHeader", "trusted_proxy_header: 'X Y'\n", "paidonce.yaml:1:1: trusted_proxy_header: must be the name of a header, such as X-Forwarded-For"},
		{"AccountName", "accounts: {Shop: {}}\n", "paidonce.yaml:1:12: accounts.Shop: is not a name for an account; use 1 to 64 of a-z, 0-9, _, . and -, beginning with a letter or digit"},
		{"SourceNamedAPI", strings.Replace(source(goodStripe), "pay:", "api:", 1), "paidonce.yaml:4:7: accounts.shop.sources.api: the id api is taken by the program's own API; choose another"},
		{"SourceTwice", source(goodStripe) + strings.Replace(strings.TrimPrefix(source(goodStripe), "accounts:\n"), "shop", "store", 1), "paidonce.yaml:10:7: accounts.store.sources.pay: the id pay is taken by accounts.shop.sources.pay; ids of sources are unique over all accounts, because they stand in the URL"},
		{"NoGateway", source("mode: live"), "paidonce.yaml:4:7: accounts.shop.sources.pay: has no gateway; known: " + known()},
		{"UnknownGateway", source("gateway: strype\nsecrets: [abcdefgh]"), `paidonce.yaml:5:9: accounts.shop.sources.pay.gateway: there is no gateway "strype"; known: ` + known()},
		{"KeyInTheClear", "accounts: {shop: {api_keys: [{name: a, sha256: pk_live_5ecret, roles: [read]}]}}\n", "paidonce.yaml:1:40: accounts.shop.api_keys[0].sha256: must be the SHA-256 of the key as 64 hexadecimal digits, never the key: printf %s KEY | sha256sum"},
		{"NoRole", "accounts: {shop: {api_keys: [{name: a, sha256: " + keySum + "}]}}\n", "paidonce.yaml:1:30: accounts.shop.api_keys[0]: has no roles; give it some of read, write and operate"},
		{"UnknownRole", "accounts: {shop: {api_keys: [{name: a, sha256: " + keySum + ", roles: [root]}]}}\n", `paidonce.yaml:1:114: accounts.shop.api_keys[0].roles: there is no role "root"; roles are read, write and operate`},
		{"UnknownTimeZone", "accounts:\n  shop:\n    time_zone: Berlin\n", `paidonce.yaml:3:5: accounts.shop.time_zone: must be the IANA name of a time zone, such as Europe/Berlin, not "Berlin"`},
		{"TimeZoneOfTheMachine", "accounts:\n  shop:\n    time_zone: Local\n", `paidonce.yaml:3:5: accounts.shop.time_zone: must be the IANA name of a time zone, such as Europe/Berlin, not "Local"`},
		{"OneKeyForTwo", "accounts:\n  a: {api_keys: [{name: x, sha256: " + keySum + ", roles: [read]}]}\n  b: {api_keys: [{name: y, sha256: " + strings.ToUpper(keySum) + ", roles: [read]}]}\n", "paidonce.yaml:3:18: accounts.b.api_keys[0]: is the same key as accounts.a.api_keys[0]; give every account keys of its own"},
		{"CallbackWithoutSecret", "accounts: {shop: {callback: {url: https://shop.example/}}}\n", "paidonce.yaml:1:19: accounts.shop.callback: has no secret; make one with: echo whsec_$(openssl rand -base64 32)"},
		{"CallbackWithoutURL", "accounts: {shop: {callback: {secret: '${CALL}'}}}\n", "paidonce.yaml:1:19: accounts.shop.callback: has no url; write where the merchant is to be told, or leave the callback out"},
		{"CallbackSecretTooShort", "accounts: {shop: {callback: {url: https://shop.example/, secret: whsec_c2hvcnQ=}}}\n", "paidonce.yaml:1:58: accounts.shop.callback.secret: must be whsec_ and 24 to 64 bytes in base64; make one with: echo whsec_$(openssl rand -base64 32)"},
		{"CallbackInTheClear", "accounts: {shop: {callback: {url: 'http://shop.example/', secret: '${CALL}'}}}\n", "paidonce.yaml:1:30: accounts.shop.callback.url: must be https; set allow_private: true if it is inside your own network"},
		{"CallbackWithPassword", "accounts: {shop: {callback: {url: 'https://u:p@shop.example/', secret: '${CALL}'}}}\n", "paidonce.yaml:1:30: accounts.shop.callback.url: must not hold a user, a password or a fragment; the secret signs the call"},
		{"CallbackToLoopback", callbackTo("https://127.0.0.1/"), "paidonce.yaml:1:30: accounts.shop.callback.url: " + notPublic},
		{"CallbackToPrivate", callbackTo("https://10.0.0.1/"), "paidonce.yaml:1:30: accounts.shop.callback.url: " + notPublic},
		{"CallbackToMetadata", callbackTo("https://169.254.169.254/"), "paidonce.yaml:1:30: accounts.shop.callback.url: " + notPublic},
		{"CallbackToLoopback6", callbackTo("https://[::1]:8443/"), "paidonce.yaml:1:30: accounts.shop.callback.url: " + notPublic},
		{"CallbackToLocalhost", callbackTo("https://LocalHost./"), "paidonce.yaml:1:30: accounts.shop.callback.url: " + notPublic},
		{"CallbackPort", callbackTo("https://shop.example:99999/"), "paidonce.yaml:1:30: accounts.shop.callback.url: must have a port between 1 and 65535, or none"},
		{"CallbackPort0", callbackTo("https://shop.example:0/"), "paidonce.yaml:1:30: accounts.shop.callback.url: must have a port between 1 and 65535, or none"},
		{"CallbackWithoutHost", callbackTo("https://:443/"), "paidonce.yaml:1:30: accounts.shop.callback.url: must be a URL such as https://shop.example/paidonce"},
		{"ListenPort", "listen: :99999\n", "paidonce.yaml:1:1: listen: must be an address to listen on, such as :8080 or 127.0.0.1:9090"},
		{"DatabasePort", "database_url: postgres://h:99999/d\n", "paidonce.yaml:1:1: database_url: " + notPgx},
		{"DatabaseMode", "database_url: postgres://u:5ecret@h/d?sslmode=maybe\n", "paidonce.yaml:1:1: database_url: " + notPgx},
		{"DatabasePool", "database_url: 'host=h password=5ecret pool_max_conns=many'\n", "paidonce.yaml:1:1: database_url: " + notPgx},
		{"DatabaseRoots", "database_url: postgres://u:5ecret@h/d?sslmode=verify-full&sslrootcert=/nowhere/ca.pem\n", "paidonce.yaml:1:1: database_url: names a file that cannot be read: open /nowhere/ca.pem: no such file or directory"},
		{"CallbackTooSlow", "accounts: {shop: {callback: {url: 'https://shop.example/', secret: '${CALL}', timeout: 30s}}}\n", "paidonce.yaml:1:79: accounts.shop.callback.timeout: must be between 1s and 10s, not 30s"},
		{"APIOnLoopback", source(asksAt("https://localhost:8443")), "paidonce.yaml:8:9: accounts.shop.sources.pay.api_url: " + apiNotPublic},
		{"APIOnMetadata", source(asksAt("https://169.254.169.254")), "paidonce.yaml:8:9: accounts.shop.sources.pay.api_url: " + apiNotPublic},
		{"APIOnPrivate6", source(asksAt("https://[::ffff:10.0.0.1]:1")), "paidonce.yaml:8:9: accounts.shop.sources.pay.api_url: " + apiNotPublic},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse("paidonce.yaml", []byte(tt.text), env())
			require.EqualError(t, err, tt.want)
		})
	}
}

func asksAt(url string) string {
	return "gateway: mollie-classic\nmode: live\naccess_token: live_abcdefghijklmnopqrstuvwxyz0123\napi_url: '" + url + "'"
}

func callbackTo(url string) string {
	return "accounts: {shop: {callback: {url: '" + url + "', secret: '${CALL}'}}}\n"
}

const (
	notPublic    = "leads to an address that is not public; set allow_private: true if it is inside your own network"
	apiNotPublic = "leads to an address that is not public; set api_allow_private: true if it is inside your own network"
	notPgx       = "cannot be used: its port, sslmode, or another of its parameters is not one that Postgres or the pool knows"
)

// A private address is allowed where it is said to be meant, a name always: what it resolves to is seen at the call.
func TestAddressesThatAreAllowed(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"https://1.1.1.1:65535/", "https://shop.example:1/", "https://[2606:4700::1111]/"} {
		parse(t, callbackTo(url))
	}
	parse(t, strings.Replace(callbackTo("http://127.0.0.1:99/"), "secret:", "allow_private: true, secret:", 1))
	parse(t, source(asksAt("https://api.example:8443")))
	parse(t, source(asksAt("http://127.0.0.1:99")+"\napi_allow_private: true"))
}

// Whoever writes a secret to the wrong place does not find it in the log.
func TestProblemsMaskWhatLooksLikeASecret(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{
		stripeSecret, "whpk_AAAAAAAAAAAAAAAA", "whsk_AAAAAAAAAAAAAAAA", "sk_live_51HmAAAA", "pk_live_AAAA", hmacKey, strings.ToLower(hmacKey),
	} {
		for _, text := range []string{
			secret + ": x\n",
			source(goodStripe + "\n" + secret + ": x"),
			secret + ": x\n" + secret + ": x\n",
			"accounts: {" + secret + ": {sources: {" + secret + ": {gateway: " + secret + "}}}}\n",
			"log: {level: " + secret + ", format: " + secret + "}\n",
			"accounts: {shop: {api_keys: [{name: a, sha256: " + keySum + ", roles: [" + secret + "]}]}}\n",
			source(goodStripe + "\nreference_pattern: '(" + secret + "'"),
			source(goodStripe + "\non_unknown_order: " + secret),
			source(goodStripe + "\nmode: " + secret),
			"database_url: file:" + secret + "\n",
		} {
			_, err := config.Parse("paidonce.yaml", []byte(text), env())
			require.Error(t, err, text)
			require.NotContains(t, err.Error(), secret)
			for _, p := range config.Problems(err) {
				require.NotContains(t, p.Path+p.Text, secret)
			}
		}
		require.NotContains(t, config.MaskURL("postgres://u:p@h/d?application_name="+secret), secret)
	}
}

// What a gateway's own check says is located, and shows no secret.
func TestProblemsOfSources(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, options, secret string }{
		{"StripeWithoutSecrets", "gateway: stripe\nmode: live", ""},
		{"StripeAPIKey", "gateway: stripe\nmode: live\nsecrets: [sk_live_51Hmalformed]", "sk_live_51Hmalformed"},
		{"StripeEmptySecret", "gateway: stripe\nmode: live\nsecrets: ['']", ""},
		{"NoMode", "gateway: stripe\nsecrets: [whsec_aaaaaaaaaaaaaaaaaaaaaaaa]", "whsec_aaaa"},
		{"AdyenWithoutKeys", "gateway: adyen\nmode: live\nbasic: user:letmein99", "letmein99"},
		{"AdyenMalformedKey", "gateway: adyen\nmode: live\nhmac_keys: [zz00112233445566]", "zz00112233445566"},
		{"AdyenMalformedBasic", "gateway: adyen\nmode: live\nhmac_keys: [" + hmacKey + "]\nbasic: letmein99", "letmein99"},
		{"StandardWithoutMap", "gateway: standard\nmode: live\nsecrets: ['${CALL}']", callSecret},
		{"StandardMalformedSecret", "gateway: standard\nmode: live\nsecrets: ['whsec_!!notbase64!!']\nmap: {type: /t, payment: /p, amount: /a, currency: /c, facts: {x: captured}}", "!!notbase64!!"},
		{"OnUnknownOrder", goodStripe + "\non_unknown_order: guess", "whsec_aaaa"},
		{"Reference", goodStripe + "\nreference: data.order", "whsec_aaaa"},
		{"ReferencePattern", goodStripe + "\nreference_pattern: '('", "whsec_aaaa"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse("paidonce.yaml", []byte(source(tt.options)), env())
			problems := config.Problems(err)
			require.NotEmpty(t, problems)
			for _, p := range problems {
				require.True(t, strings.HasPrefix(p.Where, "paidonce.yaml:"), p.Error())
				require.True(t, strings.HasPrefix(p.Path, "accounts.shop.sources.pay"), p.Error())
			}
			if tt.secret != "" {
				require.NotContains(t, err.Error(), tt.secret)
			}
		})
	}
}

// Everything that is wrong is told at once, in the order of the file.
func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := config.Parse("paidonce.yaml", []byte(`listne: :1
log: {level: loud}
limits:
  idle_timeout: soon
accounts:
  shop:
    callback: {url: https://shop.example/, secret: "${NOPE}"}
    sources:
      one: {gateway: strype}
      two: {gateway: stripe, mode: live, secrets: []}
`), env("PAIDONCE_POOL_SERVE", "0"))
	var where []string
	for _, p := range config.Problems(err) {
		where = append(where, p.Where)
	}
	require.Equal(t, []string{
		"paidonce.yaml:1:1", "paidonce.yaml:2:7", "paidonce.yaml:4:3", "paidonce.yaml:7:44", "paidonce.yaml:9:13", "paidonce.yaml:10:7",
		"PAIDONCE_POOL_SERVE",
	}, where)
}

// known lists the gateways as a person reads them.
func known() string {
	var names []string
	for _, g := range gateway.All() {
		names = append(names, g.Name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
