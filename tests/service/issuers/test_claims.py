from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.service.errors import UnauthenticatedError
from tamis.service.issuers.claims import TokenOwner, identity
from tamis.service.settings import Duration, Issuer

SHOP = Issuer(issuer="https://id.example", audience=("tamis", "broker"), leeway=Duration(10))
GOOD = {"iss": "https://id.example", "aud": "tamis", "exp": 2_000, "sub": "ann", "roles": ["shop"]}
KNOWN = ("shop", "boss")


def identify(issuer=SHOP, now=1_000.0, **changes):
    claims = {name: value for name, value in {**GOOD, **changes}.items() if value is not ...}
    return identity(claims, issuer, KNOWN, now)


def with_(**changes):
    return Issuer(**{"issuer": "https://id.example", "audience": ("tamis",), **changes})


def test_a_good_token_stands_for_its_subject_until_it_ends():
    assert identify() == TokenOwner("ann", ("shop",), 2_010.0)


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://id.example/"}, {"iss": "HTTPS://id.example"}, {"iss": ...}, {"iss": ["https://id.example"]},
        {"aud": "other"}, {"aud": ...}, {"aud": []}, {"aud": "tamis broker"}, {"aud": ["other", "Tamis"]}, {"aud": 7},
        {"aud": ["tamis", 7]}, {"aud": {"tamis": 1}}, {"aud": ""},
        {"exp": ...}, {"exp": None}, {"exp": 990}, {"exp": -1}, {"exp": "2000"}, {"exp": True}, {"exp": 1e300}, {"exp": 10**400},
        {"exp": math.nan}, {"exp": [2_000]},
        {"nbf": 1_011}, {"nbf": "0"}, {"iat": 1_011}, {"iat": False},
        {"sub": ...}, {"sub": ""}, {"sub": 7}, {"sub": "a\nb"}, {"sub": "x" * 201}, {"sub": None}, {"sub": ["ann"]},
        {"roles": 7}, {"roles": ["shop", 7]}, {"roles": {"shop": True}},
    ],
)  # fmt: skip
def test_a_token_with_a_wrong_claim_counts_for_nobody(changes):
    with pytest.raises(UnauthenticatedError):
        identify(**changes)


def test_clocks_may_differ_by_the_leeway_and_no_more():
    assert identify(exp=991).ends == 1_001.0
    assert identify(nbf=1_010, iat=1_010).name == "ann"
    with pytest.raises(UnauthenticatedError, match="has expired"):
        identify(exp=990)
    with pytest.raises(UnauthenticatedError, match=r"does not count yet \(nbf\)"):
        identify(nbf=1_010.5)


def test_one_audience_of_several_is_enough():
    assert identify(aud=["x", "broker"]).name == "ann"


def test_a_claim_may_lie_within_objects_or_have_dots_in_its_name():
    nested = with_(principal="user.name", roles="realm_access.roles")
    assert identify(nested, user={"name": "bob"}, realm_access={"roles": ["boss"]})[:2] == ("bob", ("boss",))
    dotted = with_(roles="https://shop.example/roles")
    assert identify(dotted, **{"https://shop.example/roles": ["shop"]}).roles == ("shop",)
    with pytest.raises(UnauthenticatedError):
        identify(nested, user="bob")


def test_roles_are_a_list_or_words_of_a_text_and_unknown_ones_give_nothing():
    assert identify(roles="shop offline_access boss").roles == ("boss", "shop")
    assert identify(roles=["offline_access"]).roles == ()
    assert identify(roles=...).roles == ()


def test_nobody_is_an_admin_because_an_issuer_calls_somebody_so():
    assert identify(roles=["admin", "shop"]).roles == ("shop",)
    allowed = with_(role_names={"broker-admins": ("admin",)})
    assert identify(allowed, roles=["broker-admins"]).roles == ("admin",)
    assert identify(allowed, roles=["admin"]).roles == ()


def test_names_of_roles_are_translated_and_everybody_has_the_default_ones():
    issuer = with_(role_names={"staff": ("shop", "boss"), "shop": ()}, default_roles=("shop",))
    assert identify(issuer, roles=["staff"]).roles == ("boss", "shop")
    assert identify(issuer, roles=["shop"]).roles == ("shop",)
    assert identify(with_(role_names={"shop": ()}), roles=["shop"]).roles == (), "translated to nothing"


def test_a_prefix_keeps_the_names_of_issuers_apart():
    assert identify(with_(prefix="company:")).name == "company:ann"
    with pytest.raises(UnauthenticatedError):
        identify(with_(prefix="company:"), sub="x" * 193)


@given(
    st.dictionaries(
        st.sampled_from(["iss", "aud", "exp", "nbf", "iat", "sub", "roles"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.text(max_size=3), max_size=2) | st.just({}),
    )
)  # fmt: skip
def test_whatever_the_claims_are_somebody_is_named_or_it_is_said_why_not(changes):
    try:
        found = identify(**changes)
    except UnauthenticatedError:
        return
    assert found.name and found.ends > 1_000 and set(found.roles) <= set(KNOWN)
