"""The benchmarks of the relations at toy size: every row is right, and a wrong one would be noticed."""

from __future__ import annotations

import pytest
from benchmarks.relations import covering, hard_relations, pairs, relations, solvers, worst_texts

import tamis
from benchmarks import relations as module
from tamis.relations import CoveringIndex, Verdict


def test_every_kind_of_filter_is_compared_and_no_event_contradicts():
    rows = list(relations(pair_count=25, predicate_counts=(5, 12)))
    assert [(row["filters"], row["predicates"], row["relation"]) for row in rows] == [
        (kind, count, relation)
        for kind, count in (("conjunction", 5), ("Boolean", 5), ("Boolean", 12))
        for relation in ("covers", "overlaps")
    ]
    for row in rows:
        assert row["wrong"] == 0
        assert row["quick"] + row["search"] + row["solver"] == pytest.approx(1)
        assert 0 < row["holds"] <= 25
    assert rows[0]["quick"] == 1  # conjunctions are decided by the propositions


def test_a_wrong_verdict_would_be_noticed(monkeypatch):
    honest = module.covers
    monkeypatch.setattr(
        module, "covers", lambda *filters, **options: Verdict(not honest(*filters, **options).holds, True)
    )
    rows = [row for row in relations(pair_count=20, predicate_counts=(5,)) if row["relation"] == "covers"]
    assert all(row["wrong"] > 0 for row in rows)


def test_the_pairs_are_the_same_for_the_same_seed_and_related():
    assert pairs(5, 6, False, seed=1) == pairs(5, 6, False, seed=1) != pairs(5, 6, False, seed=2)
    assert sum(tamis.relations.covers(*pair).holds for pair in pairs(40, 5, False, seed=1)) > 20


def test_all_solvers_give_the_same_answers():
    rows = list(solvers(pair_count=12, predicate_counts=(6,)))
    assert [row["solver"] for row in rows][:3] == ["minisat22", "glucose4", "cadical195"]
    assert [row["wrong"] for row in rows] == [0] * len(rows)
    assert len({row["possible"] for row in rows}) == 1


def test_hard_questions_end_with_their_budget():
    rows = list(hard_relations(budget=50))
    assert [row["wrong"] for row in rows] == [0] * len(rows)
    assert "budget" in {row["by"] for row in rows} and any(row["proven"] for row in rows)


SMALL = {"xor_depth": 4, "count_depth": 3, "xor_count": 2, "operand_count": 12, "list_count": 20}


def test_the_worst_texts_go_through_every_operation():
    rows = list(worst_texts(**SMALL))
    operations = {row["operation"] for row in rows}
    assert {"register and match", "covers", "merge", "exact OverlapIndex", "prune"} <= operations
    assert len(rows) == 4 * len(operations) + 1 and rows[-1]["text"] == "two IN lists of 20"
    assert [row["wrong"] for row in rows] == [0] * len(rows)


def test_an_operation_that_gives_a_wrong_answer_to_a_worst_text_is_caught(monkeypatch):
    monkeypatch.setattr(module, "covers", lambda *_: Verdict(False, True, "search"))
    monkeypatch.setattr(module, "merge", lambda filters: tamis.relations.merge(filters[1:]))
    wrong = {row["operation"] for row in worst_texts(**SMALL) if row["wrong"]}
    assert wrong == {"covers", "merge"}


def test_covering_finds_what_pairs_find_as_filters_become_more():
    rows = list(covering(names=("w1", "w2"), subscription_counts=(300, 100), asked_count=20))
    assert [(row["workload"], row["filters"]) for row in rows] == [
        (name, count) for name in ("w1", "w2") for count in (100, 300)
    ]
    assert [row["wrong"] for row in rows] == [0] * 4
    assert all(row["found"] > 0 for row in rows)


def test_an_index_that_loses_filters_is_caught(monkeypatch):
    honest = CoveringIndex.covering
    monkeypatch.setattr(CoveringIndex, "covering", lambda self, given: honest(self, given)[1:])
    (row,) = covering(names=("w1",), subscription_counts=(100,), asked_count=20)
    assert row["wrong"] > 0
