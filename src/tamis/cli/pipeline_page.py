"""How is the result of the pipeline read?

As one HTML page without anything beside it: the figures first, then what people asked for, where the time went, and one
match explained. The plots are drawn here as SVG, which is little work and needs no library. Counts that differ by
orders of magnitude are drawn on a logarithmic scale, and say so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from math import log10
from typing import TYPE_CHECKING, Any

from tamis.language.explanation import MARKS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tamis.language import Explanation


@dataclass(frozen=True, slots=True)
class Busy:
    """The busiest of the subscriptions that differ in their constants only."""

    id: int
    condition: str
    matches: int
    alike: int = 1
    """How many subscriptions are of this kind."""
    matches_alike: int = 0
    """How many matches they have together."""


@dataclass(slots=True)
class Story:
    """What there is to tell of a run."""

    pairs: int
    matched_events: int
    matched_subscriptions: int
    busiest: list[Busy]
    matches_per_event: dict[int, int]
    """How many events have so many matches; those without any are not in it."""
    matches_per_subscription: dict[int, int]
    """How many subscriptions have so many."""
    categories: dict[str, int]
    folder: str
    events: int = 0
    subscriptions: int = 0
    seed: int = 0
    master: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    judged_pairs: int = 0
    wrong: int = 0
    explained_event: dict[str, Any] | None = None
    explained_subscription: int | None = None
    explanation: Explanation | None = None
    latencies_us: dict[str, float] = field(default_factory=dict)
    """p50 and p99 of single events in a matcher of this process."""
    surroundings: dict[str, str] = field(default_factory=dict)
    """When and where: date, machine, versions."""


_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #5b6672; --line: #dfe3e8; --bar: #00796b; --paper: #fff;
  --shade: #f6f8fa; --true: #00704f; --false: #b3261e; --unknown: #8a6d00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --dim: #9aa5b1; --line: #333b44; --bar: #2aa595;
  --paper: #14181d; --shade: #1d232a; --true: #4fc79a; --false: #ff8a80; --unknown: #e3c14f; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  max-width: 64rem; padding: 1.5rem 1.25rem 4rem; }
h1 { font-size: 1.8rem; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; }
p { max-width: 46rem; margin: .25rem 0 .75rem; }
.dim { color: var(--dim); }
.tally { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; margin: 1.5rem 0; padding: 0; list-style: none; }
.tally b { display: block; font-size: 1.7rem; line-height: 1.2; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); gap: 0 3rem; }
.plots section { min-width: 0; }
svg { max-width: 100%; height: auto; display: block; }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
svg .dim { fill: var(--dim); }
svg rect { fill: var(--bar); }
table { border-collapse: collapse; width: 100%; font-size: .85rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line); }
td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
code { font: .82rem/1.45 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { font: .82rem/1.5 ui-monospace, monospace; overflow-x: auto; padding: .75rem 1rem; background: var(--shade); }
.true { color: var(--true); } .false { color: var(--false); } .unknown { color: var(--unknown); }
"""


def written(story: Story) -> str:
    """Return the page."""
    title = f"{story.events:,} events met {story.subscriptions:,} subscriptions"
    tally = {
        "events a second, first pass": _rate(story, "match"),
        "events a second, second pass": _rate(story, "match again"),
        "a single event, p50 and p99": _single(story.latencies_us),
        "pairs": f"{story.pairs:,}",
        "of the events match something": f"{_share(story.matched_events, story.events)}",
        "of the subscriptions match something": f"{_share(story.matched_subscriptions, story.subscriptions)}",
    }
    verdict = "all as the definition says" if not story.wrong else f"{story.wrong:,} differ from the definition"
    return "\n".join(
        (
            "<!doctype html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<style>{_STYLE}</style></head><body>",
            f"<h1>{escape(title)}</h1>",
            f'<p class="dim">Book auctions and their bidders, seed {story.seed}, on Spark ({escape(story.master)}). '
            "An event is read, matched and written with its matches. The first pass starts Spark's Python workers, "
            "which the second finds ready; single events are matched in one process without Spark. "
            f"{story.judged_pairs:,} pairs of event and subscription were asked one by one afterwards: {verdict}.</p>",
            f'<p class="dim">{escape(" · ".join(story.surroundings.values()))}</p>',
            '<ul class="tally">' + "".join(f"<li><b>{value}</b>{name}</li>" for name, value in tally.items()) + "</ul>",
            '<div class="plots">',
            _section(
                "Events, by how many subscriptions they match",
                bars(spread(story.matches_per_event, story.events - story.matched_events), is_logarithmic=True),
            ),
            _section(
                "Subscriptions, by how many events they match",
                bars(
                    spread(story.matches_per_subscription, story.subscriptions - story.matched_subscriptions),
                    is_logarithmic=True,
                ),
            ),
            _section("Matches, by category", bars(dict(_most(story.categories, 10)))),
            _section("Where the time went", bars(story.seconds, unit=" s", places=1)),
            "</div>",
            "<h2>The busiest subscription of each kind</h2>",
            '<p class="dim">Subscriptions that differ in their constants only are of one kind.</p>',
            _table(story.busiest),
            *_explained(story),
            "</body></html>",
        )
    )


