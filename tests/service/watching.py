"""What may nobody ever see? Checkers that know only what clients said, and what they were told.

`Watch` collects what publishers were promised and what subscribers got, from all connections and all lives of a
broker, and `check` compares: nothing acknowledged is missing at a durable subscriber, every repetition is marked, the
events of a publisher come in its order, nothing comes unasked, and a position names one event for ever.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from tamis import holds, parse


class Watch:
    """Everything that was said and told."""

    def __init__(self) -> None:
        self.sent: dict[tuple[str, str], dict] = {}
        """What publishers have tried to publish, by source and id."""
        self.acknowledged: dict[tuple[str, str], str] = {}
        self.deliveries: dict[str, list[tuple[str, tuple[str, str], bool]]] = defaultdict(list)
        """By subscriber, as they came: the position, source and id, and whether it was marked as a repetition."""
        self.problems: list[str] = []
        self.counts: Counter[str] = Counter()
        """How much was acknowledged, by source."""
        self._named: dict[str, tuple[str, str]] = {}
        self._verdicts: dict[tuple[str, tuple[str, str]], bool] = {}

    def sends(self, events) -> None:
        """Events are about to be published."""
        self.sent.update({key_of(event): event for event in events})

    def was_acknowledged(self, events, positions) -> None:
        """The broker has answered that events are on disk."""
        for event, at in zip(events, positions, strict=True):
            key = key_of(event)
            self.counts[event["source"]] += key not in self.acknowledged
            if self.acknowledged.setdefault(key, at) != at:
                self.problems.append(f"{key} is acknowledged at {at} and at {self.acknowledged[key]}")
            self._names(at, key)

    def got(self, subscriber: str, at: str, event, is_again: bool = False) -> None:
        """A subscriber was told of an event."""
        key = key_of(event)
        self._names(at, key)
        if self.sent.get(key) != event:
            self.problems.append(f"{subscriber} got {event} at {at}, which was never published so")
        self.deliveries[subscriber].append((at, key, is_again))

    def _names(self, at: str, key: tuple[str, str]) -> None:
        if self._named.setdefault(at, key) != key:
            self.problems.append(f"{at} names {key} and {self._named[at]}")

    def wanted_of(self, text: str) -> set[tuple[str, str]]:
        """Return what of everything acknowledged fulfils a text."""
        return {key for key in self.acknowledged if self._fulfils(text, key)}

    def missing(self, subscriber: str, text: str) -> set[tuple[str, str]]:
        """Return what was acknowledged and has not come."""
        return self.wanted_of(text) - {key for _, key, _ in self.deliveries[subscriber]}

    def _fulfils(self, text: str, key: tuple[str, str]) -> bool:
        if (text, key) not in self._verdicts:
            self._verdicts[text, key] = holds(parse(text), self.sent[key]["data"])
        return self._verdicts[text, key]

    def check(self, subscriber: str, text: str, *, is_durable: bool = True, is_ordered: bool = True) -> None:
        """Compare what a subscriber got with what it had to get."""
        got = self.deliveries[subscriber]
        if is_durable and (missing := self.missing(subscriber, text)):
            self.problems.append(f"{subscriber} misses {sorted(missing)[:5]} and {len(missing)} in all")
        unasked = {key for _, key, _ in got if key in self.sent and not self._fulfils(text, key)}
        if unasked:
            self.problems.append(f"{subscriber} got {sorted(unasked)[:5]} and has not asked for it")
        if is_durable:
            unmarked = Counter(at for at, _, is_again in got if not is_again)
            for at, count in unmarked.items():
                if count > 1:
                    self.problems.append(f"{subscriber} got {at} {count} times without a mark")
        if is_ordered:
            self._check_order(subscriber, got)

    def _check_order(self, subscriber, got) -> None:
        """What comes for the first time comes in the order of its publisher."""
        last: dict[str, int] = {}
        seen = set()
        for at, key, _ in got:
            if at in seen:
                continue
            seen.add(at)
            source, number = key[0], int(key[1])
            if number <= last.get(source, -1):
                self.problems.append(f"{subscriber} got {key} behind {last[source]} of the same publisher")
            last[source] = number

    def conclude(self) -> None:
        """Fail, if there are problems."""
        assert not self.problems, "\n".join(self.problems[:20])


def key_of(event) -> tuple[str, str]:
    """Return what makes an event the same event."""
    return event["source"], event["id"]
