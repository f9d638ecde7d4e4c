package dev

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// File is the configuration that Run makes where there is none, in the working
// directory.
const File = ".paidonce/dev.yaml"

// What is kept beside it.
const (
	DatabaseFile = ".paidonce/database_url" // where its Postgres is, this time
	keyFile      = ".paidonce/api_key"
)

var fileTemplate = template.Must(template.New("dev.yaml").Parse(`# Made by paidonce dev, with secrets of its own that are worth nothing elsewhere.
# Change it as you like; delete the folder to begin anew.

database_url: file:database_url # written at every start
listen: {{.Listen}}
admin_listen: {{.Admin}}
log: {format: text}

accounts:
  dev:
    api_keys:
      - {name: dev, sha256: {{.KeySum}}, roles: [read, write, operate]} # the key is in api_key
    callback: # a merchant that paidonce dev runs here, and that prints what it is told
      url: http://{{.Merchant}}/
      secret: {{.Callback}}
      allow_private: true
    sources:
      stripe:
        gateway: stripe
        mode: test
        secrets: [{{.Stripe}}]
      adyen:
        gateway: adyen
        mode: test
        hmac_keys: [{{.Adyen}}]
        basic: "paidonce:{{.Basic}}"
        merchant_accounts: [PaidonceDev]
      standard:
        gateway: standard
        mode: test
        secrets: [{{.Standard}}]
        map:
          type: /type
          payment: /data/payment
          reference: /data/order
          amount: /data/amount
          currency: /data/currency
          facts:
            payment.authorized: authorized
            payment.succeeded: captured
            payment.refunded: refunded
`))

// makeFolder makes the configuration of dev, unless it is there. The API key
// is returned when it is new.
func makeFolder(ctx context.Context) (made bool, apiKey string, err error) {
	if _, err := os.Stat(File); !errors.Is(err, fs.ErrNotExist) {
		return false, "", err
	}
	dir := filepath.Dir(File)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, "", fmt.Errorf("make the folder of dev: %w", err)
	}
	apiKey = "pk_dev_" + randomHex(20)
	sum := sha256.Sum256([]byte(apiKey))
	var text bytes.Buffer
	err = fileTemplate.Execute(&text, map[string]string{
		"Listen": freeAddress(ctx, "127.0.0.1:8080"), "Admin": freeAddress(ctx, "127.0.0.1:9090"), "Merchant": freeAddress(ctx, "127.0.0.1:0"),
		"KeySum": hex.EncodeToString(sum[:]), "Callback": standardSecret(), "Standard": standardSecret(),
		"Stripe": "whsec_" + randomHex(24), "Adyen": strings.ToUpper(randomHex(32)), "Basic": randomHex(12),
	})
	if err != nil {
		return false, "", err
	}
	// The configuration comes last: it says that the folder is whole.
	for _, f := range []struct{ name, text string }{
		{filepath.Join(dir, ".gitignore"), "*\n"}, {keyFile, apiKey + "\n"}, {File, text.String()},
	} {
		if err := os.WriteFile(f.name, []byte(f.text), 0o600); err != nil {
			return false, "", fmt.Errorf("make the folder of dev: %w", err)
		}
	}
	return true, apiKey, nil
}

// freeAddress is the address wanted if nobody listens there, else one with a
// free port.
func freeAddress(ctx context.Context, wanted string) string {
	for _, address := range []string{wanted, "127.0.0.1:0"} {
		ln, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err == nil {
			defer func() { _ = ln.Close() }()
			return ln.Addr().String()
		}
	}
	return wanted // serve will say what is wrong with it
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

func standardSecret() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return "whsec_" + base64.StdEncoding.EncodeToString(b)
}
