"""What does a broker know of a neighbour? The state of a link.

What it told the neighbour of everybody else's filters (a summary), what may come from there (advertisements), and
whether events are filtered on the way there. With advertisements, a filter is told only if it overlaps one of them;
which one is remembered as its *reason*. When that advertisement ends, another reason is looked for, and for no other
filter anything changes.

Filters on a link have numbers that only grow. A number that was there before, and is gone, is a message that came
twice: it is told apart without any memory of messages.

A link may be *gradual*. Then what the neighbour must know is worked out in steps, which `Broker.work` takes: until that
is done for the first time the neighbour knows TRUE (`gradual`), later it knows what was right a moment ago (`agenda`).
A few changes are worked out at once.

Source: Mühl et al. 2002, section 2.7 (docs/bibliography.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tamis.language.expressions import FALSE, TRUE
from tamis.language.schema import NO_SCHEMA
from tamis.relations.advertisements import OverlapIndex
from tamis.routing.adaptation import Adaptation, Rates
from tamis.routing.agenda import Agenda
from tamis.routing.base import Changes
from tamis.routing.gradual import GradualSummary
from tamis.routing.greeting import in_parts
from tamis.routing.guard import OPEN
from tamis.routing.messages import (
    INCOMPLETE,
    PROVISIONAL,
    Advertise,
    Entry,
    Hello,
    Key,
    Message,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from tamis.routing.renewal import Names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.routing.base import Knowledge, Source, Strategy, Summary
    from tamis.routing.greeting import PartialHello
    from tamis.routing.guard import Guard
    from tamis.routing.renewal import Content


AT_ONCE = 4
"""So many filters of a message are worked out at once on a gradual link."""
_NOBODY: dict[Source, int] = {}


class Numbers:
    """Which numbers are new on a link?"""

    def __init__(self) -> None:
        self._highest = INCOMPLETE - 1

    def rise(self, key: Key | None) -> None:
        """Take note of a number, and with it of all that are lower."""
        if isinstance(key, int):
            self._highest = max(self._highest, key)

    def take(self, key: Key) -> bool:
        """Take note of a number; return whether it was never here."""
        assert isinstance(key, int), "the message was checked"
        if key <= self._highest:
            return False
        self._highest = key
        return True


class Ledger(NamedTuple):
    """What a broker has of others, by source: a filter, its imperfection and its hops; None if it is not to be told."""

    filter_of: Callable[[Source], Content | None]
    advertisement_of: Callable[[Source], Content | None]


class Said:
    """What a neighbour said of one kind, of filters or of advertisements, and whether it was told all of that kind."""

    def __init__(self) -> None:
        self.numbers = Numbers()
        self.names = Names()
        self.provisional: dict[Key, Key | None] = {}
        """The names of what holds for the time being, with the neighbour's numbers (`PROVISIONAL`, `INCOMPLETE`).

        What it said so in a life before has no number any more, and ends when the neighbour has said all again.
        """
        self.is_awaiting = True
        """Does the neighbour await more, because others have not yet said all that it must know?"""
        self.has_mark = False
        """Does it know that, and so keeps what it was told in a life before?"""

    @property
    def is_complete(self) -> bool:
        """Has the neighbour said all, as far as it knows?"""
        return not any(number is not None for number in self.provisional.values())

    @property
    def is_worked_out(self) -> bool:
        """Does the neighbour say what it knows, and not just TRUE?"""
        return PROVISIONAL not in self.provisional.values()


class Link:
    """One neighbour. With a `ledger`, what it must know is worked out gradually."""

    def __init__(
        self,
        strategy: Strategy,
        advertising: Strategy | None,
        schema: Schema | None,
        adaptation: Adaptation | None,
        neighbour: str,
        knowledge: Knowledge,
        ledger: Ledger | None = None,
        guard: Guard = OPEN,
        functions: tuple[tuple[str, int], ...] = (),
    ) -> None:
        self._ledger = ledger
        self._functions = functions
        """Those that filters may call, by name and version."""
        self.agree(strategy.summary_for(neighbour, knowledge), adaptation, guard)
        self.offered = None if advertising is None else advertising.summary_for(neighbour, knowledge)
        self._offering: Gradually | None = None
        if ledger is not None and self.offered is not None:
            self.offered = gradual = GradualSummary(self.offered)
            self._offering = Gradually(gradual, Agenda(self._come_offered, self._go_offered))
        self.filters, self.advertisements = Said(), Said()
        self.said_filters: dict[Key, Expression] = {}
        """What the neighbour wants, by the names here, where it may not have all of it."""
        self.greeting: PartialHello | None = None
        """A Hello of which not all parts have come."""
        self.has_greeted = False
        self.is_renewed = False
        """Was the neighbour started anew, and has not greeted since?"""
        self.refused_schema: str | None = None
        """The digest of the neighbour's schema, if it is another one."""
        self.refused_functions: tuple[tuple[str, int], ...] | None = None
        """The names and versions of its functions, if they are others."""
        self._digest = NO_SCHEMA if schema is None else schema.digest
        self._advertised: dict[Key, Expression] = {}
        self._heeded: dict[Key, Expression] = {}
        self._index = (
            None if advertising is None else OverlapIndex(schema, is_exact=True, context=strategy.comparisons.context)
        )

    def agree(self, summary: Summary, adaptation: Adaptation | None, guard: Guard) -> None:
        """Take the terms of the link: an empty summary for what the neighbour is told, and what may pass."""
        self.guard = guard
        self.wanted: Summary = summary
        self.wanted.hops_of = self._hops_of
        self._hops: dict[Expression, dict[Source, int]] = {}
        self._reasons: dict[Source, Key] = {}
        self._relying: dict[Key, dict[Source, Expression]] = {}
        self._wanting: Gradually | None = None
        if self._ledger is not None:
            self.wanted = gradual = GradualSummary(summary, guard.asked(TRUE))
            self._wanting = Gradually(gradual, Agenda(self._come, self._go))
        may_stop_filtering = adaptation is not None and guard.may_leave is None
        self.rates = Rates(adaptation) if adaptation is not None and may_stop_filtering else None

    @property
    def advertised(self) -> Mapping[Key, Expression]:
        """What may come from the neighbour."""
        return self._advertised

    @property
    def heeded(self) -> dict[Key, Expression]:
        """The same, as it is kept: some of it more general."""
        return {**self._advertised, **self._heeded}

    def advertise(self, key: Key, expression: Expression, heeded: Expression) -> None:
        """The neighbour says what may come from it; what is heeded may be more general."""
        self._advertised[key] = expression
        if heeded != expression:
            self._heeded[key] = heeded
        if self._index is not None:
            self._index.add(key, heeded)

    def unadvertise(self, key: Key) -> Expression:
        """It takes that back, and hears no more of the filters that nothing else there concerns."""
        if self._index is not None:
            self._index.remove(key)
        self._look_for_reasons(key)
        self._heeded.pop(key, None)
        return self._advertised.pop(key)

    def heed(self, key: Key, heeded: Expression) -> bool:
        """Keep an advertisement as another filter that covers it; return whether that is a change.

        The neighbour hears no more of the filters that nothing there concerns as it is kept now.
        """
        if heeded == self._heeded.get(key, self._advertised[key]):
            return False
        self._heeded.pop(key, None)
        if heeded != self._advertised[key]:
            self._heeded[key] = heeded
        if self._index is not None:
            self._index.remove(key)
            self._index.add(key, heeded)
        self._look_for_reasons(key)
        return True

    def _look_for_reasons(self, key: Key) -> None:
        """Find out again why those filters are told that overlapped an advertisement, which is no more what it was."""
        for source, expression in self._relying.pop(key, {}).items():
            del self._reasons[source]
            if self._wanting is not None:
                self._wanting.remove(source, expression)
            else:
                self._look_for_reason(source, expression)

    def _look_for_reason(self, source: Source, expression: Expression) -> None:
        reason = self.reason(expression)
        if reason is None:
            self._remove(source, expression)
        else:
            self._rely(source, expression, reason)

    @property
    def relied_on(self) -> dict[Key, int]:
        """How many filters are told because of each advertisement."""
        return {key: len(sources) for key, sources in self._relying.items() if sources}

    def reason(self, expression: Expression) -> Key | None:
        """Return which advertisement of the neighbour says that something may come from there that a filter wants."""
        assert self._index is not None, "there are no advertisements"
        return self._index.witness(self.guard.asked(expression))

    def want(self, source: Source, expression: Expression, imperfection: float = 0.0, hops: int = 0) -> None:
        """Tell the neighbour of a filter, if anything that it wants may come from there.

        Its subscriber is so many links away, and wants all of it but a share.
        """
        if self._wanting is not None:
            self._wanting.add(source)
        elif self._index is None:
            self._add(source, expression, imperfection, hops)
        elif (reason := self.reason(expression)) is not None:
            self.want_because(reason, source, expression, imperfection, hops)

    def want_because(
        self, key: Key, source: Source, expression: Expression, imperfection: float = 0.0, hops: int = 0
    ) -> None:
        """Tell the neighbour of a filter that overlaps what it advertised under a key."""
        if self._wanting is not None:
            self._wanting.add(source)
            return
        self._rely(source, expression, key)
        self._add(source, expression, imperfection, hops)

    def _add(self, source: Source, expression: Expression, imperfection: float, hops: int) -> None:
        expression = self.guard.asked(expression)
        if hops:
            self._hops.setdefault(expression, {})[source] = hops
        self.wanted.add(source, expression, imperfection)

    def _remove(self, source: Source, expression: Expression) -> None:
        expression = self.guard.asked(expression)
        self.wanted.remove(source)
        if expression in self._hops:
            self._hops[expression].pop(source, None)
            if not self._hops[expression]:
                del self._hops[expression]

    def unwant(self, source: Source, expression: Expression) -> None:
        """Forget a filter that the neighbour may have been told."""
        if source not in self.wanted:
            return
        if self._wanting is not None:
            self._wanting.remove(source, expression)
        else:
            self._let_go(source, expression)

    def _let_go(self, source: Source, expression: Expression) -> None:
        self._remove(source, expression)
        if source in self._reasons:
            del self._relying[self._reasons.pop(source)][source]

    def offer(self, source: Source, expression: Expression, imperfection: float = 0.0) -> None:
        """Tell the neighbour of an advertisement, if they are used."""
        if self._offering is not None:
            self._offering.add(source)
        elif self.offered is not None:
            self.offered.add(source, expression, imperfection)

    def withdraw(self, source: Source, expression: Expression) -> None:
        """Forget an advertisement that the neighbour may have been told."""
        if self.offered is None or source not in self.offered:
            return
        if self._offering is not None:
            self._offering.remove(source, expression)
        else:
            self.offered.remove(source)

    # -- Step by step

    def begin(self, filters: Iterable[tuple[str, list[Key]]]) -> None:
        """Begin to work out what a neighbour must know of all these filters, unless that has begun."""
        if self._wanting is not None:
            self._wanting.begin(filters)

    def begin_to_offer(self, advertisements: Iterable[tuple[str, list[Key]]]) -> None:
        """Begin to work out what it must know of advertisements."""
        if self._offering is not None:
            self._offering.begin(advertisements)

    @property
    def has_begun(self) -> bool:
        """Is it time to tell the neighbour of filters? A gradual one waits until it is known what may come from it."""
        return self._wanting is None or self._wanting.has_begun

    @property
    def are_filters_final(self) -> bool:
        """Has the neighbour said all that it wants, as far as it knows by now?"""
        return self.has_greeted and self.filters.is_complete

    @property
    def are_advertisements_final(self) -> bool:
        """Has it said all that may come from there?"""
        return self.has_greeted and self.advertisements.is_complete

    def conclude(self, *, filters: bool, advertisements: bool) -> None:
        """Take note whether all others have said what the neighbour must know, so that what it is told is complete."""
        if filters:
            self.filters.is_awaiting = False
        if advertisements:
            self.advertisements.is_awaiting = False

    @property
    def is_awaiting(self) -> bool:
        """Is what the neighbour is told not complete yet?"""
        return self.filters.is_awaiting or self.advertisements.is_awaiting

    @property
    def work_count(self) -> int:
        """How many steps there are to do, at least; 0 if there is nothing to do."""
        return sum(each.work_count for each in (self._offering, self._wanting) if each is not None)

    def step(self, most_entries: int) -> None:
        """Take one step; there is one to take."""
        for each in (self._offering, self._wanting):
            if each is not None and each.work_count:
                each.step(most_entries)
                return

    def _come(self, source: Source) -> None:
        """Let a filter be told that may have come."""
        assert self._ledger is not None, "the link is gradual"
        assert self._wanting is not None, "the link is gradual"
        content = self._ledger.filter_of(source)
        if content is None:
            return
        if source in self.wanted:
            before = self._wanting.agenda.leaving(source)
            if before is None:
                return
            self._let_go(source, before)
        expression, imperfection, hops = content
        if self._index is not None:
            reason = self.reason(expression)
            if reason is None:
                return
            self._rely(source, expression, reason)
        self._add(source, expression, imperfection, hops)

    def _go(self, source: Source, expression: Expression) -> None:
        """Let a filter be told no more that may have gone, or have lost its reason."""
        assert self._ledger is not None
        if source not in self.wanted:
            return
        content = self._ledger.filter_of(source)
        if content is None or content[0] != expression:
            self._let_go(source, expression)
        elif self._index is not None and source not in self._reasons:
            self._look_for_reason(source, expression)

    def _come_offered(self, source: Source) -> None:
        assert self._ledger is not None, "the link is gradual"
        assert self._offering is not None, "the link is gradual"
        assert self.offered is not None, "there are advertisements"
        content = self._ledger.advertisement_of(source)
        if content is None:
            return
        if source in self.offered:
            if self._offering.agenda.leaving(source) is None:
                return
            self.offered.remove(source)
        self.offered.add(source, content[0], content[1])

    def _go_offered(self, source: Source, expression: Expression) -> None:
        assert self.offered is not None
        if source in self.offered:
            self.offered.remove(source)

    def forget_reasons(self) -> None:
        """Look for no more reasons: what the neighbour was told stays as it is, because it is about to be closed."""
        self._reasons.clear()
        self._relying.clear()

    def _rely(self, source: Source, expression: Expression, key: Key) -> None:
        self._reasons[source] = key
        self._relying.setdefault(key, {})[source] = expression

    def _hops_of(self, expression: Expression) -> int:
        return min(self._hops.get(expression, _NOBODY).values(), default=0)

    def hello(self, everything: Expression, most_entries: int, lease_s: float | None = None) -> Iterator[Hello]:
        """Yield the first message to the neighbour, in parts; it may hear of anything if advertisements are not used.

        It says all that the neighbour has to know by now.
        """
        for each in (self._wanting, self._offering):
            if each is not None:
                each.summary.begin_again()
        self.wanted.changes()
        entries = self._marked(self.wanted, self.filters)
        offered: tuple[Entry, ...] = (Entry(0, everything),)
        if self.offered is not None:
            self.offered.changes()
            offered = self._marked(self.offered, self.advertisements)
        return in_parts(Hello(entries, offered, self._digest, lease_s, functions=self._functions), most_entries)

    def _marked(self, summary: Summary, said: Said) -> tuple[Entry, ...]:
        """Return what the neighbour has to know, with growing numbers, and a mark if that is not all yet.

        The mark is a filter that no event matches. While it is there, the neighbour forgets nothing of a life before.
        """
        entries = tuple(sorted(summary.entries, key=lambda entry: entry.key))
        said.has_mark = said.is_awaiting
        return (Entry(INCOMPLETE, FALSE), *entries) if said.has_mark else entries

    def _with_end_of_mark(self, changes: Changes, said: Said) -> Changes:
        if not said.has_mark or said.is_awaiting:
            return changes
        said.has_mark = False
        return Changes(changes.added, (*changes.removed, INCOMPLETE))

    def renew(self, filters: Mapping[Key, Content], advertisements: Mapping[Key, Content]) -> None:
        """Take note that the neighbour was started anew, which had said this."""
        self.has_greeted, self.is_renewed, self.greeting = False, True, None
        for said, known in ((self.filters, filters), (self.advertisements, advertisements)):
            said.numbers = Numbers()
            said.names.renew(
                {key: content for key, content in known.items() if key not in said.provisional}, tuple(said.provisional)
            )
            said.provisional = dict.fromkeys(said.provisional)

    @property
    def is_gradual(self) -> bool:
        """Is what the neighbour must know worked out in steps?"""
        return self._ledger is not None

    def close_wanted(self) -> None:
        """Let go of what filters for the neighbour share with those for others."""
        self.wanted.close()

    def close(self) -> None:
        """Let go of what is shared with other links."""
        self.wanted.close()
        if self.offered is not None:
            self.offered.close()

    def messages(self, is_removal: bool, most_entries: int) -> list[Message]:
        """Return what to tell the neighbour after something came or was taken back, so many filters in a message."""
        messages: list[Message] = []
        for each in (self._wanting, self._offering):
            if each is not None:
                each.at_once = AT_ONCE
        if self.offered is not None and (
            changes := self._with_end_of_mark(self.offered.changes(), self.advertisements)
        ):
            *first, last = _in_pieces(changes, most_entries)
            messages += [Advertise(each.added) for each in first]
            messages.append(_advertising(last, is_removal))
        if changes := self._with_end_of_mark(self.wanted.changes(), self.filters):
            *first, last = _in_pieces(changes, most_entries)
            messages += [Subscribe(each.added) for each in first]
            messages.append(_subscribing(last, is_removal))
        return messages


