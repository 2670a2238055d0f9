"""The compiled loops that turn values and operands into codes: arrays in, arrays out."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def codes_by_table(values, base, table, codes):
    """Look codes up: `table[value - base]`, its first and last entry standing for everything below and above."""
    top = table.size - 1
    highest = base + top  # compared with the value itself: its distance from the base may not fit into 64 bits
    for index in range(values.size):
        value = values[index]
        if value < base:
            codes[index] = table[0]
        elif value >= highest:
            codes[index] = table[top]
        else:
            codes[index] = table[value - base]


@njit(nogil=True, cache=True)
def codes_of_doubles(values, operands, nan_code, codes):
    """Rank doubles among sorted operands: one plus twice the number of smaller ones, plus one if one is equal.

    operands  float64[:]  as many as a power of two that is greater than their number; the rest are NaNs
    nan_code  int         the code of NaN, which is greater than every other number
    """
    half = np.uintp(operands.size) >> np.uintp(1)
    for index in range(values.size):
        value = values[index]
        place, step = np.uintp(0), half
        while step > 0:  # without a branch, which nobody could foresee
            # Halving in steps of powers of two. The operands are filled up with NaNs, which are less than no value, so
            # no step leads beyond them.
            place += step * np.uintp(operands[place + step - np.uintp(1)] < value)
            step >>= np.uintp(1)
        if value != value:
            codes[index] = nan_code
        else:
            codes[index] = np.uint32(1) + np.uint32(2) * np.uint32(place) + np.uint32(operands[place] == value)


@njit(nogil=True, cache=True)
def ranks_of_texts(data, offsets, operand_data, operand_offsets, ranks):
    """Rank UTF-8 texts among sorted operands: twice the number of smaller ones, plus one if one is equal."""
    for index in range(ranks.size):
        begin, end = offsets[index], offsets[index + 1]
        # UTF-8 is ordered as its characters are, so bytes are compared and nothing is decoded.
        low, high = 0, operand_offsets.size - 1
        is_equal = 0
        while low < high:
            middle = (low + high) >> 1
            order = order_of_texts(data, begin, end, operand_data, operand_offsets[middle], operand_offsets[middle + 1])
            if order == 0:
                low = middle
                is_equal = 1
                break
            if order > 0:
                low = middle + 1
            else:
                high = middle
        ranks[index] = 2 * low + is_equal


@njit(nogil=True, cache=True)
def order_of_texts(one, one_begin, one_end, two, two_begin, two_end):
    """Compare two slices of bytes: negative, zero or positive."""
    length = min(one_end - one_begin, two_end - two_begin)
    for index in range(length):
        difference = np.int64(one[one_begin + index]) - np.int64(two[two_begin + index])
        if difference != 0:
            return difference
    return (one_end - one_begin) - (two_end - two_begin)


@njit(nogil=True, cache=True)
def sort_sets(starts, members, sorted_starts, sorted_members):
    """Sort the members of each set, and keep each once; returns how many were written."""
    written = 0
    for number in range(starts.size - 1):
        sorted_starts[number] = written
        for index in range(starts[number], starts[number + 1]):
            member = members[index]
            # Insertion sort, which drops what it meets again: most sets are short.
            place = written
            while place > sorted_starts[number] and sorted_members[place - 1] > member:
                place -= 1
            if place > sorted_starts[number] and sorted_members[place - 1] == member:
                continue
            for later in range(written, place, -1):
                sorted_members[later] = sorted_members[later - 1]
            sorted_members[place] = member
            written += 1
    sorted_starts[starts.size - 1] = written
    return written


@njit(nogil=True, cache=True)
def rename(handles, ids):
    """Replace each handle by its id."""
    for index in range(handles.size):
        handles[index] = ids[handles[index]]


@njit(nogil=True, cache=True)
def tally_codes(codes, starts, counts):
    """Count codes: add one to `counts[starts[axis] + code]` for every axis and event of `codes`."""
    for axis in range(starts.size - 1):
        start = starts[axis]
        for event in range(codes.shape[1]):
            counts[start + codes[axis, event]] += 1
