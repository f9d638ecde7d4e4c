package migrations

import (
	"context"
	"io/fs"
	"log/slog"
)

// The functions of this package over files that a test writes.
var (
	CheckFS       = check
	InspectFS     = inspect
	FingerprintFS = fingerprint
)

// UpFS is [Up] over files that a test writes.
func UpFS(ctx context.Context, url string, files fs.FS, log *slog.Logger) error {
	_, err := up(ctx, url, files, log)
	return err
}

// LockKey is the advisory lock that Up holds.
const LockKey = lockKey
