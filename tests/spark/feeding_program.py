"""A stream whose rules come as a stream, as a program: it matches all that is there. Run, and killed, by `test_killing`."""

from __future__ import annotations

import sys
from pathlib import Path

from tamis import spark as on_spark
from tests.spark.worlds import ONCE, SCHEMA, ChangingWorld

FILES = 3
"""So many files of changes make a version."""


def main(folder: Path) -> None:
    session = on_spark.session("local[2]", quick=True)
    changes = session.readStream.schema(ChangingWorld.kind).option("maxFilesPerTrigger", FILES)
    events = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    stream = on_spark.match_stream(
        events.parquet(str(folder / "events")), changes.parquet(str(folder / "changes")), out=folder / "out",
        checkpoint=folder / "checkpoint", keep=["number", "price"], trigger=ONCE,
    )  # fmt: skip
    stream.await_end()
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
