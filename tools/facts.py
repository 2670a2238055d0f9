"""How hard is the code to enter? A few facts, measured, to be compared before and after a change.

    python tools/facts.py                           what the source and the imports say
    python tools/facts.py --junit results.xml       and how long the tests took (pytest --junit-xml=results.xml)
    python tools/facts.py --test-seconds 540        the same, read off a clock
    python tools/facts.py --json > before.json      for programs

A function is as long as its definition, docstring and comments included. Parameters are all that a caller can pass. A
comment line has nothing but a comment on it. A vague local is one called `found` or `told`, which says how a value came
and not what it is. An import is timed in fresh processes, the least time of some of them is reported, and compiled
Python is already on the disk: what is measured is what a user waits for the second time. On a busy machine only the
processor time means anything.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import subprocess
import sys
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).parent.parent / "src"
IMPORTED = ("tamis", "tamis.matching")
"""The imports that users wait for."""
TIMED = 5
"""So many processes are started for each import."""
OWN = ("tamis", "tamis_lab")
VAGUE = ("found", "told")
"""Names of locals that say nothing about what they hold."""
_PROGRAM = """
import json, sys, time
start = time.process_time(), time.perf_counter()
import {name}
taken = time.process_time() - start[0], time.perf_counter() - start[1]
own = [module for module in sys.modules if module.split(".")[0] in {own!r}]
print(json.dumps([*taken, len(sys.modules), len(own)]))
"""


def facts(source: Path = SOURCE, *, test_s: float | None = None) -> dict[str, Any]:
    """Return everything that is measured, by name."""
    files = sorted(source.rglob("*.py"))
    functions = [function for path in files for function in functions_of(path, source)]
    longest = max(functions, key=lambda function: function["lines"])
    widest = max(functions, key=lambda function: function["parameters"])
    kernels = [path for path in files if path.name == "kernels.py"]
    return {
        "longest function": {"name": longest["name"], "lines": longest["lines"]},
        "most parameters": {"name": widest["name"], "parameters": widest["parameters"]},
        "kernels": {
            "modules": len(kernels),
            "lines": sum(len(path.read_text("utf-8").splitlines()) for path in kernels),
            "comment lines": sum(comment_lines(path.read_text("utf-8")) for path in kernels),
        },
        "names": {
            "functions with a vague local": sum(function["is vague"] for function in functions),
            "classes with one name in several modules": len(namesakes(files, source)),
        },
        "modules per package": modules_per_package(files, source),
        "imports": {name: import_cost(name, source) for name in IMPORTED if (source / name.split(".")[0]).is_dir()},
        "make test": {"seconds": test_s},
    }


@cache
def parsed(path: Path) -> ast.Module:
    """Return a module's tree, read once for all questions."""
    return ast.parse(path.read_text("utf-8"))


def functions_of(path: Path, source: Path) -> Iterator[dict[str, Any]]:
    """Yield the functions of a module: name, length, number of parameters."""
    module = ".".join(path.relative_to(source).with_suffix("").parts)
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            several = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
            count = sum(parameter is not None and parameter.arg not in ("self", "cls") for parameter in several)
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            is_vague = not locals_of(node).isdisjoint(VAGUE)
            yield {"name": f"{module}.{node.name}", "lines": lines, "parameters": count, "is vague": is_vague}


def locals_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    r"""Return the names that a function itself assigns; those of functions inside it are theirs.

    >>> sorted(locals_of(ast.parse("def f(a):\n    b = [c for c in a]\n    def d():\n        e = 1").body[0]))
    ['b', 'c']
    """
    names: set[str] = set()
    nodes: list[ast.AST] = [*function.body]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            names.add(node.name)
        nodes += ast.iter_child_nodes(node)
    return names


def namesakes(files: list[Path], source: Path) -> dict[str, list[str]]:
    """Return the names of classes that stand in several modules, with these modules."""
    homes: dict[str, list[str]] = {}
    for path in files:
        module = ".".join(path.relative_to(source).with_suffix("").parts)
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef) and module not in homes.setdefault(node.name, []):
                homes[node.name].append(module)
    return {name: modules for name, modules in sorted(homes.items()) if len(modules) > 1}


def comment_lines(text: str) -> int:
    r"""Count the lines that hold nothing but a comment.

    >>> comment_lines("# why\nx = 1  # what\ny = '# neither'\n")
    1
    """
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type == tokenize.COMMENT and token.line.lstrip().startswith("#") for token in tokens)


def modules_per_package(files: list[Path], source: Path) -> dict[str, int]:
    """Count the modules of each package, those of its parts included; a package itself is none."""
    places = (path.relative_to(source).parts for path in files if path.name != "__init__.py")
    counts = Counter(".".join(parts[: min(2, len(parts) - 1)]) for parts in places)
    return dict(sorted(counts.items()))


def import_cost(name: str, source: Path = SOURCE) -> dict[str, float | int]:
    """Return how long an import takes in a fresh process, and how many modules it loads, all and our own."""
    program = _PROGRAM.format(name=name, own=OWN)
    environment = os.environ | {"PYTHONPATH": str(source)}
    measured = []
    for _ in range(TIMED + 1):  # the first one writes what Python compiles, and is left out
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=120
        )
        measured.append(json.loads(done.stdout))
    processor_s, clock_s, modules, own = min(measured[1:])
    return {
        "processor seconds": round(processor_s, 3),
        "seconds": round(clock_s, 3),
        "modules": modules,
        "own modules": own,
    }


def junit_seconds(path: Path) -> float:
    """Return how long the tests took, by the clock, as pytest's JUnit file says."""
    return sum(float(suite.get("time", 0)) for suite in ElementTree.parse(path).getroot().iter("testsuite"))


def as_text(measured: dict[str, Any]) -> str:
    """Write the facts for people: one line each."""
    lines = []
    for name, fact in measured.items():
        for part, value in fact.items():
            shown = ", ".join(f"{unit} {count}" for unit, count in value.items()) if isinstance(value, dict) else value
            lines.append(f"{name}: {part}: {'not measured' if shown is None else shown}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Facts about the code, to be compared before and after a change.")
    parser.add_argument("--source", type=Path, default=SOURCE, help="the folder that holds the packages")
    parser.add_argument("--json", action="store_true", help="for programs")
    seconds = parser.add_mutually_exclusive_group()
    seconds.add_argument("--junit", type=Path, help="pytest's JUnit file of the tests")
    seconds.add_argument("--test-seconds", type=float, help="how long the tests took")
    given = parser.parse_args(arguments)
    measured = facts(given.source, test_s=junit_seconds(given.junit) if given.junit else given.test_seconds)
    print(json.dumps(measured, indent=2) if given.json else as_text(measured))


if __name__ == "__main__":
    main()
