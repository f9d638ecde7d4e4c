package cases_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/scenario/cases"
	"github.com/paidonce/paidonce/order"
)

// whole is a case that uses every key of the format at least once.
const whole = `{
  "id": "whole", "title": "t", "source": "s", "provider": "p", "theme": "t", "evidence": "e", "now": 1790000000,
  "secret": {"any": ["thing", null]}, "note_unchecked": "n", "rounds": 2,
  "setup": {
    "startup": "ok",
    "sources": {
      "stripe": {"gateway": "stripe", "mode": "live", "secrets": ["whsec_x"], "account": "acct_1", "on_unknown_order": "stub", "reference": "/a"},
      "adyen": {"gateway": "adyen", "mode": "test", "hmac_keys": ["00"], "basic": "u:p", "merchant_accounts": ["M"], "capture": "manual"},
      "paypal": {"gateway": "paypal", "mode": "live", "webhook_id": "W", "root_pem": "P"},
      "square": {"gateway": "square", "mode": "live", "secrets": ["s"], "public_url": "https://x.test"},
      "shopify": {"gateway": "shopify", "mode": "live", "secrets": ["s"], "access_token": "t", "shop": "x.test"},
      "standard": {"gateway": "standard", "mode": "live", "secrets": ["s"],
        "map": {"type": "/t", "payment": "/p", "reference": "/r", "amount": "/a", "currency": "/c", "facts": {"x": "captured"}}}
    },
    "orders": [
      {"ref": "A", "amount_minor": 5000, "currency": "EUR", "status": "registered"},
      {"ref": "B", "amount_minor": 5000, "currency": "EUR", "status": "refunded", "payment_id": "pi", "source": "stripe", "captured": 5000, "refunded": 100}
    ],
    "gateway_http": [{"method": "GET", "url": "https://x.test/*", "answers": [{"status": 200, "content_type": "text/plain", "body": "b"}]}]
  },
  "requests": [
    {"method": "POST", "path": "/webhooks/stripe", "headers": {"A": "", "Host": "h"}, "body_base64": "e30=", "note": "n", "sign": {"scheme": "stripe-v1"}, "at_s": 0},
    {"method": "POST", "path": "/v1/orders/{{order_id:A}}", "headers": {"If-Match": "{{etag:A}}", "Authorization": "Bearer {{api_key}}", "X": "{{api_key_b}}"},
      "transport": {"keep_header_case": true, "raw_headers": [["A", "b"]], "header_bytes_latin1": true, "content_length": 5, "fill": "61", "expect_early_close": true}},
    {"method": "POST", "path": "/webhooks/stripe", "transport": {"chunked": true, "generate_bytes": 10, "fill": "00"}}
  ],
  "steps": [
    {"send": 0, "instance": 1, "status": [200, 0], "retry_while": [503], "retry_for_s": 3},
    {"parallel": [0, 1], "copies": 2, "at_ms": {"1": 20}, "stagger_ms": 5},
    {"wait": "quiet"},
    {"check": {"rows": {"events": 1}, "when": [{"if": {"order": "A", "state_in": ["paid"]}, "calls": {"total": 0}}]}},
    {"register_order": {"ref": "C", "amount_minor": 1, "currency": "EUR"}},
    {"read_order": "A"},
    {"advance_clock_s": -5},
    {"start": "serve", "instance": 2}, {"stop": "work"}, {"restart": "serve"}, {"kill": "work", "instance": 1},
    {"reload": {"source": "stripe", "secrets": ["whsec_y"]}},
    {"merchant": "hang"},
    {"fault": "sql_error", "on": "INSERT orders", "sqlstate": "55P03", "times": 1},
    {"fault": "sql_delay", "on": "UPDATE river_job", "ms": 5, "times": 0},
    {"fault": "kill_connection", "on": "INSERT processed_events", "at": "before_commit", "times": 1},
    {"fault": "kill_process", "process": "serve", "instance": 1, "on": "UPDATE order_transitions", "at": "before_commit"},
    {"clear_faults": true}, {"delete_rows": "processed_events"}, {"expire_keys": true},
    {"loop_start": "sweep_keys"}, {"loop_stop": "sweep_keys"}
  ],
  "expect": {"statuses": [[200], [200, 412], [413]], "effect": "for people"},
  "assert": {
    "orders": {"A": {"state_in": ["paid"], "state_not": ["failed"], "captured": 5000, "refunded": {"min": 0, "max": 1}, "version": {"in": [1, 2]},
      "flags": ["overpaid"], "flags_absent": ["underpaid"], "flags_only": [], "told_in": ["fulfilled"], "registered": true}, "Z": {"absent": true}},
    "rows": {"events": {"min": 1}, "transitions": {"max": 2}, "payments": 1, "orders": 0, "idempotency_keys": 0},
    "accounts": {"b": {"rows": {"orders": 0}}},
    "outcomes": [null, ["applied", "none"], {"waiting": 1}],
    "calls": {"fulfil": 1, "hold": 0, "release": 0, "revoke": 0, "total": 1},
    "outbound": 0,
    "answers": [{"request": 0, "status": [200], "header_present": ["A"], "header_absent": ["B"], "header_contains": {"C": "d"},
      "body_equals": "", "body_contains": ["x"], "body_absent": ["y"], "max_ms": 100}],
    "same_response": [[0, 1]], "different_order": [[0, 1]], "replayed": [0],
    "payloads_kept": [0], "payments_known": ["pi"], "event_types": ["t"], "logs_absent": ["secret"],
    "when": [{"if": {"request": 0, "status": [200]}, "rows": {"events": 1}}]
  }
}`

