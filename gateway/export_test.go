package gateway

import (
	"time"

	"github.com/tidwall/gjson"
)

// Helpers that gateway files share, for the tests of what they promise.

func Decimal(raw, cur string) (int64, error) { return decimal(value{gjson.Parse(raw)}, cur) }

func Major(n int64, cur string) (string, error) { return major(n, cur) }

func LocalTime(raw, layout, zone string) time.Time {
	return localTime(value{gjson.Parse(raw)}, layout, zone)
}

func KeysOfRSA(name, seed string) (public, private string) { return exampleRSA(name, seed) }

func KeysOfJWK(name, seed, id string) (public, private string) { return exampleJWK(name, seed, id) }
