"""What can be wrong with what somebody asks of the service? One class per kind of mistake, each with its HTTP status.

Every error says what is wrong (`detail`) and what would be right (`expected`). Over HTTP it becomes a problem document
(RFC 9457), over WebSocket a message `error` with the same members.
"""

from __future__ import annotations

from typing import ClassVar

from tamis.errors import TamisError


class ServiceError(TamisError):
    """Anything that a broker refuses to do, and why."""

    status: ClassVar[int] = 500
    title: ClassVar[str] = "The broker failed"

    def __init__(self, detail: str, expected: str = "") -> None:
        super().__init__(detail, expected)
        self.detail = detail
        self.expected = expected

    def __str__(self) -> str:
        return f"{self.detail}; expected {self.expected}" if self.expected else self.detail


class BadRequestError(ServiceError, ValueError):
    """A request that cannot be read."""

    status = 400
    title = "The request cannot be read"


class UnauthenticatedError(ServiceError):
    """Nobody knows who is asking."""

    status = 401
    title = "Say who you are"


class ForbiddenError(ServiceError):
    """The one who asks may not do this."""

    status = 403
    title = "Not allowed"


class NotFoundError(ServiceError, LookupError):
    """What a request names is not there."""

    status = 404
    title = "Not found"


class ConflictError(ServiceError):
    """A request contradicts what is there."""

    status = 409
    title = "Contradicts what is there"


class GoneError(ServiceError):
    """A position that this log does not have any more, or never had."""

    status = 410
    title = "Not in this log"


class TooLargeError(ServiceError):
    """More than a limit allows; the error names the limit."""

    status = 413
    title = "Larger than the limit"


class MediaTypeError(ServiceError):
    """A body of a media type that is not taken here."""

    status = 415
    title = "Not a media type for this"


class ExpectationError(ServiceError):
    """A request expects of the broker what it does not do."""

    status = 417
    title = "Not to be expected here"


class MisfitError(ServiceError, ValueError):
    """An event that does not fit the schema of the broker."""

    status = 422
    title = "Does not fit the schema"


class TooManyError(ServiceError):
    """More in a while than a quota allows; `retry_s` says when to come back."""

    status = 429
    title = "Too many"

    def __init__(self, detail: str, expected: str = "", retry_s: float = 1.0) -> None:
        super().__init__(detail, expected)
        self.args = (detail, expected, retry_s)
        self.retry_s = retry_s


class OverloadedError(TooManyError):
    """The broker has more to do than it can; `retry_s` says when to come back."""

    status = 503
    title = "The broker is busy"


class IssuerError(OverloadedError):
    """An issuer of tokens that does not answer, or not with keys; `retry_s` says when to come back."""

    title = "An issuer of tokens does not answer"


class StorageFullError(ServiceError):
    """The disk is full: no event is taken, reading goes on."""

    status = 507
    title = "The disk is full"


class SettingsError(ServiceError, ValueError):
    """A setting that is unknown or has no meaning, and where it stands."""

    title = "A setting is wrong"


class LogError(ServiceError):
    """The log of events cannot be used as it is."""

    title = "The log cannot be used"


class FolderInUseError(LogError):
    """Another process uses the folder of the log."""

    title = "The folder is in use"


class DamagedLogError(LogError):
    """A block of the log does not have the checksum that it was written with."""

    title = "The log is damaged"

    def __init__(self, where: str, first: int, last: int, what: str) -> None:
        super().__init__(
            f"{where}: {what}; events {first} to {last} cannot be trusted",
            "an intact log: restore the file from a backup, or leave these events out with 'tamis repair'",
        )
        self.args = (where, first, last, what)
        self.where, self.first, self.last, self.what = where, first, last, what


# -- At the other end


class UnreachableError(ServiceError, ConnectionError):
    """No broker answers at an address."""

    status = 503
    title = "No broker answers"


class ClosedError(ServiceError):
    """A client or a subscription was closed while somebody waited for it, or is used after it was."""

    status = 499
    title = "The client is closed"


class ServiceMissingError(TamisError, ImportError):
    """The service or its clients were asked for, and the libraries that they need are not installed."""

    def __init__(self, wanted: str, library: str) -> None:
        super().__init__(wanted, library)
        self.wanted, self.library = wanted, library

    def __str__(self) -> str:
        return f"{self.wanted} needs {self.library}, which is not installed: pip install 'tamis[service]'"
