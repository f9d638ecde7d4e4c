package scenario

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

// request is a delivery that is ready to be sent, any number of times.
type request struct {
	url    string
	header http.Header
	body   []byte
	events int // how many the body holds
	status int // expected
	where  string
	change *change // of the gateway's API before it is sent; nil: none
}

// request makes the signed request of a delivery. n numbers the scenario's
// deliveries, so that each has an event id of its own.
func (p *play) request(d *Delivery, n int) (*request, error) {
	name := d.sourceName()
	source := p.actor.sources[name]
	g, ok := gateway.Lookup(source.Gateway)
	if !ok {
		return nil, fmt.Errorf("there is no gateway %q", source.Gateway)
	}
	signer := gatewaySource(p.scenario.Name, name, source, []string{cmp.Or(d.Secret, source.Secrets[0])})
	id := cmp.Or(d.ID, fmt.Sprintf("evt_%s_%d", p.scenario.Name, n))
	body, err := p.body(g, signer, d, id)
	if err != nil {
		return nil, err
	}
	r := &request{
		url: p.target.URL + "/webhooks/" + signer.ID, header: http.Header{"Content-Type": {"application/json"}},
		body: body, events: 1, status: cmp.Or(d.Status, http.StatusOK), where: fmt.Sprintf("delivery %d to %s", n, name),
	}
	if items := gjson.GetBytes(body, "notificationItems.#"); g.Name == "adyen" && items.Exists() {
		r.events = int(items.Int())
	}
	if !d.Unsigned {
		signed, err := g.Deliver(signer, body, standardID(g, id), p.target.Now().Add(-d.SignedAgo))
		if err != nil {
			return nil, err
		}
		r.header, r.body = signed.Header, signed.Body
		if signed.Query != "" {
			r.url += "?" + signed.Query
		}
	}
	if g.Announces() { // what its API answers is in no delivery
		events, _ := g.Events(signer, gateway.Delivery{Method: http.MethodPost, Query: queryOf(r.url), Header: r.header, Body: r.body})
		r.events = len(events)
	}
	if r.change, err = p.change(g, name, d, id, n); err != nil {
		return nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(d.Tamper)) {
		if err := r.tamper(path, d.Tamper[path]); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func queryOf(address string) string {
	_, query, _ := strings.Cut(address, "?")
	return query
}

// standardID is the id of a message where it is signed in a header.
func standardID(g *gateway.Gateway, id string) string {
	if g.Name == "standard" {
		return id
	}
	return ""
}

// body makes what is signed.
func (p *play) body(g *gateway.Gateway, source gateway.Source, d *Delivery, id string) ([]byte, error) {
	switch {
	case d.Body != "":
		return []byte(p.fill(d.Body, &d.Item, id)), nil
	case d.Payload != "":
		data, err := os.ReadFile(filepath.Join(p.scenario.dir, d.Payload))
		if err != nil {
			return nil, err
		}
		return []byte(p.fill(string(data), &d.Item, id)), nil
	case len(d.Batch) > 0:
		items := []byte("[]")
		var whole []byte
		for i := range d.Batch {
			one, err := g.Sample(p.sample(source, &d.Batch[i], id))
			if err != nil {
				return nil, err
			}
			if items, err = sjson.SetRawBytes(items, "-1", []byte(gjson.GetBytes(one, "notificationItems.0").Raw)); err != nil {
				return nil, err
			}
			whole = one
		}
		return sjson.SetRawBytes(whole, "notificationItems", items)
	default:
		return g.Sample(p.sample(source, &d.Item, id))
	}
}

// sample asks a gateway for the body of an item.
func (p *play) sample(source gateway.Source, i *Item, id string) gateway.SampleRequest {
	amount := p.amountOf(i)
	return gateway.SampleRequest{
		Source: source, Type: i.Type, ID: id, Reference: i.Order, Payment: i.Payment, Ref: i.Ref, Amount: amount,
		Mode: i.Mode, At: p.began.Add(i.At), Set: i.Set,
	}
}

// amountOf is what an item is about: its own amount, or that of its order.
func (p *play) amountOf(i *Item) order.Amount {
	amount := p.totals[i.Order]
	if amount.Currency == "" {
		amount = order.Amount{Minor: 5000, Currency: "EUR"}
	}
	if i.Amount != nil {
		amount.Minor = *i.Amount
	}
	if i.Currency != "" {
		amount.Currency = i.Currency
	}
	return amount
}

// fill puts values into the places of a payload file.
func (p *play) fill(text string, i *Item, id string) string {
	amount, at := p.amountOf(i), p.began.Add(i.At)
	return strings.NewReplacer(
		"{{id}}", id, "{{order}}", i.Order, "{{payment}}", i.Payment, "{{ref}}", i.Ref,
		"{{amount}}", strconv.FormatInt(amount.Minor, 10), "{{currency}}", amount.Currency,
		"{{created}}", strconv.FormatInt(at.Unix(), 10), "{{date}}", at.UTC().Format(time.RFC3339),
	).Replace(text)
}

// tamper overwrites a value of a request that is signed: of its query (?name), a
// header (@Name), or the body, which is JSON or a form.
func (r *request) tamper(path, value string) error {
	if name, ok := strings.CutPrefix(path, "@"); ok {
		r.header.Set(name, value)
		return nil
	}
	if name, ok := strings.CutPrefix(path, "?"); ok {
		before, raw, _ := strings.Cut(r.url, "?")
		query, err := overwriteForm(raw, name, value)
		r.url = before + "?" + query
		return err
	}
	var err error
	if mediaType, _, _ := mime.ParseMediaType(r.header.Get("Content-Type")); mediaType == "application/x-www-form-urlencoded" {
		var form string
		form, err = overwriteForm(string(r.body), path, value)
		r.body = []byte(form)
		return err
	}
	r.body, err = overwrite(r.body, path, value)
	return err
}

// overwriteForm sets a value of a form or a query.
func overwriteForm(text, name, value string) (string, error) {
	form, err := url.ParseQuery(text)
	switch {
	case err != nil:
		return text, fmt.Errorf("tamper: %w", err)
	case !form.Has(name):
		return text, fmt.Errorf("tamper: there is nothing at %q", name)
	case form.Get(name) == value:
		return text, fmt.Errorf("tamper: %q is %s already", name, value)
	}
	form.Set(name, value)
	return form.Encode(), nil
}

// overwrite sets a value of a JSON text: as a string where a string stood, else
// as JSON if it is some.
func overwrite(body []byte, path, value string) ([]byte, error) {
	old := gjson.GetBytes(body, path)
	if !old.Exists() {
		return nil, fmt.Errorf("tamper: there is nothing at %q", path)
	}
	raw := []byte(value)
	if old.Type == gjson.String || !json.Valid(raw) {
		raw = gjson.AppendJSONString(nil, value)
	}
	changed, err := sjson.SetRawBytes(body, path, raw)
	if err == nil && bytes.Equal(changed, body) {
		return nil, fmt.Errorf("tamper: %q is %s already", path, value)
	}
	return changed, err
}

// send sends a request once and returns the code of the answer.
func (p *play) send(ctx context.Context, r *request) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(r.body))
	if err != nil {
		return 0, err
	}
	req.Header = r.header.Clone()
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, err
}

