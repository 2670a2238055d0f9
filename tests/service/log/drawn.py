"""Blocks that hypothesis draws."""

from __future__ import annotations

from hypothesis import strategies as st

from tamis.service.log.base import Block

CONTENTS = st.lists(
    st.tuples(
        st.integers(0, 3),  # how much later than the block before
        st.lists(st.tuples(st.binary(max_size=12) | st.just(b"x" * 5000), st.integers(0, 127)), min_size=1, max_size=5),
    ),
    max_size=4,
)
"""The blocks of one `append`, without their positions and times."""


def blocks_behind(contents, position, time_us):
    """Return drawn blocks in the place behind a position, not before a time."""
    blocks = []
    for later_us, events in contents:
        time_us += later_us
        blocks.append(
            Block(position + 1, time_us, tuple(body for body, _ in events), bytes(flag for _, flag in events))
        )
        position = blocks[-1].last
    return blocks


def block(first, count=1, time_us=0, size=20):
    """Return a block whose events say their positions."""
    events = tuple(f"{first + index}".encode().ljust(size, b".") for index in range(count))
    return Block(first, time_us, events, bytes(count))
