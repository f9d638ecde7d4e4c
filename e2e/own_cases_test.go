package e2e_test

import (
	"fmt"
	"strings"
	"time"
)

// ownCases are the cases of testdata/cases.
func ownCases() []ownCase {
	return []ownCase{
		transportCase(), retriesCase(), parallelCase(), processesCase(), killServeCase(), killWorkCase(), killConnectionCase(),
		killThenCase("restart", obj{"restart": "work"}),
		killThenCase("start", obj{"start": "work"}),
		killThenCase("stop", obj{"stop": "work"}, obj{"start": "work"}),
		killThenCase("clear", obj{"clear_faults": true}, obj{"start": "work"}), killUnreachedCase(),

		delayCase(), merchantErrorCase(), merchantHangCase(), clockCase(), reloadCase(), statesCase(), lateCase(), stoppedLateCase(), prunedCase(),
		refusedCase("refused-secret", obj{"stripe": obj{"gateway": "stripe", "mode": "live", "secrets": list{"sk_live_wrongkindofsecret000"}}}),
		refusedCase("refused-no-secrets", obj{"stripe": obj{"gateway": "stripe", "mode": "live", "secrets": list{}}}),
		refusedCase("refused-hmac-key", obj{"stripe": stripeSource(), "adyen": obj{
			"gateway": "adyen", "mode": "live", "hmac_keys": list{"00112233notahexkey4455"}, "basic": ownBasic,
		}}),
		apiCase(), sweepCase(),
	}
}

// transportCase sends what no ordinary client would.
func transportCase() ownCase {
	event := func(i int) message {
		return stripeEvent("payment_intent.succeeded", fmt.Sprint("tr-", i), fmt.Sprint("evt_tr_", i))
	}
	signature := func(m message) string { return m.request()["headers"].(obj)["Stripe-Signature"].(string) }
	raw := event(3)
	return ownCase{
		id: "transport", title: "Every way of the transport",
		orders: registered("tr-0", "tr-1", "tr-2", "tr-3", "tr-7"),
		requests: append(requestsOf(
			event(0).with(func(m *message) { m.transport = obj{"chunked": true} }),
			event(1).with(func(m *message) { m.transport = obj{"header_bytes_latin1": true}; m.headers = obj{"X-Shop": "Café"} }),
			event(2).with(func(m *message) {
				m.transport = obj{"keep_header_case": true}
				m.headers = obj{"Stripe-Signature": nil, "sTRIPE-sIGNATURE": signature(event(2))}
			}),
			raw.with(func(m *message) {
				m.headers = obj{"Stripe-Signature": nil}
				m.transport = obj{"raw_headers": list{list{"stripe-signature", signature(raw)}}}
			}),
			event(4).with(func(m *message) {
				m.transport = obj{"content_length": 1 << 30, "fill": "61", "expect_early_close": true}
			}),
			event(5).with(func(m *message) { m.transport = obj{"chunked": true, "generate_bytes": 3 << 20, "fill": "20"} }),
			event(6).with(func(m *message) { m.headers = obj{"Stripe-Signature": ""} }),
			event(7).with(func(m *message) { m.headers = obj{"Host": "another.test"} }),
		), obj{"method": "GET", "path": "/webhooks/stripe?a=b"}),
		statuses: list{list{200}, list{200}, list{200}, list{200}, list{413}, list{413}, list{401}, list{200}, list{405}},
		assert: obj{
			"orders": obj{"tr-0": paidOnce(), "tr-1": paidOnce(), "tr-2": paidOnce(), "tr-3": paidOnce(), "tr-7": paidOnce()},
			"rows":   obj{"events": 5, "transitions": 5, "payments": 5, "orders": 0, "idempotency_keys": 0},
			"outcomes": list{
				list{"applied"},
				list{"applied"},
				list{"applied"},
				list{"applied"},
				list{"none"},
				list{"none"},
				obj{"none": 1},
				obj{"applied": 1},
				nil,
			},
			"calls":    obj{"fulfil": 5, "hold": 0, "release": 0, "revoke": 0, "total": 5},
			"outbound": 0,
			"answers": list{
				obj{"request": 4, "max_ms": 3000, "body_absent": list{"whsec", "goroutine"}},
				obj{
					"request": 8, "status": list{405}, "header_present": list{"Allow"}, "header_absent": list{"Location"},
					"header_contains": obj{"Allow": "POST"}, "body_contains": list{"POST"},
				},
				obj{"request": 0, "body_equals": `{"received":true}`},
			},
			"accounts":      obj{"b": obj{"rows": obj{"events": 0, "transitions": 0, "payments": 0, "orders": 0}}},
			"logs_absent":   list{"evt_tr_0\",\"object", "Café"},
			"event_types":   list{"payment_intent.succeeded"},
			"payloads_kept": list{0, 3},
		},
	}
}

