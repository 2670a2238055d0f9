"""How does a column of texts become columns of predicates? A reader that makes no object for a predicate.

A million subscriptions are written with a few names, some thousands of constants and a handful of structures. The
compiled loops (`kernels`) find these, number them and write texts as numbers; what a name or a constant *means* is
asked of the parser, once for each. So there is one definition of the language. Whatever the loops do not take (a
function, arithmetic, whatever looks like a mistake) is read by the parser itself, text by text.

Source: the structures are those of an operator-precedence parser (Dijkstra's shunting yard), whose output is postfix
  order; numbering as one reads is string interning by open addressing.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tamis.compilation import is_compiled as was_compiled
from tamis.errors import LanguageError
from tamis.language import literals
from tamis.language.checking import check
from tamis.language.expressions import (
    And,
    AtLeast,
    Attribute,
    Between,
    Compare,
    Expression,
    In,
    Literal,
    Not,
    Or,
    Xor,
)
from tamis.language.functions import NO_FUNCTIONS
from tamis.language.parser import parse, parse_term
from tamis.language.tokens import NUMBER as NUMBER_PATTERN
from tamis.language.tokens import string_value
from tamis.matching.axes import DOUBLE, NUMBER, STRING, TIME, TRUTH, axis_kind
from tamis.matching.reading import kernels
from tamis.matching.reading.kernels import UNREAD, Page
from tamis.matching.reading.numbering import KeyNumbers
from tamis.ragged import Ragged, starts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tamis.language.schema import Schema

Ints = npt.NDArray[np.int64]

PAGE = 1 << 12
"""So many texts are read at a time: what is written down of them stays in the caches."""
MANY = 256
"""Fewer texts are parsed before the loops are loaded."""
WORTH_COMPILING = 1 << 16
"""To parse fewer texts takes no longer than to compile what reads them, where that was not done before."""
READ_AT_ONCE = 1 << 16
"""So many become expressions at a time."""
KINDS = (NUMBER, DOUBLE, STRING, TIME)
"""The axes that operands lie on, by number."""
NO_KIND = len(KINDS)
_NUMBER = re.compile(f"-?{NUMBER_PATTERN}")
_OPERATORS = {
    kernels.EQUAL: "=",
    kernels.UNEQUAL: "<>",
    kernels.BELOW: "<",
    kernels.AT_MOST: "<=",
    kernels.ABOVE: ">",
    kernels.AT_LEAST: ">=",
}


class Reader:
    """Texts that were read, as columns.

    >>> reader = Reader()
    >>> reader.read(["price < 20 AND NOT sold", "lower(title) = 'x'", "price < 20 OR bids IN (1, 2)"])
    >>> [reader.is_read(number) for number in range(3)]
    [True, False, True]
    >>> print(reader.expression(2))
    price < 20 OR bids IN (1, 2)
    >>> len(reader.predicates.counts)
    3
    """

    def __init__(self, schema: Schema | None = None) -> None:
        self.schema = schema
        self._words = KeyNumbers(np.uint8)
        self._operands = KeyNumbers(np.int64)
        """Each a name, a kind, and an integer or a word."""
        self._predicates = KeyNumbers(np.int64)
        """Each a form and its operands; of OTHER its word."""
        self._structures = KeyNumbers(np.int64)
        self._of_texts: list[npt.NDArray[np.int32]] = []
        """The structures of texts, page by page,"""
        self._counts: list[npt.NDArray[np.int32]] = []
        """the numbers of their predicates"""
        self._leaves: list[npt.NDArray[np.int32]] = []
        """and these themselves."""
        self._stack = np.empty((3, kernels.DEEPEST + 2), np.int64)
        self._terms: dict[int, Attribute] = {}
        self._values: dict[tuple[int, int], Any] = {}
        self._known: dict[int, Expression | None] = {}
        self._kinds: npt.NDArray[np.uint8] | None = None

    # -- Reading

    def read(self, texts: Sequence[str]) -> None:
        """Read more texts."""
        for first in range(0, len(texts), PAGE):
            self._read_page(*_encoded(texts[first : first + PAGE]))

    def _read_page(self, data: npt.NDArray[np.uint8], offsets: Ints) -> None:
        count = len(offsets) - 1
        is_read, predicate_ends, word_ends = (
            np.empty(count, np.bool_),
            np.empty(count, np.int64),
            np.empty(count, np.int64),
        )
        most = len(data) + count + 8  # a piece is a byte at least, and so is what parts it from the next
        page = Page(
            np.zeros(3, np.int64),
            np.empty((most, 2), np.int64),
            np.empty((most, 4), np.int64),
            np.empty(2 * most, np.int64),
        )
        kernels.read_texts(data, offsets, is_read, predicate_ends, word_ends, page, self._stack)
        counts, predicates, pieces, words = page
        predicates, pieces = predicates[: counts[kernels.PREDICATES]], pieces[: counts[kernels.PIECES]]
        is_word = pieces[:, kernels.KIND] != kernels.INTEGER
        begins, ends = (np.ascontiguousarray(pieces[is_word, column]) for column in (kernels.BEGIN, kernels.END))
        pieces[is_word, kernels.VALUE] = self._words.numbers(data, begins, ends)
        numbers = self._predicate_numbers(predicates, pieces)
        structures = self._structures.numbers(words, _begins(word_ends), word_ends)
        self._of_texts.append(np.where(is_read, structures, UNREAD).astype(np.int32))
        self._counts.append(np.diff(predicate_ends, prepend=0).astype(np.int32))
        self._leaves.append(numbers.astype(np.int32))

    def _predicate_numbers(self, predicates: Ints, pieces: Ints) -> Ints:
        """Return the numbers of predicates."""
        operands = np.empty((len(pieces) - len(predicates), 3), np.int64)
        kernels.operands_of(predicates, pieces, operands)
        begins = np.arange(len(operands)) * 3
        numbers = self._operands.numbers(operands.ravel(), begins, begins + 3)
        values, ends = np.empty(len(pieces) + len(predicates), np.int64), np.empty(len(predicates), np.int64)
        kernels.lists_of(predicates, pieces, numbers, values, ends)
        return self._predicates.numbers(values, _begins(ends), ends)

    # -- What was read

    @property
    def structures(self) -> npt.NDArray[np.int32]:
        """The structure of each text, UNREAD where the parser has to read it."""
        return np.concatenate([np.zeros(0, np.int32), *self._of_texts])

    @property
    def leaves(self) -> Ragged[np.int32]:
        """The predicates of each text, in order."""
        counts = np.concatenate([np.zeros(0, np.int32), *self._counts])
        return Ragged(starts_of(counts), np.concatenate([np.zeros(0, np.int32), *self._leaves]))

    @property
    def predicates(self) -> Ragged[np.int64]:
        """The predicates by number: a form and operands each; of OTHER its word."""
        return self._predicates.lists

    @property
    def operands(self) -> npt.NDArray[np.int64]:
        """The operands by number, a row each: a name, a kind, and an integer or a word."""
        rows: npt.NDArray[np.int64] = self._operands.lists.values.reshape(-1, 3)
        return rows

    @property
    def operand_names(self) -> npt.NDArray[np.int64]:
        """The name that each operand stands beside."""
        return self.operands[:, 0]

    @property
    def shapes(self) -> Ragged[np.int64]:
        """The words of each structure."""
        return self._structures.lists

    def is_read(self, number: int) -> bool:
        """Was a text read here? Else the parser has to."""
        return bool(self.structures[number] != UNREAD)

    # -- What it means

    def _text(self, word: int) -> str:
        return str(self._words.lists.members(word).tobytes(), "utf-8")

    def term(self, word: int) -> Attribute:
        """Return what a name names."""
        term = self._terms.get(word)
        if term is None:
            term = self._terms[word] = _named(self._text(word))
        return term

    def value(self, kind: int, value: int) -> Any:
        """Return the value of a literal; None if it is a mistake, of which the parser knows more."""
        if kind == kernels.INTEGER:
            return value
        key = kind, value
        if key not in self._values:
            self._values[key] = _constant(kind, self._text(value))
        return self._values[key]

    def values(self, numbers: Ints) -> list[Any]:
        """Return the values of operands, by number."""
        rows = self.operands[numbers]
        if (rows[:, 1] == kernels.INTEGER).all():
            return list(rows[:, 2].tolist())
        return [self.value(kind, value) for kind, value in rows[:, 1:].tolist()]

    def operand_kinds(self) -> npt.NDArray[np.uint8]:
        """Return on which of the `KINDS` of axes each operand lies; NO_KIND where it is a mistake, or on none."""
        rows = self.operands
        axis_kinds = np.full(len(rows), KINDS.index(NUMBER), np.uint8)
        for kind in range(kernels.INTEGER + 1, kernels.NAME):
            places = np.flatnonzero(rows[:, 1] == kind)
            words, of_places = np.unique(rows[places, 2], return_inverse=True)
            kinds = [self._kind_of(kind, word) for word in words.tolist()]
            axis_kinds[places] = np.array(kinds, np.uint8)[of_places]
        return axis_kinds

    def _kind_of(self, kind: int, word: int) -> int:
        value = self.value(kind, word)
        axis = TRUTH if value is None else axis_kind(value)
        return NO_KIND if axis == TRUTH else KINDS.index(axis)

    def predicate_kinds(self) -> npt.NDArray[np.uint8]:
        """Return on which of the `KINDS` of axes each predicate lies.

        Those of NO_KIND are to be asked for one by one (`predicate`): OTHER, those with operands on several axes or on
        none, and those that the schema does not know.
        """
        if self._kinds is not None and len(self._kinds) == len(self._predicates):
            return self._kinds
        lists = self.predicates
        forms, is_operand = self.forms(), np.ones(len(lists.values), np.bool_)
        is_other = forms == kernels.OTHER
        is_operand[lists.starts[:-1]] = False
        is_operand[lists.starts[:-1][is_other] + 1] = False
        kinds = self._sensible(self.operand_kinds())[lists.values[is_operand]]
        of_predicates = np.full(lists.list_count, NO_KIND, np.uint8)
        if len(kinds):
            begins = starts_of((lists.counts - 1)[~is_other])[:-1]
            least, most = np.minimum.reduceat(kinds, begins), np.maximum.reduceat(kinds, begins)
            of_predicates[~is_other] = np.where(least == most, least, NO_KIND)
        self._kinds = of_predicates
        return of_predicates

    def forms(self) -> npt.NDArray[np.int64]:
        """Return what each predicate asks."""
        lists = self.predicates
        forms: npt.NDArray[np.int64] = lists.values[lists.starts[:-1]]
        return forms

    def _sensible(self, kinds: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return the kinds of operands, without those that the schema does not let them have beside their names."""
        if self.schema is None or not len(kinds):
            return kinds
        names = self.operands[:, 0]
        _, firsts, pairs = np.unique(names * (NO_KIND + 1) + kinds, return_index=True, return_inverse=True)
        may = [kinds[first] != NO_KIND and self._may_compare(first) for first in firsts.tolist()]
        return np.where(np.array(may)[pairs], kinds, NO_KIND).astype(np.uint8)

    def _may_compare(self, operand: int) -> bool:
        """May the name of an operand be compared with it, as far as the schema knows?"""
        name, kind, value = self.operands[operand].tolist()
        try:
            check(Compare("=", self.term(name), Literal(self.value(kind, value))), self.schema)
        except LanguageError:
            return False
        return True

    def predicate(self, number: int) -> Expression | None:
        """Return a predicate; None if it is a mistake, of which the parser knows more."""
        if number not in self._known:
            expression = self._made(number)
            if expression is not None and self.predicate_kinds()[number] == NO_KIND:
                try:
                    check(Not(expression), self.schema)  # a name alone may be anything, and here it is a condition
                except LanguageError:
                    expression = None
            self._known[number] = expression
        return self._known[number]

    def _made(self, number: int) -> Expression | None:
        form, *pieces = self.predicates.members(number).tolist()
        if form == kernels.OTHER:
            return _predicate(self._text(pieces[0]), self.schema)
        return self._compared(form, self.operands[pieces].tolist())

    def _compared(self, form: int, rows: list[list[int]]) -> Expression | None:
        """Return the predicate that compares a name with operands; None if one of them is a mistake."""
        values = tuple([value if kind == kernels.INTEGER else self.value(kind, value) for _, kind, value in rows])
        if None in values:
            return None
        term = self.term(rows[0][0])
        if form == kernels.AMONG:
            return In(term, values)
        if form == kernels.BETWEEN:
            return Between(term, Literal(values[0]), Literal(values[1]))
        return Compare(_OPERATORS[form], term, Literal(values[0]))

    def expression(self, number: int) -> Expression | None:
        """Return what a text says, as the parser would; None if the parser has to be asked."""
        structure = int(self.structures[number])
        if structure == UNREAD:
            return None
        predicates = [self.predicate(each) for each in self.leaves.members(number).tolist()]
        try:
            return expression_of(self.shapes.members(structure).tolist(), iter(predicates))
        except _MistakeError:
            return None

    def expressions(self) -> list[Expression | None]:
        """Return what every text says, as the parser would; None where the parser has to be asked.

        >>> reader = Reader()
        >>> reader.read(["price < 20", "lower(title) = 'x'"])
        >>> reader.expressions() == [reader.expression(0), None]
        True
        """
        leaves, shapes = self.leaves, self.shapes
        kinds, rows = self.predicate_kinds().tolist(), self.operands.tolist()
        forms_and_operands, starts = self.predicates.values.tolist(), self.predicates.starts.tolist()
        predicates: list[Expression | None] = []
        for number, kind in enumerate(kinds):
            if kind == NO_KIND:
                predicates.append(self.predicate(number))
            else:
                first, end = starts[number] + 1, starts[number + 1]
                own = [rows[operand] for operand in forms_and_operands[first:end]]
                predicates.append(self._compared(forms_and_operands[first - 1], own))
        words = [shapes.members(number).tolist() for number in range(shapes.list_count)]
        is_conjunction = [
            len(each) > 1 and each[-1] & 7 == kernels.CONJUNCTION and not any(each[:-1]) for each in words
        ]
        in_order = map(predicates.__getitem__, leaves.values.tolist())
        expressions: list[Expression | None] = []
        for structure, count in zip(self.structures.tolist(), leaves.counts.tolist(), strict=True):
            own = list(islice(in_order, count))
            is_said = structure != UNREAD and not any(each is None for each in own)
            if not is_said:
                expressions.append(None)
            elif is_conjunction[structure]:
                expressions.append(And(tuple(own)))
            else:
                expressions.append(expression_of(words[structure], iter(own)))
        return expressions


