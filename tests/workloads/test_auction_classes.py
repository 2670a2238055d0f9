"""The classes have the properties that the source's tables give them, and its worked examples come out."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tamis
from tamis.language.expressions import And, Or
from tamis.language.literals import to_text
from tamis.language.measures import least_hits, predicate_count
from tamis.language.rewrites.disjunctive import disjuncts
from tamis.workloads import Auction
from tamis.workloads.auction_classes import advertisement_classes, attribute_name, subscription_classes
from tamis.workloads.auction_tables import read_document

WRITTEN = {
    written["id"]: written
    for document in ("subscription_classes.json", "advertisement_classes.json")
    for written in read_document(document)["classes"]
}
CLASSES = {book_class.name: book_class for book_class in (*subscription_classes(), *advertisement_classes())}
PHRASES = {book_class.name: book_class for book_class in subscription_classes(by_phrase=True)}

E1 = {
    "category": "Fantasy",
    "format": "Softcover",
    "special_attribute": "Unspecified",
    "condition": "Used",
    "buy_it_now": False,
    "price": 11.00,
    "ending_within": 360,
    "bids": 0,
    "title": "Harry Potter and the Goblet of Fire",
    "author": "JK Rowling",
}


def instance(book_class, operands):
    """Write one instance, with operands as the scenario's files give them."""
    literals = {name: pa.array([literal(operands[name])]) for name in book_class.operands}
    return tamis.parse(book_class.conditions(literals, 1)[0].as_py(), Auction().schema)


def literal(operand):
    return f"{operand / 100:.2f}" if isinstance(operand, int) else f"'{operand}'"


def any_instance(name):
    kinds = CLASSES[name].operands
    distinct = {
        operand: index + 1 if kinds[operand].kind == "price_cents" else operand for index, operand in enumerate(kinds)
    }
    return instance(CLASSES[name], distinct)


def operator_count(expression):
    operands = expression.operands if isinstance(expression, And | Or) else ()
    return len(operands[:1]) + sum(operator_count(operand) for operand in operands)


def test_there_are_three_classes_of_subscriptions_and_eight_of_advertisements():
    assert list(CLASSES) == ["S1", "S2", "S3", "A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8"]


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_has_the_properties_of_its_table(name):
    wanted = WRITTEN[name]["properties"]
    expression = any_instance(name)
    conjunctions = disjuncts(expression)
    found = {
        "operators": operator_count(expression),
        "predicates": predicate_count(expression),
        "variable_predicates": len(CLASSES[name].operands),
        "dnf_conjunctions": len(conjunctions),
        "dnf_predicates": sum(map(len, conjunctions)),
        "p_min": least_hits(expression),
        "encoded_bytes": 5 * predicate_count(expression) + 2 * operator_count(expression),
    }
    assert {name: found[name] for name in wanted} == wanted


@pytest.mark.parametrize(("name", "per_predicate"), [("S1", 1.333), ("S2", 1.667), ("S3", 2.571)])
def test_predicates_are_in_so_many_conjunctions_on_average(name, per_predicate):
    expression = any_instance(name)
    assert sum(map(len, disjuncts(expression))) / predicate_count(expression) == pytest.approx(per_predicate, abs=5e-4)


@pytest.mark.parametrize(("name", "hits"), [("S1", "1 2 4 5 6"), ("S2", "1 2 4 6 7 8 10 12"), ("S3", "2 6")])
def test_the_worked_example_fulfils_the_predicates_that_the_source_says(name, hits):
    symbols = {"eq": "{} = {}", "lt": "{} < {}", "contains": "contains({}, {})"}
    found = []
    for number, predicate in WRITTEN[name]["predicates"].items():
        operand = predicate.get("operand", WRITTEN[name]["example"].get(number))
        written = literal(operand) if predicate["attribute"] == "Price" else to_text(operand)
        text = symbols[predicate["operator"]].format(attribute_name(predicate["attribute"]), written)
        if tamis.holds(tamis.parse(text, Auction().schema), E1):
            found.append(number.removeprefix("p"))
    assert " ".join(found) == hits


@pytest.mark.parametrize(("name", "is_match"), [("S1", True), ("S2", False), ("S3", False)])
def test_the_worked_example_matches_s1_alone(name, is_match):
    assert tamis.holds(instance(PHRASES[name], WRITTEN[name]["example"]), E1) is is_match


@pytest.mark.parametrize("name", ["A1", "A2", "A3", "A4"])
def test_the_worked_example_conforms_to_none_of_the_examples(name):
    # a3 names this very book, but its price is 11.00 and > is strict.
    advertisement = instance(CLASSES[name], WRITTEN[name]["example"])
    assert not tamis.holds(advertisement, E1)
    assert tamis.holds(advertisement, {**E1, "price": 11.01}) is (name == "A3")
