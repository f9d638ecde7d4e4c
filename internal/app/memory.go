package app

import "runtime/debug"

// collectLess is the heap's growth, in percent, at which memory is collected. The live heap of a server is small (some
// 15 MiB under load), so Go's 100 collects many times a second: 400 was worth a tenth of the processor.
const collectLess = 400

// tuneMemory sets it, unless GOGC says otherwise.
func tuneMemory() {
	if was := debug.SetGCPercent(collectLess); was != 100 {
		debug.SetGCPercent(was)
	}
}
