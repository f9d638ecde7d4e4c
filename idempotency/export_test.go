package idempotency

// Statements whose plans are looked at.
const (
	SQLSweep = sqlSweep
	SQLReap  = sqlReap
	SQLClaim = sqlClaim
)
