"""How does one process read and write tables as Spark does?

Parquet, JSON lines and CSV, files or folders of them; the ending of a path says what it holds. Files of a folder come
by their names, and those that begin with a dot or an underscore are passed over. Types are seen from the values as
Spark sees them (`inferring`), so that a condition means the same whoever reads the file. What is written is a
folder with one file and a mark that it is whole.
"""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
from pyarrow import dataset, parquet

from tamis.errors import did_you_mean
from tamis.sources.columns import columns_of
from tamis.sources.csv_files import CSV_OPTIONS, CsvReading
from tamis.sources.errors import ColumnError, OptionError, TableError
from tamis.sources.fitting import json_as
from tamis.sources.inferring import json_table
from tamis.sources.json_rows import json_rows, json_writer
from tamis.sources.options import Options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

ENDINGS = {".parquet": "parquet", ".jsonl": "json", ".ndjson": "json", ".json": "json", ".csv": "csv"}
OPTIONS = {"parquet": (), "json": ("mode",), "csv": CSV_OPTIONS}
"""What may be said to the readers; Spark's names, and Spark knows more of them."""


def format_of(path: str) -> str:
    """Say what a path holds, by its ending.

    >>> format_of("auctions/events.jsonl"), format_of("events.parquet/")
    ('json', 'parquet')
    """
    ending = Path(path.rstrip("/")).suffix.lower()
    if ending not in ENDINGS:
        raise OptionError(f"the ending of {path} does not tell its format; known endings are {', '.join(ENDINGS)}")
    return ENDINGS[ending]


def files_of(path: str) -> list[Path]:
    """Return the files of a path, in order."""
    place = Path(path)
    if place.is_dir():
        below = (each for each in place.rglob("*") if each.is_file())
        return sorted(each for each in below if not any(part[0] in "._" for part in each.relative_to(place).parts))
    if not place.exists():
        raise TableError(f"{path} does not exist")
    return [place]


def read_table(path: str, options: Mapping[str, str] | None = None, schema: str | None = None) -> pa.Table:
    """Return the table of a path, with the columns of `schema` if they are said; every column may be NULL."""
    kind = format_of(path)
    asked = Options(f"a {kind} table", options or {}, OPTIONS[kind])
    columns = None if schema is None else columns_of(schema)
    files = files_of(path)
    try:
        table = {"parquet": _read_parquet, "json": _read_json, "csv": _read_csv}[kind](path, files, asked, columns)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise TableError(f"{path} cannot be read as {kind}: {str(error).splitlines()[0]}") from None
    fields = [pa.field(field.name, _plain(field.type)) for field in table.schema]
    return table.cast(pa.schema(fields))


def event_table(path: str, options: Mapping[str, str], schema: str | None, keep: Sequence[str] | None) -> pa.Table:
    """Return the events of files; whatever is to be kept of them is in the files."""
    return read_table(path, options, schema)


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type without the encoding, which Spark has no word for."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _read_parquet(path: str, files: list[Path], _: Options, columns: pa.Schema | None) -> pa.Table:
    if not files:
        raise TableError(f"{path} is empty: a file says which columns there are")
    root = path if Path(path).is_dir() else None
    names = [str(file) for file in files]
    return dataset.dataset(
        names, schema=columns, format="parquet", partitioning="hive", partition_base_dir=root
    ).to_table()


def _read_json(_: str, files: list[Path], options: Options, columns: pa.Schema | None) -> pa.Table:
    drops = (options.text("mode") or "").upper() == "DROPMALFORMED"
    rows: list[dict[str, Any] | None] = []
    for file in files:
        for number, line in enumerate(file.read_bytes().split(b"\n"), start=1):
            if not line.strip():
                continue
            row = json_object(line)
            if row is None and drops:
                continue
            if row is None and columns is None:
                raise TableError(
                    f"line {number} of {file} is not a JSON object; a file of JSON lines has one on each line "
                    "(mode=DROPMALFORMED passes over others)"
                )
            rows.append(row)
    return json_table([row or {} for row in rows]) if columns is None else json_as(rows, columns)


