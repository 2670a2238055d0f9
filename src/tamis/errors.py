"""What can be wrong with what a caller gave us: one class per kind of mistake.

Every error says what is wrong, where (line, column, a caret under the place) and what would be right.
They survive pickling, because a subscription's error travels from a Spark worker with its result.

>>> import tamis
>>> tamis.parse("price < 20 AND")
Traceback (most recent call last):
    ...
tamis.errors.ExpressionSyntaxError: line 1, column 15: found the end of the text, expected a condition
  price < 20 AND
                ^
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

# A caret line longer than this is unreadable, so long texts are shown as a window around the place.
_WINDOW = 100


class TamisError(Exception):
    """Anything that tamis refuses to do, and why."""


class LanguageError(TamisError, ValueError):
    """An expression that has no meaning: the base of everything the parser and the checker say.

    `position` is an offset into `text`; both are None where an expression did not come from a text.
    """

    def __init__(
        self,
        message: str,
        *,
        text: str | None = None,
        position: int | None = None,
        hint: str | None = None,
        expected: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.text = text
        self.position = position
        self.hint = hint
        self.expected = expected

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.args, self.__dict__))

    @property
    def line(self) -> int | None:
        """The line of the mistake, counted from 1."""
        if self.text is None or self.position is None:
            return None
        return self.text.count("\n", 0, self.position) + 1

    @property
    def column(self) -> int | None:
        """The column of the mistake, counted from 1."""
        if self.text is None or self.position is None:
            return None
        return self.position - self.text.rfind("\n", 0, self.position)

    def as_dict(self) -> dict[str, Any]:
        """The error as data, for `--json` and for tables of rejected subscriptions."""
        return {
            "error": type(self).__name__,
            "message": self.message,
            "line": self.line,
            "column": self.column,
            "expected": list(self.expected),
            "hint": self.hint,
        }

    def __str__(self) -> str:
        text = self.message
        if self.expected:
            text += f", expected {_either(self.expected)}"
        if self.text is not None and self.position is not None:
            text = f"line {self.line}, column {self.column}: {text}\n{self._caret()}"
        if self.hint:
            text += f"\n  {self.hint}"
        return text

    def _caret(self) -> str:
        assert self.text is not None
        assert self.position is not None
        start = self.text.rfind("\n", 0, self.position) + 1
        end = self.text.find("\n", self.position)
        line = self.text[start : len(self.text) if end < 0 else end]
        offset = self.position - start
        first = max(0, offset - _WINDOW * 3 // 4)
        shown = line[first : first + _WINDOW]
        # Tabs and other control characters would put the caret under the wrong column.
        shown = "".join(character if character.isprintable() else " " for character in shown)
        before = "…" if first else ""
        after = "…" if first + _WINDOW < len(line) else ""
        return f"  {before}{shown}{after}\n  {' ' * (offset - first + len(before))}^"


def _rebuild(kind: type[LanguageError], args: tuple[Any, ...], state: dict[str, Any]) -> LanguageError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class ExpressionSyntaxError(LanguageError):
    """The text is not an expression of the language."""


class TranslationError(LanguageError):
    """A rule of another system that is none, or that says what this language cannot say."""


class LiteralError(LanguageError):
    """A literal that denotes no value: the 30th of February, a number beyond every type."""


class PatternError(LanguageError):
    """A LIKE pattern or regular expression that cannot be used."""


class UnknownFunctionError(LanguageError):
    """A function that the language does not have."""


class FunctionError(LanguageError):
    """A function of the host that cannot be one: its name, kinds or options."""


class ArityError(LanguageError):
    """A function with too few or too many arguments."""


class TypeMismatchError(LanguageError):
    """Operands whose types can never meet, so that the predicate could never be true."""


class UnknownAttributeError(LanguageError):
    """An attribute that the schema does not have."""


class UnknownEventTypeError(LanguageError):
    """An event type that the schema's hierarchy does not have."""


class JsonFormError(LanguageError):
    """A JSON document that is not the JSON form of an expression."""


class LimitError(LanguageError):
    """An expression larger than the limits allow (`tamis.Limits`)."""

    def __init__(self, limit: str, allowed: int, found: str, **where: Any) -> None:
        super().__init__(f"{limit} is limited to {allowed:,}, found {found}", **where)
        self.limit, self.allowed = limit, allowed
        if self.hint is None:
            self.hint = f"If this is meant, raise it: tamis.Limits({limit}=...)."


class BudgetError(LanguageError):
    """A rewrite that would have grown beyond its budget, and gave up instead."""

    def __init__(self, rewrite: str, budget: int) -> None:
        super().__init__(f"{rewrite} would need more than {budget:,} nodes")
        self.rewrite, self.budget = rewrite, budget


class SchemaError(TamisError, ValueError):
    """A schema that contradicts itself or names types that do not exist."""


class EventError(TamisError, ValueError):
    """An event that does not fit its schema."""


class LabMissingError(TamisError, ImportError):
    """Something of the literature was asked for, and the plug-in that holds it is not installed."""

    def __init__(self, wanted: str) -> None:
        super().__init__(wanted)
        self.wanted = wanted

    def __str__(self) -> str:
        return f"{self.wanted} is part of tamis_lab, which is not installed: pip install 'tamis[lab]'"


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return a hint that names the nearest known name, if any is near.

    >>> did_you_mean("prize", ["price", "title"])
    'Did you mean price?'
    """
    names = list(known)
    near = get_close_matches(name, names, n=1, cutoff=0.6)
    if not near:
        folded = {candidate.casefold(): candidate for candidate in names}
        near = [folded[key] for key in get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)]
    return f"Did you mean {near[0]}?" if near else None


def _either(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
