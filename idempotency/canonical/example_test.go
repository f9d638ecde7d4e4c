package canonical_test

import (
	"errors"
	"fmt"

	"github.com/paidonce/paidonce/idempotency/canonical"
)

// A retry that was written by another library is the same body; another amount is not, and the digests tell where.
func Example() {
	body := func(s string) canonical.Fingerprint {
		f, err := canonical.Body("application/json", []byte(s))
		if err != nil {
			panic(err)
		}
		return f
	}
	first := body(`{"data": {"total": 5000, "currency": "EUR", "name": "Caf\u00e9"}}`)
	retry := body(`{"data":{"currency":"EUR","name":"Café","total":5.0e3}}`)
	other := body(`{"data":{"currency":"EUR","name":"Café","total":5001}}`)
	fmt.Println(first.Sum() == retry.Sum(), first.Sum() == other.Sum())

	key := []byte("derived from a secret, for this idempotency key")
	kept := first.Digests(key) // all that has to be kept of the first body
	fmt.Println(canonical.Differences(kept, other.Digests(key)))
	// Output:
	// true false
	// [/data/total]
}

func ExampleSyntaxError() {
	_, err := canonical.JSON([]byte(`{"data":{"total":5000,"tot\u0061l":1}}`))
	fmt.Println(err)
	var syntax *canonical.SyntaxError
	if errors.As(err, &syntax) {
		fmt.Println(syntax.Reason, syntax.Pointer)
	}
	// Output:
	// two members of one name in an object, at byte 22
	// duplicate_name /data/total
}
