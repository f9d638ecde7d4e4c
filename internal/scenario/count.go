package scenario

import (
	"fmt"
	"strconv"
	"strings"
)

// Count is how often something may have happened: 3, or 2..6 where timing
// decides.
type Count struct{ Min, Max int }

// UnmarshalYAML reads 3 or 2..6.
func (c *Count) UnmarshalYAML(text []byte) error {
	low, high, ranged := strings.Cut(strings.TrimSpace(string(text)), "..")
	var err error
	if c.Min, err = strconv.Atoi(low); err == nil {
		c.Max = c.Min
		if ranged {
			c.Max, err = strconv.Atoi(high)
		}
	}
	if err != nil || c.Min < 0 || c.Max < c.Min {
		return fmt.Errorf("%q is no count: write 3, or 2..6", text)
	}
	return nil
}

// String writes c as it is read.
func (c Count) String() string {
	if c.Min == c.Max {
		return strconv.Itoa(c.Min)
	}
	return fmt.Sprintf("%d..%d", c.Min, c.Max)
}

func (c Count) holds(n int) bool { return n >= c.Min && n <= c.Max }
