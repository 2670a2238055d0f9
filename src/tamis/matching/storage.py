"""How does a matcher outlive its process? Saving, and memory-mapping back.

As a file of arrays (`array_file.py`). What people registered is saved as ids, priorities and texts; what was compiled
is saved as it stands, so that a million subscriptions are ready again in the time it takes to look at the file. An
algorithm that compiles nothing worth keeping is given the texts again.

A compiled segment is saved field by field, whatever its fields are: arrays, numbers, lists and tuples of these, records
among `RECORDS`, and expressions as texts. A field whose name starts with an underscore is a cache and is left out.
Anything else raises `SavedMatcherError` before a byte is written.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import math
from dataclasses import dataclass
from decimal import Decimal
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from tamis.errors import TamisError, UnknownFunctionError
from tamis.language.expressions import Expression, In, IsNull, Literal, is_condition
from tamis.language.functions import NO_FUNCTIONS, Functions
from tamis.language.json_form import from_json
from tamis.language.schema import Schema
from tamis.matching import array_file
from tamis.matching.axes import Axis, AxisKey
from tamis.matching.block.draft import ClauseTable, Draft, TreeJumps, TreeSteps
from tamis.matching.block.kernels import Broad, Keys, Program, Runs
from tamis.matching.block.maps import Maps
from tamis.matching.block.probing import Finders, Probes
from tamis.matching.block.segment import Segment, SortedAxes
from tamis.matching.columns import Texts
from tamis.matching.destinations import Destinations
from tamis.matching.errors import SavedMatcherError
from tamis.matching.leaves import LeafColumns
from tamis.matching.sources import WIDE, Sources, parsed, written
from tamis.ragged import Ragged

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from tamis.matching.array_file import Array
    from tamis.matching.register import Register

Part: TypeAlias = tuple[Any, npt.NDArray[np.bool_]]
"""A compiled segment, and which of its subscriptions are alive."""

T = TypeVar("T")

RECORDS = {
    record.__name__: record
    for record in (
        *(Segment, SortedAxes, Program, Keys, Runs, Finders, Probes, Broad, Maps),
        *(Draft, LeafColumns, ClauseTable, TreeJumps, TreeSteps, Ragged),
        *(Axis, AxisKey, Texts),
    )
}
_SCALARS = (bool, int, float, str, Decimal, dt.date, type(None))
_IN_JSON = (bool, int, float, str, type(None))


@dataclass(frozen=True, slots=True)
class Saved:
    """What is saved of a matcher."""

    algorithm: str
    schema: Schema | None
    ids: list[Any]
    """By handle, those of removed subscriptions included that a segment still holds."""
    sources: Sources
    priorities: npt.NDArray[np.int64]
    destinations: Destinations
    metadata: Mapping[int, Any]
    """By handle, of those who have any."""
    is_numbered: bool
    """Whether ids are integers, which is worth saving where there are none left."""
    parts: Sequence[Part] | None
    """What was compiled; None for an algorithm that is given the texts again."""
    functions: Functions = NO_FUNCTIONS
    """Those of the host that conditions may call. Their names and versions are saved, and never their code."""
    untils: Mapping[int, float] = dataclasses.field(default_factory=dict)
    """By handle, when subscriptions end that do."""
    now: float = -math.inf
    """The time up to which the ended are gone."""


def gathered(
    algorithm: str,
    schema: Schema | None,
    register: Register,
    parts: Sequence[Part] | None,
    functions: Functions = NO_FUNCTIONS,
    now: float = -math.inf,
) -> Saved:
    """Return what is to be saved: the living, and what the segments still hold of the dead; no other places."""
    if parts is None:
        kept = register.living()
    else:
        kept = np.concatenate([np.zeros(0, np.int64), *(segment.draft.handles for segment, _ in parts)])
    if len(kept) < len(register):
        register = register.renumbered(kept)
        if parts is not None:
            parts = [
                (segment.renumbered(np.searchsorted(kept, segment.draft.handles)), flags) for segment, flags in parts
            ]
    return Saved(
        algorithm,
        schema,
        register.ids.copy(),
        register.sources.copy(),
        register.all_priorities(),
        register.destinations.copy(),
        {handle: register.metadata[handle] for handle in register.handles.values() if handle in register.metadata},
        register.is_numbered,
        parts,
        functions,
        {register.handles[each]: until for each, until in register.leases.ends()},
        now,
    )


def write(path: str | os.PathLike[str], saved: Saved) -> None:
    """Save a matcher."""
    with saved.functions.in_use():
        document, arrays = _written(saved)
    array_file.write(path, document, arrays)


def to_bytes(saved: Saved) -> bytes:
    """Return what would be saved."""
    file = BytesIO()
    with saved.functions.in_use():
        document, arrays = _written(saved)
    array_file.write_to(file, document, arrays)
    return file.getvalue()


def _written(saved: Saved) -> tuple[dict[str, Any], dict[str, Array]]:
    alive = saved.sources.alive
    names, numbers = saved.destinations.saved(alive)
    writer = _Writer()
    try:
        document = {
            "algorithm": saved.algorithm,
            "schema": None if saved.schema is None else _schema_document(saved.schema),
            "ids": writer.document("ids", _ids(saved.ids, alive)),
            "is_numbered": saved.is_numbered,
            "alive": writer.document("alive", alive),
            "texts": writer.document("texts", saved.sources.texts()),
            "priorities": writer.document("priorities", saved.priorities),
            "destinations": writer.document("destinations", _names(names, "destinations")),
            "directions": writer.document("directions", numbers if names else numbers[:0]),
            "metadata": {
                "handles": writer.document("metadata.handles", np.array(list(saved.metadata), np.int64)),
                "texts": writer.document("metadata.texts", Texts.of(list(map(_json, saved.metadata.values())))),
            },
            "parts": None
            if saved.parts is None
            else [
                [writer.document(f"parts.{number}", segment), writer.document(f"parts.{number}.alive", flags)]
                for number, (segment, flags) in enumerate(saved.parts)
            ],
        }
        if saved.functions:
            document["functions"] = saved.functions.versions
        if saved.untils:
            document["untils"] = {
                "handles": writer.document("untils.handles", np.array(list(saved.untils), np.int64)),
                "ends": writer.document("untils.ends", np.array(list(saved.untils.values()), np.float64)),
            }
        if saved.now > -math.inf:
            document["now"] = saved.now
    except UnicodeEncodeError as error:
        raise SavedMatcherError(f"half a surrogate pair cannot be saved: {error.object!r}") from error
    return document, writer.arrays


def _json(metadata: Any) -> str:
    """Return metadata as JSON, having seen that the same comes back."""
    try:
        text = json.dumps(metadata, ensure_ascii=False, allow_nan=False)
        if json.loads(text) == metadata:
            return text
    except (TypeError, ValueError, RecursionError):
        pass
    raise SavedMatcherError(f"only metadata with a JSON form can be saved, not {metadata!r}")


def read(path: str | os.PathLike[str], *, verify: bool, texts_only: bool, functions: Functions = NO_FUNCTIONS) -> Saved:
    """Read a matcher; with `texts_only` nothing of what was compiled."""
    document, arrays = array_file.read(path, verify=verify)
    return _saved(path, document, arrays, functions, texts_only=texts_only)


def from_bytes(content: bytes, functions: Functions = NO_FUNCTIONS) -> Saved:
    """Read what `to_bytes` returned."""
    return _saved("a pickled matcher", *array_file.read_from(content), functions, texts_only=False)


def _saved(
    path: str | os.PathLike[str], document: Any, arrays: dict[str, Array], functions: Functions, *, texts_only: bool
) -> Saved:
    versions = document.get("functions", {}) if isinstance(document, dict) else {}
    try:
        if not isinstance(versions, dict):
            raise SavedMatcherError(f"{path} does not hold a matcher of this version: functions are {versions!r:.60}")
        functions.demand(versions)
    except UnknownFunctionError as error:
        raise SavedMatcherError(f"conditions of {path} call a function of the host: {error}") from error
    with functions.in_use():
        return _with_functions(path, document, arrays, functions, texts_only=texts_only)


def _with_functions(
    path: str | os.PathLike[str], document: Any, arrays: dict[str, Array], functions: Functions, *, texts_only: bool
) -> Saved:
    reader = _Reader(arrays)
    try:
        alive, texts = reader.value(document["alive"]), reader.value(document["texts"])
        parts = None
        if document["parts"] is not None and not texts_only:
            parts = [(reader.value(segment), reader.value(flags)) for segment, flags in document["parts"]]
        metadata = document["metadata"]
        values = map(json.loads, reader.value(metadata["texts"]).tolist())
        saved = Saved(
            document["algorithm"],
            None if document["schema"] is None else Schema(**document["schema"], functions=functions),
            reader.value(document["ids"]),
            Sources(texts, alive),
            reader.value(document["priorities"]),
            Destinations.restored(reader.value(document["destinations"]), reader.value(document["directions"])),
            dict(zip(reader.value(metadata["handles"]).tolist(), values, strict=True)),
            bool(document["is_numbered"]),
            parts,
            functions,
            _untils(document.get("untils"), reader),
            float(document.get("now", -math.inf)),
        )
        _check(saved, alive, texts)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, TamisError) as error:
        raise SavedMatcherError(f"{path} does not hold a matcher of this version: {error}") from error
    return saved


def _untils(document: Any, reader: _Reader) -> dict[int, float]:
    if document is None:  # nobody ends; files of before have no such entry
        return {}
    handles, ends = reader.value(document["handles"]), reader.value(document["ends"])
    return dict(zip(handles.tolist(), ends.tolist(), strict=True))


def _check(saved: Saved, alive: Any, texts: Texts) -> None:
    """Raise unless the pieces belong together."""
    count = len(saved.ids)
    ends = texts.offsets
    if not isinstance(saved.algorithm, str) or saved.priorities.dtype != np.int64 or alive.dtype != np.bool_:
        raise ValueError("an algorithm, priorities or flags of another type")
    if not alive.shape == saved.priorities.shape == (count,) or ends.shape != (count + 1,):
        raise ValueError(f"{count} ids, and not as many texts, priorities and flags")
    if texts.data.dtype != np.uint8 or ends[0] != 0 or ends[-1] != len(texts.data) or (np.diff(ends) < 0).any():
        raise ValueError("texts without clear ends")
    if saved.metadata and not 0 <= min(saved.metadata) <= max(saved.metadata) < count:
        raise ValueError("metadata of other subscriptions")
    if not all(0 <= handle < count and alive[handle] and math.isfinite(end) for handle, end in saved.untils.items()):
        raise ValueError("ends of other subscriptions")
    if saved.parts is not None:
        for segment, flags in saved.parts:
            if flags.dtype != np.bool_ or flags.shape != segment.draft.handles.shape:
                raise ValueError("a segment, and not as many flags")
        living = [segment.draft.handles[flags] for segment, flags in saved.parts]
        if not np.array_equal(np.concatenate([np.zeros(0, np.int64), *living]), np.flatnonzero(alive)):
            raise ValueError("segments of other subscriptions")


def _schema_document(schema: Schema) -> dict[str, Any]:
    attributes, mandatory, hierarchy, mandatory_by_type, type_attribute = schema.__reduce__()[1][:5]
    return {
        "attributes": attributes,
        "mandatory": mandatory,
        "hierarchy": hierarchy,
        "mandatory_by_type": mandatory_by_type,
        "type_attribute": type_attribute,
    }


def _ids(ids: list[Any], alive: npt.NDArray[np.bool_]) -> list[Any]:
    """Return the ids to save. That of a removed subscription stands only for its type, which the ids column follows."""
    _names([each for each, is_alive in zip(ids, alive, strict=True) if is_alive], "ids")
    return [each if is_alive else "" if isinstance(each, str) else 0 for each, is_alive in zip(ids, alive, strict=True)]


def _names(names: list[Any], what: str) -> list[Any]:
    """Return names that people gave, if they can be saved."""
    for name in names:
        if type(name) not in (int, str):
            raise SavedMatcherError(
                f"only {what} that are integers or texts can be saved, not {type(name).__name__}: {name!r}"
            )
    return names


class _Writer:
    """Turns values into JSON, and puts the arrays aside."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}

    def document(self, name: str, value: Any) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, _IN_JSON):
            return value
        if isinstance(value, np.ndarray):
            if value.dtype.str not in array_file.DTYPES:
                raise SavedMatcherError(f"{name} is an array of {value.dtype}, which cannot be saved")
            self.arrays[name] = value
            return {"array": name}
        if isinstance(value, Expression):
            # As a text, because the parser knows no depth that is too deep; a term is made a condition first.
            return {"condition": written(value)} if is_condition(value) else {"term": written(IsNull(value))}
        if isinstance(value, list) and value and all(isinstance(each, _SCALARS) for each in value):
            return self._scalars(name, value)
        if isinstance(value, list | tuple) and type(value) not in RECORDS.values():
            parts = [self.document(f"{name}.{number}", each) for number, each in enumerate(value)]
            return {"list" if isinstance(value, list) else "tuple": parts}
        if type(value) in RECORDS.values():
            return {
                "record": type(value).__name__,
                "fields": {field: self.document(f"{name}.{field}", getattr(value, field)) for field in _fields(value)},
            }
        raise SavedMatcherError(f"{name} is of the type {type(value).__name__}, which cannot be saved")

    def _scalars(self, name: str, values: list[Any]) -> Any:
        """Save a long list of one type as an array, and others as literals of the language, which have types."""
        kinds = set(map(type, values))
        if kinds == {int} and min(values) >= -(2**63) and max(values) < 2**63:
            return {"scalars": self.document(name, np.array(values, np.int64))}
        if kinds == {float}:
            return {"scalars": self.document(name, np.array(values, np.float64))}
        if kinds == {str}:
            return {"texts": self.document(name, Texts.of(values))}
        if kinds <= {bool, int, str}:
            return {"list": values}
        return {"literals": In(Literal(None), tuple(values)).to_json()}


