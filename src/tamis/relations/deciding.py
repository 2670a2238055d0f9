"""Is there an event that matches all of these filters and none of those? A decision procedure in stages.

Every relation is this question. It is looked at three times, ever more thoroughly: by the formulas themselves, by a
short search, and by a solver within a budget. "No" is always proven, because formulas know at least what events can
do. "Yes" is proven if the question is about attributes alone, or if an event was found for which the reference meaning
agrees. Otherwise functions and patterns stand in the way: the solver's answer is tried out, and where it is
wrong for the values it names, that is a lemma for the next attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tamis.language.expressions import Attribute
from tamis.language.meaning import truth
from tamis.language.ranges.lines import ARRAY, RECORD, first_value, next_cut
from tamis.language.ranges.value_sets import is_member
from tamis.relations.formulas import NEVER, Fact, Formula, Within, leaves
from tamis.relations.links import links
from tamis.relations.monotony import monotone_calls, monotony
from tamis.relations.satisfiability import Model, SatProblem, TooManyClausesError
from tamis.relations.search import MOST_STEPS, search
from tamis.relations.witnesses import Event, completed, guesses, is_witness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.language.ranges.value_sets import Values
    from tamis.relations.domains import TermAxis
    from tamis.relations.forms import Box, Context, Form
    from tamis.relations.search import Facts

DEFAULT_BUDGET = 10_000
"""How many conflicts the solver may have: tens of milliseconds, on most questions."""
_MOST_LESSONS = 150
_MOST_PUT_ASIDE = 8
"""How often the solver is corrected, and how often a model is put aside that was neither shown nor refuted."""
MOST_NODES = 300_000
"""How many nodes of expressions may be evaluated, for all guesses of one question."""
_FEWEST_GUESSES = 10
"""Of a question so large that fewer could be tried, none is: they would seldom be right, and take as long as many."""
_AXIS_NODES = 50
"""Finding values to guess for an attribute takes as long as evaluating so many nodes."""


@dataclass(slots=True)
class Decision:
    """Whether there is such an event, whether that is proven, by what, and what the event looks like."""

    is_possible: bool
    is_proven: bool
    by: str
    box: Box | None = None
    """Values for the terms, all of which will do; of what is not proven, as far as formulas can tell."""
    event: Event | None = None


class _Effort:
    """What may still be done for one question beside the solver, in nodes evaluated."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MOST_NODES

    def take(self, nodes: int) -> bool:
        """Take so many nodes from what is left; return whether they were there."""
        if nodes > self.left:
            return False
        self.left -= nodes
        return True


def ask(
    matching: Sequence[Form],
    missing: Sequence[Form],
    context: Context,
    budget: int = DEFAULT_BUDGET,
    most_steps: int = MOST_STEPS,
) -> Decision:
    """Ask for an event that matches all of the ones and none of the others.

    >>> from tamis.relations.forms import context_of
    >>> context = context_of(None)
    >>> answer = ask([context.form("a > 5")], [context.form("a > 7")], context)
    >>> answer.is_possible, answer.is_proven, answer.by
    (True, True, 'search')
    """
    formulas = [form.formula for form in matching] + [form.opposite for form in missing]
    if NEVER in formulas:
        return Decision(False, True, "equality")
    forms = (*matching, *missing)
    formulas += _links(forms, context)
    result = search(formulas, most_steps)
    if result.is_possible is False:
        return Decision(False, True, "search")
    is_plain = all(form.is_plain for form in forms)
    if result.is_possible and is_plain:
        return Decision(True, True, "search", result.box)
    effort = _Effort()
    if result.is_possible:
        event = _guessed(result.box, result.facts, matching, missing, context, effort)
        if event is not None:
            return Decision(True, True, "search", event=event)
    try:
        with SatProblem(formulas) as question:
            return _solved(question, matching, missing, context, budget, is_plain, effort)
    except TooManyClausesError:
        return Decision(True, False, "budget")


def _links(forms: Sequence[Form], context: Context) -> list[Formula]:
    axes = dict.fromkeys(axis for form in forms for axis in form.axes)
    facts = {fact for form in forms for fact in form.facts}
    schema = context.schema
    has_types = schema is not None and bool(schema.mandatory_by_type)
    if not facts and not has_types and all(axis.is_plain and not axis.is_nested for axis in axes):
        return []
    paths = frozenset[tuple[str, ...]]().union(*(form.paths for form in forms))
    sets: dict[TermAxis, dict[Values, None]] = {}
    boxes: list[Box] = []
    for form in forms:
        for leaf in leaves(form.formula):
            if isinstance(leaf, Within):
                sets.setdefault(leaf.axis, {})[leaf.values] = None
        boxes += form.clauses[0]
    formulas = links(axes, facts, paths, schema, context.axis, sets, boxes)
    if calls := monotone_calls(axes):
        formulas += monotony(calls, [form.expression for form in forms], context.axis)
    return formulas


