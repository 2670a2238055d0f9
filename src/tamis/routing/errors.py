"""What can go wrong between brokers and those who speak with them."""

from __future__ import annotations

from typing import Any

from tamis.errors import TamisError


class MessageError(TamisError, ValueError):
    """Bytes that are no message, or a message that cannot become bytes."""

    def __init__(self, problem: str, expected: str) -> None:
        super().__init__(problem, expected)
        self.problem, self.expected = problem, expected

    def __str__(self) -> str:
        return f"{self.problem}; expected {self.expected}"


class OtherSchemaError(MessageError):
    """A neighbour whose schema is another one."""

    def __init__(self, broker: str, neighbour: str, own: str, theirs: str) -> None:
        super().__init__(
            f"{neighbour!r} has the schema {theirs[:40]}, broker {broker!r} has {own}",
            "the same schema at both ends of a link, or none; disconnect it",
        )
        self.broker, self.neighbour, self.own, self.theirs = broker, neighbour, own, theirs

    def __reduce__(self) -> tuple[Any, ...]:
        return OtherSchemaError, (self.broker, self.neighbour, self.own, self.theirs)


class OtherFunctionsError(MessageError):
    """A neighbour whose functions are others: filters that call them would not mean the same, or nothing, there."""

    def __init__(
        self, broker: str, neighbour: str, own: tuple[tuple[str, int], ...], theirs: tuple[tuple[str, int], ...]
    ) -> None:
        mine, others = ({f"{name}@{version}" for name, version in each} for each in (own, theirs))
        differences = [
            f"{whose} has {', '.join(sorted(names)[:20])}"
            for whose, names in ((repr(neighbour), others - mine), (f"broker {broker!r}", mine - others))
            if names
        ]
        super().__init__(
            f"{', '.join(differences)}, and the other end does not",
            "the same functions in the same versions at both ends of a link; disconnect it",
        )
        self.broker, self.neighbour, self.own, self.theirs = broker, neighbour, own, theirs

    def __reduce__(self) -> tuple[Any, ...]:
        return OtherFunctionsError, (self.broker, self.neighbour, self.own, self.theirs)


class SchemaOfStrategyError(TamisError, ValueError):
    """A strategy that concludes from a schema which its broker does not keep."""

    def __init__(self, broker: str, strategy: str) -> None:
        super().__init__(broker, strategy)
        self.broker, self.strategy = broker, strategy

    def __str__(self) -> str:
        return (
            f"the strategy {self.strategy!r} has a schema, which broker {self.broker!r} does not have; give both the "
            "same schema, or name the strategy"
        )


class SchemaOfAnnouncementsError(TamisError, ValueError):
    """A schema that has no place for what a broker announces."""

    def __init__(self, broker: str, reason: str) -> None:
        super().__init__(broker, reason)
        self.broker, self.reason = broker, reason

    def __str__(self) -> str:
        return (
            f"broker {self.broker!r} announces, and its schema does not allow that: {self.reason}; a schema with "
            "announcements has type, broker, client, key and filter as strings, and nothing else that is always "
            "mandatory"
        )


class DeskSettingError(TamisError, ValueError):
    """A setting of ranked subscriptions at a broker that means nothing there."""

    def __init__(self, problem: str, expected: str) -> None:
        super().__init__(problem, expected)
        self.problem, self.expected = problem, expected

    def __str__(self) -> str:
        return f"{self.problem}; expected {self.expected}"


class UnknownPeerError(TamisError, KeyError):
    """A message from somebody, or to somebody, whom the broker does not know."""

    def __init__(self, broker: str, peer: Any) -> None:
        super().__init__(broker, peer)
        self.broker, self.peer = broker, peer

    def __str__(self) -> str:
        return f"broker {self.broker!r} does not know {self.peer!r}; connect a neighbour, or attach a client, first"


class UnknownHandleError(TamisError, KeyError):
    """A handle that nobody has, or nobody any more."""

    def __init__(self, what: str, handle: int) -> None:
        super().__init__(what, handle)
        self.what, self.handle = what, handle

    def __str__(self) -> str:
        return f"there is no {self.what} {self.handle}; handles are good until the table changes"


class KnownPeerError(TamisError, ValueError):
    """Somebody who is connected already."""

    def __init__(self, broker: str, peer: Any) -> None:
        super().__init__(broker, peer)
        self.broker, self.peer = broker, peer

    def __str__(self) -> str:
        if self.peer == self.broker:
            return f"broker {self.broker!r} cannot be its own peer: {self.peer!r} is its own name"
        return f"broker {self.broker!r} knows {self.peer!r} already; disconnect it first"


class NamelessError(TamisError, ValueError):
    """A broker, neighbour or client without a name."""

    def __init__(self, name: Any) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"the name of a broker, neighbour or client must be a text that is not empty, not {self.name!r}"


class MemoryOfEventsError(TamisError, ValueError):
    """A broker that would remember no event."""

    def __init__(self, count: Any) -> None:
        super().__init__(count)
        self.count = count

    def __str__(self) -> str:
        return f"a broker remembers the keys of at least 1 event, to know those that come again, not of {self.count!r}"


class LeaseOfLinksError(TamisError, ValueError):
    """A lease of links that is none."""

    def __init__(self, lease_s: Any, least_s: float) -> None:
        super().__init__(lease_s, least_s)
        self.lease_s, self.least_s = lease_s, least_s

    def __str__(self) -> str:
        return f"a broker's links have a lease of {self.least_s:g} seconds or more, or None, not {self.lease_s!r:.40}"


class LengthOfMessagesError(TamisError, ValueError):
    """A broker that could tell no filter."""

    def __init__(self, count: Any) -> None:
        super().__init__(count)
        self.count = count

    def __str__(self) -> str:
        return f"a broker sends at least 1 filter in a message, not {self.count!r:.40}"


class UnknownStrategyError(TamisError, ValueError):
    """A strategy that there is not."""

    def __init__(self, name: Any, known: tuple[str, ...]) -> None:
        super().__init__(name, known)
        self.name, self.known = name, known

    def __str__(self) -> str:
        return f"there is no strategy {self.name!r}; there are: {', '.join(self.known)}"


class BudgetOfImperfectionError(TamisError, ValueError):
    """A budget of imperfection that is no share."""

    def __init__(self, budget: Any) -> None:
        super().__init__(budget)
        self.budget = budget

    def __str__(self) -> str:
        return f"an imperfect merger's budget is a share above 0 and below 1, not {self.budget!r}"


class ZoneError(MessageError):
    """A point, a zone or a grid that no torus has."""
