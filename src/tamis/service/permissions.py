"""Who may do what? Roles whose permissions are filters.

A role says which events it may publish (patterns of source and type, and a filter), which it may receive (a filter) and
which subscribers it may use. What a principal may receive is decided when it subscribes, not when an event comes: its
filter is *restricted* by conjunction, so that matching sees one filter and nothing else, or it is *required* to be
covered by what is allowed, which `tamis.relations` proves. Several roles of one principal unite.

What no role says is not allowed. Without any roles, principals are what the `Authenticator` says: on loopback, admins.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from tamis.language.builder import any_of
from tamis.language.expressions import And, Attribute, Expression, Literal
from tamis.language.limits import Limits
from tamis.language.meaning import holds
from tamis.language.parser import parse
from tamis.language.rewrites.monotone import all_of
from tamis.relations import covers, example
from tamis.service.errors import BadRequestError, ForbiddenError
from tamis.service.settings import ADMIN
from tamis.standing import Change, Sequence, Step, interest
from tamis.standing.references import paths_of
from tamis.topk import Ranked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Set

    from tamis.language.schema import Schema
    from tamis.service.messages import Principal, Wanted
    from tamis.service.settings import Publishing, Role

NOTHING = Literal(False)
EVERYTHING = Literal(True)
EFFECTIVE_LIMITS = Limits(text_length=10_000_000, depth=1_000, nodes=1_000_000, list_length=10_000_000)
"""For reading what `effective` returned and somebody kept as a text; both parts were within their limits before."""
OWN = "tamis/"
"""How the names of the broker's own subscribers begin; nobody else may use them."""


class Permissions:
    """What principals may do, by their roles. Filters were checked when the settings were read.

    >>> from tamis.service.messages import Principal, Wanted
    >>> from tamis.service.settings import Role
    >>> permissions = Permissions({"shop": Role(receive="region = 'EU'")})
    >>> ann = Principal("ann", ("shop",))
    >>> print(permissions.effective(ann, Wanted("price < 20", parse("price < 20"))))
    price < 20 AND region = 'EU'
    >>> permissions.objection_to_publish(ann, {"source": "/x", "type": "order"})
    'ann may not publish anything'
    """

    def __init__(self, roles: Mapping[str, Role], schema: Schema | None = None) -> None:
        self._roles = dict(roles)
        self._schema = schema
        self._doors = {name: _Door(role.publish, schema) for name, role in roles.items() if role.publish is not None}
        self._received = {name: parse(role.receive, schema) for name, role in roles.items() if role.receive is not None}
        self._union = lru_cache(maxsize=1_000)(self._union_of)

    @property
    def roles(self) -> Set[str]:
        """The names of all roles there are, with the one that every broker with roles has."""
        return {*self._roles, ADMIN} if self._roles else set()

    def is_admin(self, principal: Principal) -> bool:
        """Whether it may do everything: by a role; where there are no roles at all, as the principal says.

        So a connection of the time before a reload has no more rights than a new one.
        """
        if not self._roles:
            return principal.is_admin
        return any(name == ADMIN or (name in self._roles and self._roles[name].admin) for name in principal.roles)

    def objection_to_publish(self, principal: Principal, record: Mapping[str, Any]) -> str | None:
        """Return why a principal may not publish an event; None if it may."""
        if self.is_admin(principal):
            return None
        doors = [self._doors[name] for name in principal.roles if name in self._doors]
        if not doors:
            return f"{principal.name} may not publish anything"
        if any(door.is_open_for(record) for door in doors):
            return None
        source, type_ = record.get("source"), record.get("type")
        filters = [str(door.where) for door in doors if door.where is not None and door.is_named(record)]
        reason = f", unless it matches {' or '.join(filters)}" if filters else ""
        return f"{principal.name} may not publish an event of source {source!r:.200} and type {type_!r:.200}{reason}"

    def receive(self, principal: Principal) -> Expression | None:
        """Return the filter of what a principal may see; None is for everything."""
        allowed = EVERYTHING if self.is_admin(principal) else self._union(principal.roles)
        return None if allowed == EVERYTHING else allowed

    def effective(self, principal: Principal, wanted: Wanted) -> Any:
        """Return what is matched for a subscription: what is wanted, as far as it is allowed.

        Raise a `ForbiddenError` if all roles that say what a principal may receive require that it asks for no more,
        and it is not proven that it does not.
        """
        allowed = self.receive(principal)
        if allowed is None:
            return wanted.filter
        if allowed == NOTHING:
            raise ForbiddenError(f"{principal.name} may not receive anything", "a role with 'receive'")
        modes = {self._roles[name].mode for name in principal.roles if name in self._received}
        if "restrict" in modes:
            return restricted(wanted.filter, allowed)
        needed = interest(wanted.filter)
        verdict = covers(allowed, needed, self._schema)
        if verdict.holds and verdict.proven:
            return wanted.filter
        event = example([needed], [allowed], self._schema)
        raise ForbiddenError(
            f"{wanted.text:.1000} asks for more than {principal.name} may receive"
            + (f", such as {_shown(event)}" if event is not None else ", or it is not proven that it does not"),
            f"a filter that is true only where this is: {allowed}",
        )

    def may_see(self, principal: Principal, filters: Iterable[Expression]) -> bool:
        """Whether everything that some filters match is proven to be allowed to a principal.

        For a subscriber that somebody else owns: its subscriptions were restricted to what its owner may see.
        """
        allowed = self.receive(principal)
        return allowed is None or all(self._is_within(filter_, allowed) for filter_ in filters)

    def _is_within(self, filter_: Expression, allowed: Expression) -> bool:
        if isinstance(filter_, And) and allowed in filter_.operands:
            return True  # restricted to just this
        verdict = covers(allowed, filter_, self._schema)
        return verdict.holds and verdict.proven

    def may_use(self, principal: Principal, subscriber: str, owner: str | None) -> bool:
        """Whether a principal may use a subscriber, or make it if it has no owner yet.

        Its own ones, those that bear its name (`ann`, `ann/phone`), and those whose names a role allows.
        """
        if subscriber.startswith(OWN):
            return False
        if self.is_admin(principal) or owner == principal.name:
            return True
        # Below a name with a slash in it (a URI of a certificate) lie names of others; only passing ones are its own.
        below = f"{principal.name}/passing-" if "/" in principal.name else f"{principal.name}/"
        if owner is None and (subscriber == principal.name or subscriber.startswith(below)):
            return True
        return any(fits(subscriber, self._roles[name].subscribers) for name in principal.roles if name in self._roles)

    def _union_of(self, roles: tuple[str, ...]) -> Expression:
        filters = list(dict.fromkeys(self._received[name] for name in roles if name in self._received))
        return EVERYTHING if EVERYTHING in filters else any_of(*filters)