def _solved(
    question: SatProblem,
    matching: Sequence[Form],
    missing: Sequence[Form],
    context: Context,
    budget: int,
    is_plain: bool,
    effort: _Effort,
) -> Decision:
    aside: Box | None = None
    aside_count = 0
    for _ in range(_MOST_LESSONS):
        left = budget - question.spent
        model = question.solve(left) if left > 0 else None
        if model is None:
            return Decision(True, False, "budget", aside)
        if model is False:
            # What was put aside might still be possible.
            return Decision(aside is not None, aside is None, "solver", aside)
        assert isinstance(model, Model)
        box: Box = dict(model.stretches)
        if is_plain:
            return Decision(True, True, "solver", box)
        event = _guessed(box, model.facts, matching, missing, context, effort)
        if event is not None:
            return Decision(True, True, "solver", event=event)
        if not effort.take(len(model.stretches) + len(model.facts)):
            return Decision(True, False, "budget", aside)
        if not _learn(question, model, context):
            aside = box
            aside_count += 1
            if aside_count > _MOST_PUT_ASIDE:
                break
            _put_aside(question, model)
    return Decision(True, False, "solver", aside)


def _guessed(
    box: Box, facts: Facts, matching: Sequence[Form], missing: Sequence[Form], context: Context, effort: _Effort
) -> Event | None:
    """Return an event that the reference meaning accepts, with values of a box; None if no guess was right."""
    forms = (*matching, *missing)
    nodes = sum(form.size for form in forms)
    paths = {path for axis in box for path in axis.paths}.union(*(form.paths for form in forms))
    if nodes * _FEWEST_GUESSES > MOST_NODES or not effort.take(nodes + _AXIS_NODES * len(paths)):
        return None  # before anything is made for each of them
    axes = dict.fromkeys([*(axis for form in forms for axis in form.axes), *box])
    axes.update(dict.fromkeys(context.axis(Attribute(path)) for path in sorted(paths)))
    wanted, unwanted = [form.expression for form in matching], [form.expression for form in missing]
    loose = frozenset[tuple[str, ...]]().union(
        *(axis.paths for axis in axes if not axis.is_plain), *(context.paths_of(predicate) for predicate, _ in facts)
    )
    for event in guesses(box, facts, axes, loose, context.schema):
        if not effort.take(nodes):
            return None
        if is_witness(event, wanted, unwanted, context.schema):
            return event
    return None


# -- Lemmas


def _learn(question: SatProblem, model: Model, context: Context) -> bool:
    """Compute what the model assumed, where it names all the values needed; tell the solver where it was wrong."""
    fixed: dict[tuple[str, ...], tuple[Within, Any]] = {}
    for axis, (low, high) in model.stretches.items():
        if isinstance(axis.term, Attribute) and low[0] not in (ARRAY, RECORD) and next_cut(low, axis.line) == high:
            fixed[axis.term.path] = (Within(axis, (low, high)), first_value(low, high, axis.line))
    event = completed({path: known for path, (_, known) in fixed.items()}, None)
    is_new = False
    for axis, stretch in model.stretches.items():
        if axis.is_plain or not axis.paths <= fixed.keys():
            continue
        cut = axis.cut_in(event, context.schema)
        if is_member(cut, stretch) or not is_member(cut, axis.values):
            continue
        premises = [_elsewhere(fixed[path][0]) for path in axis.paths]
        question.add([leaf for premise in premises for leaf in premise] + [Within(axis, question.around(axis, cut))])
        is_new = True
    for (predicate, wanted), is_so in model.facts.items():
        paths = context.paths_of(predicate)
        if paths <= fixed.keys():
            is_really_so = truth(predicate, event, context.schema) is wanted
            if is_really_so is not is_so:
                premises = [_elsewhere(fixed[path][0]) for path in paths]
                question.add([leaf for each in premises for leaf in each] + [Fact(predicate, wanted, is_really_so)])
                is_new = True
    return is_new


def _elsewhere(place: Within) -> list[Within | Fact]:
    """The value is not here: below, or above."""
    axis, (low, high) = place.axis, place.values
    below: list[Within | Fact] = [Within(axis, (axis.values[0], low))] if axis.values[0] < low else []
    return below + ([Within(axis, (high, axis.values[-1]))] if high < axis.values[-1] else [])


def _put_aside(question: SatProblem, model: Model) -> None:
    """Look no more at this combination of functions and facts: neither shown nor refuted."""
    leaves: list[Within | Fact] = [Fact(*key, not is_so) for key, is_so in model.facts.items()]
    for axis, (low, high) in model.stretches.items():
        if not axis.is_plain:
            leaves += _elsewhere(Within(axis, (low, high)))
    question.add(leaves)
