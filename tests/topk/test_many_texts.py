"""Do many texts say together what each says alone?"""

from __future__ import annotations

import pytest

import tamis
from tamis.errors import LanguageError, TamisError
from tamis.matching.reading import reader
from tamis.topk import Ranked, TopK
from tamis.topk.many_texts import read_subscriptions
from tamis.topk.text import is_ranked

ODD = [
    "TOP 5 BY price OVER 1 HOUR", "top 2 by votes desc half life 6 hours over 2 days where a > 1", "TOP 0 BY price OVER 1 HOUR WHERE a",
    "TOP 5 BY price OVER 1 HOUR WHERE a <", "TOP 5 BY price OVER WHERE a", "TOP 3 BY price OVER 9 EVENTS WHERE note = 'no where'",
    "TOP 3 BY CASE WHEN note = ' where ' THEN 1 ELSE 2 END OVER 9 EVENTS WHERE a = 1", "top = 5", "top", "sequence = 1 and a", "a = 'where'",
    "SEQUENCE a THEN b", "CHANGE TO a", "change", "a <", "lower(a) = 'x'", "", "TOP 5 BY lower(title) OVER 1 HOUR WHERE a = 2",
    "TOP 5 BY price OVER 1 HOUR WHERE a = 2 WHERE b = 1", "TOP 4 BY price / 2 OVER 1 HOUR\n where b in (1, 2)",
]  # fmt: skip
SCHEMA = tamis.Schema(
    {
        "price": "double",
        "votes": "bigint",
        "a": "bigint",
        "b": "bigint",
        "note": "string",
        "top": "bigint",
        "title": "string",
    }
)


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    monkeypatch.setattr("tamis.topk.many_texts.MANY", 1)
    monkeypatch.setattr(reader, "MANY", 1)
    monkeypatch.setattr(reader, "is_compiled", lambda: True)


def parsed(text, schema):
    return Ranked.parse(text, schema) if is_ranked(text) else tamis.parse(text, schema)


def alone(text, schema):
    try:
        return parsed(text, schema)
    except TamisError:
        return None


@pytest.mark.parametrize("schema", [None, SCHEMA], ids=["no schema", "a schema"])
def test_what_many_texts_say_is_what_each_says(schema):
    many = [f"TOP {n % 3 + 1} BY price OVER {n % 2 + 1} HOURS WHERE a = {n} AND b < 5" for n in range(30)]
    texts = [*ODD, *many, *(f"a = {n} OR b = 1" for n in range(30))]
    known = read_subscriptions(texts, schema)
    assert {text: said for text, said in known.items() if said != alone(text, schema)} == {}
    assert set(many) < known.keys()
    assert "top 2 by votes desc half life 6 hours over 2 days where a > 1" in known


def test_many_subscriptions_get_what_they_would_get_one_by_one():
    texts = {n: f"TOP 2 BY price OVER 5 EVENTS WHERE a < {n % 7} OR b = {n % 3}" for n in range(60)}
    texts |= {f"condition {n}": f"a = {n % 7} AND NOT b = 1" for n in range(60)}
    together, one_by_one = TopK(), TopK()
    together.add_many(texts)
    for key, text in texts.items():
        one_by_one.add(key, text)
    events = [{"a": n % 7, "b": n % 4, "price": 7 * n % 11} for n in range(40)]
    deliveries = [[each.process(event, now) for now, event in enumerate(events)] for each in (together, one_by_one)]
    assert deliveries[0] == deliveries[1]
    assert any(deliveries[0])


def test_a_mistake_among_many_is_the_parsers():
    good = {n: f"TOP 2 BY price OVER 5 EVENTS WHERE a < {n}" for n in range(9)}
    for bad in ("TOP 2 BY price OVER 5 EVENTS WHERE a <", "prize < 5"):
        with pytest.raises(LanguageError) as expected:
            parsed(bad, SCHEMA)
        with pytest.raises(LanguageError) as raised:
            TopK(schema=SCHEMA).add_many({**good, "bad": bad})
        assert str(raised.value) == str(expected.value)
        assert raised.value.__notes__ == ["in the subscription 'bad'"]
