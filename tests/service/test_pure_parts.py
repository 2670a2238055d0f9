from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tamis.service

HOME = Path(tamis.service.__file__).parent
WORLD = {
    "asyncio",
    "aiohttp",
    "socket",
    "ssl",
    "threading",
    "time",
    "random",
    "secrets",
    "sqlite3",
    "datetime",
    "uvloop",
}
PURE = ["permissions.py", "quotas.py", *(f"settings/{path.name}" for path in sorted((HOME / "settings").glob("*.py")))]
WITHOUT_AIOHTTP = [*PURE, "principals.py", "tokens.py", "tls.py"]


def imported(name: str) -> set[str]:
    nodes = ast.walk(ast.parse((HOME / name).read_text("utf-8")))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    nodes = ast.walk(ast.parse((HOME / name).read_text("utf-8")))
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.split(".")[0] for name in names}


@pytest.mark.parametrize("name", PURE)
def test_what_decides_knows_no_clock_socket_thread_or_chance(name):
    assert imported(name) & WORLD == set()


@pytest.mark.parametrize("name", WITHOUT_AIOHTTP)
def test_security_does_not_depend_on_the_web_framework(name):
    assert "aiohttp" not in imported(name)
