#!/usr/bin/env node
// A tiny checkout: registers a cart as an order, then confirms its payment. Every call may be repeated, by a retry here or by
// running the same command again after a crash: there is one order and one payment.
//
//	node checkout.mjs CART AMOUNT CURRENCY GATEWAY PAYMENT
//
// Environment: PAIDONCE_API_KEY; PAIDONCE_URL (default http://127.0.0.1:8080); SHOP_DIR, where intents are kept (default shop);
// PATIENCE, how many seconds to try (default 60). Exit codes: 0 done, 1 refused, 2 called wrongly, 75 not known yet: run it again.
import { randomUUID } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const [cart, amount, currency, gateway, payment] = process.argv.slice(2);
const { PAIDONCE_API_KEY: apiKey, PAIDONCE_URL: url = "http://127.0.0.1:8080", SHOP_DIR: folder = "shop", PATIENCE = "60" } = process.env;

class Failure extends Error {
  constructor(exitCode, message) {
    super(message);
    this.exitCode = exitCode;
  }
}

// An intent is what is about to be asked for: its key, and the very bytes. It is on the disk before the first byte is sent, and
// whoever comes to the same step of the same cart again, a retry, a page that is reloaded, another process, sends it as it
// stands there. In a shop it is a row beside the cart: INSERT … ON CONFLICT DO NOTHING, then SELECT.
function intent(step, path, data) {
  const file = `${folder}/${cart}.${step}.json`;
  const draft = `${file}.${randomUUID()}`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(draft, JSON.stringify({ key: randomUUID(), path, body: JSON.stringify({ data }) }), { flush: true });
  try {
    linkSync(draft, file); // all of it or nothing, and only the first one
  } catch (err) {
    if (err.code !== "EEXIST") throw err;
  } finally {
    rmSync(draft);
  }
  return JSON.parse(readFileSync(file, "utf8"));
}

// send asks until there is an answer. The same key and bytes every time: they name this one order, however often they arrive.
async function send({ key, path, body }) {
  const end = Date.now() + PATIENCE * 1000;
  for (let attempt = 0; ; attempt++) {
    let wait = Math.random() * Math.min(15_000, 250 * 2 ** attempt);
    let why;
    try {
      const res = await fetch(url + path, {
        method: "POST",
        headers: { Authorization: `Bearer ${apiKey}`, "Content-Type": "application/json", "Idempotency-Key": key },
        body,
        redirect: "manual", // keys are for this host alone
        signal: AbortSignal.timeout(15_000),
      });
      const text = await res.text();
      if (res.ok) return JSON.parse(text).data; // 201: made now. 200: it was there already, which is as good.
      why = `${res.status} ${text}`;
      const inProgress = res.status === 409 && text.includes('"idempotency_key_in_progress"');
      if (!inProgress && res.status !== 429 && res.status < 500) throw new Failure(1, `refused: ${why}`);
      wait = Math.max(wait, 1000 * res.headers.get("Retry-After") || 0);
    } catch (err) {
      if (err instanceof Failure) throw err;
      why = err.cause?.message ?? err.message; // no answer, or half of one: the order may be there or not
    }
    if (Date.now() + wait > end) throw new Failure(75, `not known yet: ${why}; run this again`);
    console.error(`once more in ${Math.round(wait)} ms: ${why}`);
    await sleep(wait);
  }
}

async function checkout() {
  if (!payment || !apiKey || !/^[\w.-]+$/.test(cart) || !/^\d{1,15}$/.test(amount)) {
    throw new Failure(2, "usage: PAIDONCE_API_KEY=… checkout.mjs CART AMOUNT CURRENCY GATEWAY PAYMENT");
  }
  const order = await send(intent("order", "/v1/orders", { amount: Number(amount), currency, metadata: { external_ref: cart } }));
  console.log(`order ${order.id} ${order.state}`);

  // Here the customer pays at the gateway, which answers the shop. What it said is confirmed at once; its webhook may come before,
  // after or never: the order is paid once.
  const paid = await send(
    intent("confirm", `/v1/orders/${order.id}/confirm`, { gateway, payment, status: "captured", amount: Number(amount), currency }),
  );
  console.log(`order ${paid.id} ${paid.state}`);
}

checkout().catch((err) => {
  console.error(err instanceof Failure ? err.message : err);
  process.exitCode = err.exitCode ?? 1;
});