// retriesCase sees a fault for some times, and until it is cleared.
func retriesCase() ownCase {
	return ownCase{
		id: "retries", title: "An insert fails; the sender comes again until it does not",
		orders:   registered("re-1"),
		requests: requestsOf(stripeEvent("payment_intent.succeeded", "re-1", "evt_re_1")),
		statuses: list{list{200}},
		steps: list{
			obj{"fault": "sql_error", "on": "INSERT processed_events", "sqlstate": "P0001", "times": 0},
			obj{"send": 0, "status": list{503}},
			obj{"send": 0, "status": list{503}},
			obj{"check": obj{
				"rows": obj{"events": 0, "transitions": 0, "payments": 0}, "orders": obj{"re-1": untouched()},
				"answers": list{obj{"request": 0, "status": list{503}, "header_present": list{"Retry-After"}}},
			}},
			obj{"clear_faults": true},
			obj{"fault": "sql_error", "on": "UPDATE orders", "sqlstate": "XX000", "times": 2},
			obj{"send": 0, "retry_while": list{503}, "retry_for_s": 30},
			obj{"wait": "quiet"},
		},
		assert: obj{
			"orders": obj{"re-1": paidOnce()}, "rows": obj{"events": 1, "transitions": 1},
			"outcomes": list{list{"none"}}, "calls": obj{"fulfil": 1, "total": 1},
			"when": list{obj{"if": obj{"request": 0, "status": list{503}}, "rows": obj{"events": 99}}},
		},
	}
}

// parallelCase tells requests apart that are sent together.
func parallelCase() ownCase {
	return ownCase{
		id: "parallel", title: "Different requests from one starting shot", rounds: 2,
		sources: obj{"stripe": stripeSource(), "adyen": adyenSource()},
		orders:  registered("pa-1", "pa-2"),
		requests: requestsOf(
			stripeEvent("payment_intent.succeeded", "pa-1", "evt_pa_1"),
			adyenItem("AUTHORISATION", "pa-2", "PSPPARALLEL00001"),
			stripeEvent("payment_intent.succeeded", "pa-3", "evt_pa_3"),
		),
		statuses: repeat(200, 3),
		steps: list{
			obj{"parallel": list{0, 1, 2}, "copies": 3, "at_ms": obj{"1": 30}, "stagger_ms": 10},
			obj{"wait": "quiet"},
		},
		assert: obj{
			"orders":        obj{"pa-1": paidOnce(), "pa-2": paidOnce(), "pa-3": obj{"registered": false, "flags": list{"unregistered"}, "told_in": list{"nothing"}}},
			"rows":          obj{"events": 3, "transitions": obj{"min": 2, "max": 3}, "payments": 3, "orders": 1},
			"outcomes":      list{list{"applied"}, list{"applied"}, obj{"waiting": 1}},
			"same_response": list{list{0, 2}, list{1}},
			"calls":         obj{"fulfil": 2, "total": obj{"in": list{2}}},
		},
	}
}

