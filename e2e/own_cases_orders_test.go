package e2e_test

// statesCase starts from orders in every status.
func statesCase() ownCase {
	order := func(status string, more obj) obj {
		o := obj{"ref": "st-" + status, "amount_minor": 5000, "currency": "EUR", "status": status, "source": "stripe", "payment_id": "pi_st_" + status}
		for key, value := range more {
			o[key] = value
		}
		return o
	}
	part := obj{"ref": "st-part", "payment_id": "pi_st_part", "captured": 2000}
	backwards := obj{"ref": "st-backwards", "payment_id": "pi_st_backwards", "captured": 5000, "refunded": 1500}
	return ownCase{
		id: "states", title: "Orders in every status, and nothing of the set-up is counted",
		sources: obj{"stripe": stripeSource(), "adyen": adyenSource()},
		orders: list{
			order("registered", nil), order("authorized", nil), order("paid", nil), order("shipped", obj{"source": "adyen", "payment_id": "PSPSTATES0000001"}),
			order("refunded", nil), order("refunded", backwards), order("disputed", nil), order("paid", part),
			order("canceled", obj{"captured": 5000, "refunded": 5000}),
			obj{"ref": "st-void", "amount_minor": 5000, "currency": "EUR", "status": "canceled"},
		},
		requests: requestsOf(
			stripeEvent("payment_intent.succeeded", "somewhere-else", "evt_st_1").with(func(m *message) { m.sample.Payment = "pi_st_registered" }),
			adyenItem("REFUND", "st-shipped", "PSPSTATES0000001").with(func(m *message) { m.sample.Ref, m.sample.Amount.Minor = "PSPSTATESREFUND1", 1000 }),
		),
		statuses: repeat(200, 2),
		steps: list{
			obj{"check": obj{
				"rows":  obj{"events": 0, "transitions": 0, "payments": 0, "orders": 0},
				"calls": obj{"total": 0},
				"orders": obj{
					"st-registered":  untouched(),
					"st-authorized":  obj{"state_in": list{"authorized"}, "captured": 0, "told_in": list{"nothing"}, "flags_only": list{}},
					"st-paid":        paidOnce(),
					"st-shipped":     paidOnce(),
					"st-refunded":    obj{"state_in": list{"refunded"}, "captured": 5000, "refunded": 5000, "told_in": list{"revoked"}, "flags_only": list{}},
					"st-backwards":   obj{"state_in": list{"partially_refunded"}, "captured": 5000, "refunded": 1500, "told_in": list{"fulfilled"}},
					"st-disputed":    obj{"state_in": list{"disputed"}, "captured": 5000, "told_in": list{"fulfilled"}},
					"st-part":        obj{"state_in": list{"partially_paid"}, "captured": 2000, "flags_only": list{"underpaid"}},
					"st-canceled":    obj{"state_in": list{"refunded"}, "captured": 5000, "refunded": 5000, "state_not": list{"paid", "canceled"}},
					"st-void":        obj{"state_in": list{"canceled"}, "captured": 0, "told_in": list{"nothing"}},
					"somewhere-else": obj{"absent": true},
				},
			}},
			obj{"send": 0},
			obj{"send": 1},
			obj{"wait": "quiet"},
		},
		assert: obj{
			"orders": obj{
				"st-registered": obj{"state_in": list{"paid"}, "captured": 5000, "told_in": list{"fulfilled"}},
				"st-shipped":    obj{"state_in": list{"partially_refunded"}, "refunded": 1000, "told_in": list{"fulfilled"}},
			},
			"payments_known": list{"pi_st_registered", "PSPSTATES0000001"},
			"rows":           obj{"events": 2, "payments": 0},
			"event_types":    list{"payment_intent.succeeded", "REFUND"},
		},
	}
}

// lateCase registers an order after its money has come.
func lateCase() ownCase {
	return ownCase{
		id: "late", title: "Money first, then the order", orders: list{},
		requests: requestsOf(stripeEvent("payment_intent.succeeded", "la-1", "evt_la_1")),
		statuses: list{list{200}},
		steps: list{
			obj{"send": 0},
			obj{"wait": "quiet"},
			obj{"check": obj{
				"orders": obj{"la-1": obj{"registered": false, "flags": list{"unregistered"}, "told_in": list{"nothing"}, "version": obj{"min": 1}}},
				"rows":   obj{"orders": 1}, "calls": obj{"total": 0},
			}},
			obj{"register_order": obj{"ref": "la-1", "amount_minor": 5000, "currency": "EUR"}},
			obj{"wait": "quiet"},
			obj{"read_order": "la-1"},
		},
		assert: obj{
			"orders": obj{"la-1": obj{
				"state_in": list{"paid"}, "registered": true, "flags_absent": list{"unregistered"}, "flags_only": list{}, "told_in": list{"fulfilled"},
				"version": obj{"min": 2},
			}},
			"outcomes": list{list{"waiting"}}, "rows": obj{"events": 1, "payments": 1, "orders": 1}, "calls": obj{"fulfil": 1},
		},
	}
}

