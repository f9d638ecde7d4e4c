package e2e_test

import (
	"encoding/base64"
	"strings"
)

func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// badCases are the cases of testdata/bad. Each must fail.
func badCases() []ownCase {
	plain := ownCase{
		title: "One order is paid", orders: registered("ba-1"),
		requests: requestsOf(stripeEvent("payment_intent.succeeded", "ba-1", "evt_ba_1")),
		statuses: list{list{200}},
		assert:   obj{"orders": obj{"ba-1": paidOnce()}, "rows": obj{"events": 1}},
	}
	variant := func(id string, want []string, change func(*ownCase)) ownCase {
		c := plain
		c.id, c.want = id, want
		change(&c)
		return c
	}
	replace := func(from, to string) func(*ownCase) {
		return func(c *ownCase) { c.change = func(text string) string { return strings.Replace(text, from, to, 1) } }
	}
	return []ownCase{
		variant("misspelt-key", []string{`assert.orders.ba-1: no such key "flag_only"`}, replace(`"flags_only"`, `"flag_only"`)),
		variant("misspelt-word", []string{`"payed" is not one of pending`}, replace(`"paid"`, `"payed"`)),
		variant("misspelt-step", []string{"no step is named"}, func(c *ownCase) { c.steps = list{obj{"sent": 0}} }),
		variant("wrong-type", []string{"rounds"}, func(c *ownCase) {
			c.rounds = 1
			replace(`"rounds": 1`, `"rounds": "1"`)(c)
		}),
		variant("false-status", []string{"requests[0]: answered 200", "expected one of [401]"}, func(c *ownCase) { c.statuses = list{list{401}} }),
		variant("false-check", []string{"check: order ba-1: state is pending"}, func(c *ownCase) {
			c.steps = list{obj{"check": obj{"orders": obj{"ba-1": obj{"state_in": list{"paid"}}}}}, obj{"send": 0}, obj{"wait": "quiet"}}
		}),
		variant("no-such-instance", []string{"serve 3 has never run"}, func(c *ownCase) { c.steps = list{obj{"send": 0, "instance": 3}} }),
		variant("clock-elsewhere", []string{"requests[0] belongs at 60 s"}, func(c *ownCase) {
			at := 60
			c.requests = requestsOf(stripeEvent("payment_intent.succeeded", "ba-1", "evt_ba_1").with(func(m *message) { m.atS = &at }))
		}),
		variant("order-not-read", []string{"order ba-1 was not read before"}, func(c *ownCase) {
			c.requests = requestsOf(stripeEvent("payment_intent.succeeded", "ba-1", "evt_ba_1").with(func(m *message) { m.headers = obj{"If-Match": "{{etag:ba-1}}"} }))
		}),
		variant("never-quiet", []string{"not quiet within 30s"}, func(c *ownCase) {
			// The worker cannot claim, and River tries again and again.
			c.steps = list{
				obj{"fault": "sql_delay", "on": "UPDATE order_transitions", "ms": 40000, "times": 0}, obj{"send": 0}, obj{"wait": "quiet"},
			}
		}),
		// Nothing comes that could kill the worker, so it runs.
		variant("kill-unreached", []string{"steps[1] start: work-1 runs already"}, func(c *ownCase) {
			c.steps = list{
				obj{"fault": "kill_process", "process": "work", "on": "UPDATE order_transitions", "at": "before_commit"}, obj{"start": "work"},
			}
		}),
		variant("refused-and-runs", []string{"paidonce config check: ended with code 0", "paidonce serve: still ran"}, func(c *ownCase) {
			c.startup, c.requests, c.statuses, c.orders, c.assert = "refused", nil, nil, nil, obj{}
		}),
		falseCase(),
	}
}

