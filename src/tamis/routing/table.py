"""Which peers want an event?

A routing table has an entry for each filter that a peer wants: a neighbour, who speaks for everybody behind it, or a
client. Equal filters of several peers are matched once. What was added lately is registered with the matcher when the
next event comes, all at once.

The entries of a peer that gets every event anyway can be left out of matching (`mute`), and those of neighbours matched
in generalised versions (`prune`): post-pruning, which changes nothing in what is forwarded.

Source: Mühl et al. 2002, section 2.1; Bittner 2008, section 6.5 (docs/bibliography.md).
Departs: clients have entries too, of the same form; they are told apart by who the peer is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.errors import TamisError
from tamis.matching import Matcher
from tamis.pruning.bulk import prune_many

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.pruning.goals import Goal
    from tamis.routing.messages import Key
    from tamis.selectivity.estimates import Share


class RoutingTable:
    """Filters by peer and key.

    >>> import tamis
    >>> table = RoutingTable()
    >>> table.add("north", 1, tamis.parse("price < 20"))
    >>> table.add("ann", "cheap", tamis.parse("price < 10"))
    >>> table.match({"price": 12}), table.match({"price": 3})
    ({'north': [1]}, {'north': [1], 'ann': ['cheap']})
    """

    def __init__(self, schema: Schema | None = None, algorithm: str = "block") -> None:
        self._filters: dict[str, dict[Key, Expression]] = {}
        self._holders: dict[Expression, dict[tuple[str, Key], None]] = {}
        self._matcher = Matcher(algorithm, schema)
        self._takes_everything = schema is None and algorithm == "block"
        self._waiting: dict[Expression, None] = {}
        self._muted: set[str] = set()
        self._pruned: dict[tuple[str, Key], Expression] = {}
        self.match_count = 0
        """How many entries matched so far: a measure of the work."""

    def __len__(self) -> int:
        return sum(map(len, self._filters.values()))

    def __contains__(self, source: tuple[str, Key]) -> bool:
        peer, key = source
        return key in self._filters.get(peer, ())

    def of(self, peer: str) -> Mapping[Key, Expression]:
        """Return what a peer wants."""
        return self._filters.get(peer, {})

    def entries(self) -> Iterator[tuple[str, Key, Expression]]:
        """Yield all entries."""
        for peer, filters in self._filters.items():
            for key, expression in filters.items():
                yield peer, key, expression

    def bytes_of(self, peer: str) -> int:
        """Return what a peer's filters take as text, which is how they travel."""
        return sum(text_bytes(expression) for expression in self.of(peer).values())

    def objection(self, expression: Expression) -> str | None:
        """Return why a filter cannot be matched here; None if it can.

        >>> import tamis
        >>> RoutingTable(tamis.Schema({"price": "double"})).objection(tamis.parse("colour = 'red'"))
        'there is no attribute colour...'
        """
        if self._takes_everything:
            return None
        try:
            self._matcher.check(expression)
        except TamisError as error:
            return str(error)
        return None

    def add(self, peer: str, key: Key, expression: Expression) -> None:
        """Add an entry under a new key."""
        assert (peer, key) not in self
        self._filters.setdefault(peer, {})[key] = expression
        if peer not in self._muted:
            self._hold(peer, key, expression)

    def remove(self, peer: str, key: Key) -> Expression:
        """Remove an entry; return what it was."""
        expression = self._filters[peer].pop(key)
        if not self._filters[peer]:
            del self._filters[peer]
        matched = self._pruned.pop((peer, key), expression)
        if peer not in self._muted:
            self._let_go(peer, key, matched)
        return expression

    def mute(self, peer: str) -> None:
        """Stop matching for a peer, whose entries stay."""
        for key, expression in self.of(peer).items():
            self._let_go(peer, key, self._pruned.get((peer, key), expression))
        self._muted.add(peer)

    def unmute(self, peer: str) -> None:
        """Match for a peer again."""
        self._muted.discard(peer)
        for key, expression in self.of(peer).items():
            self._hold(peer, key, self._pruned.get((peer, key), expression))

    def prune(self, peers: Iterable[str], goal: Goal, share: Share, measure: str = "accuracy") -> int:
        """Match generalised versions of what some peers want, pruned as far as a goal says; return how many changed.

        It starts from what the peers said each time, so a smaller goal takes prunings back.
        """
        sources = [(peer, key) for peer in peers for key in self.of(peer)]
        originals = [self._filters[peer][key] for peer, key in sources]
        changed = 0
        for source, original, version in zip(
            sources, originals, prune_many(originals, share, goal, measure), strict=True
        ):
            before = self._pruned.get(source, original)
            if version != before:
                changed += 1
                if source[0] not in self._muted:
                    self._let_go(*source, before)
                    self._hold(*source, version)
                self._pruned[source] = version
        return changed

    def matched_bytes(self, peer: str) -> int:
        """Return what a peer's filters take as text, as they are matched."""
        return sum(text_bytes(self._pruned.get((peer, key), each)) for key, each in self.of(peer).items())

    def _hold(self, peer: str, key: Key, expression: Expression) -> None:
        holders = self._holders.get(expression)
        if holders is None:
            holders = self._holders[expression] = {}
            self._waiting[expression] = None
        holders[peer, key] = None

    def _let_go(self, peer: str, key: Key, expression: Expression) -> None:
        holders = self._holders[expression]
        del holders[peer, key]
        if not holders:
            del self._holders[expression]
            if expression in self._waiting:
                del self._waiting[expression]
            else:
                self._matcher.remove(expression)

    def match(self, event: Mapping[str, Any]) -> dict[str, list[Key]]:
        """Return the peers that want an event, and by which of their keys."""
        if self._waiting:
            self._matcher.add_many({expression: expression for expression in self._waiting})
            self._waiting = {}
        found: dict[str, list[Key]] = {}
        for expression in self._matcher.match(event):
            for peer, key in self._holders[expression]:
                found.setdefault(peer, []).append(key)
                self.match_count += 1
        return found


def text_bytes(expression: Expression) -> int:
    """Return what a filter takes as text."""
    return len(str(expression).encode("utf-8", "surrogatepass"))
