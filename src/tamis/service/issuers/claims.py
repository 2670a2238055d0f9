"""Who does a token stand for, and until when? Its claims (RFC 7519), read by the settings of its issuer.

The signature is verified before. What is checked here: that the token is of this issuer, for this broker (`aud`), and
of now (`exp`, `nbf`, `iat`, with some leeway for clocks that differ).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.service.errors import UnauthenticatedError
from tamis.service.settings import ADMIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tamis.service.settings import Issuer

LONGEST_NAME = 200
_LATEST_S = 253_402_300_800.0
"""The year 10000: what ends later never ends, and was not meant."""


class TokenOwner(NamedTuple):
    """Who it is, by the word of an issuer."""

    name: str
    roles: tuple[str, ...]
    ends: float
    """When the token ends, in seconds since 1970, with the leeway."""


def identity(claims: Mapping[str, Any], issuer: Issuer, known_roles: Iterable[str], now: float) -> TokenOwner:
    """Return who a token with these claims stands for; raise an `UnauthenticatedError` if it counts for nobody.

    >>> from tamis.service.settings import Issuer
    >>> shop = Issuer(issuer="https://id.example", audience=("tamis",), role_names={"staff": ("shop",)})
    >>> claims = {"iss": "https://id.example", "aud": "tamis", "exp": 2_000, "sub": "ann", "roles": ["staff", "x"]}
    >>> identity(claims, shop, ["shop"], now=1_000.0)
    TokenOwner(name='ann', roles=('shop',), ends=2030.0)
    >>> identity(claims, shop, ["shop"], now=2_030.0)
    Traceback (most recent call last):
        ...
    tamis.service.errors.UnauthenticatedError: the token has expired; expected a new one from https://id.example
    """
    leeway = float(issuer.leeway)
    renewed = f"a new one from {issuer.issuer}"
    if claims.get("iss") != issuer.issuer:
        raise UnauthenticatedError("the token is of another issuer", issuer.issuer)
    if not any(audience in issuer.audience for audience in _texts(claims, "aud")):
        raise UnauthenticatedError("the token is not for this broker", f"aud {' or '.join(issuer.audience)}")
    ends = _time(claims, "exp")
    if ends is None:
        raise UnauthenticatedError("the token never ends", "the claim exp")
    if ends + leeway <= now:
        raise UnauthenticatedError("the token has expired", renewed)
    for name in ("nbf", "iat"):
        begins = _time(claims, name)
        if begins is not None and begins - leeway > now:
            raise UnauthenticatedError(f"the token does not count yet ({name})", renewed)
    return TokenOwner(_name(claims, issuer), _roles(claims, issuer, known_roles), ends + leeway)


def _name(claims: Mapping[str, Any], issuer: Issuer) -> str:
    said = _claim(claims, issuer.principal)
    name = f"{issuer.prefix}{said}"
    if not isinstance(said, str) or not said or not name.isprintable() or len(name) > LONGEST_NAME:
        raise UnauthenticatedError(
            f"the claim {issuer.principal} does not name anybody", f"a printable text of at most {LONGEST_NAME}"
        )
    return name


def _roles(claims: Mapping[str, Any], issuer: Issuer, known_roles: Iterable[str]) -> tuple[str, ...]:
    """Return the roles that the broker knows. That of an admin counts only where the settings name what gives it.

    Many issuers call somebody an admin who administers something else.
    """
    roles = set(issuer.default_roles)
    for said in _texts(claims, issuer.roles):
        roles.update(issuer.role_names.get(said, (said,) if said != ADMIN else ()))
    return tuple(sorted(roles & {*known_roles, ADMIN}))


def _claim(claims: Mapping[str, Any], path: str) -> Any:
    """Return a claim by its name, or by names with dots between them, from the outside in; None if it is absent."""
    if path in claims:
        return claims[path]
    value: Any = claims
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _texts(claims: Mapping[str, Any], path: str) -> list[str]:
    """Return a claim that is a list of texts, or one text: `aud` is one, `scope` has several with blanks between."""
    value = _claim(claims, path)
    if value is None:
        return []
    if isinstance(value, str):
        return [value] if path == "aud" else value.split()
    if isinstance(value, list) and all(isinstance(member, str) for member in value):
        return value
    raise UnauthenticatedError(f"the claim {path} cannot be read", "a text, or a list of texts")


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LATEST_S:
        raise UnauthenticatedError(f"the claim {name} is not a time", "seconds since 1970")
    return float(value)
