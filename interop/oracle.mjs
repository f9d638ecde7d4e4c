// Answers, line by line, what the gateways' own libraries say of a delivery.
// A line in is JSON: {sdk, op, secret, header, body, url, query}; a line out is
// {ok} for op "verify" (and why, if not), {header, body} for op "sign".
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import adyen from "@adyen/api-library";
import { Paddle } from "@paddle/paddle-node-sdk";
import "@shopify/shopify-api/adapters/node";
import { shopifyApi } from "@shopify/shopify-api";
import braintree from "braintree";
import coinbase from "coinbase-commerce-node";
import * as gocardless from "gocardless-nodejs/webhooks";
import Lithic from "lithic";
import { WebhookSignatureValidator } from "mercadopago";
import Razorpay from "razorpay";
import * as redsys from "redsys-easy";
import { WebhooksHelper } from "square";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";
import * as svix from "svix";

const coinbaseWebhook = createRequire(import.meta.url)("coinbase-commerce-node/lib/Webhook.js");
const stripe = new Stripe("sk_test_none");
const paddle = new Paddle("none");
const hmac = new adyen.hmacValidator();
const lower = (h) => Object.fromEntries(Object.entries(h).map(([k, v]) => [k.toLowerCase(), v]));
const braintreeOf = (secret) => {
  const [publicKey, privateKey] = secret.split(":");
  return new braintree.BraintreeGateway({ environment: braintree.Environment.Sandbox, merchantId: "m", publicKey, privateKey });
};

const verify = {
  stripe: (r) => stripe.webhooks.constructEvent(r.body, lower(r.header)["stripe-signature"], r.secret),
  standardwebhooks: (r) => new Webhook(r.secret).verify(r.body, lower(r.header)),
  svix: (r) => (new svix.Webhook(r.secret).verify(r.body, lower(r.header)), true), // it returns nothing
  lithic: (r) => new Lithic({ apiKey: "none" }).webhooks.unwrap(r.body, lower(r.header), r.secret),
  adyen: (r) => JSON.parse(r.body).notificationItems.every((i) => hmac.validateHMAC(i.NotificationRequestItem, r.secret)),
  "adyen-platform": (r) => hmac.validateHMACSignature(r.secret, lower(r.header)["hmacsignature"], r.body),
  square: (r) =>
    WebhooksHelper.verifySignature({
      requestBody: r.body,
      signatureHeader: lower(r.header)["x-square-hmacsha256-signature"],
      signatureKey: r.secret,
      notificationUrl: r.url,
    }),
  razorpay: (r) => Razorpay.validateWebhookSignature(r.body, lower(r.header)["x-razorpay-signature"], r.secret),
  paddle: (r) => paddle.webhooks.isSignatureValid(r.body, r.secret, lower(r.header)["paddle-signature"]),
  shopify: async (r) => {
    const api = shopifyApi({
      apiKey: "none", apiSecretKey: r.secret, apiVersion: "2025-07", hostName: "shop.example", isEmbeddedApp: false, scopes: [],
      logger: { log: () => {} },
    });
    const headers = {
      "X-Shopify-Topic": "orders/paid", "X-Shopify-Shop-Domain": "a.myshopify.com", "X-Shopify-API-Version": "2025-07",
      "X-Shopify-Webhook-Id": "b54557e4", ...r.header,
    };
    return (await api.webhooks.validate({ rawBody: r.body, rawRequest: { headers, method: "POST", url: "/" } })).valid;
  },
  braintree: async (r) => {
    const form = new URLSearchParams(r.body);
    await braintreeOf(r.secret).webhookNotification.parse(form.get("bt_signature"), form.get("bt_payload"));
    return true;
  },
  "coinbase-commerce": (r) => coinbaseWebhook.verifySigHeader(r.body, lower(r.header)["x-cc-webhook-signature"], r.secret),
  gocardless: (r) => (gocardless.verifySignature(r.body, r.secret, lower(r.header)["webhook-signature"]), true),
  mercadopago: (r) => {
    WebhookSignatureValidator.validate({
      xSignature: lower(r.header)["x-signature"], xRequestId: lower(r.header)["x-request-id"],
      dataId: new URLSearchParams(r.query).get("data.id"), secret: r.secret,
    });
    return true;
  },
  redsys: (r) => {
    const api = redsys.createRedsysAPI({ urls: redsys.SANDBOX_URLS, secretKey: r.secret });
    api.processRestNotification(Object.fromEntries(new URLSearchParams(r.body)));
    return true;
  },
};

const sign = {
  stripe: (r) => ({ header: { "Stripe-Signature": stripe.webhooks.generateTestHeaderString({ payload: r.body, secret: r.secret }) } }),
  standardwebhooks: (r) => standard(new Webhook(r.secret), "webhook", r),
  svix: (r) => standard(new svix.Webhook(r.secret), "svix", r),
  adyen: (r) => {
    const n = JSON.parse(r.body);
    for (const i of n.notificationItems) {
      const item = i.NotificationRequestItem;
      item.additionalData = { ...item.additionalData, hmacSignature: hmac.calculateHmac(item, r.secret) };
    }
    return { body: JSON.stringify(n) };
  },
  "adyen-platform": (r) => ({ header: { hmacsignature: hmac.calculateHmac(r.body, r.secret) } }),
  "coinbase-commerce": (r) => ({ header: { "X-CC-Webhook-Signature": coinbaseWebhook.computeSignature(r.body, r.secret) } }),
  braintree: (r) => {
    const n = braintreeOf(r.secret).webhookTesting.sampleNotification(r.body, "id_1");
    return { body: new URLSearchParams(n).toString() };
  },
};

function standard(webhook, prefix, r) {
  const now = new Date();
  return {
    header: {
      [`${prefix}-id`]: "msg_1",
      [`${prefix}-timestamp`]: String(Math.floor(now / 1000)),
      [`${prefix}-signature`]: webhook.sign("msg_1", now, r.body),
    },
  };
}

console.log = console.warn = console.error = () => {};
const write = (answer) => process.stdout.write(JSON.stringify(answer) + "\n");
for await (const line of createInterface({ input: process.stdin })) {
  const r = JSON.parse(line);
  try {
    if (r.op === "sign") write(await sign[r.sdk](r));
    else write({ ok: !!(await verify[r.sdk](r)) });
  } catch (e) {
    write({ ok: false, why: String(e?.constructor?.name ?? "Error") });
  }
}
