"""How do messages travel in frames? A frame of the protocol `tamis.v1` is one message or a list of them.

Frames of others are read with care: a list of many small parts is counted before any of them is decoded. Our own carry
whatever waits, up to a size, so that a connection that is slow gets fewer and larger frames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tamis.errors import TamisError
from tamis.service import wire
from tamis.service.errors import BadRequestError, TooLargeError
from tamis.service.http.answers import problem_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MESSAGES_MOST = 1_000
"""So many messages may come in one frame."""
FRAME_BYTES = 1_000_000
"""About so much goes into one frame."""

_one = msgspec.json.Decoder(wire.FromClient)
_several = msgspec.json.Decoder(list[msgspec.Raw])


def messages_in(text: str | bytes) -> list[wire.FromClient]:
    """Return the messages of a frame; raise an error if one of them cannot be read.

    >>> [message.id for message in messages_in('[{"done_through": "k3f9-1", "id": 7}]')]
    [7]
    """
    try:
        frame = text.encode() if isinstance(text, str) else text
        if not frame.lstrip().startswith(b"["):
            return [_one.decode(frame)]
        parts = _several.decode(frame)
        if len(parts) > MESSAGES_MOST:
            raise TooLargeError(f"the frame has {len(parts)} messages", f"at most {MESSAGES_MOST} in a frame")
        return [_one.decode(part) for part in parts]
    except RecursionError:
        raise TooLargeError("the frame is nested too deeply to be read", "less") from None
    except (msgspec.MsgspecError, ValueError) as error:
        if isinstance(error, TamisError):
            raise
        raise BadRequestError(f"the frame cannot be read: {error!s:.500}", "messages of /asyncapi.json") from None


def frames_of(messages: Iterable[bytes]) -> Iterator[bytes]:
    """Yield frames of about the same size that carry all messages, in order.

    >>> list(frames_of([b'{"ok":1}', b'{"ok":2}']))
    [b'[{"ok":1},{"ok":2}]']
    """
    together: list[bytes] = []
    size = 0
    for message in messages:
        if together and size + len(message) > FRAME_BYTES:
            yield wire.joined(together)
            together, size = [], 0
        together.append(message)
        size += len(message)
    if together:
        yield wire.joined(together)


def refusal_message(error: TamisError, request_id: int | None = None) -> bytes:
    """Return the message that says what was refused, and why."""
    content: dict[str, Any] = {"error": problem_of(error)}
    return wire.encode(content if request_id is None else {**content, "id": request_id})
