"""How do statistics get from where events are counted to where they are used?

As a small Parquet file with a row for each attribute, which a table tool can show: values stand in it as JSON.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
from pyarrow import parquet

from tamis.selectivity.statistics import Statistics

if TYPE_CHECKING:
    import os

_SCHEMA = pa.schema(
    [
        ("attribute", pa.string()),
        ("events", pa.int64()),
        ("absent", pa.int64()),
        ("distinct", pa.int64()),
        ("frequent", pa.list_(pa.struct([("value", pa.string()), ("count", pa.int64())]))),
        ("bounds", pa.list_(pa.string())),
        ("counts", pa.list_(pa.int64())),
    ]
)
_NOBODY = ""
"""The row that says how many events there were, even if none had an attribute."""


def save(statistics: Statistics, path: str | os.PathLike[str] | BinaryIO) -> None:
    """Write statistics to a Parquet file, or to one that is open."""
    document = json.loads(statistics.to_json())
    rows: list[dict[str, Any]] = [{"attribute": _NOBODY, "events": document["events"]}]
    for name, about in document["attributes"].items():
        rows.append(
            {
                "attribute": name,
                "events": document["events"],
                "absent": about["absent"],
                "distinct": about["distinct"],
                "frequent": [{"value": json.dumps(value), "count": count} for value, count in about["frequent"]],
                "bounds": [json.dumps(value) for value in about["bounds"]],
                "counts": about["counts"],
            }
        )
    parquet.write_table(pa.Table.from_pylist(rows, _SCHEMA), path)


def load(path: str | os.PathLike[str] | BinaryIO | pa.NativeFile) -> Statistics:
    """Read statistics from a Parquet file, or from one that is open.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save(Statistics.of([{"price": 5}, {"price": 7}]), f"{folder}/auctions.parquet")
    ...     load(f"{folder}/auctions.parquet").attributes["price"].frequent
    {5: 1, 7: 1}
    """
    rows = parquet.read_table(path, schema=_SCHEMA).to_pylist()
    attributes = {
        row["attribute"]: {
            "absent": row["absent"],
            "distinct": row["distinct"],
            "frequent": [[json.loads(each["value"]), each["count"]] for each in row["frequent"]],
            "bounds": [json.loads(value) for value in row["bounds"]],
            "counts": row["counts"],
        }
        for row in rows
        if row["attribute"] != _NOBODY
    }
    return Statistics.from_json(json.dumps({"events": rows[0]["events"], "attributes": attributes}))
