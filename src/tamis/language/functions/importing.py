"""Which functions does a setting name? Those of a module that can be imported.

A command or a served broker is given its functions by a name such as `my_rules:functions`: a module, and what it calls
its `tamis.Functions`. The module is code of the host's, installed where the host runs; a text of a subscriber cannot
name one.
"""

from __future__ import annotations

from importlib import import_module

from tamis.errors import FunctionError
from tamis.language.functions.hosted import Functions, UserFunction

_RIGHT = "Write module:name, such as my_rules:functions, where my_rules.py has functions = tamis.Functions([...])."


def imported_functions(address: str) -> Functions:
    """Return the functions that a module has under a name; several functions in a list will do, and a single one.

    >>> imported_functions("json:dumps")
    Traceback (most recent call last):
        ...
    tamis.errors.FunctionError: json:dumps is a function, not tamis.Functions([...])
      Write module:name, such as my_rules:functions, where my_rules.py has functions = tamis.Functions([...]).
    """
    module, colon, name = address.partition(":")
    parts = [*module.split("."), *name.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        raise FunctionError(f"{address!r:.80} does not name functions", hint=_RIGHT)
    try:
        named: object = import_module(module)
    except Exception as error:  # whatever the module of somebody else does while it is imported
        what = f"{type(error).__name__}: {error}"
        raise FunctionError(f"the module {module} cannot be imported: {what:.200}", hint=_RIGHT) from error
    for part in name.split("."):
        if not hasattr(named, part):
            raise FunctionError(f"the module {module} has no {name}", hint=_RIGHT)
        named = getattr(named, part)
    if isinstance(named, Functions):
        return named
    if isinstance(named, UserFunction):
        return Functions([named])
    if isinstance(named, list | tuple):
        return Functions(named)
    raise FunctionError(f"{address} is a {type(named).__name__}, not tamis.Functions([...])", hint=_RIGHT)
