#!/usr/bin/env node
// The shop's side of the callback: does what Paidonce says, once. The contract is docs/callback.md.
//
//	PAIDONCE_SECRET=whsec_… PORT=4242 node callback.mjs
//
// Environment also: SHOP_DIR, where the journal is kept (default shop).
import { createHmac, timingSafeEqual } from "node:crypto";
import { appendFileSync, mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";

const { PAIDONCE_SECRET, PORT = "4242", SHOP_DIR: folder = "shop" } = process.env;
const key = Buffer.from(PAIDONCE_SECRET.replace(/^whsec_/, ""), "base64");

// A line of the journal says what is to be done and at which version, so both are kept or neither. In a shop: a transaction that
// raises orders.paidonce_version and enters a job.
const journal = `${folder}/callbacks.jsonl`;
const versions = new Map();
mkdirSync(folder, { recursive: true });
for (const line of readFileSync(journal, { encoding: "utf8", flag: "a+" }).split("\n")) {
  try {
    const { ref, version } = JSON.parse(line);
    versions.set(ref, version);
  } catch {
    // Empty, or cut off by a crash: then it was not answered, and the call comes again.
  }
}

function take({ external_ref: ref, version, effect, after }) {
  if (version <= (versions.get(ref) ?? 0)) return; // seen, or overtaken by a newer one
  appendFileSync(journal, "\n" + JSON.stringify({ ref, version, effect, after }), { flush: true });
  versions.set(ref, version);
  console.log(`${effect} ${ref} after ${after}`); // fulfil: deliver. hold, release, revoke: see docs/callback.md
}

function genuine(headers, body) {
  if (!(Math.abs(Date.now() / 1000 - headers["webhook-timestamp"]) <= 300)) return false;
  const mac = createHmac("sha256", key).update(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.`).update(body);
  const want = Buffer.from("v1," + mac.digest("base64"));
  return (headers["webhook-signature"] ?? "")
    .split(" ")
    .map((entry) => Buffer.from(entry))
    .some((got) => got.length === want.length && timingSafeEqual(got, want));
}

createServer(async (req, res) => {
  const chunks = [];
  let size = 0;
  try {
    for await (const chunk of req) {
      if ((size += chunk.length) > 1 << 16) return res.writeHead(413).end();
      chunks.push(chunk);
    }
    const body = Buffer.concat(chunks); // as it came: that is what is signed
    if (!genuine(req.headers, body)) return res.writeHead(401).end();
    take(JSON.parse(body).data);
    res.writeHead(204).end(); // only now: it is on the disk
  } catch (err) {
    console.error(err);
    if (!res.headersSent) res.writeHead(500).end(); // it comes again
  }
}).listen(Number(PORT), "127.0.0.1", function () {
  console.log(`listening on ${this.address().port}`);
});
