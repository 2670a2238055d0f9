"""What is on disk before a broker hears its first request?"""

from __future__ import annotations

import time

from tamis.service.http.server import HttpServer
from tamis.service.settings import Publishing, Role
from tamis.service.state import State

from .brokers import eventually, running


def shop(receive):
    return {"shop": Role(receive=receive, publish=Publishing())}


@eventually
async def test_what_other_roles_change_at_a_start_is_on_disk_before_anybody_is_heard(tmp_path, monkeypatch):
    async with running(tmp_path, roles=shop("TRUE")) as broker:
        headers = {"Authorization": f"Bearer {broker.tokens.create('ann', ('shop',))}"}
        await broker.ask("PUT", "/subscribers/ann/subscriptions/all", "TRUE", status=201, headers=headers)
    restricted = []
    write = State.write

    def slowly(state, changes, *, is_urgent):
        time.sleep(0.2)
        write(state, changes, is_urgent=is_urgent)

    listen = HttpServer.start

    async def start(server, contexts=()):
        with_state = State(tmp_path / "state.db", server.front.core.epoch, "tamis")
        restricted.extend(row.effective for row in with_state.load().subscriptions if not row.until)
        with_state.close()
        await listen(server, contexts)

    monkeypatch.setattr(State, "write", slowly)
    monkeypatch.setattr(HttpServer, "start", start)
    async with running(tmp_path, roles=shop("region = 'EU'")):
        assert restricted == ["TRUE AND region = 'EU'"]
