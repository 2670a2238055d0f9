"""Scores with a half life: ranked as they are at every moment, by every algorithm, in an order that does not change."""

from __future__ import annotations

import datetime as dt
import math
import pickle
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.errors import ExpressionSyntaxError, JsonFormError, TypeMismatchError
from tamis.routing import Broker, Deliver, Entry, Publish, Reject, Subscribe
from tamis.routing.distributed import RankingSettings
from tamis.topk import CountWindow, Ranked, RankedFormError, SettingError, TimeWindow, TopK, WindowError, covers
from tamis.topk.ageing import DatedEvent, aged
from tamis.topk.owner import Owner
from tamis.topk.policies import EveryChange
from tamis.topk.scores import key

EXACT = {
    "naive": {"algorithm": "naive"},
    "strict": {"algorithm": "strict"},
    "relaxed": {"algorithm": "relaxed"},
    "block": {"algorithm": "block"},
    "SASF": {"algorithm": "strict", "filter": "strict", "buffer": 3},
    "RAPF": {"algorithm": "relaxed", "filter": "probabilistic", "buffer": 3},
    "grid": {"algorithm": "strict", "filter": "strict", "buffer": 3, "index": "grid"},
}
HALF_LIFE = 2
votes = st.one_of(
    st.sampled_from([0, 1, 2, 3, 4, 6, 8, 12, 16, 24]),
    st.sampled_from([None, "many", -1, -0.0, 0.0, math.nan, math.inf, -math.inf, 10**400, True]),
)
streams = st.lists(st.tuples(st.integers(0, 4), votes), min_size=1, max_size=25)
windows = st.sampled_from([CountWindow(1), CountWindow(4), CountWindow(9), TimeWindow(5), TimeWindow(12)])


def worth(score, published, now, order):
    """Return what a score is worth now, exactly, the less the better; None for nothing: the plain definition."""
    if isinstance(score, bool) or not isinstance(score, int | float) or not score >= 0:
        return None
    if isinstance(score, int) and score >= 10**38:
        return None  # an integer of so many digits has no value in the language
    if score == math.inf:
        return math.inf if order == "ASC" else -math.inf
    halves = Fraction(now - published, HALF_LIFE)
    assert halves.denominator in (1, 2)
    # Squared, so that half a half life is a fraction, too. Squaring keeps the order of what is not negative.
    factor = Fraction(2) ** (halves * 2).numerator if halves.denominator == 2 else Fraction(4) ** int(halves)
    square = Fraction(score) ** 2
    return square * factor if order == "ASC" else -square / factor


def defined(stream, k, window, order):
    """Return when each event is first among the best k: all of a window are compared anew at each moment."""
    told = {}
    last = max(at for at, _ in stream) + 20
    moments = sorted({at for at, _ in stream} | {at + 12 for at, _ in stream} | {at + 5 for at, _ in stream})
    for now in [each for each in moments if each <= last]:
        arrivals = [place for place, (at, _) in enumerate(stream) if at == now]
        for number in [*arrivals, None]:
            seen = [place for place, (at, _) in enumerate(stream) if at < now or (number is not None and at == now and place <= number) or (number is None and at == now)]  # fmt: skip
            if isinstance(window, CountWindow):
                inside = seen[-window.events :]
            else:  # arrival comes before departure at the same instant, and departures when the time moves on
                inside = [place for place in seen if now - stream[place][0] < window.seconds or (number is not None and now - stream[place][0] == window.seconds)]  # fmt: skip
            ranked = [(worth(stream[place][1], stream[place][0], now, order), -place) for place in inside]
            best = sorted(each for each in ranked if each[0] is not None)[:k]
            for _, place in best:
                told.setdefault(-place, now)
    return told


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=40)
@given(steps=streams, k=st.integers(1, 3), window=windows, order=st.sampled_from(["ASC", "DESC"]))
def test_every_exact_algorithm_tells_what_is_among_the_best_at_some_moment(name, steps, k, window, order):
    now, stream = 0, []
    for step, score in steps:
        now += step
        stream.append((now, score))
    processor = TopK(**EXACT[name])
    processor.add("aged", Ranked("votes", k, window, order=order, half_life=HALF_LIFE))
    told = {}
    for place, (at, score) in enumerate(stream):
        for each in processor.process({"votes": score}, float(at), place):
            told[each.event] = each.at
    for each in processor.advance(now + 20.0):
        told[each.event] = each.at
    assert told == defined(stream, k, window, order)