func TestParse(t *testing.T) {
	t.Parallel()

	t.Run("EveryKey", func(t *testing.T) {
		t.Parallel()
		c, err := cases.Parse([]byte(whole))
		require.NoError(t, err)
		require.True(t, c.NeedsProcesses())
		require.Len(t, c.Steps, 22)
	})

	// Each of these is a mistake that must fail the case, whatever the program does.
	for name, bad := range map[string]struct{ from, to, want string }{
		"KeyUnknown":              {`"title": "t"`, `"titel": "t"`, `no such key "titel"`},
		"KeyInOtherCase":          {`"title": "t"`, `"Title": "t"`, `no such key "Title"`},
		"KeyTwice":                {`"title": "t"`, `"title": "t", "title": "u"`, `"title" stands twice`},
		"KeyTwiceDeep":            {`"hold": 0,`, `"hold": 0, "hold": 1,`, `"hold" stands twice`},
		"KeyMissing":              {`"title": "t",`, ``, `the key "title" is missing`},
		"NoAssert":                {`"assert"`, `"asert"`, `the key "assert" is missing`},
		"Null":                    {`"rounds": 2`, `"rounds": null`, `rounds: null`},
		"NullRow":                 {`"events": {"min": 1}`, `"events": null`, `null is not an int`},
		"MoreAfterTheEnd":         {`"rows": {"events": 1}}]` + "\n  }\n}", `"rows": {"events": 1}}]` + "\n  }\n} {}", `more after the end`},
		"RoundsZero":              {`"rounds": 2`, `"rounds": 0`, `rounds`},
		"RoundsText":              {`"rounds": 2`, `"rounds": "2"`, `rounds`},
		"Startup":                 {`"startup": "ok"`, `"startup": "okay"`, `"okay" is not one of ok, refused`},
		"SourceKey":               {`"secrets": ["whsec_x"]`, `"secret": ["whsec_x"]`, `no such key "secret"`},
		"SourceWithoutGateway":    {`"gateway": "stripe", `, ``, `the key "gateway" is missing`},
		"Mode":                    {`"mode": "live", "secrets": ["whsec_x"]`, `"mode": "prod", "secrets": ["whsec_x"]`, `"prod"`},
		"Capture":                 {`"manual"`, `"manually"`, `"manually"`},
		"UnknownOrder":            {`"stub"`, `"stubb"`, `"stubb"`},
		"FactKind":                {`{"x": "captured"}`, `{"x": "capture"}`, `"capture"`},
		"OrderStatus":             {`"status": "registered"`, `"status": "register"`, `"register"`},
		"OrderNegative":           {`"amount_minor": 5000`, `"amount_minor": -1`, `0 or more`},
		"OrderFraction":           {`"amount_minor": 5000`, `"amount_minor": 50.5`, `50.5`},
		"OrderWithoutPayment":     {`"payment_id": "pi", `, ``, `needs a payment_id`},
		"OrderOfNoSource":         {`"source": "stripe"`, `"source": "strype"`, `no source "strype"`},
		"TwoStars":                {`https://x.test/*`, `https://*/*`, `one * at most`},
		"NoAnswers":               {`[{"status": 200, "content_type": "text/plain", "body": "b"}]`, `[]`, `no answers`},
		"Base64":                  {`"e30="`, `"e30"`, `base64`},
		"Placeholder":             {`{{api_key}}`, `{{apikey}}`, `no such placeholder`},
		"PlaceholderWithoutRef":   {`{{etag:A}}`, `{{etag}}`, `no such placeholder`},
		"TransportKey":            {`"chunked"`, `"chunk"`, `no such key "chunk"`},
		"RawHeaderOfThree":        {`["A", "b"]`, `["A", "b", "c"]`, `2 values are needed`},
		"Fill":                    {`"fill": "61"`, `"fill": "6"`, `one byte in hex`},
		"GenerateWithoutChunked":  {`"chunked": true, `, ``, `generate_bytes goes with`},
		"LengthAndChunked":        {`"chunked": true, `, `"chunked": true, "content_length": 3, `, `not for a chunked body`},
		"StepUnknown":             {`{"wait": "quiet"}`, `{"sleep": 3}`, `no step is named`},
		"StepOfTwoNames":          {`{"wait": "quiet"}`, `{"wait": "quiet", "send": 0}`, `two names`},
		"StepForeignArgument":     {`{"wait": "quiet"}`, `{"wait": "quiet", "copies": 2}`, `no such key "copies"`},
		"StepNull":                {`{"wait": "quiet"}`, `{"wait": null}`, `null`},
		"WaitWord":                {`{"wait": "quiet"}`, `{"wait": "quite"}`, `"quite"`},
		"SendWhat":                {`{"send": 0`, `{"send": 9`, `no request 9`},
		"SendStatus":              {`"status": [200, 0]`, `"status": [20]`, `20 is no HTTP status`},
		"RetryWithoutEnd":         {`, "retry_for_s": 3`, ``, `go together`},
		"AtMSOfAnother":           {`{"1": 20}`, `{"2": 20}`, `2 is not sent here`},
		"AtMSIndex":               {`{"1": 20}`, `{"one": 20}`, `no index`},
		"CopiesZero":              {`"copies": 2`, `"copies": 0`, `copies must be 1 or more`},
		"InstanceZero":            {`{"start": "serve", "instance": 2}`, `{"start": "serve", "instance": 0}`, `counted from 1`},
		"Process":                 {`{"stop": "work"}`, `{"stop": "worker"}`, `"worker"`},
		"ReloadSource":            {`{"source": "stripe", "secrets": ["whsec_y"]}`, `{"source": "x", "secrets": ["whsec_y"]}`, `no source "x"`},
		"MerchantWord":            {`{"merchant": "hang"}`, `{"merchant": "hung"}`, `"hung"`},
		"FaultUnknown":            {`"fault": "sql_error"`, `"fault": "sql_eror"`, `"sql_eror"`},
		"FaultVerb":               {`"on": "INSERT orders"`, `"on": "DELETE orders"`, `"DELETE"`},
		"FaultTable":              {`"on": "INSERT orders"`, `"on": "INSERT order"`, `"order"`},
		"FaultForm":               {`"on": "INSERT orders"`, `"on": "INSERT"`, `a verb, a space and a table`},
		"FaultState":              {`"sqlstate": "55P03"`, `"sqlstate": "55p03"`, `sqlstate`},
		"FaultAt":                 {`"at": "before_commit", "times"`, `"at": "after_commit", "times"`, `"after_commit"`},
		"FaultMissing":            {`"ms": 5, `, ``, `the key "ms" is missing`},
		"FaultForeign":            {`"ms": 5, `, `"ms": 5, "sqlstate": "55P03", `, `no such key "sqlstate"`},
		"FaultTimes":              {`"times": 0`, `"times": -1`, `0 or more`},
		"ClearFalse":              {`"clear_faults": true`, `"clear_faults": false`, `is true, or is not there`},
		"DeleteWhat":              {`"delete_rows": "processed_events"`, `"delete_rows": "orders"`, `"orders"`},
		"LoopWhat":                {`"loop_start": "sweep_keys"`, `"loop_start": "sweep"`, `"sweep"`},
		"CheckOutcomes":           {`{"check": {"rows"`, `{"check": {"outcomes": [null, null, null], "rows"`, `belong to the end`},
		"CheckInWhenReplayed":     {`"state_in": ["paid"]}, "calls": {"total": 0}`, `"state_in": ["paid"]}, "replayed": [0]`, `belong to the end`},
		"StatusesShort":           {`[[200], [200, 412], [413]]`, `[[200], [200, 412]]`, `2 lists for 3 requests`},
		"OutcomesShort":           {`[null, ["applied", "none"], {"waiting": 1}]`, `[null, ["applied"]]`, `2 for 3 requests`},
		"OutcomeWord":             {`["applied", "none"]`, `["aplied", "none"]`, `"aplied"`},
		"OutcomeCountWord":        {`{"waiting": 1}`, `{"parked": 1}`, `"parked"`},
		"OutcomeText":             {`{"waiting": 1}`, `"waiting"`, `outcomes`},
		"OutcomeNothing":          {`["applied", "none"]`, `[]`, `an empty list allows nothing`},
		"AssertKey":               {`"outbound": 0`, `"outbounds": 0`, `no such key "outbounds"`},
		"OrderKey":                {`"told_in"`, `"told"`, `no such key "told"`},
		"State":                   {`"state_not": ["failed"]`, `"state_not": ["faild"]`, `"faild"`},
		"Flag":                    {`"flags": ["overpaid"]`, `"flags": ["overpayed"]`, `"overpayed"`},
		"FlagAbsent":              {`["underpaid"]`, `["under_paid"]`, `"under_paid"`},
		"Told":                    {`["fulfilled"]`, `["fulfiled"]`, `"fulfiled"`},
		"Row":                     {`"payments": 1`, `"payment": 1`, `"payment"`},
		"Account":                 {`{"b": {"rows"`, `{"c": {"rows"`, `"c" is not b`},
		"AccountRow":              {`{"rows": {"orders": 0}}`, `{"rows": {"order": 0}}`, `"order"`},
		"Call":                    {`"hold": 0`, `"holds": 0`, `"holds"`},
		"NumForm":                 {`{"in": [1, 2]}`, `{"in": [1, 2], "min": 1}`, `not an int, {min, max} or {in}`},
		"NumEmpty":                {`{"in": [1, 2]}`, `{}`, `not an int, {min, max} or {in}`},
		"NumKey":                  {`{"in": [1, 2]}`, `{"on": [1, 2]}`, `no such key "on"`},
		"NumText":                 {`"outbound": 0`, `"outbound": "0"`, `not an int`},
		"NumFraction":             {`"outbound": 0`, `"outbound": 0.5`, `not an int`},
		"AnswerKey":               {`"body_absent"`, `"bodies_absent"`, `no such key "bodies_absent"`},
		"AnswerWhat":              {`"answers": [{"request": 0`, `"answers": [{"request": 3`, `no request 3`},
		"SameWhat":                {`"same_response": [[0, 1]]`, `"same_response": [[0, 5]]`, `no request 5`},
		"ReplayedWhat":            {`"replayed": [0]`, `"replayed": [-1]`, `no request -1`},
		"WhenWithoutIf":           {`{"if": {"request": 0, "status": [200]}, `, `{`, `the key "if" is missing`},
		"WhenHalf":                {`{"request": 0, "status": [200]}`, `{"request": 0}`, `if is {"request", "status"}`},
		"WhenBoth":                {`{"request": 0, "status": [200]}`, `{"request": 0, "status": [200], "order": "A"}`, `if is {"request", "status"}`},
		"WhenState":               {`"state_in": ["paid"]}, "calls"`, `"state_in": ["payed"]}, "calls"`, `"payed"`},
		"WhenKey":                 {`, "calls": {"total": 0}}`, `, "call": {"total": 0}}`, `no such key "call"`},
		"EmptySteps":              {whole[strings.Index(whole, `[`+"\n"+`    {"send"`):strings.Index(whole, "\n"+`  "expect"`)], `[],`, `an empty list`},
		"ReferenceOfNothing":      {`{"read_order": "A"}`, `{"read_order": ""}`, `needs a reference`},
		"RegisterWithoutCurrency": {`"amount_minor": 1, "currency": "EUR"`, `"amount_minor": 1`, `the key "currency" is missing`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(whole, bad.from, bad.to, 1)
			require.NotEqual(t, whole, text, "the test changes nothing")
			_, err := cases.Parse([]byte(text))
			require.ErrorContains(t, err, bad.want)
		})
	}
}

