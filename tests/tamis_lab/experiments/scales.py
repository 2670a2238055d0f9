"""What the labs have in common: a scale smaller than any that people would use, and what every result must have."""

import json

from tamis_lab.experiments.base import Picture, Result, Scale, Verdict
from tamis_lab.experiments.plots import drawn

TINY = Scale(
    name="tiny",
    auction_counts=(60, 120),
    expression_counts=(60, 120),
    lengths=(4, 6),
    setting_count=80,
    memory_count=64,
    brute_counts=(10, 20),
    measured_s=0.002,
    most_events=8,
    passes=1,
)


def quiet(doing: str) -> None:
    """Listen to nobody."""


def assert_told(results: dict[str, Result], without_claims: tuple[str, ...] = ()) -> None:
    """Every experiment has measured something, drawn it, and judged what was published."""
    for key, result in results.items():
        assert result.setup and result.rows and result.plots, key
        assert bool(result.claims) is (key not in without_claims), key
        for claim in result.claims:
            assert isinstance(claim.verdict, Verdict)
            assert claim.statement and claim.published and claim.ours and claim.where
        json.dumps(result.rows, allow_nan=False)
        for plot in result.plots:
            assert isinstance(plot, Picture) or drawn(plot).startswith("<svg")


def assert_agreed(result: Result, statements: tuple[str, ...]) -> None:
    """What is counted comes out as published."""
    for words in statements:
        claims = [claim for claim in result.claims if words in claim.statement]
        assert claims, words
        assert {claim.verdict for claim in claims} == {Verdict.AGREES}, claims
