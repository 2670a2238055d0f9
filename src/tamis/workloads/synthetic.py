"""On which ground do we meet the engines that others have built?

Thirty attributes without a story: `number_1` to `number_15` are uniform in 0..9999, `code_1` to `code_5` (integers)
and `word_1` to `word_10` (strings) have fifty values each, the k-th of them 1/k times as frequent as the first. Over
them, four mixes of predicates on which other engines were measured:

    W1  AND of 5                                          40 % range, 40 % equality, 20 % IN
    W2  half a AND b AND (c OR d) AND e, half (4) OR (4)  as W1
    W3  AND of 5                                          60 % equality, 40 % IN
    W4  AND of 5                                          60 % range, 40 % equality of integers

A range covers 5 to 50 % of its attribute's values, and IN lists 5 of 50 words. Each predicate of a subscription has an
attribute of its own, chosen at random; words and codes are asked for as often as they occur, which is what gives the
numbers of matches of those measurements (per event, of 10,000 subscriptions): 3.9, 34.2, 1.6 and 3.0.

Random attributes share little, which suits bitmaps and counting. `SharedTemplates` is the opposite and suits tries:
few templates, each with its own five attributes, and subscriptions that differ in operands only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.language import Schema
from tamis.workloads.base import Flags, Indexes, generator, subscription_table
from tamis.workloads.distributions import weighted, weighted_sets, zipf_weights
from tamis.workloads.errors import require
from tamis.workloads.texts import filled, integers, joined, literals, scattered

if TYPE_CHECKING:
    from collections.abc import Mapping

NUMBERS = tuple(f"number_{index}" for index in range(1, 16))
CODES = tuple(f"code_{index}" for index in range(1, 6))
WORDS = tuple(f"word_{index}" for index in range(1, 11))
ATTRIBUTES = NUMBERS + CODES + WORDS

NUMBER_COUNT = 10_000
VALUE_COUNT = 50
"""How many values a code or a word has."""
LISTED_COUNT = 5
"""How many words an IN lists."""
LEAST_RANGE, GREATEST_RANGE = 0.05, 0.50

_WORD_VALUES = tuple(f"value {index:02}" for index in range(VALUE_COUNT))
_WEIGHTS = zipf_weights(VALUE_COUNT)
_TYPES = {name: "string" if name in WORDS else "int" for name in ATTRIBUTES}

# The kinds of predicates, and which of the thirty attributes each of them can be about.
_RANGE, _EQUALITY, _IN, _CODE_EQUALITY = range(4)
_IS_NUMBER, _IS_CODE, _IS_WORD = (np.isin(ATTRIBUTES, group) for group in (NUMBERS, CODES, WORDS))
_SUITS = np.array([_IS_NUMBER, _IS_CODE | _IS_WORD, _IS_WORD, _IS_CODE])

_CONJUNCTION = "{0} AND {1} AND {2} AND {3} AND {4}"
_OR_INSIDE = "{0} AND {1} AND ({2} OR {3}) AND {4}"
_OR_OUTSIDE = "({0} AND {1} AND {2} AND {3}) OR ({4} AND {5} AND {6} AND {7})"


@dataclass(frozen=True)
class Mix:
    """The shapes of a mix, equally frequent, and the shares of its kinds of predicates."""

    shapes: tuple[str, ...]
    kinds: Mapping[int, float]

    @property
    def slot_count(self) -> int:
        """How many predicates the largest shape has."""
        return max(shape.count("{") for shape in self.shapes)


MIXES: Mapping[str, Mix] = {
    "W1": Mix((_CONJUNCTION,), {_RANGE: 0.4, _EQUALITY: 0.4, _IN: 0.2}),
    "W2": Mix((_OR_INSIDE, _OR_OUTSIDE), {_RANGE: 0.4, _EQUALITY: 0.4, _IN: 0.2}),
    "W3": Mix((_CONJUNCTION,), {_EQUALITY: 0.6, _IN: 0.4}),
    "W4": Mix((_CONJUNCTION,), {_RANGE: 0.6, _CODE_EQUALITY: 0.4}),
}


@dataclass(frozen=True)
class Synthetic:
    """The mixes W1 to W4 over dense events, or over sparse ones, which carry fewer of the thirty attributes.

    >>> Synthetic("W4").subscriptions(1, seed=1)["condition"][0].as_py()
    'code_5 = 1 AND code_2 = 11 AND number_3 BETWEEN 1140 AND 2096 AND code_3 = 4 AND number_8 BETWEEN 2966 AND 4480'
    >>> Synthetic("W1", attributes_per_event=20).name
    'w1-sparse'
    """

    mix: str = "W1"
    attributes_per_event: int = len(ATTRIBUTES)
    """How many attributes an event carries."""

    def __post_init__(self) -> None:
        require(self.mix in MIXES, "mix", self.mix, f"one of {', '.join(MIXES)}")
        _require_attributes(self.attributes_per_event)

    @property
    def name(self) -> str:
        return self.mix.lower() + _density(self.attributes_per_event)

    @property
    def schema(self) -> Schema:
        return _schema(self.attributes_per_event)

    def events(self, count: int, seed: int) -> pa.Table:
        """Draw events; a sparse one carries a random subset of the attributes."""
        return _events(count, self.attributes_per_event, generator(seed, "synthetic events"))

    def subscriptions(self, count: int, seed: int) -> pa.Table:
        chance = generator(seed, f"synthetic subscriptions {self.mix}")
        mix = MIXES[self.mix]
        kinds = _kinds(mix, count, chance)
        predicates = _predicates(kinds, _attributes(kinds, chance), chance)
        shapes = chance.integers(0, len(mix.shapes), count)
        groups = []
        for index, shape in enumerate(mix.shapes):
            places = np.flatnonzero(shapes == index)
            gaps = {str(slot): column.take(pa.array(places)) for slot, column in enumerate(predicates)}
            groups.append((places, filled(shape, gaps, places.size)))
        return subscription_table(scattered(groups))


@dataclass(frozen=True)
class SharedTemplates:
    """Many subscriptions from few templates: the attributes and kinds are the template's, the operands their own.

    Equalities come first, so that subscriptions of a template often begin alike.

    >>> SharedTemplates(template_count=1).subscriptions(2, seed=1)["condition"].to_pylist()
    ["word_8 = 'value 21' AND number_14 ...", "word_8 = 'value 47' AND number_14 ..."]
    """

    template_count: int = 10
    """How many templates there are."""
    attributes_per_event: int = len(ATTRIBUTES)
    """How many attributes an event carries."""
    template_seed: int = 1
    """Decides the templates; it is not part of a call's seed."""

    def __post_init__(self) -> None:
        require(self.template_count >= 1, "template_count", self.template_count, "at least 1")
        _require_attributes(self.attributes_per_event)

    @property
    def name(self) -> str:
        return "templates" + _density(self.attributes_per_event)

    @property
    def schema(self) -> Schema:
        return _schema(self.attributes_per_event)

    @cached_property
    def _templates(self) -> tuple[Indexes, Indexes]:
        """The kinds and the attributes of each template."""
        chance = generator(self.template_seed, "synthetic templates")
        kinds = _kinds(MIXES["W1"], self.template_count, chance)
        rank = np.array([2, 0, 1, 0])  # ranges last, equalities first
        kinds = np.take_along_axis(kinds, np.argsort(rank[kinds], axis=1, kind="stable"), axis=1)
        return kinds, _attributes(kinds, chance)

    def events(self, count: int, seed: int) -> pa.Table:
        """Draw events, the same as those of W1 to W4."""
        return _events(count, self.attributes_per_event, generator(seed, "synthetic events"))

    def subscriptions(self, count: int, seed: int) -> pa.Table:
        """Draw operands for templates; `template` says whose."""
        chance = generator(seed, "synthetic subscriptions from templates")
        templates = chance.integers(0, self.template_count, count)
        kinds, attributes = self._templates
        predicates = _predicates(kinds[templates], attributes[templates], chance)
        gaps = {str(slot): column for slot, column in enumerate(predicates)}
        return subscription_table(filled(_CONJUNCTION, gaps, count), template=pa.array(templates))


