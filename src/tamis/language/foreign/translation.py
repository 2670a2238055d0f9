"""What comes out of a translation, and when does it say the same? A condition and its assumptions.

This language does not tell NULL from absent, and asks whether an array has an element only by the element's value.
Where another system does more, the condition says the same of events that are not of certain shapes at certain places;
these are named, so that whoever knows the events can say whether that matters. A translation without assumptions is
exact for all events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tamis.errors import TranslationError, did_you_mean
from tamis.language.expressions import Attribute
from tamis.language.types import ArrayType, RecordType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema

Path = tuple[str, ...]

_ARRAYS = ("an array", "an array of arrays", "an array without values")
SHAPES = ("absent", "null", "an object", *_ARRAYS, "an integer", "a Boolean", "a text")
"""What the value at a place may be assumed not to be, in the order in which it is told."""


@dataclass(frozen=True)
class Assumption:
    """What events have nowhere.

    >>> print(Assumption(("detail", "state"), frozenset({"null", "an array"})))
    detail.state is never null or an array
    """

    path: Path
    never: frozenset[str]

    def __str__(self) -> str:
        listed = " or ".join(filter(None, [", ".join(self.shapes[:-1]), self.shapes[-1]]))
        return f"{self.attribute} is never {listed}"

    @property
    def attribute(self) -> str:
        """The name of the place, as it is written in a condition."""
        return str(Attribute(self.path))

    @property
    def shapes(self) -> tuple[str, ...]:
        """What is never there, in the order of `SHAPES`."""
        return tuple(shape for shape in SHAPES if shape in self.never)


@dataclass(frozen=True)
class Translation:
    """A condition that says what a rule of another system says, as far as events are as it assumes."""

    condition: Expression
    assumes: tuple[Assumption, ...] = ()

    def __str__(self) -> str:
        return str(self.condition)

    @property
    def is_exact(self) -> bool:
        """Does it say the same of all events?"""
        return not self.assumes


class Assumptions:
    """What was assumed so far, by place."""

    def __init__(self, schema: Schema | None) -> None:
        self._schema = schema
        self._never: dict[Path, set[str]] = {}

    def add(self, path: Path, *shapes: str) -> None:
        """Assume that what is at a place has none of these shapes, unless the schema says so already."""
        missing = set(shapes) - self._excluded(path)
        if missing:
            self._never.setdefault(path, set()).update(missing)

    def _excluded(self, path: Path) -> set[str]:
        kind = declared(self._schema, path)
        if kind is None:
            return set()
        shapes = {"an array of arrays"} if kind == "array" else set(_ARRAYS)
        return shapes | (set() if kind == "record" else {"an object"})

    def all(self) -> tuple[Assumption, ...]:
        """Return them in the order of their places."""
        return tuple(Assumption(path, frozenset(self._never[path])) for path in sorted(self._never))


def declared(schema: Schema | None, path: Path) -> str | None:
    """Return what a schema says of a place: "array", "record" or "value"; None if it says nothing."""
    kind = None if schema is None else schema.type_of(path)
    if kind is None:
        return None
    return "array" if isinstance(kind, ArrayType) else "record" if isinstance(kind, RecordType) else "value"


def translate(
    rule: Any,
    source: str = "eventbridge",
    *,
    below: str | Iterable[str] = (),
    schema: Schema | None = None,
    strict: bool = False,
) -> Translation:
    """Translate a rule of another system.

    rule      a pattern of EventBridge (a mapping, or its JSON), or a filter of CloudEvents (a mapping or a list in a
              dialect, its JSON, or a text of CESQL)
    source    "eventbridge" or "cloudevents"
    below     where in events the names of the rule begin, such as "data"; at the top if nothing is said
    schema    the types of events: with it fewer assumptions are needed
    strict    raise unless the translation is exact for all events

    >>> import tamis
    >>> translation = tamis.translate({"source": ["shop"], "detail": {"price": [{"numeric": ["<", 20]}]}})
    >>> print(translation)
    detail.price < 20 AND (source = 'shop' OR array_contains(source, 'shop'))
    >>> for assumption in translation.assumes:
    ...     print(assumption)
    detail is never an array
    detail.price is never an array
    source is never an array of arrays
    >>> print(tamis.translate("type = 'offer' AND EXISTS subject", "cloudevents"))
    type = 'offer' AND subject IS NOT NULL
    """
    translators = _translators()
    if source not in translators:
        hint = did_you_mean(source, translators) or None
        raise TranslationError(f"there is no translation from {source!r:.40}", expected=tuple(translators), hint=hint)
    path = tuple(below.split(".")) if isinstance(below, str) and below else tuple(below)
    translation = translators[source](rule, path, schema)
    if strict and translation.assumes:
        raise TranslationError(
            f"the translation says the same only if {'; if '.join(map(str, translation.assumes))}",
            hint="Give a schema that says so, or accept it: strict=False.",
        )
    return translation


def _translators() -> Mapping[str, Callable[[Any, Path, Schema | None], Translation]]:
    """Return what translates, by the name of the system; imported late, for they need this module."""
    from tamis.language.foreign.cloud_events import from_cloud_events
    from tamis.language.foreign.eventbridge import from_eventbridge

    return {"eventbridge": from_eventbridge, "cloudevents": from_cloud_events}
