package store_test

import "time"

// How long a test waits for what another backend reports, and how often it looks.
const (
	waitLong = 10 * time.Second
	waitTick = 20 * time.Millisecond
)
