package migrations

// The functions of this package over files that a test writes.
var (
	UpFS          = up
	CheckFS       = check
	InspectFS     = inspect
	FingerprintFS = fingerprint
)

// LockKey is the advisory lock that Up holds.
const LockKey = lockKey
