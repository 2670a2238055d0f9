"""What is seen of two filters without searching? Sufficient syntactic tests.

Filters that are boxes (one set of values for each term, all of which must be met) are compared set by set, and that
decides: this is the ground of nearly all subscriptions. Other filters are judged by their hulls, by events that are
known to match one of them, and by their structure, where that suffices.

Source: Mühl et al. 2002, section 3.4 (docs/bibliography.md): propositions 1 and 2 with corollary 1 for covering,
  3 for identity, 4 for overlap.
Departs: each side may have any number of constraints on an attribute, because they are one set here. The
  propositions' converses need attributes that are independent of one another; where a schema or a nested record ties
  them, only what is always sound is answered. The proof of proposition 2 picks its value from the covered filter's
  set, which is the one that must not be empty.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tamis.language.ranges.value_sets import is_disjoint, is_member, is_subset
from tamis.relations.base import Verdict
from tamis.relations.confinement import confined, interval_of, values_between
from tamis.relations.forms import are_independent
from tamis.relations.formulas import ALWAYS, NEVER, Conjunction, Constant, Disjunction, Formula, Threshold, Within

if TYPE_CHECKING:
    from tamis.language.ranges.value_sets import Values
    from tamis.relations.domains import TermAxis
    from tamis.relations.forms import Box, Corner, Form

_DEEPEST = 40
_HEAVIEST = 2_000
"""What is deeper, or has more nodes as a tree, is not walked through by recursion."""
_MOST_STEPS = 150
_ALL = Verdict(True, True, "propositions")
_NOT_ALL = Verdict(False, True, "propositions")


def covers(general: Form, special: Form) -> Verdict | None:
    """Does the first match all that the second matches? None if that is not seen at once."""
    if special.is_never or general.formula == special.formula:
        return Verdict(True, True, "equality")
    box = special.box
    if box is not None:
        for axis, values in (general.hull if general.box is None else general.box).items():
            if not is_subset(box[axis] if axis in box else special.hull.get(axis, axis.values), values):
                if not axis.is_plain and _is_confined(box, axis, values):
                    continue
                # Some value of the special filter is none that the general one takes: can an event have it?
                return _NOT_ALL if axis.is_plain and special.is_plain and _is_free(axis, special) else None
        if general.box is not None:
            return _ALL
    if _conditions(general.formula) <= _conditions(special.formula):
        return Verdict(True, True, "structure")
    if _alternatives(special.formula) <= _alternatives(general.formula):
        return Verdict(True, True, "structure")
    if not (_is_small(general.formula) and _is_small(special.formula)):
        return None
    if general.is_plain and special.is_plain and _are_independent(general, special):
        for corner in special.corners:
            if not _holds_at(general.formula, corner):
                return Verdict(False, True, "witness")
    return Verdict(True, True, "structure") if _StructureSearch().search(general.formula, special.formula) else None


def overlaps(one: Form, two: Form) -> Verdict | None:
    """Does an event match both? None if that is not seen at once."""
    if one.is_never or two.is_never:
        return Verdict(False, True, "equality")
    hull, other = (one.hull, two.hull) if len(one.hull) <= len(two.hull) else (two.hull, one.hull)
    for axis, values in hull.items():
        theirs = other.get(axis)
        if theirs is not None and is_disjoint(values, theirs):
            return Verdict(False, True, "propositions")
    if not (one.is_plain and two.is_plain and _are_independent(one, two)):
        return None
    if one.box is not None and two.box is not None:
        return Verdict(True, True, "propositions")
    for some, others in ((one, two), (two, one)):
        if _is_small(others.formula) and any(_holds_at(others.formula, corner) for corner in some.corners):
            return Verdict(True, True, "witness")
    return None


def identical(one: Form, two: Form) -> Verdict | None:
    """Do both match the same? None if that is not seen at once."""
    if one.formula == two.formula:
        return Verdict(True, True, "equality")
    are_boxes = all(form.is_never or (form.box is not None and form.is_plain) for form in (one, two))
    return Verdict(False, True, "propositions") if are_boxes and _are_independent(one, two) else None


def _is_confined(box: Box, axis: TermAxis, values: Values) -> bool:
    """Does what a box says of one term confine another to some values? A circle lies in a larger one."""
    for other, known in box.items():
        interval = None if other.is_plain or other.is_order else interval_of(known, other.line)
        if interval is not None:
            confines = confined(other.term, axis.term, interval)
            if confines is not None and is_subset(values_between([confines], axis.line), values):
                return True
    return False


def _are_independent(one: Form, two: Form) -> bool:
    return (one.is_flat and two.is_flat) or are_independent(one.axes | two.axes, one.context.schema)


def _is_free(axis: TermAxis, form: Form) -> bool:
    """Can an attribute have each of its values, and so can each of a filter's, whatever the others have?"""
    is_seen = form.is_flat and not axis.is_nested
    return is_seen or are_independent({*form.axes, axis}, form.context.schema)


def _is_small(formula: Formula) -> bool:
    return formula.depth <= _DEEPEST and formula.weight <= _HEAVIEST


def _conditions(formula: Formula) -> set[Formula]:
    return set(formula.children) if isinstance(formula, Conjunction) else {formula}


def _alternatives(formula: Formula) -> set[Formula]:
    return set(formula.children) if isinstance(formula, Disjunction) else {formula}


def _holds_at(formula: Formula, corner: Corner) -> bool:
    """Does a formula of attributes alone hold at a place? It is small, so this may recurse."""
    if isinstance(formula, Within):
        axis = formula.axis
        return is_member(corner.get(axis, axis.values[0]), formula.values)
    if isinstance(formula, Conjunction):
        return all(_holds_at(child, corner) for child in formula.children)
    if isinstance(formula, Disjunction):
        return any(_holds_at(child, corner) for child in formula.children)
    if isinstance(formula, Threshold):
        return sum(_holds_at(child, corner) for child in formula.children) >= formula.count
    assert isinstance(formula, Constant)
    return formula.is_true


class _StructureSearch:
    """A test that follows the structure of two formulas: sound, though it does not see everything.

    An OR covers what one of its parts covers, an AND what all of them cover; and what covers all parts of an OR, or one
    part of an AND, covers the whole.
    """

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = _MOST_STEPS

    def search(self, general: Formula, special: Formula) -> bool:
        """Take one step; return whether the general formula is seen to hold wherever the special one does."""
        self._left -= 1
        if self._left < 0:
            return False
        if general == special or general is ALWAYS or special is NEVER:
            return True
        if isinstance(general, Within) and isinstance(special, Within):
            return general.axis is special.axis and is_subset(special.values, general.values)
        if isinstance(general, Threshold) and isinstance(special, Threshold):
            return _counts_enough(general, special)
        if isinstance(special, Disjunction):
            return all(self.search(general, child) for child in special.children)
        if isinstance(general, Conjunction):
            return all(self.search(child, special) for child in general.children)
        if isinstance(general, Disjunction) and any(self.search(child, special) for child in general.children):
            return True
        return isinstance(special, Conjunction) and any(self.search(general, child) for child in special.children)


def _counts_enough(general: Threshold, special: Threshold) -> bool:
    """Do enough operands hold for one threshold if they do for the other? Operands that both have count for both."""
    left = Counter(special.children)
    shared = sum((Counter(general.children) & left).values())
    return special.count - (len(special.children) - shared) >= general.count
