package canonical_test

import (
	"testing"

	"github.com/paidonce/paidonce/idempotency/canonical"
	"github.com/stretchr/testify/require"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		``: ``, `{}`: `{}`, ` [ ] `: `[]`, `null`: `null`, `""`: `""`,
		`{"b":1,"a":[true,false,null,{"z":{},"y":[]}]}`: `{"a":[true,false,null,{"y":[],"z":{}}],"b":1e0}`,
		`10e-1`: `1e0`, `-0.0e7`: `0e0`, `-20`: `-2e1`, `1.50`: `15e-1`, `0.0010`: `1e-3`, `100.0`: `1e2`,
		`1e1000000000000000000`: `1e1000000000000000000`, `0.1e1000000000000000000`: `1e999999999999999999`,
		`10e999999999999999999`: `1e1000000000000000000`, `10e9999999999999999999`: `1e10000000000000000000`,
		`0.1e-9999999999999999999`: `1e-10000000000000000000`, `10e-10000000000000000000`: `1e-9999999999999999999`,
		`"\u00e9\/\u003c\ud83d\ude00\n\"\\"`: "\"é/<😀\\u000a\\\"\\\\\"",
	} {
		d, err := canonical.JSON([]byte(in))
		require.NoError(t, err, in)
		require.Equal(t, want, string(d.Canonical()), in)
	}
}
