"""What the pipeline should find, by asking the reference meaning about every event and every subscription."""

from __future__ import annotations

import tamis


def pairs_of(events, subscriptions, key):
    """Return the pairs of an event's key and a subscription's id.

    events           a list of mappings
    subscriptions    a mapping from ids to texts
    """
    parsed = {each: tamis.parse(text) for each, text in subscriptions.items()}
    return {(event[key], each) for event in events for each, tree in parsed.items() if tamis.holds(tree, event)}


def collected(frame):
    """Return the rows of a DataFrame of pairs; a pair found twice is a failure."""
    rows = [tuple(row) for row in frame.collect()]
    assert len(set(rows)) == len(rows), "a pair was found twice"
    return set(rows)
