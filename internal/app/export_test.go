package app

// TuneMemory lets tests of another package call what every process does first.
var TuneMemory = tuneMemory
