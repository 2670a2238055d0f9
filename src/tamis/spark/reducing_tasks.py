"""What does a task do with rules that are compared? It prepares each by itself, then compares those of one place."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.errors import TamisError
from tamis.language import parse
from tamis.relations import CoveringIndex
from tamis.relations.deciding import ask
from tamis.relations.forms import Context
from tamis.relations.parts import part_of
from tamis.relations.relations import covers_forms
from tamis.relations.witnesses import plain_event
from tamis.spark.access_keys import key_of, keys_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tamis.language import Functions, Schema
    from tamis.relations.forms import Form

_KEYS = pa.list_(pa.struct([("attribute", pa.string()), ("value", pa.string())]))
_REMEMBERED = 20_000
"""So many rules are prepared in one context, which remembers what it has seen of them."""


def prepared_columns(kind: str) -> str:
    """Return the columns of prepared rules."""
    keys = "array<struct<attribute: string, value: string>>"
    return (
        f"id {kind}, condition string, place bigint, error string, message string, never boolean, "
        f"keys {keys}, witness {keys}, files array<binary>"
    )


def compared_columns(kind: str) -> str:
    """Return the columns of what one place knows of rules."""
    return f"id {kind}, identical {kind}, covered {kind}"


@dataclass(frozen=True, slots=True)
class Preparing:
    """Reads rules, and says where they belong."""

    schema: Schema | None
    functions: Functions
    id_type: str
    budget: int

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Prepare the rules of a partition."""
        kinds = [pa.type_for_alias(self.id_type), pa.string(), pa.int64(), pa.string(), pa.string(), pa.bool_()]
        kinds += [_KEYS, _KEYS, pa.list_(pa.binary())]
        names = ["id", "condition", "place", "error", "message", "never", "keys", "witness", "files"]
        context = Context(self.schema)
        seen = 0
        for batch in batches:
            ids, texts, places = (each.to_pylist() for each in batch.columns)
            if seen > _REMEMBERED:
                context, seen = Context(self.schema), 0
            seen += len(ids)
            with self.functions.in_use():
                prepared = [self._prepared(id, text, context) for id, text in zip(ids, texts, strict=True)]
            columns = [ids, texts, places, *zip(*prepared, strict=True)] if prepared else [[] for _ in names]
            arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, names)

    def _prepared(self, id: Any, text: str | None, context: Context) -> tuple[Any, ...]:
        nothing: tuple[Any, ...] = (None, [], [], [])
        if id is None or text is None:
            return "BadTableError", f"{'an id' if id is None else 'a condition'} must not be NULL", *nothing
        try:
            expression = parse(text, self.schema)
        except TamisError as error:
            return type(error).__name__, str(error), *nothing
        form = context.form(expression)
        answer = ask([form], [], context, self.budget)
        if not answer.is_possible and answer.is_proven:
            return None, None, True, [], [], []
        event = answer.event if answer.box is None else plain_event(answer.box, self.schema)
        witness = None if event is None or not answer.is_proven else list(_keys(_leaves(event)))
        keys = [(path, value) for path, values in keys_of(expression).items() for value in values]
        return None, None, False, list(_keys(keys)), witness, _files(form)


def _leaves(event: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    stack: list[tuple[tuple[str, ...], Any]] = [((name,), value) for name, value in event.items()]
    while stack:
        path, value = stack.pop()
        if isinstance(value, dict):
            stack += [((*path, name), inner) for name, inner in value.items()]
        else:
            yield path, key_of(value)


def _keys(pairs: Iterable[tuple[tuple[str, ...], Any]]) -> Iterator[dict[str, str]]:
    for path, value in pairs:
        if value is not None:
            yield {"attribute": "\x00".join(path), "value": repr(value)}


def _files(form: Form) -> list[bytes]:
    """Return what a rule has in common with those it would merge with: all but one of its sets, and which that is."""
    part = part_of(form, 0)
    rest = sorted(map(str, part.rest.values()))
    sets = sorted((str(axis.term), repr(values)) for axis, values in part.box.items())
    files = []
    for axis, _ in part.files():
        others = [each for each in sets if each[0] != str(axis.term)]
        files.append(blake2b(repr((str(axis.term), others, rest)).encode(), digest_size=16).digest())
    return files


@dataclass(frozen=True, slots=True)
class Comparing:
    """Compares the rules that ask in one place with those that belong there."""

    schema: Schema | None
    functions: Functions
    id_type: str
    budget: int

    def run(self, table: pa.Table) -> pa.Table:
        """Return the least ids that a rule is identical to and covered by, as far as this place knows."""
        kind = pa.type_for_alias(self.id_type)
        context = Context(self.schema)
        index = CoveringIndex(self.schema, budget=self.budget, context=context)
        rows = list(zip(*(table[name].to_pylist() for name in ("id", "condition", "is_general")), strict=True))
        with self.functions.in_use():
            parsed = {text: parse(text, self.schema) for text in {text for _, text, _ in rows}}
            for id, text, is_general in rows:
                if is_general and id not in index:
                    index.add(id, parsed[text])
            answers = [
                (id, *self._found(id, context.form(parsed[text]), index)) for id, text, general in rows if not general
            ]
        columns: list[Any] = list(zip(*answers, strict=True)) or [[], [], []]
        arrays = [pa.array(list(values), kind) for values in columns]
        return pa.Table.from_arrays(arrays, ["id", "identical", "covered"])

    def _found(self, id: Any, form: Form, index: CoveringIndex) -> tuple[Any, Any]:
        around = sorted(each for each in index.candidates_around(form.expression) if each != id)
        inside = set(index.candidates_inside(form.expression))
        identical = covering = None
        for each in around:
            other = form.context.form(index.expression(each))
            if not covers_forms(other, form, self.budget):
                continue
            if each in inside and covers_forms(form, other, self.budget):
                if identical is None and each < id:
                    identical = each
            elif covering is None:
                covering = each
            if covering is not None and (identical is not None or each > id):
                break
        return identical, covering
