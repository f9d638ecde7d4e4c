package idempotency

// Statements whose plans are looked at.
const (
	SQLSweep = sqlSweep
	SQLReap  = sqlReap
	SQLClaim = sqlClaim
)

// What reads outside bytes.
var (
	ParseKey  = parseKey
	FitsJSONB = fitsJSONB
)
