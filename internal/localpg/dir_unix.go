//go:build unix

package localpg

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
)

// DefaultDir returns the directory of the cluster that belongs to key, the same
// for every process of this user: in their cache directory, or in the
// system's temporary one if they have none (a service account).
func DefaultDir(key string, getenv func(string) string) string {
	sum := sha256.Sum256([]byte(key))
	name := hex.EncodeToString(sum[:6])
	if base := userCache(getenv); base != "" {
		return filepath.Join(base, "paidonce", "postgres-"+name)
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("paidonce-%d-%s", os.Geteuid(), name))
}

// cacheDir returns the folder for fetched binaries.
func cacheDir(getenv func(string) string) string {
	if base := userCache(getenv); base != "" {
		return filepath.Join(base, "paidonce")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("paidonce-%d-cache", os.Geteuid()))
}

// userCache returns the user's cache directory, making it, or "" if they have none.
//
// Root's is the system's. What is below /root is closed to the user that postgres runs as, and from
// /var/tmp systems delete file by file what nobody has read for a month, which would leave half a cluster.
func userCache(getenv func(string) string) string {
	base := getenv("XDG_CACHE_HOME")
	if os.Geteuid() == 0 {
		base = "/var/cache"
	} else if home := getenv("HOME"); !filepath.IsAbs(base) && filepath.IsAbs(home) {
		base = filepath.Join(home, ".cache")
		if runtime.GOOS == "darwin" {
			base = filepath.Join(home, "Library", "Caches")
		}
	}
	if !filepath.IsAbs(base) || os.MkdirAll(base, 0o700) != nil || unwritable(base) {
		return ""
	}
	return base
}

// unwritable reports whether this user cannot make files in dir.
func unwritable(dir string) bool {
	const write = 2
	return syscall.Access(dir, write) != nil
}

// account is the user that postgres runs as. The zero value is this process's own.
type account struct {
	Name     string
	UID, GID uint32
	Switch   bool // we are root and must become it
}

func (a account) sysProcAttr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{}
	if a.Switch {
		attr.Credential = &syscall.Credential{Uid: a.UID, Gid: a.GID}
	}
	return attr
}

// own gives a file to the account.
func (a account) own(path string) error {
	if !a.Switch {
		return nil
	}
	return os.Lchown(path, int(a.UID), int(a.GID))
}

// postgresAccount picks the user that postgres runs as: it refuses to run as root.
func postgresAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			continue
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			continue
		}
		return account{Name: name, UID: uint32(uid), GID: uint32(gid), Switch: true}, nil
	}
	return account{}, errors.New("localpg: PostgreSQL refuses to run as root, and this system has neither a user " +
		"postgres nor nobody to run it as; run this as another user")
}

// makeDir makes dir if need be, and refuses one that somebody else could write to: its path can be
// guessed, and what is in it is run.
func makeDir(dir string, as account) error {
	mode := fs.FileMode(0o700)
	if as.Switch {
		mode = 0o755 // the account has to pass through to its data
	}
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.MkdirAll(filepath.Dir(d), 0o755); err != nil {
			return fmt.Errorf("localpg: %w", err)
		}
		err := os.Mkdir(d, mode)
		if err == nil {
			err = os.Chmod(d, mode) // in spite of the umask
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("localpg: %w", err)
		}
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("localpg: %w", err)
	}
	stat, _ := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("localpg: %s is not a directory", dir)
	case stat == nil || int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("localpg: %s belongs to another user; remove it or choose another directory", dir)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("localpg: others may write to %s (mode %04o); remove it or choose another directory",
			dir, info.Mode().Perm())
	}
	return reachable(dir, as)
}

// reachable reports, with the folder to blame, why the account cannot enter dir.
func reachable(dir string, as account) error {
	if !as.Switch {
		return nil
	}
	for d := dir; ; d = filepath.Dir(d) {
		info, err := os.Stat(d)
		if err != nil {
			return fmt.Errorf("localpg: %w", err)
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("localpg: the user %s, which postgres runs as because root may not, cannot reach %s: "+
				"%s has mode %04o; choose a directory elsewhere", as.Name, dir, d, info.Mode().Perm())
		}
		if d == filepath.Dir(d) {
			return nil
		}
	}
}
