"""What may a peer say? Validation of messages.

A broker looks at the whole of a message before it does anything. What is no message, or not for this peer to say,
raises a `MessageError`, and nothing has happened. A filter that names what the schema does not have, or that the
matching algorithm does not take, is a client's mistake: it is refused with the reason, and the other filters of the
message count (`RoutingTable.objection`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.language.expressions import Expression, is_condition
from tamis.routing.errors import MessageError
from tamis.routing.kinds import KINDS, NUMBERS, names_said_by
from tamis.routing.messages import (
    INCOMPLETE,
    Advertise,
    Ask,
    CellInterest,
    Deposit,
    Deposited,
    Entry,
    Flooded,
    Gossiped,
    HandOver,
    Hello,
    Key,
    Message,
    Notified,
    Passed,
    Publish,
    Relayed,
    Subscribe,
    TakeBack,
    TakenOver,
    Unadvertise,
    Unsubscribe,
    Withdraw,
)
from tamis.topk.ranked import Ranked

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_LEASE_S = 1e12
"""Thirty thousand years; a sum with the time stays a number."""
HIGHEST = 2**31 - 1
"""The highest priority, as of a `Matcher`."""
MOST_HOPS = 1_000_000
"""More links no event crosses."""
MOST_PLACES = 1024
"""The finest grid has so many cells along an axis."""
_LAST_S = 1e12
"""No event is published later, whatever a clock counts from."""
_LAST_NUMBER = 2**53
"""So many events no broker takes."""


def check_message(message: Any, sender: str = "") -> None:
    """Raise an error unless this is a message, and one that its sender may send: a "client", a "neighbour", or either.

    >>> from tamis.routing import ResumeFiltering
    >>> check_message(ResumeFiltering(), "client")
    Traceback (most recent call last):
        ...
    tamis.routing.errors.MessageError: a client said ResumeFiltering; expected Subscribe, Unsubscribe, Advertise, ...
    """
    number = NUMBERS.get(type(message))
    if number is None:
        names = ", ".join(kind.message.__name__ for kind in KINDS)
        raise MessageError(f"{message!r:.80} is not a message", f"one of {names}")
    if sender and sender not in KINDS[number].said_by:
        raise MessageError(f"a {sender} said {type(message).__name__}", names_said_by(sender))
    match message:
        case Passed(key, _, at, origin, passed_number, attempt):
            check_keys((key,))
            _check_moment(at)
            if not isinstance(origin, str) or not origin:
                raise MessageError(
                    f"an event of the broker {origin!r:.40}", "the name of the broker that took it first"
                )
            if not _is_number(passed_number):
                raise MessageError(f"an event numbered {passed_number!r:.40}", "a whole number, 0 or more")
            if attempt not in (1, 2) or isinstance(attempt, bool):
                raise MessageError(f"attempt {attempt!r:.40} of an event", "1 or 2")
        case Publish(key):
            check_keys((key,))
        case Withdraw(key, at):
            check_keys((key,))
            if sender == "client" and at is not None:
                raise MessageError("a client says when its event is withdrawn", "nothing: its broker goes by its clock")
            if sender == "neighbour" or at is not None:
                _check_moment(at)
        case Ask(key, filter_):
            check_keys((key,))
            _check_filter(filter_)
        case Hello(entries, advertisements, schema, lease_s, part, more, functions):
            _check_versions(functions)
            _check_lease(lease_s)
            if not _is_count(part):
                raise MessageError(f"part {part!r:.40} of a Hello", f"a whole number from 0 to {MOST_HOPS}")
            if not isinstance(more, bool):
                raise MessageError(
                    f"a Hello whose field more is {more!r:.40}", "true or false: does another part follow?"
                )
            _check_entries(entries, sender, may_rank=False)
            _check_entries(advertisements, sender, may_rank=False)
            if not isinstance(schema, str):
                raise MessageError(f"a schema's digest of {schema!r:.40}", "a text")
        case Subscribe(entries, keys, lease_s) | Advertise(entries, keys, lease_s):
            _check_entries(entries, sender, may_rank=isinstance(message, Subscribe))
            check_keys(keys)
            _check_lease(lease_s)
            if sender == "neighbour" and lease_s is not None:
                raise MessageError("a neighbour leases single filters", "a lease of the whole link, in its Hello")
        case Unsubscribe(keys, entries) | Unadvertise(keys, entries):
            check_keys(keys)
            _check_entries(entries, sender, may_rank=isinstance(message, Unsubscribe))
        case (
            Flooded()
            | Relayed()
            | Notified()
            | Gossiped()
            | Deposit()
            | TakeBack()
            | CellInterest()
            | HandOver()
            | TakenOver()
        ):
            _check_between_nodes(message)


def _check_between_nodes(message: Message) -> None:
    match message:
        case Flooded(origin, version, since, entries, removed):
            _check_names(origin)
            _check_numbers(version, since)
            if since >= version:
                raise MessageError(f"version {version} follows version {since}", "a smaller one, or 0")
            _check_entries(entries, "neighbour", may_rank=False)
            check_keys(removed)
        case Relayed(target, inner):
            if isinstance(target, str):
                _check_names(target)
            elif not isinstance(target, tuple) or not target:
                raise MessageError(f"a message for {target!r:.40}", "the name of a node, or the place of a cell")
            else:
                _check_numbers(*target)
            if not isinstance(inner, Deposit | TakeBack | Passed):
                raise MessageError(f"{type(inner).__name__} is relayed", "a Deposit, a TakeBack or an event")
            check_message(inner)
        case Notified(publication, wanted):
            _check_passed(publication)
            for owner in wanted:
                if len(owner) != 2:
                    raise MessageError(f"a subscription {owner!r:.60}", "a client and a key")
                _check_names(owner[0])
                check_keys(owner[1:])
        case Gossiped(publication, rounds, is_certain):
            _check_passed(publication)
            if not _is_count(rounds):
                raise MessageError(f"{rounds!r:.40} rounds", f"a whole number from 0 to {MOST_HOPS}")
            if not isinstance(is_certain, bool):
                raise MessageError(f"an event whose field is_certain is {is_certain!r:.40}", "true or false")
        case Deposit(home, client, key, wanted, at, number):
            _check_subscription(home, client, key, wanted)
            _check_moment(at)
            _check_numbers(number)
        case TakeBack(home, client, key, number):
            _check_names(home, client)
            check_keys((key,))
            _check_numbers(number)
        case CellInterest(peer, version, area):
            _check_names(peer)
            _check_numbers(version)
            _check_area(area)
        case HandOver(zone, subscriptions, interests, recent, kept):
            _check_zone(zone)
            for each in subscriptions:
                _check_deposited(each)
            for interest in interests:
                if not isinstance(interest, tuple) or len(interest) != 3:
                    raise MessageError(f"an interest {interest!r:.60}", "a peer, a version and cells")
                check_message(CellInterest(*interest))
            for passed, served in recent:
                _check_passed(passed)
                _check_names(*served)
            for event in kept:
                _check_passed(event)
        case TakenOver(zone):
            _check_zone(zone)


def _check_names(*names: Any) -> None:
    for name in names:
        if not isinstance(name, str) or not name:
            raise MessageError(f"the name {name!r:.40}", "a text that is not empty")


def _check_numbers(*numbers: Any) -> None:
    for number in numbers:
        if not _is_number(number):
            raise MessageError(f"the number {number!r:.40}", "a whole number, 0 or more")


def _check_passed(publication: Any) -> None:
    if not isinstance(publication, Passed):
        raise MessageError(f"{publication!r:.60} is not an event on its way", "a Passed")
    check_message(publication)


def _check_subscription(home: Any, client: Any, key: Any, wanted: Any) -> None:
    _check_names(home, client)
    check_keys((key,))
    if not isinstance(wanted, Ranked):
        _check_filter(wanted)


def _check_deposited(given: Any) -> None:
    if not isinstance(given, Deposited):
        raise MessageError(f"{given!r:.60} is not a subscription that moves", "a Deposited")
    _check_subscription(given.home, given.client, given.key, given.wanted)
    _check_numbers(given.number)
    for each in given.held:
        _check_passed(each)


def _check_area(area: Any) -> None:
    for box in area:
        if not isinstance(box, tuple) or not box or len(box) != len(area[0]):
            raise MessageError(f"the cells {box!r:.60}", "a set of places for each axis")
        for side in box:
            if not isinstance(side, int) or isinstance(side, bool) or not 0 < side < 1 << MOST_PLACES:
                raise MessageError(
                    f"the places {side!r:.40}", "a whole number whose bits are places, not all of them 0"
                )


def _check_zone(zone: Any) -> None:
    match zone:
        case (tuple(low), tuple(high), depth) if low and len(low) == len(high) and _is_count(depth):
            if all(isinstance(x, float) and 0 <= x <= 1 for x in (*low, *high)):
                return
    raise MessageError(f"the zone {zone!r:.60}", "a lower and an upper corner within 0 and 1, and a depth")


def _check_versions(functions: Any) -> None:
    names = []
    for each in functions:
        match each:
            case (str(name), int(version)) if not isinstance(version, bool) and version >= 0:
                names.append(name)
            case _:
                raise MessageError(f"a function {each!r:.60}", "a name and a version")
    if names != sorted(set(names)):
        raise MessageError(f"the functions {names!r:.80}", "each function once, in the order of names")


def entries_of(message: Message) -> tuple[Entry, ...]:
    """Return all filters that a message tells of."""
    match message:
        case Hello(entries, advertisements):
            return entries + advertisements
        case Subscribe(entries) | Advertise(entries) | Unsubscribe(_, entries) | Unadvertise(_, entries):
            return entries
    return ()


def _check_entries(entries: Iterable[Any], sender: str, *, may_rank: bool) -> None:
    for each in entries:
        if not isinstance(each, Entry):
            raise MessageError(f"{each!r:.80} is not an entry", "a key and a filter")
        if isinstance(each.filter, Ranked):
            if not may_rank or sender == "neighbour":
                who = "a neighbour" if sender == "neighbour" else "a greeting or an advertisement"
                raise MessageError(
                    f"{who} said {str(each.filter)!r:.80}", "a filter; only clients subscribe to the best k"
                )
        else:
            _check_filter(each.filter)
        if sender == "neighbour" and not isinstance(each.key, int):
            raise MessageError(f"a neighbour calls a filter {each.key!r:.60}", "a number that grows with every filter")
        if sender == "neighbour" and isinstance(each.key, int) and each.key < INCOMPLETE:
            raise MessageError(f"a neighbour calls a filter {each.key}", f"a number from {INCOMPLETE} on")
        if not is_key(each.key):
            raise _no_key(each.key)
        if not _is_share(each.imperfection):
            raise MessageError(f"an imperfection of {each.imperfection!r:.40}", "a share from 0 to 1")
        if sender == "client" and each.imperfection:
            raise MessageError("a client's filter is imperfect", "what the client wants, and no imperfection")
        if not _is_count(each.hops):
            raise MessageError(f"a filter of {each.hops!r:.40} hops", f"a whole number from 0 to {MOST_HOPS}")
        if sender == "client" and each.hops:
            raise MessageError("a client's filter has come over links", "what the client wants, and no hops")
        if not _is_priority(each.priority):
            raise MessageError(f"a filter of the priority {each.priority!r:.40}", "an integer of 32 bits")
        if sender == "neighbour" and each.priority:
            raise MessageError("a neighbour's filter has a priority", "none: they stay with the client's broker")


def _check_filter(given: Any) -> None:
    if not isinstance(given, Expression) or not is_condition(given):
        raise MessageError(f"{given!r:.80} is not a filter", "an expression that is true or not")


def check_keys(keys: Iterable[Any]) -> None:
    """Raise an error unless all of these are keys."""
    for key in keys:
        if not is_key(key):
            raise _no_key(key)


def _no_key(given: Any) -> MessageError:
    return MessageError(f"{given!r:.80} is not a key", "a whole number or a text")


def is_key(value: Any) -> bool:
    """May this be what a peer calls a filter, or a publisher an event?"""
    return isinstance(value, Key) and not isinstance(value, bool)


def _check_lease(lease_s: Any) -> None:
    if lease_s is not None and not is_lease(lease_s):
        raise MessageError(f"a lease of {lease_s!r:.40}", f"seconds, more than 0, at most {LONGEST_LEASE_S:g}")


def is_lease(value: Any) -> bool:
    """Is this for how long something may be leased?"""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= LONGEST_LEASE_S


def _check_moment(at: Any) -> None:
    if isinstance(at, bool) or not isinstance(at, int | float) or not -_LAST_S <= at <= _LAST_S:
        raise MessageError(f"the time {at!r:.40}", f"a number of seconds, at most {_LAST_S:g}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LAST_NUMBER


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_priority(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -HIGHEST <= value <= HIGHEST


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_HOPS