def _rate(story: Story, step: str) -> str:
    seconds = story.seconds.get(step)
    return f"{story.events / seconds:,.0f}" if seconds else "–"


def _single(latencies_us: Mapping[str, float]) -> str:
    return " / ".join(f"{latencies_us[name]:,.0f}" for name in ("p50", "p99")) + " µs" if latencies_us else "–"


def _share(part: int, whole: int) -> str:
    """Write a share; 100% is all of them, and nothing less.

    >>> _share(9_999, 10_000), _share(10, 10)
    ('99.9%', '100%')
    """
    if part == whole:
        return "100%"
    return f"{int(1000 * part / whole) / 10}%"


def _section(title: str, plot: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{plot}</section>"


def _most(counts: Mapping[str, int], count: int) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:count]


# -- Plots

_WIDTH, _ROW, _LABEL, _VALUE = 460, 24, 150, 70


def bars(values: Mapping[str, float], unit: str = "", places: int = 0, is_logarithmic: bool = False) -> str:
    """Draw lying bars, the value behind each; none where the value is 0.

    On a logarithmic scale the bar of 1 has a tenth of a decade's length, so that it can be seen.

    >>> bars({"a": 2, "b": 1, "c": 0}).count("<rect")
    2
    """
    if not values:
        return '<p class="dim">Nothing.</p>'
    lengths = {name: _decades(value) if is_logarithmic else value for name, value in values.items()}
    most = max(lengths.values()) or 1
    room = _WIDTH - _LABEL - _VALUE
    parts = []
    for number, (name, value) in enumerate(values.items()):
        y = number * _ROW
        width = max(1.0, room * lengths[name] / most) if value else 0.0
        shown = name if len(name) <= 22 else f"{name[:21]}…"
        parts.append(
            f'<text x="{_LABEL - 8}" y="{y + 16}" text-anchor="end">{escape(shown)}</text>'
            + (f'<rect x="{_LABEL}" y="{y + 4}" width="{width:.1f}" height="{_ROW - 8}" rx="2"/>' if value else "")
            + f'<text class="dim" x="{_LABEL + width + 6:.1f}" y="{y + 16}">{value:,.{places}f}{unit}</text>'
        )
    if is_logarithmic:
        parts.append(f'<text class="dim" x="{_LABEL}" y="{_ROW * len(values) + 16}">logarithmic scale</text>')
    return _svg(_ROW * (len(values) + is_logarithmic) + 4, parts)


def _decades(value: float) -> float:
    return log10(value) + 0.1 if value >= 1 else 0.0


def spread(counts: Mapping[int, int], none: int) -> dict[str, float]:
    """Return how many have how many matches, in steps that double.

    >>> spread({1: 10, 2: 5, 3: 2, 9: 1}, none=7)
    {'none': 7, '1': 10, '2–3': 7, '4–7': 0, '8–15': 1}
    """
    steps: dict[str, float] = {"none": none}
    low = 1
    while low <= max(counts, default=0):
        name = f"{low:,}" if low == 1 else f"{low:,}–{2 * low - 1:,}"
        steps[name] = sum(count for matches, count in counts.items() if low <= matches < 2 * low)
        low *= 2
    return steps


def _svg(height: float, parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" width="{_WIDTH}" role="img">{"".join(parts)}</svg>'


# -- Words


def _table(busiest: Sequence[Busy]) -> str:
    heads = ("subscription", "matches", "of its kind", "their matches", "condition")
    rows = (
        f"<tr><td>#{busy.id}</td>"
        + "".join(f'<td class="number">{number:,}</td>' for number in (busy.matches, busy.alike, busy.matches_alike))
        + f"<td><code>{escape(busy.condition)}</code></td></tr>"
        for busy in busiest
    )
    return f"<table><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>{''.join(rows)}</table>"


def _explained(story: Story) -> list[str]:
    if story.explanation is None or story.explained_event is None:
        return []
    lines = []
    for lead, part in story.explanation.lines():
        name = {True: "true", False: "false", None: "unknown"}[part.truth]
        reason = f'   <span class="dim">({escape(part.reason)})</span>' if part.reason else ""
        label = escape(part.operator or part.text)
        lines.append(f'{escape(lead)}<span class="{name}">{MARKS[part.truth]} {label}</span>{reason}')
    number = f"{story.explained_event['event']:,}"
    event = ", ".join(f"{name}: {value}" for name, value in story.explained_event.items() if value is not None)
    return [
        f"<h2>Why does event {number} match subscription #{story.explained_subscription}?</h2>",
        f'<p class="dim">{escape(event)}</p>',
        f"<pre>{chr(10).join(lines)}</pre>",
    ]
