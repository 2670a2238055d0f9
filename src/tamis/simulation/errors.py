"""What can be wrong with what is asked of a network?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.errors import TamisError

if TYPE_CHECKING:
    from collections.abc import Collection

_MOST_NAMED = 10


class RestlessError(TamisError, RuntimeError):
    """A network that does not come to rest: brokers answer each other without end."""

    def __init__(self, step_count: int) -> None:
        super().__init__(step_count)
        self.step_count = step_count

    def __str__(self) -> str:
        return (
            f"after {self.step_count:,} messages there are still some under way; a broker must be answering in circles"
        )


class UnknownNameError(TamisError, KeyError):
    """A broker, a link, a client or something of a client that there is not.

    >>> print(UnknownNameError("link", "a-z", ("a-b", "b-c")))
    there is no link 'a-z'; there are: a-b, b-c
    """

    def __init__(self, kind: str, name: Any, known: Collection[Any]) -> None:
        super().__init__(kind, name, known)
        self.kind, self.name, self.known = kind, name, known

    def __str__(self) -> str:
        named = ", ".join(str(each) for each in list(self.known)[:_MOST_NAMED])
        more = f" and {len(self.known) - _MOST_NAMED} more" if len(self.known) > _MOST_NAMED else ""
        return f"there is no {self.kind} {self.name!r}; there are: {named or 'none'}{more}"


class KnownNameError(TamisError, ValueError):
    """A name that somebody has already."""

    def __init__(self, name: Any, holder: str) -> None:
        super().__init__(name, holder)
        self.name, self.holder = name, holder

    def __str__(self) -> str:
        return f"{self.name!r} is the name of {self.holder} already; choose another one"


class WrongStateError(TamisError, RuntimeError):
    """Something that can be done at another time only.

    >>> print(WrongStateError("broker 'b'", "running", "crash it first"))
    broker 'b' is running; crash it first
    """

    def __init__(self, thing: str, state: str, way_out: str) -> None:
        super().__init__(thing, state, way_out)
        self.thing, self.state, self.way_out = thing, state, way_out

    def __str__(self) -> str:
        return f"{self.thing} is {self.state}; {self.way_out}"
