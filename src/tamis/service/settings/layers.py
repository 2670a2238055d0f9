"""Who decides if file, environment and flags differ? The later one: layers of settings.

Each layer becomes a tree of tables whose leaves know where they come from, so that a mistake is told with its
place: the file and the name in it, the variable, or the flag. Trees are laid over each other name by name.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from tamis.errors import did_you_mean
from tamis.service.errors import SettingsError

PREFIX = "TAMIS_"


class Given(NamedTuple):
    """A value, as somebody gave it."""

    value: Any
    source: str
    """Where: a file, a variable, a flag."""
    is_text: bool
    """Whether it came as text, whatever it stands for: `"5"` may be a number then."""


class Table(dict[str, "Tree"]):
    """Names and what was given for them. A list of tables is one, too, with numbers for names."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source


Tree: TypeAlias = Table | Given


def of_file(path: Path) -> Table:
    """Return what a file says; raise a `SettingsError` if it cannot be read."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}", "a file in TOML") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not TOML: {error}", "a file in TOML, in UTF-8") from error
    tree = _tree(document, str(path))
    assert isinstance(tree, Table)
    return tree


def _tree(value: object, source: str) -> Tree:
    if isinstance(value, Mapping):
        members = {str(name): member for name, member in value.items()}
    elif isinstance(value, list) and value and all(isinstance(member, dict) for member in value):
        members = {str(number): member for number, member in enumerate(value)}
    else:
        return Given(value, source, is_text=False)
    table = Table(source)
    for name, member in members.items():
        table[name] = _tree(member, source)
    return table


def of_environment(environment: Mapping[str, str], names: Iterable[str]) -> Table:
    """Return what variables say: `TAMIS_LOG__SYNC` is the setting `log.sync`.

    `names` are the settings outside of all tables. A variable without `__` that resembles none of them is no setting:
    commands read some, and a cluster that has a service of this name sets `TAMIS_PORT` and others in every container.
    """
    names = list(names)
    tree = Table("the environment")
    for variable in sorted(environment):
        path = variable[len(PREFIX) :].lower().split("__")
        is_setting = len(path) > 1 or path[0] in names or did_you_mean(path[0], names) is not None
        if variable.startswith(PREFIX) and is_setting:
            _put(tree, path, Given(environment[variable], f"the variable {variable}", is_text=True))
    return tree


def of_overrides(overrides: Mapping[str, object]) -> Table:
    """Return what flags say, by dotted names such as `listeners.0.port`; None is for a flag that was not given."""
    tree = Table("the command line")
    for name, value in overrides.items():
        if value is not None:
            if isinstance(value, Path):
                value = str(value)
            _put(tree, name.split("."), Given(value, f"the flag for {name}", is_text=isinstance(value, str)))
    return tree


def _put(tree: Table, path: list[str], leaf: Given) -> None:
    for name in path[:-1]:
        inner = tree.get(name)
        if not isinstance(inner, Table):
            inner = tree[name] = Table(leaf.source)
        tree = inner
    tree[path[-1]] = leaf


def laid_over(below: Table, above: Table) -> Table:
    """Return both in one tree; where both say something, the one above is right."""
    both = Table(below.source)
    both.update(below)
    for name, new in above.items():
        old = both.get(name)
        both[name] = laid_over(old, new) if isinstance(old, Table) and isinstance(new, Table) else new
    return both
