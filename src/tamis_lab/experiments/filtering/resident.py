"""How much memory does an algorithm take, as the system sees it? In a process of its own, which does nothing else.

The source read the memory of its process. Ours is an interpreter with compiled code, so what a process has resident is
read before and after subscriptions are registered, and compared with that of a process that registers only their
predicates: the index of predicates is left out, as in the source. Texts are parsed a thousand at a time and forgotten.

Source: Bittner 2008, section 5.6 (docs/bibliography.md).
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tamis.language import parse
from tamis_lab.experiments.errors import LabError
from tamis_lab.experiments.filtering.subjects import field_of
from tamis_lab.matching.predicates import PredicateRegistry
from tamis_lab.matching.shapes import shaped

if TYPE_CHECKING:
    from collections.abc import Sequence

PREDICATES = "predicates alone"
_STATUS = Path("/proc/self/statm")
_CHUNK = 1_000


def is_readable() -> bool:
    """Does this system say how much memory a process has?"""
    return _STATUS.exists()


def resident_bytes(name: str, texts: Sequence[str]) -> float:
    """Return the bytes a subscription by which a process grows that registers these with an algorithm.

    The process is warm: it has registered some before. What they took is not counted.
    """
    with TemporaryDirectory(prefix="tamis-lab-") as folder:
        file = Path(folder) / "texts.json"
        file.write_text(json.dumps(list(texts)), "utf-8")
        arguments = [sys.executable, "-m", __name__, name, str(file)]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"the process that registers with {name} failed: {done.stderr[-300:]}")
    return int(done.stdout) / len(texts)


def own_resident(names: Sequence[str], texts: Sequence[str]) -> dict[str, float]:
    """Return what processes take for algorithms, without what one takes for the predicates alone."""
    index = resident_bytes(PREDICATES, texts)
    return {name: resident_bytes(name, texts) - index for name in names}


def grown(name: str, texts: Sequence[str]) -> int:
    """Register with an algorithm, and return by how many bytes this process has grown."""
    _registered(name, texts[: 2 * _CHUNK])  # compiles, and fills what is kept for everybody
    gc.collect()
    before = _resident()
    kept = _registered(name, texts)
    gc.collect()
    after = _resident()
    assert kept is not None
    return after - before


def _registered(name: str, texts: Sequence[str]) -> object:
    if name == PREDICATES:
        index = PredicateRegistry()
        for text in texts:
            index.add_all(shaped(parse(text), "lab").predicates)
        index.view()
        return index
    engine = field_of(name)[name].engine
    for begin in range(0, len(texts), _CHUNK):
        prepared = engine.prepare([parse(text) for text in texts[begin : begin + _CHUNK]])
        engine.add(range(begin, begin + len(texts[begin : begin + _CHUNK])), prepared)
    engine.compiled_snapshot()
    return engine


def _resident() -> int:
    import resource

    return int(_STATUS.read_text().split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    print(grown(sys.argv[1], json.loads(Path(sys.argv[2]).read_text("utf-8"))))