def json_object(line: bytes) -> dict[str, Any] | None:
    """Return the object of a line; None if it is something else.

    >>> json_object(b'{"price": 12}'), json_object(b"[1]"), json_object(b"{no")
    ({'price': 12}, None, None)
    """
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _read_csv(path: str, files: list[Path], options: Options, columns: pa.Schema | None) -> pa.Table:
    return CsvReading(options).table(path, files, columns)


def require(table: pa.Table, names: Iterable[str], what: str) -> None:
    """Raise unless a table has the columns."""
    known = table.schema.names
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            shown = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
            raise ColumnError(f"the {what} have no column {name!r}, only {shown}" + (f". {hint}" if hint else ""))


# -- Writing


@contextmanager
def written_table(path: str) -> Iterator[Callable[[pa.Table], None]]:
    """Give a function that adds rows to the table of a path; it is there, and whole, when the block ends well.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with written_table(f"{folder}/pairs.csv") as add:
    ...         add(pa.table({"event": [1, 2], "id": ["a", ""]}))
    ...     print(files_of(f"{folder}/pairs.csv")[0].read_text())
    event,id
    1,a
    2,""
    <BLANKLINE>
    """
    kind = format_of(path)
    target = Path(path)
    beside = target.with_name(f".{target.name}.{uuid4().hex}")
    beside.mkdir(parents=True)
    try:
        with (beside / f"part-00000-{uuid4()}.{kind}").open("wb") as file:
            writer = _WRITERS[kind](file)
            yield writer.add
            writer.close()
        (beside / "_SUCCESS").touch()
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
        beside.rename(target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


class _ParquetRows:
    def __init__(self, file: Any) -> None:
        self._file = file
        self._writer: Any = None

    def add(self, table: pa.Table) -> None:
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._file, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class _JsonRows:
    def __init__(self, file: Any) -> None:
        self._file = file

    def add(self, table: pa.Table) -> None:
        for batch in table.to_batches():
            self._file.writelines(f"{row}\n".encode(errors="backslashreplace") for row in json_rows(batch))

    def close(self) -> None:
        pass


class _CsvRows:
    def __init__(self, file: Any) -> None:
        self._file, self._has_names = file, False

    def add(self, table: pa.Table) -> None:
        if not self._has_names:
            self._file.write((",".join(map(_field, table.schema.names)) + "\n").encode())
            self._has_names = True
        columns = [[_shown(value, writer) for value in column.to_pylist()] for column, writer in _columns(table)]
        for row in zip(*columns, strict=True):
            self._file.write((",".join(row) + "\n").encode(errors="backslashreplace"))

    def close(self) -> None:
        pass


_WRITERS: dict[str, Any] = {"parquet": _ParquetRows, "json": _JsonRows, "csv": _CsvRows}


def _columns(table: pa.Table) -> Iterator[tuple[Any, Callable[[Any], str] | None]]:
    """Yield the columns of a table, each with how its values are written; None: as texts that need care."""
    for column in table.columns:
        is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        yield column, None if is_text else json_writer(column.type)


def _shown(value: Any, write: Callable[[Any], str] | None) -> str:
    if value is None:
        return ""
    if write is None:
        return _field(value)
    written = write(value)
    # Instants and dates are texts in JSON, and plain in CSV; lists and records are JSON, as a text.
    return _field(written[1:-1] if written.startswith('"') else written)


def _field(text: str) -> str:
    """Write a text so that it is one field; an empty one is not NULL.

    >>> _field('say "hi", twice'), _field(""), _field("plain")
    ('"say ""hi"", twice"', '""', 'plain')
    """
    if text and not set(text) & set('",\r\n') and text == text.strip():
        return text
    return '"' + text.replace('"', '""') + '"'
