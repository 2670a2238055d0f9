"""Compile the kernels that a broker uses, and keep them: run when an image is built, so that no start waits for it.

    python tools/warm.py       prints where the kernels are kept, and how many; exits with 1 if they stay in memory

A broker is ready when it has matched batches of every size; so one is started, in memory and at a free port, and
stopped.
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
    count = sum(1 for _ in folder.rglob("*.nbc"))
    print(f"{count} compiled kernels in {folder}")
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main())
