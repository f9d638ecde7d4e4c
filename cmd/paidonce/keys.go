package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/idempotency"
)

type keysCmd struct {
	New  keysNewCmd  `cmd:"" help:"Make an API key, and show what of it belongs into the configuration."`
	Show keysShowCmd `cmd:"" help:"Say what became of an Idempotency-Key."`
}

// Help is the text below the flags.
func (keysCmd) Help() string {
	return `API keys open /v1 to a merchant's back end. An Idempotency-Key is what that back end sends with a request which must not take effect twice.

Examples:

    paidonce keys new --name checkout
    paidonce keys new --name support --role read --role operate
    paidonce keys show 8e03978e-40d5-43e8-bc93-6894a57f9324 --account shop`
}

type keysNewCmd struct {
	Name string   `default:"new" help:"What it is called in the configuration and in logs (default: ${default})."`
	Role []string `enum:"read,write,operate" default:"read,write" help:"What it may do: read (look), write (what a shop does) or operate (link, dismiss, replay, retry). None implies another. Repeatable (default: ${default})."`
	JSON bool     `help:"Print JSON."`
}

// Help is the text below the flags.
func (keysNewCmd) Help() string {
	return `Nothing is written anywhere: put the entry under accounts.NAME.api_keys and reload (SIGHUP), and give the key to the program that is to use it. It is not shown again.`
}

// keyBytes is how much of a key is chance: 256 bits, so that its hash can be stored without salt or stretching.
const keyBytes = 32

// newKey is an API key, and what of it is kept.
type newKey struct {
	Key    string   `json:"key"`
	Name   string   `json:"name"`
	SHA256 string   `json:"sha256"`
	Roles  []string `json:"roles"`
}

// Run runs the command.
func (c keysNewCmd) Run(_ context.Context, e *env) error {
	if strings.TrimSpace(c.Name) == "" || strings.ContainsFunc(c.Name, func(r rune) bool { return r < ' ' }) {
		return usage("--name: give it a name of printable characters")
	}
	chance := make([]byte, keyBytes)
	_, _ = rand.Read(chance) // never fails
	k := newKey{Key: "pk_" + base64.RawURLEncoding.EncodeToString(chance), Name: c.Name}
	sum := sha256.Sum256([]byte(k.Key))
	k.SHA256 = hex.EncodeToString(sum[:])
	for _, role := range []string{"read", "write", "operate"} {
		if slices.Contains(c.Role, role) {
			k.Roles = append(k.Roles, role)
		}
	}
	if c.JSON {
		return e.printJSON(k)
	}
	fmt.Fprintf(e.stdout, "%s\n\nThis is the key; it is not shown again. Of it, the configuration holds:\n\n      - name: %q\n        sha256: %s\n        roles: [%s]\n",
		k.Key, k.Name, k.SHA256, strings.Join(k.Roles, ", "))
	return nil
}

type keysShowCmd struct {
	Key     string `arg:"" help:"The Idempotency-Key, as it was sent."`
	Account string `required:"" placeholder:"NAME" help:"The account that sent it."`
	JSON    bool   `help:"Print JSON."`
}

// Help is the text below the flags.
func (keysShowCmd) Help() string {
	return `Says whether the request was done, what it made, and what the next call with the key would get. Nothing of its body or answer is shown.`
}

// Run runs the command.
func (c keysShowCmd) Run(ctx context.Context, e *env) error {
	st, done, err := e.openStore(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := e.known(ctx, st, c.Account, ""); err != nil {
		return err
	}
	keys, err := idempotency.NewStore(st.Pool(), idempotency.StoreOptions{})
	if err != nil {
		return err
	}
	r, err := keys.Inspect(ctx, api.ScopeOf(c.Account), c.Key)
	if errors.Is(err, idempotency.ErrNotFound) {
		return fmt.Errorf("account %s has used no Idempotency-Key %q, or it has expired", c.Account, c.Key)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(api.KeyOf(r))
	}
	e.showKey(r)
	return nil
}

var (
	nextCalls = map[string]string{
		"replay":             "the same request again gets the first answer, and takes no effect",
		"result_unavailable": "the same request again takes no effect, and hears that the answer was not kept",
		"in_progress":        "the same request again hears that it is being executed, and when to come back",
		"execute":            "the same request again is executed",
	}
	otherCalls = map[string]string{
		"key_reused":  "another request with this key is refused",
		"in_progress": "another request with this key is refused while this one is being executed",
		"execute":     "another request may use this key",
	}
)

func (e *env) showKey(r idempotency.Record) {
	lock := ""
	if r.State == "PROCESSING" {
		lock = fmt.Sprintf("said to live %s ago, taken to be dead after %s", r.LockAge.Round(1e6), r.LockTimeout)
	}
	status := ""
	if r.ResponseCode != 0 {
		status = fmt.Sprint(r.ResponseCode)
	}
	resource := ""
	if r.ResourceType != "" {
		resource = r.ResourceType + " " + r.ResourceID.String()
	}
	expiry := when(r.ExpiresAt)
	if r.Expired {
		expiry += " (over)"
	}
	table(e.stdout, []string{"STATE", strings.ToLower(r.State)}, [][]string{
		{"request", r.Method + " " + r.Path},
		{"attempts", fmt.Sprint(r.Attempts)},
		{"lock", lock},
		{"answer", status},
		{"made", resource},
		{"last error", r.LastError},
		{"policy", r.Policy},
		{"first used", when(r.CreatedAt)},
		{"completed", when(r.CompletedAt)},
		{"expires", expiry},
		{"next", nextCalls[r.Next]},
		{"", otherCalls[r.NextOther]},
	})
}
