"""What decides has no clock, chance, socket, thread or loop: it can be tested by saying what happens."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tamis.service

FOLDER = Path(tamis.service.__file__).parent
PURE = (
    "node", "roster", "subscribers", "deliveries", "dispatching", "catching_up", "gate", "recent", "event_keys", "unwanted",
    "interest", "changes", "messages", "positions", "errors", "permissions", "quotas", "log/base", "log/retention",
    "links/frames", "links/sessions", "links/settling", "links/neighbours", "links/talking", "links/requests",
    "links/terms", "links/dialling",
)  # fmt: skip
NEVER = {"asyncio", "aiohttp", "socket", "threading", "time", "random", "os", "sqlite3", "uvloop", "queue", "secrets"}


@pytest.mark.parametrize("name", [name for name in PURE if (FOLDER / f"{name}.py").exists()])
def test_a_module_that_decides_imports_nothing_that_acts(name):
    tree = ast.parse((FOLDER / f"{name}.py").read_text("utf-8"))
    imported = {
        module.split(".")[0]
        for statement in ast.walk(tree)
        for module in (
            [alias.name for alias in statement.names]
            if isinstance(statement, ast.Import)
            else [statement.module or ""]
            if isinstance(statement, ast.ImportFrom)
            else []
        )
    }
    assert not imported & NEVER
