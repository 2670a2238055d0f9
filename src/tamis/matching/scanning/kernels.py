"""The compiled loop that reads the JSON of an event: bytes in, the code of the event on every axis out.

It goes over the document once and judges it by the grammar of RFC 8259. What is a mistake, or might be one, and what
is hardly ever seen (escapes in names, very deep values) it does not read at all: then a decoder that knows all of JSON
takes the whole document, and says what is wrong with it. A single value that is not everyday, a number of many digits
or a text with escapes, is left to that decoder alone. MentionedNames that nobody mentions are passed over.

That bytes beyond ASCII are UTF-8 is for the caller to see.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from tamis.compilation import borrowed, inlined

INTEGERS_AND_DOUBLES, DOUBLES, TEXTS, BOOLEANS, NOTHING = range(5)
"""What the operands of an axis are; NOTHING where no value of JSON has another code than 0."""
POSITION, KIND, FIRST, LAST, FIRST_DOUBLE, LAST_DOUBLE, TABLE, BASE, WIDTH = range(9)
"""Columns of the axes: which row of the codes, and where the operands lie. Of BOOLEANS, FIRST and LAST are the codes of
false and true. Where integers have a table, their codes are tables[TABLE:TABLE + WIDTH], from BASE on; its ends stand
for all beyond. A WIDTH of 0 is no table."""
BEGIN, END, IS_LEFT = range(3)
"""Columns of the spans of names: where its value stands, and whether the codes of its axes are left to others."""

DEEPEST = 60
_MOST_DIGITS = 18
"""So many digits fit into 64 bits."""
_LONGEST_NUMBER = 4_000
"""Python refuses integers that are not much longer."""
_EXACT = 2**53
_LARGEST_POWER = 22
_POWERS = np.array([10.0**power for power in range(_LARGEST_POWER + 1)])
"""Those that doubles are exact for: so a product or quotient of such a power and an exact number is rounded once."""
_BASIS, _PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)


class MentionedNames(NamedTuple):
    """The names that somebody mentions, by hash.

    slots   int32[:]   a power of two, more than there are names: the number of a name, -1 where there is none
    starts  int64[names + 1]
    bytes   uint8[:]   name n is bytes[starts[n]:starts[n + 1]]
    axes    int64[names + 1]  its axes are axes[n]:axes[n + 1]
    behind  int32[names + 1]  the name that came behind each when they were met last, -1 if none did; behind the last
                       of them stands the one that came first. Threads may write here at once: it is tried, not believed
    """

    slots: Any
    starts: Any
    bytes: Any
    axes: Any
    behind: Any


class AxisOperands(NamedTuple):
    """What the axes compare with.

    axes      int64[axes, 9]  the columns above, the axes of a name side by side
    integers  int64[:]        of each operand of an axis the least integer not below it, and the least above it
    tables    uint32[:]       codes of integers, where operands lie close together
    doubles   float64[:]      in order, without NaN
    prefixes  uint64[:]       the first eight bytes of each text, the texts of an axis in order
    starts    int64[texts + 1]
    bytes     uint8[:]        text t is bytes[starts[t]:starts[t + 1]]
    """

    axes: Any
    integers: Any
    tables: Any
    doubles: Any
    prefixes: Any
    starts: Any
    bytes: Any


@inlined
def hashed(digest, byte):
    """Return a hash with one more byte in it (FNV-1a)."""
    return (digest ^ np.uint64(byte)) * _PRIME


@inlined
def slot_of(digest, slot_count):
    """Return where a name of this hash is looked for first."""
    return np.int64((digest ^ (digest >> np.uint64(29))) & np.uint64(slot_count - 1))


@njit(nogil=True, cache=True)
def put_names(starts, content, slots):
    """Write the number of each name into its slot."""
    for name in range(starts.size - 1):
        digest = _BASIS
        for at in range(starts[name], starts[name + 1]):
            digest = hashed(digest, content[at])
        slot = slot_of(digest, slots.size)
        while slots[slot] >= 0:
            slot = (slot + 1) & (slots.size - 1)
        slots[slot] = name


@inlined
def after_space(data, at):
    """Return where the next thing begins."""
    while at < data.size and (data[at] == 32 or data[at] == 10 or data[at] == 13 or data[at] == 9):
        at += 1
    return at


@inlined
def is_hexadecimal(byte):
    """Is this one of 0-9, a-f, A-F?"""
    return 48 <= byte <= 57 or 65 <= byte <= 70 or 97 <= byte <= 102


@inlined
def end_of_text(data, at):
    """Return where a text ends whose content begins here, and whether it has escapes; -1 if something is wrong."""
    has_escapes = False
    while at < data.size:
        byte = data[at]
        if byte == 34:
            return at, has_escapes
        if byte < 32:
            break
        if byte == 92:
            has_escapes = True
            at += 1
            if at >= data.size:
                break
            escape = data[at]
            if escape == 117:  # \uXXXX
                if at + 4 >= data.size:
                    break
                for place in range(at + 1, at + 5):
                    if not is_hexadecimal(data[place]):
                        return -1, True
                at += 4
            elif not (
                escape == 34 or escape == 92 or escape == 47 or escape == 98
                or escape == 102 or escape == 110 or escape == 114 or escape == 116
            ):  # fmt: skip
                break
        at += 1
    return -1, has_escapes


@inlined
def number_at(data, at):
    """Read a number: return its end (-1 if it is none), whether it is an integer, whether it is exact, and its value.

    The value is an integer, or a double; one that is not exact has to be read with more care.
    """
    first = at
    is_negative = data[at] == 45
    if is_negative:
        at += 1
    digits, mantissa, exponent = 0, np.int64(0), 0
    if at >= data.size or not 48 <= data[at] <= 57:
        return -1, False, False, np.int64(0), 0.0
    if data[at] == 48:
        at += 1
    else:
        while at < data.size and 48 <= data[at] <= 57:
            if digits < _MOST_DIGITS:
                mantissa = mantissa * 10 + np.int64(data[at] - 48)
            digits += 1
            at += 1
    is_integer = True
    if at < data.size and data[at] == 46:
        is_integer = False
        at += 1
        begin = at
        while at < data.size and 48 <= data[at] <= 57:
            if digits < _MOST_DIGITS:
                mantissa = mantissa * 10 + np.int64(data[at] - 48)
                exponent -= 1
            if digits > 0 or data[at] != 48:
                digits += 1
            at += 1
        if at == begin:
            return -1, False, False, np.int64(0), 0.0
    if at < data.size and (data[at] == 101 or data[at] == 69):
        is_integer = False
        at += 1
        is_small = at < data.size and data[at] == 45
        if at < data.size and (data[at] == 45 or data[at] == 43):
            at += 1
        begin, power = at, 0
        while at < data.size and 48 <= data[at] <= 57:
            if power < 10_000:
                power = power * 10 + np.int64(data[at] - 48)
            at += 1
        if at == begin:
            return -1, False, False, np.int64(0), 0.0
        exponent += -power if is_small else power
    if at - first > _LONGEST_NUMBER:
        return -1, False, False, np.int64(0), 0.0
    if is_integer:
        value = -mantissa if is_negative else mantissa
        return at, True, digits <= _MOST_DIGITS, value, np.float64(value)
    is_exact = digits <= _MOST_DIGITS and mantissa <= _EXACT and -_LARGEST_POWER <= exponent <= _LARGEST_POWER
    double = np.float64(mantissa)
    if is_exact:
        double = double / _POWERS[-exponent] if exponent < 0 else double * _POWERS[exponent]
    return at, False, is_exact, np.int64(0), -double if is_negative else double


@inlined
def word_at(data, at):
    """Return the end of one of the words of JSON (-1 if it is none), and which it is: null 0, false 1, true 2."""
    if at + 4 <= data.size and data[at] == 110 and data[at + 1] == 117 and data[at + 2] == 108 and data[at + 3] == 108:
        return at + 4, 0
    if at + 4 <= data.size and data[at] == 116 and data[at + 1] == 114 and data[at + 2] == 117 and data[at + 3] == 101:
        return at + 4, 2
    if (
        at + 5 <= data.size and data[at] == 102 and data[at + 1] == 97
        and data[at + 2] == 108 and data[at + 3] == 115 and data[at + 4] == 101
    ):  # fmt: skip
        return at + 5, 1
    return -1, 0


@inlined
def prefix_at(data, begin, end):
    """Return the first eight bytes of a text as a number that is in the order of texts."""
    prefix = np.uint64(0)
    for place in range(8):
        prefix <<= np.uint64(8)
        if begin + place < end:
            prefix |= np.uint64(data[begin + place])
    return prefix


@njit(nogil=True, cache=True)
def put_prefixes(starts, content, prefixes):
    """Write the prefix of each text."""
    for text in range(starts.size - 1):
        prefixes[text] = prefix_at(content, starts[text], starts[text + 1])


@inlined
def order_of(data, begin, end, content, start, stop):
    """Return -1, 0 or 1: is a text before another, are they equal, or is it behind?"""
    shared = min(end - begin, stop - start)
    for place in range(shared):
        one, other = data[begin + place], content[start + place]
        if one != other:
            return -1 if one < other else 1
    return 0 if end - begin == stop - start else -1 if end - begin < stop - start else 1


@inlined
def code_of_text(data, begin, end, first, last, operands):
    """Return the code of a text: one plus how many operands are smaller, and how many are not greater."""
    prefix = prefix_at(data, begin, end)
    low, high = first, last
    while low < high:
        middle = (low + high) >> 1
        other = operands.prefixes[middle]
        if other != prefix:
            order = 1 if other < prefix else -1
        else:
            order = order_of(data, begin, end, operands.bytes, operands.starts[middle], operands.starts[middle + 1])
        if order == 0:
            return 2 * (middle - first) + 2
        if order > 0:
            low = middle + 1
        else:
            high = middle
    return 2 * (low - first) + 1


@inlined
def code_of_double(value, first, last, doubles):
    """Return the code of a double that is a number."""
    low, high = first, last
    while low < high:
        middle = (low + high) >> 1
        if doubles[middle] < value:
            low = middle + 1
        else:
            high = middle
    after = low
    while after < last and doubles[after] == value:
        after += 1
    return 1 + (low - first) + (after - first)


@inlined
def code_of_integer(value, first, last, integers):
    """Return the code of an integer."""
    low, high = first, last
    while low < high:
        middle = (low + high) >> 1
        if integers[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return 1 + (low - first)


@inlined
def write_number(is_integer, integer, double, first, last, operands, codes):
    """Write the codes of a number on the axes of a name."""
    axes = operands.axes
    for axis in range(first, last):
        kind, code = axes[axis, KIND], np.int64(0)
        if kind == INTEGERS_AND_DOUBLES and is_integer:
            width = axes[axis, WIDTH]
            if width > 0:
                place = min(max(integer - axes[axis, BASE], np.int64(0)), width - 1)
                code = np.int64(operands.tables[axes[axis, TABLE] + place])
            else:
                code = code_of_integer(integer, axes[axis, FIRST], axes[axis, LAST], operands.integers)
        elif kind in (INTEGERS_AND_DOUBLES, DOUBLES):
            code = code_of_double(double, axes[axis, FIRST_DOUBLE], axes[axis, LAST_DOUBLE], operands.doubles)
        codes[axes[axis, POSITION]] = np.uint32(code)


@inlined
def write_text(data, begin, end, first, last, operands, codes):
    """Write the codes of a text on the axes of a name."""
    axes = operands.axes
    for axis in range(first, last):
        code = np.int64(0)
        if axes[axis, KIND] == TEXTS:
            code = code_of_text(data, begin, end, axes[axis, FIRST], axes[axis, LAST], operands)
        codes[axes[axis, POSITION]] = np.uint32(code)


@inlined
def write_word(word, first, last, operands, codes):
    """Write the codes of null, false, true, or of a value that is no operand of any, on the axes of a name."""
    axes = operands.axes
    for axis in range(first, last):
        code = np.int64(0)
        if axes[axis, KIND] == BOOLEANS and word > 0:
            code = axes[axis, FIRST] if word == 1 else axes[axis, LAST]
        codes[axes[axis, POSITION]] = np.uint32(code)


@njit(nogil=True, cache=True)
def read_event(data, columns, spans, codes):
    """Read the JSON of an event.

    data     uint8[:]          its bytes, valid UTF-8
    columns  tuple             `MentionedNames` and `AxisOperands`, side by side
    spans    int64[names + 1, 3]  written: where the value of each name stands (the columns above), 0 being no end; in
                               the last row, whether the codes of any are left to others
    codes    uint32[:]         written: the codes of the axes of its names; 0 at first

    Returns a hash of the names and kinds of its values, those in records included; 0 if it was not read.
    """
    # Somebody else holds all of it for as long as this runs: to count references would take most of the time.
    names, operands = borrowed(MentionedNames(*columns[:5])), borrowed(AxisOperands(*columns[5:]))
    data, spans, codes = borrowed(data), borrowed(spans), borrowed(codes)
    name_count = names.starts.size - 1
    left, before = name_count, name_count  # the row of how many are left; the name that was met last
    at = after_space(data, 0)
    if at >= data.size or data[at] != 123:
        return np.uint64(0)
    at += 1
    shape = _BASIS
    depth, objects = 1, np.uint64(1)  # a bit for each that is open, the innermost last: is it an object?
    may_close, name, begin = True, -1, 0
    while True:
        at = after_space(data, at)
        if at >= data.size:
            return np.uint64(0)
        byte = data[at]
        is_object = objects & np.uint64(1) == np.uint64(1)
        kind = 0
        if may_close and byte == (125 if is_object else 93):
            kind = 1  # an empty one, which ends like any other
        else:
            if is_object:
                if byte != 34:
                    return np.uint64(0)
                start = at + 1
                is_known = False
                if depth == 1:  # mostly names come in the same order again
                    name = names.behind[before]
                    if name >= 0:
                        stop = start + names.starts[name + 1] - names.starts[name]
                        is_known = (
                            stop < data.size
                            and data[stop] == 34
                            and order_of(data, start, stop, names.bytes, names.starts[name], names.starts[name + 1])
                            == 0
                        )
                if is_known:
                    at = stop
                    shape = hashed(shape, name + 256)
                else:
                    at, has_escapes = end_of_text(data, start)
                    if at < 0 or (has_escapes and depth == 1):
                        return np.uint64(0)
                    digest = _BASIS
                    for place in range(start, at):
                        digest = hashed(digest, data[place])
                    name = -1 if depth == 1 else name
                    if depth == 1:
                        slot = slot_of(digest, names.slots.size)
                        while names.slots[slot] >= 0:
                            other = names.slots[slot]
                            if (
                                order_of(data, start, at, names.bytes, names.starts[other], names.starts[other + 1])
                                == 0
                            ):
                                name = other
                                break
                            slot = (slot + 1) & (names.slots.size - 1)
                    if depth == 1 and name >= 0:
                        names.behind[before] = name
                        shape = hashed(shape, name + 256)
                    else:
                        shape = hashed(shape, 34) ^ digest
                if depth == 1 and name >= 0:
                    before = name
                at = after_space(data, at + 1)
                if at >= data.size or data[at] != 58:
                    return np.uint64(0)
                at = after_space(data, at + 1)
                if at >= data.size:
                    return np.uint64(0)
                byte = data[at]
            # A value begins here.
            is_asked = depth == 1 and name >= 0
            if is_asked:
                begin = at
                spans[name, IS_LEFT] = 0
            first_axis = names.axes[name] if is_asked else 0
            last_axis = names.axes[name + 1] if is_asked else 0
            if byte == 123 or byte == 91:
                if depth >= DEEPEST:
                    return np.uint64(0)
                write_word(0, first_axis, last_axis, operands, codes)
                shape = hashed(shape, byte)
                depth += 1
                objects = (objects << np.uint64(1)) | np.uint64(byte == 123)
                may_close = True
                at += 1
                continue
            if byte == 34:
                end, has_escapes = end_of_text(data, at + 1)
                if end < 0:
                    return np.uint64(0)
                if is_asked and has_escapes:
                    spans[name, IS_LEFT] = 1
                    spans[left, IS_LEFT] = 1
                elif is_asked:
                    write_text(data, at + 1, end, first_axis, last_axis, operands, codes)
                at = end + 1
                shape = hashed(shape, 1)
            elif byte == 45 or 48 <= byte <= 57:
                at, is_integer, is_exact, integer, double = number_at(data, at)
                if at < 0:
                    return np.uint64(0)
                if is_asked and not is_exact:
                    spans[name, IS_LEFT] = 1
                    spans[left, IS_LEFT] = 1
                elif is_asked:
                    write_number(is_integer, integer, double, first_axis, last_axis, operands, codes)
                shape = hashed(shape, 2 if is_integer else 3)
            else:
                at, word = word_at(data, at)
                if at < 0:
                    return np.uint64(0)
                write_word(word, first_axis, last_axis, operands, codes)
                shape = hashed(shape, 4 if word > 0 else 5)
        # A value ends here, or what is open does.
        while True:
            if kind == 0:
                if depth == 1 and name >= 0:
                    spans[name, BEGIN], spans[name, END] = begin, at
                at = after_space(data, at)
                if at >= data.size:
                    return np.uint64(0)
                if data[at] == 44:
                    at += 1
                    may_close = False
                    break
                if data[at] != (125 if objects & np.uint64(1) == np.uint64(1) else 93):
                    return np.uint64(0)
            kind = 0
            at += 1
            depth -= 1
            objects >>= np.uint64(1)
            shape = hashed(shape, 125)
            if depth == 0:
                return shape | np.uint64(1) if after_space(data, at) == data.size else np.uint64(0)


@njit(nogil=True, cache=True)
def read_events(data, starts, ends, columns, spans, codes, shapes):
    """Read the JSON of many events, as `read_event` does of one.

    data          uint8[:]                  the bytes of all, valid UTF-8
    starts, ends  int64[events]             where each begins and ends
    spans         int64[events, names + 1, 3]    written; places are counted from where the event begins
    codes         uint32[events, axes]      written; 0 at first
    shapes        uint64[events]            written: 0 where one was not read
    """
    for event in range(starts.size):
        shapes[event] = read_event(data[starts[event] : ends[event]], columns, spans[event], codes[event])
