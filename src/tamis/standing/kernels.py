"""The compiled loops: how sequences go on with the matches of a batch, and which changes become true and false."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.compilation import kernel

Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int8]

DONE, NO_ROOM, UNDECIDED = 0, 1, 2
"""Why `turn` ended."""
ASKED, IF_KNOWN = 0, 1
"""How an exit condition is decided: elsewhere; or it is true where the values that it asks for are known. Else it is a
comparison, whose operator is LESS to NOT_EQUAL."""
LESS, LESS_OR_EQUAL, EQUAL, GREATER_OR_EQUAL, GREATER, NOT_EQUAL = 2, 3, 4, 5, 6, 7
KNOWN, UNKNOWN, UNUSUAL = 0, 1, 2
"""What an event says of the values that an exit condition asks for."""


# -- Sequences


@kernel
def first_place(keys: Numbers, number: int, group: int) -> int:
    """Return where a state is in a table with open addressing if nobody else is there."""
    mixed = (number * 0x9E3779B97F4A7C1 + group * 0x2545F4914F6CDD1D) & 0x7FFFFFFFFFFFFFFF
    return (mixed ^ (mixed >> 29)) & (len(keys) - 1)


@kernel
def place_of(keys: Numbers, number: int, group: int) -> int:
    """Return where a state is in a table with open addressing, or where it would be. The table is never full.

    keys    int64[:, 2]  the number of the sequence, -1 where nothing is, and the group
    """
    mask = len(keys) - 1
    place = first_place(keys, number, group)
    while keys[place, 0] != -1 and (keys[place, 0] != number or keys[place, 1] != group):
        place = (place + 1) & mask
    return place


def placed(number: int, step: int, turn: int, length: int, per: int) -> int:
    """Return what there is to know of a condition of a sequence as one integer, which is one access to memory.

    number    whose it is
    step      which of its steps, of how many (`length`)
    turn      when the step takes an event in its turn
    per       the number of its PER
    """
    return turn | step << 4 | length << 8 | per << 12 | number << 28


@kernel
def survey(
    rows: Numbers,
    packs: Numbers,
    is_first: npt.NDArray[np.bool_],
    is_kept: npt.NDArray[np.bool_],
    counts: npt.NDArray[np.int64],
) -> None:
    """Find which rows are first events, which are kept, and how many matches are of first and last steps.

    packs                by match: what `placed` returns of its handle
    is_first, is_kept    by row; written
    counts               by length: all matches, those of first steps, and those of last ones; written
    """
    for index in range(len(rows)):
        packed = packs[index]
        step, length = (packed >> 4) & 15, (packed >> 8) & 15
        counts[length, 0] += 1
        if step == 0:
            is_first[rows[index]] = True
            counts[length, 1] += 1
        if step == length - 1:
            counts[length, 2] += 1
        else:
            is_kept[rows[index]] = True


class StepMatches(NamedTuple):
    """The matches of a batch, of sequences of one length."""

    bounds: Numbers
    """The matches of row r are packs[bounds[r]:bounds[r + 1]], in any order."""
    packs: Numbers
    """By match: what `placed` returns of its handle."""
    groups: npt.NDArray[np.int64]
    """By PER and row: the code of the group; -1 where nobody has a state."""
    times: Floats
    """By row."""
    order: int
    """The order of an event is this and its row."""


class StateTable(NamedTuple):
    """The states of sequences of one length, as a table with open addressing (`place_of`)."""

    keys: Numbers
    """int64[:, 2]: the number of the sequence, -1 where nothing is, and the group."""
    firsts: Floats
    """By place and step: when the first event came of the run that ends at the step."""
    orders: npt.NDArray[np.int64]
    """By place, step and place in the run: the orders of its events."""


@kernel
def follow(
    matches: StepMatches,
    within: Floats,
    has_states: npt.NDArray[np.bool_],
    states: StateTable,
    told: npt.NDArray[np.int64],
) -> tuple[int, int, int]:
    """Let sequences of one length take the matches of a batch; return how many states are new and how many runs end.

    The third number means nothing: it keeps the compiler from leaving out what is only looked at.

    within        by number: the most seconds from the first event to the last
    has_states    by number: may the sequence have a state at all? A small table, looked at first; updated
    states        updated
    told          written: row, number, and the orders of the events of each run that ends
    """
    bounds, packs, groups, times, order = matches
    keys, firsts, orders = states
    length = firsts.shape[1] + 1
    created = count = 0
    looked_at = 0
    for row in range(len(bounds) - 1):
        now = times[row]
        # Most states are in no cache. Asked for without a decision in between, they come many at a time.
        for index in range(bounds[row], bounds[row + 1]):
            packed = packs[index]
            looked_at ^= keys[first_place(keys, packed >> 28, groups[(packed >> 12) & 0xFFFF, row]), 0]
        for turn in range(length):
            for index in range(bounds[row], bounds[row + 1]):
                packed = packs[index]
                if packed & 15 != turn:
                    continue
                number, step = packed >> 28, (packed >> 4) & 15
                if step > 0 and not has_states[number]:
                    continue
                group = groups[(packed >> 12) & 0xFFFF, row]
                if group < 0:
                    continue
                place = place_of(keys, number, group)
                if step == 0:
                    if keys[place, 0] == -1:
                        keys[place, 0], keys[place, 1] = number, group
                        firsts[place, :] = -np.inf
                        has_states[number] = True
                        created += 1
                    firsts[place, 0] = now
                    orders[place, 0, 0] = order + row
                    continue
                if keys[place, 0] == -1 or now > firsts[place, step - 1] + within[number]:
                    continue
                if step < length - 1:
                    firsts[place, step] = firsts[place, step - 1]
                    orders[place, step, :step] = orders[place, step - 1, :step]
                    orders[place, step, step] = order + row
                else:
                    told[count, 0], told[count, 1] = row, number
                    told[count, 2:] = orders[place, step - 1]
                    count += 1
    return created, count, looked_at


@kernel
def rehash(
    keys: Numbers,
    firsts: Floats,
    orders: npt.NDArray[np.int64],
    is_kept: npt.NDArray[np.bool_],
    new_keys: Numbers,
    new_firsts: Floats,
    new_orders: npt.NDArray[np.int64],
) -> None:
    """Write the states that are kept into another table, which is empty."""
    for old in range(len(keys)):
        if is_kept[old]:
            place = place_of(new_keys, keys[old, 0], keys[old, 1])
            new_keys[place] = keys[old]
            new_firsts[place] = firsts[old]
            new_orders[place] = orders[old]


# -- Changes


@kernel
def leaves(way: int, knowledge: int, value: float, limit: float) -> bool:
    """Is an exit condition true that is decided here? NaN is greater than every number, and equal to itself."""
    if knowledge == UNKNOWN:
        return False
    if way == IF_KNOWN:
        return True
    order = 0
    if value != value:
        order = 1
    elif value < limit:
        order = -1
    elif value > limit:
        order = 1
    if way == LESS:
        return order < 0
    if way == LESS_OR_EQUAL:
        return order <= 0
    if way == EQUAL:
        return order == 0
    if way == GREATER_OR_EQUAL:
        return order >= 0
    if way == GREATER:
        return order > 0
    return order != 0


class ChangeMatches(NamedTuple):
    """The matches of a batch, of changes of one family."""

    bounds: Numbers
    """The matches of row r are handles[bounds[r]:bounds[r + 1]], in any order."""
    handles: Numbers
    groups: Numbers
    """By row: the code of its group; -1 where nobody is true in it, and nobody becomes so."""
    order: int
    """The order of an event is this and its row."""


class ExitTable(NamedTuple):
    """The changes by number: how it is decided whether one becomes false."""

    ways: Codes
    """ASKED, IF_KNOWN, or a comparison."""
    profiles: npt.NDArray[np.int32]
    """Of which values."""
    limits: Floats
    """With what they are compared."""
    is_both_ways: npt.NDArray[np.bool_]
    """Is it told, too, that it becomes false?"""
    verdicts: Numbers
    """For which event it was decided elsewhere, and how: twice the order, and 1 if it becomes false."""
    marks: Numbers
    """What `turn` has noted of it, which means something beside the stamp of a call."""


class ExitValues(NamedTuple):
    """What the events of a batch say of the values that exits ask for, by profile and row."""

    states: npt.NDArray[np.int8]
    """KNOWN, UNKNOWN or UNUSUAL."""
    values: npt.NDArray[np.float64]
    """The number, where it is one."""


class HeldTable(NamedTuple):
    """Who is true, group by group."""

    spans: npt.NDArray[np.int64]
    """By group: where its list begins, how long it is, how much room it has, since when."""
    numbers: Numbers


class TurnOutcome(NamedTuple):
    """What came of `turn`; all of it is written."""

    tally: Numbers
    """The row where it ended, how many enter and leave, what of the lists is used, how many are undecided or how much
    room is wanted, and how many more are true than before."""
    entering: npt.NDArray[np.int64]
    """Row and number."""
    leaving: npt.NDArray[np.int64]
    """Row and number."""
    missing: Numbers
    """Who is missing, and undecided."""


@kernel
def turn(
    first_row: int,
    last_row: int,
    matches: ChangeMatches,
    stamp: int,
    exits: ExitTable,
    known: ExitValues,
    lists: HeldTable,
    turned: TurnOutcome,
) -> int:
    """Let changes of one family take the matches of a batch, from a row to another; return why it ended.

    stamp    what makes calls different: marks beside it are of this one
    lists    updated
    """
    bounds, handles, groups, order = matches
    ways, profiles, limits, is_both_ways, verdicts, marks = exits
    knowledge, values = known
    spans, held = lists
    tally, entering, leaving, missing = turned
    used = tally[3]
    enter_count, leave_count = tally[1], tally[2]
    status = DONE
    row = first_row
    while row < last_row:
        group = groups[row]
        if group < 0:
            row += 1
            continue
        stamp += 2
        begin, count = spans[group, 0], spans[group, 1]
        for place in range(begin, begin + count):
            marks[held[place]] = stamp
        new = 0
        for index in range(bounds[row], bounds[row + 1]):
            number = handles[index]
            if marks[number] == stamp:
                marks[number] = stamp + 1
            else:
                new += 1
        asked = 0
        gone = 0
        if count + new > bounds[row + 1] - bounds[row]:  # somebody is missing
            for place in range(begin, begin + count):
                number = held[place]
                if marks[number] != stamp:
                    continue
                way, profile = ways[number], profiles[number]
                if way != ASKED and knowledge[profile, row] != UNUSUAL:
                    does_leave = leaves(way, knowledge[profile, row], values[profile, row], limits[number])
                elif verdicts[number] >> 1 == order + row:
                    does_leave = verdicts[number] & 1 == 1
                else:
                    missing[asked] = number
                    asked += 1
                    continue
                if does_leave:
                    marks[number] = -stamp
                    gone += 1
        if asked:
            tally[4] = asked
            status = UNDECIDED
            break
        left = count - gone
        if left + new > spans[group, 2]:
            room = max(4, 2 * (left + new))
            if used + room > len(held):
                tally[4] = room
                status = NO_ROOM
                break
            held[used : used + count] = held[begin : begin + count]
            spans[group, 0], spans[group, 2] = used, room
            begin = used
            used += room
        if gone:
            kept = begin
            for place in range(begin, begin + count):
                number = held[place]
                if marks[number] != -stamp:
                    held[kept] = number
                    kept += 1
                elif is_both_ways[number]:
                    leaving[leave_count, 0], leaving[leave_count, 1] = row, number
                    leave_count += 1
        if new:
            kept = begin + left
            for index in range(bounds[row], bounds[row + 1]):
                number = handles[index]
                if marks[number] != stamp + 1:
                    held[kept] = number
                    kept += 1
                    entering[enter_count, 0], entering[enter_count, 1] = row, number
                    enter_count += 1
        if count == 0 and new:
            spans[group, 3] = order + row
        spans[group, 1] = left + new
        tally[5] += new - gone
        row += 1
    tally[0], tally[1], tally[2], tally[3] = row, enter_count, leave_count, used
    return status


@kernel
def compact(spans: npt.NDArray[np.int64], held: Numbers, target: Numbers) -> int:
    """Write the lists of all groups one behind the other, with some room each; return how much is used."""
    used = 0
    for group in range(len(spans)):
        begin, count = spans[group, 0], spans[group, 1]
        room = 0 if count == 0 else max(4, count + count // 2)
        target[used : used + count] = held[begin : begin + count]
        spans[group, 0], spans[group, 2] = used, room
        used += room
    return used


@kernel
def drop(spans: npt.NDArray[np.int64], held: Numbers, number: int) -> int:
    """Take a change out of the lists of all groups; return of how many."""
    dropped = 0
    for group in range(len(spans)):
        begin, count = spans[group, 0], spans[group, 1]
        for place in range(begin, begin + count):
            if held[place] == number:
                held[place] = held[begin + count - 1]
                spans[group, 1] = count - 1
                dropped += 1
                break
    return dropped


@kernel
def total(spans: npt.NDArray[np.int64], groups: Numbers) -> int:
    """Return how long the lists of some groups are together; a group may be named often, and -1 is none.

    Each list that was counted has a negative length until all are.
    """
    count = 0
    for group in groups:
        if group >= 0 and spans[group, 1] > 0:
            count += spans[group, 1]
            spans[group, 1] = -spans[group, 1]
    for group in groups:
        if group >= 0 and spans[group, 1] < 0:
            spans[group, 1] = -spans[group, 1]
    return count
