"""Expressions as instructions: what NOT and XOR become, and what is too large."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.language.expressions import And, AtLeast, Attribute, Compare, Literal, Not, Or, Xor
from tamis.matching import UnsupportedExpressionError
from tamis_lab.matching.atree import certainty, unknowns
from tamis_lab.matching.atree.graph import SharedGraph
from tamis_lab.matching.atree.translation import NodeTranslator
from tests.strategies import conditions, events
from tests.tamis_lab.matching.atree.plain import expression_of, holds, nodes_of

SCHEMA = tamis.Schema(
    {"a": "int", "b": "double", "c": "string", "für": "bool", "odd name": "timestamp", "pos": {"x": "decimal(10,2)"}},
    mandatory=["a", "b", "c", "für", "odd name", "pos.x"],
)


def translated(text, schema=None, *, has_not=False):
    """Return the expression that is built, over the texts of predicates, and what was promised."""
    found = NodeTranslator("atree", schema, has_not=has_not).translated([tamis.parse(text)])
    graph = SharedGraph()
    graph.insert([0], found.programs, np.arange(len(found.predicates), dtype=np.uint32))
    root = int(graph.tables.subscriptions[0, 0])
    nodes = nodes_of(graph)

    def named(part):
        return (part[0], *map(named, part[1:])) if isinstance(part, tuple) else str(found.predicates[part])

    return named(expression_of(nodes, root)), found.promises


def test_not_goes_down_to_the_predicates():
    assert translated("NOT (a < 5 OR NOT (b = 1 AND sold))")[0] == ("and", "a >= 5", "b = 1", "sold")
    assert translated("NOT (a = 1 AND b IN (1, 2))")[0] == ("or", "a <> 1", "b NOT IN (1, 2)")
    assert translated("NOT (sold OR title LIKE 'a%')")[0] == ("and", "NOT sold", "title NOT LIKE 'a%'")


def test_the_negation_of_at_least_is_at_least_of_the_negations():
    found = NodeTranslator("atree").translated([tamis.parse("NOT at_least(2, a = 1, b = 1, c = 1, d = 1)")])
    assert found.programs.code.tolist()[:3] == [4, 3, 4]
    assert [str(each) for each in found.predicates] == ["a <> 1", "b <> 1", "c <> 1", "d <> 1"]


def test_xor_is_written_out_where_an_operand_may_be_unknown():
    written, promised = translated("xor(a > 1, b > 1)", SCHEMA)
    assert promised == {}
    assert written[0] == "or" and {each[0] for each in written[1:]} == {"and"}
    assert translated("xor(a > 1, other > 1)", SCHEMA, has_not=True)[1] == {}


def test_xor_and_not_are_nodes_where_no_operand_is_ever_unknown():
    written, promised = translated("xor(a > 1, b > 1)", SCHEMA, has_not=True)
    assert written == ("xor", "a > 1", "b > 1")
    assert promised == {("a",): "number", ("b",): "number"}
    assert translated("a = 1 AND NOT (b > 1 OR c = 'x')", SCHEMA, has_not=True)[0] == (
        "and",
        "a = 1",
        ("not", ("or", "b > 1", "c = 'x'")),
    )
    assert translated("xor(a IS NULL, b <=> 1)", has_not=True) == (("xor", "a IS NULL", "b <=> 1"), {})
    assert translated("b = 1 OR xor(a > 1, TRUE)", SCHEMA, has_not=True)[0] == ("or", "b = 1", ("not", "a > 1"))


def test_both_polarities_of_an_expression_share_it():
    texts = ["b > 1 OR c = 'x'", "NOT (b > 1 OR c = 'x')"]
    for has_not, nodes in ((True, 2), (False, 2)):
        found = NodeTranslator("x", SCHEMA, has_not=has_not).translated(map(tamis.parse, texts))
        graph = SharedGraph()
        graph.insert([0, 1], found.programs, np.arange(len(found.predicates), dtype=np.uint32))
        assert graph.inner_count == nodes
        assert graph.leaf_count == (2 if has_not else 4)


def test_a_shared_part_is_translated_once_however_large_its_tree_is():
    part = tamis.parse("a = 1 AND b = 2")
    for level in range(200):
        part = (And if level % 2 else Or)((part, part, Compare("=", Attribute(("c",)), Literal(level))))
    found = NodeTranslator("atree").translated([part])
    assert len(found.programs.code) < 2_000
    same = part
    for _ in range(200):
        same = And((same, same))
    assert len(NodeTranslator("atree").translated([same]).programs.code) < 2_000


def test_nested_xors_stay_small():
    part = tamis.parse("a = 1")
    for level in range(60):
        part = Xor((part, Compare("=", Attribute(("b",)), Literal(level))))
    assert len(NodeTranslator("atree").translated([part]).programs.code) < 5_000


def test_an_expression_of_any_depth_is_translated():
    part = tamis.parse("a = 1")
    for level in range(5_000):
        part = Not(Or((part, Compare("=", Attribute(("b",)), Literal(level % 50)))))
    matcher = tamis.Matcher("atree")
    matcher.add("deep", part)
    assert matcher.match({"a": 1, "b": 100}) == ["deep"]
    assert matcher.match({"a": 2, "b": 100}) == []


def test_what_a_counter_cannot_count_is_refused_with_its_reason():
    leaves = tuple(Compare("=", Attribute(("a",)), Literal(number)) for number in range(6_000))
    with pytest.raises(UnsupportedExpressionError, match=r"'atree'.*no more than 4,095 of its operands, not 5,000"):
        tamis.Matcher("atree").add(1, AtLeast(5_000, leaves))
    for fine in (AtLeast(4_095, leaves), AtLeast(1, leaves), AtLeast(6_000, leaves), And(leaves), Or(leaves)):
        tamis.Matcher("atree").add(1, fine)
    with pytest.raises(UnsupportedExpressionError, match="XOR written out is too large"):
        tamis.Matcher("atree").add(1, Xor(leaves))


# -- What is never unknown


@pytest.mark.parametrize(
    ("text", "promised"),
    [
        ("a < 5", {("a",): "number"}),
        ("5 < b", {("b",): "number"}),
        ("c = 'x'", {("c",): "string"}),
        ("c = 5", None),
        ("a = 'x'", None),
        ("a = NULL", None),
        ("other = 5", None),
        ("`für`", {("für",): "boolean"}),
        ("a", None),
        ("a BETWEEN 1 AND 2.5", {("a",): "number"}),
        ("a BETWEEN 1 AND NULL", None),
        ("a IN (1, 2)", {("a",): "number"}),
        ("a IN (1, NULL)", None),
        ("a IN (1, 'x')", None),
        ("c LIKE '%x'", {("c",): "string"}),
        ("c RLIKE 'x+'", {("c",): "string"}),
        ("contains(c, 'x')", {("c",): "string"}),
        ("contains(c, other)", None),
        ("a LIKE 'x'", None),
        ("`odd name` > DATE '2024-01-01'", {("odd name",): "time"}),
        ("pos.x > 1", {("pos", "x"): "number"}),
        ("other IS NULL", {}),
        ("other <=> 3", {}),
        ("a / b < 5", None),
        ("a < b", None),
        ("TRUE", {}),
        ("a < 5 AND (b > 1 OR NOT c = 'x')", {("a",): "number", ("b",): "number", ("c",): "string"}),
        ("a < 5 AND other = 1", None),
        ("at_least(2, a = 1, b = 1, other IS NULL)", {("a",): "number", ("b",): "number"}),
    ],
)
def test_what_a_schema_promises(text, promised):
    assert certainty.promises(tamis.parse(text), SCHEMA) == promised


@given(condition=conditions, event=events())
def test_a_condition_is_known_where_promises_are_kept(condition, event):
    promised = certainty.promises(condition, SCHEMA)
    if promised is not None and unknowns.is_kept(promised, event):
        assert tamis.truth(condition, event) is not None


@given(condition=conditions, event=events(), has_not=st.booleans())
def test_the_instructions_mean_what_the_expression_means(condition, event, has_not):
    found = NodeTranslator("atree", SCHEMA, has_not=has_not).translated([condition])
    if found.promises and not unknowns.is_kept(found.promises, event):
        return
    graph = SharedGraph()
    graph.insert([0], found.programs, np.arange(len(found.predicates), dtype=np.uint32))
    root = int(graph.tables.subscriptions[0, 0])
    true = frozenset(number for number, each in enumerate(found.predicates) if tamis.holds(each, event))
    nodes = nodes_of(graph)
    is_true = root in nodes and holds(expression_of(nodes, root), true)
    assert is_true is tamis.holds(condition, event)
    assert (not found.trusting) == (not found.promises)
