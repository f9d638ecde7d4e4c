package gateway_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

// TestFixtures reads samples that gateways and their libraries published, if
// PAIDONCE_FIXTURES names a folder of them: {gateway}/*.json; for adyen also single
// items ({name}.item.json), for paddle also what its events carry
// ({type}.data.json), and api.*.json for what an API answers. They are theirs, so
// they are not in this repository. Each must mean what fixtures says; a file that it
// does not name fails.
func TestFixtures(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("PAIDONCE_FIXTURES")
	if dir == "" {
		t.Skip("PAIDONCE_FIXTURES names no folder of published samples")
	}
	for _, g := range gateway.All() {
		files, err := filepath.Glob(filepath.Join(dir, g.Name, "*.json"))
		require.NoError(t, err)
		for _, file := range files {
			name := g.Name + "/" + strings.TrimSuffix(filepath.Base(file), ".json")
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				body, err := os.ReadFile(file)
				require.NoError(t, err)
				want, known := fixtures[name]
				require.True(t, known, "what does it mean? It is read as\n%s", said(readFixture(t, g, name, body)))
				if why, no := strings.CutPrefix(want, "none: "); no {
					require.NotEmpty(t, why)
					return
				}
				require.Equal(t, want, said(readFixture(t, g, name, body)))
			})
		}
	}
}

// readFixture reads a sample the whole way, of a source of the mode that it is of.
func readFixture(t *testing.T, g *gateway.Gateway, name string, body []byte) (evs []order.Event, asked []gateway.Object, err error) {
	t.Helper()
	switch {
	case strings.HasSuffix(name, ".item"):
		body = fmt.Appendf(nil, `{"live":"false","notificationItems":[{"NotificationRequestItem":%s}]}`, body)
	case strings.HasSuffix(name, ".data"):
		typ := strings.TrimSuffix(strings.TrimPrefix(name, g.Name+"/"), ".data")
		body = fmt.Appendf(nil, `{"event_id":"evt_1","event_type":%q,"occurred_at":%s,"notification_id":"ntf_1","data":%s}`,
			typ, orElse(gjson.GetBytes(body, "updated_at").Raw, `"2024-01-01T00:00:00Z"`), body)
	}
	for _, mode := range []string{gateway.Test, gateway.Live} {
		source := sourceFor(t, g)
		source.Mode, source.MerchantAccounts, source.Basic = mode, nil, ""
		if strings.HasPrefix(filepath.Base(name), "api.") {
			evs, err = g.Fetched(source, cases[g.Name].object(body), gateway.Answer{Body: body, Started: now})
		} else {
			var d gateway.Delivery
			d, err = g.Deliver(source, body, "", now)
			if err != nil {
				return nil, nil, err
			}
			if evs, err = g.Events(source, d); err == nil {
				asked, err = g.Objects(source, d)
			}
		}
		if err != nil || !strings.Contains(said(evs, asked, nil), "of another mode") {
			return evs, asked, err
		}
	}
	return evs, asked, err
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// said is what a delivery says, in one line.
func said(evs []order.Event, asked []gateway.Object, err error) string {
	var parse *gateway.ParseError
	switch {
	case errors.As(err, &parse):
		return "unreadable: " + parse.Code
	case err != nil:
		return "unsignable"
	}
	var all []string
	for _, ev := range evs {
		var facts []string
		for _, f := range ev.Facts {
			words := []string{string(f.Kind)}
			if f.Ref != "" {
				words = append(words, "by id")
			}
			if f.Status != "" {
				words = append(words, string(f.Status))
			}
			switch {
			case f.Amount == order.All:
				words = append(words, "all")
			case f.Currency != "":
				words = append(words, order.Format(f.Amount, f.Currency), f.Currency)
			}
			if f.Misfit != "" {
				words = append(words, "of another "+string(f.Misfit))
			}
			facts = append(facts, strings.Join(words, " "))
		}
		text := strings.Join(facts, ", ")
		switch {
		case ev.Broken != "":
			text = "broken: " + ev.Broken
		case ev.Ignored != "":
			text = "ignored: " + ev.Ignored
		case ev.Fetch != "":
			text = "waits"
		}
		all = append(all, text)
	}
	for _, o := range asked {
		all = append(all, "ask "+o.Kind)
	}
	return strings.Join(all, " | ")
}
