package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// bearer is the name of the security scheme.
const bearer = "api_key"

const about = `What a back end says about its orders, and asks about them.

Bodies are JSON: ` + "`{\"data\": …}`" + ` both ways, and ` + "`{\"data\": […], \"next\": …}`" + ` for lists, where next is the cursor of the next page, or null.
Amounts are integers of the currency's minor units. Times are RFC 3339.

Every error is a problem document (RFC 9457) with a code for programs; codes keep their meaning for ever. What a request says
that is not known here, in a member or a parameter, is refused and not ignored.

Every request shows an API key: ` + "`Authorization: Bearer …`" + `. A key has roles, and none implies another: read (look), write (what a shop does),
operate (what a person decides: link, dismiss, replay, retry, resolve).`

// newDocument begins the document that endpoints are added to.
func (a *API) newDocument() {
	registry := huma.NewMapRegistry("#/components/schemas/", schemaName)
	for t, words := range map[reflect.Type]reflect.Type{
		reflect.TypeFor[order.State]():        reflect.TypeFor[stateWord](),
		reflect.TypeFor[order.Told]():         reflect.TypeFor[toldWord](),
		reflect.TypeFor[order.Effect]():       reflect.TypeFor[effectWord](),
		reflect.TypeFor[order.EffectState]():  reflect.TypeFor[effectStateWord](),
		reflect.TypeFor[store.Outcome]():      reflect.TypeFor[outcomeWord](),
		reflect.TypeFor[order.IncomeKind]():   reflect.TypeFor[incomeKindWord](),
		reflect.TypeFor[store.IncomeStatus](): reflect.TypeFor[incomeStatusWord](),

		reflect.TypeFor[order.MovementKind]():      reflect.TypeFor[movementKindWord](),
		reflect.TypeFor[store.TransactionStatus](): reflect.TypeFor[transactionStatusWord](),
		reflect.TypeFor[store.ReconcileCause]():    reflect.TypeFor[reconcileCauseWord](),
		reflect.TypeFor[store.ReconcileResult]():   reflect.TypeFor[reconcileResultWord](),
	} {
		registry.RegisterTypeAlias(t, words)
	}
	a.schemas = &schemas{registry: registry, patterns: map[string]*regexp.Regexp{}}
	a.huma = huma.NewAPI(huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Paidonce", Version: "1", Description: about,
				License: &huma.License{Name: "Apache 2.0", Identifier: "Apache-2.0"},
				Contact: &huma.Contact{Name: "Paidonce", URL: "https://github.com/paidonce/paidonce"},
			},
			Servers: []*huma.Server{{URL: "/", Description: "The server that this document comes from."}},
			Components: &huma.Components{
				Schemas: registry,
				SecuritySchemes: map[string]*huma.SecurityScheme{bearer: {
					Type: "http", Scheme: "bearer", Description: "An API key of your account. Its roles say which endpoints it opens.",
				}},
				Responses: map[string]*huma.Response{},
			},
			Tags: []*huma.Tag{
				{Name: tagOrders, Description: "What is sold, and how it stands."},
				{Name: tagRecurrences, Description: "What comes back: one order per period."},
				{Name: tagEvents, Description: "What gateways have sent, and what it did."},
				{Name: tagIncomes, Description: "Money that you received outside of gateways."},
				{Name: tagTransactions, Description: "Calls to gateways that move money: captures, refunds, voids."},
				{Name: tagEffects, Description: "What your callback is called with."},
				{Name: tagAttention, Description: "What needs a person."},
				{Name: tagReconciliation, Description: "What webhooks lost, and gateways were asked about."},
				{Name: tagKeys, Description: "What became of requests that were sent with a key."},
			},
		},
		Formats: map[string]huma.Format{"application/json": {
			Marshal:   huma.DefaultJSONFormat.Marshal,
			Unmarshal: json.Unmarshal,
		}},
		DefaultFormat: "application/json",
	}, adapter{a, a.router})
}

// schemaName names the schema of a Go type: orderDoc is Order, dataOf[orderDoc] is OrderData, pageOf[orderDoc] is OrderPage.
func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name := t.Name()
	if name == "" {
		name = hint
	}
	generic, of, _ := strings.Cut(strings.TrimSuffix(name, "]"), "[")
	of = of[strings.LastIndexAny(of, "./")+1:]
	word := func(s string) string {
		s = strings.TrimSuffix(s, "Doc")
		if s == "" {
			return s
		}
		return strings.ToUpper(s[:1]) + s[1:]
	}
	return word(of) + strings.TrimSuffix(word(generic), "Of")
}

