"""How long does it take to find out which advertisements a subscription overlaps, or whether any?

All of them are asked for when an advertisement is taken back, whether there is any when a subscription comes: there
one is enough, and somebody waits. A conjunctive system asks for each conjunction of the subscription, among all
conjunctions of the advertisements: two conjunctions overlap if no predicate of one is disjoint to one of the other.

A conjunctive system has registered each conjunction by itself, and decides it by itself: whether one of the others has
overlapped already, it does not know. So the source has it (Bittner 2008, section 8.5, in footnote 8), and so it is
compared. One that knew which conjunctions belong together could stop at the first that overlaps; its time stands
beside the others and is compared with nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.language import parse
from tamis.language.rewrites.disjunctive import disjuncts
from tamis.language.rewrites.junctions import conjunction
from tamis.relations import overlaps
from tamis.relations.advertisements import OverlapIndex
from tamis_lab.experiments import verdicts
from tamis_lab.experiments.base import Claim, Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.books import books
from tamis_lab.experiments.errors import DisagreementError
from tamis_lab.experiments.measuring import cpu_s, undisturbed
from tamis_lab.experiments.routing.filter_times import TURNS
from tamis_lab.experiments.routing.sizes import sizes_of
from tamis_lab.experiments.statements import Judge

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tamis.language import Schema
    from tamis.language.expressions import Expression

judged = Judge("routing", "overlap")

BOOLEAN, CONJUNCTIVE = SYSTEMS = ("boolean", "conjunctive")
ALL, ANY = ", all", ", any"
FIRST = ", any, stops at the first"
_COMPARED, _WITH = 12, 60
"""So many subscriptions are compared with so many advertisements by the exact relation."""
FEW_ADVERTISEMENTS = 32
"""With so few advertisements, what a query takes is what it takes by itself."""
ALONE = ", by itself"


class Advertised:
    """Filters that are asked about, as they are or as conjunctions.

    >>> known = Advertised([parse("price < 10 OR sold"), parse("price > 50")], None, is_conjunctive=True)
    >>> one, two = map(known.asked, map(parse, ["price > 20 OR bids = 0", "price = 20 AND NOT sold"]))
    >>> sorted(known.overlapping(one)), known.overlaps_any(two)
    ([0, 1], False)
    """

    def __init__(self, filters: Sequence[Expression], schema: Schema | None, *, is_conjunctive: bool) -> None:
        self._is_conjunctive = is_conjunctive
        self.index = OverlapIndex(schema)
        for number, each in enumerate(filters):
            for part, alternative in enumerate(self.asked(each)):
                self.index.add((number, part), alternative)
        self.index.overlaps_any(filters[0])  # lays them out

    def asked(self, query: Expression) -> list[Expression]:
        """Return what to ask with instead of a query: itself, or its conjunctions."""
        return [conjunction(each) for each in disjuncts(query)] if self._is_conjunctive else [query]

    def overlapping(self, asked: Sequence[Expression]) -> set[int]:
        """Return the numbers of all filters that overlap one of some: the function problem."""
        return {number for answer in self.answers(asked) for number, _ in answer}

    def answers(self, asked: Sequence[Expression]) -> list[list[tuple[int, int]]]:
        """Return the same as the index says it, each filter or conjunction by its key: what is to be timed."""
        return [self.index.overlapping(each) for each in asked]

    def asked_count(self, asked: Sequence[Expression]) -> int:
        """Return how many of some queries are asked until one finds something."""
        numbers = (number for number, each in enumerate(asked, 1) if self.index.overlaps_any(each))
        return next(numbers, len(asked))

    def overlaps_any(self, asked: Sequence[Expression]) -> bool:
        """Does any filter overlap one of some? The decision problem, decided for each of them."""
        decided = [self.index.overlaps_any(each) for each in asked]  # each is asked, whatever the first says
        return any(decided)

    def overlaps_first(self, asked: Sequence[Expression]) -> bool:
        """Say the same, but ask no more once one overlaps."""
        return any(map(self.index.overlaps_any, asked))


def asked_s(ask: Callable[[list[Expression]], object], queries: Sequence[list[Expression]], passes: int) -> float:
    """Return the least time that a query takes, in some passes over all of them."""
    ask(queries[0])  # compiles
    with undisturbed():
        return min(cpu_s(lambda: [ask(each) for each in queries]) for _ in range(TURNS * passes)) / len(queries)


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Ask about more and more advertisements, in both systems."""
    sizes, workload = sizes_of(scale), books()
    queries = [parse(text) for text in workload.subscriptions(sizes.asked, seed + 1)["condition"].to_pylist()]
    texts = workload.advertisements(sizes.advertisements[-1], seed)["condition"].to_pylist()
    advertisements = [parse(text) for text in texts]
    fixed: Row = {}
    for name in SYSTEMS:
        few = Advertised(advertisements[:FEW_ADVERTISEMENTS], workload.schema, is_conjunctive=name == CONJUNCTIVE)
        asked = [few.asked(each) for each in queries]
        fixed[name + ALL + ALONE] = 1e3 * asked_s(few.answers, asked, scale.passes)
        fixed[name + ANY + ALONE] = 1e3 * asked_s(few.overlaps_any, asked, scale.passes)
    rows: list[Row] = []
    for count in sizes.advertisements:
        row: Row = {"advertisements": count}
        overlapping: dict[str, list[set[int]]] = {}
        for name in SYSTEMS:
            tell(f"{count:,} advertisements, {name}")
            known = Advertised(advertisements[:count], workload.schema, is_conjunctive=name == CONJUNCTIVE)
            asked = [known.asked(each) for each in queries]
            overlapping[name] = [known.overlapping(each) for each in asked]
            row[f"{name} entries"] = len(known.index)
            row[name + ALL] = 1e3 * asked_s(known.answers, asked, scale.passes)
            row[name + ANY] = 1e3 * asked_s(known.overlaps_any, asked, scale.passes)
            row[f"{name} named"] = sum(len(answer) for each in asked for answer in known.answers(each)) / len(queries)
            row[f"{name} asked"] = sum(map(known.asked_count, asked)) / len(queries)
            row[f"{name} queries"] = sum(map(len, asked)) / len(queries)
            for decides in (known.overlaps_any, known.overlaps_first):
                agreed(name, [decides(each) for each in asked], [bool(each) for each in overlapping[name]])
            if name == CONJUNCTIVE:
                row[name + FIRST] = 1e3 * asked_s(known.overlaps_first, asked, scale.passes)
        agreed(CONJUNCTIVE, overlapping[CONJUNCTIVE], overlapping[BOOLEAN])
        row["overlapping"] = sum(map(len, overlapping[BOOLEAN])) / len(queries) / count
        rows.append(row | fixed)
    tell("the exact relation")
    exact = [
        (bool(overlaps(query, each, workload.schema)), number in overlapping[BOOLEAN][at])
        for at, query in enumerate(queries[:_COMPARED])
        for number, each in enumerate(advertisements[:_WITH])
    ]
    setup = (
        f"Advertisements of books, {sizes.advertisements[0]:,} to {sizes.advertisements[-1]:,} of them, asked by "
        f"{len(queries):,} subscriptions which of them they overlap (all), and whether any (any). Both systems must "
        f"find the same. Of {len(exact):,} pairs the exact relation is asked too."
    )
    return Result(setup, _claims(rows, exact), _plots(rows), tuple(rows))


