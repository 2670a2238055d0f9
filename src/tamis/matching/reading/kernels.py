"""The compiled loops that read conditions: bytes of texts in, columns of predicates and structures out.

What a text says is written down as a *structure* in postfix order (which connectives join how many operands) and the
predicates at its leaves, each as pieces: where its name and its literals stand. Then words, operands, predicates and
structures are numbered as they come, equal ones alike (`number_lists`).

A text that has anything else in it than the everyday language is not read at all, and neither is one that might be a
mistake: it is for the parser, which defines the language, to say what it means, or what is wrong with it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

UNREAD = -1
LONGEST_TEXT = 1 << 16
"""Longer texts are left to the parser, so that no limit but that of the depth can be met here."""
DEEPEST = 90
"""So much may wait for its operands at once: far less than the parser allows."""

LEAF, NEGATION, CONJUNCTION, DISJUNCTION, PARITY, COUNT = range(6)
"""What a word of a structure is, in its lowest three bits; then follow how many operands it has, and in the upper half
how many of them a COUNT asks for."""
COUNT_SHIFT = 32

INTEGER, NUMBER, STRING, DATE, TIMESTAMP, NAME, WHOLE = range(7)
"""What an operand or a word is. An INTEGER is a value, all others are words; a WHOLE is the text of a predicate."""
EQUAL, UNEQUAL, BELOW, AT_MOST, ABOVE, AT_LEAST, BETWEEN, AMONG, OTHER = range(9)
"""What a predicate asks of the values of a name; OTHER is one that only the parser can tell, by its text."""

PREDICATES, PIECES, WORDS = range(3)
"""How many there are of each in a page: places among the counts."""
KIND, BEGIN, END, VALUE = range(4)
"""What is known of a piece of a text: columns of the pieces."""


class NumberedLists(NamedTuple):
    """Lists that are numbered as they come, each once. The arrays have room for more than there is.

    counts  int64[2]    how many lists there are, and how many members they have together
    slots   int64[:]    a power of two: lists by hash, -1 where there is none; in the upper half the hash's upper bits
    hashes  uint64[:]   the hash of each list
    starts  int64[:]    list n is values[starts[n]:starts[n + 1]]
    values  any[:]
    """

    counts: Any
    slots: Any
    hashes: Any
    starts: Any
    values: Any


class Page(NamedTuple):
    """What is written down of some texts, with room for whatever they may say.

    counts      int64[3]     how much there is of each
    predicates  int64[:, 2]  the form of each, and where its pieces end
    pieces      int64[:, 4]  the name and the operands of each predicate, or of OTHER the whole: see the columns above
    words       int64[:]     of all structures
    """

    counts: Any
    predicates: Any
    pieces: Any
    words: Any


class NodeTable(NamedTuple):
    """Expressions as trees, all at once: first their roots, then the operands of these, and so on.

    kinds   uint8[nodes]  LEAF to COUNT, as in structures
    firsts  int64[nodes]  where the operands of a connective begin, one behind the other; of a LEAF its predicate
    words   int64[nodes]  as they stand in structures
    """

    kinds: Any
    firsts: Any
    words: Any


class Outlines(NamedTuple):
    """Which predicates the structures of texts ask, in the order of their outlines (`block.plans`).

    starts     int64[structures + 1]
    positions  int64[:]  which of its text's predicates each is
    signs      int64[:]  0: as it is, 1: negated
    """

    starts: Any
    positions: Any
    signs: Any


class Plans(NamedTuple):
    """Clauses (`block.plans`) in columns: plan p has the clauses starts[p]:starts[p + 1].

    starts                    int64[plans + 1]
    leaf_starts, leaves       int64[clauses + 1], int64[:]  positions in the outline
    tree_starts, tree_leaves  int64[clauses + 1], int64[:]  the same
    trues, falses             int64[:]                      beside tree_leaves
    step_starts, actions      int64[clauses + 1], int64[:]
    step_leaves               int64[:]                      beside actions; -1 for none
    """

    starts: Any
    leaf_starts: Any
    leaves: Any
    tree_starts: Any
    tree_leaves: Any
    trues: Any
    falses: Any
    step_starts: Any
    actions: Any
    step_leaves: Any


class ClauseRoom(NamedTuple):
    """Where clauses are written: the columns of a draft (`block.draft`), whose ends are counted from the first.

    counts  int64[4]  how many clauses, leaves, jumps and steps are there
    """

    counts: Any
    owners: Any
    ordinals: Any
    trees: Any
    clause_ends: Any
    clause_leaves: Any
    tree_leaves: Any
    tree_trues: Any
    tree_falses: Any
    step_ends: Any
    step_actions: Any
    step_leaves: Any


_NO_LEAF = 0xFFFFFFFF
"""What stands for no leaf in the steps of a draft."""
_OTHER_BYTE, _SPACE, _DIGIT, _LETTER = range(4)


def _classes() -> Any:
    classes = np.zeros(256, np.uint8)
    classes[[ord(each) for each in " \t\n\r\f\v"]] = _SPACE
    classes[[ord(each) for each in "0123456789"]] = _DIGIT
    classes[[ord(each) for each in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"]] = _LETTER
    return classes


_CLASSES = _classes()

_SPREAD = np.uint64(0x9E3779B97F4A7C15)

_FRAME, _PARENTHESIS, _COUNT_CALL, _PARITY_CALL = range(8, 12)
"""What waits besides connectives: the whole text, a parenthesis, and the calls of `at_least` and `xor`."""
_LONGEST_COUNT = 6
_NEGATED = 16
"""Added to the form of a predicate that is negated."""


def _packed(word: str) -> np.uint64:
    value = 0
    for letter in word[-8:]:
        value = value << 8 | ord(letter)
    return np.uint64(value)


# Words that mean something, by their last eight letters.
_AND, _OR, _XOR, _NOT, _IN, _IS, _A = (_packed(word) for word in ("and", "or", "xor", "not", "in", "is", "a"))
_LIKE, _RLIKE, _REGEXP, _BETWEEN, _ESCAPE = (_packed(word) for word in ("like", "rlike", "regexp", "between", "escape"))
_NULL, _TRUE, _FALSE, _UNKNOWN = (_packed(word) for word in ("null", "true", "false", "unknown"))
_DATE, _COUNTED = _packed("date"), _packed("at_least")
_NINE_LETTERS = np.uint64(1 << 63)
_TIMESTAMP = _packed("timestamp") | _NINE_LETTERS
_RESERVED = np.array(
    [
        _packed(word)
        for word in (
            "and", "or", "xor", "not", "in", "is", "like", "rlike", "regexp", "between", "escape",
            "null", "true", "false", "case", "when", "then", "else", "end",
        )
    ]
)  # fmt: skip
"""Words that cannot be the name of an attribute, or not for sure."""


@njit(nogil=True, cache=True)
def read_texts(data, offsets, is_read, predicate_ends, word_ends, page, stack):
    """Read the texts of a page; of a text that is left to the parser nothing is written.

    data            uint8[:]    the bytes of all texts
    offsets         int64[:]    text t is data[offsets[t]:offsets[t + 1]]
    is_read         bool[:]     of each text
    predicate_ends  int64[:]    where its predicates end among those of the page
    word_ends       int64[:]    where its structure ends
    stack           int64[3, :] longer than DEEPEST
    """
    counts = page.counts
    for text in range(offsets.size - 1):
        begin, end = offsets[text], offsets[text + 1]
        predicates, pieces, words = counts[PREDICATES], counts[PIECES], counts[WORDS]
        is_read[text] = end - begin <= LONGEST_TEXT and _text(data[:end], begin, page, stack)
        if not is_read[text]:
            counts[PREDICATES], counts[PIECES], counts[WORDS] = predicates, pieces, words
        predicate_ends[text], word_ends[text] = counts[PREDICATES], counts[WORDS]


# -- One text


@njit(nogil=True, cache=True)
def _text(data, begin, page, stack):
    """Read the text that begins somewhere and ends with the data by operator precedence, as the parser does."""
    # What waits: what it becomes, how many operands it has so far, and the count that a COUNT asks for.
    kinds, arities, needed = stack[0], stack[1], stack[2]
    top = 0
    kinds[0] = _FRAME
    position, end = begin, data.size
    while True:
        # An operand is due: whatever opens one, and then a predicate.
        position = _behind_space(data, position)
        if position >= end or top >= DEEPEST:
            return False
        if data[position] == 40:  # (
            position += 1
            top += 1
            kinds[top] = _PARENTHESIS
            continue
        name_end, keyword = _name(data, position)
        if name_end < 0:
            return False
        if keyword == _NOT:
            position = name_end
            top += 1
            kinds[top] = NEGATION
            continue
        if keyword in (_COUNTED, _XOR):
            following = _behind_space(data, name_end)
            if following < end and data[following] == 40:
                position = following + 1
                top += 1
                kinds[top], arities[top], needed[top] = _PARITY_CALL, 1, 0
                if keyword == _COUNTED:
                    kinds[top] = _COUNT_CALL
                    position, needed[top] = _count(data, position)
                    if position < 0:
                        return False
                continue
        if _is_reserved(keyword):
            return False
        position, is_negated = _predicate(data, position, name_end, page)
        if position < 0:
            return False
        _write(page, LEAF)
        if is_negated:
            _write(page, NEGATION)
        # An operator is due: whatever closes, and then a connective.
        while True:
            position = _behind_space(data, position)
            byte = data[position] if position < end else 0
            if position >= end or byte == 41 or byte == 44:  # ) or ,
                while kinds[top] < _FRAME:
                    _write(page, _joined(kinds[top], arities[top], 0))
                    top -= 1
                if position >= end:
                    return top == 0
                position += 1
                if byte == 44:
                    if kinds[top] < _COUNT_CALL:
                        return False
                    arities[top] += 1
                    break
                if kinds[top] == _FRAME:
                    return False
                if kinds[top] == _COUNT_CALL:
                    _write(page, _joined(COUNT, arities[top], needed[top]))
                elif kinds[top] == _PARITY_CALL:
                    if arities[top] < 2:
                        return False
                    _write(page, _joined(PARITY, arities[top], 0))
                top -= 1
                continue
            word_end = _word_end(data, position)
            keyword = _keyword(data, position, word_end)
            if keyword == _AND:
                kind = CONJUNCTION
            elif keyword == _OR:
                kind = DISJUNCTION
            elif keyword == _XOR:
                kind = PARITY
            else:
                return False
            position = word_end
            while kinds[top] < _FRAME and _binding(kinds[top]) > _binding(kind):
                _write(page, _joined(kinds[top], arities[top], 0))
                top -= 1
            if kinds[top] == kind:
                arities[top] += 1
            else:
                top += 1
                kinds[top], arities[top] = kind, 2
            break


@njit(nogil=True, cache=True)
def _binding(kind):
    """How tightly does a connective bind?"""
    if kind == NEGATION:
        return 4
    if kind == CONJUNCTION:
        return 3
    return 2 if kind == PARITY else 1


@njit(nogil=True, cache=True)
def _joined(kind, arity, needed):
    """Return the word of a connective with all its operands."""
    if kind == NEGATION:
        return np.int64(NEGATION)
    return np.int64(kind) | np.int64(arity) << 3 | np.int64(needed) << COUNT_SHIFT


@njit(nogil=True, cache=True)
def _write(page, word):
    """Write the next word of a structure."""
    page.words[page.counts[WORDS]] = word
    page.counts[WORDS] += 1


@njit(nogil=True, cache=True)
def _count(data, position):
    """Read what `at_least` begins with, `2,`; return where it ends, or -1, and the count."""
    position = _behind_space(data, position)
    first, count = position, 0
    while position < data.size and _CLASSES[data[position]] == _DIGIT and position - first < _LONGEST_COUNT:
        count = 10 * count + np.int64(data[position]) - 48
        position += 1
    following = _behind_space(data, position)
    if position == first or following >= data.size or data[following] != 44:
        return -1, 0
    return following + 1, count


# -- One predicate


@njit(nogil=True, cache=True)
def _predicate(data, begin, name_end, page):
    """Read a predicate, whose name has been seen; return where it ends, or -1, and whether it is negated.

    Its operands are written first, and its name or its whole text in the place that is kept before them.
    """
    first = page.counts[PIECES]
    page.counts[PIECES] += 1
    position, form = _behind_name(data, name_end, page)
    if position < 0:
        return -1, False
    is_negated = form >= _NEGATED
    form -= _NEGATED * is_negated
    if form == OTHER:
        page.counts[PIECES] = first + 1
    piece = page.pieces[first]
    piece[KIND] = WHOLE if form == OTHER else NAME
    piece[BEGIN], piece[END] = begin, position if form == OTHER else name_end
    number = page.counts[PREDICATES]
    page.predicates[number, 0], page.predicates[number, 1] = form, page.counts[PIECES]
    page.counts[PREDICATES] = number + 1
    return position, is_negated


@njit(nogil=True, cache=True)
def _behind_name(data, name_end, page):
    """Read what a predicate says of its name; return where it ends, or -1, and its form, which may be negated."""
    position = _behind_space(data, name_end)
    if position >= data.size or data[position] == 41 or data[position] == 44:
        return name_end, OTHER
    byte = data[position]
    if 60 <= byte <= 62 or byte == 33:  # < = > !
        position, form = _comparison(data, position)
        if position < 0:
            return -1, OTHER
        position = _behind_space(data, position)
        operand_end = _literal(data, position, page)
        if operand_end >= 0:
            return operand_end, form
        return _constant_or_name(data, position), OTHER
    word_end = _word_end(data, position)
    keyword = _keyword(data, position, word_end)
    if keyword in (_AND, _OR, _XOR):
        return name_end, OTHER
    negation = 0
    if keyword == _NOT:
        negation = _NEGATED
        position = _behind_space(data, word_end)
        word_end = _word_end(data, position)
        keyword = _keyword(data, position, word_end)
    if keyword == _BETWEEN:
        return _ends(data, word_end, page), BETWEEN + negation
    if keyword == _IN:
        return _members(data, word_end, page), AMONG + negation
    if keyword in (_LIKE, _RLIKE, _REGEXP):
        return _pattern(data, word_end, keyword == _LIKE), OTHER
    if keyword == _IS and not negation:
        return _what_it_is(data, word_end), OTHER
    return -1, OTHER


@njit(nogil=True, cache=True)
def _comparison(data, position):
    """Read a comparison; return where it ends, or -1, and its form."""
    byte = data[position]
    second = data[position + 1] if position + 1 < data.size else 0
    if byte == 61:  # =
        return position + 1 + (second == 61), EQUAL
    if byte == 33:  # !
        return (position + 2 if second == 61 else -1), UNEQUAL
    if byte == 62:  # >
        return position + 1 + (second == 61), AT_LEAST if second == 61 else ABOVE
    if second == 61:
        is_safe = position + 2 < data.size and data[position + 2] == 62
        return position + 2 + is_safe, OTHER if is_safe else AT_MOST
    return position + 1 + (second == 62), UNEQUAL if second == 62 else BELOW


@njit(nogil=True, cache=True)
def _constant_or_name(data, position):
    """Return where a name ends, or TRUE, FALSE or NULL; -1 if neither stands here."""
    name_end, keyword = _name(data, position)
    if _is_reserved(keyword) and keyword != _TRUE and keyword != _FALSE and keyword != _NULL:
        return -1
    return name_end


@njit(nogil=True, cache=True)
def _what_it_is(data, position):
    """Read what stands behind IS; return where it ends, or -1."""
    position = _behind_space(data, position)
    word_end = _word_end(data, position)
    keyword = _keyword(data, position, word_end)
    if keyword == _NOT:
        position = _behind_space(data, word_end)
        word_end = _word_end(data, position)
        keyword = _keyword(data, position, word_end)
    if keyword in (_NULL, _TRUE, _FALSE, _UNKNOWN):
        return word_end
    return _string_end(data, _behind_space(data, word_end)) if keyword == _A else -1


@njit(nogil=True, cache=True)
def _pattern(data, position, may_escape):
    """Read a pattern; return where it ends, or -1."""
    position = _string_end(data, _behind_space(data, position))
    if position >= 0 and may_escape:
        following = _behind_space(data, position)
        word_end = _word_end(data, following)
        if _keyword(data, following, word_end) == _ESCAPE:
            return _string_end(data, _behind_space(data, word_end))
    return position


@njit(nogil=True, cache=True)
def _ends(data, position, page):
    """Read both ends of BETWEEN; return where they end, or -1."""
    position = _literal(data, _behind_space(data, position), page)
    if position < 0:
        return -1
    position = _behind_space(data, position)
    word_end = _word_end(data, position)
    if _keyword(data, position, word_end) != _AND:
        return -1
    return _literal(data, _behind_space(data, word_end), page)


@njit(nogil=True, cache=True)
def _members(data, position, page):
    """Read the list of IN; return where it ends, or -1."""
    position = _behind_space(data, position)
    if position >= data.size or data[position] != 40:
        return -1
    while True:
        position = _literal(data, _behind_space(data, position + 1), page)
        if position < 0:
            return -1
        position = _behind_space(data, position)
        if position >= data.size:
            return -1
        if data[position] == 41:
            return position + 1
        if data[position] != 44:
            return -1


# -- Tokens


@njit(nogil=True, cache=True)
def _behind_space(data, position):
    while position < data.size and _CLASSES[data[position]] == _SPACE:
        position += 1
    return position


@njit(nogil=True, cache=True)
def _word_end(data, position):
    """Return where a run of letters and digits ends; where it starts, if it is not for sure a word of its own."""
    first = position
    while position < data.size and _CLASSES[data[position]] >= _DIGIT:
        position += 1
    if position < data.size and (data[position] == 46 or data[position] >= 128):  # a dot, or what may be a letter
        return first
    return position


@njit(nogil=True, cache=True)
def _keyword(data, begin, end):
    """Return a word in lower case, as a number; 0 if it is none or too long."""
    if end - begin > 9:
        return np.uint64(0)
    value = np.uint64(0)
    for position in range(max(begin, end - 8), end):
        byte = data[position]
        value = value << np.uint64(8) | np.uint64(byte + 32 if 65 <= byte <= 90 else byte)
    if end - begin == 9:  # only the last eight letters have room, and only one such word is of interest
        return value | _NINE_LETTERS if data[begin] == 116 or data[begin] == 84 else np.uint64(0)
    return value


@njit(nogil=True, cache=True)
def _is_reserved(keyword):
    """Can this word not be the name of an attribute, or not for sure?"""
    for word in _RESERVED:  # noqa: SIM110 - compiled
        if keyword == word:
            return True
    return False


@njit(nogil=True, cache=True)
def _name(data, position):
    """Read a name, dotted and back-quoted as it may be; return where it ends, or -1, and the keyword that it may be."""
    first, parts = position, 0
    keyword = np.uint64(0)
    while True:
        if position >= data.size:
            return -1, keyword
        part = position
        if data[position] == 96:  # a back-quote
            position += 1
            while position < data.size and (
                data[position] != 96 or (position + 1 < data.size and data[position + 1] == 96)
            ):
                position += 1 + (data[position] == 96)
            position += 1
            if position > data.size or position - part < 3:
                return -1, keyword
        elif _CLASSES[data[position]] == _LETTER:
            while position < data.size and _CLASSES[data[position]] >= _DIGIT:
                position += 1
            is_dotted = parts > 0 or (position < data.size and data[position] == 46)
            if is_dotted and _is_reserved(_keyword(data, part, position)):
                return -1, keyword  # a mistake where a name begins so, and nowhere else
        else:
            return -1, keyword
        parts += 1
        if position >= data.size or data[position] != 46:
            break
        position += 1
    if parts == 1 and data[first] != 96:
        keyword = _keyword(data, first, position)
    if position < data.size and data[position] >= 128:
        return -1, keyword
    following = _behind_space(data, position)
    byte = data[following] if following < data.size else 0
    # A dot continues the name, a quote makes it the head of a literal, and a parenthesis that of a call.
    is_more = byte == 46 or byte == 34 or byte == 39 or byte == 96
    is_call = byte == 40 and keyword != _COUNTED and keyword != _XOR and keyword != _NOT
    return -1 if is_more or is_call else position, keyword


@njit(nogil=True, cache=True)
def _string_end(data, position):
    """Return where a text in quotes ends, or -1."""
    if position >= data.size or (data[position] != 39 and data[position] != 34):
        return -1
    quote = data[position]
    position += 1
    while position < data.size:
        if data[position] == 92:  # a backslash
            position += 2
        elif data[position] == quote:
            position += 1
            if position >= data.size or data[position] != quote:
                return position
            position += 1
        else:
            position += 1
    return -1


@njit(nogil=True, cache=True)
def _literal(data, position, page):
    """Read a literal; return where it ends, or -1. Integers of up to 15 digits are values at once."""
    begin, kind, value = position, STRING, 0
    if position >= data.size:
        return -1
    byte = data[position]
    if byte == 45 or _CLASSES[byte] == _DIGIT:
        position, kind, value = _number(data, position)
    else:
        if _CLASSES[byte] == _LETTER:
            word_end = _word_end(data, position)
            keyword = _keyword(data, position, word_end)
            if keyword != _DATE and keyword != _TIMESTAMP:
                return -1
            kind = DATE if keyword == _DATE else TIMESTAMP
            position = begin = _behind_space(data, word_end)
        position = _string_end(data, position)
    if position < 0:
        return -1
    piece = page.pieces[page.counts[PIECES]]
    piece[KIND], piece[BEGIN], piece[END], piece[VALUE] = kind, begin, position, value
    page.counts[PIECES] += 1
    return position


@njit(nogil=True, cache=True)
def _number(data, begin):
    """Read a number; return where it ends, or -1, its kind, and its value if it is an INTEGER."""
    position = begin + (data[begin] == 45)
    first, value = position, 0
    while position < data.size and _CLASSES[data[position]] == _DIGIT:
        if position - first < 15:
            value = 10 * value + np.int64(data[position]) - 48
        position += 1
    if position == first:
        return -1, NUMBER, 0
    kind = INTEGER if position - first <= 15 else NUMBER
    while position < data.size:
        byte = data[position]
        is_signed = (byte == 43 or byte == 45) and kind == NUMBER and (data[position - 1] | 32) == 101  # an exponent
        if not is_signed and byte != 46 and byte < 128 and _CLASSES[byte] < _DIGIT:
            break
        kind = NUMBER
        position += 1
    return position, kind, -value if data[begin] == 45 else value


# -- Expressions


@njit(nogil=True, cache=True)
def write_structures(levels, is_left, is_whole, words, word_ends, leaves, leaf_ends, stack):
    """Write the structure of each expression, and its predicates; of one that is left out nothing.

    is_left       bool[predicates]   where an expression with such a predicate is left out
    is_whole      bool[expressions]  or the expression itself
    words         int64[:]           of all structures
    word_ends     int64[:]           where those of each expression end
    leaves        int64[:]           the numbers of predicates
    leaf_ends     int64[:]           where those of each expression end
    stack         int64[2, :]        connectives whose operands are being written, and how many of them have been
    """
    kinds, firsts, node_words = levels
    written = leaf_count = 0
    for root in range(is_whole.size):
        first_word, first_leaf = written, leaf_count
        is_good = is_whole[root]
        top = -1
        node = np.int64(root) if is_good else np.int64(-1)
        while node >= 0:
            if kinds[node] == LEAF:
                words[written], leaves[leaf_count] = LEAF, firsts[node]
                written, leaf_count = written + 1, leaf_count + 1
                is_good &= not is_left[firsts[node]]
            else:
                top += 1
                stack[0, top], stack[1, top] = node, 0
            # Whose operands are all written is written itself, and then perhaps the one that it is an operand of.
            node = np.int64(-1)
            while top >= 0 and node < 0:
                outer = stack[0, top]
                arity = 1 if kinds[outer] == NEGATION else (node_words[outer] & 0xFFFFFFFF) >> 3
                if stack[1, top] < arity:
                    node = firsts[outer] + stack[1, top]
                    stack[1, top] += 1
                else:
                    words[written] = node_words[outer]
                    written += 1
                    top -= 1
        if not is_good:
            written, leaf_count = first_word, first_leaf
        word_ends[root], leaf_ends[root] = written, leaf_count


# -- KeyNumbers


@njit(nogil=True, cache=True)
def operands_of(predicates, pieces, operands):
    """Write what each predicate compares its name with, a row each: the name, the kind and the value."""
    piece = row = 0
    for number in range(predicates.shape[0]):
        name = pieces[piece, VALUE]
        for place in range(piece + 1, predicates[number, 1]):
            operands[row, 0], operands[row, 1], operands[row, 2] = name, pieces[place, KIND], pieces[place, VALUE]
            row += 1
        piece = predicates[number, 1]


@njit(nogil=True, cache=True)
def lists_of(predicates, pieces, operands, values, ends):
    """Write each predicate as a list: its form and its operands; of OTHER its word.

    operands  int64[:]  by number, in the order in which `operands_of` writes them
    values    int64[:]  of all lists
    ends      int64[:]  where each ends
    """
    piece = row = count = 0
    for number in range(predicates.shape[0]):
        values[count] = predicates[number, 0]
        count += 1
        if predicates[number, 0] == OTHER:
            values[count] = pieces[piece, VALUE]
            count += 1
        for _ in range(piece + 1, predicates[number, 1]):
            values[count] = operands[row]
            count += 1
            row += 1
        ends[number] = count
        piece = predicates[number, 1]


@njit(nogil=True, cache=True)
def number_lists(values, begins, ends, first, table, numbers):
    """Number lists as they come, equal ones alike, from one on until there is no room; return how many are done.

    values        any[:]    the members of all lists
    begins, ends  int64[:]  list n is values[begins[n]:ends[n]]
    table         NumberedLists  those that came before
    numbers       int64[:]  the number of each list, written here
    """
    counts, slots, hashes, starts, members = table
    mask = np.uint64(slots.size - 1)
    for number in range(first, begins.size):
        begin, length = begins[number], ends[number] - begins[number]
        if counts[0] + 1 >= hashes.size or counts[1] + length > members.size:
            return number
        value = np.uint64(length)
        for place in range(length):
            value = (value ^ np.uint64(values[begin + place])) * _SPREAD
            value ^= value >> np.uint64(29)
        slot = value & mask
        sign = np.int64(value >> np.uint64(33))  # beside the entry, so that other lists are told apart at once
        entry = np.int64(-1)
        while slots[slot] >= 0:
            if slots[slot] >> 32 == sign:
                entry = slots[slot] & np.int64(0xFFFFFFFF)
                start = starts[entry]
                if starts[entry + 1] - start == length:
                    place = 0
                    while place < length and members[start + place] == values[begin + place]:
                        place += 1
                    if place == length:
                        break
                entry = np.int64(-1)
            slot = (slot + np.uint64(1)) & mask
        if entry < 0:
            entry, start = counts[0], counts[1]
            slots[slot], hashes[entry] = sign << 32 | entry, value
            for place in range(length):
                members[start + place] = values[begin + place]
            starts[entry + 1] = start + length
            counts[0], counts[1] = entry + 1, start + length
        numbers[number] = entry
    return begins.size


@njit(nogil=True, cache=True)
def fill_slots(hashes, count, slots):
    """Lead from the hashes of entries to the entries, after both have grown."""
    slots[:] = -1
    mask = np.uint64(slots.size - 1)
    for entry in range(count):
        slot = hashes[entry] & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = np.int64(hashes[entry] >> np.uint64(33)) << 32 | entry


# -- Filling in


@njit(nogil=True, cache=True)
def mark_used(texts, structures, leaf_starts, leaves, outlines, used):
    """Mark which predicates the outlines of texts ask, as they are (row 0) and negated (row 1).

    texts       int64[:]    their numbers
    structures  int32[:]    of all texts
    outlines    Outlines
    used        bool[2, :]  by predicate, updated in place
    """
    starts, positions, signs = outlines
    for number in range(texts.size):
        text = texts[number]
        structure = structures[text]
        for place in range(starts[structure], starts[structure + 1]):
            used[signs[place], leaves[leaf_starts[text] + positions[place]]] = True


@njit(nogil=True, cache=True)
def leaves_of_outlines(texts, structures, leaf_starts, leaves, outlines, leaf_numbers, ends, asked):
    """Write which leaves the outlines of texts ask, one after the other.

    leaf_numbers  uint32[2, :]  the leaf of each predicate, as it is and negated
    ends          int64[:]      where those of each text end
    asked         uint32[:]
    """
    starts, positions, signs = outlines
    count = 0
    for number in range(texts.size):
        text = texts[number]
        structure = structures[text]
        for place in range(starts[structure], starts[structure + 1]):
            asked[count] = leaf_numbers[signs[place], leaves[leaf_starts[text] + positions[place]]]
            count += 1
        ends[number] = count


@njit(nogil=True, cache=True)
def keys_of_plans(structures, asked, costs, depends, conjunctions, keys, begins, ends):
    """Write what decides which plan each text has: its structure, and what its leaves cost.

    structures    int32[:]    of these texts
    asked         uint32[:]   the leaves of all outlines, one behind the other
    costs         int64[:]    by leaf
    depends       bool[structures]    whether its plan depends on what its leaves cost
    conjunctions  lists[structures]   of int64: the AND that each leaf of the outline is an operand of, -1 for none
    keys          int64[:]    written, with room for all leaves and structures
    begins, ends  int64[:]    where the key of each text begins and ends
    """
    starts, numbers = conjunctions
    cheapest = np.empty(64, np.int64)
    base = count = 0
    for text in range(structures.size):
        structure = structures[text]
        first, size = starts[structure], starts[structure + 1] - starts[structure]
        begins[text] = count
        keys[count] = structure
        count += 1
        if depends[structure]:
            if size > cheapest.size:
                cheapest = np.empty(2 * size, np.int64)
            # An AND is numbered by its place in the outline, so a leaf before this one may be of the same.
            for place in range(size):
                cheapest[place] = place
                for earlier in range(place if numbers[first + place] >= 0 else 0):
                    if numbers[first + earlier] == numbers[first + place]:
                        leader = cheapest[earlier]
                        if costs[asked[base + place]] < costs[asked[base + leader]]:
                            for each in range(place):
                                if cheapest[each] == leader:
                                    cheapest[each] = place
                        else:
                            cheapest[place] = leader
                        break
            for place in range(size):
                keys[count] = costs[asked[base + place]] if cheapest[place] == place else -1
                count += 1
        ends[text] = count
        base += size


@njit(nogil=True, cache=True)
def fill_plans(plan_numbers, leaf_ends, asked, plans, first_owner, room):
    """Write the clauses of texts: their plans, with the leaves of each filled in.

    plan_numbers  int64[:]   the plan of each text
    leaf_ends     int64[:]   where the leaves of each end among those asked
    plans         Plans
    first_owner   int        the number of the first text among all owners
    room          ClauseRoom       where they are written, behind what is there
    """
    starts, leaf_starts, leaves, tree_starts, tree_leaves, trues, falses, step_starts, actions, step_leaves = plans
    counts, owners, ordinals, trees = room.counts, room.owners, room.ordinals, room.trees
    clause, leaf, jump, step = counts[0], counts[1], counts[2], counts[3]
    base = 0
    for number in range(plan_numbers.size):
        plan = plan_numbers[number]
        for entry in range(starts[plan], starts[plan + 1]):
            owners[clause] = first_owner + number
            ordinals[clause] = entry - starts[plan]
            for place in range(leaf_starts[entry], leaf_starts[entry + 1]):
                room.clause_leaves[leaf] = asked[base + leaves[place]]
                leaf += 1
            room.clause_ends[clause] = leaf
            trees[clause] = -1
            if tree_starts[entry + 1] > tree_starts[entry]:
                trees[clause] = jump
            for place in range(tree_starts[entry], tree_starts[entry + 1]):
                room.tree_leaves[jump] = asked[base + tree_leaves[place]]
                room.tree_trues[jump], room.tree_falses[jump] = trues[place], falses[place]
                jump += 1
            for place in range(step_starts[entry], step_starts[entry + 1]):
                room.step_actions[step] = actions[place]
                has_leaf = step_leaves[place] >= 0
                room.step_leaves[step] = asked[base + step_leaves[place]] if has_leaf else np.uint32(_NO_LEAF)
                step += 1
            room.step_ends[clause] = step
            clause += 1
        base = leaf_ends[number]
    counts[0], counts[1], counts[2], counts[3] = clause, leaf, jump, step
