package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// notSettings are the variables that begin like ours and set nothing here: the first ones are documented, the others
// are read by tests, benchmarks and tools of this project, and PAIDONCE_SECRET by the example of a merchant's endpoint.
var notSettings = []string{
	"PAIDONCE_CONFIG", "PAIDONCE_PG_BIN", "PAIDONCE_SECRET",
	"PAIDONCE_BENCH_ROLE", "PAIDONCE_BENCH_URL", "PAIDONCE_CASES", "PAIDONCE_CI_FUZZTIME", "PAIDONCE_E2E_CHILD", "PAIDONCE_E2E_CLOCK",
	"PAIDONCE_E2E_CONFIG", "PAIDONCE_E2E_NETWORK", "PAIDONCE_FIXTURES",
	"PAIDONCE_LOCALPG_KEEPER", "PAIDONCE_LOCALPG_TEST_USER", "PAIDONCE_MIGRATIONS_TEST_URL", "PAIDONCE_STORETEST_CHILD",
	"PAIDONCE_STRESS", "PAIDONCE_TEST_DATABASE_URL", "PAIDONCE_TEST_WORKER", "PAIDONCE_TOOLS", "PAIDONCE_VECTORS",
}

// ofService is what Kubernetes puts into every container of a namespace that has a service called paidonce, or
// paidonce-something.
// https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
var ofService = regexp.MustCompile(`^PAIDONCE_(?:[A-Z0-9_]+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$`)

// strangers reports the variables that look as if they were to set something and do not: a misspelt one would
// otherwise leave a default in force that nobody wanted.
func (d *decoder) strangers(names []string) {
	settings := slices.Sorted(maps.Keys(d.asked))
	for _, name := range slices.Sorted(slices.Values(names)) {
		if !strings.HasPrefix(name, prefix) || d.asked[name] || slices.Contains(notSettings, name) || ofService.MatchString(name) {
			continue
		}
		if d.getenv(name) == "" {
			continue // an empty variable counts as not set
		}
		meant, distance := "", 4
		for _, setting := range settings {
			if n := editDistance(name, setting); n < distance {
				meant, distance = setting, n
			}
		}
		hint := "paidonce config reference lists those that do"
		if meant != "" {
			hint = "did you mean " + meant + "?"
		}
		d.problem(place{name: name}, "", "sets nothing; %s", hint)
	}
}