// TestFormatOfGivenCases reads every case that is shipped.
func TestFormatOfGivenCases(t *testing.T) {
	t.Parallel()
	files, err := cases.Load("../../../testdata/cases")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 59)
	for _, file := range files {
		c, err := cases.Parse(file.Data)
		require.NoError(t, err, file.Path)
		require.Equal(t, file.Name, c.ID)
	}
	_, err = cases.Load(t.TempDir())
	require.ErrorContains(t, err, "no *.json")
}

// TestWordsOfTheFormat compares the words that the format allows with the
// specification and with the order's own.
func TestWordsOfTheFormat(t *testing.T) {
	t.Parallel()
	spec, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "cases", "FORMAT.md"))
	require.NoError(t, err)
	text := strings.Join(strings.Fields(string(spec)), " ")
	flags := strings.Split(between(t, text, "Flags: ", ". Fact kinds"), ", ")
	_, err = order.ParseFlags(flags)
	require.NoError(t, err)
	require.Len(t, flags, len((^order.Flags(0)).Names()))
	for _, word := range append(flags, strings.Split(between(t, text, "States: ", ". Flags"), ", ")...) {
		key := `"flags": ["overpaid"]`
		with := `"flags": ["` + word + `"]`
		if !contains(flags, word) {
			key, with = `"state_in": ["paid"], "state_not"`, `"state_in": ["`+word+`"], "state_not"`
		}
		_, err := cases.Parse([]byte(strings.Replace(whole, key, with, 1)))
		require.NoError(t, err, word)
	}
}

func between(t *testing.T, text, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, from)
	require.True(t, ok)
	found, _, ok := strings.Cut(rest, to)
	require.True(t, ok)
	return found
}

func contains(list []string, word string) bool {
	for _, w := range list {
		if w == word {
			return true
		}
	}
	return false
}
