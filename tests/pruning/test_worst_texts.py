"""No text within the limits of the language stalls what generalises filters: it is pruned, or left as it is."""

from __future__ import annotations

import pytest

from tamis.pruning import Goal, Pruner, advertisement_pruner, merge_by_pruning, replace_predicates
from tests.bounded import outcomes
from tests.worst_texts import (
    WORST_TEXTS,
    WorstText,
    nested_counts,
    nested_truths,
    nested_xor,
    wide_count,
    xor_of_counts,
)

PLAIN = "p0 AND x > 3"


def _half(_):
    return 0.5


def pruned(text):
    pruner = Pruner(_half, "accuracy")
    pruner.add("plain", PLAIN)
    pruner.add("worst", text)
    pruner.prune(share=1)


OPERATIONS = {
    "pruner": pruned,
    "replacement": lambda text: replace_predicates({1: text, 2: PLAIN}, _half, threshold=0.5),
    "merger": lambda text: merge_by_pruning([text, PLAIN], _half, Goal(share=1)),
    "advertisements": lambda text: advertisement_pruner([text, PLAIN], lambda _: 3).prune(share=1),
}
SHORT = (
    WorstText("nested XOR of 19 levels", nested_xor, 19, 3),
    WorstText("50 nested counts", nested_counts, 50, 3),
    WorstText("XOR of a dozen counts", xor_of_counts, 12, 3),
    WorstText("240 conditions about conditions", nested_truths, 240, 3),
    WorstText("half of a thousand", wide_count, 1_000, 3),
)


def check(texts):
    cases = [(text, name) for text in texts for name in OPERATIONS]
    found = outcomes(__name__, [(name, text.worst) for text, name in cases])
    stalled = {
        (text.name, name): each
        for (text, name), each in zip(cases, found, strict=True)
        if each not in ("done", "BudgetError")
    }
    assert not stalled


def test_a_short_text_stalls_no_pruning():
    check(SHORT)


@pytest.mark.slow
@pytest.mark.parametrize("text", WORST_TEXTS, ids=lambda text: text.name)
def test_the_worst_texts_stall_no_pruning(text):
    check((text,))
