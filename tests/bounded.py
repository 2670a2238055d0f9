"""Does it end, within so much time of the processor and so much memory?

    python -m tests.bounded MODULE

reads lines of JSON, [operation, text], and answers each with what became of it: "done", the name of the error that it
raised, or "stopped" where a limit was reached. The operations are those of `OPERATIONS` of a module of tests. Each runs
in a process of its own, forked where everything is imported and compiled already, so the limits are for the operation
alone, and an operation that goes mad takes nothing with it.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

CPU_S = 20
"""Far more than anything takes that has a budget, and far less than what has none."""
MEMORY_BYTES = 2 << 30


def outcomes(module: str, cases: Iterable[tuple[str, str]]) -> list[str]:
    """Return what became of each operation of a module on a text, in a process of its own."""
    given = "".join(json.dumps(case) + "\n" for case in cases)
    root = Path(__file__).parent.parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *filter(None, sys.path)])}
    found = subprocess.run(
        [sys.executable, "-m", "tests.bounded", module],
        input=given,
        capture_output=True,
        text=True,
        cwd=root,
        env=environment,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return found.stdout.splitlines()


def main(module: str) -> None:
    """Answer the lines of the standard input."""
    operations: dict[str, Callable[[str], object]] = import_module(module).OPERATIONS
    for operation in operations.values():
        operation("p0 AND (x > 3 OR p1) AND NOT p2")  # imports and compiles
    for line in sys.stdin:
        name, text = json.loads(line)
        print(_outcome(operations[name], text), flush=True)


def _outcome(operation: Callable[[str], object], text: str) -> str:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
        own = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (own + MEMORY_BYTES, own + MEMORY_BYTES))
        try:
            operation(text)
            answer = "done"
        except BaseException as error:
            answer = type(error).__name__
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer or "stopped"


if __name__ == "__main__":
    main(sys.argv[1])
