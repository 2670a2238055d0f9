"""Is the end of a write-ahead log torn, or is it damaged? A walk over its frames.

SQLite appends changed pages to a file beside the database, one *frame* each, and puts a checksum into every frame that
goes over all frames before it. After a crash it takes the frames up to the first wrong checksum. That is right for a
transaction that was being written when the power failed. It is wrong if a bit has flipped later in a transaction that
had been acknowledged: then everything behind it would be cut off without a word.

The two can be told apart. The frames of a transaction are written only when those before are on disk. So if a frame is
wrong, a transaction ends with it or behind it, and behind that end stands a good frame, then the wrong one was on disk
once, and is damaged. (What remains undetected is damage in the very last transaction, which looks like a torn one.)
A frame is good if its checksum continues the one that is written in the frame before it, good or not.

Source: the SQLite documentation, "Database File Format", section 4 (The Write-Ahead Log).
"""

from __future__ import annotations

from struct import Struct, unpack
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

_HEADER = Struct(">IIIIIIII")
_FRAME = Struct(">IIIIII")
_MAGIC = 0x377F0682
"""The last bit says in which byte order checksums are computed."""


class PageFrame(NamedTuple):
    """A page in the write-ahead log."""

    page: int
    is_commit: bool
    """Whether a transaction ends with it."""
    is_good: bool
    content: bytes


class WriteAhead(NamedTuple):
    """All frames that belong to the present use of the file; older ones, not overwritten yet, are not among them."""

    page_size: int
    frames: tuple[PageFrame, ...]
    is_damaged: bool


def read_write_ahead(path: Path, page_size: int) -> WriteAhead:
    """Read a write-ahead log; one that is not there has no frames."""
    content = path.read_bytes() if path.exists() else b""
    if len(content) < _HEADER.size + _FRAME.size + page_size:
        return WriteAhead(page_size, (), is_damaged=False)
    magic, _, _, _, *salts, sum_1, sum_2 = _HEADER.unpack_from(content)
    order = ">" if magic & 1 else "<"
    is_header_good = (
        magic | 1 == _MAGIC | 1
        and int.from_bytes(content[8:12], "big") == page_size
        and _sum(content[:24], (0, 0), order) == (sum_1, sum_2)
    )
    frames: list[PageFrame] = []
    before = (sum_1, sum_2)
    size = _FRAME.size + page_size
    for start in range(_HEADER.size, len(content) - size + 1, size):
        page, commit, *frame_salts, sum_1, sum_2 = _FRAME.unpack_from(content, start)
        body = content[start + _FRAME.size : start + size]
        is_own = frame_salts == salts or not is_header_good
        is_good = is_own and page > 0 and _sum(content[start : start + 8] + body, before, order) == (sum_1, sum_2)
        frames.append(PageFrame(page, commit > 0, is_good, body))
        before = (sum_1, sum_2)
    while frames and not frames[-1].is_good:  # older frames, or a torn end
        frames.pop()
    return WriteAhead(page_size, tuple(frames), _is_damaged(frames) if is_header_good else bool(frames))


def _is_damaged(frames: list[PageFrame]) -> bool:
    wrong = next((index for index, frame in enumerate(frames) if not frame.is_good), None)
    # The last frame is good. So one that ends a transaction, from the wrong one to the last but one, shows damage.
    return wrong is not None and any(frame.is_commit for frame in frames[wrong:-1])


def _sum(content: bytes, before: tuple[int, int], order: str) -> tuple[int, int]:
    """Return SQLite's checksum, a Fibonacci-weighted sum of pairs of words, continued from one before."""
    one, two = before
    words = iter(unpack(f"{order}{len(content) // 4}I", content))
    for even, odd in zip(words, words, strict=True):
        one = (one + even + two) & 0xFFFFFFFF
        two = (two + odd + one) & 0xFFFFFFFF
    return one, two
