"""Somebody who takes what webhooks are sent, or does not."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread


class Receiver:
    """A real HTTP server that answers as a test tells it, and remembers what it took."""

    def __init__(self):
        self.answers = []
        """What the next requests get: a status, or a status and headers, or "hang up" or "take and hang up"."""
        self.chance = None
        self.requests, self.taken = [], []
        self.lock = Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with outer.lock:
                    answer = outer.next_answer()
                    outer.requests.append((dict(self.headers), body))
                    status, headers = answer if isinstance(answer, tuple) else (answer, {})
                    if status in (200, "take and hang up"):
                        outer.taken.append((self.headers["Idempotency-Key"], body))
                if isinstance(status, str):
                    self.close_connection = True
                    self.connection.close()
                    return
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if status >= 400:
                    self.wfile.write(f"no, says the server\n{status} \x1b[2J".encode() + b"x" * 500)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        self.thread = Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def next_answer(self):
        if self.answers:
            return self.answers.pop(0)
        if self.chance is not None and self.chance.random() < 0.4:
            return self.chance.choice([500, 503, (429, {"Retry-After": "0"}), "hang up", "take and hang up"])
        return 200

    def rows(self):
        """The rows that a receiver has who passes over keys that it knows; and how many requests it passed over."""
        by_key = {}
        for key, body in self.taken:
            assert by_key.setdefault(key, body) == body, "one key for two bodies"
        return [row for body in by_key.values() for row in json.loads(body)], len(self.taken) - len(by_key)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