// falseCase asserts what is not so, with every word that can.
func falseCase() ownCase {
	return ownCase{
		id: "false", title: "Nothing of this holds", orders: registered("fa-1"),
		requests: append(requestsOf(
			stripeEvent("payment_intent.succeeded", "fa-1", "evt_fa_1"),
			stripeEvent("payment_intent.succeeded", "fa-2", "evt_fa_2"),
		), obj{"method": "HEAD", "path": "/webhooks/stripe"}, obj{"method": "POST", "path": "/webhooks/stripe"}),
		statuses: list{list{200}, list{200}, list{405}, list{200}},
		steps:    list{obj{"send": 0}, obj{"send": 1}, obj{"send": 2}, obj{"wait": "quiet"}},
		assert: obj{
			"orders": obj{
				"fa-1": obj{
					"state_in": list{"refunded"}, "state_not": list{"paid"}, "captured": 4999, "refunded": obj{"min": 1}, "version": obj{"in": list{98, 99}},
					"flags": list{"overpaid"}, "flags_only": list{"underpaid"}, "told_in": list{"nothing"}, "registered": false,
				},
				"fa-2": obj{"absent": true, "flags_absent": list{"unregistered"}},
				"fa-3": obj{"state_in": list{"paid"}},
			},
			"rows":     obj{"events": 3, "transitions": obj{"max": 0}, "payments": 0, "orders": 0, "idempotency_keys": 1},
			"accounts": obj{"b": obj{"rows": obj{"orders": 1}}},
			"outcomes": list{list{"waiting"}, obj{"waiting": 2}, obj{"duplicate": 1}, list{"applied"}},
			"calls":    obj{"fulfil": 2, "hold": 1, "release": 1, "revoke": 1, "total": 5},
			"outbound": obj{"min": 1},
			"answers": list{obj{
				"request": 2, "header_present": list{"X-Nobody"}, "header_absent": list{"Allow"}, "header_contains": obj{"Allow": "GET"},
				"body_equals": "x", "body_contains": list{"y"}, "max_ms": -1,
			}, obj{"request": 0, "body_absent": list{"received"}}},
			"different_order": list{list{0, 1}},
			"replayed":        list{0, 3},
			"payloads_kept":   list{2},
			"payments_known":  list{"pi_nobody"},
			"event_types":     list{"payment_intent.succeeded", "charge.succeeded"},
			"logs_absent":     list{"started"},
			"when": list{
				obj{"if": obj{"request": 0, "status": list{200}}, "orders": obj{"fa-1": obj{"state_in": list{"failed"}}}},
				obj{"if": obj{"order": "fa-1", "state_in": list{"paid"}}, "rows": obj{"events": 77}},
			},
		},
		want: []string{
			"order fa-1: state is paid, expected one of [refunded]", "order fa-1: state is paid, expected none of [paid]",
			"order fa-1: captured is 5000, expected 4999", "order fa-1: refunded is 0, expected at least 1",
			"expected one of 98 99", "order fa-1: flags are [], and overpaid is missing", "order fa-1: flags are [], expected exactly [underpaid]",
			"order fa-1: told is fulfilled", "order fa-1: registered is true", "order fa-2: there is one", "order fa-3: there is none",
			"2 new rows of events in account a, expected 3", "new rows of transitions in account a, expected at most 0",
			"2 new rows of payments in account a, expected 0", "1 new rows of orders in account a, expected 0",
			"0 new rows of idempotency_keys in account a, expected 1", "0 new rows of orders in account b, expected 1",
			"outcomes[0]: [applied], expected [waiting]", "outcomes[1]: [waiting], expected map[waiting:2]",
			"outcomes[2]: [none], expected map[duplicate:1]", "outcomes[3]: request 3 was never sent",
			"1 calls fulfil, expected 2", "0 calls hold, expected 1", "0 calls release, expected 1", "0 calls revoke, expected 1",
			"1 calls total, expected 5", "outbound: 0, expected at least 1", "no header X-Nobody", "header Allow is \"POST\"",
			"header Allow is \"POST\", without \"GET\"", "body is \"\", expected \"x\"", "is without \"y\"", "at most -1 ms", "has \"received\"",
			"different_order: request 0: 200 \"{\\\"received\\\":true}\" has no /data/id", "replayed: request 0", "replayed: request 3 was never sent",
			"payloads_kept: no row has the bytes of request 2", "payments_known: \"pi_nobody\" is not",
			"event_types are [payment_intent.succeeded payment_intent.succeeded], expected [payment_intent.succeeded charge.succeeded]",
			"logs_absent: \"started\" is in a log", "when[0]: order fa-1: state is paid, expected one of [failed]",
			"when[1]: 2 new rows of events in account a, expected 77",
		},
	}
}
