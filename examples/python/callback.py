#!/usr/bin/env python3
"""The shop's side of the callback: does what Paidonce says, once. The contract is docs/callback.md.

    PAIDONCE_SECRET=whsec_… PORT=4242 python3 callback.py

Environment also: SHOP_DIR, where shop.db is kept (default shop).
"""

import base64
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import sqlite3
import time

KEY = base64.b64decode(os.environ["PAIDONCE_SECRET"].removeprefix("whsec_"))
FOLDER = pathlib.Path(os.environ.get("SHOP_DIR", "shop"))


def open_shop():
    FOLDER.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(FOLDER / "shop.db", timeout=30)
    db.execute("CREATE TABLE IF NOT EXISTS orders (ref TEXT PRIMARY KEY, paidonce_version INTEGER NOT NULL)")
    db.execute("CREATE TABLE IF NOT EXISTS jobs (ref TEXT, version INTEGER, effect TEXT, after TEXT)")
    return db


def take(call):
    """Notes what is to be done, once, whatever comes again or late. The version and the job are one transaction."""
    db = open_shop()
    try:
        with db:
            raised = db.execute(
                "INSERT INTO orders VALUES (:external_ref, :version) ON CONFLICT (ref) DO UPDATE"
                " SET paidonce_version = excluded.paidonce_version WHERE paidonce_version < excluded.paidonce_version",
                call,
            ).rowcount
            if raised:
                db.execute("INSERT INTO jobs VALUES (:external_ref, :version, :effect, :after)", call)
    finally:
        db.close()
    if raised:  # fulfil: deliver. hold, release, revoke: see docs/callback.md
        print(f"{call['effect']} {call['external_ref']} after {call['after']}", flush=True)


def genuine(headers, body):
    stamp = headers.get("webhook-timestamp", "")
    if not stamp.isdecimal() or abs(time.time() - int(stamp)) > 300:
        return False
    message = f"{headers.get('webhook-id', '')}.{stamp}.".encode() + body
    want = b"v1," + base64.b64encode(hmac.digest(KEY, message, hashlib.sha256))
    return any(hmac.compare_digest(want, got.encode()) for got in headers.get("webhook-signature", "").split(" "))


class Callback(http.server.BaseHTTPRequestHandler):
    timeout = 10

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > 1 << 16:
            return self.answer(413)
        body = self.rfile.read(int(length))  # as it came: that is what is signed
        if not genuine(self.headers, body):
            return self.answer(401)
        try:
            take(json.loads(body)["data"])
        except sqlite3.Error as err:
            self.log_error("%s", err)
            return self.answer(500)  # it comes again
        self.answer(204)  # only now: it is committed

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_request(self, code="-", size="-"):
        pass


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "4242"))), Callback)
    print("listening on", server.server_port, flush=True)
    server.serve_forever()
