"""Every setting is read by something: one that nobody reads would promise what nobody does."""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec
import pytest

import tamis
from tamis.service.node import NodeLimits
from tamis.service.serving import _node_limits
from tamis.service.settings import LimitSettings, Settings
from tamis.service.settings.shapes import (
    CatchUp,
    Issuer,
    JetStream,
    LinkAdaptation,
    LinkListener,
    LinkPruning,
    LinkSettings,
    LinkTls,
    Listener,
    Logging,
    LogSettings,
    Publishing,
    Role,
    Tls,
    TracingSettings,
    WebhookSettings,
)

TABLES = {
    Settings: {"settings", "_settings"},
    LimitSettings: {"limits", "_limits"},
    LogSettings: {"log"},
    JetStream: {"jetstream"},
    Listener: {"listener", "each"},
    Tls: {"tls", "_tls", "settings"},
    LinkListener: {"listener", "each"},
    LinkSettings: {"link", "links", "settings", "each"},
    LinkTls: {"tls", "link_tls"},
    LinkPruning: {"pruning"},
    LinkAdaptation: {"adaptation"},
    WebhookSettings: {"webhooks"},
    TracingSettings: {"tracing"},
    CatchUp: {"catch_up"},
    Logging: {"logging", "settings"},
    Role: {"role", "_roles", "known"},
    Publishing: {"publishing", "publish"},
    Issuer: {"issuer"},
}
"""How the code calls a table where it reads it."""
OF_THE_SETTINGS = ("shapes.py", "reloading.py", "writing.py")
"""What speaks of all settings alike, and so reads none of them."""


def accesses(source: str) -> set[tuple[str, str]]:
    """Return what is read of what: `limits.depth` is ("limits", "depth"), `_roles[name].mode` is ("_roles", "mode").

    A limit that is read by its name, as `bucket("events_per_s", …)` does, is one too.
    """
    pairs = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "bucket":
            pairs.add(("limits", ast.literal_eval(node.args[0])))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            owner = node.value.value if isinstance(node.value, ast.Subscript) else node.value
            if isinstance(owner, ast.Name | ast.Attribute):
                pairs.add((owner.id if isinstance(owner, ast.Name) else owner.attr, node.attr))
    return pairs


def read_anywhere() -> set[tuple[str, str]]:
    root = Path(tamis.__file__).parent
    shapes = (root / "service" / "settings" / "shapes.py").read_text()
    own = {("settings", name) for owner, name in accesses(shapes) if owner == "self"}
    files = [*(root / "service").rglob("*.py"), *(root / "cli").rglob("*.py")]
    return own | {pair for file in files if file.name not in OF_THE_SETTINGS for pair in accesses(file.read_text())}


def unread(tables, pairs) -> list[str]:
    return [
        f"{table.__name__}.{field.name}"
        for table, names in tables.items()
        for field in msgspec.structs.fields(table)
        if not any((name, field.name) in pairs for name in names)
    ]


def test_every_setting_is_read_by_something():
    assert unread(TABLES, read_anywhere()) == []


def test_every_table_of_the_settings_is_looked_at():
    seen, waiting = set(), [Settings]
    while waiting:
        table = waiting.pop()
        seen.add(table)
        for field in msgspec.structs.fields(table):
            waiting += [kind for kind in structs_in(field.type) if kind not in seen]
    assert seen == set(TABLES)


def structs_in(kind) -> list[type]:
    from typing import get_args

    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [kind] if kind.__module__ == Settings.__module__ else []
    return [each for argument in get_args(kind) for each in structs_in(argument)]


def test_a_setting_that_nobody_reads_is_found():
    class Extended(LimitSettings, frozen=True, kw_only=True):
        dreams: int = 1

    assert unread({Extended: {"limits"}}, read_anywhere()) == ["Extended.dreams"]


@pytest.mark.parametrize("field", NodeLimits.__struct_fields__)
def test_every_limit_of_a_node_comes_from_the_settings(field):
    plain = _node_limits(LimitSettings())
    others = LimitSettings(**dict.fromkeys(LimitSettings.__struct_fields__, 7))
    assert getattr(_node_limits(others), field) == 7 != getattr(plain, field)
