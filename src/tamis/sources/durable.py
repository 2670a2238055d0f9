"""How does a small record outlive a crash?

It is written beside its place, forced to the disk, and moved there in one step: a reader sees all of it or nothing.
"""

from __future__ import annotations

import json
import os
from secrets import token_hex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def put(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all; one that is there is replaced."""
    beside = _beside(path, content)
    os.replace(beside, path)


def put_new(path: Path, content: bytes) -> bool:
    """Write a file that must not be there yet; return whether it is ours."""
    beside = _beside(path, content)
    try:
        os.link(beside, path)  # fails where a rename would replace
    except FileExistsError:
        return False
    finally:
        os.unlink(beside)
    return True


def put_record(path: Path, record: Any) -> None:
    """Write a record as JSON."""
    put(path, written(record))


def written(record: Any) -> bytes:
    """Return a record as JSON."""
    return json.dumps(record).encode()


def record(path: Path) -> Any:
    """Read a record; None where there is none."""
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None


def _beside(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{token_hex(4)}")
    with open(beside, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return beside