def agreed(name: str, given: Sequence[object], expected: Sequence[object]) -> None:
    """Raise unless two answered all questions alike."""
    for number, (one, two) in enumerate(zip(given, expected, strict=True)):
        if one != two:
            raise DisagreementError(BOOLEAN, name, number)


def _claims(rows: list[Row], exact: list[tuple[bool, bool]]) -> tuple[Claim, ...]:
    last = rows[-1]
    counts = [row["advertisements"] for row in rows]
    at = f"at {counts[-1]:,}"
    parts = (
        f"Of the {{}} ms, {{}} are spent on the query itself: so long it takes with {FEW_ADVERTISEMENTS} "
        "advertisements. A Boolean query has all its alternatives, a conjunction is one."
    )

    def by_itself(name: str) -> str:
        return parts.format(verdicts.rounded(last[name]), verdicts.rounded(last[name + ALONE]))

    def without(name: str) -> list[float]:
        return [max(row[name] - row[name + ALONE], 1e-9) for row in rows]

    rest = [any_ms / all_ms for any_ms, all_ms in zip(without(BOOLEAN + ANY), without(BOOLEAN + ALL), strict=True)]

    named = [verdicts.rounded(float(last[f"{name} named"])) for name in (CONJUNCTIVE, BOOLEAN)]
    asked = verdicts.rounded(last[f"{CONJUNCTIVE} asked"]), verdicts.rounded(last[f"{CONJUNCTIVE} queries"])
    first = (
        f"A system that stopped at the first conjunction that overlaps would ask {asked[0]} of the {asked[1]} "
        f"conjunctions of a subscription, in {verdicts.rounded(last[CONJUNCTIVE + FIRST])} ms."
    )
    return (
        judged("conjunctions", last["conjunctive entries"] / last["boolean entries"]),
        judged("none-missed", [answer for is_so, answer in exact if is_so]),
        judged("none-invented", [is_so for is_so, answer in exact if answer]),
        *(
            judged(
                "time-grows",
                counts,
                [row[name] for row in rows],
                name=name,
                remark=f"{by_itself(name)} Without that part it grows as the power "
                f"{verdicts.power(counts, without(name)):.2f}; what else is not in proportion, we do not "
                "know.",
            )
            for name in (BOOLEAN + ALL, CONJUNCTIVE + ALL)
        ),
        judged("boolean-any-to-all", last[BOOLEAN + ANY] / last[BOOLEAN + ALL], at=at, remark=by_itself(BOOLEAN + ANY)),
        judged(
            "boolean-any-to-all-alike",
            {f"{row['advertisements']:,}": row[BOOLEAN + ANY] / row[BOOLEAN + ALL] for row in rows},
            remark=f"{by_itself(BOOLEAN + ANY)} This part is there whatever is asked; without it, "
            f"the ratio is from {verdicts.rounded(min(rest))} to {verdicts.rounded(max(rest))}.",
        ),
        judged(
            "conjunctive-any-to-all",
            last[CONJUNCTIVE + ANY] / last[CONJUNCTIVE + ALL],
            at=at,
            remark=f"Both ask with every conjunction; to know all, {named[0]} conjunctions are named. {first}",
        ),
        judged(
            "any-boolean-to-conjunctive",
            last[BOOLEAN + ANY] / last[CONJUNCTIVE + ANY],
            at=at,
            remark=f"{by_itself(BOOLEAN + ANY)} {first}",
        ),
        judged(
            "all-conjunctive-to-boolean",
            last[CONJUNCTIVE + ALL] / last[BOOLEAN + ALL],
            at=at,
            remark=f"A conjunctive system asks {asked[1]} times, once for each conjunction of a "
            f"subscription, and names {named[0]} conjunctions; the Boolean one asks once and names "
            f"{named[1]} advertisements. That naming them takes most of the time is a guess.",
        ),
    )


def _plots(rows: list[Row]) -> tuple[Plot, ...]:
    counts = tuple(row["advertisements"] for row in rows)
    return tuple(
        Plot(
            f"Time to know {task}",
            "advertisements",
            "ms a subscription",
            tuple(
                Curve(label, counts, tuple(row[column] for row in rows), kin=kin, is_dashed=column.endswith(FIRST))
                for label, column, kin in curves
            ),
        )
        for task, curves in (
            ("all overlaps", [(name, name + ALL, kin) for name, kin in _KIN.items()]),
            (
                "whether any overlaps",
                [
                    *((name, name + ANY, kin) for name, kin in _KIN.items()),
                    ("conjunctive, stops at the first", CONJUNCTIVE + FIRST, _KIN[CONJUNCTIVE]),
                ],
            ),
        )
    )


_KIN = {BOOLEAN: "boolean", CONJUNCTIVE: "counting"}
"""The colours that they have everywhere."""

EXPERIMENT = Experiment(
    "overlap",
    "How long does it take to find out which advertisements a subscription overlaps, or whether any?",
    "Bittner 2008, sections 7.2 and 8.5",
    run,
)
