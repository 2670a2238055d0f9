"""What does a sequence ask for?

Events that follow one another: one for each step, each later than the one before, all of one group, the last of them
within some time of the first. The last step may be an *absence*: then there is something to tell when the time has
passed and no such event has come.

    SEQUENCE kind = 'login' AND NOT ok THEN kind = 'login' AND ok WITHIN 5 MINUTES PER user
    SEQUENCE price > 30 AS high THEN price < high.price * 0.9 AFTER 1 SECOND WITHIN 1 HOUR PER symbol
    SEQUENCE kind = 'order' THEN NOT kind = 'payment' WITHIN 1 HOUR PER customer

Source: Jewel 2004, section 4.3 (docs/bibliography.md).
Departs: the text leaves open whether the time between two events is exact, a least or a most (here AFTER is a least and
WITHIN a most), whether one event may be both (`THEN` says no, `SAME OR THEN` says yes), and which of several earlier
events is meant (TAKING; the latest unless something else is said, as one event per node gives). More than two steps,
groups, references to earlier events and absences are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tamis.errors import LanguageError
from tamis.language.builder import Value, attr, condition
from tamis.language.checking import check
from tamis.language.expressions import And, Attribute, Expression, Not, Or, Xor
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.parser import parse
from tamis.language.schema import Schema
from tamis.standing.errors import StandingFormError
from tamis.standing.references import paths_of
from tamis.standing.spans import span_of, span_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.standing.groups import Paths

TAKING = ("LATEST", "FIRST", "EVERY", "EACH ONCE")
MOST_STEPS = 64


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Step:
    """One event of a sequence: a condition, perhaps a name for later steps, and whether it may be the event before.

    >>> Step("price > 30", "high")
    <Step price > 30 AS high>
    """

    condition: Expression
    name: str | None
    is_same: bool
    """May the event of the step before be this one, too? (SAME OR THEN)"""
    is_absent: bool
    """Is it that no such event comes? (THEN NOT)"""

    def __init__(
        self, condition_: Any, name: str | None = None, *, is_same: bool = False, is_absent: bool = False
    ) -> None:
        """Take a text, an expression or what the builder makes."""
        expression = parse(condition_) if isinstance(condition_, str) else condition(condition_)
        if name is not None and (not isinstance(name, str) or not name or "." in name or "`" in name):
            raise StandingFormError(f"a step's name is a name without dots, not {name!r}")
        if is_absent and (name is not None or is_same):
            raise StandingFormError(
                "an absence (NOT) cannot have a name, and cannot be the SAME event",
                hint="Write THEN NOT condition WITHIN 1 HOUR.",
            )
        for field, value in (
            ("condition", expression), ("name", name), ("is_same", bool(is_same)), ("is_absent", bool(is_absent)),
        ):  # fmt: skip
            object.__setattr__(self, field, value)

    def __str__(self) -> str:
        name = "" if self.name is None else f" AS {written_name(self.name)}"
        return f"{'NOT ' if self.is_absent else ''}{self.condition}{name}"

    def __repr__(self) -> str:
        return f"<Step {self}>"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Sequence:
    """A standing question for events that follow one another.

    >>> print(Sequence(["kind = 'order'", Step("kind = 'payment'", is_absent=True)], within="1 hour", per=["customer"]))
    SEQUENCE kind = 'order' THEN NOT kind = 'payment' WITHIN 1 HOUR PER customer
    >>> Sequence.parse("sequence a = 1 then b = 2 within 5 minutes").within
    300.0
    """

    steps: tuple[Step, ...]
    after: float | None
    """The least seconds from the first event to the last."""
    within: float | None
    """The most seconds from the first event to the last; None for as long as the processor keeps events."""
    per: Paths
    taking: str

    def __init__(
        self,
        steps: Iterable[Any],
        *,
        after: Any = None,
        within: Any = None,
        per: Iterable[Any] | str = (),
        taking: str = "LATEST",
    ) -> None:
        """Take steps, or conditions in any form; spans as texts, timedeltas or seconds; attributes for `per`."""
        made = tuple(step if isinstance(step, Step) else Step(step) for step in steps)
        words = " ".join(taking.upper().split()) if isinstance(taking, str) else taking
        if words not in TAKING:
            raise StandingFormError(f"a sequence takes {', '.join(TAKING)}, not {taking!r}")
        for field, value in (
            ("steps", made), ("after", span_of(after)), ("within", span_of(within)), ("per", paths(per)),
            ("taking", words),
        ):  # fmt: skip
            object.__setattr__(self, field, value)
        self._check_steps()

    def _check_steps(self) -> None:
        if not 2 <= len(self.steps) <= MOST_STEPS:
            raise StandingFormError(f"a sequence has 2 to {MOST_STEPS} steps, not {len(self.steps)}")
        first, *between, last = self.steps
        if first.is_same:
            raise StandingFormError("the first step has none before it, so it cannot be the same event")
        if first.is_absent or any(step.is_absent for step in between):
            raise StandingFormError("only the last step can be an absence (THEN NOT)")
        if last.is_absent and self.within is None:
            raise StandingFormError(
                "an absence needs an end, or it would never be certain", hint="Add WITHIN 1 HOUR, or another span."
            )
        if self.after is not None and self.within is not None and self.after > self.within:
            raise StandingFormError(f"AFTER {span_text(self.after)} leaves no time WITHIN {span_text(self.within)}")
        names = [step.name for step in self.steps if step.name is not None]
        for name in names:
            if names.count(name) > 1:
                raise StandingFormError(f"two steps are named {name}")
        for index, step in enumerate(self.steps):
            earlier = {each.name for each in self.steps[:index]}
            for path in sorted(paths_of(step.condition)):
                if path[0] not in names:
                    continue
                if path[0] not in earlier:
                    raise StandingFormError(
                        f"step {index + 1} asks for {'.'.join(path)}, but {path[0]} is not an earlier step",
                        hint="A step refers to the steps before it.",
                    )
                if len(path) == 1:
                    raise StandingFormError(
                        f"{path[0]} is a whole event", hint=f"Name an attribute of it: {path[0]}.price."
                    )

    @property
    def is_absence(self) -> bool:
        """Is there something to tell when the last step's event does not come?"""
        return self.steps[-1].is_absent

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the steps that have one."""
        return tuple(step.name for step in self.steps if step.name is not None)

    def __str__(self) -> str:
        text = f"SEQUENCE {_first(self.steps[0])}"
        for step in self.steps[1:]:
            text += f" {'SAME OR ' if step.is_same else ''}THEN {_later(step)}"
        if self.after is not None:
            text += f" AFTER {span_text(self.after)}"
        if self.within is not None:
            text += f" WITHIN {span_text(self.within)}"
        if self.per:
            text += f" PER {paths_text(self.per)}"
        return text if self.taking == "LATEST" else f"{text} TAKING {self.taking}"

    def __repr__(self) -> str:
        return f"<Sequence {self}>"

    @staticmethod
    def parse(text: str, schema: Schema | None = None, *, limits: Limits = DEFAULT_LIMITS) -> Sequence:
        """Return the sequence that a text says; with a schema, names and types are checked too."""
        from tamis.standing.text import parse_sequence

        return parse_sequence(text, schema, limits=limits)

    def to_json(self) -> str:
        """Return the JSON form, which `Sequence.from_json` reads back."""
        from tamis.standing.json_form import to_json

        return to_json(self)

    @staticmethod
    def from_json(document: str | bytes | dict[str, Any], *, limits: Limits = DEFAULT_LIMITS) -> Sequence:
        """Read a sequence from a JSON document, given as text or as the object it denotes."""
        from tamis.standing.json_form import from_json

        made = from_json(document, limits=limits)
        if not isinstance(made, Sequence):
            raise StandingFormError("this document is a change, not a sequence")
        return made

    def checked(self, schema: Schema | None) -> Sequence:
        """Return itself if the schema has its names and types, or raise."""
        if schema is not None:
            known: Schema = schema
            for step in self.steps:
                check(step.condition, known)
                if step.name is not None:
                    known = named(known, step.name, schema)
            for path in self.per:
                check(Attribute(path), schema)
        return self


def named(known: Schema, name: str, events: Schema) -> Schema:
    """Return a schema in which a step's name is a record of an event's attributes."""
    if name in events.attributes:
        raise StandingFormError(f"the step's name {name} is an attribute's", hint="Choose another name behind AS.")
    return Schema(
        {**known.attributes, name: dict(events.attributes)},
        hierarchy=known.hierarchy,
        type_attribute=known.type_attribute,
        functions=known.functions,
    )


def paths(attributes: Iterable[Any] | str) -> Paths:
    """Return the paths of attributes, given by name or as the builder makes them.

    >>> paths(["user", "position.x"])
    (('user',), ('position', 'x'))
    """
    made = []
    for each in (attributes,) if isinstance(attributes, str) else attributes:
        node = each
        if isinstance(each, str):
            try:
                node = attr(each)
            except LanguageError as error:
                raise StandingFormError(f"PER takes attributes, not {each!r}") from error
        node = node.expression if isinstance(node, Value) else Attribute(node) if isinstance(node, tuple) else node
        if not isinstance(node, Attribute):
            raise StandingFormError(f"PER takes attributes, not {each}")
        if node.path in made:
            raise StandingFormError(f"PER names {'.'.join(node.path)} twice")
        made.append(node.path)
    return tuple(made)


def paths_text(attributes: Paths) -> str:
    """Write attributes behind PER."""
    return ", ".join(str(Attribute(path)) for path in attributes)


def written_name(name: str) -> str:
    """Write a step's name as an attribute would be."""
    return str(Attribute((name,)))


def _first(step: Step) -> str:
    # SEQUENCE - 1 ... and SEQUENCE NOT ... could go on as conditions about an attribute named sequence.
    text = str(step.condition)
    written = f"({text})" if text.startswith(("-", "+", "NOT ")) else text
    return written if step.name is None else f"{written} AS {written_name(step.name)}"


def _later(step: Step) -> str:
    text = str(step.condition)
    if step.is_absent:
        return f"NOT ({text})" if step.condition.children and _binds_loosely(step.condition) else f"NOT {text}"
    written = f"({text})" if text.startswith("NOT ") else text
    return written if step.name is None else f"{written} AS {written_name(step.name)}"


def _binds_loosely(node: Expression) -> bool:
    """Would NOT before it be read as a part of its first operand?"""
    return isinstance(node, And | Or | Xor | Not)
