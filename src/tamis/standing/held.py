"""Who is true in which group? Lists of numbers, one behind the other in one array, each with some room to grow.

There may be millions of groups with a few numbers each, so a group is a row of integers and not an object of its own.
A list that outgrows its room moves to the end; when the array is full, all of them are moved together. A group
in which nobody is true is forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tamis.standing.kernels import compact, drop, total

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tamis.standing.groups import Group
    from tamis.standing.kernels import Numbers

_LEAST_ROOM = 64


class HeldLists:
    """The lists of one family.

    >>> lists = HeldLists()
    >>> lists.restore({("ann",): [3], ("bob",): [3]})
    >>> lists.restore({("ann",): [1]})
    >>> dict(lists.items()), lists.drop(3), dict(lists.items()), len(lists)
    ({('ann',): [1, 3], ('bob',): [3]}, 2, {('ann',): [1]}, 1)
    """

    def __init__(self) -> None:
        self._codes: dict[Group, int] = {}
        self._names: list[Group | None] = []
        self._free: list[int] = []
        self.spans = np.zeros((0, 4), np.int64)
        """By the code of a group: where its list begins, how long it is, how much room it has, and since when."""
        self.held = np.zeros(_LEAST_ROOM, np.int64)
        self.used = 0
        """So much of it is used, or was."""

    def __len__(self) -> int:
        return len(self._codes)

    def items(self) -> Iterator[tuple[Group, list[int]]]:
        """Yield every group, and who is true in it."""
        for group, code in self._codes.items():
            begin, count = self.spans[code, :2].tolist()
            yield group, sorted(self.held[begin : begin + count].tolist())

    def codes_of(self, groups: list[Group], bounds: Numbers) -> Numbers:
        """Return the codes of the groups of rows; -1 for one where nobody is true, and nobody of the row matches."""
        known = self._codes
        codes = [known.get(group, -1) for group in groups]
        if -1 in codes:
            has_matches = (np.diff(bounds) > 0).tolist()
            for row, code in enumerate(codes):
                if code < 0 and (has_matches[row] or groups[row] in known):
                    codes[row] = self._code(groups[row])
        return np.array(codes, np.int64)

    def _code(self, group: Group) -> int:
        code = self._codes.get(group)
        if code is None:
            if not self._free:
                size = max(16, len(self._names))
                self._free = list(range(len(self._names) + size - 1, len(self._names) - 1, -1))
                self._names += [None] * size
                self.spans = np.append(self.spans, np.zeros((size, 4), np.int64), axis=0)
            code = self._codes[group] = self._free.pop()
            self._names[code] = group
        return code

    def count_of(self, codes: Numbers) -> int:
        """Return how many are true in some groups, which may be there several times, or be -1."""
        return int(total(self.spans, codes))

    def free(self, codes: Numbers) -> None:
        """Forget those of some groups in which nobody is true any more."""
        touched = codes[codes >= 0]
        for code in set(touched[self.spans[touched, 1] == 0].tolist()):
            self._free_one(code)

    def _free_one(self, code: int) -> None:
        group = self._names[code]
        if group is not None:
            del self._codes[group]
            self._names[code] = None
            self._free.append(code)
            self.spans[code] = 0

    def make_room(self, wanted: int) -> None:
        """Have so much room at the end, by moving all lists together: what is left behind is free again."""
        needed = int((self.spans[:, 1] + self.spans[:, 1] // 2 + 4).sum()) + wanted
        target = np.empty(max(_LEAST_ROOM, 2 * needed), np.int64)
        self.used = compact(self.spans, self.held, target)
        self.held = target

    def drop(self, number: int) -> int:
        """Take a change out of all groups; return of how many."""
        dropped = drop(self.spans, self.held, number)
        if dropped:
            for code in [code for code in self._codes.values() if self.spans[code, 1] == 0]:
                self._free_one(code)
        return int(dropped)

    def forget_oldest(self) -> int:
        """Forget the group in which somebody has been true for longest; return how many were."""
        codes = np.fromiter(self._codes.values(), np.int64, len(self._codes))
        code = int(codes[np.argmin(self.spans[codes, 3])])
        count = int(self.spans[code, 1])
        self._free_one(code)
        return count

    def restore(self, lists: Mapping[Group, list[int]]) -> None:
        """Let changes that are true nowhere yet be true in some groups, beside those that are true there already."""
        for group, numbers in lists.items():
            code = self._code(group)
            begin, count = self.spans[code, :2].tolist()
            whole = sorted([*self.held[begin : begin + count].tolist(), *numbers])
            if self.used + len(whole) > len(self.held):
                self.make_room(len(whole))
            self.held[self.used : self.used + len(whole)] = whole
            self.spans[code] = self.used, len(whole), len(whole), 0
            self.used += len(whole)