// document completes what huma has written down about an operation: the errors, the other successes, and examples.
func (a *API) document(op *huma.Operation, e *endpoint) {
	success := op.Responses[strconv.Itoa(e.Status)]
	delete(op.Responses, "default")
	if e.Response != "" {
		success.Content["application/json"].Example = json.RawMessage(e.Response)
	}
	for _, status := range e.Also {
		other := *success
		other.Description = http.StatusText(status)
		op.Responses[strconv.Itoa(status)] = &other
	}
	if op.RequestBody != nil {
		op.RequestBody.Required = true
		if e.Request != "" {
			op.RequestBody.Content["application/json"].Example = json.RawMessage(e.Request)
		}
	}
	if e.Idempotency.protected {
		documentKey(op)
	}
	common, own := byStatus(codesOf(op, e)), byStatus(e.Codes)
	for status, codes := range common {
		r := a.problemResponse(status, codes)
		if len(own[status]) == 0 {
			r = a.shared(problemName(status, op.Method != http.MethodGet, e.Idempotency.protected), r)
		}
		op.Responses[strconv.Itoa(status)] = r
	}
}

// byStatus groups errors by the statuses that they are answered with.
func byStatus(codes []Code) map[int][]Code {
	by := map[int][]Code{}
	for _, c := range codes {
		by[c.Status()] = append(by[c.Status()], c)
		if c == idempotency.CodeFailed {
			by[http.StatusInternalServerError] = []Code{c}
		}
	}
	return by
}

// documentKey documents the Idempotency-Key header, and what the answers say of it.
func documentKey(op *huma.Operation) {
	op.Parameters = append(op.Parameters, &huma.Param{
		Name: idempotency.HeaderKey, In: "header",
		Description: "Of your own making, another for every request that is to take effect by itself: 1 to 255 printable ASCII characters, such as a UUID. " +
			"A repeat with the same key and the same body takes no effect, and is answered as the first was. Whether it may be missing is a setting of the account.",
		Schema:  &huma.Schema{Type: huma.TypeString},
		Example: "8e03978e-40d5-43e8-bc93-6894a57f9324",
	})
	for status, r := range op.Responses {
		if status >= "300" {
			continue
		}
		if r.Headers == nil {
			r.Headers = map[string]*huma.Param{}
		}
		r.Headers[idempotency.HeaderReplayed] = &huma.Param{
			Description: "true on an answer that an earlier call with the key has got; absent otherwise.", Schema: &huma.Schema{Type: huma.TypeString},
		}
		r.Headers[idempotency.HeaderStatus] = &huma.Param{
			Description: "What the key has done: executed, replayed, ignored or in-progress; absent without a key.", Schema: &huma.Schema{Type: huma.TypeString},
		}
	}
}

// Errors that operations have without declaring them.
var (
	anyCodes  = []Code{CodeUnauthorized, CodeForbidden, CodeRateLimited, CodeInvalidParameter, CodeUnavailable}
	bodyCodes = []Code{CodeUnsupportedMediaType, CodeBodyTooLarge, CodeBodyTooSlow, CodeBodyCutShort, CodeInvalidJSON, CodeInvalidBody}
)

// codesOf are all errors that an operation can have.
func codesOf(op *huma.Operation, e *endpoint) []Code {
	codes := slices.Clone(anyCodes)
	if op.Method != http.MethodGet {
		codes = append(codes, bodyCodes...)
	}
	if e.Idempotency.protected {
		codes = append(codes, keyCodes...)
	}
	codes = append(codes, e.Codes...)
	slices.Sort(codes)
	return slices.Compact(codes)
}

// problemName names the errors of one status of all operations that declare none of their own there: a new code does
// not change it, and with it the types of generated clients.
func problemName(status int, body, key bool) string {
	name := strings.ReplaceAll(http.StatusText(status), " ", "")
	if body && len(byStatus(bodyCodes)[status]) > 0 {
		name += "Body"
	}
	if key && len(byStatus(keyCodes)[status]) > 0 {
		name += "Key"
	}
	return name
}

// shared refers to a response that many operations have.
func (a *API) shared(name string, r *huma.Response) *huma.Response {
	a.huma.OpenAPI().Components.Responses[name] = r
	return &huma.Response{Ref: "#/components/responses/" + name}
}

