from __future__ import annotations

import base64
import hashlib
import hmac
import json

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.service.errors import UnauthenticatedError
from tamis.service.issuers import verifying
from tamis.service.issuers.keys import KeySet
from tamis.service.issuers.verifying import Issuers
from tamis.service.settings import Issuer, Role, Settings

from .provider import EC_KEY, ED_KEY, OTHER_RSA_KEY, RSA_KEY, jwk, key_set, signed

SECRET_BYTES = bytes(range(64))
SECRET = {"kty": "oct", "kid": "secret", "k": base64.urlsafe_b64encode(SECRET_BYTES).decode().rstrip("=")}
KEYS = key_set(jwk(RSA_KEY, "one"), jwk(EC_KEY, "two"), jwk(ED_KEY, "three"), SECRET)
CLAIMS = {"iss": "https://id.example", "aud": "tamis", "exp": 2_000, "sub": "ann", "roles": ["shop"]}
ALL = ("RS256", "PS256", "ES256", "EdDSA", "HS256")


class Clock:
    def __init__(self, now=1_000.0):
        self.now = now

    def __call__(self):
        return self.now


def issuers(*algorithms, clock=None, document=KEYS):
    issuer = Issuer(
        issuer="https://id.example", audience=("tamis",), algorithms=algorithms or ("RS256",), keys="keys.json"
    )
    made = Issuers(Settings(roles={"shop": Role(receive="TRUE")}, issuers={"shop": issuer}), now=clock or Clock())
    made._sources["https://id.example"].keys = KeySet.read(document, "keys.json")
    return made


def part(content):
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def forged(header, claims=CLAIMS, signature=b""):
    return f"{part(header)}.{part(claims)}.{part(signature)}"


def with_hmac(header, secret, claims=CLAIMS):
    signed_part = f"{part(header)}.{part(claims)}"
    return f"{signed_part}.{part(hmac.digest(secret, signed_part.encode(), hashlib.sha256))}"


def test_a_token_is_verified_by_each_algorithm_that_the_settings_pin():
    pairs = [
        (RSA_KEY, "RS256", "one"), (RSA_KEY, "PS256", "one"), (EC_KEY, "ES256", "two"), (ED_KEY, "EdDSA", "three"),
        (SECRET_BYTES, "HS256", "secret"),
    ]  # fmt: skip
    for key, algorithm, kid in pairs:
        token = signed(CLAIMS, key, algorithm, kid)
        assert issuers(*ALL).identity_of(token).name == "ann"
        others = [each for each in ALL if each != algorithm]
        with pytest.raises(UnauthenticatedError, match="the token is signed by"):
            issuers(*others).identity_of(token)
    assert issuers().identity_of(signed(CLAIMS, kid=None)).name == "ann", "it need not name its key"


def test_a_signature_of_another_key_is_refused():
    for token in (signed(CLAIMS, OTHER_RSA_KEY), signed(CLAIMS, OTHER_RSA_KEY, kid=None)):
        with pytest.raises(UnauthenticatedError, match="signature of the token is wrong"):
            issuers().identity_of(token)


def test_a_token_that_was_changed_is_refused():
    header, claims, signature = signed(CLAIMS).split(".")
    richer = part({**CLAIMS, "roles": ["shop", "admin"], "sub": "bob"})
    for token in (f"{header}.{richer}.{signature}", f"{header}.{claims}.{signature[:-4]}", f"{header}.{claims}."):
        with pytest.raises(UnauthenticatedError):
            issuers().identity_of(token)


@pytest.mark.parametrize(
    "algorithm", ["none", "None", "NONE", "nOnE", "", "RS", "HS256", "RS1", "ES256K", None, 7, ["RS256"]]
)
def test_no_algorithm_but_those_of_the_settings_counts_whatever_a_token_says(algorithm):
    for signature in (b"", b"x"):
        with pytest.raises(UnauthenticatedError):
            issuers().identity_of(forged({"alg": algorithm, "kid": "one"}, signature=signature))


def test_a_public_key_is_never_taken_for_a_shared_secret():
    """The confusion of algorithms: what everybody knows, the public key, signs by HMAC."""
    public = RSA_KEY.public_key()
    written = [
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.PEM, PublicFormat.PKCS1),
        json.dumps(jwk(RSA_KEY, "one")).encode(), jwk(RSA_KEY)["n"].encode(), b"",
    ]  # fmt: skip
    for secret in written:
        token = with_hmac({"alg": "HS256", "kid": "one", "typ": "JWT"}, secret)
        for pinned in (("RS256",), ALL):
            with pytest.raises(UnauthenticatedError):
                issuers(*pinned).identity_of(token)


@pytest.mark.parametrize(
    "kid",
    ["two", "none", "", "../../../dev/null", "one' OR '1'='1", "one\x00", "ONE", "http://127.0.0.1/keys", "é" * 50],
)
def test_a_name_of_a_key_is_only_compared(kid):
    with pytest.raises(UnauthenticatedError):
        issuers().identity_of(signed(CLAIMS, kid=kid))
    for secret in (b"", b"\x00", SECRET_BYTES):
        with pytest.raises(UnauthenticatedError):
            issuers(*ALL).identity_of(with_hmac({"alg": "HS256", "kid": kid}, secret))


