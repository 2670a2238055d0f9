"""How does a neighbour know one filter for several, while they come and go? Mergers, maintained incrementally.

A *cluster* is a filter that the neighbour knows, and the filters that it stands for. Two things hold, always: every
filter lies within its clusters, so nothing is lost; and, where merging is perfect, every cluster lies within its
filters, so nothing is told that nobody wants.

Filters from neighbours may be mergers themselves, and partly in vain; what a cluster matches in vain counts that in. A
cluster that becomes more imperfect than the neighbour was told is told anew, with some room for more.

A newcomer that lies within a cluster joins it. Else it takes over the clusters that lie within it, and looks for a
partner: a cluster with which it merges, and what becomes of both looks again.

When a filter leaves, the others of its cluster are asked what they have of its place. If they have all of it, nothing
changes. If not, what is lost is cut off: a stretch of one term, beside which the cluster stays as it was. Filters that
reach into the lost stretch keep their place there, by a narrower filter of their own, which looks for partners. So a
departure costs what lies around it, not what the cluster has gathered. Only a cluster from which nothing can be
cut is taken apart, and all that remains of it is merged again.

Source: mergers, and that they have to be taken back, are Mühl et al. 2002, section 2.6 (docs/bibliography.md).
Departs: how is ours; no rule is given there.
"""

from __future__ import annotations

from itertools import islice
from math import ceil, inf
from typing import TYPE_CHECKING

from tamis.language.expressions import Attribute, postorder
from tamis.language.ranges.value_sets import Values, difference, intersection, is_disjoint, is_subset
from tamis.relations.imperfection import shares_of_two
from tamis.relations.merging import mergers
from tamis.relations.merging_index import MergingIndex
from tamis.relations.parts import Conjunct, part_of
from tamis.relations.relations import covers_forms
from tamis.routing.base import Source, Summary
from tamis.routing.coverage import Coverage
from tamis.routing.members import Members
from tamis.routing.sources import FilterSources
from tamis.routing.waste import Waste

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from tamis.language.expressions import Expression
    from tamis.relations.base import Merger
    from tamis.relations.domains import TermAxis
    from tamis.relations.forms import Box, Form
    from tamis.routing.comparisons import Comparisons

    Nearly = Callable[[Expression, Expression], Merger | None]

_TRIED = 8
"""With so many of the latest filters an imperfect merger is tried."""
_COMPARED_ONE_BY_ONE = 128
"""So many mergers of a link are compared one by one: each link has its own, and a pool of all would be far larger."""
_STEPS = 4
"""In so many steps a merger that loses filters uses up its budget: each is told, and lasts for several departures."""
_LONGEST = 8_192
"""Filters that have more characters together, or about that, stay two: one is told again when one more comes."""


class Member:
    """A filter that somebody wants: what it is, whose it is, and the clusters that it stands in."""

    __slots__ = ("clusters", "form", "hull", "is_spread", "part", "sources")

    def __init__(self, form: Form) -> None:
        self.form = form
        self.hull = form.hull
        self.part = part_of(form, 0)
        self.sources = FilterSources()
        self.clusters: list[MergedFilters] = []
        self.is_spread = False
        """Did it ever stand in several clusters?"""


class MergedFilters:
    """A filter that the neighbour knows, and those that it stands for."""

    __slots__ = ("imperfect", "imperfection", "key", "members", "part")

    def __init__(self, member: Member | None = None) -> None:
        self.key = -1
        self.part = Conjunct({}, {}, ())
        self.imperfection = 0.0
        """The share of what it matches that nobody may want, at most."""
        self.members: dict[Member, None] = {}
        self.imperfect: dict[Member, None] = {}
        """Those of its filters that are partly in vain themselves."""
        if member is not None:
            self.join(member)
            self.imperfection = member.sources.imperfection

    def join(self, member: Member) -> None:
        """Stand for one more filter."""
        if member not in self.members:
            self.members[member] = None
            member.clusters.append(self)
            if member.sources.imperfection:
                self.imperfect[member] = None

    def leave(self, member: Member) -> None:
        """Stand for one less."""
        del self.members[member]
        self.imperfect.pop(member, None)
        member.clusters.remove(self)


