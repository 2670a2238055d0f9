"""How does what people wrote become settings? Checked, name by name, against the Structs.

msgspec checks values; the walk over the tables is ours, because a mistake has to say which file, variable or flag it
stands in, and what a misspelt name may have meant.
"""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from tamis.errors import did_you_mean
from tamis.service.errors import SettingsError
from tamis.service.settings.checking import check
from tamis.service.settings.layers import Given, Table, Tree, laid_over, of_environment, of_file, of_overrides
from tamis.service.settings.quantities import Duration, KeepLimits, Size
from tamis.service.settings.shapes import Settings

_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")


def read_settings(
    path: Path | str | None = None,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    """Return the settings that a file, the environment and flags say together; the later ones are right.

    Raise a `SettingsError` for a name or value that means nothing, for a filter of a role that is none, and for
    addresses that are not safe to listen on.

    >>> settings = read_settings(environment={"TAMIS_LOG__SYNC": "0.2s"}, overrides={"listeners.0.port": 8000})
    >>> settings.log.sync, settings.listeners[0].port
    (0.2, 8000)
    >>> read_settings(overrides={"log.kep": "7d"})
    Traceback (most recent call last):
        ...
    tamis.service.errors.SettingsError: the flag for log.kep: there is no setting log.kep; expected one of sync, ...
    """
    tree = of_file(Path(path)) if path is not None else Table("the settings")
    tree = laid_over(tree, of_environment(environment or {}, Settings.__struct_fields__))
    tree = laid_over(tree, of_overrides(overrides or {}))
    settings: Settings = _table(Settings, tree, "")
    check(settings, tree.source)
    return settings


def _table(kind: type[Any], tree: Tree, name: str) -> Any:
    if not isinstance(tree, Table):
        raise SettingsError(f"{tree.source}: {name} is a table, and {tree.value!r:.60} is not", f"[{name}]")
    hints = get_type_hints(kind, include_extras=True)
    members = {}
    for key, member in tree.items():
        dotted = f"{name}.{key}" if name else key
        if key not in hints:
            hint = did_you_mean(key, hints)
            raise SettingsError(
                f"{member.source}: there is no setting {dotted}",
                f"one of {', '.join(hints)}{'. ' + hint if hint else ''}",
            )
        members[key] = _value(hints[key], member, dotted)
    for field in msgspec.structs.fields(kind):
        if field.required and field.name not in members:
            raise SettingsError(f"{tree.source}: {name} lacks {field.name}", f"{name}.{field.name} = …")
    return kind(**members)


def _value(annotation: Any, tree: Tree, name: str) -> Any:
    plain = _plain(annotation)
    if isinstance(plain, type) and issubclass(plain, msgspec.Struct) and plain is not KeepLimits:
        return _table(plain, tree, name)
    origin, arguments = get_origin(plain), get_args(plain)
    if origin is tuple and isinstance(arguments[0], type) and issubclass(arguments[0], msgspec.Struct):
        return _tables(arguments[0], tree, name)
    if origin is Mapping:
        if not isinstance(tree, Table):
            raise SettingsError(f"{tree.source}: {name} is a table, and {tree.value!r:.60} is not", f"[{name}]")
        return {key: _value(arguments[1], member, f"{name}.{key}") for key, member in tree.items()}
    if plain is Any:
        return (
            {key: _value(Any, member, name) for key, member in tree.items()} if isinstance(tree, Table) else tree.value
        )
    if isinstance(tree, Table):
        raise SettingsError(f"{tree.source}: {name} is not a table", f"{name} = …")
    return _leaf(annotation, tree, name)


def _plain(annotation: Any) -> Any:
    """Return a type without what is said of it, and without None."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, types.UnionType):
        others = [member for member in get_args(annotation) if member is not type(None)]
        return _plain(others[0]) if len(others) == 1 else annotation
    return annotation


def _tables(kind: type[Any], tree: Tree, name: str) -> tuple[Any, ...]:
    if isinstance(tree, Given) and tree.value == []:
        return ()
    if not isinstance(tree, Table) or sorted(tree) != sorted(map(str, range(len(tree)))):
        raise SettingsError(f"{tree.source}: {name} is a list of tables, numbered from 0", f"[[{name}]]")
    return tuple(_table(kind, tree[str(number)], f"{name}.{number}") for number in range(len(tree)))


def _leaf(annotation: Any, given: Given, name: str) -> Any:
    value, plain = given.value, _plain(annotation)
    try:
        if isinstance(plain, type) and issubclass(plain, Duration | Size | KeepLimits):
            is_bare = given.is_text and _NUMBER.fullmatch(value) is not None
            return plain.read(float(value) if is_bare else value)
        if given.is_text and get_origin(plain) is tuple:
            value = [part.strip() for part in value.split(",") if part.strip()]
        return msgspec.convert(value, annotation, strict=not given.is_text)
    except ValueError as error:  # msgspec's are such, too
        what, _, expected = str(error).partition("; expected ")
        raise SettingsError(f"{given.source}: {name}: {what}", expected) from error