// processesCase starts, stops, restarts and kills.
func processesCase() ownCase {
	event := func(i int) message {
		return stripeEvent("payment_intent.succeeded", fmt.Sprint("pr-", i), fmt.Sprint("evt_pr_", i))
	}
	return ownCase{
		id: "processes", title: "Processes come and go",
		orders:   registered("pr-0", "pr-1", "pr-2", "pr-3"),
		requests: requestsOf(event(0), event(1), event(2), event(3)),
		statuses: repeat(200, 4),
		steps: list{
			obj{"start": "serve", "instance": 2},
			obj{"start": "work", "instance": 2},
			obj{"send": 0, "instance": 2},
			obj{"stop": "serve"},
			obj{"send": 1, "status": list{0}},
			obj{"send": 1, "instance": 2},
			obj{"kill": "serve", "instance": 2},
			obj{"start": "serve"},
			obj{"send": 2},
			obj{"send": 0},
			obj{"kill": "work"},
			obj{"restart": "work", "instance": 2},
			obj{"restart": "work"},
			obj{"restart": "serve"},
			obj{"send": 3},
			obj{"wait": "quiet"},
		},
		assert: obj{
			"orders":   obj{"pr-0": paidOnce(), "pr-1": paidOnce(), "pr-2": paidOnce(), "pr-3": paidOnce()},
			"rows":     obj{"events": 4, "transitions": 4},
			"outcomes": list{list{"applied"}, list{"none"}, list{"applied"}, list{"applied"}},
			"calls":    obj{"fulfil": 4, "total": 4},
		},
	}
}

// killServeCase ends serve before its commit: nothing of it is there.
func killServeCase() ownCase {
	return ownCase{
		id: "kill-serve", title: "serve dies before its commit",
		orders:   registered("ks-1"),
		requests: requestsOf(stripeEvent("payment_intent.succeeded", "ks-1", "evt_ks_1")),
		statuses: list{list{200}},
		steps: list{
			obj{"fault": "kill_process", "process": "serve", "on": "UPDATE orders", "at": "before_commit"},
			obj{"send": 0, "status": list{0}},
			obj{"check": obj{"rows": obj{"events": 0, "transitions": 0, "payments": 0}, "orders": obj{"ks-1": untouched()}}},
			obj{"start": "serve"},
			obj{"send": 0},
			obj{"wait": "quiet"},
		},
		assert: obj{
			"orders": obj{"ks-1": paidOnce()}, "rows": obj{"events": 1, "transitions": 1, "payments": 1},
			"outcomes": list{list{"none"}}, "calls": obj{"fulfil": 1},
		},
	}
}

// killWorkCase ends work while it claims: another one makes the call.
func killWorkCase() ownCase {
	return ownCase{
		id: "kill-work", title: "work dies before it has claimed",
		orders:   registered("kw-1"),
		requests: requestsOf(stripeEvent("payment_intent.succeeded", "kw-1", "evt_kw_1")),
		statuses: list{list{200}},
		steps: list{
			obj{"fault": "kill_process", "process": "work", "instance": 1, "on": "UPDATE order_transitions", "at": "before_commit"},
			obj{"send": 0},
			obj{"wait": "quiet"},
			obj{"check": obj{"calls": obj{"total": 0}, "orders": obj{"kw-1": obj{"told_in": list{"nothing"}, "state_in": list{"paid"}}}}},
			obj{"start": "work"},
			obj{"wait": "quiet"},
		},
		assert: obj{"orders": obj{"kw-1": paidOnce()}, "rows": obj{"transitions": 1}, "calls": obj{"fulfil": 1, "total": 1}},
	}
}

// killThenCase goes on with the process before the fault has killed it: what it
// asks for happens after the kill.
func killThenCase(name string, then ...any) ownCase {
	ref := "kt-" + name
	steps := list{
		obj{"fault": "kill_process", "process": "work", "on": "UPDATE order_transitions", "at": "before_commit"},
		obj{"send": 0},
	}
	return ownCase{
		id: "kill-then-" + name, title: "work is to die at its claim, and nobody waits for that: " + name,
		orders:   registered(ref),
		requests: requestsOf(stripeEvent("payment_intent.succeeded", ref, "evt_"+ref)),
		statuses: list{list{200}},
		steps:    append(append(steps, then...), obj{"wait": "quiet"}),
		assert: obj{
			"orders": obj{ref: paidOnce()}, "rows": obj{"events": 1, "transitions": 1}, "calls": obj{"fulfil": 1, "total": 1},
		},
	}
}

