"""How is a CSV file read as Spark reads it?

Its first line names the columns (unless `header=false`), a quote within quotes is written twice, lines may stand within
quotes, and what is empty is NULL. A row that is too long is cut, one that is too short is filled with NULL: columns are
counted, not named, so all files of a folder have those of the first.

A file in which all rows are equally long, which is nearly every file, is read by Arrow; any other by a plain reader,
row by row.
"""

from __future__ import annotations

import csv as plain_csv
import io
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import csv

from tamis.sources.errors import OptionError, TableError
from tamis.sources.fitting import texts_as
from tamis.sources.inferring import typed_column

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tamis.sources.options import Options

CSV_OPTIONS = (
    "sep", "delimiter", "header", "quote", "escape", "nullvalue", "multiline", "inferschema", "encoding", "charset",
)  # fmt: skip


class CsvReading:
    """How files are read, as options say."""

    def __init__(self, options: Options) -> None:
        self._separator = _letter(options, "sep") or _letter(options, "delimiter") or ","
        self._quote = _letter(options, "quote", '"')
        self._escape = _letter(options, "escape", '"')
        self._null = options.text("nullvalue") or ""
        self._has_names = _flag(options, "header", True)
        self._joins_lines = _flag(options, "multiline", True)
        self._infers = _flag(options, "inferschema", True)
        self._encoding = options.text("encoding") or options.text("charset") or "utf-8"
        try:
            "".encode(self._encoding)
        except LookupError:
            raise OptionError(f"encoding of a csv table must be a name such as UTF-8, not {self._encoding!r}") from None

    def table(self, path: str, files: list[Path], columns: pa.Schema | None) -> pa.Table:
        """Return the rows of files; with columns that were said, or with those that the first file has."""
        names: list[str] | None = None if columns is None else columns.names
        parts: list[list[pa.Array]] = []
        for file in files:
            content = file.read_bytes().decode(self._encoding).removeprefix("\ufeff")
            if not content.strip():
                continue
            rows = self._regular(content)
            there, part = rows if rows is not None else self._ragged(content)
            names = names if names is not None else there
            nothing = pa.nulls(len(part[0]) if part else 0, pa.string())
            parts.append([part[place] if place < len(part) else nothing for place in range(len(names))])
        if names is None:
            raise TableError(f"{path} is empty: its first line says which columns there are")
        texts = [pa.concat_arrays([part[place] for part in parts] or [pa.array([], pa.string())])
                 for place in range(len(names))]  # fmt: skip
        if columns is not None:
            made = [texts_as(column, field.type) for column, field in zip(texts, columns, strict=True)]
            return pa.table(made, schema=columns)
        return pa.table([typed_column(column) if self._infers else column for column in texts], names)

    def _regular(self, content: str) -> tuple[list[str], list[pa.Array]] | None:
        """Return names and columns of a file whose rows are equally long; None for any other."""
        if not self._quote or not self._joins_lines or self._escape not in ('"', "\\") or self._quote != '"':
            return None
        parsing = csv.ParseOptions(
            delimiter=self._separator,
            newlines_in_values=True,
            double_quote=self._escape == '"',
            escape_char=False if self._escape == '"' else self._escape,
        )
        data = content.encode()
        try:
            width = len(csv.open_csv(io.BytesIO(data), parse_options=parsing).schema.names)
            numbers = [str(place) for place in range(width)]
            converting = csv.ConvertOptions(
                column_types=dict.fromkeys(numbers, pa.string()),
                null_values=[self._null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,  # as in Spark
            )
            reading = csv.ReadOptions(column_names=numbers)
            table = csv.read_csv(io.BytesIO(data), reading, parsing, converting)
        except pa.ArrowInvalid:
            return None
        columns = [column.combine_chunks() for column in table.columns]
        if not self._has_names:
            return _numbered(width), columns
        first = [None if not len(column) else column[0].as_py() for column in columns]
        return _safe(first), [column[1:] for column in columns]

    def _ragged(self, content: str) -> tuple[list[str], list[pa.Array]]:
        """Return names and columns of any file, cut and filled."""
        try:
            rows = [row for row in self._rows(content) if row]
        except plain_csv.Error as error:
            raise TableError(f"a row cannot be read as csv: {error}") from None
        width = len(rows[0])
        names = (
            _safe([name if name != self._null else None for name in rows[0]]) if self._has_names else _numbered(width)
        )
        columns = []
        for place in range(width):
            values = (row[place] if place < len(row) else None for row in rows[self._has_names :])
            columns.append(pa.array([None if value in (None, self._null) else value for value in values], pa.string()))
        return names, columns

    def _rows(self, content: str) -> Iterator[list[str]]:
        lines = io.StringIO(content, newline="")
        doubled = self._escape == self._quote
        settings = {
            "delimiter": self._separator,
            "quotechar": self._quote or None,
            "quoting": plain_csv.QUOTE_MINIMAL if self._quote else plain_csv.QUOTE_NONE,
            "doublequote": doubled,
            "escapechar": None if doubled or not self._quote else self._escape,
        }
        if self._joins_lines:
            yield from plain_csv.reader(lines, **settings)  # type: ignore[arg-type]
        else:
            for line in content.splitlines():
                yield from plain_csv.reader([line], **settings)  # type: ignore[arg-type]


def _safe(names: list[str | None]) -> list[str]:
    """Return names of columns, made unique as Spark does it.

    >>> _safe(["a", None, "A", "b"])
    ['a0', '_c1', 'A2', 'b']
    """
    folded = [name.lower() for name in names if name]
    return [
        f"_c{place}" if not name else f"{name}{place}" if folded.count(name.lower()) > 1 else name
        for place, name in enumerate(names)
    ]


def _numbered(width: int) -> list[str]:
    return [f"_c{place}" for place in range(width)]


def _letter(options: Options, name: str, default: str = "") -> str:
    written = options.text(name, default) or ""
    letter = "\t" if written == "\\t" else written
    if len(letter) > 1:
        raise OptionError(
            f"{name} of a csv table must be one character here, not {written!r}; --engine spark takes more"
        )
    return letter


def _flag(options: Options, name: str, default: bool) -> bool:
    written = (options.text(name) or str(default)).lower()
    if written not in ("true", "false"):
        raise OptionError(f"{name} of a csv table must be true or false, not {written!r}")
    return written == "true"
