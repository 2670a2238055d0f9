"""How does a client know which of its requests an answer is for? A correspondence: numbers of ours, ids of its own.

The core knows a request by a number of its connection; the client calls it what it likes, or nothing, and then wants no
answer but an error. Whatever the core says becomes a message of the protocol `tamis.v1` here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.service import wire
from tamis.service.http.answers import deliveries_json
from tamis.service.http.event_stream import noted
from tamis.service.http.frames import refusal_message
from tamis.service.messages import Accepted, Attached, CaughtUp, Deliveries, Lost, Published, Refused, Subscribed
from tamis.service.positions import Position

if TYPE_CHECKING:
    from tamis.service.settings import LimitSettings

TOLD_LIMITS = ("event_bytes", "batch_events", "batch_bytes", "credit", "texts")
"""What a client must know to ask for no more than it may."""


class Correspondence:
    """The requests of one connection that wait for their answers."""

    def __init__(self, epoch: str) -> None:
        self._epoch = epoch
        self._next_number = 1
        self._ids: dict[int, int | None] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def number(self, request_id: int | None) -> int:
        """Return the number of a new request, which its client calls `request_id`."""
        number = self._next_number
        self._next_number += 1
        self._ids[number] = request_id
        return number

    def message(self, item: object) -> bytes | None:
        """Return the message for what the core said, or None if there is nothing to say."""
        match item:
            case bytes():
                return item
            case Deliveries(_, deliveries):
                return deliveries_json(deliveries, self._epoch)
            case Lost() | CaughtUp():
                name, content = noted(item, self._epoch)
                return wire.encode({name: content})
            case Refused(number, error):
                return refusal_message(error, self._ids.pop(number, None))
            case Attached(number):
                self._ids.pop(number, None)
                return None
            case Published(number, last, positions, known, is_durable, wanted):
                content = {"position": self._at(last), "known": known, "durable": is_durable}
                content["positions"] = [self._at(position) for position in positions]
                if wanted is not None:
                    content["wanted"] = wanted
                return self._ok(number, content)
            case Subscribed(number, since, _, effective, is_settled, remembering):
                content = {"since": self._at(since), "settled": is_settled, "effective": effective}
                return self._ok(number, content | ({"remembering": remembering} if remembering else {}))
            case Accepted(number):
                return self._ok(number, {})
        return None

    def welcome(self, broker: str, at: int, limits: LimitSettings) -> bytes:
        """Return the answer to a greeting: who this is, where its log is, and how much it takes."""
        limits_shown = {name: int(getattr(limits, name)) for name in TOLD_LIMITS}
        return wire.encode({"welcome": wire.Welcome(broker, self._epoch, self._at(at), limits_shown)})

    def _ok(self, number: int, content: dict[str, Any]) -> bytes | None:
        request_id = self._ids.pop(number, None)
        return None if request_id is None else wire.encode({"ok": request_id, **content})

    def _at(self, position: int) -> str:
        return Position.of(position).text(self._epoch)
