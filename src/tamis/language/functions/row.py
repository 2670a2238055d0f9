"""What is to be known of a function of the language? One row holds all of it.

Parser, checker, meaning, printer, JSON, builder, explanation, the relations between filters, the evaluation over
columns and the command line read the row, and none of them has a list of functions of its own. So a function is added
by adding a row. The fact that is easily forgotten has no default: whether a function *takes NULLs*, that is, may have a
value although an argument has none. Most functions do not, and then a filter that is true proves that their attributes
are present; of a function that does, as `least`, nothing of the kind may be concluded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from tamis.language.precedence import PRIMARY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tamis.language.expressions import Expression

T = TypeVar("T")

Literals: TypeAlias = tuple[Any, ...]
"""The values of those arguments of a call that are literals, in their order."""
Bounds: TypeAlias = tuple[int | float | None, int | float | None]


def _none(count: int) -> range:
    return range(0)


def _no_check(arguments: tuple[Expression, ...]) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function: what it takes, what it gives, its meaning over values, and everything else that is known of it."""

    name: str
    takes: tuple[str, ...]
    """The kinds of its arguments: number, string, array or any. Of another kind than that it makes NULL."""
    gives: str
    """The kind of its result; boolean makes it a test, which is a condition."""
    meaning: Callable[..., Any]
    """Its value, given those of its arguments. Total, deterministic, and without exceptions."""
    takes_nulls: bool
    """May it have a value although an argument is NULL?"""
    summary: str
    topic: str
    """Where `tamis language` lists it."""
    example: str
    """A condition that uses it."""
    spark: str | None
    """What Spark SQL calls it; None where Spark has no such function."""
    variadic: bool = False
    """Whether the last parameter may be repeated."""
    alike: bool = False
    """Must its arguments, but for those that decide, be of one kind? If it gives `any`, its result is of that kind."""
    deciding: Callable[[int], range] = _none
    """Which of so many arguments are conditions that choose among the others, as those behind WHEN do."""
    result: str | Callable[[frozenset[str]], str] = ""
    """The type of its result, where that is narrower than `gives`: a type, or a function of the types of the
    arguments, of which `any` is one that is not known."""
    bounds: Bounds | None = None
    """The least number that it gives, and one that all its results are below. NaN is below nothing."""
    over_columns: bool = False
    """Does `matching/columnwise` compute it for whole columns? If not, it does so row by row, by the meaning."""
    no_value: str = "an argument is NULL or of another kind"
    """Why it has no value, where it has none; explanations say so."""
    symbol: str = ""
    """How it is written where that is not `name(...)`."""
    binding: int = PRIMARY
    """How tightly its symbol binds."""
    check: Callable[[tuple[Expression, ...]], None] = _no_check
    """What is to be said of literal arguments when the expression is written."""
    version: int = 0
    """Of a function of the host: another one may give something else."""
    implies: Callable[[Literals, Literals], bool] | None = None
    """Of a test: given the literals of two calls that differ in nothing else, is the second true where the first is?"""
    excludes: Callable[[Literals, Literals], bool] | None = None
    """Are two such calls never both true?"""
    unites: Callable[[Literals, Literals], Literals | None] | None = None
    """The literals of the call that is true just where one of two such calls is; None if there is none."""
    monotone: tuple[str | None, ...] = ()
    """Of each argument "up", "down" or None: does the result never fall, or never rise, where it alone grows? NaN as an
    argument is left out; as a result it is the greatest number."""
    confines: Callable[[Literals, Literals, tuple[float, float]], tuple[float, float] | None] | None = None
    """Of a number: given the literals of two such calls, in all their arguments, and the least and greatest value of
    the first, the least and greatest value of the second, which then has one; None if that is not known."""
    is_known_alike: bool = False
    """Are two such calls unknown for the same events? Then what is false follows as what is true does."""

    @property
    def is_test(self) -> bool:
        """Does it give a truth value?"""
        return self.gives == "boolean"

    def accepts(self, count: int) -> bool:
        """Does it take this many arguments?"""
        return count >= len(self.takes) if self.variadic else count == len(self.takes)

    def kinds(self, count: int) -> tuple[str, ...]:
        """Return the kinds of so many arguments."""
        kinds = [*self.takes, *(self.takes[-1:] or ("any",)) * (count - len(self.takes))]
        for index in self.deciding(count):
            kinds[index] = "boolean"
        return tuple(kinds)

    def chosen(self, arguments: Sequence[T]) -> list[T]:
        """Return the arguments that do not decide: those that the result is one of, or is made of.

        >>> from tamis.language.functions import FUNCTIONS
        >>> FUNCTIONS["case"].chosen(["a > 1", "x", "b > 1", "y", "z"])
        ['x', 'y', 'z']
        """
        deciding = self.deciding(len(arguments))
        return [argument for index, argument in enumerate(arguments) if index not in deciding]

    def result_type(self, arguments: frozenset[str]) -> str:
        """Return the type of its result, given the types of its arguments, as far as it is known.

        >>> from tamis.language.functions import FUNCTIONS
        >>> FUNCTIONS["add"].result_type(frozenset({"int", "double"})), FUNCTIONS["size"].result_type(frozenset())
        ('double', 'int')
        """
        if not self.result:
            return self.gives if self.gives in ("string", "array", "number") else "any"
        return self.result if isinstance(self.result, str) else self.result(arguments)

    @property
    def signature(self) -> str:
        """The call as a person would write it."""
        if self.symbol:
            return f"{self.symbol}x" if len(self.takes) == 1 else f"x {self.symbol} y"
        return f"{self.name}({', '.join((*self.takes, *('…' for _ in range(self.variadic))))})"
