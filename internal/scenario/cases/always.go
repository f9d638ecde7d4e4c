package cases

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// always notes what breaks a rule that holds in every case. That every code is
// in its list was noted when the answer came.
func (p *player) always(ctx context.Context) error {
	var first401 *Reply
	for i, replies := range p.answers {
		source, webhook := p.sourceOf(i)
		if !webhook {
			continue
		}
		for _, r := range replies {
			switch {
			case r.Code == 401 && first401 == nil:
				first401 = &r
			case r.Code == 401 && string(first401.Body) != string(r.Body):
				p.fail("always: two bodies of 401: %q and %q", first401.Body, r.Body)
			case r.Code == 200 && source.Gateway == "adyen" && string(r.Body) != "[accepted]":
				p.fail("always: requests[%d]: a 200 to adyen has the body %q", i, r.Body)
			case r.Code == 503 && r.Header.Get("Retry-After") == "":
				p.fail("always: requests[%d]: a 503 without Retry-After", i)
			}
		}
	}
	if err := p.refusedLeaveNothing(ctx); err != nil {
		return err
	}
	p.secretsStaySecret()
	for _, broken := range p.Merchant.Violations() {
		p.fail("always: the recording merchant: %s", broken)
	}
	if p.Audit == nil || len(p.Program.Running("work")) == 0 || p.c.deletesRows() {
		return nil
	}
	differences, err := p.Audit(ctx)
	for _, d := range differences {
		p.fail("always: audit: %s", d)
	}
	return err
}

// deletesRows reports whether a step takes events away: then nothing can be folded from them again.
func (c *Case) deletesRows() bool {
	return slices.ContainsFunc(c.Steps, func(s Step) bool { return s.Kind == "delete_rows" })
}

// sourceOf returns the source that a request is for, and whether it is for a
// webhook at all.
func (p *player) sourceOf(i int) (Source, bool) {
	path, _, _ := strings.Cut(p.c.Requests[i].Path, "?")
	id, ok := strings.CutPrefix(path, "/webhooks/")
	return p.c.Setup.sources[strings.TrimSuffix(id, "/")], ok
}

// refusedLeaveNothing looks for the bytes of bodies that were only ever refused.
func (p *player) refusedLeaveNothing(ctx context.Context) error {
	refused := make(map[string]bool) // by body
	for i, replies := range p.answers {
		body := string(p.c.Requests[i].Body)
		for _, r := range replies {
			before, seen := refused[body]
			refused[body] = r.Code >= 400 && r.Code <= 499 && (before || !seen)
		}
	}
	for body, only := range refused {
		if !only || body == "" {
			continue
		}
		kept, err := p.keeps(ctx, []byte(body))
		if err != nil {
			return err
		}
		if kept {
			p.fail("always: a body that was only ever refused is in event_payloads: %.60q", body)
		}
	}
	return nil
}

// secretsStaySecret looks for the secrets of all sources in all logs.
func (p *player) secretsStaySecret() {
	logs := p.Program.Logs()
	secrets := make(map[string]string) // → where it is from
	for id, source := range p.c.Setup.sources {
		for _, secret := range source.secrets() {
			secrets[secret] = id
		}
		if source.Basic != "" {
			secrets[base64.StdEncoding.EncodeToString([]byte(source.Basic))] = id
		}
	}
	for _, step := range p.c.Steps {
		for _, secret := range step.Reload.Secrets {
			secrets[secret] = step.Reload.Source
		}
	}
	for secret, id := range secrets {
		if i := strings.Index(logs, secret); secret != "" && i >= 0 {
			p.fail("always: a secret of source %s is in a log: %s", id, strings.ReplaceAll(lineAt(logs, i), secret, fmt.Sprintf("<%d characters>", len(secret))))
		}
	}
}
