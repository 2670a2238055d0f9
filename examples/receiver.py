"""Receive webhooks that the broker has signed: receiver.py SECRET PORT."""

import base64
import hashlib
import hmac
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

secret, port = sys.argv[1], int(sys.argv[2])
key = base64.b64decode(secret.removeprefix("whsec_"))
seen = set()  # a real receiver keeps it with what it does, in one transaction


class Hook(BaseHTTPRequestHandler):
    """Answers posts of the broker."""

    def do_POST(self):
        """Take an event that is signed, and not an old one sent again; do it once."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        message, sent = self.headers["webhook-id"], self.headers["webhook-timestamp"]
        digest = hmac.digest(key, f"{message}.{sent}.".encode() + body, hashlib.sha256)
        expected = "v1," + base64.b64encode(digest).decode()
        is_ours = any(
            hmac.compare_digest(each, expected)
            for each in self.headers["webhook-signature"].split()
        )
        if not is_ours or abs(time.time() - int(sent)) > 300:
            self.send_error(401)
            return
        if message not in seen:
            offer = json.loads(body)["data"]
            print(f"{offer['title']} for {offer['price']}", flush=True)
            seen.add(message)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        """Log nothing for each request."""


print("The receiver is ready.", flush=True)
HTTPServer(("127.0.0.1", port), Hook).serve_forever()