// killUnreachedCase arms faults that nothing reaches: the steps do not wait for
// what cannot come, and the processes end and start as ever.
func killUnreachedCase() ownCase {
	armed := func(process, on string) obj {
		return obj{"fault": "kill_process", "process": process, "on": on, "at": "before_commit"}
	}
	return ownCase{
		id: "kill-unreached", title: "Processes are to die where they never come",
		orders:   registered("ku-1"),
		requests: requestsOf(stripeEvent("payment_intent.succeeded", "ku-1", "evt_ku_1")),
		statuses: list{list{200}},
		steps: list{
			armed("serve", "INSERT order_transitions"),
			armed("work", "INSERT processed_events"),
			obj{"restart": "serve"},
			obj{"restart": "work"},
			obj{"clear_faults": true},
			obj{"send": 0},
			obj{"wait": "quiet"},
		},
		assert: obj{"orders": obj{"ku-1": paidOnce()}, "rows": obj{"events": 1}, "outcomes": list{list{"applied"}}, "calls": obj{"fulfil": 1, "total": 1}},
	}
}

// killConnectionCase loses the connection at the commit.
func killConnectionCase() ownCase {
	return ownCase{
		id: "kill-connection", title: "The connection is lost at the commit",
		orders:   registered("kc-1"),
		requests: requestsOf(stripeEvent("payment_intent.succeeded", "kc-1", "evt_kc_1")),
		statuses: list{list{200, 503}},
		steps: list{
			obj{"fault": "kill_connection", "on": "INSERT order_transitions", "at": "before_commit", "times": 1},
			obj{"send": 0},
			obj{"check": obj{"when": list{obj{"if": obj{"request": 0, "status": list{503}}, "rows": obj{"events": 0, "transitions": 0}}}}},
			obj{"clear_faults": true},
			obj{"send": 0, "status": list{200}},
			obj{"wait": "quiet"},
		},
		assert: obj{
			"orders": obj{"kc-1": paidOnce()}, "rows": obj{"events": 1, "transitions": 1}, "calls": obj{"fulfil": 1},
			"when": list{obj{"if": obj{"order": "kc-1", "state_in": list{"paid"}}, "payloads_kept": list{0}}},
		},
	}
}

// delayCase slows a statement down; whoever comes meanwhile is a duplicate.
func delayCase() ownCase {
	return ownCase{
		id: "delay", title: "A slow statement, and a copy that comes meanwhile",
		orders:   registered("de-1"),
		requests: requestsOf(stripeEvent("payment_intent.succeeded", "de-1", "evt_de_1")),
		statuses: list{list{200}},
		steps: list{
			obj{"fault": "sql_delay", "on": "INSERT order_transitions", "ms": 700, "times": 1},
			obj{"parallel": list{0}, "copies": 2, "stagger_ms": 200},
			obj{"clear_faults": true},
			obj{"wait": "quiet"},
		},
		assert: obj{
			"orders": obj{"de-1": paidOnce()}, "rows": obj{"events": 1, "transitions": 1},
			"outcomes": list{list{"applied"}}, "calls": obj{"fulfil": 1}, "answers": list{obj{"request": 0, "max_ms": 10000}},
		},
	}
}