@pytest.mark.parametrize("kid", [7, ["one"], {"a": 1}, True])
def test_a_name_of_a_key_is_a_text(kid):
    with pytest.raises(UnauthenticatedError):
        issuers().identity_of(forged({"alg": "RS256", "kid": kid}, signature=b"x"))


def test_keys_that_a_token_brings_or_points_to_are_not_looked_at():
    own = jwk(OTHER_RSA_KEY, "one")
    for header in ({"jwk": own}, {"jku": "http://127.0.0.1:1/keys"}, {"x5u": "http://127.0.0.1:1/"}, {"x5c": ["AA"]}):
        with pytest.raises(UnauthenticatedError, match="signature of the token is wrong"):
            issuers().identity_of(signed(CLAIMS, OTHER_RSA_KEY, **header))


def test_a_token_for_something_else_is_refused():
    for header in (
        {"typ": "logout+jwt"},
        {"typ": "dpop+jwt"},
        {"typ": 7},
        {"crit": ["b64"], "b64": True},
        {"crit": []},
    ):
        with pytest.raises(UnauthenticatedError):
            issuers().identity_of(forged({"alg": "RS256", "kid": "one", **header}, signature=b"x"))
        if "b64" not in header and header.get("typ") != 7:
            with pytest.raises(UnauthenticatedError, match="for something else"):
                issuers().identity_of(signed(CLAIMS, **header))
    assert issuers().identity_of(signed(CLAIMS, typ="at+jwt")).name == "ann"


def test_a_token_of_an_unknown_issuer_is_refused_before_anything_is_verified():
    with pytest.raises(UnauthenticatedError, match="issuer that the settings do not name"):
        issuers().identity_of(signed({**CLAIMS, "iss": "https://evil.example"}))


@pytest.mark.parametrize(
    "token",
    [
        "..",
        "a.b.c",
        "e30.e30.",
        "e30.e30.e30",
        "W10.W10.W10",
        "bnVsbA.bnVsbA.AA",
        "é.é.é",
        "a" * 8_200 + ".b.c",
        "a.b.c.d.e",
    ],
)
def test_what_is_no_token_is_refused(token):
    with pytest.raises(UnauthenticatedError):
        issuers().identity_of(token)


@given(st.binary(max_size=40), st.binary(max_size=40), st.binary(max_size=20))
def test_no_bytes_do_anything_but_be_refused(header, claims, signature):
    with pytest.raises(UnauthenticatedError):
        MADE.identity_of(f"{part(header)}.{part(claims)}.{part(signature)}")


@given(st.integers(0, 10_000), st.integers(1, 255))
@settings(max_examples=200)
def test_a_token_with_any_byte_changed_is_refused_or_says_the_same(place, change):
    """Of base64 the last letter has bits that stand for nothing."""
    place %= len(TOKEN)
    changed = TOKEN[:place] + chr((ord(TOKEN[place]) ^ change) & 0x7F) + TOKEN[place + 1 :]
    try:
        found = MADE.identity_of(changed)
    except UnauthenticatedError:
        return
    assert (found.name == "ann" and place == len(TOKEN) - 1) or changed == TOKEN


MADE, TOKEN = issuers(*ALL), signed(CLAIMS)


def test_a_verified_token_is_remembered_until_it_ends(monkeypatch):
    clock, verified = Clock(), []
    made = issuers(clock=clock)
    real = verifying._payload
    monkeypatch.setattr(verifying, "_payload", lambda *arguments: verified.append(1) or real(*arguments))
    for _ in range(3):
        assert made.identity_of(TOKEN).ends == 2_030.0
    assert len(verified) == 1
    clock.now = 2_030.0
    with pytest.raises(UnauthenticatedError, match="has expired"):
        made.identity_of(TOKEN)


def test_no_more_tokens_are_remembered_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(verifying, "REMEMBERED", 3)
    made = issuers()
    tokens = [signed({**CLAIMS, "jti": number}) for number in range(6)]
    for token in (*tokens, *tokens):
        assert made.identity_of(token).name == "ann"
        assert len(made._remembered) <= 3


def test_the_edition_changes_when_a_token_ends_and_when_keys_are_others():
    clock = Clock()
    made = issuers(clock=clock)
    made.identity_of(TOKEN)
    made.identity_of(signed({**CLAIMS, "exp": 1_500.25}))
    before = made.edition(clock.now)
    clock.now = 1_530.0
    assert made.edition(clock.now) == before
    clock.now = 1_531.0
    after = made.edition(clock.now)
    assert after != before
    clock.now = 2_030.0
    assert made.edition(clock.now) != after
    source = made._sources["https://id.example"]
    after, source.edition = made.edition(clock.now), source.edition + 1
    assert made.edition(clock.now) != after


def test_keys_that_are_gone_count_for_no_token_that_was_verified_with_them():
    made = issuers()
    made.identity_of(TOKEN)
    source = made._sources["https://id.example"]
    source.keys, source.edition = KeySet.read(key_set(jwk(OTHER_RSA_KEY, "next")), "keys.json"), source.edition + 1
    with pytest.raises(UnauthenticatedError, match="has no key 'one'"):
        made.identity_of(TOKEN)


def test_the_token_of_the_library_is_what_ours_reads():
    assert (
        jwt.decode(TOKEN, RSA_KEY.public_key(), ["RS256"], audience="tamis", options={"verify_exp": False})["sub"]
        == "ann"
    )