// problemResponse documents the errors of one status, each with an example.
func (a *API) problemResponse(status int, codes []Code) *huma.Response {
	var text strings.Builder
	examples := map[string]*huma.Example{}
	for _, c := range codes {
		fmt.Fprintf(&text, "`%s`: %s\n\n", c, meanings[c].text)
		p := problem(c, meanings[c].text)
		switch c {
		case CodeInvalidBody:
			p.Errors = []FieldError{{Pointer: "/data/amount", Code: "required", Detail: "is missing"}}
		case CodeInvalidParameter:
			p.Errors = []FieldError{{Parameter: "limit", Code: "too_large", Detail: "must be at most 1000"}}
		case CodePossibleDuplicate:
			id := uuid.MustParse("0199a1b2-0000-7000-8000-000000000002")
			p.Resource = &resourceDoc{Type: resourceIncome, ID: id.String(), Href: ResourceURL(resourceIncome, id)}
		}
		examples[string(c)] = &huma.Example{Value: p}
	}
	r := &huma.Response{
		Description: strings.TrimSpace(text.String()),
		Content: map[string]*huma.MediaType{"application/problem+json": {
			Schema:   a.schemas.registry.Schema(reflect.TypeFor[Problem](), true, ""),
			Examples: examples,
		}},
	}
	switch {
	case status == http.StatusServiceUnavailable, status == http.StatusTooManyRequests, slices.Contains(codes, idempotency.CodeKeyInProgress):
		r.Headers = map[string]*huma.Param{"Retry-After": {
			Description: "Seconds to wait.", Schema: &huma.Schema{Type: huma.TypeInteger},
		}}
	case status == http.StatusUnauthorized:
		r.Headers = map[string]*huma.Param{"WWW-Authenticate": {Schema: &huma.Schema{Type: huma.TypeString}}}
	}
	return r
}

// Schema documents the codes there are.
func (Code) Schema(huma.Registry) *huma.Schema {
	return words(Codes(), "For programs; keeps its meaning for ever.")
}

type (
	stateWord       string
	toldWord        string
	effectWord      string
	effectStateWord string
	outcomeWord     string
)

// Schema documents the states there are.
func (stateWord) Schema(huma.Registry) *huma.Schema { return words(order.States(), "") }

// Schema documents what a merchant can have been told.
func (toldWord) Schema(huma.Registry) *huma.Schema {
	return words([]order.Told{order.ToldNothing, order.ToldHeld, order.ToldFulfilled, order.ToldRevoked}, "")
}

// Schema documents the effects there are.
func (effectWord) Schema(huma.Registry) *huma.Schema {
	return words([]order.Effect{order.EffectFulfil, order.EffectHold, order.EffectRelease, order.EffectRevoke}, "")
}

// Schema documents what can become of an effect.
func (effectStateWord) Schema(huma.Registry) *huma.Schema {
	return words([]order.EffectState{
		order.EffectOpen, order.EffectClaimed, order.EffectDone, order.EffectCanceled, order.EffectAssumed, order.EffectDead,
	}, "")
}

// Schema documents what an event can have done.
func (outcomeWord) Schema(huma.Registry) *huma.Schema {
	return words([]store.Outcome{store.Applied, store.NoChange, store.Waiting, store.Ignored, store.Flagged, store.Quarantined}, "")
}

func words[T ~string](all []T, text string) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString, Description: text}
	for _, w := range all {
		s.Enum = append(s.Enum, string(w))
	}
	return s
}

// serveDocument serves the document to everybody: it is the same for all, and holds nothing that is anybody's.
func (a *API) serveDocument() error {
	for _, unused := range []string{"ErrorModel", "ErrorDetail"} { // huma's own; nobody is answered with them
		delete(a.schemas.registry.Map(), unused)
	}
	doc, err := a.Document()
	if err != nil {
		return err
	}
	yaml, err := a.huma.OpenAPI().YAML()
	if err != nil {
		return fmt.Errorf("write the OpenAPI document: %w", err)
	}
	for path, body := range map[string][]byte{"/v1/openapi.json": doc, "/v1/openapi.yaml": yaml} {
		h := a.observe(path)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			send(w, http.StatusOK, map[bool]string{true: "application/openapi+json", false: "application/openapi+yaml"}[strings.HasSuffix(path, "json")], body)
		}))
		a.router.Method(http.MethodGet, path, h)
		a.router.Method(http.MethodHead, path, h)
	}
	return nil
}

// Document returns the OpenAPI 3.1 document of the API, in JSON.
func (a *API) Document() ([]byte, error) {
	raw, err := json.Marshal(a.huma.OpenAPI())
	if err != nil {
		return nil, fmt.Errorf("write the OpenAPI document: %w", err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return nil, fmt.Errorf("write the OpenAPI document: %w", err)
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// inner is what stands in the data of an example.
func inner(example string) string {
	var doc struct{ Data json.RawMessage }
	if err := json.Unmarshal([]byte(example), &doc); err != nil {
		panic("api: an example is no JSON: " + err.Error())
	}
	return string(doc.Data)
}

// pageExample is a page that has what an example shows.
func pageExample(example string) string {
	return `{"data": [` + inner(example) + `], "next": null}`
}

// with is an example whose data have more members.
func with(example, more string) string {
	return `{"data": ` + strings.TrimSuffix(strings.TrimSpace(inner(example)), "}") + `, ` + more + `}}`
}

// replaced is what stands in the data of an example, with other texts in place of some.
func replaced(example string, oldnew ...string) string {
	return strings.NewReplacer(oldnew...).Replace(inner(example))
}