class Gradually:
    """A summary, and what is still to be worked out for it."""

    def __init__(self, summary: GradualSummary, agenda: Agenda) -> None:
        self.summary = summary
        self.agenda = agenda
        self.at_once = AT_ONCE
        """So many steps more are taken with the message that makes them necessary."""
        self.has_begun = False

    def begin(self, sources: Iterable[tuple[str, list[Key]]]) -> None:
        """Begin to work out what the neighbour must know of all of these, unless that has begun."""
        if not self.has_begun:
            self.has_begun = True
            self.agenda.add_many(sources)

    def add(self, source: Source) -> None:
        """Look at a source that may have come; before it has begun, whatever is there then is looked at."""
        if self.has_begun:
            self.agenda.add(source)
            self._work_at_once()

    def remove(self, source: Source, expression: Expression) -> None:
        """Look at a source that may have gone."""
        self.agenda.remove(source, expression)
        self._work_at_once()

    def _work_at_once(self) -> None:
        if self.at_once and not self.summary.is_provisional:
            self.at_once -= 1
            self.agenda.step()

    @property
    def work_count(self) -> int:
        """How many steps there are to do, at least."""
        return len(self.agenda) + self.summary.is_provisional if self.has_begun else 0

    def step(self, most_entries: int) -> None:
        """Look at one source, or let the neighbour be told of some filters."""
        if self.agenda:
            self.agenda.step()
        else:
            self.summary.tell(most_entries)


def _in_pieces(changes: Changes, most: int) -> Iterator[Changes]:
    """Yield changes of so many filters at most. What is taken back is so with the last: nothing has a gap."""
    count = max(1, -(-len(changes.added) // most))
    for number in range(count):
        added = changes.added[number * most : (number + 1) * most]
        yield Changes(added, changes.removed if number == count - 1 else ())


def _subscribing(changes: Changes, is_removal: bool) -> Message:
    if is_removal or not changes.added:
        return Unsubscribe(changes.removed, changes.added) if changes.removed else Subscribe(changes.added)
    return Subscribe(changes.added, changes.removed)


def _advertising(changes: Changes, is_removal: bool) -> Message:
    if is_removal or not changes.added:
        return Unadvertise(changes.removed, changes.added) if changes.removed else Advertise(changes.added)
    return Advertise(changes.added, changes.removed)
