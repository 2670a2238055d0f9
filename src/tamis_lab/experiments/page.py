"""How is a report read?

One HTML page without anything beside it: how many statements hold, published figures against ours, the experiments with
their tallies, then each experiment with its plots and its claims. Every claim says how far ours may be off, and what it
depends on; what does not plainly agree has its reason in its own row, and a tick leaves these rows alone. It reads on
paper, on small screens and in the dark, and does not need colours to be understood.
"""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING

from tamis_lab.experiments.base import OUTCOMES, Judgement, Plot
from tamis_lab.experiments.plots import coinciding, drawn, scattered
from tamis_lab.experiments.verdicts import rounded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis_lab.experiments.base import Bars, Claim, Experiment, Picture, Result, Row
    from tamis_lab.experiments.running import Report

_LOOKS = {
    Judgement.AGREES: "yes",
    Judgement.DIRECTION: "nearly",
    Judgement.SAME: "same",
    Judgement.DIFFERS: "differs",
    Judgement.TURNED: "turned",
    Judgement.PREMISE: "premise",
    Judgement.UNMEASURED: "unmeasured",
}
"""The class of each verdict."""

UNKNOWN = "we do not know."
_HEAD = "<th>statement</th><th>published</th><th>ours</th><th>tolerance and caveat</th><th>verdict</th>"
_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #5b6672; --line: #dfe3e8; --ground: #fff; --row: #fbfaf7;
  --link: #0b5cad; --yes: #00704f; --nearly: #5f6f00; --same: #6b5b00; --differs: #9a4a00; --turned: #b3261e;
  --premise: #7a3b8f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7eb; --dim: #9aa5b1; --line: #39424c; --ground: #16191d;
  --row: #1d2126; --link: #7ab8ff; --yes: #4cc79b; --nearly: #c3d04f; --same: #d3c05a; --differs: #f0a15c;
  --turned: #ff8a80; --premise: #cf9ae3; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); margin: 0 auto;
  max-width: 74rem; padding: 1.5rem 1.25rem 4rem; }