class MergingSummary(Summary):
    """Clusters of the filters of everybody else.

    `nearly` merges two filters imperfectly; without it all mergers are perfect.
    """

    def __init__(
        self,
        comparisons: Comparisons,
        budget: float = 0.0,
        nearly: Nearly | None = None,
        share: Callable[[Expression], float] | None = None,
    ) -> None:
        super().__init__()
        self._comparisons = comparisons
        self._waste = Waste(comparisons.context, share)
        self._context = comparisons.context
        self._budget = budget
        self._nearly = nearly
        self._member_of: dict[Source, Member] = {}
        self._by_formula: dict[Hashable, Member] = {}
        self._members: Members[Member] = Members()
        self._spread: Members[Member] = Members()
        self._clusters: dict[int, MergedFilters] = {}
        self._coverage = Coverage(comparisons, _COMPARED_ONE_BY_ONE)
        self._partners = MergingIndex(context=self._context)
        self._alike: dict[frozenset[Attribute], dict[int, None]] = {}

    def __contains__(self, source: Source) -> bool:
        return source in self._member_of

    def add(self, source: Source, expression: Expression, imperfection: float = 0.0) -> None:
        assert source not in self._member_of
        form = self._context.form(expression)
        member = self._by_formula.get(form.formula)
        if member is not None:
            member.sources.add(source, imperfection)
            if not member.sources.imperfection:
                for cluster in member.clusters:
                    cluster.imperfect.pop(member, None)
        else:
            member = self._by_formula[form.formula] = Member(form)
            member.sources.add(source, imperfection)
            around = self._around(form)
            self._members.add(member, member.hull)
            for cluster in around:
                cluster.join(member)
            self._note_spread(member)
            if not around:
                self._place(MergedFilters(member), expression, is_apart=True)
        self._member_of[source] = member

    def remove(self, source: Source) -> None:
        member = self._member_of.pop(source)
        before = member.sources.imperfection
        member.sources.remove(source)
        if member.sources:
            if member.sources.imperfection > before:
                self._risen(member, before)
            return
        del self._by_formula[member.form.formula]
        self._members.remove(member, member.hull)
        if member.is_spread:
            self._spread.remove(member, member.hull)
        while member.clusters:
            cluster = member.clusters[-1]
            cluster.leave(member)
            self._shrink(cluster, member)

    def close(self) -> None:
        self._coverage.clear()

    def _around(self, form: Form) -> list[MergedFilters]:
        """Return clusters that cover a newcomer: one, or the several in which a member stands that covers it."""
        key = self._coverage.covering(self._comparisons.known(form.expression))
        if key is not None:
            return [self._clusters[key]]
        for member in self._spread.meeting(form.hull):
            if len(member.clusters) > 1 and covers_forms(member.form, form).holds:
                return list(member.clusters)
        return []

    def _note_spread(self, member: Member) -> None:
        """File a member that stands in several clusters where newcomers find it; it stays there when it stands in one.

        All members whose place meets a newcomer's may be thousands.
        """
        if len(member.clusters) > 1 and not member.is_spread:
            member.is_spread = True
            self._spread.add(member, member.hull)

    # -- A place for a cluster

    def _place(self, cluster: MergedFilters, expression: Expression, *, is_apart: bool = False) -> None:
        """Let a cluster that the neighbour does not know become part of one, or known by this expression.

        `is_apart` says that no other is known to be around it.
        """
        while True:
            known = self._comparisons.known(expression)
            around = None if is_apart else self._coverage.covering(known)
            is_apart = False
            if around is not None:
                self._united(self._clusters[around], cluster)
                return
            for within in self._coverage.covered_by(known):
                imperfection = cluster.imperfection
                cluster = self._united(self._taken(within), cluster)
                cluster.imperfection = imperfection
            merger = self._partner(expression, cluster.imperfection)
            if merger is None:
                break
            partner, expression, imperfection = merger
            cluster = self._united(self._taken(partner), cluster)
            cluster.imperfection = imperfection
        self._tell(cluster, expression, cluster.imperfection)

    def _tell(self, cluster: MergedFilters, expression: Expression, imperfection: float) -> None:
        """Let the neighbour know a cluster by an expression, and how imperfect it is at most."""
        cluster.key = self._put(expression, min(1.0, imperfection))
        cluster.part = part_of(self._context.form(expression), 0)
        self._clusters[cluster.key] = cluster
        self._coverage.add(cluster.key, self._comparisons.known(expression))
        self._partners.add(cluster.key, expression)
        if self._nearly is not None:
            self._alike.setdefault(_attributes(expression), {})[cluster.key] = None

    def _taken(self, key: int) -> MergedFilters:
        """Take a cluster back from the neighbour."""
        expression = self._entries[key]
        self._coverage.remove(key)
        self._partners.remove(key)
        if self._nearly is not None:
            attributes = _attributes(expression)
            del self._alike[attributes][key]
            if not self._alike[attributes]:
                del self._alike[attributes]
        self._drop(key)
        return self._clusters.pop(key)

    def _united(self, one: MergedFilters, two: MergedFilters) -> MergedFilters:
        """Return the one that has more members, or that the neighbour knows, with the members of both."""
        if len(two.members) > len(one.members) and one.key not in self._clusters:
            one, two = two, one
        for member in list(two.members):
            two.leave(member)
            one.join(member)
        return one

    def _partner(self, expression: Expression, imperfection: float) -> tuple[int, Expression, float] | None:
        """Return a cluster, what becomes of it and the expression, and how imperfect that is; None if there is none."""
        form = self._context.form(expression)
        for key in self._partners.candidates(expression):
            other = self._context.form(self._entries[key])
            merged = None if self._is_too_long(other, form) else self._comparisons.united(other, form)
            if merged is not None:
                together = self._together(key, form, imperfection, merged, 0.0)
                # A perfect merger adds nothing; but where its parts overlap, their shares may add up to more.
                if self._nearly is None or together <= max(
                    self._budget, imperfection, self._clusters[key].imperfection
                ):
                    return key, merged, min(1.0, together)
        return None if self._nearly is None else self._nearest(expression, imperfection, self._nearly)

    def _nearest(
        self, expression: Expression, imperfection: float, nearly: Nearly
    ) -> tuple[int, Expression, float] | None:
        """Return a cluster that merges with the expression within the budget, by first sight the one that fits best."""
        form = self._context.form(expression)
        sights = [
            (self._sight(key, form, imperfection), key)
            for key in islice(reversed(self._alike.get(_attributes(expression), {})), _TRIED)
            if not self._is_too_long(self._context.form(self._entries[key]), form)
        ]
        for sight, key in sorted(sights):
            merged = nearly(self._entries[key], expression) if sight <= self._budget else None
            if merged is not None:
                together = self._together(key, form, imperfection, merged.expression, merged.imperfection)
                if together <= self._budget:
                    return key, merged.expression, together
        return None

    def _is_too_long(self, one: Form, two: Form) -> bool:
        """Would one filter for both take too long to tell, again and again?"""
        return self._comparisons.length(one) + self._comparisons.length(two) > _LONGEST

    def _together(self, key: int, form: Form, imperfection: float, merger: Expression, beyond: float) -> float:
        """Return how imperfect a merger of a cluster and another is at most, of which a share is beyond both."""
        cluster = self._clusters[key]
        if not cluster.imperfection and not imperfection:
            return beyond
        whole = part_of(self._context.form(merger), 0)
        mine = cluster.imperfection * self._waste.share(cluster.part, whole) if cluster.imperfection else 0.0
        other = imperfection * self._waste.share(part_of(form, 0), whole) if imperfection else 0.0
        return beyond + mine + other

    def _sight(self, key: int, form: Form, imperfection: float) -> float:
        """Return how imperfect a merger of a cluster and another is, at first sight; 0 if nothing is seen."""
        one, two = self._context.form(self._entries[key]).box, form.box
        if one is None or two is None:
            return 0.0
        first, second, both = shares_of_two(one, two)
        beyond = max(0.0, 1 - (first + second - both))
        return beyond + first * self._clusters[key].imperfection + second * imperfection

    # -- Departures

    def _shrink(self, cluster: MergedFilters, gone: Member) -> None:
        """Let a cluster stand for no more than its members do, one of which is gone."""
        if not cluster.members:
            self._taken(cluster.key)
            return
        lost = self._lost(cluster, gone)
        inherited = self._inherited(cluster, gone)
        if lost is None or self._spend_budget(cluster, lost):
            self._become(cluster, cluster.imperfection + inherited)
        elif inherited or not any(self._cut(cluster, *each) for each in _smallest_first(lost, cluster)):
            self._take_apart(cluster)

    def _take_apart(self, cluster: MergedFilters) -> None:
        """Take a cluster back, and find a place for each of its filters anew; those that are perfect merge at once."""
        self._taken(cluster.key)
        members, imperfect = list(cluster.members), list(cluster.imperfect)
        for member in members:
            cluster.leave(member)
        perfect = [member for member in members if not member.sources.imperfection]
        for merger in mergers([member.form.expression for member in perfect], self._context.schema):
            anew = MergedFilters()
            for number in merger.members:
                anew.join(perfect[number])
            self._place(anew, merger.expression)
        for member in imperfect:
            self._place(MergedFilters(member), member.form.expression)

    # -- What is matched in vain

    def _inherited(self, cluster: MergedFilters, gone: Member) -> float:
        """Return how much more of a cluster may be in vain, because those do not want all of it who have a place still.

        It is no more than the place of the filter that is gone, and no more than all of what they match in vain.
        """
        if not cluster.imperfect:
            return 0.0
        theirs = sum(
            member.sources.imperfection * self._waste.share(member.part, cluster.part) for member in cluster.imperfect
        )
        return min(theirs, self._waste.share(gone.part, cluster.part))

    def _risen(self, member: Member, before: float) -> None:
        """Take note that a filter is more in vain than it was, because those have left who wanted more of it."""
        more = member.sources.imperfection - before
        for cluster in list(member.clusters):
            if member not in cluster.members or self._clusters.get(cluster.key) is not cluster:
                continue  # another one was taken apart, and this became part of what came of it
            cluster.imperfect[member] = None
            self._become(cluster, cluster.imperfection + more * self._waste.share(member.part, cluster.part))

    def _become(self, cluster: MergedFilters, imperfection: float) -> None:
        """Let a cluster be more imperfect than before, if the budget allows it, and tell the neighbour if it must know.

        A filter that stands alone is as imperfect as it was when it came: there is nothing to take apart.
        """
        if len(cluster.members) == 1 and self._is_whole(cluster):
            imperfection = next(iter(cluster.members)).sources.imperfection
        elif self._nearly is not None and imperfection > max(self._budget, cluster.imperfection):
            self._take_apart(cluster)
            return
        cluster.imperfection = imperfection
        if imperfection > self._imperfections.get(cluster.key, 0.0):
            step = self._budget / _STEPS
            expression, rounded = self._entries[cluster.key], ceil(imperfection / step) * step if step else imperfection
            self._tell(self._taken(cluster.key), expression, min(rounded, max(self._budget, imperfection)))

    def _is_whole(self, cluster: MergedFilters) -> bool:
        """Is a cluster of one filter that filter?"""
        (member,) = cluster.members
        return self._context.form(self._entries[cluster.key]).formula == member.form.formula

    def _lost(self, cluster: MergedFilters, gone: Member) -> Box | None:
        """Return, for each term, values to which all is confined that a cluster has lost; None if nothing is lost.

        A member that has all of the place but for one term has a slice of it; slices of the same term add up.
        """
        box, rest = cluster.part.box, cluster.part.rest
        place = {axis: intersection(values, gone.hull.get(axis, axis.values)) for axis, values in box.items()}
        place |= {axis: values for axis, values in gone.hull.items() if axis not in box}
        if not all(place.values()):
            return None  # it had no part in the cluster
        lost = dict(place)
        is_box = gone.form.box is not None
        for member in reversed(self._members.meeting(place)):  # what takes a place came last
            if cluster not in member.clusters:
                continue
            if not is_box and covers_forms(member.form, gone.form).holds:
                return None
            part = member.part
            if not all(condition in rest for condition in part.rest):
                continue
            narrow = [axis for axis, values in part.box.items() if not is_subset(place.get(axis, axis.values), values)]
            if not narrow:
                return None
            if len(narrow) == 1 and narrow[0] in lost:
                lost[narrow[0]] = difference(lost[narrow[0]], part.box[narrow[0]])
                if not lost[narrow[0]]:
                    return None
        return lost

    def _spend_budget(self, cluster: MergedFilters, lost: Box) -> bool:
        """Let what is lost stay told, if the budget allows it, and spend that much of it; return whether it did."""
        if self._nearly is None:
            return False
        box, rest = cluster.part.box, cluster.part.rest
        gone = Conjunct({axis: lost[axis] for axis in box}, rest, ())
        imperfection = cluster.imperfection + self._waste.share(gone, cluster.part)
        if imperfection > self._budget:
            return False
        cluster.imperfection = imperfection
        return True

    def _cut(self, cluster: MergedFilters, axis: TermAxis, lost: Values) -> bool:
        """Take some values of a term from a cluster; return whether that can be done."""
        kept = difference(cluster.part.box[axis], lost)
        narrower = Conjunct({**cluster.part.box, axis: kept}, cluster.part.rest, ()) if kept else None
        expression = None if narrower is None else narrower.written(self._context)
        if narrower is None or expression is None:
            return False
        imperfection = cluster.imperfection
        if imperfection:  # what is matched in vain may all lie in what is left
            left = self._waste.share(narrower, cluster.part)
            imperfection = imperfection / left if left else inf
        if imperfection > self._budget:
            return False
        reaching = [
            member
            for member in self._members.meeting({axis: lost})
            if cluster in member.clusters and not is_disjoint(member.hull.get(axis, axis.values), lost)
        ]
        self._taken(cluster.key)
        cluster.imperfection = imperfection
        apart: dict[Expression, MergedFilters] = {}
        for member in reaching:
            if is_subset(member.hull.get(axis, axis.values), lost):
                cluster.leave(member)
            piece = apart.setdefault(self._clipped(member, axis, lost), MergedFilters())
            piece.join(member)
            piece.imperfection = max(piece.imperfection, member.sources.imperfection)
            self._note_spread(member)
        if cluster.members:
            self._place(cluster, expression)
        for clipped, each in apart.items():
            self._place(each, clipped)
        return True

    def _clipped(self, member: Member, axis: TermAxis, values: Values) -> Expression:
        """Return what a filter wants of some values; the filter itself if that cannot be said."""
        box = member.form.box
        if box is None or axis not in box or is_subset(box[axis], values) or member.sources.imperfection:
            return member.form.expression  # what is in vain of a filter may all lie in a piece of it
        part = Conjunct({**box, axis: intersection(box[axis], values)}, {}, ())
        written = part.written(self._context)
        return member.form.expression if written is None else written


def _smallest_first(lost: Box, cluster: MergedFilters) -> list[tuple[TermAxis, Values]]:
    """Return lost values of the cluster's terms, first where they are a small part of what the cluster has."""
    box = cluster.part.box
    return sorted(((axis, lost[axis]) for axis in box), key=lambda each: len(each[1]) / len(box[each[0]]))


def _attributes(expression: Expression) -> frozenset[Attribute]:
    return frozenset(node for node in postorder(expression) if isinstance(node, Attribute))
