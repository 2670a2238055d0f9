"""What do bidders and sellers ask for?

Three classes of subscriptions and eight of advertisements. Instances of a class have the same tree; some of
its predicates are the same in all of them, the others draw their operand from a range.

Source: Bittner 2008, sections 3.3 and 3.4, tables B.1 and B.2 (docs/bibliography.md). The trees are rebuilt from the
property tables and worked examples; data/auction/README.md says which of them are certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from tamis.language.literals import to_text
from tamis.workloads.auction_tables import read_document
from tamis.workloads.texts import filled

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

_SYMBOLS = {"eq": "=", "lt": "<", "gt": ">"}


@dataclass(frozen=True)
class Operand:
    """What a variable predicate may ask for: a title, an author, a category, or a price in an interval of cents."""

    kind: str
    least: int = 0
    greatest: int = 0


@dataclass(frozen=True)
class BookClass:
    """A class of subscriptions or advertisements: its name, its tree as a text with gaps, and the gaps' domains."""

    name: str
    shape: str
    operands: Mapping[str, Operand]
    is_below: tuple[tuple[str, str], ...]
    """Pairs of operands of which the first must be less than the second."""

    def conditions(self, literals: Mapping[str, pa.Array], count: int) -> pa.Array:
        """Write instances, given the literals of each variable predicate."""
        return filled(self.shape, literals, count)


@cache
def subscription_classes(by_phrase: bool = False) -> tuple[BookClass, ...]:
    """S1 to S3.

    >>> print(subscription_classes()[0].shape)
    title = {p1} AND ((condition = 'New' AND price < {p4}) OR (price < {p5} AND condition = 'Used')) AND
        ending_within < 1440
    """
    return _classes("subscription_classes.json", by_phrase)


@cache
def advertisement_classes() -> tuple[BookClass, ...]:
    """A1 to A8.

    >>> print(advertisement_classes()[5].shape)
    (condition = 'Used' AND price > {p2}) OR (price > {p3} AND condition = 'New')
    """
    return _classes("advertisement_classes.json", by_phrase=False)


def attribute_name(title: str) -> str:
    """Write the scenario's name of an attribute as the language's: `Buy It Now` is `buy_it_now`."""
    return title.lower().replace(" ", "_")


def _classes(document: str, by_phrase: bool) -> tuple[BookClass, ...]:
    return tuple(_class(written, by_phrase) for written in read_document(document)["classes"])


def _class(written: dict[str, Any], by_phrase: bool) -> BookClass:
    predicates = {name: _predicate(name, predicate, by_phrase) for name, predicate in written["predicates"].items()}
    operands = {
        name: _operand(predicate["operand_domain"])
        for name, predicate in written["predicates"].items()
        if predicate["kind"] == "variable"
    }
    is_below = tuple((less, more) for less, _, more in written.get("operand_order", ()))
    return BookClass(written["id"], _shape(written["tree"], predicates, is_root=True), operands, is_below)


def _predicate(name: str, written: dict[str, Any], by_phrase: bool) -> str:
    attribute = attribute_name(written["attribute"])
    operand = f"{{{name}}}" if written["kind"] == "variable" else to_text(written["operand"])
    if written["operator"] != "contains":
        return f"{attribute} {_SYMBOLS[written['operator']]} {operand}"
    return f"contains({attribute}, {operand})" if by_phrase else f"{attribute} = {operand}"


def _operand(domain: dict[str, Any]) -> Operand:
    kind = domain["kind"]
    return Operand(kind, domain["min"], domain["max"]) if kind == "price_cents" else Operand(kind)


def _shape(tree: Any, predicates: dict[str, str], is_root: bool = False) -> str:
    if isinstance(tree, str):
        return predicates[tree]
    inside = f" {tree['op'].upper()} ".join(_shape(child, predicates) for child in tree["children"])
    return inside if is_root else f"({inside})"
