package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/paidonce/paidonce/internal/app"
)

type healthCmd struct {
	Work bool   `help:"Ask work, not serve."`
	URL  string `arg:"" optional:"" help:"Where to ask (default: /readyz of the admin listener of the configuration)."`
}

// Help is the text below the flags.
func (healthCmd) Help() string {
	return `Exits with 0 if the process answers that it is ready, else with 1. It is what a container's health check can call.

Example:

    paidonce health --work`
}

// Run runs the command.
func (c healthCmd) Run(ctx context.Context, e *env) error {
	url := c.URL
	if url == "" {
		cfg, err := e.load()
		if err != nil {
			return err
		}
		listen := cfg.AdminListen
		if c.Work {
			listen = cfg.Workers.AdminListen
		}
		if listen == "off" {
			return usage("the admin listener is off in the configuration; name a URL")
		}
		url = app.URL(listen) + "/readyz"
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return usage("%s is no URL that can be asked", url)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("nobody answers: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", url, err)
	}
	fmt.Fprintln(e.stdout, strings.TrimSpace(string(body)))
	if resp.StatusCode != http.StatusOK {
		return errFailed
	}
	return nil
}