h1 { font-size: 1.8rem; margin: 0 0 .25rem; }
h2 { font-size: 1.25rem; margin: 3rem 0 .25rem; }
p, li { max-width: 48rem; }
.dim, small { color: var(--dim); }
table { border-collapse: collapse; width: 100%; font-size: .88rem; margin: 1rem 0; }
th, td { text-align: left; vertical-align: top; padding: .4rem .75rem .4rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--dim); font-weight: 600; white-space: nowrap; }
.contents td:nth-child(n + 3) { white-space: nowrap; text-align: right; }
td.terms { font-size: .8rem; min-width: 12rem; color: var(--dim); } td.terms b { font-weight: 600; color: var(--ink); }
td.verdict { font-weight: 600; min-width: 7.5rem; }
tr.judged > td { border-bottom: 0; } tr.judged > td, tr.why > td { background: var(--row); }
tr.why > td { padding: 0 .75rem .6rem 0; } tr.why b { font-weight: 600; }
tr.why div { position: sticky; left: 0; max-width: min(100%, calc(100vw - 2.5rem)); }
.yes { color: var(--yes); } .nearly { color: var(--nearly); } .same { color: var(--same); }
.differs { color: var(--differs); } .turned { color: var(--turned); } .premise { color: var(--premise); }
.unmeasured { color: var(--dim); }
#otherwise:checked ~ .scroll tr.agreed, #otherwise:checked ~ .scroll tr.all { display: none; }
.plots { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1rem 0; }
.plots figure { margin: 0; max-width: 100%; background: #fff; border-radius: .4rem; }
@media (prefers-color-scheme: dark) { .plots figure { padding: .5rem; } }
.plots svg { max-width: 100%; height: auto; }
.plots figcaption { font-size: .82rem; color: #5b6672; max-width: 22rem; }
.scroll { overflow-x: auto; } .scroll table { min-width: 40rem; } .raw td { white-space: nowrap; }
.tally { display: flex; flex-wrap: wrap; gap: 2rem; margin: 1.25rem 0; padding: 0; list-style: none; }
.tally b { display: block; font-size: 1.6rem; line-height: 1.2; }
summary { cursor: pointer; color: var(--dim); }
a { color: var(--link); }
@media (max-width: 40rem) { td, th { padding-right: .4rem; } }
@media print { #otherwise, label { display: none; } .scroll { overflow: visible; } }
"""


def written(report: Report) -> str:
    """Return the page."""
    title = f"The {report.lab} lab of tamis"
    return "\n".join(
        (
            "<!doctype html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<style>{_STYLE}</style></head><body>",
            f"<h1>{escape(title)}</h1>",
            *_opening(report),
            *_overview(report),
            "<h2>Experiments</h2>",
            '<input type="checkbox" id="otherwise"> <label for="otherwise">only what does not plainly agree</label>',
            _contents(report),
            *(
                part
                for outcome in report.outcomes
                for part in _section(*outcome, report.other_sizes.get(outcome[0].key, ""))
            ),
            "</body></html>",
        )
    )


def _opening(report: Report) -> list[str]:
    counts = Counter(claim.verdict for claim in report.claims)
    items = "".join(
        f'<li class="{look}"><b>{verdict.mark} {counts[verdict]}</b>{verdict}</li>'
        for verdict, look in _LOOKS.items()
        if counts[verdict] or verdict is not Judgement.UNMEASURED
    )
    scale = report.scale
    counts_told = (
        f", up to {scale.auction_counts[-1]:,} auction subscriptions and {scale.expression_counts[-1]:,} expressions"
    )
    facts = {
        "scale": scale.name + (counts_told if report.lab == "filtering" else ""),
        "seed": str(report.seed),
        "runs of each experiment": str(report.repeats),
        **report.circumstances,
    }
    is_toy = scale.name == "quick"
    return [
        '<p class="dim">Published experiments, run again. Every verdict is computed from this run. Messages, entries, '
        "predicates and bytes are counted. Times are processor times of one thread on the machine below, and vary by "
        "some percent from run to run: compare ratios, not absolute figures.</p>",
        "<p><b>A quick run at toy size.</b> It shows that everything runs; its verdicts mean little.</p>"
        if is_toy
        else "",
        f'<ul class="tally">{items}</ul>',
        f"<p>{escape(report.summary)}.</p>",
        f"<p><small>{escape('; '.join(f'{name}: {value}' for name, value in facts.items()))}</small></p>",
    ]


def _overview(report: Report) -> list[str]:
    """Draw published figures against ours, if there are some."""
    scatter = scattered(report.claims)
    if not scatter:
        return []
    bars = "; error bars are the least and the greatest of all runs" if report.repeats > 1 else ""
    caption = (
        f"Every statement whose published result is one number. In the band, ours is within half as much again{bars}."
    )
    return [
        "<h2>Published against ours</h2>",
        f'<div class="plots"><figure>{scatter}<figcaption>{caption}</figcaption></figure></div>',
    ]


def _contents(report: Report) -> str:
    """Write a table of contents, with how the statements of each experiment came out."""
    head = "<th>experiment</th><th>source</th><th>agree</th><th>roughly</th><th>do not</th>"
    rows = ""
    for experiment, result, _ in report.outcomes:
        counts = Counter(claim.verdict.outcome for claim in result.claims)
        is_all = all(claim.verdict is Judgement.AGREES for claim in result.claims)
        look = ' class="all"' if is_all else ""
        rows += (
            f"<tr{look}>"
            f'<td><a href="#{_anchor(experiment)}">{escape(experiment.question)}</a></td>'
            f"<td><small>{escape(experiment.source)}</small></td>"
            + "".join(f"<td>{counts[outcome] or ''}</td>" for outcome in OUTCOMES[:3])
            + "</tr>"
        )
    return f'<div class="scroll contents"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _claims_table(rows: str) -> str:
    return f'<div class="scroll"><table><thead><tr>{_HEAD}</tr></thead><tbody>{rows}</tbody></table></div>'


def _claim_rows(claims: Sequence[Claim]) -> str:
    return "".join(
        f'<tr class="{"agreed" if claim.verdict is Judgement.AGREES else "judged"}">'
        f"<td>{escape(claim.statement)}<br><small>{escape(claim.where)}</small></td>"
        f"<td>{escape(claim.published)}</td><td>{escape(claim.ours)}{_runs(claim)}</td>"
        f'<td class="terms"><b>{escape(claim.tolerance)}</b><br>{escape(claim.caveat)}</td>'
        f'<td class="verdict {_LOOKS[claim.verdict]}">{claim.verdict.mark} {claim.verdict}</td></tr>{_why(claim)}'
        for claim in claims
    )


def _runs(claim: Claim) -> str:
    """Say what other runs came to."""
    if claim.agreed_of is None:
        return ""
    reach = f"{rounded(claim.repeats[0])} to {rounded(claim.repeats[-1])}; " if claim.repeats else ""
    return f"<br><small>{reach}{claim.agreed_of[0]} of {claim.agreed_of[1]} runs agree</small>"


def _why(claim: Claim) -> str:
    """Say below a claim why it did not come out as published, or that nobody knows."""
    if claim.verdict is Judgement.AGREES:
        return ""
    return f'<tr class="why"><td colspan="5"><div><b>Why:</b> {escape(claim.remark or UNKNOWN)}</div></td></tr>'


def _section(experiment: Experiment, result: Result, seconds: float, other_size: str) -> list[str]:
    parts = [
        f'<h2 id="{_anchor(experiment)}">{escape(experiment.question)}</h2>',
        f'<p class="dim">{escape(experiment.source)}. {escape(result.setup)} <small>({seconds:,.0f} s)</small></p>',
        f'<p class="dim"><b>Not the published size:</b> {escape(other_size)}</p>' if other_size else "",
        '<div class="plots">',
        *(f"<figure>{drawn(plot)}{_caption(plot)}</figure>" for plot in result.plots),
        "</div>",
        _claims_table(_claim_rows(result.claims)) if result.claims else "",
    ]
    if result.rows:
        title = f"measurements, {len(result.rows)} rows"
        parts.append(f"<details><summary>{title}</summary>{_rows_table(result.rows)}</details>")
    return parts


def _caption(plot: Plot | Bars | Picture) -> str:
    """Name lines that lie on each other."""
    groups = coinciding(plot) if isinstance(plot, Plot) else []
    named = [f"{', '.join(names[:-1])} and {names[-1]}" for names in groups]
    return f"<figcaption>On one line: {escape('; '.join(named))}.</figcaption>" if named else ""


def _rows_table(rows: Sequence[Row]) -> str:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(_cell(row.get(column)))}</td>' for column in columns)}</tr>" for row in rows
    )
    return f'<div class="scroll raw"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _anchor(experiment: Experiment) -> str:
    return experiment.key.replace(" ", "-")
