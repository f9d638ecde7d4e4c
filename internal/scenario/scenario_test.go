package scenario_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/internal/scenario"
)

const good = `name: good
shows: One order is paid.
orders:
  - {ref: A-1, amount: 5000}
steps:
  - deliver:
      - {type: payment_intent.succeeded, order: A-1, copies: 2, delay: 10ms}
  - wait: quiet
` + expected

const expected = `expect:
  orders:
    A-1: {state: paid, flags: [], told: fulfilled}
  outcomes: {applied: 1, duplicate: 0..1}
`

func TestParse(t *testing.T) {
	t.Parallel()

	t.Run("Good", func(t *testing.T) {
		t.Parallel()
		s, err := scenario.Parse("dir/good.yaml", []byte(good))
		require.NoError(t, err)
		require.Equal(t, "good", s.Name)
		require.NotNil(t, s.Expect.Orders["A-1"].Flags, "no flags is an expectation")
		require.Nil(t, s.Expect.Orders["A-1"].Effects, "and what is not there is none")
		require.Equal(t, scenario.Count{Min: 0, Max: 1}, s.Expect.Outcomes["duplicate"])
	})

	for name, bad := range map[string]struct{ from, to, want string }{
		"UnknownKey":           {"copies: 2", "copis: 2", "[7:"},
		"UnknownTopKey":        {"shows:", "show:", "[2:1] unknown field"},
		"KeyTwice":             {"name: good", "name: good\nname: good", "[2:1]"},
		"WrongType":            {"copies: 2", "copies: two", "[7:"},
		"SecondDocument":       {"  outcomes:", "---\n  outcomes:", "more than one document"},
		"BadCount":             {"0..1", "1..0", "no count"},
		"NegativeCount":        {"applied: 1", "applied: -1", "no count"},
		"AnotherName":          {"name: good", "name: other", ":1: name: is \"other\""},
		"NoShows":              {"shows: One order is paid.", "shows: ' '", ":2: shows: is missing"},
		"UnknownState":         {"state: paid", "state: payed", ":11: expect.orders.A-1.state: \"payed\" is not one of"},
		"UnknownFlag":          {"flags: []", "flags: [overpayed]", "overpayed"},
		"UnknownTold":          {"told: fulfilled", "told: fulfiled", "fulfiled"},
		"UnknownOutcome":       {"applied: 1", "aplied: 1", ":12: expect.outcomes"},
		"UnknownWait":          {"wait: quiet", "wait: quite", ":8: steps[1].wait: \"quite\""},
		"UnknownSource":        {"{type:", "{source: stripes, type:", "there is no source \"stripes\""},
		"TwoBodies":            {"{type:", "{body: x, type:", "exactly one of type, batch, payload and body"},
		"BatchForStripe":       {"{type: payment_intent.succeeded,", "{batch: [{type: x}],", "only adyen"},
		"NoPayloadFile":        {"{type: payment_intent.succeeded,", "{payload: nowhere.json,", "cannot be read"},
		"UnknownSecret":        {"copies: 2", "secret: old", "has no secret \"old\""},
		"UnsignedAndSecret":    {"copies: 2", "unsigned: true, secret: stranger", "not there"},
		"UnknownCurrency":      {"amount: 5000", "amount: 5000, currency: EUX", "EUX"},
		"NegativeAmount":       {"amount: 5000", "amount: -1", "0 or more"},
		"TwoKindsOfStep":       {"wait: quiet", "wait: quiet\n    merchant: ok", ":8: steps[1]: a step is exactly one"},
		"RecursForEver":        {"wait: quiet", "recur: {ref: C-1, interval: month, starts_on: 2020-01-31}", ":8: steps[1].recur.ends_after: is missing"},
		"RecursNever":          {"wait: quiet", "recur: {ref: C-1, starts_on: 2020-01-31, ends_after: 1}", ":8: steps[1].recur.interval: is missing"},
		"RecursOnNoDay":        {"wait: quiet", "recur: {ref: C-1, interval: month, starts_on: 2020-02-31, ends_after: 1}", "is no day"},
		"RecursFortnightly":    {"wait: quiet", "recur: {ref: C-1, interval: fortnight, starts_on: 2020-01-31, ends_after: 1}", "\"fortnight\" is not one of"},
		"ParallelNothing":      {"wait: quiet", "wait: quiet\n    parallel: true", "belong to deliver"},
		"NothingExpected":      {expected, "", "expect: expects nothing"},
		"EmptyExpectation":     {expected, "expect: {}\n", "expects nothing"},
		"NothingOfAnOrder":     {"{state: paid, flags: [], told: fulfilled}", "{}", "says nothing about the order"},
		"AbsentAndMore":        {"state: paid", "absent: true, state: paid", "absent"},
		"NothingHappens":       {"steps:\n  - deliver:\n      - {type: payment_intent.succeeded, order: A-1, copies: 2, delay: 10ms}\n  - wait: quiet\n", "", "nothing happens"},
		"SourceOfNoGateway":    {"orders:\n", "sources: {x: {gateway: nobody}}\norders:\n", "there is no gateway \"nobody\""},
		"StrangerIsNeverKnown": {"orders:\n", "sources: {stripe: {secrets: [stranger]}}\norders:\n", "never configured"},
		"BadMode":              {"orders:\n", "sources: {stripe: {mode: prod}}\norders:\n", "\"prod\""},
		"PingWithoutAnAPI":     {"copies: 2", "ping_only: true", "ping_only and api are for"},
		"FaultWithoutAnAPI":    {"copies: 2", "api: {times: 1}", "ping_only and api are for"},
		"AnswerOfNobody":       {"{type: payment_intent.succeeded,", "{source: adyen, type: AUTHORISATION, answer: x,", "adyen is not asked"},
		"BadFault":             {"{type: payment_intent.succeeded,", "{source: mp, type: payment.approved, api: {answer: nothing},", "\"nothing\" is not one of"},
		"BadFaultStatus":       {"{type: payment_intent.succeeded,", "{source: mp, type: payment.approved, api: {status: 99},", "is an HTTP status"},
		"UnknownAsked":         {"outcomes:", "asked: {mq: 1}\n  outcomes:", "there is no source \"mq\""},
		"TokenOfAdyen":         {"orders:\n", "sources: {adyen: {access_token: true}}\norders:\n", "sources of adyen have one, or need none"},
		"Empty":                {good, "", "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good := good
			if strings.Contains(bad.to, "source: mp") {
				good = strings.Replace(good, "orders:", "sources: {mp: {gateway: mercadopago, mode: test}}\norders:", 1)
			}
			text := strings.Replace(good, bad.from, bad.to, 1)
			require.NotEqual(t, good, text, "the test changes nothing")
			_, err := scenario.Parse("dir/good.yaml", []byte(text))
			require.ErrorContains(t, err, bad.want)
			require.ErrorContains(t, err, "dir/good.yaml")
		})
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()

	t.Run("FolderWithoutScenarios", func(t *testing.T) {
		t.Parallel()
		_, err := scenario.Load(t.TempDir())
		require.ErrorContains(t, err, "no *.yaml")
	})

	t.Run("OneFile", func(t *testing.T) {
		t.Parallel()
		scs, err := scenario.Load("../../testdata/scenarios/plain-checkout.yaml")
		require.NoError(t, err)
		require.Len(t, scs, 1)
	})
}

// TestPreparedAccounts sees that a set's accounts are a configuration that the
// program accepts, both as a value and as a file.
func TestPreparedAccounts(t *testing.T) {
	t.Parallel()
	scs, err := scenario.Load("../../testdata/scenarios")
	require.NoError(t, err)
	set, err := scenario.Prepare(scs)
	require.NoError(t, err)
	t.Cleanup(set.Close)
	require.Len(t, set.Names(), len(scs))

	file, err := set.File()
	require.NoError(t, err)
	parsed, err := config.Parse("scenarios.yaml", file, func(string) string { return "" })
	require.NoError(t, err)
	require.Equal(t, parsed.Accounts, set.Accounts())

	_, err = scenario.Prepare(append(scs, scs[0]))
	require.ErrorContains(t, err, "two scenarios are called")
}