// register registers an order as the merchant would.
func (p *play) register(ctx context.Context, o *Order) error {
	total := order.Amount{Minor: o.Amount, Currency: cmp.Or(o.Currency, "EUR")}
	p.totals[o.Ref] = total
	return p.post(ctx, "register", o.Ref, "/v1/orders", o.Status, map[string]any{
		"amount": total.Minor, "currency": total.Currency, "metadata": map[string]any{"external_ref": o.Ref},
	})
}

// recur has an order made per period, as the merchant would.
func (p *play) recur(ctx context.Context, r *Recurrence) error {
	data := map[string]any{
		"amount": r.Amount, "currency": cmp.Or(r.Currency, "EUR"), "metadata": map[string]any{"external_ref": r.Ref},
		"interval": r.Interval, "every": cmp.Or(r.Every, 1), "starts_on": r.StartsOn,
	}
	if r.EndsAfter > 0 {
		data["ends_after"] = r.EndsAfter
	}
	return p.post(ctx, "recur", r.Ref, "/v1/recurrences", r.Status, data)
}

// post sends a command of the merchant's.
func (p *play) post(ctx context.Context, what, ref, path string, want int, data map[string]any) error {
	body, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.target.URL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+p.actor.apiKey)
	req.Header.Set("Idempotency-Key", uuid.NewString()) // a repeat by another request: the reference alone says so
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	if want = cmp.Or(want, http.StatusCreated); resp.StatusCode != want {
		p.wrong("%s %s: answered %d, expected %d: %s", what, ref, resp.StatusCode, want, bytes.TrimSpace(answer))
	}
	return nil
}
