"""Seven real brokers: what remembers earlier events is told by its home, whatever breaks on the way there.

The tree, the faults and the publishers are those of `test_seven`. Three homes have ranked subscriptions, sequences and
changes. In the end every event that one of them may concern is in the log of its home, once, and what its subscriber
was told is what processors tell of that log, as it is on the disk.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from math import inf

import msgspec
import pytest

from tamis import holds, parse
from tamis.service.cloud_events import record_of
from tamis.service.standing import TIME_EVENT
from tamis.standing import Standing
from tests.service.broker_processes import in_a_loop
from tests.service.links.test_seven import PERFECT, Seven, under_faults
from tests.service.remembering import reference
from tests.service.test_kills import blocks_of

HOMES = {
    4: {
        "best": ("TOP 2 BY n DESC OVER 3 SECONDS WHERE kind = 3", "kind = 3"),
        "odd": ("CHANGE OF kind >= 3 PER source", "kind IS NOT NULL"),
    },
    6: {
        "pair": ("SEQUENCE kind = 0 THEN kind = 4 WITHIN 2 SECONDS PER source", "kind IN (0, 4)"),
        "once": ("SEQUENCE kind = 1 THEN kind = 2 WITHIN 2 SECONDS TAKING EACH ONCE", "kind IN (1, 2)"),
    },
    0: {
        "quiet": ("SEQUENCE kind = 2 THEN NOT kind = 2 WITHIN 300 MILLISECONDS", "kind = 2"),
        "last": ("TOP 1 BY n OVER 4 EVENTS WHERE kind = 1", "kind = 1"),
    },
}
"""Subscriptions by home and key, each with the condition that must travel for it."""


class RememberingSeven(Seven):
    """Brokers some of whose clients remember earlier events."""

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self.since: dict[tuple[int, str], int] = {}
        self.told: dict[int, dict[str, set]] = {home: {} for home in HOMES}

    async def subscribe(self) -> None:
        for home, wanted in HOMES.items():
            for key, (text, _) in wanted.items():
                path = f"/subscribers/mind/subscriptions/{key}?settle=60s"
                status, content = await self.ask(home, "PUT", path, text.encode(), Content_Type="text/plain")
                assert (status, content["settled"]) in ((201, True), (200, True)), content
                self.since[home, key] = int(content["since"].rpartition("-")[2])

    async def take(self, home: int) -> None:
        """Take everything that is told at a home, and say that it is done, until all is over."""
        while not self.is_over:
            status, content = await self.ask(home, "POST", "/subscribers/mind/take", {"most": 100, "wait_s": 0.3})
            assert status == 200, content
            for item in content["events"]:
                told = {
                    (
                        each["key"],
                        tuple((run["source"], run["id"]) for run in each.get("events", ())),
                        each.get("change"),
                    )
                    for each in item["told"]
                }
                before = self.told[home].setdefault(item["at"], told)
                assert before == told, f"{item['at']} told {before} first, and then {told}"
            if content["events"]:
                done = {"done": [item["at"] for item in content["events"]]}
                await self.ask(home, "POST", "/subscribers/mind/done", done)

    def due(self, home: int) -> set[tuple[str, str]]:
        """Return the events that must come to a home."""
        conditions = [parse(condition) for _, condition in HOMES[home].values()]
        return {key for key in self.acknowledged if any(holds(each, self.sent[key]["data"]) for each in conditions)}

    async def is_done(self, home: int) -> bool:
        """Has the subscriber of a home done everything up to the end of the log?"""
        _, facts = await self.ask(home, "GET", "/subscribers/mind")
        return facts["state"] == "live" and not facts["unacknowledged"]

    def is_complete(self) -> bool:
        """What came is looked at in the logs, when all is at rest."""
        return True

    async def check(self) -> None:
        """Compare logs with what was acknowledged, and what was told with what processors tell of these logs."""
        for home, wanted in HOMES.items():
            await asyncio.to_thread(self.brokers[home].kill)
            blocks = blocks_of(self.folder / f"n{home}")
            names: dict[int, tuple[str, str]] = {}
            for block in blocks:
                for position, body in enumerate(block.events, block.first):
                    if body != TIME_EVENT:
                        event = msgspec.json.decode(body)
                        names[position] = event["source"], event["id"]
            logged = Counter(names.values())
            assert set(logged.values()) <= {1}, "an event is twice in a log"
            assert not (missing := self.due(home) - logged.keys()), (
                f"n{home} was never reached by {sorted(missing)[:5]}"
            )
            epoch = next(iter(self.told[home])).partition("-")[0]
            expected: dict[str, set] = {}
            for key, (text, _) in wanted.items():
                for position, rows in reference(
                    text, self.since[home, key], inf, blocks, record_of, Standing()
                ).items():
                    for run, _, change in rows:
                        is_run = text.startswith("SEQUENCE")
                        events = tuple(names[each] for each in run) if is_run else ()
                        expected.setdefault(position.text(epoch), set()).add((key, events, change))
            assert self.told[home] == expected
            assert {key for told in expected.values() for key, *_ in told} == wanted.keys(), "too little was told"


async def run(forge, folder, strategy: str, rounds: int, seed: int) -> None:
    async with RememberingSeven(forge, folder, strategy, seed) as seven:
        await seven.at_rest()
        await seven.subscribe()
        readers = [asyncio.create_task(seven.take(home)) for home in HOMES]
        try:
            await under_faults(seven, rounds)
            for number in (3, 5, 0):
                await seven.publish(number, 20)
            await seven.at_rest()
            await asyncio.sleep(4.0)  # until nothing is due any more, for want of events
            for home in HOMES:
                while not await seven.is_done(home):
                    await asyncio.sleep(0.1)
        finally:
            seven.is_over = True
            await asyncio.gather(*readers)
        await seven.check()


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["flooding", *PERFECT, "imperfect merging"])
@in_a_loop
async def test_what_remembers_is_told_by_its_home_while_links_are_cut_and_brokers_killed(forge, tmp_path, strategy):
    await run(forge, tmp_path, strategy, rounds=3, seed=3)
