"""Merged segments hold what their living subscriptions ask, and nothing else."""

from __future__ import annotations

from itertools import count

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.matching import Matcher
from tamis.matching.axes import STRING, sorting_keys
from tamis.matching.block.draft import Drafting
from tamis.matching.block.joining import compacted, joined
from tests.strategies import conditions, conditions_over, simple_predicates

subscription_lists = st.lists(st.one_of(conditions, conditions_over(simple_predicates)), max_size=8)


def drafted(expressions, first_handle=0):
    drafting = Drafting()
    drafting.add_many(count(first_handle), expressions)
    return drafting.finished()


def operands_of(axis):
    """Return an axis's operands as they compare: a date and its midnight, or 1 and 1.0, are one operand."""
    plain = axis.operands if axis.key.kind == STRING else sorting_keys(axis.key.kind, axis.operands).tolist()
    return list(map(repr, plain))


def asked(draft):
    """Return what a draft asks, whatever the numbers of axes, leaves and sets are."""
    return (
        {axis.key: operands_of(axis) for axis in draft.axes},
        len(draft.leaves.axes),
        len(draft.sets.values),
        len(draft.jumps.leaves),
        len(draft.steps.leaves),
        draft.clauses.leaves.starts.tolist(),
    )


@given(expressions=subscription_lists, data=st.data())
def test_a_compacted_draft_is_that_of_the_living(expressions, data):
    alive = np.array(data.draw(st.lists(st.booleans(), min_size=len(expressions), max_size=len(expressions))), np.bool_)
    dead = [tamis.parse("nobody = 'asks'")]
    found = compacted(drafted(expressions + dead), np.append(alive, False))
    living = [expression for expression, is_alive in zip(expressions, alive, strict=True) if is_alive]
    expected = compacted(drafted(living + dead), np.append(np.ones(len(living), np.bool_), False))
    assert asked(found) == asked(expected)
    assert found.handles.tolist() == np.flatnonzero(alive).tolist()


@given(lists=st.lists(subscription_lists, min_size=1, max_size=3), data=st.data())
def test_joined_drafts_ask_what_their_living_subscriptions_ask(lists, data):
    drafts, alive, living, first = [], [], [], 0
    for expressions in lists:
        flags = data.draw(st.lists(st.booleans(), min_size=len(expressions), max_size=len(expressions)))
        drafts.append(drafted(expressions, first))
        alive.append(np.array(flags, np.bool_))
        living += [first + index for index, flag in enumerate(flags) if flag]
        first += len(expressions)
    found = joined(drafts, alive)
    assert found.handles.tolist() == living
    every = [expression for expressions in lists for expression in expressions]
    fresh = compacted(
        drafted([*(every[handle] for handle in living), tamis.parse("nobody = 'asks'")]),
        np.append(np.ones(len(living), np.bool_), False),
    )
    operands = {axis.key: set(operands_of(axis)) for axis in found.axes}
    for axis in fresh.axes:
        assert set(operands_of(axis)) <= operands[axis.key]


def test_subscriptions_that_come_and_go_leave_nothing_behind():
    matcher = Matcher()
    matcher._engine.merge_always = True
    sizes = []
    for turn in range(6):
        matcher.add_many(
            {(turn, index): f"a = {1000 * turn + index} AND b IN ('x{turn}', 'y{index}')" for index in range(50)}
        )
        matcher.match({"a": 1})
        if turn:
            matcher.remove_many([(turn - 1, index) for index in range(50)])
        matcher.match({"a": 1})
        sizes.append(matcher._engine.memory())
    assert max(sizes[2:]) <= 1.1 * min(sizes[2:])