def read_many(texts: Sequence[str], schema: Schema | None = None) -> list[Expression | None]:
    """Return what texts say, of many of them and as far as the loops can read it; None where the parser is to be asked.

    >>> read_many(["price < 20"])  # which are too few to be worth it
    [None]
    """
    if len(texts) < MANY or (len(texts) < WORTH_COMPILING and not is_compiled()):
        return [None] * len(texts)
    expressions: list[Expression | None] = []
    for first in range(0, len(texts), READ_AT_ONCE):
        reader = Reader(schema)
        reader.read(texts[first : first + READ_AT_ONCE])
        expressions += reader.expressions()
    return expressions


class _MistakeError(Exception):
    """A predicate of a text is a mistake."""


def expression_of(shape: list[int], predicates: Iterator[Expression | None]) -> Expression:
    """Return the expression of a structure over some predicates."""
    stack: list[Expression] = []
    for word in shape:
        kind, arity, needed = word & 7, (word & 0xFFFFFFFF) >> 3, word >> kernels.COUNT_SHIFT
        if kind == kernels.LEAF:
            predicate = next(predicates)
            if predicate is None:
                raise _MistakeError
            stack.append(predicate)
        elif kind == kernels.NEGATION:
            stack.append(Not(stack.pop()))
        else:
            operands = tuple(stack[len(stack) - arity :])
            del stack[len(stack) - arity :]
            stack.append(AtLeast(needed, operands) if kind == kernels.COUNT else _CONNECTIVES[kind](operands))
    return stack[0]


