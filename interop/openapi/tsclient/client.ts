// Talks to a running Paidonce through a client whose types are made of the OpenAPI document: tsc checks that the document says
// what is answered, and this that the program does. It prints "ok" at its end.
import createClient from "openapi-fetch";
import type { components, paths } from "./generated/schema.js";

type Order = components["schemas"]["Order"];
type Problem = components["schemas"]["Problem"];

const [url, key] = process.argv.slice(2);
if (!url || !key) throw new Error("usage: client URL KEY");

const api = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${key}` } });
const stranger = createClient<paths>({ baseUrl: url, headers: { Authorization: "Bearer nobody's" } });

function equal<T>(got: T, want: T, what: string): void {
  if (JSON.stringify(got) !== JSON.stringify(want)) throw new Error(`${what}: ${JSON.stringify(got)}, and not ${JSON.stringify(want)}`);
}

function present<T>(value: T | undefined | null, what: string): T {
  if (value === undefined || value === null) throw new Error(`no ${what}`);
  return value;
}

// refusedAs looks at a problem; an error of another type does not compile.
function refusedAs(error: Problem | undefined, code: Problem["code"], status: number): Problem {
  const problem = present(error, "problem");
  equal([problem.code, problem.status], [code, status], "problem");
  return problem;
}

const create = (idempotencyKey: string, amount: number) =>
  api.POST("/v1/orders", {
    params: { header: { "Idempotency-Key": idempotencyKey } },
    body: { data: { amount, currency: "EUR", items: [{ sku: "A", qty: 2 }], metadata: { external_ref: "ts_1" } } },
  });

// Created, and the same key again is the same answer.
const first = await create("ts-key-1", 5000);
equal(first.response.status, 201, "created");
const order: Order = present(first.data, "order").data;
equal([order.external_ref, order.state, order.amount, order.version], ["ts_1", "pending", 5000, 1], "order");
const again = await create("ts-key-1", 5000);
equal([again.response.status, again.response.headers.get("Idempotent-Replayed")], [201, "true"], "replay");
equal(present(again.data, "order").data, order, "replayed order");

// The key for something else is a mistake; another key for the same name is the order that there is.
refusedAs((await create("ts-key-1", 5001)).error, "idempotency_key_reused", 422);
const known = await create("ts-key-2", 5000);
equal([known.response.status, present(known.data, "order").data.id], [200, order.id], "by its name");

// Read.
const path = { params: { path: { id: order.id } } };
const read = await api.GET("/v1/orders/{id}", path);
equal(present(read.data, "order").data.metadata, { external_ref: "ts_1" }, "metadata");
equal(read.response.headers.get("ETag"), '"1"', "ETag");

// What is wrong is said where it is.
const wrong = await api.POST("/v1/orders", {
  params: { header: { "Idempotency-Key": "ts-key-3" } },
  body: { data: { amount: -1, currency: "EUR" } },
});
equal(refusedAs(wrong.error, "invalid_body", 422).errors?.map((e) => e.pointer), ["/data/amount"], "pointer");
refusedAs((await api.GET("/v1/orders/{id}", { params: { path: { id: crypto.randomUUID() } } })).error, "order_not_found", 404);
refusedAs((await stranger.GET("/v1/orders/{id}", path)).error, "unauthorized", 401);

console.log("ok");