def _require_attributes(attributes_per_event: int) -> None:
    is_allowed = 1 <= attributes_per_event <= len(ATTRIBUTES)
    require(is_allowed, "attributes_per_event", attributes_per_event, f"from 1 to {len(ATTRIBUTES)}")


def _density(attributes_per_event: int) -> str:
    return "" if attributes_per_event == len(ATTRIBUTES) else "-sparse"


def _schema(attributes_per_event: int) -> Schema:
    return Schema(_TYPES, mandatory=ATTRIBUTES if attributes_per_event == len(ATTRIBUTES) else ())


def _events(count: int, attributes_per_event: int, chance: np.random.Generator) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    is_absent = _absent(count, attributes_per_event, chance)
    for index, name in enumerate(ATTRIBUTES):
        absent = is_absent[:, index]
        if name in NUMBERS:
            columns[name] = pa.array(chance.integers(0, NUMBER_COUNT, count), mask=absent)
        elif name in CODES:
            columns[name] = pa.array(weighted(_WEIGHTS, count, chance), mask=absent)
        else:
            indexes = pa.array(weighted(_WEIGHTS, count, chance).astype(np.int32), mask=absent)
            columns[name] = pa.DictionaryArray.from_arrays(indexes, pa.array(_WORD_VALUES))
    return pa.table(columns)