def restricted(subscription: Any, allowed: Expression) -> Any:
    """Return a subscription of any kind, as far as events are allowed: it is as if there were no others.

    >>> from tamis.standing import parse_subscription
    >>> for text in ("TOP 1 BY p HALF LIFE 1 HOUR OVER 2 HOURS", "CHANGE TO p < 2", "SEQUENCE a THEN b WITHIN 1 HOUR"):
    ...     print(restricted(parse_subscription(text), parse("eu")))
    TOP 1 BY p ASC HALF LIFE 1 HOUR OVER 2 HOURS WHERE eu
    CHANGE TO p < 2 WHERE eu
    SEQUENCE a AND eu THEN b AND eu WITHIN 1 HOUR
    """
    match subscription:
        case Ranked(where=where):
            both = all_of([where, allowed])
            return Ranked(
                subscription.score, subscription.k, subscription.window, both, order=subscription.order,
                half_life=subscription.half_life_s,
            )  # fmt: skip
        case Change(where=where):
            to = {"of" if subscription.is_both_ways else "to": subscription.condition}
            return Change(
                **to, until=subscription.until, per=map(Attribute, subscription.per), where=all_of([where, allowed]),
                forget_after=subscription.forget_after,
            )  # fmt: skip
        case Sequence():
            names = {path[0] for path in paths_of(allowed)}
            for name in subscription.names:
                if name in names:
                    raise BadRequestError(
                        f"the step {name} of a sequence has the name of an attribute by which events are restricted",
                        "another name behind AS",
                    )
            steps = [
                Step(all_of([step.condition, allowed]), step.name, is_same=step.is_same, is_absent=step.is_absent)
                for step in subscription.steps
            ]
            return Sequence(
                steps, after=subscription.after, within=subscription.within, per=map(Attribute, subscription.per),
                taking=subscription.taking,
            )  # fmt: skip
    return And((subscription, allowed))


class _Door:
    """What a role may publish: patterns first, which are cheap, then the filter."""

    def __init__(self, publishing: Publishing, schema: Schema | None) -> None:
        self._sources = publishing.source or ("*",)
        self._types = publishing.type or ("*",)
        self.where = None if publishing.where is None else parse(publishing.where, schema)
        self._schema = schema

    def is_named(self, record: Mapping[str, Any]) -> bool:
        """Whether source and type fit."""
        source: Any = record.get("source")
        type_: Any = record.get("type")
        is_text = isinstance(source, str) and isinstance(type_, str)
        return is_text and fits(source, self._sources) and fits(type_, self._types)

    def is_open_for(self, record: Mapping[str, Any]) -> bool:
        """Whether the event may be published."""
        return self.is_named(record) and (self.where is None or holds(self.where, record, self._schema))


def fits(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name fits one of some patterns, in which only `*` is special: it stands for any characters.

    Between two stars the leftmost place is as good as any other, so nothing is tried twice. A regular expression would
    try all places, and who chooses names could keep it busy for years.

    >>> fits("/shop/7", ["/till", "/shop/*"]), fits("shop", ["*o*o*"])
    (True, False)
    """
    return any(_fits(name, pattern) for pattern in patterns)


def _fits(name: str, pattern: str) -> bool:
    first, *middle = pattern.split("*")
    if not middle:
        return name == first
    last = middle.pop()
    if not name.startswith(first):
        return False
    at = len(first)
    for part in middle:
        place = name.find(part, at)
        if place < 0:
            return False
        at = place + len(part)
    return len(name) - len(last) >= at and name.endswith(last)


def _shown(event: Mapping[str, Any]) -> str:
    return msgspec.json.encode(event, enc_hook=str).decode()[:1000]
