"""Which functions does the host add to the language? User functions.

A host registers Python functions, and subscribers call them by name: what a text cannot say, the host says for it. Text
never brings code with it. The author promises that a function is deterministic and has no effects; what it does not
keep costs nobody but the subscriptions that call it. A function that raises, takes too long, or gives something of
another kind gives NULL there, is counted, and is named in the log, once.

A node of an expression holds its function, not only its name (`HostedName`): two registries that use one name for two
functions do not mix. Files and messages have the names and versions, and whoever reads them needs the same functions.

Source: Jewel's thesis, sections 3.2.3 and 4.2 (functions of users), and Mühl et al., sections 3.4 and 3.6 (constraints
that bring their own covering and merging); docs/bibliography.md.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tamis.errors import FunctionError, UnknownFunctionError
from tamis.language.expressions import postorder
from tamis.language.functions.deadlines import LATE, called
from tamis.language.functions.row import Function, Literals
from tamis.language.functions.table import FUNCTIONS, callable_names
from tamis.language.tokens import RESERVED
from tamis.language.values import kind_of, value_of

if TYPE_CHECKING:
    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema

KINDS = ("number", "string", "boolean", "time", "array", "any")
_log = logging.getLogger("tamis.functions")


class HostedName(str):
    """The name of a user function, with the function that it names: equal names of two functions are not equal."""

    __slots__ = ("function",)
    function: UserFunction

    def __new__(cls, function: UserFunction) -> HostedName:
        name = super().__new__(cls, function.name)
        name.function = function
        return name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostedName) and self.function is other.function

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(("hosted", self.function.written))

    def __reduce__(self) -> tuple[Any, ...]:
        return _named, (self.function.name, self.function.version)


def _named(name: str, version: int) -> HostedName:
    return in_use().hosted(f"{name}@{version}")


def function_of(name: str) -> Function:
    """Return the row of a function by the name that a node holds."""
    return name.function.row if isinstance(name, HostedName) else FUNCTIONS[name]


def written_name(name: str) -> str:
    """Return the name that a node holds as JSON and files have it: a user function's with its version."""
    return name.function.written if isinstance(name, HostedName) else name


