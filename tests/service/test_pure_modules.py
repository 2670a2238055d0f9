"""What decides has no clock, chance, socket, thread or loop: it can be tested by saying what happens."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tamis.service

FOLDER = Path(tamis.service.__file__).parent
PURE = (
    "node", "roster", "subscribers", "deliveries", "dispatching", "catching_up", "gate", "grouping", "recent", "event_keys", "unwanted",
    "interest", "standing", "windows", "changes", "messages", "positions", "errors", "permissions", "quotas", "filters", "dialects",
    "starting_points", "cloud_events", "content_modes", "log/base", "log/retention", "links/frames", "links/sessions",
    "links/neighbours", "links/graph_neighbours", "links/agreement", "links/talking", "links/requests",
    "issuers/claims", "links/terms", "links/dialling", *(f"settings/{path.stem}" for path in sorted((FOLDER / "settings").glob("*.py"))),
)  # fmt: skip
NEVER = {
    "asyncio", "aiohttp", "socket", "ssl", "threading", "time", "random", "os", "sqlite3", "uvloop", "queue", "secrets",
}  # fmt: skip


def imported(name: str) -> set[str]:
    """Return the packages that a module imports, wherever in it."""
    nodes = list(ast.walk(ast.parse((FOLDER / f"{name}.py").read_text("utf-8"))))
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {module.split(".")[0] for module in modules}


@pytest.mark.parametrize("name", PURE)
def test_a_module_that_decides_imports_nothing_that_acts(name):
    assert not imported(name) & NEVER


@pytest.mark.parametrize("name", ["principals", "tokens", "tls"])
def test_security_does_not_depend_on_the_web_framework(name):
    assert "aiohttp" not in imported(name)
