"""What does a broker know of a neighbour? The state of a link.

What it told the neighbour of everybody else's filters (a summary), what may come from there (advertisements), and
whether events are filtered on the way there. With advertisements, a filter is told only if it overlaps one of them;
which one is remembered as its *reason*. When that advertisement ends, another reason is looked for, and for no other
filter anything changes.

Filters on a link have numbers that only grow. A number that was there before, and is gone, is a message that came
twice: it is told apart without any memory of messages.

Source: Mühl et al. 2002, section 2.7 (docs/bibliography.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.language.schema import NO_SCHEMA
from tamis.relations.advertisements import OverlapIndex
from tamis.routing.adaptation import Adaptation, Rates
from tamis.routing.messages import Advertise, Entry, Hello, Key, Message, Subscribe, Unadvertise, Unsubscribe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.routing.base import Changes, Knowledge, Source, Strategy


_NOBODY: dict[Source, int] = {}


class Numbers:
    """Which numbers are new on a link?"""

    def __init__(self) -> None:
        self._highest = -1

    def take(self, key: Key) -> bool:
        """Take note of a number; return whether it was never here."""
        assert isinstance(key, int), "the message was checked"
        if key <= self._highest:
            return False
        self._highest = key
        return True


class Link:
    """One neighbour."""

    def __init__(
        self,
        strategy: Strategy,
        advertising: Strategy | None,
        schema: Schema | None,
        adaptation: Adaptation | None,
        neighbour: str,
        knowledge: Knowledge,
    ) -> None:
        self.wanted = strategy.summary_for(neighbour, knowledge)
        self.wanted.hops_of = self._hops_of
        self._hops: dict[Expression, dict[Source, int]] = {}
        self.offered = None if advertising is None else advertising.summary_for(neighbour, knowledge)
        self.rates = None if adaptation is None else Rates(adaptation)
        self.subscription_numbers, self.advertisement_numbers = Numbers(), Numbers()
        self.has_greeted = False
        self.refused_schema: str | None = None
        """The digest of the neighbour's schema, if it is another one."""
        self._digest = NO_SCHEMA if schema is None else schema.digest
        self._advertised: dict[Key, Expression] = {}
        self._heeded: dict[Key, Expression] = {}
        self._reasons: dict[Source, Key] = {}
        self._relying: dict[Key, dict[Source, Expression]] = {}
        self._index = (
            None if advertising is None else OverlapIndex(schema, is_exact=True, context=strategy.comparisons.context)
        )

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
        return self._index.witness(expression)

    def want(self, source: Source, expression: Expression, imperfection: float = 0.0, hops: int = 0) -> None:
        """Tell the neighbour of a filter, if anything that it wants may come from there.

        Its subscriber is so many links away, and wants all of it but a share.
        """
        if self._index is None:
            self._add(source, expression, imperfection, hops)
        elif (reason := self.reason(expression)) is not None:
            self.want_because(reason, source, expression, imperfection, hops)

    def want_because(
        self, key: Key, source: Source, expression: Expression, imperfection: float = 0.0, hops: int = 0
    ) -> None:
        """Tell the neighbour of a filter that overlaps what it advertised under a key."""
        self._rely(source, expression, key)
        self._add(source, expression, imperfection, hops)

    def _add(self, source: Source, expression: Expression, imperfection: float, hops: int) -> None:
        if hops:
            self._hops.setdefault(expression, {})[source] = hops
        self.wanted.add(source, expression, imperfection)

    def _remove(self, source: Source, expression: Expression) -> None:
        self.wanted.remove(source)
        if expression in self._hops:
            self._hops[expression].pop(source, None)
            if not self._hops[expression]:
                del self._hops[expression]

    def unwant(self, source: Source, expression: Expression) -> None:
        """Forget a filter that the neighbour may have been told."""
        if source in self.wanted:
            self._remove(source, expression)
            if source in self._reasons:
                del self._relying[self._reasons.pop(source)][source]

    def forget_reasons(self) -> None:
        """Look for no more reasons: what the neighbour was told stays as it is, because it is about to be closed."""
        self._reasons.clear()
        self._relying.clear()

    def _rely(self, source: Source, expression: Expression, key: Key) -> None:
        self._reasons[source] = key
        self._relying.setdefault(key, {})[source] = expression

    def _hops_of(self, expression: Expression) -> int:
        return min(self._hops.get(expression, _NOBODY).values(), default=0)

    def hello(self, everything: Expression, lease_s: float | None = None) -> Hello:
        """Return the first message to the neighbour, who may hear of anything if advertisements are not used."""
        entries = self.wanted.changes().added
        if self.offered is None:
            return Hello(entries, (Entry(0, everything),), self._digest, lease_s)
        return Hello(entries, self.offered.changes().added, self._digest, lease_s)

    def close(self) -> None:
        """Let go of what is shared with other links."""
        self.wanted.close()
        if self.offered is not None:
            self.offered.close()

    def messages(self, is_removal: bool) -> list[Message]:
        """Return what to tell the neighbour after something came or was taken back."""
        messages: list[Message] = []
        if self.offered is not None and (changes := self.offered.changes()):
            messages.append(_advertising(changes, is_removal))
        if changes := self.wanted.changes():
            messages.append(_subscribing(changes, is_removal))
        return messages


def _subscribing(changes: Changes, is_removal: bool) -> Message:
    if is_removal or not changes.added:
        return Unsubscribe(changes.removed, changes.added) if changes.removed else Subscribe(changes.added)
    return Subscribe(changes.added, changes.removed)


def _advertising(changes: Changes, is_removal: bool) -> Message:
    if is_removal or not changes.added:
        return Unadvertise(changes.removed, changes.added) if changes.removed else Advertise(changes.added)
    return Advertise(changes.added, changes.removed)
