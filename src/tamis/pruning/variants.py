"""Where in a network is pruned: where a filter is kept, before it is sent, or both?

    post-pruning   a broker forwards what it received, and prunes what it keeps, by what it knows itself
    pre-pruning    a broker keeps what it received, and prunes what it sends, as far as each neighbour wants
    combined       both

Filters of a broker's own clients are never touched, so what a client gets is exact. Nothing is lost on the way either,
because a pruned filter matches more.

Source: Bittner 2008, section 6.5 (docs/bibliography.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tamis.language.parser import parse
from tamis.pruning.bulk import prune_many
from tamis.pruning.errors import DuplicateEntryError, UnknownEntryError
from tamis.pruning.measures import measure_of
from tamis.pruning.pruner import Pruner

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from tamis.language.expressions import Expression
    from tamis.pruning.goals import Goal
    from tamis.pruning.measures import Measure
    from tamis.selectivity.estimates import Share


class PrunedTable:
    """The filters that a broker knows: its own clients' as they are, and others' as far as they are pruned.

    `forwarded` is how far a filter is pruned before it is sent, to each neighbour alike or to some of them; without it
    filters are sent as they came. What is kept is pruned by `prune`, or not at all.

    >>> from tamis.pruning import Goal
    >>> table = PrunedTable(lambda predicate: 0.5, forwarded={"north": Goal(count=1)})
    >>> sent = table.receive("s1", "a = 1 AND b = 2 AND c = 3", neighbours=["north", "south"])
    >>> [(neighbour, str(each)) for neighbour, each in sent.items()]
    [('north', 'b = 2 AND c = 3'), ('south', 'a = 1 AND b = 2 AND c = 3')]
    """

    def __init__(
        self,
        share: Share,
        measure: str | Measure = "accuracy",
        *,
        forwarded: Goal | Mapping[Any, Goal] | None = None,
    ) -> None:
        self._share = share
        self._measure = measure_of(measure)
        self._forwarded = forwarded
        self._local: dict[Hashable, Expression] = {}
        self._others = Pruner(share, self._measure)

    def __len__(self) -> int:
        return len(self._local) + len(self._others)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._local or key in self._others

    def __iter__(self) -> Iterator[Any]:
        yield from self._local
        yield from self._others

    @property
    def others(self) -> Pruner:
        """The filters of others, with all that is known of them."""
        return self._others

    def receive(
        self,
        key: Hashable,
        given: str | Expression,
        *,
        neighbours: Iterable[Any] = (),
        is_local: bool = False,
        distance: float = 1.0,
    ) -> dict[Any, Expression]:
        """Keep a filter, of a client of one's own or of somebody so many hops away; return what goes to whom."""
        if key in self:
            raise DuplicateEntryError(key)
        expression = parse(given) if isinstance(given, str) else given
        if is_local:
            self._local[key] = expression
        else:
            self._others.add(key, expression, distance=distance)
        return {neighbour: self.version_for(neighbour, expression, distance) for neighbour in neighbours}

    def version_for(self, neighbour: Any, expression: Expression, distance: float = 1.0) -> Expression:
        """Return a filter as it is sent to a neighbour."""
        forwarded = self._forwarded
        goal = forwarded.get(neighbour) if isinstance(forwarded, Mapping) else forwarded
        if goal is None:
            return expression
        return prune_many([expression], self._share, goal, self._measure, distances=[distance])[0]

    def prune(self, goal: Goal) -> list[Any]:
        """Prune what is kept of others; return the keys of what changed."""
        return self._others.prune(
            count=goal.count,
            share=goal.share,
            threshold=goal.threshold,
            reduction=goal.reduction,
            memory_bytes=goal.memory_bytes,
        )

    def expression(self, key: Hashable) -> Expression:
        """Return a filter as it is kept."""
        found = self._local.get(key)
        return found if found is not None else self._others.expression(key)

    def remove(self, key: Hashable) -> None:
        """Forget a filter, whatever became of it."""
        if self._local.pop(key, None) is None:
            if key not in self._others:
                raise UnknownEntryError(key)
            self._others.remove(key)
