"""Ranked subscriptions, sequences and changes in a tree in which everything goes wrong that can.

It is the world of `world`, with subscriptions that remember earlier events. What of them travels is a condition; the
state is at home. So there are two things to check, and both by definitions. Every acknowledged event that the condition
wants is in the log of the home, once, if the subscription was settled when the event was published. And what a
subscriber was told is what the definitions tell of that log, at the times of its blocks: nothing else, and all of it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tamis.service.messages import Deliveries
from tests.service.links.tree import Site, read_record
from tests.service.links.world import Reader, Subscription, World
from tests.service.remembering import reference

if TYPE_CHECKING:
    from tamis.service.positions import Position

CONDITIONS = {
    "TOP 1 BY n OVER 6 SECONDS": "n IS NOT NULL",
    "TOP 2 BY n DESC OVER 4 SECONDS WHERE kind > 1": "kind > 1",
    "TOP 2 BY n OVER 3 EVENTS WHERE kind = 1": "kind = 1",
    "SEQUENCE kind = 1 THEN kind = 2 WITHIN 6 SECONDS": "kind IN (1, 2)",
    "SEQUENCE kind = 1 AS low THEN n > low.n + 1 AND kind = 2 WITHIN 9 SECONDS": "kind IN (1, 2)",
    "SEQUENCE kind = 2 THEN NOT kind = 3 WITHIN 3 SECONDS": "kind IN (2, 3)",
    "SEQUENCE n < 5 THEN kind = 0 WITHIN 5 SECONDS TAKING EACH ONCE": "n < 5 OR kind = 0",
    "SEQUENCE kind = 3 THEN kind = 3 WITHIN 5 SECONDS PER source TAKING EVERY": "kind = 3",
    "CHANGE TO kind > 1": "kind IS NOT NULL",
    "CHANGE OF n > 4 UNTIL n > 8 PER source WHERE kind <> 2": "kind <> 2 AND n > 4",
    "kind = 1": "kind = 1",
}
"""Subscriptions, each with the condition that must travel for it: which events the definition looks at."""
DUE_S = 12
"""After so long nothing is due any more."""


class RememberingReader(Reader):
    """A durable subscriber that notes what it is told, by position."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.told: dict[Position, dict[str, set]] = {}

    def subscribe(self, key: str, text: str) -> None:
        self.wants.setdefault(key, Subscription(text, CONDITIONS[text]))
        super().subscribe(key, text)
        site = self.world.tree.sites[self.site]
        while site.state.writing:  # so that there is one version of each, and it is known since when
            site.do(site.node.kept(site.state.sync(1)))

    def heard(self, answer: Any) -> None:
        if not isinstance(answer, Deliveries):
            return
        for item in answer.items:
            told: dict[str, set] = {}
            for each in item.told:
                told.setdefault(each.key, set()).add((each.events, each.at_us, each.change))
            told |= {key: {None} for key in item.keys if key not in told}
            before = self.told.setdefault(item.position, told)
            assert before == told, f"{self.name} {item.position}: told {before} first, and then {told}"

    def check_order(self, source: str, number: int, is_again: bool) -> None:
        """What was best among others is told later than these: the order is that of positions."""


class RememberingWorld(World):
    """One run."""

    reader_type = RememberingReader

    def __init__(self, seed: int, site_type: type[Site] = Site, strategy: str = "") -> None:
        super().__init__(seed, site_type, strategy)
        self.texts = tuple(CONDITIONS)

    def rest(self) -> None:
        super().rest()
        for _ in range(DUE_S):
            self.tree.tick()
            self.tree.rest()

    def logged(self, site: str) -> list[tuple[str, int]]:
        """Return the events in the log of a broker, without the entries that only say what time it is."""
        records = [
            read_record(body, flag)
            for block in self.tree.sites[site].log.blocks
            for body, flag in zip(block.events, block.flags, strict=True)
            if b"tamis/clock" not in body
        ]
        return [(record["source"], record["n"]) for record in records]

    def reached(self, reader: Reader) -> set[tuple[str, int]]:
        """Return the events in the log of the home of a reader."""
        logged = self.logged(reader.site)
        assert len(logged) == len(set(logged)), f"an event is twice in the log of {reader.site}"
        return set(logged)

    def check(self) -> None:
        super().check()
        self.check_told()

    def check_at_rest(self) -> None:
        super().check_at_rest()
        for _ in range(DUE_S):
            self.tree.tick()
            self.tree.rest()
        self.check_told()

    def check_told(self) -> None:
        """Compare what was told with what the definitions tell of the log of the home."""
        for reader in self.readers:
            assert isinstance(reader, RememberingReader)
            site = self.tree.sites[reader.site]
            rows = {row.key: row for row in site.state.rows.subscriptions.values() if row.subscriber == reader.name}
            expected: dict[Position, dict[str, set]] = {}
            for key, wanted in reader.wants.items():
                of_text = reference(wanted.text, rows[key].since, math.inf, list(site.log.blocks), read_record)
                for position, rows_of in of_text.items():
                    expected.setdefault(position, {})[key] = rows_of
            for position in sorted({*expected, *reader.told}):
                told, defined = reader.told.get(position), expected.get(position)
                assert told == defined, f"{reader.name} {position}: told {told}, by definition {defined}"

    def check_received(self, expected: dict[str, set[tuple[str, int]]]) -> None:
        """What is in the log of the home at rest is what its conditions want, and what its publishers published."""
        for reader in self.readers:
            assert expected[reader.name] <= set(self.logged(reader.site)), "not all of its events at rest"


def run_remembering(seed: int, strategy: str, steps: int = 300) -> RememberingWorld:
    """Let one world happen."""
    world = RememberingWorld(seed, strategy=strategy)
    world.run(steps)
    return world
