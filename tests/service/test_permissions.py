from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Schema, holds, parse
from tamis.language.expressions import And
from tamis.service.errors import ForbiddenError
from tamis.service.messages import Principal, Wanted
from tamis.service.permissions import EFFECTIVE_LIMITS, NOTHING, Permissions
from tamis.service.settings import Publishing, Role
from tests.strategies import conditions, events

ANN = Principal("ann", ("shop",))
EUROPE = Permissions({"shop": Role(receive="region = 'EU'")})
STRICT = Permissions({"shop": Role(receive="region = 'EU'", mode="require")})


def wanted(text: str) -> Wanted:
    return Wanted(text, parse(text))


texts = conditions.map(str)


@given(allowed=st.lists(texts, min_size=1, max_size=3), expression=conditions, event=events())
def test_restricted_is_what_is_wanted_and_allowed_no_more_and_no_less(allowed, expression, event):
    roles = {str(number): Role(receive=text) for number, text in enumerate(allowed)}
    effective = Permissions(roles).effective(Principal("ann", tuple(roles)), Wanted(str(expression), expression))
    is_allowed = any(holds(parse(text), event) for text in allowed)
    assert holds(effective, event) == (holds(expression, event) and is_allowed)


@settings(deadline=None)
@given(allowed=texts, special=conditions, event=events(), is_narrower=st.booleans())
def test_required_is_what_is_wanted_and_never_more_than_allowed(allowed, special, event, is_narrower):
    expression = And((special, parse(allowed))) if is_narrower else special
    permissions = Permissions({"shop": Role(receive=allowed, mode="require")})
    try:
        effective = permissions.effective(ANN, Wanted(str(expression), expression))
    except ForbiddenError:
        return
    assert effective == expression
    assert not holds(effective, event) or holds(parse(allowed), event)


@settings(deadline=None)
@given(roles=st.lists(texts, max_size=3), expression=conditions, event=events())
def test_who_may_see_all_of_a_filter_may_see_each_event_of_it(roles, expression, event):
    table = {str(number): Role(receive=text) for number, text in enumerate(roles)}
    permissions, principal = Permissions(table or {"other": Role()}), Principal("ann", tuple(table))
    allowed = permissions.receive(principal)
    if permissions.may_see(principal, [expression]) and holds(expression, event):
        assert allowed is None or holds(allowed, event)
    if allowed is not None:
        assert permissions.may_see(principal, [And((expression, allowed))])


def test_the_largest_filters_can_be_kept_as_a_text_after_they_were_restricted():
    deep = "NOT " * 240 + "(" * 9 + "sold" + ")" * 9
    long = " OR ".join(f"x = {number}" for number in range(5_000))
    for text in (deep, long):
        permissions = Permissions({"shop": Role(receive=text), "more": Role(receive="y = 1")})
        effective = permissions.effective(Principal("ann", ("shop", "more")), wanted(text))
        assert parse(str(effective), limits=EFFECTIVE_LIMITS) == effective


def test_a_refusal_shows_an_event_that_may_not_be_seen():
    with pytest.raises(ForbiddenError) as refused:
        STRICT.effective(ANN, wanted("price < 20"))
    shown = json.loads(refused.value.detail.partition("such as ")[2])
    assert holds(parse("price < 20"), shown) and not holds(parse("region = 'EU'"), shown)
    assert "region = 'EU'" in refused.value.expected
    covered = wanted("region = 'EU' AND price < 20")
    assert STRICT.effective(ANN, covered) == covered.filter


def test_what_is_not_proven_is_refused():
    permissions = Permissions({"shop": Role(receive="title RLIKE '^a'", mode="require")})
    with pytest.raises(ForbiddenError, match=r"asks for more|not proven"):
        permissions.effective(ANN, wanted("title RLIKE '^(ab)+$'"))


def test_a_schema_proves_more():
    schema = Schema({"bids": "int"})
    role = {"shop": Role(receive="bids >= 5", mode="require")}
    assert Permissions(role, schema).effective(ANN, wanted("bids > 4")) == parse("bids > 4")
    with pytest.raises(ForbiddenError):
        Permissions(role).effective(ANN, wanted("bids > 4"))


def test_several_roles_unite_and_one_that_restricts_is_enough():
    both = {"eu": Role(receive="region = 'EU'", mode="require"), "cheap": Role(receive="price < 5")}
    ann = Principal("ann", ("eu", "cheap"))
    assert str(Permissions(both).receive(ann)) == "region = 'EU' OR price < 5"
    assert isinstance(Permissions(both).effective(ann, wanted("x = 1")), And)
    strict = {"eu": both["eu"], "cheap": Role(receive="price < 5", mode="require")}
    with pytest.raises(ForbiddenError):
        Permissions(strict).effective(ann, wanted("x = 1"))
    covered = wanted("price < 2 OR region = 'EU' AND x = 1")
    assert Permissions(strict).effective(ann, covered) == covered.filter


def test_a_role_that_may_see_everything_restricts_nothing():
    permissions = Permissions({"all": Role(receive="TRUE"), "eu": Role(receive="region = 'EU'", mode="require")})
    principal = Principal("ann", ("eu", "all"))
    assert permissions.receive(principal) is None
    assert permissions.effective(principal, wanted("x = 1")) == parse("x = 1")


