"""What is an experiment, and what does it come to?

An experiment asks one question that somebody has published an answer to. It runs at some *scale* and returns a
result: rows of measurements, plots of them, and *claims*. A claim puts a published direction or ratio beside ours,
with a verdict. Verdicts are computed, never written down; what is written down beforehand is only why one may be
turned around.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]
Tell: TypeAlias = Callable[[str], None]
"""Is told what is being done, step by step."""


class Judgement(StrEnum):
    """How a published result and ours relate."""

    AGREES = "agrees"
    """The same direction, and where a ratio was published, about the same ratio."""
    DIRECTION = "agrees in direction"
    """The same direction, but clearly more or less of it, or not everywhere."""
    SAME = "no difference"
    """A difference was published, and we find none worth the name."""
    DIFFERS = "differs"
    """Published as the same, and we find a difference; or as a figure, and ours is far from it."""
    TURNED = "turned around"
    """We find the opposite."""
    PREMISE = "premise does not hold"
    """It says how much more or less there is of something that we do not find at all."""
    UNMEASURED = "not measured"
    """Nothing that was measured can decide it."""

    @property
    def mark(self) -> str:
        """How it is drawn."""
        return _MARKS[self]

    @property
    def outcome(self) -> str:
        """Under which of the `OUTCOMES` it is counted."""
        return _OUTCOMES.get(self, "do not")


OUTCOMES = ("agree", "roughly", "do not", "not measured")
"""What becomes of published statements: only the first of these is agreement."""
_OUTCOMES = {Judgement.AGREES: "agree", Judgement.DIRECTION: "roughly", Judgement.UNMEASURED: "not measured"}
_MARKS = {
    Judgement.AGREES: "✓",
    Judgement.DIRECTION: "≈",
    Judgement.SAME: "=",
    Judgement.DIFFERS: "≠",
    Judgement.TURNED: "⇄",
    Judgement.PREMISE: "∅",
    Judgement.UNMEASURED: "?",
}


@dataclass(frozen=True, slots=True)
class Claim:
    """One published result beside ours."""

    statement: str
    published: str
    ours: str
    verdict: Judgement
    where: str
    """The section or figure that says so."""
    remark: str = ""
    """Why it may have come out otherwise."""
    key: str = ""
    """Which statement of the experiment it is (`statements`), and of what, if it was made of several things."""
    tolerance: str = ""
    """How far ours may be from what was published, to agree."""
    caveat: str = ""
    """What our figure depends on, whether it agrees or not."""
    figures: tuple[float, float] | None = None
    """The published figure and ours, where both are one number."""
    repeats: tuple[float, ...] = ()
    """Our figure in each of several runs with other seeds, ascending; empty after one run."""
    agreed_of: tuple[int, int] | None = None
    """In how many of how many runs it agreed; None after one run."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a plot. Dashed ones are what a formula says; one without a label belongs to the line before it."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    is_dashed: bool = False
    kin: str = ""
    """The algorithm that it is about, if the label does not say just that."""
    low: tuple[float, ...] = ()
    """The least y of several runs with other seeds, and `high` the greatest; `y` is then the median."""
    high: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines over one axis."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Curve, ...]
    is_log_x: bool = False
    is_log_y: bool = False
    x_names: tuple[str, ...] = ()
    """What stands on the horizontal axis at 1, 2, ..., if it is not a number."""


@dataclass(frozen=True, slots=True)
class Bars:
    """Shares of one whole, stacked, for each of some things."""

    title: str
    parts: tuple[str, ...]
    shares: dict[str, tuple[float, ...]]
    told: dict[str, str] = field(default_factory=dict)
    """What is written at the end of each bar."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What draws itself: a part of a page that needs nothing beside it."""

    title: str
    markup: str


@dataclass(frozen=True, slots=True)
class Result:
    """What an experiment came to."""

    setup: str
    claims: tuple[Claim, ...] = ()
    plots: tuple[Plot | Bars | Picture, ...] = ()
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class Scale:
    """How large the experiments are. Counts are of subscriptions, ascending; verdicts are found at the last of them."""

    name: str
    auction_counts: tuple[int, ...]
    expression_counts: tuple[int, ...]
    lengths: tuple[int, ...]
    """Predicates per expression (L)."""
    setting_count: int
    """Subscriptions for each setting of a knob."""
    memory_count: int
    """Subscriptions where only memory is looked at."""
    brute_counts: tuple[int, ...]
    measured_s: float
    """Processor time that a measurement of events should take."""
    most_events: int
    passes: int


SCALES = {
    scale.name: scale
    for scale in (
        Scale(
            name="quick",
            auction_counts=(150, 450),
            expression_counts=(150, 450),
            lengths=(6, 8),
            setting_count=200,
            memory_count=64,
            brute_counts=(40, 80),
            measured_s=0.01,
            most_events=24,
            passes=1,
        ),
        Scale(
            name="default",
            auction_counts=(5_000, 10_000, 20_000, 35_000, 50_000, 70_000, 100_000),
            expression_counts=(10_000, 30_000, 100_000),
            lengths=(6, 10, 14),
            setting_count=30_000,
            memory_count=1_500,
            brute_counts=(500, 1_000, 2_000),
            measured_s=0.3,
            most_events=512,
            passes=3,
        ),
        Scale(
            name="full",
            auction_counts=(12_500, 25_000, 50_000, 75_000, 100_000, 150_000, 200_000, 300_000, 400_000, 500_000),
            expression_counts=(100_000, 200_000, 500_000, 1_000_000),
            lengths=(6, 8, 10, 12, 14),
            setting_count=100_000,
            memory_count=10_000,
            brute_counts=(1_000, 2_000, 4_000),
            measured_s=0.5,
            most_events=512,
            passes=3,
        ),
    )
}
"""`quick` is a toy for tests, `default` takes up to half an hour, `full` has published sizes and takes hours."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A question, who asked it first, and how it is answered."""

    key: str
    question: str
    source: str
    run: Callable[[Scale, int, Tell], Result]
    """Takes the scale, a seed, and who is told of the progress."""
