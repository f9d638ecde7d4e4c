package main

import (
	"cmp"
	"fmt"
	"runtime/debug"
)

// release is the version that a build without a repository beside it names: -ldflags "-X main.release=v0.1.0".
var release string

type versionCmd struct {
	JSON bool `help:"Print JSON."`
}

// Run runs the command.
func (c versionCmd) Run(e *env) error {
	v := buildVersion()
	if c.JSON {
		return e.printJSON(v)
	}
	fmt.Fprintf(e.stdout, "paidonce %s", v.Version)
	if v.Commit != "" {
		fmt.Fprintf(e.stdout, " (%s)", v.Commit)
	}
	fmt.Fprintf(e.stdout, " %s\n", v.Go)
	return nil
}

// version is what a binary knows about how it was built.
type version struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
}

func buildVersion() version {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version{Version: cmp.Or(release, "(unknown)")}
	}
	v := version{Version: cmp.Or(release, info.Main.Version, "(devel)"), Go: info.GoVersion}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Commit = s.Value[:min(12, len(s.Value))]
		}
		if s.Key == "vcs.modified" && s.Value == "true" && v.Commit != "" {
			v.Commit += ", changed"
		}
	}
	return v
}
