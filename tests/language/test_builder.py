"""The builder says in Python what a text says in SQL."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

import tamis
from tamis import attr, call, errors, lit

price, bids, title, tags = attr("price"), attr("bids"), attr("title"), attr("tags")


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (price < 20, "price < 20"),
        (price <= 20, "price <= 20"),
        (price > Decimal("20.5"), "price > 20.5"),
        (price >= 20.5, "price >= 20.5D"),
        (price == 20, "price = 20"),
        (price != 20, "price <> 20"),
        (price > 20, "price > 20"),
        (price.same_as(None), "price <=> NULL"),
        (price.between(1, 5), "price BETWEEN 1 AND 5"),
        (title.isin(["a", "b"]), "title IN ('a', 'b')"),
        (price.is_null(), "price IS NULL"),
        (price.is_not_null(), "price IS NOT NULL"),
        (attr("type").is_a("Quote"), "type IS A 'Quote'"),
        (title.like("The %"), "title LIKE 'The %'"),
        (title.like("x!%", escape="!"), "title LIKE 'x!%' ESCAPE '!'"),
        (title.rlike("^a"), "title RLIKE '^a'"),
        (title.startswith("a"), "startswith(title, 'a')"),
        (title.endswith("a"), "endswith(title, 'a')"),
        (title.contains(attr("word")), "contains(title, word)"),
        (attr("ip").in_cidr("10.0.0.0/8"), "in_cidr(ip, '10.0.0.0/8')"),
        (title.lower() == "a", "lower(title) = 'a'"),
        (title.upper().trim().length() > 3, "length(trim(upper(title))) > 3"),
        (tags.array_contains("a"), "array_contains(tags, 'a')"),
        (tags.arrays_overlap(["a", "b"]), "arrays_overlap(tags, array('a', 'b'))"),
        (tags.size() == 0, "size(tags) = 0"),
        (price + bids <= 1000, "price + bids <= 1000"),
        (1 + price - 2 * bids / 3 % 4 > 0, "1 + price - 2 * bids / 3 % 4 > 0"),
        (10 - price > 1, "10 - price > 1"),
        (10 / price > 1, "10 / price > 1"),
        (10 % price > 1, "10 % price > 1"),
        (-price < 5, "-price < 5"),
        (abs(price) < 5, "abs(price) < 5"),
        (call("least", price, bids, 3) < 5, "least(price, bids, 3) < 5"),
        (call("distance", attr("lat"), attr("lon"), 45, 15) < 5, "distance(lat, lon, 45, 15) < 5"),
        (lit(100) - price < 5, "100 - price < 5"),
        ((price < 20) & (bids > 3) & attr("sold"), "price < 20 AND bids > 3 AND sold"),
        ((price < 20) | (bids > 3) & ~attr("sold"), "price < 20 OR bids > 3 AND NOT sold"),
        ((price < 20) ^ (bids > 3) ^ (price > 1), "price < 20 XOR bids > 3 XOR price > 1"),
        (attr("sold") & attr("new"), "sold AND new"),
        (attr("sold") | attr("new"), "sold OR new"),
        (attr("sold") ^ attr("new"), "sold XOR new"),
        (~(price < 20), "NOT price < 20"),
        (True & (price < 20), "TRUE AND price < 20"),
        (tamis.at_least(2, price < 1, bids < 2, attr("new")), "at_least(2, price < 1, bids < 2, new)"),
        (tamis.xor(price < 1, bids < 2), "price < 1 XOR bids < 2"),
        (tamis.all_of(price < 1, bids < 2), "price < 1 AND bids < 2"),
        (tamis.any_of(price < 1), "price < 1"),
        (tamis.all_of(), "TRUE"),
        (tamis.any_of(), "FALSE"),
        (attr("position.x") > 1, "position.x > 1"),
        (attr("`odd.name`.x") > 1, "`odd.name`.x > 1"),
        (attr("day") == dt.date(2024, 2, 29), "day = DATE '2024-02-29'"),
        (attr("at") < dt.datetime(2024, 2, 29, 12), "at < TIMESTAMP '2024-02-29 12:00:00'"),
        (price == float("nan"), "price = double('NaN')"),
        (price == 2**63, "price = 9223372036854775808"),
    ],
)
def test_the_builder_builds_what_the_text_says(built, text):
    assert built == tamis.parse(text)


@pytest.mark.parametrize(
    ("build", "kind"),
    [
        (lambda: price.isin([]), errors.LiteralError),
        (lambda: price < b"x", errors.LiteralError),
        (lambda: price < 10**40, errors.LiteralError),
        (lambda: price < {"a": 1}, errors.LiteralError),
        (lambda: attr("1 + 1"), errors.LanguageError),
        (lambda: attr(""), errors.LanguageError),
        (lambda: attr("a = 1"), errors.TypeMismatchError),
        (lambda: title.like("x\\"), errors.PatternError),
        (lambda: title.rlike("("), errors.PatternError),
        (lambda: call("nothing", price), errors.TypeMismatchError),
        (lambda: call("lower", price, bids), errors.TypeMismatchError),
        (lambda: call("contains", title, "x"), errors.TypeMismatchError),
        (lambda: title.lower() > 5, errors.TypeMismatchError),
        (lambda: (price + 1) & attr("sold"), errors.TypeMismatchError),
        (lambda: (price < 5) & 3, errors.TypeMismatchError),
        (lambda: tamis.at_least(-1, price < 5), errors.TypeMismatchError),
        (lambda: attr("ip").in_cidr("ten"), errors.LiteralError),
    ],
)
def test_a_mistake_in_python_is_a_typed_error_too(build, kind):
    with pytest.raises(kind):
        build()


def test_and_or_not_of_python_are_refused():
    with pytest.raises(TypeError, match="&"):
        (price < 20) and (bids > 3)  # noqa: B018
    with pytest.raises(TypeError, match="&"):
        not price  # noqa: B018
    with pytest.raises(TypeError, match="&"):
        1 < price < 5  # noqa: B015