func merchantErrorCase() ownCase {
	return ownCase{
		id: "merchant-error", title: "The merchant answers 503, then 200",
		orders:   registered("me-1"),
		requests: requestsOf(stripeEvent("payment_intent.succeeded", "me-1", "evt_me_1")),
		statuses: list{list{200}},
		steps: list{
			obj{"merchant": "error"},
			obj{"send": 0},
			obj{"wait": "quiet"},
			obj{"check": obj{"calls": obj{"fulfil": 1, "total": 1}, "orders": obj{"me-1": obj{"told_in": list{"nothing"}}}}},
			obj{"merchant": "ok"},
		},
		assert: obj{"orders": obj{"me-1": paidOnce()}, "calls": obj{"fulfil": 1, "total": 1}},
	}
}

// merchantHangCase kills the worker whose call hangs.
func merchantHangCase() ownCase {
	return ownCase{
		id: "merchant-hang", title: "The merchant does not answer, and the worker dies meanwhile",
		orders:   registered("mh-1"),
		requests: requestsOf(stripeEvent("payment_intent.succeeded", "mh-1", "evt_mh_1")),
		statuses: list{list{200}},
		steps: list{
			obj{"merchant": "hang"},
			obj{"send": 0},
			obj{"kill": "work"},
			obj{"merchant": "ok"},
			obj{"start": "work"},
			obj{"wait": "quiet"},
			obj{"check": obj{"calls": obj{"fulfil": 1, "total": 1}, "orders": obj{"mh-1": obj{"told_in": list{"fulfilled"}}}}},
		},
		assert: obj{"orders": obj{"mh-1": paidOnce()}, "calls": obj{"fulfil": 1}},
	}
}

// clockCase moves the program's clock away from the database's.
func clockCase() ownCase {
	at := 400
	return ownCase{
		id: "clock", title: "The program's clock moves, and signatures with it",
		orders: registered("cl-1", "cl-2"),
		requests: requestsOf(
			stripeEvent("payment_intent.succeeded", "cl-1", "evt_cl_1").with(func(m *message) { m.at, m.atS = time.Unix(ownNow+400, 0), &at }),
			stripeEvent("payment_intent.succeeded", "cl-2", "evt_cl_2").with(func(m *message) { m.atS = &at }),
		),
		statuses: list{list{200}, list{401}},
		steps:    list{obj{"advance_clock_s": 500}, obj{"advance_clock_s": -100}, obj{"send": 0}, obj{"send": 1}, obj{"wait": "quiet"}},
		assert: obj{
			"orders":   obj{"cl-1": paidOnce(), "cl-2": untouched()},
			"outcomes": list{list{"applied"}, list{"none"}}, "rows": obj{"events": 1, "payments": 1},
		},
	}
}

// reloadCase drops a secret and an HMAC key.
func reloadCase() ownCase {
	old := stripeEvent("payment_intent.succeeded", "rl-1", "evt_rl_1").with(func(m *message) { m.source.Secrets = []string{ownOld} })
	key := strings.Repeat("AB", 32)
	return ownCase{
		id: "reload", title: "Secrets change while the program runs",
		sources: obj{"stripe": stripeSource(), "adyen": adyenSource()},
		orders:  registered("rl-1", "rl-2", "rl-3"),
		requests: requestsOf(
			old, stripeEvent("payment_intent.succeeded", "rl-2", "evt_rl_2"),
			adyenItem("AUTHORISATION", "rl-3", "PSPRELOAD0000001"),
			adyenItem("AUTHORISATION", "rl-3", "PSPRELOAD0000002").with(func(m *message) { m.source.HMACKeys = []string{key} }),
		),
		statuses: list{list{200}, list{200}, list{401}, list{200}},
		steps: list{
			obj{"send": 0},
			obj{"send": 3, "status": list{401}},
			obj{"reload": obj{"source": "stripe", "secrets": list{ownSecret}}},
			obj{"reload": obj{"source": "adyen", "secrets": list{key}}},
			obj{"send": 0, "status": list{401}},
			obj{"send": 1},
			obj{"send": 2},
			obj{"send": 3},
			obj{"wait": "quiet"},
		},
		assert: obj{"orders": obj{"rl-1": paidOnce(), "rl-2": paidOnce(), "rl-3": paidOnce()}, "rows": obj{"events": 3}},
	}
}
