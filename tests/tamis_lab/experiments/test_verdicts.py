"""A verdict follows from the numbers, and from nothing else."""

from __future__ import annotations

from math import log

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tamis_lab.experiments import verdicts
from tamis_lab.experiments.base import OUTCOMES, Judgement

ratios = st.floats(0.01, 100)


@pytest.mark.parametrize(
    ("published", "measured", "verdict"),
    [
        (0.73, 0.73, Judgement.AGREES),
        (0.73, 0.60, Judgement.AGREES),
        (0.73, 0.30, Judgement.DIRECTION),
        (0.73, 0.20, Judgement.DIFFERS),  # less, but far less
        (0.86, 0.035, Judgement.DIFFERS),
        (0.67, 0.93, Judgement.DIRECTION),  # a saving of a third, and one of a fifteenth
        (0.80, 0.54, Judgement.DIRECTION),
        (0.73, 0.98, Judgement.SAME),
        (0.73, 1.40, Judgement.TURNED),
        (10.0, 12.0, Judgement.AGREES),
        (10.0, 5.0, Judgement.DIRECTION),
        (10.0, 2.0, Judgement.DIFFERS),
        (10.0, 0.5, Judgement.TURNED),
        (1.0, 1.0, Judgement.AGREES),
        (1.0, 1.4, Judgement.AGREES),
        (1.0, 1.6, Judgement.DIFFERS),
        (1.0, 0.5, Judgement.DIFFERS),
        (1.04, 1.0, Judgement.AGREES),
    ],
)
def test_a_ratio_beside_a_published_one(published, measured, verdict):
    assert verdicts.by_ratio("s", published, measured, where="5").verdict is verdict


@given(published=ratios, measured=ratios)
def test_a_ratio_and_its_inverse_get_the_same_verdict(published, measured):
    one = verdicts.by_ratio("s", published, measured, where="5")
    other = verdicts.by_ratio("s", 1 / published, 1 / measured, where="5")
    assert one.verdict is other.verdict


@given(measured=ratios)
def test_what_is_turned_around_lies_on_the_other_side_of_one(measured):
    found = verdicts.by_ratio("s", 0.5, measured, where="5").verdict
    assert (found is Judgement.TURNED) == (measured > verdicts.NOISE)
    lower = 0.5 / verdicts.ABOUT**verdicts.ROUGHLY
    assume(abs(log(measured / lower)) > 1e-6)
    assert (found in (Judgement.AGREES, Judgement.DIRECTION)) == (lower < measured < 1 / verdicts.NOISE)


@pytest.mark.parametrize(
    ("published", "measured", "verdict"),
    [
        (0.10, 0.12, Judgement.AGREES),
        (0.10, 0.30, Judgement.DIRECTION),  # 1.30 and 1.10 are close, 30 and 10 percent are not
        (0.37, 0.58, Judgement.DIRECTION),
        (0.10, 0.58, Judgement.DIFFERS),
        (0.37, 0.02, Judgement.SAME),
        (0.37, -0.2, Judgement.TURNED),
        (0.03, 0.02, Judgement.AGREES),
        (-0.2, -0.25, Judgement.AGREES),
    ],
)
def test_what_is_added_is_compared_without_what_was_there(published, measured, verdict):
    claim = verdicts.by_added("s", published, measured, where="5")
    assert claim.verdict is verdict
    assert claim.ours == f"{measured:+.0%}"


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([3.0, 6.0, 12.0], Judgement.AGREES),
        ([3.0, 5.5, 10.0], Judgement.AGREES),
        ([3.0, 4.0, 6.0], Judgement.DIRECTION),  # it grows, as the root
        ([3.0, 12.0, 48.0], Judgement.DIFFERS),  # it grows, as the square
        ([3.0, 3.05, 3.1], Judgement.SAME),
        ([6.0, 4.0, 3.0], Judgement.TURNED),
    ],
)
def test_what_grows_grows_linearly_only_if_it_grows_in_proportion(values, verdict):
    assert verdicts.by_line("s", "linear", [100, 200, 400], values, where="5").verdict is verdict


@given(exponent=st.floats(-3, 3), factor=ratios)
def test_the_power_is_that_with_which_it_was_made(exponent, factor):
    x = [1.0, 2.0, 5.0, 7.0]
    assert verdicts.power(x, [factor * each**exponent for each in x]) == pytest.approx(exponent, abs=1e-6)


@pytest.mark.parametrize(
    ("measured", "verdict"),
    [(0.75, Judgement.AGREES), (0.79, Judgement.AGREES), (0.85, Judgement.DIRECTION), (0.2, Judgement.DIFFERS)],
)
def test_a_place_agrees_if_it_is_near(measured, verdict):
    assert verdicts.by_value("s", 0.75, measured, within=0.05, where="5").verdict is verdict


@pytest.mark.parametrize("measured", [0.5, 1.0, 1.4])
def test_what_rests_on_something_that_is_not_so_never_agrees(measured):
    claim = verdicts.by_direction("B leads by less", "less", measured, is_more=True, where="5", remark="noise")
    assert verdicts.given(True, claim, "B does not lead.") == claim
    without = verdicts.given(False, claim, "B does not lead.")
    assert without.verdict is Judgement.PREMISE and without.remark == "B does not lead."
    assert without.verdict.outcome == "do not"


