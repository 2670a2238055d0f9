from __future__ import annotations

import base64
import contextlib
import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import RSAAlgorithm

from tamis.service.errors import SettingsError
from tamis.service.issuers.keys import KEYS_MOST, KeySet

from .provider import EC_KEY, ED_KEY, OTHER_RSA_KEY, RSA_KEY, jwk, key_set

SECRET = {"kty": "oct", "kid": "s", "k": base64.urlsafe_b64encode(bytes(range(32))).decode().rstrip("=")}


def kids(keys, algorithm, kid=None):
    return [key.kid for key in keys.candidates(algorithm, kid)]


def test_a_key_is_for_algorithms_of_its_kind_only():
    keys = KeySet.read(key_set(jwk(RSA_KEY, "r"), jwk(EC_KEY, "e"), jwk(ED_KEY, "d"), SECRET), "a file")
    for algorithm, expected in (("RS256", "r"), ("PS512", "r"), ("ES256", "e"), ("EdDSA", "d"), ("HS256", "s")):
        assert kids(keys, algorithm) == [expected]
    assert kids(keys, "ES384") == [], "another curve"
    assert kids(keys, "HS256", "r") == [], "an RSA key is no shared secret"
    assert kids(keys, "RS256", "s") == []


def test_a_key_that_names_its_algorithm_is_for_no_other():
    keys = KeySet.read(key_set(jwk(RSA_KEY, "r", alg="RS512")), "a file")
    assert kids(keys, "RS512") == ["r"]
    assert kids(keys, "RS256") == []


def test_several_keys_of_one_name_are_all_tried():
    keys = KeySet.read(key_set(jwk(RSA_KEY, "r"), jwk(OTHER_RSA_KEY, "r"), jwk(OTHER_RSA_KEY, "x")), "a file")
    assert len(keys.candidates("RS256", "r")) == 2
    assert len(keys.candidates("RS256", None)) == 3


@pytest.mark.parametrize(
    "entry",
    [
        {"kty": "XYZ"}, {}, {"kty": 7}, {"kty": "RSA"}, {"kty": "RSA", "n": "!!", "e": "AQAB"}, {"kty": ["RSA"]},
        jwk(RSA_KEY, use="enc"), jwk(RSA_KEY, key_ops=["encrypt"]), jwk(RSA_KEY, alg="ES256"), jwk(RSA_KEY, alg="none"),
        jwk(RSA_KEY, alg="HS256"), jwk(RSA_KEY, alg=7), jwk(RSA_KEY, kid=7),
        RSAAlgorithm.to_jwk(rsa.generate_private_key(65_537, 1_024).public_key(), as_dict=True),
        {"kty": "oct", "k": "c2hvcnQ"}, {"kty": "oct", "k": ""},
        jwk(ec.generate_private_key(ec.SECP256K1())) | {"crv": "P-256"},
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}, {"kty": "OKP", "crv": "Ed25519", "x": "AA"},
    ],
)  # fmt: skip
def test_a_key_that_cannot_be_used_is_skipped_and_alone_it_is_an_error(entry):
    assert kids(KeySet.read(key_set(entry, jwk(EC_KEY, "e")), "a file"), "ES256") == ["e"]
    with pytest.raises(SettingsError, match="no key that can be used"):
        KeySet.read(key_set(entry), "a file")


def test_a_shared_secret_at_an_address_is_refused():
    assert kids(KeySet.read(key_set(SECRET), "a file"), "HS256") == ["s"]
    with pytest.raises(SettingsError, match="anybody could fetch it"):
        KeySet.read(key_set(SECRET), "an address", is_public=True)


def test_a_private_key_is_refused():
    private = json.loads(RSAAlgorithm.to_jwk(RSA_KEY))
    with pytest.raises(SettingsError, match="private key"):
        KeySet.read(key_set(jwk(EC_KEY), private), "a file")


@pytest.mark.parametrize(
    "document", [b"", b"[]", b"{}", b"null", b'{"keys": 7}', b'{"keys": [7]}', b"\xff", b"[" * 100_000, b'{"keys": {}}']
)
def test_what_is_no_key_set_is_refused(document):
    with pytest.raises(SettingsError):
        KeySet.read(document, "a file")


def test_a_key_set_is_small():
    with pytest.raises(SettingsError, match=f"at most {KEYS_MOST}"):
        KeySet.read(key_set(*[SECRET] * (KEYS_MOST + 1)), "a file")


def test_two_key_sets_are_equal_if_their_keys_are():
    def read(*entries):
        return KeySet.read(key_set(*entries), "a file")

    one = read(jwk(RSA_KEY, "r"), jwk(ED_KEY, "d"), SECRET)
    assert one == read(jwk(RSA_KEY, "r"), jwk(ED_KEY, "d"), SECRET)
    for other in (
        read(jwk(OTHER_RSA_KEY, "r"), jwk(ED_KEY, "d"), SECRET),
        read(jwk(RSA_KEY, "x"), jwk(ED_KEY, "d"), SECRET),
        read(jwk(RSA_KEY, "r")),
    ):
        assert one != other


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["kty", "n", "e", "k", "kid", "x", "crv", "alg"]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(st.lists(json_values, max_size=3))
def test_no_document_does_anything_but_give_keys_or_say_why_not(entries):
    with contextlib.suppress(SettingsError):
        keys = KeySet.read(json.dumps({"keys": entries}).encode(), "a file")
        assert keys.candidates("HS256", None) == [], "no secret of enough bytes is among them"