@given(
    one=st.tuples(st.floats(0.001, 1000), st.floats(0, 1e6)),
    two=st.tuples(st.floats(0.001, 1000), st.floats(0, 1e6)),
    is_ascending=st.booleans(),
)
def test_a_key_has_the_logarithm_of_the_score_and_its_age(one, two, is_ascending):
    keys = [aged(score, at, 3600.0, is_ascending=is_ascending) for score, at in (one, two)]
    by_hand = [math.log2(score) + (-at if is_ascending else at) / 3600 for score, at in (one, two)]
    assert keys[0] - keys[1] == pytest.approx(by_hand[0] - by_hand[1], abs=1e-9)


@pytest.mark.parametrize("score", ["euclidean(array(x, y), array(0, 0))", "2 * x + y", "x"])
def test_subscriptions_that_age_and_those_that_do_not_live_in_one_processor(score):
    events = [({"x": float(7 * n % 11), "y": float(n % 5)}, float(n), n) for n in range(60)]
    texts = {
        "plain": f"TOP 2 BY {score} OVER 12 SECONDS",
        "fast": f"TOP 2 BY {score} HALF LIFE 1 SECOND OVER 12 SECONDS WHERE y > 0",
        "slow": f"TOP 2 BY {score} HALF LIFE 1 HOUR OVER 12 SECONDS",
    }
    answers = []
    for algorithm in ("naive", "block", "strict"):
        together = TopK(algorithm)
        for id, text in texts.items():
            together.add(id, text)
        told = [each for event in events for each in together.process(*event)]
        for id, text in texts.items():
            alone = TopK(algorithm)
            alone.add(id, text)
            assert [each for event in events for each in alone.process(*event)] == [
                each for each in told if each.subscription == id
            ]
        batched = TopK(algorithm)
        for id, text in texts.items():
            batched.add(id, text)
        contents, moments, ids = zip(*events, strict=True)
        assert batched.process_batch(list(contents), list(moments), list(ids)) == told
        answers.append({(each.subscription, each.event, each.at) for each in told})
    assert answers[0] == answers[1] == answers[2]
    assert {event for id, event, _ in answers[0] if id == "fast"} != {
        event for id, event, _ in answers[0] if id == "plain"
    }


def test_what_waits_for_late_events_ages_from_when_it_was_published():
    processor = TopK(lateness=10)
    processor.add("fresh", "TOP 1 BY votes DESC HALF LIFE 1 SECOND OVER 1 HOUR")
    for at, count, id in ((5.0, 8, "late"), (2.0, 32, "early"), (4.0, 20, "between")):
        assert processor.process({"votes": count}, at, id) == []
    assert [each.event for each in processor.advance(100.0)] == ["early", "between"]  # 32 is 8 by then, 20 is 10 by 5


# -- Text, Python, JSON


def test_text_python_and_json_say_the_same():
    ranked = Ranked.parse("top 5 by votes desc half life 360 minutes over 2 days where half > 1 and life = 2")
    assert str(ranked) == "TOP 5 BY votes DESC HALF LIFE 6 HOURS OVER 2 DAYS WHERE half > 1 AND life = 2"
    same = Ranked("votes", 5, "2 DAYS", "half > 1 and life = 2", order="DESC", half_life=dt.timedelta(hours=6))
    assert same == ranked == Ranked.from_json(ranked.to_json()) == pickle.loads(pickle.dumps(ranked))
    assert same == Ranked.parse(str(ranked)) and hash(same) == hash(ranked) and same.half_life_s == 21600
    assert Ranked("votes", 5, "2 DAYS", same.where, order="DESC") != ranked
    names = Ranked.parse("TOP 1 BY half + life HALF LIFE 1 HOUR OVER 5 EVENTS")
    assert str(names.score) == "half + life" and names.half_life_s == 3600
    assert "half_life" not in Ranked("x", 1, "1 HOUR").to_json()


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("TOP 1 BY x HALF 1 HOUR OVER 1 DAY", ExpressionSyntaxError, "expected LIFE"),
        ("TOP 1 BY x HALF LIFE OVER 1 DAY", ExpressionSyntaxError, "a number of events, seconds"),
        ("TOP 1 BY x HALF LIFE 5 EVENTS OVER 1 DAY", RankedFormError, "a half life is a span of time"),
        ("TOP 1 BY x HALF LIFE 0 SECONDS OVER 1 DAY", WindowError, "more than 0 seconds"),
        ("TOP 1 BY DATE '2024-02-29' HALF LIFE 1 HOUR OVER 1 DAY", TypeMismatchError, "so it has no half life"),
        ("TOP 1 BY x HALF LIFE 1 HOUR ASC OVER 1 DAY", ExpressionSyntaxError, "expected OVER"),
    ],
)
def test_a_half_life_that_makes_no_sense_is_refused_with_its_place(text, error, says):
    with pytest.raises(error, match=says) as caught:
        Ranked.parse(text)
    assert "^" in str(caught.value)