def test_only_what_agrees_is_counted_as_agreeing():
    assert [verdict for verdict in Judgement if verdict.outcome == "agree"] == [Judgement.AGREES]
    assert [verdict for verdict in Judgement if verdict.outcome == "roughly"] == [Judgement.DIRECTION]
    assert [verdict for verdict in Judgement if verdict.outcome == "not measured"] == [Judgement.UNMEASURED]
    assert {verdict.outcome for verdict in Judgement} == set(OUTCOMES)


@given(measured=ratios, is_more=st.booleans())
def test_a_direction_agrees_on_its_own_side_only(measured, is_more):
    assume(abs(abs(log(measured)) - log(verdicts.NOISE)) > 1e-9)  # on the edge, rounding decides
    found = verdicts.by_direction("s", "more", measured, is_more=is_more, where="5").verdict
    if 1 / verdicts.NOISE < measured < verdicts.NOISE:
        assert found is Judgement.SAME
    else:
        assert found is (Judgement.AGREES if (measured > 1) is is_more else Judgement.TURNED)


@pytest.mark.parametrize(
    ("values", "is_rising", "verdict"),
    [
        ([1.0, 2.0, 3.0], True, Judgement.AGREES),
        ([1.0, 2.0, 3.0], False, Judgement.TURNED),
        ([1.0, 3.0, 2.0], True, Judgement.DIRECTION),
        ([3.0, 1.0, 2.0], False, Judgement.DIRECTION),
        ([1.0, 5.0, 1.02], True, Judgement.SAME),
        ([1.0, 0.98, 2.0], True, Judgement.AGREES),
    ],
)
def test_a_trend_goes_from_the_first_to_the_last_and_mostly_in_between(values, is_rising, verdict):
    claim = verdicts.by_trend("s", "rises", [1, 2, 3], values, is_rising=is_rising, where="5", of="events,")
    assert claim.verdict is verdict
    assert claim.ours.startswith("events, ")
    assert ("; but from " in claim.ours) is (verdict is Judgement.DIRECTION), "what goes against it is told"


@pytest.mark.parametrize(
    ("order", "verdict"),
    [("abc", Judgement.AGREES), ("acb", Judgement.DIRECTION), ("cab", Judgement.TURNED), ("cba", Judgement.TURNED)],
)
def test_an_order_agrees_as_far_as_its_pairs_do(order, verdict):
    values = {name: float(place) for place, name in enumerate(reversed(order))}
    claim = verdicts.by_order("s", ["a", "b", "c"], values, where="5")
    assert claim.verdict is verdict
    assert claim.published == "a > b > c"
    assert [each.split()[0] for each in claim.ours.split(" > ")] == list(order)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ((10.0, 9.0), Judgement.AGREES),
        ((10.0, 9.9), Judgement.SAME),
        ((9.9, 10.0), Judgement.SAME),
        ((9.0, 10.0), Judgement.TURNED),
    ],
)
def test_who_leads_by_less_than_noise_does_not_lead(values, verdict):
    assert verdicts.by_order("s", ["a", "b"], dict(zip("ab", values, strict=True)), where="5").verdict is verdict


def test_what_holds_in_just_half_of_the_settings_differs():
    assert verdicts.by_share("s", "always", [True, False], what="settings", where="5").verdict is Judgement.DIFFERS


def test_equal_values_may_differ_by_what_is_said():
    values = {"a": 10.0, "b": 12.0}
    assert verdicts.by_equality("s", "equal", values, where="5", within=1.3).verdict is Judgement.AGREES
    assert verdicts.by_equality("s", "equal", values, where="5", within=1.1).verdict is Judgement.DIFFERS


@pytest.mark.parametrize(
    ("kept", "verdict"), [(3, Judgement.AGREES), (2, Judgement.DIRECTION), (1, Judgement.TURNED), (0, Judgement.TURNED)]
)
def test_a_statement_about_many_settings(kept, verdict):
    claim = verdicts.by_share("s", "always", [index < kept for index in range(3)], what="settings", where="5")
    assert claim.verdict is verdict
    assert claim.ours == f"in {kept} of 3 settings"


def test_what_was_looked_for_nowhere_is_not_measured():
    claim = verdicts.by_share("s", "always", [], what="settings", where="5", remark="caches have grown")
    assert claim.verdict is Judgement.UNMEASURED
    assert claim.remark == "There are no settings in this run in which it could be seen."


def test_a_remark_is_made_only_where_the_two_do_not_agree():
    told = {"where": "5", "remark": "caches have grown"}
    assert verdicts.by_ratio("s", 0.7, 0.7, **told).remark == ""
    assert verdicts.by_ratio("s", 0.7, 1.7, **told).remark == "caches have grown"
    assert verdicts.by_direction("s", "less", 1.7, is_more=False, **told).remark == "caches have grown"
