"""With which key was a token signed? The key set of an issuer (JWKS, RFC 7517).

A token names its key (`kid`) and its algorithm, and both come from whoever made the token. So the algorithm must be one
that the settings pin for the issuer, and the key must be of the kind that the algorithm needs: an RSA key never checks
an HMAC, where the public key would be taken for a shared secret. Addresses of keys in the header of a token (`jku`,
`x5u`) and keys in it (`jwk`) are never looked at.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import jwt
import msgspec
from jwt.algorithms import get_default_algorithms

from tamis.service.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

KEYS_MOST = 100
"""An issuer has a handful; each candidate costs a verification."""
LEAST_RSA_BITS = 2_048
LEAST_SECRET_BYTES = 32
FAMILIES = {
    "RS256": ("RSA", ""), "RS384": ("RSA", ""), "RS512": ("RSA", ""),
    "PS256": ("RSA", ""), "PS384": ("RSA", ""), "PS512": ("RSA", ""),
    "ES256": ("EC", "P-256"), "ES384": ("EC", "P-384"), "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", ""),
    "HS256": ("oct", ""), "HS384": ("oct", ""), "HS512": ("oct", ""),
}  # fmt: skip
"""By algorithm: the kind of its keys, and their curve."""
_READERS = {"RSA": "RS256", "EC": "ES256", "OKP": "EdDSA", "oct": "HS256"}
"""By kind of key: an algorithm of the library that reads such keys."""
_EXPECTED = 'a key set (JWKS): {"keys": [{"kty": "RSA", "kid": …, "n": …, "e": …}, …]}'


class IssuerKey(NamedTuple):
    """A key that signatures are verified with."""

    kid: str | None
    kind: str
    curve: str
    algorithm: str | None
    """The only algorithm that it is for, if the issuer says so."""
    key: Any


class KeySet:
    """The keys of an issuer that can be used; those that cannot are skipped, as RFC 7517 asks.

    >>> keys = KeySet.read(b'{"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "a", '
    ...                    b'"x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}', "keys.json")
    >>> [key.kid for key in keys.candidates("EdDSA", "a")], keys.candidates("RS256", "a"), keys.knows("b")
    (['a'], [], False)
    """

    def __init__(self, keys: tuple[IssuerKey, ...]) -> None:
        self._keys = keys
        self._kids = frozenset(key.kid for key in keys)

    @classmethod
    def read(cls, document: bytes, source: str, is_public: bool = False) -> KeySet:
        """Return the keys in a document; raise a `SettingsError` if there is none that can be used.

        `is_public` is for documents that anybody can read: a shared secret in one is none.
        """
        try:
            members = msgspec.json.decode(document, type=dict[str, Any])["keys"]
            entries = msgspec.convert(members, type=list[dict[str, Any]])
        except (ValueError, KeyError, RecursionError):
            raise SettingsError(f"{source} is not a key set", _EXPECTED) from None
        if len(entries) > KEYS_MOST:
            raise SettingsError(f"{source} has {len(entries)} keys", f"at most {KEYS_MOST}")
        if any("d" in entry for entry in entries):
            raise SettingsError(f"{source} holds a private key, which is for the issuer alone", "public keys")
        reasons: list[str] = []
        keys = tuple(_usable(entries, is_public, reasons))
        if not keys:
            raise SettingsError(
                f"{source} has no key that can be used ({'; '.join(reasons) or 'it is empty'})", _EXPECTED
            )
        return cls(keys)

    def knows(self, kid: str | None) -> bool:
        """Whether there is a key of this name. A token that names none may be of any of them."""
        return kid is None or kid in self._kids

    def candidates(self, algorithm: str, kid: str | None) -> list[IssuerKey]:
        """Return the keys that a token of this header may be signed with."""
        kind, curve = FAMILIES[algorithm]
        return [
            key
            for key in self._keys
            if (key.kind, key.curve) == (kind, curve)
            and key.algorithm in (None, algorithm)
            and (kid is None or key.kid == kid)
        ]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeySet) and self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash(self._kids)

    def _facts(self) -> list[tuple[Any, ...]]:
        return [
            (
                *key[:4],
                key.key
                if isinstance(key.key, bytes)
                else key.key.public_bytes_raw()
                if key.kind == "OKP"
                else key.key.public_numbers(),
            )
            for key in self._keys
        ]


def _usable(entries: list[dict[str, Any]], is_public: bool, reasons: list[str]) -> Iterator[IssuerKey]:
    for number, entry in enumerate(entries):
        try:
            yield _read(entry, is_public)
        except (ValueError, TypeError, jwt.PyJWTError) as error:
            reasons.append(f"key {number}: {error!s:.100}")


def _read(entry: dict[str, Any], is_public: bool) -> IssuerKey:
    kind, kid, algorithm = entry.get("kty"), entry.get("kid"), entry.get("alg")
    if not isinstance(kind, str) or kind not in _READERS:
        raise ValueError(f"its kind {kind!r:.40} is not known")
    if kid is not None and not isinstance(kid, str):
        raise ValueError("its kid is not a text")
    if entry.get("use", "sig") != "sig" or "verify" not in entry.get("key_ops", ["verify"]):
        raise ValueError("it is not for signatures")
    if algorithm is not None and (not isinstance(algorithm, str) or FAMILIES.get(algorithm, ("",))[0] != kind):
        raise ValueError(f"its algorithm {algorithm!r:.40} is not one of {kind}")
    if kind == "oct" and is_public:
        raise ValueError("it is a shared secret, and anybody could fetch it there")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of short keys, which are refused below
        key = get_default_algorithms()[_READERS[kind]].from_jwk(entry)
    curve = str(entry.get("crv")) if kind == "EC" else ""
    if kind == "RSA" and key.key_size < LEAST_RSA_BITS:
        raise ValueError(f"it has {key.key_size} bits, fewer than {LEAST_RSA_BITS}")
    if kind == "oct" and len(key) < LEAST_SECRET_BYTES:
        raise ValueError(f"it has {len(key)} bytes, fewer than {LEAST_SECRET_BYTES}")
    return IssuerKey(kid, kind, curve, algorithm, key)
