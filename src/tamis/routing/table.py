"""Which peers want an event? The routing table.

A routing table has an entry for each filter that a peer wants: a neighbour, who speaks for everybody behind it, or a
client. A client is told which of its filters want an event; of a neighbour it matters only whether any does, so once
one of its filters is found to match, none of the others is asked. Equal filters of a neighbour, or of several clients,
are matched once. What was added lately is registered with the matcher when the next event comes, all at once.

`match` tells of one event by names and keys, `match_many` of a group of events by handles, as arrays (`wanted`).

The entries of a peer that gets every event anyway can be left out of matching (`mute`), and those of neighbours matched
in generalised versions (`prune`): post-pruning, which changes nothing in what is forwarded. The matcher tells how often
predicates are true, and by that it is chosen what to leave out; of a filter that is pruned its text is left, packed.

Where neighbours tell thresholds that move, their filters are in a table of proxies (`topk.proxy_table`), in which a
move is one number, instead of in the matcher, which would register each as another filter (`keeps_proxies`).

Source: Mühl et al. 2002, section 2.1; Bittner 2008, sections 4.5, the shortcut, and 6.5 (docs/bibliography.md).
Departs: clients have entries too, of the same form; they are told apart by who the peer is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.errors import TamisError
from tamis.language.expressions import Attribute, Expression
from tamis.matching import Matcher
from tamis.pruning.goals import Goal
from tamis.routing.handles import EntryHandles
from tamis.routing.holders import Holders
from tamis.routing.wanted import ClientMatches, GroupMatches, NeighbourMatches, by_event_and_client, joined
from tamis.selectivity.counters import Counters
from tamis.topk.proxy_table import ProxyTable

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import numpy.typing as npt

    from tamis.language.functions import Functions
    from tamis.language.schema import Schema
    from tamis.pruning.table import PrunedTable
    from tamis.routing.messages import Key
    from tamis.selectivity.estimates import Share

HALF_LIFE = 10_000
"""After so many events that were looked at an event counts half."""
INFORMED = 50
"""So many events are looked at before filters are pruned by what was seen; with fewer, everything is a guess."""
_UNMATCHED = -1
_COUNTS_TAKEN_AT = 1_000
"""So many events are looked at before their counts are taken over: that old events count less would be lost."""


class RoutingTable:
    """Filters by peer and key.

    >>> import tamis
    >>> table = RoutingTable()
    >>> table.connect("north")
    >>> table.add("north", 1, tamis.parse("price < 20"))
    >>> table.add("ann", "cheap", tamis.parse("price < 10"))
    >>> table.match({"price": 12}), table.match({"price": 3})
    ({'north': []}, {'ann': ['cheap'], 'north': []})
    """

    def __init__(
        self,
        schema: Schema | None = None,
        algorithm: str = "block",
        functions: Functions | None = None,
        *,
        keeps_proxies: bool = False,
    ) -> None:
        self._filters: dict[str, dict[Key, Expression | int]] = {}
        """What a peer wants: a filter, or its number in the table of those that are pruned."""
        self._neighbours: dict[str, None] = {}
        """In the order in which they came."""
        self._hops: dict[str, dict[Key, int]] = {}
        """Of entries whose subscriber is not the neighbour's own: how many links farther."""
        self._numbers: dict[str | None, dict[Expression, int]] = {}
        """What is matched, by neighbour, or None for all clients: the matcher's ids."""
        self._matched: dict[int, Expression] = {}
        self._counts: dict[int, int] = {}
        """Of what a neighbour has more than one entry of: of how many."""
        self._handles = EntryHandles()
        """Of clients and their entries."""
        self._holders = Holders()
        """Of what clients want: by which entries."""
        self._number_count = 0
        self._free_numbers: list[int] = []
        """Numbers that nothing is matched under any more."""
        self._matcher = Matcher(algorithm, schema, functions=functions)
        self._matcher.watch()
        self._proxies = ProxyTable(schema) if keeps_proxies else None
        self._reached: dict[int, str] = {}
        """Whose each filter in the table of proxies is."""
        self._takes_everything = schema is None and algorithm == "block"
        self._waiting: dict[int, str | None] = {}
        self._unmatched: set[tuple[str, Key]] = set()
        """Entries of clients that somebody else matches."""
        self._muted: set[str] = set()
        self._pruned: PrunedTable | None = None
        self._peers: list[str] = []
        self._keys: list[Key] = []
        """Whose each filter of the pruned table is, by its number there, and what the neighbour calls it."""
        self._versions: list[int] = []
        """What each of them is matched as; `_UNMATCHED` while its neighbour is muted."""
        self._insertion: tuple[float | None, str] | None = None
        self._ranked_at = 0.0
        self._watched_names: dict[str, set[int]] = {}
        """Attributes that somebody asks about, with the filters that mention them, by number."""
        self.counters = Counters(schema, half_life=HALF_LIFE)
        """How often predicates are true, as far as the matcher has told."""
        self.match_count = 0
        """How many entries of clients, and how many neighbours, events were found to concern so far."""

    # -- Peers

    def connect(self, neighbour: str) -> None:
        """Take a neighbour: of its entries it matters only whether any matches."""
        self._neighbours[neighbour] = None

    def disconnect(self, neighbour: str) -> None:
        """Forget a neighbour, whose entries are gone."""
        self._neighbours.pop(neighbour, None)
        self._muted.discard(neighbour)

    def attach(self, client: str) -> int:
        """Take a client; return its handle, which it keeps until it is detached, whether it has entries or not."""
        return self._handles.attach(client)

    def detach(self, client: str) -> None:
        """Forget a client, whose entries are gone."""
        self._handles.detach(client)

    def client_name(self, handle: int) -> str:
        """Return the name of the client that has a handle."""
        return self._handles.client_name(handle)

    def key(self, handle: int) -> Key:
        """Return what its client calls the entry that has a handle."""
        return self._handles.key(handle)

    def client_handle(self, client: str) -> int | None:
        """Return the handle of a client; None if it is not attached and has no entry."""
        return self._handles.client(client)

    # -- Entries

    def __len__(self) -> int:
        return sum(map(len, self._filters.values()))

    def __contains__(self, source: tuple[str, Key]) -> bool:
        peer, key = source
        return key in self._filters.get(peer, ())

    @property
    def peers(self) -> tuple[str, ...]:
        """Who wants anything."""
        return tuple(self._filters)

    def of(self, peer: str) -> Mapping[Key, Expression]:
        """Return what a peer wants."""
        return _Wanted(self._filters.get(peer, {}), self._pruned)

    def hops(self, peer: str, key: Key) -> int:
        """Return how many links lie between an entry's sender and the subscriber's broker."""
        return self._hops.get(peer, {}).get(key, 0)

    def entries(self) -> Iterator[tuple[str, Key, Expression]]:
        """Yield all entries."""
        for peer in self._filters:
            for key, expression in self.of(peer).items():
                yield peer, key, expression

    def bytes_of(self, peer: str) -> int:
        """Return what a peer's filters take as text, which is how they travel."""
        return sum(text_bytes(expression) for expression in self.of(peer).values())

    def matched(self, peer: str) -> dict[Key, Expression]:
        """Return what is matched in place of what a peer wants."""
        return {
            key: self._matched[self._versions[kept]]
            if isinstance(kept, int) and self._versions[kept] != _UNMATCHED
            else self.of(peer)[key]
            for key, kept in self._filters.get(peer, {}).items()
        }

    def matched_bytes(self, peer: str) -> int:
        """Return what a peer's filters take as text, as they are matched."""
        return sum(map(text_bytes, self.matched(peer).values()))

    def compile(self) -> bool:
        """Lay out the filters that came last, now, and not in the background; return whether there were any."""
        self._register()
        return self._matcher.compile()

    def warm(self) -> None:
        """Get everything ready that the first events would have to wait for; nobody else may match meanwhile."""
        self._register()
        self._matcher.warm()

    @property
    def open_count(self) -> int:
        """How many filters are not laid out yet, and asked one by one."""
        return self._matcher.open_count

    def settle(self) -> None:
        """Wait until nothing is laid out in the background any more."""
        self._matcher.settle()

    def figures(self) -> dict[str, Any]:
        """Return what the matcher says of itself."""
        return self._matcher.statistics()

    def objection(self, expression: Expression) -> str | None:
        """Return why a filter cannot be matched here; None if it can.

        >>> import tamis
        >>> RoutingTable(tamis.Schema({"price": "double"})).objection(tamis.parse("colour = 'red'"))
        'there is no attribute colour...'
        """
        if (reason := self._matcher.functions.objection(expression)) is not None:
            return reason
        if self._takes_everything:
            return None
        try:
            self._matcher.check(expression)
        except TamisError as error:
            return str(error)
        return None

    def add(self, peer: str, key: Key, expression: Expression, hops: int = 0, *, is_matched: bool = True) -> None:
        """Add an entry under a new key. With `hops` its subscriber is so many links beyond the neighbour.

        An entry of a client that is not matched here is kept for others to be told of; `match` never names it.
        """
        assert (peer, key) not in self
        if not is_matched:
            assert peer not in self._neighbours, "what neighbours want is always matched"
            self._filters.setdefault(peer, {})[key] = expression
            self._handles.enter(peer, key)
            self._unmatched.add((peer, key))
            return
        if hops:
            self._hops.setdefault(peer, {})[key] = hops
        filters = self._filters.setdefault(peer, {})
        if peer not in self._neighbours:
            self._handles.enter(peer, key)
        if self._pruned is None or peer not in self._neighbours:
            filters[key] = expression
            if peer not in self._muted:
                self._hold(peer, key, expression)
        else:
            filters[key] = self._enter(self._pruned, peer, key, expression)

    def _enter(self, pruned: PrunedTable, peer: str, key: Key, expression: Expression) -> int:
        """Take an entry of a neighbour into the table of those that are pruned."""
        entry = self._new_entry(pruned, peer, key, expression)
        if peer not in self._muted:
            self._versions[entry] = self._hold(peer, key, expression)
        return entry

    def _new_entry(self, pruned: PrunedTable, peer: str, key: Key, expression: Expression) -> int:
        entry = pruned.add(expression, distance=1.0 + self.hops(peer, key))
        if entry == len(self._peers):
            self._peers.append(peer)
            self._keys.append(key)
            self._versions.append(_UNMATCHED)
        else:
            self._peers[entry], self._keys[entry], self._versions[entry] = peer, key, _UNMATCHED
        return entry

    def remove(self, peer: str, key: Key) -> Expression:
        """Remove an entry; return what it was."""
        kept = self._filters[peer].pop(key)
        if not self._filters[peer]:
            del self._filters[peer]
        self._hops.get(peer, {}).pop(key, None)
        if isinstance(kept, Expression):
            if (peer, key) in self._unmatched:
                self._unmatched.remove((peer, key))
            elif peer not in self._muted:
                self._let_go(peer, key, self._number(peer, kept))
            if peer not in self._neighbours:
                self._handles.leave(peer, key)
            return kept
        assert self._pruned is not None
        if self._versions[kept] != _UNMATCHED:
            self._let_go(peer, key, self._versions[kept])
            self._versions[kept] = _UNMATCHED
        return self._pruned.remove(kept)

    def prioritise(self, client: str, key: Key, priority: int) -> None:
        """Give an entry of a client another priority: of its entries that want an event, the highest come first."""
        self._handles.prioritise(client, key, priority)

    @property
    def has_priorities(self) -> bool:
        """Has any entry of a client a priority other than 0?"""
        return self._handles.has_priorities

    def priority(self, client: str, key: Key) -> int:
        """Return the priority of an entry of a client."""
        return self._handles.priority(client, key)

    def mute(self, peer: str) -> None:
        """Stop matching for a peer, whose entries stay."""
        if peer in self._muted:
            return
        for key, kept in self._filters.get(peer, {}).items():
            if isinstance(kept, Expression):
                self._let_go(peer, key, self._number(peer, kept))
            else:
                self._let_go(peer, key, self._versions[kept])
                self._versions[kept] = _UNMATCHED
        self._muted.add(peer)

    def unmute(self, peer: str) -> None:
        """Match for a peer again."""
        if peer not in self._muted:
            return
        self._muted.discard(peer)
        for key, kept in self._filters.get(peer, {}).items():
            if isinstance(kept, Expression):
                self._hold(peer, key, kept)
            else:
                assert self._pruned is not None
                self._versions[kept] = self._hold(peer, key, self._pruned.expression(kept))

    def _destination(self, peer: str) -> str | None:
        return peer if peer in self._neighbours else None

    def _number(self, peer: str, expression: Expression) -> int:
        return self._numbers[self._destination(peer)][expression]

    def _hold(self, peer: str, key: Key, expression: Expression) -> int:
        """Let a filter be matched for an entry; return its number."""
        destination = self._destination(peer)
        numbers = self._numbers.setdefault(destination, {})
        number = numbers.get(expression)
        is_new = number is None
        if number is None:
            number = numbers[expression] = self._new_number()
            self._matched[number] = expression
            if self._watched_names:
                self._read(number, expression)
            if destination is not None and self._proxies is not None and self._proxies.add(number, expression):
                self._reached[number] = destination
            else:
                self._waiting[number] = destination
        if destination is None:
            self._holders.add(number, self._handles.entry(peer, key))
        elif not is_new:
            self._counts[number] = self._counts.get(number, 1) + 1
        return number

    def _let_go(self, peer: str, key: Key, number: int) -> None:
        """Let a filter not be matched for an entry any more."""
        if self._release(peer, key, number):
            self._matcher.remove(number)
            self._free_numbers.append(number)

    def mentions(self, attribute: str) -> bool:
        """Does any filter that is matched mention an attribute?

        Each filter is read once: when this is asked first, and then when it comes. So no event has to wait for it.
        """
        if attribute not in self._watched_names:
            self._watched_names[attribute] = set()
            for number, expression in self._matched.items():
                self._read(number, expression)
        return any(number in self._matched for number in self._watched_names[attribute])

    def _read(self, number: int, expression: Expression) -> None:
        """Take note of which attributes that somebody asks about a filter mentions."""
        names = _names_in(expression)
        for name, numbers in self._watched_names.items():
            if name in names:
                numbers.add(number)
            else:
                numbers.discard(number)  # it was another filter's

    def _release(self, peer: str, key: Key, number: int) -> bool:
        """Take an entry from those that a filter is matched for; return whether the matcher is to remove it."""
        destination = self._destination(peer)
        if destination is None:
            if self._holders.remove(number, self._handles.entry(peer, key)):
                return False
        elif number in self._counts:
            self._counts[number] -= 1
            if self._counts[number] == 1:
                del self._counts[number]
            return False
        numbers = self._numbers[destination]
        del numbers[self._matched.pop(number)]
        if not numbers:
            del self._numbers[destination]
        if self._proxies is not None and number in self._proxies:
            self._proxies.remove(number)
            del self._reached[number]
            self._free_numbers.append(number)
            return False
        is_waiting = number in self._waiting  # then the matcher does not know of it yet
        if is_waiting:
            del self._waiting[number]
            self._free_numbers.append(number)
        return not is_waiting

    def _new_number(self) -> int:
        if self._free_numbers:
            return self._free_numbers.pop()
        self._number_count += 1
        return self._number_count - 1

    # -- Pruning

    def share(self, predicate: Expression) -> float:
        """Return how often a predicate is true, as far as the events of this table tell."""
        if self._matcher.watched_count >= _COUNTS_TAKEN_AT:
            self._take_counts()
        else:
            self._take_enough_counts()
        return self.counters.share(predicate)

    @property
    def reduction(self) -> float:
        """The share of all predicates of neighbours' filters that are not matched any more, by occurrence (M)."""
        return 0.0 if self._pruned is None else self._pruned.reduction

    def prune(self, goal: Goal, share: Share | None = None, measure: str = "accuracy") -> int:
        """Match generalised versions of what neighbours want, as far as a goal says; return how many changed.

        It counts from what the neighbours said, so a smaller goal takes prunings back; what comes later is pruned as it
        comes, as far. Without a `share` it goes by what the table has counted; ranks are computed anew when
        it has counted twice as much.
        """
        self._take_counts()
        pruned = self._pruned_by(measure)
        is_anew = share is not None or self.counters.event_count >= 2 * self._ranked_at
        pruned.share = self.share if share is None else share
        self._ranked_at = self.counters.event_count if share is None else 0.0
        self._insertion = (None, measure)
        changed = self._match_as(pruned.prune(goal, is_ranked_anew=is_anew))
        self.counters.forget_lines()
        # A dictionary keeps the room that it had; what is matched now are far fewer filters.
        self._matched, self._counts = dict(self._matched), dict(self._counts)
        self._numbers = {destination: dict(numbers) for destination, numbers in self._numbers.items()}
        return changed

    def prune_new(self, threshold: float, measure: str = "accuracy") -> None:
        """Prune what neighbours want as it comes, up to a threshold of the measure, once events have been seen."""
        self._insertion = (threshold, measure)
        self._pruned_by(measure)

    def _pruned_by(self, measure: str) -> PrunedTable:
        """Return the table of what neighbours want, in which ranks are by a measure."""
        from tamis.pruning.table import PrunedTable  # which compiles; most brokers never prune

        if self._pruned is not None and self._pruned.measure.name == measure:
            return self._pruned
        before = self._pruned
        after = self._pruned = PrunedTable(self.share, measure)
        versions, self._versions = self._versions, []
        self._peers, self._keys = [], []
        for peer, filters in self._filters.items():  # in their order, on which ties between prunings depend
            if peer not in self._neighbours:
                continue
            for key, kept in filters.items():
                if isinstance(kept, Expression):
                    expression = kept
                    number = _UNMATCHED if peer in self._muted else self._number(peer, kept)
                else:
                    assert before is not None
                    expression, number = before.original(kept), versions[kept]
                entry = filters[key] = self._new_entry(after, peer, key, expression)
                if number == _UNMATCHED:
                    continue
                if self._matched[number] == expression:
                    self._versions[entry] = number
                else:
                    self._versions[entry] = self._hold(peer, key, expression)
                    self._let_go(peer, key, number)
        return after

    def _match_as(self, changed: list[tuple[int, Expression]]) -> int:
        """Match other versions of some entries; the old ones are removed together, which marks them in one go."""
        removed = []
        for entry, version in changed:
            peer, key = self._peers[entry], self._keys[entry]
            if peer not in self._muted:
                number = self._hold(peer, key, version)
                if self._release(peer, key, self._versions[entry]):
                    removed.append(self._versions[entry])
                self._versions[entry] = number
        self._matcher.remove_many(removed)
        self._free_numbers += removed  # not before: a number that is given out is new to the matcher
        return len(changed)

    def _take_counts(self) -> None:
        self.counters.take(*self._matcher.watched())

    # -- Events

    def match(self, event: Mapping[str, Any]) -> dict[str, list[Key]]:
        """Return the clients that want an event, each with its keys that do, and the neighbours, with none."""
        self._register()
        ids, neighbours = self._matcher.match_shortcut(event)
        wanted_by: dict[str, list[Key]] = {}
        if ids:
            _, entries = self._holders.of(np.array(ids, np.int64))
            order = self._handles.order(np.zeros(len(entries), np.int64), entries)
            entries = entries if order is None else entries[order]
            clients = self._handles.clients_of(entries)
            for client, entry in zip(clients.tolist(), entries.tolist(), strict=True):
                wanted_by.setdefault(self.client_name(client), []).append(self.key(entry))
            self.match_count += len(entries)
        neighbours = [*neighbours, *self._reached_by_proxies(event, neighbours)]
        for neighbour in neighbours:
            wanted_by[neighbour] = []
        self.match_count += len(neighbours)
        return wanted_by

    def _reached_by_proxies(self, event: Mapping[str, Any], already: Collection[str]) -> list[str]:
        """Return the other neighbours that want an event because of filters that move."""
        if not self._reached or self._proxies is None:
            return []
        reached: dict[str, None] = {}
        owners = self._reached
        for number in self._proxies.wanted(event, lambda each: owners[each] in reached or owners[each] in already):
            reached[owners[number]] = None
        return list(reached)

    def _with_proxies(
        self,
        group: Sequence[Mapping[str, Any]],
        events: npt.NDArray[np.int64],
        neighbours: npt.NDArray[np.int64],
        names: tuple[str, ...],
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return which event reaches which neighbour, by what is matched and by filters that move."""
        if not self._reached:
            return events, neighbours
        already: list[set[str]] = [set() for _ in group]
        for event, neighbour in zip(events.tolist(), neighbours.tolist(), strict=True):
            already[event].add(names[neighbour])
        places = {name: place for place, name in enumerate(names)}
        others = [
            (number, places[name])
            for number, event in enumerate(group)
            for name in self._reached_by_proxies(event, already[number])
        ]
        rows = np.array(others, np.int64).reshape(-1, 2)
        events, neighbours = np.append(events, rows[:, 0]), np.append(neighbours, rows[:, 1])
        order = np.argsort(events, kind="stable")
        return events[order], neighbours[order]

    def match_many(
        self, events: Sequence[Mapping[str, Any]], asked: npt.NDArray[np.bool_] | None = None
    ) -> GroupMatches:
        """Return what `match` does for each event of a group, in turn: by handles, as arrays.

        With `asked` only of some clients: it says so of each handle, and beyond its end nobody is asked about. That
        saves sorting the matches of all others, which are mostly of clients that are away.

        >>> import tamis
        >>> table = RoutingTable()
        >>> table.connect("north")
        >>> table.add("north", 1, tamis.parse("price < 20"))
        >>> table.add("ann", "cheap", tamis.parse("price < 10"))
        >>> clients, neighbours = table.match_many([{"price": 12}, {"price": 3}])
        >>> clients.events.tolist(), [table.key(entry) for entry in clients.entries.tolist()]
        ([1], ['cheap'])
        >>> neighbours.events.tolist(), [neighbours.names[each] for each in neighbours.neighbours.tolist()]
        ([0, 1], ['north', 'north'])
        """
        names = tuple(self._neighbours)
        places = {name: place for place, name in enumerate(names)}
        clients: list[tuple[int, ClientMatches]] = []
        reaching, reached = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        first = 0
        while first < len(events):
            self._register()
            count = self._undisturbed(len(events) - first)
            group = events[first : first + count] if count < len(events) else events
            matches = self._matcher.match_shortcut_batch(group)
            counts, entries = self._holders.of(matches.subscriptions)
            owners = self._handles.clients_of(entries)
            numbers = np.repeat(matches.events, counts)
            order = self._handles.order(numbers, entries)
            if order is not None:
                owners, entries = owners[order], entries[order]
            by_number = np.array([places.get(name, 0) for name in matches.names], np.int64)
            events_reaching, neighbours_reached = self._with_proxies(
                group, matches.reaching, by_number[matches.destinations], names
            )
            self.match_count += len(entries) + len(events_reaching)
            if asked is not None:
                rows = np.flatnonzero(asked[np.minimum(owners, len(asked) - 1)] & (owners < len(asked)))
                numbers, owners, entries = numbers[rows], owners[rows], entries[rows]
            clients.append((first, by_event_and_client(numbers, owners, entries, self._handles.client_count)))
            reaching.append(first + events_reaching)
            reached.append(neighbours_reached)
            first += count
        return GroupMatches(joined(clients), NeighbourMatches(np.concatenate(reaching), np.concatenate(reached), names))

    def named(self, wanted: GroupMatches, event_count: int) -> list[dict[str, list[Key]]]:
        """Return who wants each of so many events by names and keys, as `match` does."""
        wanted_by: list[dict[str, list[Key]]] = [{} for _ in range(event_count)]
        clients, neighbours = wanted
        rows = zip(clients.events.tolist(), clients.clients.tolist(), clients.entries.tolist(), strict=True)
        for event, client, entry in rows:
            wanted_by[event].setdefault(self.client_name(client), []).append(self.key(entry))
        for event, neighbour in zip(neighbours.events.tolist(), neighbours.neighbours.tolist(), strict=True):
            wanted_by[event][neighbours.names[neighbour]] = []
        return wanted_by

    def _undisturbed(self, count: int) -> int:
        """Return how many of so many events may be matched together, before anything is done between two of them.

        Filters are pruned as they come, once enough events were looked at; and counts are taken over now and then.
        """
        if self._insertion is None:
            return count
        watched = self._matcher.watched_count
        most = _COUNTS_TAKEN_AT - watched
        if self._pruned is not None and self._pruned.has_new and self.counters.event_count < INFORMED:
            most = min(most, int(INFORMED - self.counters.event_count) - watched)
        return max(1, min(count, most))

    def _register(self) -> None:
        """Prune what is new, and tell the matcher of it."""
        if not self._waiting and self._insertion is None:
            return
        if self._insertion is not None and self._matcher.watched_count >= _COUNTS_TAKEN_AT:
            self._take_counts()  # half a second for many filters, so only where somebody goes by the counts
        if self._insertion is not None and self._pruned is not None and self._pruned.has_new:
            threshold, _ = self._insertion
            if self._pruned.share != self.share or self._take_enough_counts():
                self._match_as(self._pruned.prune_new(None if threshold is None else Goal(threshold=threshold)))
        if self._waiting:
            matched = self._matched
            self._matcher.add_many({number: matched[number] for number in self._waiting}, destinations=self._waiting)
            self._waiting = {}

    def _take_enough_counts(self) -> bool:
        """Take over what the matcher has counted once that is enough; return whether enough events are known."""
        if self.counters.event_count < INFORMED and self.counters.event_count + self._matcher.watched_count >= INFORMED:
            self._take_counts()
        return self.counters.event_count >= INFORMED


class _Wanted(Mapping[Any, Expression]):
    """The filters of a peer by key, those that are pruned unpacked when they are asked for."""

    __slots__ = ("_kept", "_pruned")

    def __init__(self, kept: Mapping[Key, Expression | int], pruned: PrunedTable | None) -> None:
        self._kept = kept
        self._pruned = pruned

    def __getitem__(self, key: Key) -> Expression:
        kept = self._kept[key]
        if isinstance(kept, Expression):
            return kept
        assert self._pruned is not None
        return self._pruned.original(kept)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)


def text_bytes(expression: Expression) -> int:
    """Return what a filter takes as text."""
    return len(str(expression).encode("utf-8", "surrogatepass"))


def _names_in(expression: Expression) -> set[str]:
    """Return the first names of all attributes that a filter mentions."""
    names: set[str] = set()
    below = [expression]
    while below:
        node = below.pop()
        if isinstance(node, Attribute):
            names.add(node.path[0])
        elif children := node.children:
            below += children
    return names
