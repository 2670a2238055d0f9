"""Appends blocks to a log until it is killed, and says after each how far the log has acknowledged.

It is given a folder. Segments are small and old ones are dropped, so that it may be killed in the middle of anything.
"""

from __future__ import annotations

import sys

from tamis.service.log.sqlite import SqliteLog
from tests.service.log.drawn import block


def main(folder):
    log = SqliteLog(folder, segment_bytes=20_000)
    print("open", log.first, log.last, flush=True)
    while True:
        first = log.last + 1
        blocks = [block(first, 1 + first % 4, log.last_time_us + 1, size=20 + first % 7 * 700)]
        if first % 3 == 0:
            blocks.append(block(blocks[-1].last + 1, 2, log.last_time_us + 2))
        log.append(blocks)
        print("last", log.last, flush=True)
        if first % 11 == 0:
            print("drop", log.last - 60, flush=True)
            log.drop(log.last - 60)


if __name__ == "__main__":
    main(sys.argv[1])
