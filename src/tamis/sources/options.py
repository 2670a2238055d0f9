"""What may be said to a source or a sink, and what does it mean?

Options come as texts, from people. One that nobody knows is refused with the one that was meant, because an option
that is passed over in silence is a limit that does not hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.errors import did_you_mean
from tamis.sources.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SPARKS_OWN = frozenset({"path", "checkpointlocation", "queryname", "__tamis_run"})


class Options:
    """The options of one source or sink.

    >>> options = Options("nats", {"Max_Messages": "500"}, known=("url", "max_messages"))
    >>> options.number("max_messages", 10), options.text("url", "none")
    (500, 'none')
    >>> Options("nats", {"max_mesages": "5"}, known=("max_messages",))
    Traceback (most recent call last):
        ...
    tamis.sources.errors.OptionError: nats has no option 'max_mesages', only max_messages. Did you mean max_messages?
    """

    def __init__(
        self, source: str, given: Mapping[str, str], known: Iterable[str], prefixes: tuple[str, ...] = ()
    ) -> None:
        self._source = source
        self._values = {name.lower(): value for name, value in given.items()}
        known = tuple(known)
        for name in self._values:
            if name not in known and name not in _SPARKS_OWN and not name.startswith(prefixes or ("\0",)):
                hint = did_you_mean(name, known)
                there = f", only {', '.join(known)}" if known else ""
                raise OptionError(f"{source} has no option {name!r}{there}" + (f". {hint}" if hint else ""))

    def text(self, name: str, default: str | None = None) -> str | None:
        """Return an option as it was written."""
        return self._values.get(name, default)

    def number(self, name: str, default: int, least: int = 1) -> int:
        """Return an option that counts something."""
        written = self._values.get(name)
        if written is None:
            return default
        try:
            value = int(written)
        except ValueError:
            value = least - 1
        if value < least:
            raise OptionError(f"{name} of {self._source} must be a whole number of at least {least}, not {written!r}")
        return value

    def seconds(self, name: str, default: float) -> float:
        """Return an option that is a time."""
        written = self._values.get(name)
        try:
            value = default if written is None else float(written)
        except ValueError:
            value = -1
        if not 0 < value < float("inf"):
            raise OptionError(f"{name} of {self._source} must be a number of seconds, not {written!r}")
        return value

    def one_of(self, name: str, choices: tuple[str, ...]) -> str:
        """Return an option that is one of a few words; the first if nobody says."""
        written = self._values.get(name, choices[0])
        if written not in choices:
            raise OptionError(f"{name} of {self._source} is one of {', '.join(choices)}, not {written!r}")
        return written

    def beginning_with(self, prefix: str) -> dict[str, str]:
        """Return the options whose names begin so, by the rest of their names."""
        return {name[len(prefix) :]: value for name, value in self._values.items() if name.startswith(prefix)}
