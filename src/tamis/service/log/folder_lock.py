"""How does a folder have one owner at most? An advisory lock on a file in it.

The lock belongs to the open file, so it ends with the process, however that ends.
"""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

from tamis.service.errors import FolderInUseError

if TYPE_CHECKING:
    from pathlib import Path


class FolderLock:
    """The right to change what is in a folder; `release` gives it back."""

    def __init__(self, folder: Path) -> None:
        self._descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(self._descriptor, 20, 0).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            raise FolderInUseError(
                f"{folder} is in use by the process {owner or 'that holds its lock'}",
                "a folder that no other broker uses; stop that one first, or name another folder",
            ) from None
        os.truncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let somebody else have the folder."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