// stoppedLateCase registers two orders while no worker runs: one whose row a
// webhook has made, which counts, and one whose row the step makes, which does not.
func stoppedLateCase() ownCase {
	register := func(ref string) obj {
		return obj{"register_order": obj{"ref": ref, "amount_minor": 5000, "currency": "EUR"}}
	}
	return ownCase{
		id: "late-stopped", title: "Money before one order and after another, and no worker", orders: list{},
		requests: requestsOf(
			stripeEvent("payment_intent.succeeded", "ls-1", "evt_ls_1"), stripeEvent("payment_intent.succeeded", "ls-2", "evt_ls_2"),
		),
		statuses: repeat(200, 2),
		steps: list{
			obj{"stop": "work"},
			obj{"send": 0},
			register("ls-1"),
			register("ls-2"),
			register("ls-2"),
			obj{"check": obj{
				"orders": obj{"ls-1": obj{"state_in": list{"paid"}, "told_in": list{"nothing"}}, "ls-2": untouched()},
				"rows":   obj{"orders": 1}, "calls": obj{"total": 0},
			}},
			obj{"send": 1},
			obj{"start": "work"},
			obj{"wait": "quiet"},
		},
		assert: obj{
			"orders": obj{"ls-1": paidOnce(), "ls-2": paidOnce()}, "outcomes": list{list{"waiting"}, list{"applied"}},
			"rows": obj{"events": 2, "payments": 2, "orders": 1}, "calls": obj{"fulfil": 2, "total": 2},
		},
	}
}

// prunedCase forgets events as retention does.
func prunedCase() ownCase {
	return ownCase{
		id: "pruned", title: "An event comes again after its row is gone",
		orders:   registered("pn-1"),
		requests: requestsOf(stripeEvent("payment_intent.succeeded", "pn-1", "evt_pn_1")),
		statuses: list{list{200}},
		steps: list{
			obj{"send": 0},
			obj{"wait": "quiet"},
			obj{"check": obj{"rows": obj{"events": 1}}},
			obj{"delete_rows": "processed_events"},
			obj{"check": obj{"rows": obj{"events": 0}}},
			obj{"send": 0},
			obj{"wait": "quiet"},
		},
		assert: obj{"orders": obj{"pn-1": paidOnce()}, "rows": obj{"transitions": 1, "events": obj{"max": 1}}, "calls": obj{"fulfil": 1}},
	}
}

func refusedCase(id string, sources obj) ownCase {
	return ownCase{
		id: id, title: "The program does not start with a bad source", startup: "refused", sources: sources,
		assert: obj{"rows": obj{"events": 0, "orders": 0}, "outbound": 0, "logs_absent": list{"panic"}},
	}
}

// apiCase needs the merchant's full API.
func apiCase() ownCase {
	create := func(key, idempotency, body string) obj {
		return obj{
			"method": "POST", "path": "/v1/orders", "body_base64": base64Of(body),
			"headers": obj{"Content-Type": "application/json", "Authorization": "Bearer {{" + key + "}}", "Idempotency-Key": idempotency},
		}
	}
	const body = `{"data":{"amount":5000,"currency":"EUR"}}`
	return ownCase{
		id: "api", title: "Keys, placeholders and replays of the API",
		orders: registered("ap-1"),
		requests: list{
			create("api_key", "own-1", body), create("api_key", "own-1", body), create("api_key_b", "own-1", body),
			obj{
				"method": "PATCH", "path": "/v1/orders/{{order_id:ap-1}}", "body_base64": base64Of(`{"data":{"metadata":{"a":"b"}}}`),
				"headers": obj{
					"Content-Type": "application/json", "Authorization": "Bearer {{api_key}}", "Idempotency-Key": "own-2",
					"If-Match": "{{etag:ap-1}}",
				},
			},
		},
		statuses: list{list{201}, list{201}, list{201}, list{200}},
		steps:    list{obj{"read_order": "ap-1"}, obj{"send": 0}, obj{"send": 1}, obj{"send": 2}, obj{"send": 3}},
		assert: obj{
			"rows": obj{"orders": 1, "idempotency_keys": 2}, "accounts": obj{"b": obj{"rows": obj{"orders": 1, "idempotency_keys": 1}}},
			"same_response": list{list{0, 1}}, "different_order": list{list{0, 2}}, "replayed": list{1},
		},
	}
}

// sweepCase needs idempotency keys.
func sweepCase() ownCase {
	return ownCase{
		id: "sweep", title: "Keys expire and are swept",
		requests: list{obj{
			"method": "POST", "path": "/v1/orders", "body_base64": base64Of(`{"data":{"amount":5000,"currency":"EUR"}}`),
			"headers": obj{"Content-Type": "application/json", "Authorization": "Bearer {{api_key}}", "Idempotency-Key": "own-3"},
		}},
		statuses: list{list{201}},
		steps: list{
			obj{"send": 0}, obj{"expire_keys": true}, obj{"loop_start": "sweep_keys"}, obj{"send": 0}, obj{"loop_stop": "sweep_keys"},
		},
		assert: obj{"rows": obj{"orders": obj{"min": 1, "max": 2}}},
	}
}
