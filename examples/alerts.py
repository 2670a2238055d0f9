"""A web application for saved searches, in a database: alerts.py FILE [PORT]."""

import sqlite3
import sys

from aiohttp import web

import tamis

SCHEMA = {"title": "string", "category": "string", "price": "double", "bids": "int"}


class Alerts:
    """The saved searches: in a database, and in a matcher, which answers."""

    def __init__(self, path):
        self.database = sqlite3.connect(path)
        self.matcher = tamis.Matcher(schema=SCHEMA)
        names = ("id", "condition", "email")
        rows = self.database.execute("SELECT id, condition, email FROM searches")
        searches = (dict(zip(names, row, strict=True)) for row in rows)
        self.rejected = self.matcher.add_many(
            searches, metadata="email", on_error="skip"
        )
        self.matcher.warm()

    async def offer(self, request):
        """POST /offers: who is to be notified of this offer?"""
        try:
            matches = self.matcher.match(await request.json(), metadata=True)
        except tamis.errors.EventError as error:
            return web.json_response({"error": str(error)}, status=422)
        first = [email for _, email in matches[:2]]
        return web.json_response({"alerts": len(matches), "first": first})

    async def save(self, request):
        """PUT /searches/ID: a new search, or another text for one that is there."""
        search, body = request.match_info["id"], await request.json()
        try:
            self.matcher.upsert(search, body["condition"], metadata=body["email"])
        except tamis.errors.LanguageError as error:
            problem = {"error": error.message, "column": error.column}
            return web.json_response(problem, status=400)
        with self.database:
            row = (search, body["condition"], body["email"])
            self.database.execute("REPLACE INTO searches VALUES (?, ?, ?)", row)
        return web.json_response({"active": len(self.matcher)})

    async def delete(self, request):
        """DELETE /searches/ID."""
        search = request.match_info["id"]
        try:
            self.matcher.remove(search)
        except tamis.errors.TamisError as error:
            return web.json_response({"error": str(error)}, status=404)
        with self.database:
            self.database.execute("DELETE FROM searches WHERE id = ?", [search])
        return web.json_response({"active": len(self.matcher)})


def main():
    """Load the searches, say which are wrong, and serve."""
    alerts = Alerts(sys.argv[1])
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 8080
    active, wrong = len(alerts.matcher), len(alerts.rejected)
    print(f"{active:,} searches are active, {wrong} are wrong:")
    for row in alerts.rejected:
        print(f"  {row.id}: {row.reason.splitlines()[0]}")
    app = web.Application()
    app.router.add_post("/offers", alerts.offer)
    app.router.add_put("/searches/{id}", alerts.save)
    app.router.add_delete("/searches/{id}", alerts.delete)
    ready = f"Ready at http://localhost:{port}"
    web.run_app(
        app, host="127.0.0.1", port=port, print=lambda _: print(ready, flush=True)
    )


if __name__ == "__main__":
    main()
