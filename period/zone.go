package period

import (
	"fmt"
	"strings"
	"time"
)

// LoadZone returns the time zone of an IANA name: "Europe/Berlin", "UTC". The machine's own zone is none that has a
// name, and "right/…" and "posix/…" are other ways to count seconds. What it knows comes from the machine, or from
// package time/tzdata where the program has it.
func LoadZone(name string) (*time.Location, error) {
	if name == "" || name == "Local" || strings.HasPrefix(name, "right/") || strings.HasPrefix(name, "posix/") {
		return nil, fmt.Errorf("period: %q is no IANA name of a time zone", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("period: %q is no IANA name of a time zone", name)
	}
	return zone, nil
}
