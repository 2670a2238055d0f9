"""How fast are filters compared, one pair at a time and one against many?

    relations         verdicts per second by kind of filter, and which stage decides
    solvers           the same questions to several solvers, without the quick tests before them
    hard_relations    questions made to be hard: what they cost, and that the budget ends them
    worst_texts       what short texts cost that are far larger as trees, in each operation on filters
    covering          adding one filter to many under covering, beside comparing it with each of them

Random filters have little to do with one another. So the second filter of a pair is made of the first: a condition
more or less, a range a little wider or narrower. `wrong` counts verdicts that events contradict, and "no" without
an event that shows it. All of it is one thread's work, and its times are the processor's, not the clock's: a verdict
takes microseconds, in which a busy machine does something else.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass
from functools import partial
from random import Random
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.cases import CASES, parsed, percentile_us
from tamis import Matcher, holds, parse
from tamis.language.expressions import And, AtLeast, Attribute, Between, Compare, Expression, In, Literal, Not, Or, Xor
from tamis.pruning import Pruner
from tamis.relations import CoveringIndex, covers, example, merge, overlaps
from tamis.relations.advertisements import OverlapIndex
from tamis.relations.base import STAGES
from tamis.relations.deciding import DEFAULT_BUDGET
from tamis.relations.forms import Context, Form, context_of
from tamis.relations.formulas import Conjunction, Disjunction, Fact, Formula, Threshold, Within, fold, leaves
from tamis.relations.relations import covers_forms
from tamis.relations.samples import EventSample
from tamis.relations.satisfiability import SatProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tamis.relations import Verdict

PROMISED_ADD_MS = 5
"""What we promise at 100,000 filters: so many milliseconds for one more, at the median."""
NUMBERS = tuple(f"n{number}" for number in range(8))
WORDS = tuple(f"w{number}" for number in range(4))
_QUICK = STAGES[: STAGES.index("search")]
_JUDGED = 400


# -- Pairs


def predicate(chance: Random) -> Expression:
    """Return a range of a number, or a word or some words."""
    if chance.random() < 0.7:
        low = chance.randrange(90)
        return Between(Attribute((chance.choice(NUMBERS),)), Literal(low), Literal(low + chance.randint(5, 50)))
    word = Attribute((chance.choice(WORDS),))
    if chance.random() < 0.5:
        return Compare("=", word, Literal(f"word {chance.randrange(10)}"))
    return In(word, tuple(f"word {each}" for each in sorted(chance.sample(range(10), 3))))


def tree(chance: Random, count: int, is_conjunctive: bool) -> Expression:
    """Return a filter of so many predicates."""
    if count == 1:
        return Not(predicate(chance)) if chance.random() < 0.1 and not is_conjunctive else predicate(chance)
    if is_conjunctive:
        return And(tuple(predicate(chance) for _ in range(count)))
    sizes = [1] * min(count, chance.randint(2, 4))
    for _ in range(count - len(sizes)):
        sizes[chance.randrange(len(sizes))] += 1
    operands = tuple(tree(chance, size, is_conjunctive=False) for size in sizes)
    return And(operands) if chance.random() < 0.6 else Or(operands)


def varied(node: Expression, chance: Random, is_wider: bool) -> Expression:
    """Return a filter like another: here and there a range wider (or narrower), a part left out or another put in."""
    if isinstance(node, Between) and isinstance(node.low, Literal) and isinstance(node.high, Literal):
        by = chance.choice([0, 0, 0, 1, 5]) * (1 if is_wider else -1)
        low, high = int(node.low.value) - by, int(node.high.value) + by  # type: ignore[arg-type]
        return Between(node.value, Literal(min(low, high)), Literal(max(low, high)))
    if isinstance(node, And | Or):
        operands = [varied(child, chance, is_wider) for child in node.operands]
        if chance.random() < 0.2:
            if isinstance(node, Or) is is_wider:
                operands.append(predicate(chance))
            elif len(operands) > 2:
                operands.pop(chance.randrange(len(operands)))
        return type(node)(tuple(operands))
    return node


def pairs(count: int, predicate_count: int, is_conjunctive: bool, seed: int) -> list[tuple[Expression, Expression]]:
    """Return pairs of which the first often covers the second, and sometimes only nearly."""
    chance = Random(seed)
    found = []
    for _ in range(count):
        special = tree(chance, predicate_count, is_conjunctive)
        general = varied(special, chance, is_wider=chance.random() < 0.8)
        found.append((general, special))
    return found


def events(count: int, seed: int) -> list[dict[str, Any]]:
    """Return events for the pairs; some attributes are absent."""
    chance = Random(seed)
    return [
        {
            **{name: chance.randrange(110) for name in NUMBERS if chance.random() < 0.9},
            **{name: f"word {chance.randrange(10)}" for name in WORDS if chance.random() < 0.9},
        }
        for _ in range(count)
    ]


def relations(
    pair_count: int = 1_000, predicate_counts: Sequence[int] = (5, 10, 20, 50), seed: int = 1
) -> Iterator[dict[str, Any]]:
    """How many verdicts per second, by kind of filter, and what decides them?"""
    covers("a = 1", "a = 2 OR b = 1", budget=1)  # loads what there is to load
    kinds = [("conjunction", count, True) for count in predicate_counts[:1]]
    kinds += [("Boolean", count, False) for count in predicate_counts]
    for kind, predicate_count, is_conjunctive in kinds:
        asked = pairs(pair_count, predicate_count, is_conjunctive, seed)
        for name, relation in (("covers", covers), ("overlaps", overlaps)):
            context = context_of(None)
            context._forms.clear()
            start = process_time()
            for pair in asked:
                context.form(pair[0])
                context.form(pair[1])
            prepared_s = process_time() - start
            gc.collect()
            gc.freeze()  # a verdict's time is not that of collecting the filters of all others
            verdicts, times = [], []
            for one, two in asked:
                start = process_time()
                verdicts.append(relation(one, two))
                times.append(process_time() - start)
            gc.unfreeze()
            shares = {stage: sum(verdict.by == stage for verdict in verdicts) / pair_count for stage in STAGES}
            yield {
                "filters": kind,
                "predicates": predicate_count,
                "relation": name,
                "per_s": round(pair_count / sum(times)),
                "with_preparation_per_s": round(pair_count / (sum(times) + prepared_s)),
                "quick": sum(shares[stage] for stage in _QUICK),
                "search": shares["search"],
                "solver": shares["solver"],
                "unproven": sum(not verdict.proven for verdict in verdicts),
                "slowest_ms": max(times) * 1e3,
                "holds": sum(verdict.holds for verdict in verdicts),
                "wrong": _wrong(asked, verdicts, is_covering=name == "covers", seed=seed),
            }


def _wrong(
    asked: Sequence[tuple[Expression, Expression]],
    verdicts: Sequence[Verdict],
    is_covering: bool,
    seed: int,
) -> int:
    """Count verdicts that a sample of events contradicts, and those on the other side without an event to show it."""
    sample = EventSample(events(_JUDGED, seed + 1), None)
    context = context_of(None)
    wrong = 0
    for (one, two), verdict in zip(asked, verdicts, strict=True):
        first, second = (sample.matched(context.form(each).formula) for each in (one, two))
        seen = bool((second & ~first).any()) if is_covering else bool((first & second).any())
        is_possible = not verdict.holds if is_covering else verdict.holds
        if seen and not is_possible:
            wrong += 1
        elif is_possible and verdict.proven and not seen:
            shown = example([two], [one]) if is_covering else example([one, two])
            wrong += shown is None
    return wrong


# -- Solvers


def solvers(
    pair_count: int = 200, predicate_counts: Sequence[int] = (5, 10, 20, 50), seed: int = 1
) -> Iterator[dict[str, Any]]:
    """Which solver answers the questions of the relations soonest, were there nothing quicker before it?"""
    import pysat.solvers

    context = Context(None)
    for predicate_count in predicate_counts:
        questions = []
        for general, special in pairs(pair_count, predicate_count, False, seed):
            questions.append([context.form(special).formula, context.form(general).opposite])
        expected: list[bool] | None = None
        for name in ("minisat22", "glucose4", "cadical195", "z3"):
            answer: Callable[[list[Formula]], bool] = _by_z3 if name == "z3" else _by_sat(pysat.solvers, name)
            if name == "z3" and not _has_z3():
                continue
            answer(questions[0])
            start = process_time()
            found = [answer(question) for question in questions]
            elapsed = process_time() - start
            expected = expected or found
            yield {
                "predicates": predicate_count,
                "solver": name,
                "questions": pair_count,
                "us_each": elapsed / pair_count * 1e6,
                "possible": sum(found),
                "wrong": sum(one is not two for one, two in zip(found, expected, strict=True)),
            }


def _by_sat(library: Any, name: str) -> Callable[[list[Formula]], bool]:
    def answer(formulas: list[Formula]) -> bool:
        with SatProblem(formulas) as question:
            if name == "minisat22":
                return question.solve(10**9) is not False
            if question._is_impossible:
                return False
            with library.Solver(name=name, bootstrap_with=question._clauses) as solver:
                return bool(solver.solve())

    return answer


def _has_z3() -> bool:
    from importlib.util import find_spec

    return find_spec("z3") is not None


def _by_z3(formulas: list[Formula]) -> bool:
    import z3

    cuts: dict[Any, set[Any]] = {}
    for formula in formulas:
        for leaf in leaves(formula):
            if isinstance(leaf, Within):
                cuts.setdefault(leaf.axis, set(leaf.axis.values)).update(leaf.values)
    places = {axis: {cut: index for index, cut in enumerate(sorted(found))} for axis, found in cuts.items()}
    variables = {axis: z3.Int(str(number)) for number, axis in enumerate(places)}

    def term(node: Formula, below: list[Any]) -> Any:
        match node:
            case Within(axis=axis, values=values):
                at, order = variables[axis], places[axis]
                bounds = zip(values[::2], values[1::2], strict=True)
                return z3.Or(*(z3.And(at >= order[low], at < order[high]) for low, high in bounds))
            case Conjunction():
                return z3.And(*below)
            case Disjunction():
                return z3.Or(*below)
            case Threshold(count=count):
                return z3.AtLeast(*below, count)
            case Fact():
                raise NotImplementedError("the pairs have no patterns")
        return z3.BoolVal(node.is_true)  # type: ignore[attr-defined]

    solver = z3.Solver()
    for axis, variable in variables.items():
        solver.add(variable >= 0, variable < len(places[axis]) - 1)
    solver.add(*(fold(formula, term) for formula in formulas))
    return str(solver.check()) == "sat"


# -- Hard questions


def hard_relations(budget: int = DEFAULT_BUDGET) -> Iterator[dict[str, Any]]:
    """What do questions cost that are made to be hard, and does the budget end them?"""
    covers("a = 1", "a = 2 OR b = 1", budget=1)
    for name, size, general, special, is_covered in _hard():
        start = process_time()
        verdict = covers(general, special, budget=budget)
        yield {
            "question": name,
            "size": size,
            "holds": verdict.holds,
            "proven": verdict.proven,
            "by": verdict.by,
            "ms": (process_time() - start) * 1e3,
            "wrong": int((verdict.holds and not is_covered) or (verdict.proven and verdict.holds is not is_covered)),
        }


def _hard() -> Iterator[tuple[str, int, Expression, Expression, bool]]:
    for holes in (4, 6, 8, 10):
        yield ("pigeons in holes", holes, *pigeons(holes + 1, holes), True)
    for count in (8, 16, 32):
        flags = tuple(Attribute((f"f{number}",)) for number in range(count))
        yield "parity, other order", count, Xor(flags), Xor(flags[::-1]), True
        yield "parity, one off", count, Xor(flags), Xor((*flags[1:], flags[1])), False
    for count in (10, 20, 40):
        ones = tuple(Compare("=", Attribute((f"a{number}",)), Literal(1)) for number in range(count))
        yield "half of them, and one more", count, AtLeast(count // 2, ones), AtLeast(count // 2 + 1, ones), True
        yield "half of them, and one less", count, AtLeast(count // 2 + 1, ones), AtLeast(count // 2, ones), False
    for count in (100, 1_000):
        steps = tuple(Between(Attribute(("x",)), Literal(number), Literal(number + 1)) for number in range(count))
        wide = tuple(And((step, Compare(">", Attribute(("y",)), Literal(0)))) for step in steps)
        whole = And(
            (Between(Attribute(("x",)), Literal(0), Literal(count)), Compare(">", Attribute(("y",)), Literal(1)))
        )
        yield "many small for one large", count, Or(wide), whole, True


def pigeons(pigeon_count: int, hole_count: int) -> tuple[Expression, Expression]:
    """Two pigeons share a hole; every pigeon has one. With more pigeons than holes the first covers the second."""

    def sits(pigeon: int, hole: int) -> Expression:
        return Compare("=", Attribute((f"p{pigeon}_{hole}",)), Literal(True))

    shared = [
        And((sits(one, hole), sits(two, hole)))
        for hole in range(hole_count)
        for one in range(pigeon_count)
        for two in range(one)
    ]
    housed = [Or(tuple(sits(pigeon, hole) for hole in range(hole_count))) for pigeon in range(pigeon_count)]
    return Or(tuple(shared)), And(tuple(housed))


# -- Texts that are far larger as trees

_PLAIN = "p0 AND x > 3"


def worst_texts(
    xor_depth: int = 19,
    count_depth: int = 50,
    xor_count: int = 12,
    operand_count: int = 20_000,
    list_count: int = 100_000,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How many seconds of the processor does a text take that would stall whoever takes its tree for granted?"""
    flags = [f"p{number}" for number in range(max(xor_depth, count_depth + 1, xor_count + 9) + 1)]
    texts = {
        f"nested XOR of {xor_depth} levels": f"{''.join(f'({flag} XOR ' for flag in flags[:xor_depth])}"
        f"{flags[xor_depth]}{')' * xor_depth}",
        f"{count_depth} nested at_least": "".join(f"at_least(2, p{n}, p{n + 1}, " for n in range(count_depth))
        + f"p{count_depth}{')' * count_depth}",
        f"XOR of {xor_count} at_least": " XOR ".join(
            f"at_least(5, {', '.join(flags[n : n + 10])})" for n in range(xor_count)
        ),
        f"at_least {operand_count // 2} of {operand_count}": f"at_least({operand_count // 2}, "
        + ", ".join(f"x > {number}" for number in range(operand_count))
        + ")",
    }
    chance = Random(seed)
    event = {**{flag: chance.random() < 0.5 for flag in flags}, "x": operand_count * 2 // 3, "z": 1}
    for operation in _OPERATIONS.values():
        operation(_PLAIN, event)  # loads and compiles what there is to load and to compile
    for name, text in texts.items():
        for label, operation in _OPERATIONS.items():
            start = process_time()
            is_wrong = operation(text, event)
            taken_s = process_time() - start
            yield {"operation": label, "text": name, "cpu_s": taken_s, "wrong": int(is_wrong())}
    even, odd = (", ".join(map(str, range(first, 2 * list_count, 2))) for first in (0, 1))
    start = process_time()
    merger = merge([f"x IN ({even})", f"x IN ({odd})"])
    taken_s = process_time() - start
    is_one = isinstance(merger.expression, In) and merger.expression.values == tuple(range(2 * list_count))
    yield {
        "operation": "merge",
        "text": f"two IN lists of {list_count}",
        "cpu_s": taken_s,
        "wrong": int(not (merger.perfect and is_one)),
    }


def _registered(text: str, _: dict[str, Any]) -> Callable[[], bool]:
    matcher = Matcher()
    matcher.add("worst", text)
    return lambda: len(matcher) != 1


def _matched(text: str, event: dict[str, Any]) -> Callable[[], bool]:
    matcher = Matcher()
    matcher.add("worst", text)
    matches = matcher.match(event)
    return lambda: bool(matches) is not _holds(text, event)


def _covered(text: str, _: dict[str, Any]) -> Callable[[], bool]:
    verdict = covers(text, f"({text}) AND z = 1")
    return lambda: verdict.proven and not verdict.holds


def _overlapped(text: str, event: dict[str, Any]) -> Callable[[], bool]:
    verdict = overlaps(text, "z = 1")
    return lambda: not verdict and _holds(text, event)


def _merged(text: str, event: dict[str, Any]) -> Callable[[], bool]:
    merger = merge([text, _PLAIN])
    return lambda: _holds(text, event) and not holds(merger.expression, event)


def _indexed_by_covering(text: str, _: dict[str, Any]) -> Callable[[], bool]:
    index = CoveringIndex()
    for key, each in enumerate((text, _PLAIN)):
        index.add(key, each)
    covering = index.covering(text)
    return lambda: 0 not in covering


def _indexed_by_overlap(text: str, event: dict[str, Any], *, is_exact: bool = False) -> Callable[[], bool]:
    index = OverlapIndex(is_exact=is_exact)
    for key, each in enumerate((text, _PLAIN, "z = 1")):
        index.add(key, each)
    overlapping = index.overlapping(text)
    return lambda: _holds(text, event) and not {0, 2} <= {*overlapping}


def _pruned(text: str, event: dict[str, Any]) -> Callable[[], bool]:
    pruner = Pruner(lambda _: 0.5, "accuracy")
    pruner.add("worst", text)
    pruner.prune(share=0.5)
    return lambda: _holds(text, event) and not holds(pruner.expression("worst"), event)


def _holds(text: str, event: dict[str, Any]) -> bool:
    return holds(parse(text), event)


_OPERATIONS: dict[str, Callable[[str, dict[str, Any]], Callable[[], bool]]] = {
    "register": _registered,
    "register and match": _matched,
    "covers": _covered,
    "overlaps": _overlapped,
    "merge": _merged,
    "CoveringIndex": _indexed_by_covering,
    "OverlapIndex": _indexed_by_overlap,
    "exact OverlapIndex": partial(_indexed_by_overlap, is_exact=True),
    "prune": _pruned,
}
"""What is done with a text; each returns what says, afterwards, whether it was done wrongly."""


# -- Many filters


@dataclass
class _Asked:
    """A filter that is added, and what comparing it with some of those that are there finds."""

    expression: Expression
    covering: list[int]
    covered: list[int]


def covering(
    names: Sequence[str] = ("w1", "w4", "auction"),
    subscription_counts: Sequence[int] = (1_000, 10_000, 100_000),
    asked_count: int = 200,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """What does it cost to add one more filter under covering, as filters become more?"""
    _warm_up()
    for name in names:
        for count in sorted(subscription_counts):
            workload = CASES[name]()
            filters = parsed(workload.subscriptions(count + asked_count, seed))
            index = CoveringIndex()
            start = process_time()
            for number in range(count):
                index.add(number, filters[number])
            building_s = process_time() - start
            gc.collect()
            gc.freeze()
            asked, pairwise_us = _compared(filters[:count], _newcomers(filters, count, asked_count, seed))
            times, wrong, found = [], 0, 0
            for number, each in enumerate(asked, start=count):
                start = process_time()
                around, inside = index.covering(each.expression), index.covered_by(each.expression)
                index.add(number, each.expression)
                times.append(process_time() - start)
                index.remove(number)
                found += len(around) + len(inside)
                wrong += [key for key in around if key < _JUDGED] != each.covering
                wrong += [key for key in inside if key < _JUDGED] != each.covered
            gc.unfreeze()
            add_us = float(np.mean(times)) * 1e6
            yield {
                "workload": name,
                "filters": count,
                "add_us": add_us,
                "p50_us": percentile_us(times, 50),
                "p99_us": percentile_us(times, 99),
                "promised_ms": PROMISED_ADD_MS if count == 100_000 else None,
                "build_us_each": building_s / count * 1e6,
                "pairwise_us": pairwise_us * count,
                "times_pairwise": pairwise_us * count / add_us,
                "found": found,
                "wrong": wrong,
            }


def _warm_up() -> None:
    index = CoveringIndex()
    index.add(0, "a = 1")
    index.covering("a = 1")
    index.covered_by("a = 1")


def _newcomers(filters: Sequence[Expression], count: int, asked_count: int, seed: int) -> list[Expression]:
    """Return filters that were never seen, and some that cover or are covered by one of those that are there."""
    chance = Random(seed)
    found: list[Expression] = []
    for number in range(asked_count):
        known = filters[chance.randrange(min(count, _JUDGED))]
        operands = known.operands if isinstance(known, And) and len(known.operands) > 2 else None
        if number % 4 == 1 and operands:
            found.append(And(operands[:-1]))
        elif number % 4 == 2:
            found.append(And((known, Compare("=", Attribute(("another",)), Literal(number)))))
        else:
            found.append(filters[count + number])
    return found


def _compared(filters: Sequence[Expression], newcomers: Sequence[Expression]) -> tuple[list[_Asked], float]:
    """Compare newcomers with the first filters, pair by pair; return what was found, and microseconds for each."""
    context = Context(None)
    forms: list[Form] = [context.form(each) for each in filters[:_JUDGED]]
    asked, elapsed = [], 0.0
    for expression in newcomers:
        form = context.form(expression)
        start = process_time()
        around = [number for number, each in enumerate(forms) if covers_forms(each, form)]
        inside = [number for number, each in enumerate(forms) if covers_forms(form, each)]
        elapsed += process_time() - start
        asked.append(_Asked(expression, around, inside))
    return asked, elapsed / len(newcomers) / len(forms) * 1e6
