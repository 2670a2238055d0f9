"""The published algorithms, too, see the subscriptions of one moment, whatever is registered and removed meanwhile."""

from __future__ import annotations

import pytest

from tamis.matching import Matcher
from tamis_lab.matching import roll, snapshots
from tests.matching.histories import CONDITIONS, EVENTS, History


@pytest.mark.parametrize("algorithm", ["counting", "cluster", "boolean", "gryphon"])
def test_every_match_sees_the_set_of_one_moment(algorithm, monkeypatch, tmp_path):
    monkeypatch.setattr(roll, "_LEFT_AS_THEY_ARE", 6)  # laid out every few steps
    monkeypatch.setattr(snapshots, "BLOCK", 64)
    warm = Matcher(algorithm)
    warm.add_many(dict(enumerate(CONDITIONS)))
    warm.match(EVENTS[0])
    warm.match_batch(EVENTS * 5)  # so that nobody waits for a compiler
    matcher = Matcher(algorithm)
    history = History(matcher, tmp_path)
    looks = [history.one_event, history.one_event, history.a_batch, history.a_file, history.a_sample]
    seen = history.run(looks, 250)
    assert len(seen) > 50
    history.check(seen)
