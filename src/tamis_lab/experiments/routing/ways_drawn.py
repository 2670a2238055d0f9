"""How is an event's way drawn?

A tree of brokers for each strategy, and what happens at each stop as a numbered list beside it. Without scripts
all of it is there: the whole way, and every step in words. With them, buttons go from step to step, and the event moves
along; whoever wants less motion sees it jump.
"""

from __future__ import annotations

from html import escape
from random import Random
from typing import TYPE_CHECKING

from tamis.simulation.topologies import balanced_tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tamis_lab.experiments.routing.way import Stop, Way

_PLACES = {"b0": (200, 44), "b1": (105, 128), "b2": (295, 128), "b3": (52, 214), "b4": (158, 214), "b5": (242, 214),
           "b6": (348, 214)}  # fmt: skip
_STYLE = """
.ways { display: grid; gap: 1.75rem; }
.way { display: flex; flex-wrap: wrap; align-items: flex-start; gap: .25rem 1.5rem;
  border: 1px solid var(--line, #ccc); border-radius: .5rem;
  padding: .75rem 1rem; }
.way h3 { flex-basis: 100%; margin: 0; font-size: 1rem; }
.way svg { flex: 0 0 25rem; max-width: 100%; height: auto; }
.way .words { flex: 1 1 18rem; }
.way ol { margin: .25rem 0; padding-left: 1.4rem; font-size: .88rem; }
.way li { padding: .2rem .4rem; border-left: 3px solid transparent; }
.way li[aria-current] { border-left-color: #d55e00; background: #fff4ec; }
.way button { font: inherit; padding: .15rem .8rem; margin-right: .4rem; }
.way line { stroke: #c4cbd3; stroke-width: 3; }
.way line.used { stroke: #d55e00; stroke-width: 5; }
.way circle.broker { fill: #fff; stroke: #5b6672; stroke-width: 2; }
.way circle.visited { fill: #ffe3cf; stroke: #d55e00; stroke-width: 3; }
.way .event { fill: #d55e00; transition: transform .6s; }
.way text { font: 13px system-ui, sans-serif; fill: #1b1f24; text-anchor: middle; }
.way text.client { font-size: 12px; fill: #5b6672; }
.way text.got { fill: #00704f; font-weight: 700; }
.way .later.used { stroke: #c4cbd3; stroke-width: 3; }
.way .later.visited { fill: #fff; stroke: #5b6672; stroke-width: 2; }
.way .later.got { fill: #5b6672; font-weight: 400; }
@media (prefers-reduced-motion: reduce) { .way .event { transition: none; } }
@media print { .way button { display: none; } }
"""
_SCRIPT = """
for (const way of document.querySelectorAll('.way')) {
  const steps = [...way.querySelectorAll('li')], event = way.querySelector('.event');
  const [back, forth, play] = way.querySelectorAll('button'), place = way.querySelector('output');
  let at = 0, timer = null;
  const show = (to) => {
    at = Math.max(0, Math.min(steps.length - 1, to));
    steps.forEach((step, n) => n === at ? step.setAttribute('aria-current', 'step')
      : step.removeAttribute('aria-current'));
    way.querySelectorAll('[data-step]').forEach(
      (each) => each.classList.toggle('later', Number(each.dataset.step) > at));
    event.style.transform = `translate(${steps[at].dataset.x}px, ${steps[at].dataset.y}px)`;
    place.textContent = `step ${at + 1} of ${steps.length}`;
    back.disabled = at === 0; forth.disabled = at === steps.length - 1;
  };
  const stop = () => { clearInterval(timer); timer = null; play.textContent = 'Play'; };
  back.onclick = () => { stop(); show(at - 1); };
  forth.onclick = () => { stop(); show(at + 1); };
  play.onclick = () => {
    if (timer) return stop();
    show(at === steps.length - 1 ? 0 : at);
    play.textContent = 'Stop';
    timer = setInterval(() => { show(at + 1); if (at === steps.length - 1) stop(); }, 1500);
  };
  way.querySelector('.buttons').hidden = false;
  show(0);
}
"""


