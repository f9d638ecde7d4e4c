//go:build !race

package canonical_test

const slowdown = 1
