#!/usr/bin/env python3
"""A tiny checkout: registers a cart as an order, then confirms its payment. Every call may be repeated, by a retry here or by
running the same command again after a crash: there is one order and one payment.

    python3 checkout.py CART AMOUNT CURRENCY GATEWAY PAYMENT

Environment: PAIDONCE_API_KEY; PAIDONCE_URL (default http://127.0.0.1:8080); SHOP_DIR, where shop.db is kept (default shop);
PATIENCE, how many seconds to try (default 60). Exit codes: 0 done, 1 refused, 2 called wrongly, 75 not known yet: run it again.
"""

import argparse
import http.client
import json
import os
import pathlib
import random
import sqlite3
import sys
import time
import urllib.parse
import uuid

PAIDONCE = urllib.parse.urlsplit(os.environ.get("PAIDONCE_URL", "http://127.0.0.1:8080"))
API_KEY = os.environ.get("PAIDONCE_API_KEY", "")
PATIENCE = float(os.environ.get("PATIENCE", "60"))


class Failure(Exception):
    def __init__(self, exit_code, message):
        super().__init__(message)
        self.exit_code = exit_code


def open_shop():
    folder = pathlib.Path(os.environ.get("SHOP_DIR", "shop"))
    folder.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(folder / "shop.db")
    db.execute("CREATE TABLE IF NOT EXISTS intents (cart TEXT, step TEXT, key TEXT, path TEXT, body TEXT, PRIMARY KEY (cart, step))")
    return db


def intent(db, cart, step, path, data):
    """An intent is what is about to be asked for: its key, and the very bytes. It is committed before the first byte is sent, and
    whoever comes to the same step of the same cart again, a retry, a page that is reloaded, another process, sends it as it
    stands there."""
    with db:
        db.execute(
            "INSERT INTO intents VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (cart, step, str(uuid.uuid4()), path, json.dumps({"data": data})),
        )
    return db.execute("SELECT key, path, body FROM intents WHERE cart = ? AND step = ?", (cart, step)).fetchone()


def post(key, path, body):
    """Sends a request once. http.client follows no redirects: keys are for this host alone."""
    connect = http.client.HTTPSConnection if PAIDONCE.scheme == "https" else http.client.HTTPConnection
    conn = connect(PAIDONCE.netloc, timeout=15)
    try:
        conn.request("POST", path, body.encode(), {
            "Authorization": "Bearer " + API_KEY,
            "Content-Type": "application/json",
            "Idempotency-Key": key,
        })
        res = conn.getresponse()
        return res.status, res.headers.get("Retry-After", ""), res.read().decode()
    finally:
        conn.close()


def send(key, path, body):
    """Asks until there is an answer. The same key and bytes every time: they name this one order, however often they arrive."""
    end = time.monotonic() + PATIENCE
    attempt = 0
    while True:
        wait = random.uniform(0, min(15, 0.25 * 2**attempt))
        try:
            status, retry_after, text = post(key, path, body)
            if 200 <= status < 300:
                return json.loads(text)["data"]  # 201: made now. 200: it was there already, which is as good.
            why = f"{status} {text}"
            in_progress = status == 409 and '"idempotency_key_in_progress"' in text
            if not in_progress and status != 429 and status < 500:
                raise Failure(1, f"refused: {why}")
            if retry_after.isdigit():
                wait = max(wait, int(retry_after))
        except (OSError, http.client.HTTPException, ValueError) as err:
            why = repr(err)  # no answer, or half of one: the order may be there or not
        if time.monotonic() + wait > end:
            raise Failure(75, f"not known yet: {why}; run this again")
        print(f"once more in {wait:.2f} s: {why}", file=sys.stderr)
        time.sleep(wait)
        attempt += 1


def checkout(cart, amount, currency, gateway, payment):
    db = open_shop()
    order = send(*intent(db, cart, "order", "/v1/orders", {
        "amount": amount, "currency": currency, "metadata": {"external_ref": cart},
    }))
    print("order", order["id"], order["state"], flush=True)

    # Here the customer pays at the gateway, which answers the shop. What it said is confirmed at once; its webhook may come
    # before, after or never: the order is paid once.
    paid = send(*intent(db, cart, "confirm", f"/v1/orders/{order['id']}/confirm", {
        "gateway": gateway, "payment": payment, "status": "captured", "amount": amount, "currency": currency,
    }))
    print("order", paid["id"], paid["state"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cart")
    parser.add_argument("amount", type=int)
    for name in ("currency", "gateway", "payment"):
        parser.add_argument(name)
    checkout(**vars(parser.parse_args()))


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        print(failure, file=sys.stderr)
        sys.exit(failure.exit_code)