@pytest.mark.parametrize("roles", [(), ("publisher",), ("gone",), ("gone", "publisher")])
def test_what_no_role_says_is_not_allowed(roles):
    permissions = Permissions({"publisher": Role(publish=Publishing())})
    principal = Principal("ann", roles)
    assert permissions.receive(principal) == NOTHING
    with pytest.raises(ForbiddenError, match="may not receive anything"):
        permissions.effective(principal, wanted("TRUE"))
    assert not permissions.may_see(principal, [parse("x = 1")])
    assert (permissions.objection_to_publish(principal, {"source": "a", "type": "b"}) is None) == ("publisher" in roles)


def test_an_admin_may_do_everything_but_use_what_is_the_brokers_own():
    permissions = Permissions({"boss": Role(admin=True)})
    for name in ("boss", "admin"):
        principal = Principal("ann", (name,))
        assert permissions.receive(principal) is None
        assert permissions.objection_to_publish(principal, {}) is None
        assert permissions.may_use(principal, "anything", "bob")
        assert not permissions.may_use(principal, "tamis/links", None)


def test_without_roles_principals_are_what_they_are_and_with_them_what_their_roles_say():
    local = Principal("local", is_admin=True)
    assert Permissions({}).is_admin(local) and not Permissions({}).is_admin(ANN)
    assert not EUROPE.is_admin(local), "a connection from before a reload has no more rights than a new one"
    assert not EUROPE.is_admin(Principal("eve", ("shop",), is_admin=True))


PUBLISHER = Permissions(
    {
        "shop": Role(publish=Publishing(source=("/shop/*", "/till"), type=("order.*",), where="amount < 10000")),
        "clock": Role(publish=Publishing(type=("tick",))),
    }
)


@pytest.mark.parametrize(
    ("event", "may"),
    [
        ({"source": "/shop/1", "type": "order.new", "amount": 5}, True),
        ({"source": "/shop/", "type": "order.", "amount": 5}, True),
        ({"source": "/till", "type": "order.new", "amount": 5}, True),
        ({"source": "/till/2", "type": "order.new", "amount": 5}, False),
        ({"source": "/shop/1", "type": "order.new", "amount": 10_000}, False),
        ({"source": "/shop/1", "type": "order.new", "amount": None}, False),
        ({"source": "/shop/1", "type": "order.new", "amount": math.nan}, False),
        ({"source": "/shop/1", "type": "order.new"}, False),
        ({"source": "/shop\n/1", "type": "order.new", "amount": 5}, False),
        ({"source": "/shop/\n1", "type": "order.new", "amount": 5}, True),
        ({"source": "/SHOP/1", "type": "order.new", "amount": 5}, False),
        ({"source": "x/shop/1", "type": "order.new", "amount": 5}, False),
        ({"source": "/shop/1", "type": "orders", "amount": 5}, False),
        ({"source": "", "type": "", "amount": 5}, False),
        ({"source": None, "type": 5, "amount": 5}, False),
        ({}, False),
    ],
)
def test_an_event_is_published_if_source_type_and_filter_fit(event, may):
    objection = PUBLISHER.objection_to_publish(ANN, event)
    assert (objection is None) == may
    if objection is not None and event.get("source") == "/shop/1" and event["type"] == "order.new":
        assert "amount < 10000" in objection


def test_any_of_several_roles_opens_the_door():
    both = Principal("ann", ("shop", "clock"))
    assert PUBLISHER.objection_to_publish(both, {"source": "/anywhere", "type": "tick"}) is None
    assert PUBLISHER.objection_to_publish(ANN, {"source": "/anywhere", "type": "tick"}) is not None


@given(
    pattern=st.text(st.sampled_from("a*.[\\?+"), max_size=6),
    name=st.text(st.sampled_from("ab.[\\?+*"), max_size=6),
)
def test_in_a_pattern_only_the_star_is_special(pattern, name):
    def fits(pattern: str, name: str) -> bool:
        if not pattern:
            return not name
        if pattern[0] == "*":
            return any(fits(pattern[1:], name[start:]) for start in range(len(name) + 1))
        return bool(name) and name[0] == pattern[0] and fits(pattern[1:], name[1:])

    permissions = Permissions({"shop": Role(subscribers=(pattern,))})
    assert permissions.may_use(ANN, name, "bob") == fits(pattern, name)


def test_a_pattern_of_many_stars_is_tried_in_bounded_steps():
    permissions = Permissions({"shop": Role(subscribers=("*a" * 20 + "*c",))})
    assert not permissions.may_use(ANN, "a" * 2_000, "bob")  # with a regular expression this would not end


@pytest.mark.parametrize(
    ("name", "owner", "may"),
    [
        ("mine", "ann", True),
        ("ann", None, True),
        ("ann/phone", None, True),
        ("ann/phone", "bob", False),
        ("ann", "bob", False),
        ("anna", None, False),
        ("shop-1", None, True),
        ("shop-1", "bob", True),
        ("other", None, False),
        ("tamis/x", "ann", False),
        ("tamis/x", None, False),
    ],
)
def test_a_subscriber_is_used_by_its_owner_and_by_those_whose_role_names_it(name, owner, may):
    permissions = Permissions({"shop": Role(subscribers=("shop-*",))})
    assert permissions.may_use(ANN, name, owner) == may


def test_a_name_with_a_slash_has_no_subscribers_below_it():
    certificate = Principal("spiffe://a", ("shop",))
    assert EUROPE.may_use(certificate, "spiffe://a", None)
    assert not EUROPE.may_use(certificate, "spiffe://a/b", None)
    assert EUROPE.may_use(certificate, "spiffe://a/passing-7", None), "a connection may listen"
    assert not EUROPE.may_use(certificate, "spiffe://a/passing-7", "spiffe://b")
