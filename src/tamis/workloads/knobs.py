"""Which knobs does a workload have, and how is one set from a text?

A knob is a field of the workload's dataclass: its name, its type, where it stands, and what its docstring says. So
there is no list of knobs beside the fields, and a new field can be set from the command line at once. Texts are read
by the type: a number, a name, `true` or `false`, `none` where nothing is allowed, and several numbers with commas.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import MISSING, dataclass, fields
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from tamis.workloads.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tamis.workloads.base import Workload

_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Knob:
    """One thing about a workload that can be set."""

    name: str
    default: Any
    about: str
    """What its docstring says."""
    type: Any

    @property
    def default_text(self) -> str:
        """The default as it would be written.

        >>> from tamis.workloads import WORKLOADS
        >>> knobs_of(WORKLOADS["auction"])["subscription_mix"].default_text
        '1,1,1'
        """
        return _written(self.default)

    def read(self, text: str) -> Any:
        """Return the value that a text stands for, or raise `ParameterError`."""
        return _read(self.name, text, self.type)


def knobs_of(make: Callable[..., Workload]) -> dict[str, Knob]:
    """Return the knobs of a workload by name; what a name of it has decided already is none.

    >>> from tamis.workloads import WORKLOADS
    >>> list(knobs_of(WORKLOADS["w1"])), list(knobs_of(WORKLOADS["flights"]))
    (['attributes_per_event'], [])
    """
    made, decided = (make.func, len(make.args)) if isinstance(make, partial) else (make, 0)
    if not isinstance(made, type):
        return {}
    types, about = get_type_hints(made), _docstrings(made)
    return {
        field.name: Knob(field.name, field.default, about.get(field.name, ""), types[field.name])
        for field in fields(made)[decided:]
        if field.default is not MISSING and field.init
    }


def with_knobs(make: Callable[..., Workload], texts: Iterable[str]) -> Workload:
    """Make a workload with some knobs set, each by a text `name=value`.

    >>> from tamis.workloads import WORKLOADS
    >>> with_knobs(WORKLOADS["auction"], ["operand_distribution=zipf", "subscription_mix=0,0,1"]).subscription_mix
    (0.0, 0.0, 1.0)
    """
    known = knobs_of(make)
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or name not in known:
            named = f"NAME=VALUE, with one of {', '.join(known)}" if known else "left out: this workload has none"
            raise ParameterError("a knob", text, named)
        if name in values:
            raise ParameterError("a knob", text, f"named once, and {name} is named twice")
        values[name] = known[name].read(value.strip())
    return make(**values)


def _read(name: str, text: str, wanted: Any) -> Any:
    choices = get_args(wanted)
    if type(None) in choices:
        if text.lower() == "none":
            return None
        return _read(name, text, next(each for each in choices if each is not type(None)))
    if choices:  # a tuple
        one = choices[0]
        parts = tuple(_read(name, part.strip(), one) for part in text.split(","))
        if Ellipsis not in choices and len(parts) != len(choices):
            raise ParameterError(name, text, f"{len(choices)} values with commas")
        return parts
    if wanted is bool:
        if text.lower() not in _TRUTHS:
            raise ParameterError(name, text, "true or false")
        return _TRUTHS[text.lower()]
    if wanted is str:
        return text
    try:
        value = wanted(text)
    except ValueError:
        raise ParameterError(name, text, "an integer" if wanted is int else "a number") from None
    if not isfinite(value):
        raise ParameterError(name, text, "a finite number")
    return value


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_written, value))
    return (
        {True: "true", False: "false", None: "none"}[value]
        if value is None or value is True or value is False
        else (f"{value:g}" if isinstance(value, float) else str(value))
    )


def _docstrings(made: type) -> dict[str, str]:
    """Return what stands below each field of a class; the language itself does not keep it."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(made))).body
    assert isinstance(tree, ast.ClassDef)
    texts = {}
    for one, below in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and isinstance(below, ast.Expr):
            texts[one.target.id] = " ".join(str(ast.literal_eval(below.value)).split())
    return texts
