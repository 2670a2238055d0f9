"""What does a broker do with many events at once? Group processing, equal to one by one.

Whoever publishes much hands over groups: a frame, a micro-batch, whatever has been waiting. Of a group all keys are
looked up and all events checked first, in turn; then all that goes on is matched together. `receive_many` returns just
what `receive` would return for one publication after the other. `route_many` returns the same as arrays of handles, for
drivers that do not want an object for every pair of an event and a client.

Only adaptive filtering changes what is matched between two events. A link decides after so many events whether to go on
filtering, so a group is cut where a decision falls.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from tamis.errors import EventError
from tamis.language.schema import NO_SCHEMA
from tamis.routing.acceptance import check_keys
from tamis.routing.errors import MessageError
from tamis.routing.messages import Output, Passed, Publish, Reject, ResumeFiltering, Send
from tamis.routing.publishing import PublishingPart
from tamis.routing.wanted import ClientMatches, Integers, NeighbourMatches, joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence, Set

    import numpy.typing as npt

    from tamis.routing.desk import RankedDelivery
    from tamis.routing.messages import Key, Message
    from tamis.routing.wanted import GroupMatches

_ANY = Publish("any", {})
_NO_EVENT: Mapping[str, Any] = {}
Flags: TypeAlias = "npt.NDArray[np.bool_]"


class Routed(NamedTuple):
    """What becomes of a group of events.

    taken       int64[:]  the numbers of the events that went on: not known already, not refused
    events      list      all events as they went on: those that had to be read in the schema's types are new
    clients     who among the clients wants which event, by handles; numbers of events are those of the group
    neighbours  to whom among the neighbours which event goes
    outputs     all else that is to be said: what ended by now and what that changes, refusals, requests to filter. To
                each neighbour, these come before the events
    """

    taken: Integers
    events: list[Mapping[str, Any]]
    clients: ClientMatches
    neighbours: NeighbourMatches
    outputs: list[Output]

    def sends(self, keys: Sequence[Key]) -> list[Send]:
        """Return the events for neighbours as messages, of which those of one event share the publication."""
        publications: dict[int, Publish] = {}
        sends: list[Send] = []
        for event, neighbour in zip(self.neighbours.events.tolist(), self.neighbours.neighbours.tolist(), strict=True):
            if event not in publications:
                publications[event] = Publish.of_promised(keys[event], self.events[event])
            sends.append(Send(self.neighbours.names[neighbour], publications[event]))
        return sends


class Groups(PublishingPart, ABC):
    """The part of `Broker` that takes many events at once."""

    def receive_many(self, publications: Iterable[Publish], source: str, now: float) -> list[Output]:
        """Do what `receive` does for each of some publications of one peer, in turn; return all that it returns.

        All of them are looked at before anything is done: if one is no publication, nothing has happened.

        >>> import tamis
        >>> from tamis.routing import Broker, Entry, Subscribe
        >>> broker = Broker("middle")
        >>> broker.attach("ann"), broker.attach("shop")
        (None, None)
        >>> _ = broker.receive(Subscribe((Entry("cheap", tamis.parse("price < 20")),)), "ann", 0.0)
        >>> group = [Publish("e1", {"price": 12}), Publish("e2", {"price": 30}), Publish("e1", {"price": 12})]
        >>> [(output.client, output.publication.key) for output in broker.receive_many(group, "shop", 0.0)]
        [('ann', 'e1')]
        """
        publications = list(publications)
        for each in publications:
            if not isinstance(each, Publish):
                raise MessageError(f"{each!r:.80} in a group of events", "Publish, and no other message")
        keys, events = [each.key for each in publications], [each.event for each in publications]
        self._check_group(keys, events, source)
        if len(publications) <= 1:
            return [output for each in publications for output in self.receive(each, source, now)]
        is_rated = bool(self.desk) and any(link.rates is not None for link in self._links.values())
        if is_rated or any(isinstance(each, Passed) and each.attempt == 2 for each in publications):
            return [output for each in publications for output in self.receive(each, source, now)]
        outputs = self._heard(source, now)
        steps: list[Passed | Reject] = []
        going: list[Passed] = []
        for number, admitted in self._admitted(keys, events, source):
            if isinstance(admitted, Reject):
                steps.append(admitted)
            else:
                message = publications[number]
                published = message if admitted is message.event else Publish(message.key, admitted)
                going.append(self._stamped(published, source, now))
                steps.append(going[-1])
                self._note_passed(going[-1], source)
        wanted_by = self._wanted_in_turn([each.event for each in going], source)
        if self.desk:
            wanted_by, ranked = self._ranked_together(going, list(wanted_by), now)
        else:
            ranked = iter([] for _ in going)
        for step in steps:
            if isinstance(step, Reject):
                outputs.append(step)
            else:
                outputs += self._passed_on(step, next(wanted_by), source, now, next(ranked))
        return self._sent(outputs, now)

    def _ranked_together(
        self, group: list[Passed], wanted_by: list[Mapping[str, list[Key]]], now: float
    ) -> tuple[Iterator[Mapping[str, list[Key]]], Iterator[list[RankedDelivery]]]:
        """Return who wants each event of a group, and whom the desk tells of what, for each in turn."""
        served = [self._served(passed, each) for passed, each in zip(group, wanted_by, strict=True)]
        withdrawn = [each.key for each in group if each.key in self._withdrawals]
        return iter(wanted_by), iter(self.desk.take_many(group, now, served, withdrawn))

    def _wanted_in_turn(self, events: list[Mapping[str, Any]], source: str) -> Iterator[Mapping[str, list[Key]]]:
        """Yield who wants each event. Whoever takes the next has dealt with the one before."""
        first = 0
        while first < len(events):
            count = self._undecided(source, len(events) - first)
            yield from self.table.named(self.table.match_many(events[first : first + count]), count)
            first += count

    # -- Arrays

    def route_many(self, keys: Sequence[Key], events: Sequence[Mapping[str, Any]], source: str, now: float) -> Routed:
        """Do what `receive_many` does, and return it as arrays.

        The events are mappings that the caller promises never to change: they are neither copied nor frozen.

        >>> import tamis
        >>> from tamis.routing import Broker, Entry, Subscribe
        >>> broker = Broker("middle")
        >>> broker.attach("ann"), broker.attach("shop")
        (None, None)
        >>> _ = broker.receive(Subscribe((Entry("cheap", tamis.parse("price < 20")),)), "ann", 0.0)
        >>> routed = broker.route_many(["e1", "e2", "e1"], [{"price": 12}, {"price": 3}, {"price": 12}], "shop", 0.0)
        >>> routed.taken.tolist(), routed.clients.events.tolist()
        ([0, 1], [0, 1])
        >>> [broker.table.key(entry) for entry in routed.clients.entries.tolist()]
        ['cheap', 'cheap']
        """
        self._check_group(keys, events, source)
        outputs: list[Output] = self._heard(source, now) if len(keys) else []
        passed_on, numbers = list(events), []
        stamped: list[Passed] = []
        for number, admitted in self._admitted(keys, events, source):
            if isinstance(admitted, Reject):
                outputs.append(admitted)
            else:
                passed_on[number] = admitted
                numbers.append(number)
                stamped.append(self._stamped(Publish.of_promised(keys[number], admitted), source, now))
                self._note_passed(stamped[-1], source)
        clients: list[tuple[int, ClientMatches]] = []
        going = [np.zeros((0, len(self._links)), np.bool_)]
        first = 0
        while first < len(numbers):
            count = self._undecided(source, len(numbers) - first)
            events_of_part = [passed_on[number] for number in numbers[first : first + count]]
            wanted = self.table.match_many(events_of_part)
            clients.append((first, wanted.clients))
            if self.desk:
                outputs += self._told_besides(stamped[first : first + count], wanted, now)
            if self._links:
                going.append(self._going(wanted, count, source, now))
                outputs += self._requests(going[-1], wanted.clients, source, events_of_part)
            first += count
        taken, of_clients = np.array(numbers, np.int64), joined(clients)
        if len(taken) < len(passed_on):
            of_clients = of_clients._replace(events=taken[of_clients.events])
        places, links = np.nonzero(np.concatenate(going))
        of_neighbours = NeighbourMatches(taken[places], links, tuple(self._links))
        self._sent(outputs, now)
        self._said_to((of_neighbours.names[link] for link in set(links.tolist())), now)
        return Routed(taken, passed_on, of_clients, of_neighbours, outputs)

    def _told_besides(self, group: list[Passed], wanted: GroupMatches, now: float) -> list[Output]:
        """Return what the desk says of events whose other deliveries are arrays: to nobody who is in those."""
        wanted_by = self.table.named(wanted, len(group))
        served = [self._served(passed, each) for passed, each in zip(group, wanted_by, strict=True)]
        withdrawn = [each.key for each in group if each.key in self._withdrawals]
        outputs: list[Output] = []
        for passed, clients, ranked in zip(
            group, served, self.desk.take_many(group, now, served, withdrawn), strict=True
        ):
            for telling in ranked:
                if telling.publication.key == passed.key:
                    for client in clients.keys() & telling.clients.keys():
                        del telling.clients[client]
            outputs += self._delivered(ranked)
            outputs += self._moves(now)
        return outputs

    def _going(self, wanted: GroupMatches, count: int, source: str, now: float) -> Flags:
        """Return which of so many events (rows) go to which links (columns)."""
        going = np.zeros((count, len(self._links)), np.bool_)
        columns = {name: column for column, name in enumerate(self._links)}
        by_neighbour = np.array([columns[name] for name in wanted.neighbours.names], np.int64)
        going[wanted.neighbours.events, by_neighbour[wanted.neighbours.neighbours]] = True
        for column, (neighbour, link) in enumerate(self._links.items()):
            if neighbour == source:
                going[:, column] = False
            elif link.rates is not None:
                matches = going[:, column].tolist()
                going[:, column] = [self._note_going(neighbour, link, is_match, now) for is_match in matches]
        return going

    def _requests(
        self, going: Flags, clients: ClientMatches, source: str, events: Sequence[Mapping[str, Any]]
    ) -> list[Output]:
        """Take note which events of a peer nobody wanted; return the requests to filter again."""
        if source not in self._links or self._links[source].rates is None:
            return []
        is_wanted = np.zeros(len(going), np.bool_)
        is_wanted[going.nonzero()[0]] = True
        is_wanted[clients.events] = True
        flags: list[bool] = is_wanted.tolist()
        return [
            Send(source, ResumeFiltering())
            for each, event in zip(flags, events, strict=True)
            if self._note_received(source, is_wanted=each, event=event)
        ]

    # -- Drivers that have matched and deduplicated already

    @property
    def digest(self) -> str:
        """The digest of the schema, which neighbours must have too."""
        return NO_SCHEMA if self._schema is None else self._schema.digest

    def has_said_all(self, neighbour: str) -> bool:
        """Has a neighbour said what it wants, and no longer just everything for the time being?"""
        link = self._link(neighbour)
        return link.has_greeted and link.filters.is_worked_out

    def has_greeted(self, neighbour: str) -> bool:
        """Has a neighbour said all that it wants, since it was connected or renewed?"""
        return self._link(neighbour).has_greeted

    def onward(
        self, wanted: GroupMatches, sources: Sequence[str], only: Set[str], now: float
    ) -> tuple[NeighbourMatches, list[Output]]:
        """Return to whom of some neighbours events go that were matched, and what else is to be said because of them.

        For drivers that keep events and know by themselves which of them were here before: `wanted` is what the
        routing table says of a group, `sources` are the peers that they came from, of which only neighbours matter.
        An event never goes back to where it came from.

        >>> import tamis
        >>> from tamis.routing import Broker, Entry, Subscribe
        >>> broker = Broker("middle")
        >>> _ = broker.connect("north", 0.0), broker.connect("south", 0.0)
        >>> _ = broker.receive(Subscribe((Entry(0, tamis.parse("price < 20")),)), "north", 0.0)
        >>> events = [{"price": 12}, {"price": 30}, {"price": 3}]
        >>> matches, _ = broker.onward(broker.table.match_many(events), ["", "", "north"], {"north", "south"}, 0.0)
        >>> [(int(event), matches.names[place]) for event, place in zip(matches.events, matches.neighbours)]
        [(0, 'north')]
        """
        count, names = len(sources), tuple(name for name in self._links if name in only)
        going = np.zeros((count, len(names)), np.bool_)
        columns = {name: column for column, name in enumerate(names)}
        by_neighbour = np.array([columns.get(name, -1) for name in wanted.neighbours.names], np.int64)
        places = by_neighbour[wanted.neighbours.neighbours]
        going[wanted.neighbours.events[places >= 0], places[places >= 0]] = True
        came_from = np.array([columns.get(source, -1) for source in sources], np.int64)
        for column, name in enumerate(names):
            rates = self._links[name].rates
            if rates is not None:
                for event in np.flatnonzero(came_from != column).tolist():
                    is_match = bool(going[event, column])
                    going[event, column] = self._note_going(name, self._links[name], is_match, now)
            going[came_from == column, column] = False
        outputs: list[Output] = []
        if any(link.rates is not None for link in self._links.values()):
            is_wanted = np.zeros(count, np.bool_)
            is_wanted[going.nonzero()[0]] = True
            is_wanted[wanted.clients.events] = True
            flags: list[bool] = is_wanted.tolist()
            for source, flag in zip(sources, flags, strict=True):
                if self._note_received(source, is_wanted=flag, event=_NO_EVENT):
                    outputs.append(Send(source, ResumeFiltering()))
        events, neighbours = np.nonzero(going)
        return NeighbourMatches(events, neighbours, names), outputs

    # -- Both

    def _admitted(
        self, keys: Sequence[Key], events: Sequence[Mapping[str, Any]], source: str
    ) -> Iterator[tuple[int, Mapping[str, Any] | Reject]]:
        """Yield the numbers of the events that are not known, and each as it goes on, or what is said to refuse it."""
        is_client = source in self._clients
        for number, (key, event) in enumerate(zip(keys, events, strict=True)):
            if key in self._seen:
                continue
            admitted = event
            if is_client:
                try:
                    admitted = self._fitted(event)
                except EventError as error:
                    self.misfit_count += 1
                    yield number, Reject(source, key, str(error))
                    continue
                if reason := self._objection(key, admitted, source):
                    yield number, Reject(source, key, reason)
                    continue
            elif not self._let_in(event, source):
                continue
            yield number, admitted

    def _check_group(self, keys: Sequence[Key], events: Sequence[Mapping[str, Any]], source: str) -> None:
        """Raise an error, before anything is done, unless these are publications and for this peer to say."""
        self._check(_ANY, source)
        if len(keys) != len(events):
            raise MessageError(f"{len(keys)} keys of {len(events)} events", "a key for each event")
        if set(map(type, keys)) - {int, str}:
            check_keys(keys)
        for event in events:
            if type(event) is not dict and not isinstance(event, Mapping):
                raise EventError(f"an event is a mapping from names to values, not {type(event).__name__}")

    def _undecided(self, source: str, count: int) -> int:
        """Return how many of so many events come up to the one after which a link may stop filtering."""
        for neighbour, link in self._links.items():
            if neighbour != source and link.rates is not None and link.rates.is_filtering:
                count = min(count, link.rates.events_to_decision)
        return count

    # -- What the broker knows beside events

    @abstractmethod
    def receive(self, message: Message, source: str, now: float) -> list[Output]:
        """Do what a message of a peer asks for; return what to send and to deliver."""

    @abstractmethod
    def _check(self, message: Message, source: str) -> None:
        """Raise an error unless a message is for a peer to say."""

    @abstractmethod
    def _heard(self, source: str, now: float) -> list[Output]:
        """Take note that a peer said something, and let end what has ended by now; return what that changes."""

    @abstractmethod
    def _sent(self, outputs: list[Output], now: float) -> list[Output]:
        """Take note of who is told something."""

    @abstractmethod
    def _said_to(self, neighbours: Iterable[str], now: float) -> None:
        """Take note that neighbours are told something."""
