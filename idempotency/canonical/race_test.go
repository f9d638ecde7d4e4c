//go:build race

package canonical_test

// slowdown is what the race detector costs at most (its documentation says 2 to 20 times): the promise is made without it.
const slowdown = 20
