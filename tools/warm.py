"""Compile the kernels that a broker uses, and keep them: run when an image is built, so that no start waits for it.

    python tools/warm.py       prints where the kernels are kept, and how many; exits with 1 if they stay in memory

A broker is ready when it has matched batches of every size; so one is started, in memory and at a free port, and
stopped. Then subscriptions are registered as a column, as from a file.
"""

from __future__ import annotations

import asyncio
import sys


async def start_and_stop() -> None:
    """Start a broker that keeps nothing, and stop it when it is ready."""
    from tamis.service.serving import Service
    from tamis.service.settings import read_settings

    service = Service(read_settings(overrides={"data": ":memory:", "listeners.0.port": 0}))
    await service.start()
    await service.stop()


def read_texts() -> None:
    """Register a column of texts: many come at once when a broker starts from its log, or are loaded from a file."""
    from tamis.matching.matcher import Matcher

    matcher = Matcher()
    matcher.add_many({number: f"a < {number} AND (b = 'x' OR c)" for number in range(1 << 16)})
    matcher.match({"a": 1})


def main() -> int:
    """Compile, and report."""
    from tamis.compilation import kernel_cache

    folder = kernel_cache()
    if folder is None:
        print(
            "There is no folder for compiled kernels; name one that can be written to: NUMBA_CACHE_DIR", file=sys.stderr
        )
        return 1
    asyncio.run(start_and_stop())
    read_texts()
    count = sum(1 for _ in folder.rglob("*.nbc"))
    print(f"{count} compiled kernels in {folder}")
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main())
