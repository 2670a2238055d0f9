"""The checkers of the real tests, checked: each finds what it is there for."""

import pytest

from tests.service.broker_processes import events
from tests.service.watching import Watch


def watched(*, deliveries, acknowledged=(0, 1, 2), text="n < 3"):
    """Return the problems of a run: positions are numbers plus one unless said."""
    watch = Watch()
    sent = events(5)
    watch.sends(sent)
    watch.was_acknowledged([sent[number] for number in acknowledged], [f"e-{number + 1}" for number in acknowledged])
    for number, *rest in deliveries:
        at, is_again = (rest + [f"e-{number + 1}", False][len(rest) :])[:2]
        watch.got("ann", at, sent[number], is_again)
    watch.check("ann", text)
    return watch.problems


def test_a_good_run_has_no_problems():
    assert watched(deliveries=[(0,), (1,), (1, "e-2", True), (2,)]) == []


@pytest.mark.parametrize(
    ("deliveries", "words"),
    [
        ([(0,), (2,)], "misses"),
        ([(0,), (1,), (1,), (2,)], "without a mark"),
        ([(0,), (2,), (1,)], "behind 2"),
        ([(0,), (1,), (2,), (4,)], "has not asked"),
        ([(0,), (1,), (2, "e-2")], "names"),
    ],
)
def test_a_bad_run_is_found(deliveries, words):
    problems = watched(deliveries=deliveries)
    assert any(words in problem for problem in problems), problems


def test_an_event_that_nobody_published_is_found():
    watch = Watch()
    watch.got("ann", "e-1", events(1)[0])
    with pytest.raises(AssertionError, match="never published"):
        watch.conclude()


def test_two_positions_for_one_event_are_found():
    watch = Watch()
    sent = events(1)
    watch.sends(sent)
    watch.was_acknowledged(sent, ["e-1"])
    watch.was_acknowledged(sent, ["e-2"])
    with pytest.raises(AssertionError, match="acknowledged at"):
        watch.conclude()