def _absent(count: int, attributes_per_event: int, chance: np.random.Generator) -> Flags:
    """Choose the attributes that each event lacks: those with the largest random keys."""
    if attributes_per_event == len(ATTRIBUTES):
        return np.zeros((count, len(ATTRIBUTES)), np.bool_)
    keys = chance.random((count, len(ATTRIBUTES)))
    threshold = np.partition(keys, attributes_per_event - 1, axis=1)[:, attributes_per_event - 1]
    return np.greater(keys, threshold[:, np.newaxis])


def _kinds(mix: Mix, count: int, chance: np.random.Generator) -> Indexes:
    """Draw the kind of each predicate, a row of them for each subscription."""
    kinds = np.array(list(mix.kinds))
    weights = np.array(list(mix.kinds.values()))
    return kinds[weighted(weights, count * mix.slot_count, chance)].reshape(count, mix.slot_count)


def _attributes(kinds: Indexes, chance: np.random.Generator) -> Indexes:
    """Choose a suitable attribute for each predicate, none twice in one subscription."""
    attributes = np.empty_like(kinds)
    is_used = np.zeros((len(kinds), len(ATTRIBUTES)), np.bool_)
    for slot in range(kinds.shape[1]):
        keys = chance.random(is_used.shape)
        keys[is_used | ~_SUITS[kinds[:, slot]]] = -1
        attributes[:, slot] = keys.argmax(axis=1)
        is_used[np.arange(len(kinds)), attributes[:, slot]] = True
    return attributes


def _predicates(kinds: Indexes, attributes: Indexes, chance: np.random.Generator) -> list[pa.Array]:
    """Write predicates with operands of their own: a column of texts for each slot."""
    names = pa.array(ATTRIBUTES)
    columns = []
    for slot in range(kinds.shape[1]):
        groups = []
        for kind in np.unique(kinds[:, slot]):
            places = np.flatnonzero(kinds[:, slot] == kind)
            about = attributes[places, slot]
            groups.append((places, joined(names.take(pa.array(about)), _tested(int(kind), about, chance))))
        columns.append(scattered(groups))
    return columns


def _tested(kind: int, attributes: Indexes, chance: np.random.Generator) -> pa.Array:
    """Write what stands behind the attribute: the operator and its operands."""
    count = attributes.size
    if kind == _RANGE:
        low, high = _ranges(count, chance)
        return joined(" BETWEEN ", integers(low), " AND ", integers(high))
    if kind == _IN:
        listed = np.sort(weighted_sets(_WEIGHTS, LISTED_COUNT, count, chance), axis=1)
        words = [literals(_WORD_VALUES).take(pa.array(column)) for column in listed.T]
        return joined(" IN (", *[part for word in words for part in (word, ", ")][:-1], ")")
    values = weighted(_WEIGHTS, count, chance)
    both = pa.concat_arrays([literals(range(VALUE_COUNT)), literals(_WORD_VALUES)])
    return joined(" = ", both.take(pa.array(values + VALUE_COUNT * _IS_WORD[attributes])))


def _ranges(count: int, chance: np.random.Generator) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Draw ranges that lie inside 0..9999, both ends included."""
    width = np.rint(chance.uniform(LEAST_RANGE, GREATEST_RANGE, count) * NUMBER_COUNT).astype(np.int64)
    low = chance.integers(0, NUMBER_COUNT - width, endpoint=True)
    return low, low + width - 1
