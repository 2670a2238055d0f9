"""How long does it take, on a machine that is not quiet?

Time is the processor time of this thread: other people's work does not count, though it takes its share of the
caches. What is compared takes turns, and the best of several passes is kept. Python's own clearing-up is switched off
meanwhile. Whoever is measured must find what the others find: a fast wrong answer is not a result.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from time import thread_time
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.language import parse
from tamis.matching.columns import Events
from tamis_lab.experiments.errors import DisagreementError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from tamis.language import Expression
    from tamis.matching.base import Algorithm
    from tamis_lab.experiments.base import Scale, Tell

_CHUNK = 1_000
"""So many subscriptions are registered at once."""
_CHECKED = 3
"""The matches of so many events are compared between algorithms."""


@contextmanager
def undisturbed() -> Iterator[None]:
    """Keep the garbage collector away while somebody measures.

    Only what is young is cleared away before: all objects of a process may be a million, and to look at them took most
    of the time of a run at toy sizes.
    """
    gc.collect(1)
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def cpu_s(work: Callable[[], object]) -> float:
    """Return the processor time of some work."""
    start = thread_time()
    work()
    return thread_time() - start


@dataclass
class Subject:
    """An algorithm under observation."""

    name: str
    engine: Algorithm
    count: int = 0
    """How many subscriptions are registered."""
    added_s: float = 0.0
    """What the latest `count - before` of them took, being made ready to match included."""
    added: int = 0

    @property
    def insertions_per_s(self) -> float:
        """How many subscriptions were registered per second, of those that came last."""
        return self.added / max(self.added_s, 1e-9)

    def payload(self) -> int:
        """Return the bytes of its own structures, without the predicates' and without room to grow."""
        return sum(self.engine.statistics()["payload_bytes"].values())

    def pairs(self, events: pa.Table) -> tuple[Any, Any]:
        """Match a batch."""
        return self.engine.compiled_snapshot().match_events(Events(events))


@dataclass
class Field:
    """Several algorithms with the same subscriptions."""

    subjects: dict[str, Subject] = field(default_factory=dict)
    removed: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, engines: Mapping[str, Algorithm]) -> Field:
        """Give names to algorithms."""
        return cls({name: Subject(name, engine) for name, engine in engines.items()})

    def __getitem__(self, name: str) -> Subject:
        return self.subjects[name]

    # -- Registration

    def register(self, texts: Sequence[str], tell: Tell) -> None:
        """Register more subscriptions with everybody; parsing is not counted."""
        for subject in self.subjects.values():
            subject.added_s, subject.added = 0.0, len(texts)
        with undisturbed():
            for begin in range(0, len(texts), _CHUNK):
                expressions = [parse(text) for text in texts[begin : begin + _CHUNK]]
                for subject in self.subjects.values():
                    subject.added_s += cpu_s(partial(_add, subject, expressions))
                if begin % (20 * _CHUNK) == 0:
                    tell(f"{begin:,} of {len(texts):,} subscriptions registered")
            for subject in self.subjects.values():
                subject.added_s += cpu_s(subject.engine.compiled_snapshot)

    def removals_per_s(self, count: int, seed: int) -> dict[str, float]:
        """Remove some subscriptions from everybody, and return how many per second."""
        registered = next(iter(self.subjects.values())).count
        present = np.setdiff1d(np.arange(registered), list(self.removed))
        gone = np.random.default_rng(seed).permutation(present)[:count].tolist()
        self.removed.update(gone)
        rates = {}
        for name, subject in self.subjects.items():

            def remove(one: Subject = subject) -> None:
                for begin in range(0, len(gone), _CHUNK):
                    one.engine.remove_many(gone[begin : begin + _CHUNK])
                one.engine.compiled_snapshot()

            with undisturbed():
                rates[name] = len(gone) / max(cpu_s(remove), 1e-9)
        return rates

    # -- Events

    def event_s(
        self, events: pa.Table, scale: Scale, tell: Tell, among: Iterable[str] | None = None
    ) -> dict[str, float]:
        """Return the processor time that an event takes with each algorithm, having seen that all find the same."""
        names = list(self.subjects if among is None else among)
        tell(f"matching with {', '.join(names)}")
        for name in names:
            self.subjects[name].engine.observe(Events(events))  # some lay themselves out by what they see
        batches = {name: self._batch(self.subjects[name], events, scale) for name in names}
        self._agree(names, events)
        best = dict.fromkeys(names, float("inf"))
        with undisturbed():
            for _ in range(scale.passes):
                for name in names:
                    taken = cpu_s(partial(self.subjects[name].pairs, batches[name]))
                    best[name] = min(best[name], taken / batches[name].num_rows)
        return best

    def _batch(self, subject: Subject, events: pa.Table, scale: Scale) -> pa.Table:
        """Return as many events as take about the time that was asked for."""
        subject.pairs(events.slice(0, 2))  # compiles
        probe = events.slice(0, 4)
        once = max(cpu_s(lambda: subject.pairs(probe)) / probe.num_rows, 1e-7)
        return events.slice(0, int(np.clip(scale.measured_s / once, 4, scale.most_events)))

    def _agree(self, names: Sequence[str], events: pa.Table) -> None:
        """Raise unless everybody finds the same."""
        few = events.slice(0, _CHECKED)
        expected: list[set[int]] | None = None
        for name in names:
            numbers, handles = self.subjects[name].pairs(few)
            matches = [set(handles[numbers == number].tolist()) for number in range(few.num_rows)]
            if sum(map(len, matches)) != len(handles):
                raise DisagreementError(name, name, -1)
            if expected is None:
                expected = matches
            for number, (one, two) in enumerate(zip(expected, matches, strict=True)):
                if one != two:
                    raise DisagreementError(names[0], name, number)


def _add(subject: Subject, expressions: Sequence[Expression]) -> None:
    prepared = subject.engine.prepare(expressions)
    subject.engine.add(range(subject.count, subject.count + len(expressions)), prepared)
    subject.count += len(expressions)