def drawn_ways(ways: Sequence[Way], wanted: Mapping[str, tuple[str, str]], publisher: str) -> str:
    """Return the ways of an event as a part of a page, with its style and script."""
    parts = "".join(_drawn(each, wanted, publisher) for each in ways)
    return f'<style>{_STYLE}</style><div class="ways">{parts}</div><script>{_SCRIPT}</script>'


def _drawn(way: Way, wanted: Mapping[str, tuple[str, str]], publisher: str) -> str:
    steps = "".join(
        '<li data-x="{}" data-y="{}">{}</li>'.format(*_PLACES[stop.broker], _caption(stop)) for stop in way.stops
    )
    summary = f"{len(way.stops) - 1} messages, delivered to {', '.join(way.delivered)}"
    return (
        f'<section class="way"><h3>{escape(way.strategy)}: {escape(summary)}</h3>{_svg(way, wanted, publisher)}'
        '<div class="words"><div class="buttons" hidden>'
        '<button type="button" aria-label="previous step">◀</button>'
        '<button type="button" aria-label="next step">▶</button>'
        '<button type="button">Play</button><output></output></div>'
        f"<ol>{steps}</ol></div></section>"
    )


def _caption(stop: Stop) -> str:
    """Say in words what happens at a stop."""
    came = f"from {stop.source}" if stop.source else "from the publisher"
    sentences = [f"<b>{stop.broker}</b> gets the event {came}."]
    for peer, filters in stop.asked:
        if filters:
            marks = ", ".join(f"{escape(text)}&nbsp;{'✓' if is_match else '✗'}" for text, is_match in filters)
            is_flooded = [text for text, _ in filters] == ["TRUE"]
            sentences.append(f"{escape(peer)} gets everything." if is_flooded else f"{escape(peer)} wants: {marks}.")
    if stop.delivered:
        sentences.append(f"It delivers to <b>{escape(' and '.join(stop.delivered))}</b>.")
    if stop.sent:
        sentences.append(f"It sends it to {' and '.join(stop.sent)}.")
    if not (stop.sent or stop.delivered):
        sentences.append("Nobody here or behind it wants it: it came in vain.")
    return " ".join(sentences)


def _svg(way: Way, wanted: Mapping[str, tuple[str, str]], publisher: str) -> str:
    """Draw the tree; what the event touches has the number of the step in which it does."""
    visited = {stop.broker: number for number, stop in enumerate(way.stops)}
    used = {frozenset((stop.source, stop.broker)): number for number, stop in enumerate(way.stops) if stop.source}
    parts = []
    for one, two in balanced_tree(len(_PLACES), Random(1)):
        (x1, y1), (x2, y2) = _PLACES[one], _PLACES[two]
        step = used.get(frozenset((one, two)))
        look = "" if step is None else f' class="used" data-step="{step}"'
        parts.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"{look}/>')
    for broker, (x, y) in _PLACES.items():
        step = visited.get(broker)
        look = 'class="broker"' if step is None else f'class="broker visited" data-step="{step}"'
        parts.append(f'<circle {look} cx="{x}" cy="{y}" r="19"/><text x="{x}" y="{y + 5}">{broker}</text>')
    got = {client: visited[stop.broker] for stop in way.stops for client in stop.delivered}
    by_home: dict[str, list[str]] = {publisher: ["publisher"]}
    for client, (home, _) in wanted.items():
        by_home.setdefault(home, []).append(client)
    for home, clients in by_home.items():
        x, y = _PLACES[home]
        for place, client in enumerate(clients):
            look = f'class="client got" data-step="{got[client]}"' if client in got else 'class="client"'
            at = (x + 38, y + 4 - 16 * place) if home == "b0" else (x, y + 37 + 16 * place)
            parts.append(f'<text {look} x="{at[0]}" y="{at[1]}">{escape(client)}</text>')
    x, y = _PLACES[way.stops[-1].broker]
    parts.append(f'<circle class="event" r="7" cx="0" cy="-24" style="transform: translate({x}px, {y}px)"/>')
    label = escape(f"The way of the event under {way.strategy}", quote=True)
    return f'<svg viewBox="0 0 400 280" width="400" height="280" role="img" aria-label="{label}">{"".join(parts)}</svg>'
