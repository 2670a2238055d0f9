"""Which steps of its sequences must a home ask for just now? Requests that follow runs and advertisements.

The home of a sequence asks for what all of its steps match together (`tamis.standing.interest`). That is always enough,
and often more than needed:

- Before an event has fulfilled the first step, later steps match nothing of use. With `while_open` they are asked for
  only while a run may be open: from the moment at which the home sees an event for the first step until WITHIN and the
  lateness of events have passed.
- A step that overlaps nothing that is advertised anywhere cannot come (`know`). Then no step behind it is asked for,
  and if it is the first one, nothing. A step whose last advertisement is taken back may have come before, so it counts
  as advertised until WITHIN and the lateness have passed.
- With `needs_all`, nothing is asked for while any of the steps cannot come.

Every change is one control message of one client: a filter that is replaced under its key.

What it costs: at rest, that is if messages arrive before the next event is published, nothing is lost, but for
`needs_all`: there a run counts only if no event of it was published while one of its steps could not come. Under way,
an event of a later step is lost if it was published before the request for it had spread, so within one way there and
back of the first event of its run. A sequence of two steps with AFTER loses nothing if AFTER is longer than that. A
sequence that ends with an absence (THEN NOT) would report what is not true if an event were lost, so its last steps are
not left out while no run is open. The window of loss of an advertisement is the one that every subscription has: what
is published before the answer to it has spread.

Source: filters without a state, Mühl et al. 2002, section 2.1; sequences: Jewel 2004, section 4.3
(docs/bibliography.md). That requests follow runs and advertisements is ours.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias

from tamis.language.meaning import holds
from tamis.language.rewrites.monotone import any_of
from tamis.relations.advertisements import OverlapIndex
from tamis.routing.messages import Entry, Key, Subscribe, Unsubscribe
from tamis.standing.references import without_references

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.routing.broker import Broker
    from tamis.standing import Sequence

Advertised: TypeAlias = "dict[tuple[str, Key], Expression]"
_Step: TypeAlias = "tuple[Key, int]"
_RUNS = -1


def advertised_to(broker: Broker) -> Advertised | None:
    """Return all that may be published, as far as a broker was told of it; None if its network does not advertise.

    >>> import tamis
    >>> from tamis.routing import Advertise, Broker
    >>> broker = Broker("b", advertisements="covering")
    >>> broker.attach("shop")
    >>> _ = broker.receive(Advertise((Entry("books", tamis.parse("kind = 'book'")),)), "shop", 0.0)
    >>> {key: str(filter_) for key, filter_ in advertised_to(broker).items()}
    {('shop', 'books'): "kind = 'book'"}
    >>> print(advertised_to(Broker("plain")))
    None
    """
    if broker.advertising is None:
        return None
    return {
        (peer, key): filter_
        for peer in (*broker.clients, *broker.neighbours)
        for key, filter_ in broker.advertised_by(peer).items()
    }


class StepRequests:
    """What the home of sequences asks for, in the name of one client.

    >>> from tamis.standing import Sequence
    >>> requests = StepRequests(while_open=True, lateness=1.0)
    >>> requests.add("guess", Sequence.parse("SEQUENCE a = 1 THEN b = 2 THEN c = 3 WITHIN 10 SECONDS"))
    >>> [str(entry.filter) for message in requests.messages() for entry in message.entries]
    ['a = 1']
    >>> requests.see(["guess"], {"a": 1}, at=5.0)
    >>> [str(entry.filter) for message in requests.messages() for entry in message.entries], requests.next_due
    (['a = 1 OR b = 2 OR c = 3'], 16.0)
    >>> requests.advance(17.0)
    >>> [str(entry.filter) for message in requests.messages() for entry in message.entries], requests.next_due
    (['a = 1'], None)
    """

    def __init__(
        self,
        *,
        while_open: bool = False,
        needs_all: bool = False,
        lateness: float = 0.0,
        schema: Schema | None = None,
    ) -> None:
        """Begin without sequences; `lateness` is that of the `Standing` which keeps their state."""
        self._while_open, self._needs_all = while_open, needs_all
        self._lateness, self._schema = lateness, schema
        self._sequences: dict[Key, Sequence] = {}
        self._firsts: dict[Key, Expression] = {}
        """The first steps of those sequences whose later steps are asked for now and then only."""
        self._filters: dict[Key, list[Expression]] = {}
        """Of each sequence, what its steps match whatever came before."""
        self._open_until: dict[Key, float] = {}
        self._lingers_until: dict[_Step, float] = {}
        """Of steps whose last advertisement was taken back: until when they count as advertised."""
        self._ends: list[tuple[float, int, Key, int]] = []
        """When something ends: a sequence's open runs, or with its number, that a step lingers."""
        self._count = 0
        self._steps = OverlapIndex(schema, is_exact=True)
        """All steps that a complete run needs an event for, by sequence and number."""
        self._advertised: Mapping[Hashable, Expression] | None = None
        self._because: dict[Hashable, tuple[Expression, list[_Step]]] = {}
        """Which steps each advertisement overlaps."""
        self._supports: dict[_Step, int] = {}
        """How many advertisements each step overlaps."""
        self._requested: dict[Key, Expression] = {}
        self._dirty: dict[Key, None] = {}

    def add(self, key: Key, sequence: Sequence) -> None:
        """Take a sequence, in place of the one under this key if there is one."""
        self.remove(key)
        filters = [without_references(step.condition, sequence.names) for step in sequence.steps]
        self._sequences[key], self._filters[key] = sequence, filters
        if self._while_open and not sequence.is_absence:
            self._firsts[key] = filters[0]
        for number in _needed(sequence):
            self._steps.add((key, number), filters[number])
            self._supports[key, number] = 0
        for filter_, steps in self._because.values():
            overlapping = self._steps.overlapping(filter_, only=lambda each: each[0] == key)
            steps += overlapping
            for step in overlapping:
                self._supports[step] += 1
        self._dirty[key] = None

    def remove(self, key: Key) -> None:
        """Forget a sequence, if there is one under this key."""
        sequence = self._sequences.pop(key, None)
        if sequence is None:
            return
        for number in _needed(sequence):
            self._steps.remove((key, number))
            del self._supports[key, number]
            self._lingers_until.pop((key, number), None)
        for _, steps in self._because.values():
            steps[:] = [each for each in steps if each[0] != key]
        del self._filters[key]
        self._firsts.pop(key, None)
        self._open_until.pop(key, None)
        self._dirty[key] = None

    def know(self, advertised: Mapping[Any, Expression] | None, now: float) -> None:
        """Take note of all that is advertised now, or that nothing is said of it (None)."""
        if (self._advertised is None) is not (advertised is None):
            self._dirty.update(dict.fromkeys(self._sequences))
            if advertised is not None:
                self._linger(self._supports, now)
        self._advertised = None if advertised is None else dict(advertised)
        current = advertised or {}
        for key in [key for key, (filter_, _) in self._because.items() if current.get(key) != filter_]:
            steps = self._because.pop(key)[1]
            for step in steps:
                self._supports[step] -= 1
            self._linger(steps, now)
        for key, filter_ in current.items():
            if key not in self._because:
                steps = self._steps.overlapping(filter_)
                self._because[key] = filter_, steps
                for step in steps:
                    self._supports[step] += 1
                    self._dirty[step[0]] = None

    def _linger(self, steps: Iterable[_Step], now: float) -> None:
        """Let steps that nobody advertises any more count as advertised as long as runs with them may go on."""
        for step in steps:
            key, number = step
            if key in self._requested and not self._supports[step]:
                within = self._sequences[key].within
                until = inf if within is None else now + within + self._lateness
                self._lingers_until[step] = until
                self._end_at(until, key, number)
            self._dirty[key] = None

    def _end_at(self, until: float, key: Key, number: int) -> None:
        if until < inf:
            self._count += 1
            heappush(self._ends, (until, self._count, key, number))

    def see(self, keys: Iterable[Key], event: Mapping[str, Any], at: float) -> None:
        """Take note of an event that reached the client, for its subscriptions with these keys."""
        for key in keys:
            first = self._firsts.get(key)
            if first is not None and holds(first, event, self._schema):
                self._open(key, at)

    def assume_open(self, key: Key, now: float) -> None:
        """Take note that a run may have begun that was not seen, as before a start, whose end nobody can know sooner.

        >>> from tamis.standing import Sequence
        >>> requests = StepRequests(while_open=True)
        >>> requests.add("guess", Sequence.parse("SEQUENCE a = 1 THEN b = 2 WITHIN 10 SECONDS"))
        >>> requests.assume_open("guess", 5.0)
        >>> str(requests.request("guess")), requests.next_due
        ('a = 1 OR b = 2', 15.0)
        """
        if key in self._firsts:
            self._open(key, now)

    def _open(self, key: Key, at: float) -> None:
        """Ask for all steps as long as a run that began then may go on."""
        within = self._sequences[key].within
        until = inf if within is None else at + within + self._lateness
        before = self._open_until.get(key)
        if before is None:
            self._dirty[key] = None
            self._end_at(until, key, _RUNS)
        self._open_until[key] = until if before is None else max(before, until)

    def advance(self, now: float) -> None:
        """Take note of how late it is: the runs of some sequences are over, and some steps cannot come any more."""
        while self._ends and self._ends[0][0] <= now:
            _, _, key, number = heappop(self._ends)
            until = self._until(key, number)
            if until is None:
                continue
            if until > now:  # another run began meanwhile
                self._end_at(until, key, number)
                continue
            if number == _RUNS:
                del self._open_until[key]
            else:
                del self._lingers_until[key, number]
            self._dirty[key] = None

    def _until(self, key: Key, number: int) -> float | None:
        return self._open_until.get(key) if number == _RUNS else self._lingers_until.get((key, number))

    @property
    def next_due(self) -> float | None:
        """When `advance` may have something to do, at the earliest; None if it has nothing to wait for."""
        while self._ends and self._until(*self._ends[0][2:]) is None:
            heappop(self._ends)
        return self._ends[0][0] if self._ends else None

    def request(self, key: Key) -> Expression | None:
        """Return what must be asked for a sequence now; None if nothing."""
        sequence = self._sequences.get(key)
        if sequence is None:
            return None
        filters = self._filters[key]
        missing = next((number for number in _needed(sequence) if not self._can_come((key, number))), len(filters))
        if not missing or (self._needs_all and missing < len(filters)):
            return None
        if key in self._firsts and key not in self._open_until:
            return filters[0]
        return any_of(filters[:missing])

    def _can_come(self, step: _Step) -> bool:
        return self._advertised is None or self._supports[step] > 0 or step in self._lingers_until

    def messages(self) -> list[Subscribe | Unsubscribe]:
        """Return what to say to the broker in the client's name, so that it knows what is asked for now.

        >>> import tamis
        >>> from tamis.standing import Sequence
        >>> requests = StepRequests()
        >>> requests.add("guess", Sequence.parse("SEQUENCE a = 1 THEN b = 2 WITHIN 10 SECONDS"))
        >>> requests.know({"ann": tamis.parse("a > 5")}, now=0.0)
        >>> requests.messages()  # no event has a = 1
        []
        >>> requests.know({"ann": tamis.parse("a > 5"), "bob": tamis.parse("a < 3")}, now=60.0)
        >>> [str(entry.filter) for message in requests.messages() for entry in message.entries]
        ['a = 1 OR b = 2']
        """
        wanted: list[Entry] = []
        unwanted: list[Key] = []
        for key in self._dirty:
            filter_, before = self.request(key), self._requested.pop(key, None)
            if filter_ is not None:
                self._requested[key] = filter_
                if filter_ != before:
                    wanted.append(Entry(key, filter_))
            elif before is not None:
                unwanted.append(key)
        self._dirty.clear()
        said: list[Subscribe | Unsubscribe] = []
        if wanted:
            said.append(Subscribe(tuple(wanted)))
        if unwanted:
            said.append(Unsubscribe(tuple(unwanted)))
        return said


def _needed(sequence: Sequence) -> range:
    """Return the numbers of the steps that a run needs an event for."""
    return range(len(sequence.steps) - sequence.is_absence)