_CONNECTIVES: dict[int, Any] = {kernels.CONJUNCTION: And, kernels.DISJUNCTION: Or, kernels.PARITY: Xor}


def is_compiled() -> bool:
    """Were the loops compiled before?

    They take seconds, once for an installation: too long for a few thousand texts, which the parser has read by then.
    """
    return was_compiled(kernels.read_texts)


def _encoded(texts: Sequence[str]) -> tuple[npt.NDArray[np.uint8], Ints]:
    """Return texts as bytes, and where each starts; half a surrogate pair has none, and is left to the parser."""
    joined = "".join(texts)
    if joined.isascii():
        return _buffer(joined.encode()), starts_of(list(map(len, texts)))
    encoded = list(map(_bytes, texts))
    return _buffer(b"".join(encoded)), starts_of(list(map(len, encoded)))


def _buffer(data: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(data or b" ", np.uint8)


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return b""


def _begins(ends: Ints) -> Ints:
    """Return where lists begin that lie one behind the other, given where each ends."""
    return np.concatenate([np.zeros(1, np.int64), ends])[:-1]


def _named(name: str) -> Attribute:
    term = parse_term(name, functions=NO_FUNCTIONS)
    assert isinstance(term, Attribute), f"the loops take {name} for a name, and the parser does not"
    return term


def _constant(kind: int, text: str) -> Any:
    try:
        if kind == kernels.NUMBER:
            return literals.number(text) if _NUMBER.fullmatch(text) else None
        value = string_value(text)
        value.encode()
        if kind == kernels.STRING:
            return value
        return literals.date(value) if kind == kernels.DATE else literals.timestamp(value)
    except (LanguageError, ValueError):
        return None


def _predicate(text: str, schema: Schema | None) -> Expression | None:
    try:
        return parse(text, schema, functions=NO_FUNCTIONS)
    except LanguageError:
        return None