@pytest.mark.parametrize("half_life", [0, -1, math.inf, math.nan, "5 EVENTS", True, CountWindow(3), "x"])
def test_a_half_life_from_python_is_checked(half_life):
    with pytest.raises((RankedFormError, WindowError)):
        Ranked("x", 1, "1 HOUR", half_life=half_life)


@pytest.mark.parametrize("written", ["1 HOUR", True, [1], {"seconds": 1}])
def test_a_half_life_in_json_is_a_number_of_seconds(written):
    document = {
        "tamis": 1,
        "ranked": {"k": 1, "by": {"attribute": ["x"]}, "window": {"events": 5}, "half_life": written},
    }
    with pytest.raises(JsonFormError, match="a half life is a number of seconds"):
        Ranked.from_json(document)


# -- Where it is not to be had


def test_who_cannot_rank_scores_that_age_says_so():
    ranked = Ranked("x", 1, "1 HOUR", order="DESC", half_life="1 HOUR")
    with pytest.raises(SettingError, match="random order"):
        TopK("probabilistic").add("s", ranked)
    with pytest.raises(SettingError, match="others would need the times"):
        EveryChange(ranked)
    with pytest.raises(SettingError, match="scores that do not age"):
        Owner(ranked, "strict")
    with pytest.raises(SettingError, match="needs the time of publication"):
        key(ranked, {"x": 1})
    assert key(ranked, DatedEvent({"x": 1}, 3600.0)) == -1.0
    assert "a half life" in RankingSettings().objection(ranked, sees_all=True)
    assert covers(ranked, ranked) and not covers(ranked, Ranked("x", 1, "1 HOUR", order="DESC"))


def test_brokers_rank_scores_that_age_unless_others_know_thresholds():
    text = "TOP 1 BY votes DESC HALF LIFE 10 SECONDS OVER 1 HOUR WHERE kind = 'news'"
    broker = Broker("home", algorithm="block")
    broker.attach("ann"), broker.attach("press")
    hello = broker.connect("north", 0.0)
    (said,) = broker.receive(Subscribe((Entry("best", Ranked.parse(text)),)), "ann", 0.0)
    assert hello and [str(each.filter) for each in said.message.entries] == ["kind = 'news'"]
    told = []
    for at, count in ((1, 64), (11, 30), (21, 20), (22, 1)):
        outputs = broker.receive(Publish(at, {"kind": "news", "votes": count}), "press", float(at))
        told += [each.publication.key for each in outputs if isinstance(each, Deliver)]
    assert told == [1, 21]  # 64 counts as 32 at 11, and as 16 at 21
    careful = Broker("careful", ranked={"algorithm": "strict", "filter": "strict"}, policy=EveryChange, buffer_s=5.0)
    careful.attach("ann")
    (refused,) = careful.receive(Subscribe((Entry("best", Ranked.parse(text)),)), "ann", 0.0)
    assert isinstance(refused, Reject) and "has a half life" in refused.reason


def test_a_schema_says_whether_a_score_can_age():
    schema = tamis.Schema({"votes": "integer", "at": "timestamp"})
    assert Ranked.parse("TOP 1 BY votes HALF LIFE 1 HOUR OVER 1 DAY", schema).half_life_s == 3600
    with pytest.raises(TypeMismatchError, match="so it has no half life"):
        Ranked.parse("TOP 1 BY at HALF LIFE 1 HOUR OVER 1 DAY", schema)
    with pytest.raises(TypeMismatchError):
        Ranked("at", 1, "1 DAY", half_life=5).checked(schema)
