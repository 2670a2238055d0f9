"""How does a long greeting arrive? A Hello put together from its parts.

Ten thousand filters in one message would keep both ends busy for seconds. So a long Hello comes in parts, between which
there may be anything else. Nothing of it counts before the last part has come; then all of it does, in one step.
What the neighbour says of filters in between is about the Hello under way, some of which it may take back or add to.
Parts that come twice are told apart by their numbers, filters by theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.routing.messages import Hello

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tamis.routing.messages import Entry, Key


class _Said:
    """Filters under numbers, some of which are taken back, perhaps before they come."""

    def __init__(self) -> None:
        self._entries: dict[Key, Entry] = {}
        self._gone: set[Key] = set()

    def change(self, entries: Iterable[Entry], keys: Iterable[Key]) -> None:
        for entry in entries:
            if entry.key not in self._gone:
                self._entries.setdefault(entry.key, entry)
        for key in keys:
            self._entries.pop(key, None)
            self._gone.add(key)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """In the order of their numbers, and then those that are known to be gone are not in it."""
        return tuple(sorted(self._entries.values(), key=lambda entry: entry.key))

    @property
    def highest(self) -> Key | None:
        return max((*self._entries, *self._gone), default=None)


class PartialHello:
    """A Hello of which parts have come.

    >>> import tamis
    >>> from tamis.routing import Entry
    >>> greeting = PartialHello()
    >>> one, two, three = (Entry(number, tamis.parse(f"x = {number}")) for number in range(3))
    >>> greeting.take(Hello((one,), more=True)), greeting.take(Hello((one,), more=True))
    (False, False)
    >>> greeting.change_filters((three,), (0,))
    >>> greeting.take(Hello((two,), part=1)), [entry.key for entry in greeting.entries]
    (True, [1, 2])
    """

    def __init__(self) -> None:
        self._next_part = 0
        self._filters, self._advertisements = _Said(), _Said()

    def take(self, hello: Hello) -> bool:
        """Take a part, if it is the next; return whether it was the last."""
        if hello.part != self._next_part:
            return False
        self._next_part += 1
        self._filters.change(hello.entries, ())
        self._advertisements.change(hello.advertisements, ())
        return not hello.more

    def change_filters(self, entries: Iterable[Entry], keys: Iterable[Key]) -> None:
        """Take note of filters that came, and of those that are gone."""
        self._filters.change(entries, keys)

    def change_advertisements(self, entries: Iterable[Entry], keys: Iterable[Key]) -> None:
        """The same for advertisements."""
        self._advertisements.change(entries, keys)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What the neighbour wants."""
        return self._filters.entries

    @property
    def advertisements(self) -> tuple[Entry, ...]:
        """What may come from it."""
        return self._advertisements.entries

    @property
    def highest(self) -> tuple[Key | None, Key | None]:
        """The highest numbers of filters and of advertisements, also of those that are gone."""
        return self._filters.highest, self._advertisements.highest


def in_parts(hello: Hello, most: int) -> Iterator[Hello]:
    """Yield a Hello in parts of so many filters and advertisements at most.

    >>> import tamis
    >>> from tamis.routing import Entry
    >>> whole = Hello([Entry(number, tamis.parse("x = 1")) for number in range(5)])
    >>> [(len(hello.entries), hello.part, hello.more) for hello in in_parts(whole, 2)]
    [(2, 0, True), (2, 1, True), (1, 2, False)]
    """
    items = [(True, entry) for entry in hello.advertisements] + [(False, entry) for entry in hello.entries]
    count = max(1, -(-len(items) // most))
    if count == 1:
        yield hello
        return
    for number in range(count):
        some = items[number * most : (number + 1) * most]
        yield Hello(
            tuple(entry for is_advertisement, entry in some if not is_advertisement),
            tuple(entry for is_advertisement, entry in some if is_advertisement),
            hello.schema,
            hello.lease_s,
            number,
            number < count - 1,
            hello.functions,
        )