class UserFunction:
    """A function of the host: Python, what it takes and gives, and a version.

    Of values it computes, as before; of terms under construction (`tamis.attr`) it makes a term or condition.

    >>> import tamis
    >>> @tamis.function(takes=("number", "string"), gives="number", version=1)
    ... def score(price, category):
    ...     return price * (2 if category == "Crime" else 1)
    >>> score(3, "Crime"), score.written
    (6, 'score@1')
    >>> print(score(tamis.attr("price"), tamis.attr("category")) > 3)
    score(price, category) > 3
    """

    def __init__(
        self,
        python: Callable[..., Any],
        *,
        name: str,
        takes: tuple[str, ...],
        gives: str,
        version: int,
        null: str,
        columns: Callable[..., Any] | None,
        limit_s: float,
        hooks: Mapping[str, Any],
    ) -> None:
        self.python, self.columns = python, columns
        self.name, self.version, self.limit_s = name, version, limit_s
        self.failures: Counter[str] = Counter()
        """How often it gave nothing: `raised`, `late`, `other kind`, and `given up` after it was late once; and how
        often its form over columns (`columns`) or what it says of itself (`hook`) could not be used."""
        self.row = Function(
            name=name,
            takes=takes,
            gives=gives,
            meaning=self.meaning,
            takes_nulls=null == "called",
            summary=(python.__doc__ or "a function of the host").strip().splitlines()[0],
            topic="Functions of the host",
            example=f"{name}({', '.join('abcdefgh'[: len(takes)])}) IS NULL",
            spark=None,
            no_value="an argument is NULL or of another kind, or the function raised, was late or gave another kind",
            version=version,
            **self._guarded(hooks),
        )
        self.hooks = dict(hooks)
        """What the author says of it, as it was given; those of the row say nothing where these raise."""
        self.node_name = HostedName(self)
        self._is_given_up = False
        self._is_named = False

    @property
    def written(self) -> str:
        """Its name and version."""
        return f"{self.name}@{self.version}"

    def __repr__(self) -> str:
        return f"<UserFunction {self.written}>"

    def __call__(self, *arguments: Any) -> Any:
        from tamis.language.builder import Value, call, test
        from tamis.language.expressions import Expression

        if any(isinstance(argument, Value | Expression) for argument in arguments):
            return (test if self.row.is_test else call)(self.node_name, *arguments)
        return self.python(*arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the name that it is imported by; what has none is pickled by value, by those who can."""
        module, name = self.python.__module__, self.python.__qualname__
        importable: Any = sys.modules.get(module)
        for part in name.split("."):
            importable = getattr(importable, part, None)
        if importable is self:
            return _imported, (module, name)
        null = "called" if self.row.takes_nulls else "strict"
        settings = {"takes": self.row.takes, "gives": self.row.gives, "version": self.version, "null": null}
        return _rebuilt, (
            self.python,
            self.name,
            {**settings, "columns": self.columns, "limit_s": self.limit_s, **self.hooks},
        )

    def _guarded(self, hooks: Mapping[str, Any]) -> dict[str, Any]:
        """Return hooks that know nothing where the author's raise."""
        return {name: self._guarded_hook(hook) if callable(hook) else hook for name, hook in hooks.items()}

    def _guarded_hook(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*arguments: Any) -> Any:
            try:
                return hook(*arguments)
            except Exception as error:
                if not self.failures["hook"]:
                    _log.warning("a hook of %s raised %s: %s", self.written, type(error).__name__, error)
                self.failures["hook"] += 1
                return None

        return asked

    def resume(self) -> None:
        """Call it again, although it was late."""
        self._is_given_up = False

    # -- Values

    def probe(self, *arguments: Any) -> Any:
        """Return its value for some arguments, NULL where it has none, without counting what goes wrong."""
        if self._is_given_up or not self._takes(arguments):
            return None
        (outcome,) = called(self.python, [arguments], self.limit_s)
        value = None if outcome.failure else value_of(outcome.value)
        return value if self.row.gives in ("any", kind_of(value)) else None

    def meaning(self, *arguments: Any) -> Any:
        """Return its value for some arguments, NULL where it has none."""
        return self.meanings([arguments])[0]

    def meanings(self, rows: list[tuple[Any, ...]]) -> list[Any]:
        """Return its values for many rows of arguments, each distinct row asked once."""
        results: list[Any] = [None] * len(rows)
        asked: dict[Any, list[int]] = {}
        distinct: list[tuple[Any, ...]] = []
        for number, row in enumerate(rows):
            if self._takes(row):
                key = repr(row)  # 1, 1.0 and True are equal in Python, and lists have no hash
                if key not in asked:
                    distinct.append(row)
                asked.setdefault(key, []).append(number)
        if not distinct:
            return results
        if self._is_given_up:
            self._fail("given up", "it was late before", len(distinct))
            return results
        outcomes = called(self.python, distinct, self.limit_s)
        for numbers, (value, failure) in zip(asked.values(), outcomes, strict=False):
            result = None if failure else self._fitting(value)
            if failure:
                self._is_given_up |= failure == LATE
                self._fail("late" if failure == LATE else "raised", failure)
            for number in numbers:
                results[number] = result
        if len(outcomes) < len(distinct):
            self._fail("given up", "it was late before", len(distinct) - len(outcomes))
        return results

    def _takes(self, row: tuple[Any, ...]) -> bool:
        for value, kind in zip(row, self.row.takes, strict=True):
            if value is None:
                if not self.row.takes_nulls:
                    return False
            elif kind != "any" and kind_of(value) != kind:
                return False
        return True

    def _fitting(self, raw: Any) -> Any:
        value = value_of(raw)
        if raw is None or (value is not None and self.row.gives in ("any", kind_of(value))):
            return value
        self._fail("other kind", f"it gave {type(raw).__name__} where it promised {self.row.gives}")
        return None

    def _fail(self, how: str, why: str, count: int = 1) -> None:
        self.failures[how] += count
        if not self._is_named:
            self._is_named = True
            _log.warning("the function %s gave no value, so its result is NULL: %s", self.written, why)


def _imported(module: str, name: str) -> UserFunction:
    function: Any = import_module(module)
    for part in name.split("."):
        function = getattr(function, part)
    assert isinstance(function, UserFunction)
    return function


def _rebuilt(python: Callable[..., Any], name: str, settings: dict[str, Any]) -> UserFunction:
    return function(name=name, **settings)(python)


def function(
    *,
    takes: Iterable[str],
    gives: str,
    version: int,
    name: str | None = None,
    null: str = "strict",
    columns: Callable[..., Any] | None = None,
    limit_s: float = 1.0,
    implies: Callable[[Literals, Literals], bool] | None = None,
    excludes: Callable[[Literals, Literals], bool] | None = None,
    unites: Callable[[Literals, Literals], Literals | None] | None = None,
    monotone: Iterable[str | None] = (),
    confines: Callable[[Literals, Literals, tuple[float, float]], tuple[float, float] | None] | None = None,
) -> Callable[[Callable[..., Any]], UserFunction]:
    """Make a Python function one that subscriptions can call, if a host registers it in `tamis.Functions`.

    takes      the kinds of its arguments: number, string, boolean, time, array or any
    gives      the kind of its result; boolean makes it a condition
    version    another one for every function that may give something else
    null       "strict": NULL in, NULL out; "called": it is called with None
    columns    the same over whole columns: it takes Arrow arrays and gives one
    limit_s    a call that takes longer gives NULL, and the function is not called again until `resume`
    implies    of two calls that differ in their literals: is the second true wherever the first is?
    excludes   are they never both true?
    unites     the literals of the call that is true where one of them is, None if there is none
    monotone   of each argument "up", "down" or None: where it alone grows, the result never falls, or never rises; NaN
               as an argument is left out, as a result it is the greatest number
    confines   of a number: if the first call lies between two bounds, between which the second lies; None if unknown

    The hooks are asked by covering, overlap and merging, and are the author's promise as the function itself is;
    `tamis.relations.refute` finds out what they say wrong of some samples.
    """
    kinds = tuple(takes)
    for kind in (*kinds, gives):
        if kind not in KINDS:
            raise FunctionError(f"a kind is one of {', '.join(KINDS)}, not {kind!r}")
    if gives == "any":
        raise FunctionError("a function says which kind it gives")
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise FunctionError(f"a version is a whole number from 0 up, not {version!r}")
    if null not in ("strict", "called"):
        raise FunctionError(f"null is 'strict' or 'called', not {null!r}")
    if not limit_s > 0:
        raise FunctionError(f"a limit is a number of seconds above zero, not {limit_s!r}")
    if gives != "boolean" and (implies or excludes or unites):
        raise FunctionError("only functions that give a Boolean may have implies, excludes or unites")
    if gives != "number" and confines:
        raise FunctionError("only functions that give a number may have confines")

    directions = _checked_directions(tuple(monotone), kinds, gives)

    def decorate(python: Callable[..., Any]) -> UserFunction:
        own: str = name or str(getattr(python, "__name__", ""))
        if not (own.isascii() and own.isidentifier() and own == own.lower()):
            raise FunctionError(
                f"{own!r} is not the name of a function: lower-case letters, digits and _, a letter first"
            )
        if own in FUNCTIONS or own in callable_names() or own.upper() in RESERVED:
            raise FunctionError(f"{own} is a function or word of the language")
        return UserFunction(
            python,
            name=own,
            takes=kinds,
            gives=gives,
            version=version,
            null=null,
            columns=columns,
            limit_s=limit_s,
            hooks={
                "implies": implies,
                "excludes": excludes,
                "unites": unites,
                "monotone": directions,
                "confines": confines,
            },
        )

    return decorate


def _checked_directions(directions: tuple[Any, ...], kinds: tuple[str, ...], gives: str) -> tuple[str | None, ...]:
    """Return how the result follows each argument, if that can be said of these kinds."""
    if not directions:
        return ()
    if len(directions) != len(kinds):
        raise FunctionError(
            f"monotone has a direction for each of {len(kinds)} arguments, not {len(directions)} directions"
        )
    for direction, kind in zip(directions, kinds, strict=True):
        if direction not in ("up", "down", None):
            raise FunctionError(f"monotone is 'up', 'down' or None for each argument, not {direction!r}")
        if direction is not None and (kind != "number" or gives != "number"):
            raise FunctionError(
                "only functions that give a number may be monotone, and only in arguments that are numbers"
            )
    return directions if any(directions) else ()


class Functions(Mapping[str, UserFunction]):
    """The functions that subscriptions of a host may call, by name.

    >>> import tamis
    >>> @tamis.function(takes=["number"], gives="number", version=2)
    ... def half(number):
    ...     return number / 2
    >>> functions = Functions([half])
    >>> tamis.holds(tamis.parse("half(price) < 10", functions=functions), {"price": 12})
    True
    >>> functions.versions
    {'half': 2}
    """

    def __init__(self, functions: Iterable[UserFunction] = ()) -> None:
        self._functions: dict[str, UserFunction] = {}
        for each in functions:
            if not isinstance(each, UserFunction):
                raise FunctionError(f"a function is made by tamis.function, not {type(each).__name__}")
            if each.name in self._functions:
                raise FunctionError(f"two functions are called {each.name}")
            self._functions[each.name] = each

    def __getitem__(self, name: str) -> UserFunction:
        return self._functions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Functions) and self._functions == other._functions

    def __hash__(self) -> int:
        return hash(frozenset(self.versions.items()))

    @property
    def versions(self) -> dict[str, int]:
        """The version of each function, by name: what files and messages have."""
        return {name: function.version for name, function in sorted(self._functions.items())}

    @property
    def failures(self) -> dict[str, dict[str, int]]:
        """How often each function gave no value, and why, of those that ever did."""
        return {each.written: dict(each.failures) for each in self._functions.values() if each.failures}

    def hosted(self, written: str) -> HostedName:
        """Return the function of a name and version, or say which one is missing."""
        name, _, version = written.partition("@")
        function = self._functions.get(name)
        if function is None:
            raise UnknownFunctionError(
                f"the function {written} is not registered", hint="Pass tamis.Functions([...]) as functions=."
            )
        if version and version != str(function.version):
            raise UnknownFunctionError(
                f"the function {written} is not registered, but {function.written} is",
                hint="Another version may give something else.",
            )
        return function.node_name

    def objection(self, expression: Expression) -> str | None:
        """Return which function a condition calls that is not one of these; None if there is none.

        >>> import tamis
        >>> half = tamis.function(takes=["number"], gives="number", version=2, name="half")(lambda number: number / 2)
        >>> Functions().objection(tamis.parse("half(price) < 10", functions=Functions([half])))
        'the function half@2 is not registered; no functions are'
        """
        for node in postorder(expression):
            name = getattr(node, "function", "")
            if isinstance(name, HostedName) and self._functions.get(name.function.name) is not name.function:
                return f"the function {name.function.written} is not registered; {self.described()}"
        return None

    def described(self) -> str:
        """Say which there are."""
        names = ", ".join(sorted(each.written for each in self._functions.values()))
        return f"those of this host are {names}" if names else "no functions are"

    def demand(self, versions: Mapping[str, int]) -> None:
        """Raise unless all these functions are there, in these versions."""
        for name, version in versions.items():
            self.hosted(f"{name}@{version}")

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Let texts that are read meanwhile, in this thread, call these functions; matchers that are made have them."""
        token = _in_use.set(self)
        try:
            yield
        finally:
            _in_use.reset(token)


NO_FUNCTIONS = Functions()
_in_use: ContextVar[Functions] = ContextVar("functions", default=NO_FUNCTIONS)


def in_use() -> Functions:
    """Return the functions that texts may call at this moment."""
    return _in_use.get()


def functions_of(given: Functions | None, schema: Schema | None = None) -> Functions:
    """Return the functions that somebody has to do with: those given, else those in use, else those of the schema."""
    if given is None:
        given = in_use() or (NO_FUNCTIONS if schema is None else schema.functions)
    if not isinstance(given, Functions):
        raise FunctionError(f"functions are tamis.Functions([...]), not {type(given).__name__}")
    return given


def hosted_in(nodes: Iterable[Expression]) -> dict[str, int]:
    """Return the names and versions of the user functions that some nodes call."""
    names = (getattr(node, "function", "") for node in nodes)
    return {str(name): name.function.version for name in names if isinstance(name, HostedName)}
