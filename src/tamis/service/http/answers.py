"""How is it said? Answers: JSON, and problem documents for everything that is refused.

An error is a problem document (RFC 9457, `application/problem+json`): `title`, `status`, `detail`, what was `expected`,
and for a mistake in a text `where` it stands (line and column), with the caret under it.

>>> from tamis import parse
>>> try: parse("price <")
... except LanguageError as error: problem = problem_of(error)
>>> problem.status, problem.detail, problem.where
(400, 'found the end of the text', Where(line=1, column=8))
>>> print(problem.caret)
  price <
         ^
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web
from msgspec import UNSET, Raw

from tamis.errors import LanguageError, LimitError, TamisError
from tamis.service import wire
from tamis.service.errors import ServiceError, TooManyError
from tamis.service.positions import Position
from tamis.service.starting_points import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tamis.service.messages import Delivery, Lost, SubscriberFacts
    from tamis.service.tellings import Told

PROBLEM = "application/problem+json"
_encode = msgspec.json.Encoder().encode


class Where(msgspec.Struct, frozen=True):
    """The place of a mistake in a text, counted from 1."""

    line: int
    column: int


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why something was refused, and what would be right."""

    title: str
    status: int
    detail: str
    expected: str = ""
    hint: str = ""
    where: Where | None = None
    caret: str = ""
    """The line of the text with the mistake, and a caret below it."""
    about: str = ""
    """Which of several texts it is about."""
    retry_s: float = 0.0
    """After how long it is worth trying again; 0 if it is not."""


def problem_of(error: TamisError) -> Problem:
    r"""Return the problem document of an error.

    It may quote what a client sent, and a header has bytes that are no text: they are written as escapes.

    >>> problem_of(ServiceError("this is not a name: \udcb5")).detail
    'this is not a name: \\udcb5'
    """
    problem = _problem(error)
    texts = {
        name: value.encode("utf-8", "backslashreplace").decode()
        for name, value in msgspec.structs.asdict(problem).items()
        if isinstance(value, str) and not value.isascii()
    }
    return msgspec.structs.replace(problem, **texts)


def _problem(error: TamisError) -> Problem:
    if isinstance(error, LanguageError):
        where = None if error.line is None or error.column is None else Where(error.line, error.column)
        return Problem(
            "The filter is too large" if isinstance(error, LimitError) else "The filter has no meaning",
            413 if isinstance(error, LimitError) else 400,
            error.message,
            " or ".join(error.expected),
            error.hint or "",
            where,
            "" if where is None else "\n".join(str(error).splitlines()[1:3]),
            "; ".join(getattr(error, "__notes__", ())),
        )
    if isinstance(error, ServiceError):
        retry_s = error.retry_s if isinstance(error, TooManyError) else 0.0
        return Problem(error.title, error.status, error.detail, error.expected, retry_s=retry_s)
    return Problem("The request cannot be read", 400, str(error))


def refusal(error: TamisError) -> web.Response:
    """Return the answer to a request that was refused."""
    problem = problem_of(error)
    headers = {}
    if problem.retry_s:
        headers["Retry-After"] = str(max(1, math.ceil(problem.retry_s)))
    if problem.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="tamis"'
    return web.Response(status=problem.status, body=_encode(problem), content_type=PROBLEM, headers=headers)


def answer(content: Any, status: int = 200) -> web.Response:
    """Return an answer in JSON."""
    return web.Response(status=status, body=_encode(content), content_type="application/json")


def delivery_json(delivery: Delivery, epoch: str) -> bytes:
    """Return a delivery as JSON; the event is put in as it was stored, and not parsed.

    >>> from tamis.service.messages import Delivery
    >>> delivery_json(Delivery(Position(813, 813), ("cheap",), b'{"id":"7"}', is_again=True), "k3f9")
    b'{"at":"k3f9-813","for":["cheap"],"again":true,"event":{"id":"7"}}'
    """
    return b'{"at":"%b","for":%b,%b%b"event":%b}' % (
        delivery.position.text(epoch).encode(),
        _encode(delivery.keys),
        b'"again":true,' if delivery.is_again else b"",
        told_member(delivery.told, epoch),
        delivery.body,
    )


def told_member(told: Iterable[Told], epoch: str) -> bytes:
    """Return the member `told` of a delivery, with a comma behind it, if there is anything to tell."""
    content = [told_json(each, epoch) for each in told]
    return b'"told":%b,' % _encode(content) if content else b""


class _Latest:
    """The delivery that was written last: in a fan-out the same one goes to thousands."""

    def __init__(self) -> None:
        self._written: tuple[Delivery | None, str, bytes] = None, "", b""

    def json_of(self, delivery: Delivery, epoch: str) -> bytes:
        """Return a delivery as JSON."""
        latest, of_epoch, content = self._written
        if latest is not delivery or of_epoch != epoch:
            content = delivery_json(delivery, epoch)
            self._written = delivery, epoch, content  # in one step: tests have brokers in several threads
        return content


_latest = _Latest()


def told_json(told: Told, epoch: str) -> wire.Told:
    """Return what a subscription that remembers earlier events has to tell, as it is written.

    >>> from tamis.service.tellings import Told
    >>> _encode(told_json(Told("high", "change", 1_500_000, (813,), change=True), "k3f9"))
    b'{"key":"high","kind":"change","at":"1970-01-01T00:00:01.500000Z","change":true}'
    """
    is_run = told.kind == "sequence"
    return wire.Told(
        told.key,
        told.kind,
        rfc3339(told.at_us),
        UNSET if told.change is None else told.change,
        UNSET if told.rank is None else told.rank,
        [Position.of(event).text(epoch) for event in told.events] if is_run else UNSET,
        list(map(Raw, told.bodies)) if is_run else UNSET,
    )


def deliveries_json(deliveries: Iterable[Delivery], epoch: str, losses: Iterable[Lost] = ()) -> bytes:
    """Return several deliveries as one message, with what is lost if anything is."""
    events = b",".join([_latest.json_of(delivery, epoch) for delivery in deliveries])
    gaps = [_encode(gap_json(loss, epoch)) for loss in losses]
    return b'{"events":[%b],"gaps":[%b]}' % (events, b",".join(gaps)) if gaps else b'{"events":[%b]}' % events


def gap_json(loss: Lost, epoch: str) -> Mapping[str, Any]:
    """Return what is said of events that are lost."""
    first, last = (Position.of(number).text(epoch) for number in loss.gap)
    return {"first": first, "last": last, "reason": loss.reason}


def facts_json(facts: SubscriberFacts, epoch: str) -> Mapping[str, Any]:
    """Return what is known of a subscriber, with positions as they are written."""
    return {
        "name": facts.name,
        "owner": facts.owner,
        "durable": facts.is_durable,
        "state": facts.state,
        "settings": {
            "wait_s": facts.settings.wait_s,
            "attempts": facts.settings.attempts,
            "ordered": facts.settings.is_ordered,
            "forget_after_s": facts.settings.forget_after_s,
            "backoff_s": facts.settings.backoff_s,
        },
        "subscriptions": {
            key: {
                "text": known.text,
                "effective": known.effective,
                "since": Position.of(known.since).text(epoch),
                **({} if known.ends_s is None else {"ends": rfc3339(int(known.ends_s * 1e6))}),
            }
            for key, known in facts.subscriptions.items()
        },
        "done_through": facts.floor.text(epoch),
        "unacknowledged": facts.unacknowledged,
        "consumers": facts.consumers,
        "dead": facts.dead,
    }