class _Reader:
    """Turns JSON and arrays into the values they were."""

    def __init__(self, arrays: dict[str, Array]) -> None:
        self._arrays = arrays

    def value(self, document: Any) -> Any:
        match document:
            case {"array": str(name)}:
                return self._arrays[name]
            case {"condition": str(text)}:
                return parsed(text)
            case {"term": str(text)}:
                return _expected(IsNull, parsed(text)).value
            case {"scalars": array}:
                return self.value(array).tolist()
            case {"texts": texts}:
                return self.value(texts).tolist()
            case {"literals": str(literals)}:
                return list(_expected(In, from_json(literals, limits=WIDE)).values)
            case {"list": [*parts]}:
                return [self.value(part) for part in parts]
            case {"tuple": [*parts]}:
                return tuple(self.value(part) for part in parts)
            case {"record": str(name), "fields": dict(fields)}:
                return self._record(RECORDS[name], fields)
            case _ if isinstance(document, _IN_JSON):
                return document
        raise ValueError(f"no value is saved as {document!r}")

    def _record(self, kind: Any, fields: dict[str, Any]) -> Any:
        if issubclass(kind, tuple):
            return kind(**{name: self.value(document) for name, document in fields.items()})
        record = object.__new__(kind)
        for field in dataclasses.fields(kind):
            if not field.name.startswith("_"):
                if field.name not in fields:
                    raise ValueError(f"{kind.__name__} has a field {field.name}")
                value = self.value(fields.pop(field.name))
            else:
                value = field.default_factory() if callable(field.default_factory) else field.default
            object.__setattr__(record, field.name, value)
        for name in fields:
            raise ValueError(f"{kind.__name__} has no field {name}")
        return record


def _fields(record: Any) -> Iterable[str]:
    if isinstance(record, tuple):
        return record._fields  # type: ignore[attr-defined, no-any-return]  # a named tuple
    return (field.name for field in dataclasses.fields(record) if not field.name.startswith("_"))


def _expected(kind: type[T], document: Any) -> T:
    if not isinstance(document, kind):
        raise ValueError(f"{kind.__name__} was expected, not {document}")
    return document
