"""How is a report read?

One HTML page without anything beside it: the verdicts first, all in one table, then each experiment with its plots. It
reads on paper and on small screens, and does not need colours to be understood.
"""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING

from tamis.lab.base import Verdict
from tamis.lab.plots import drawn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.lab.base import Claim, Experiment, Result, Row
    from tamis.lab.running import Report

_LOOKS = {
    Verdict.AGREES: "yes",
    Verdict.DIRECTION: "nearly",
    Verdict.SAME: "same",
    Verdict.DIFFERS: "differs",
    Verdict.TURNED: "turned",
}
"""The class of each verdict."""

_HEAD = "<th>statement</th><th>published</th><th>ours</th><th>verdict</th>"
_STYLE = """
:root { color-scheme: light; --ink: #1b1f24; --dim: #5b6672; --line: #dfe3e8; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: #fff; margin: 0 auto;
  max-width: 68rem; padding: 1.5rem 1.25rem 4rem; }
h1 { font-size: 1.8rem; margin: 0 0 .25rem; }
h2 { font-size: 1.25rem; margin: 3rem 0 .25rem; }
p, li { max-width: 48rem; }
.dim, small { color: var(--dim); }
table { border-collapse: collapse; width: 100%; font-size: .88rem; margin: 1rem 0; }
th, td { text-align: left; vertical-align: top; padding: .4rem .75rem .4rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--dim); font-weight: 600; white-space: nowrap; }
th.group { padding-top: 1.4rem; font-size: .95rem; white-space: normal; }
td.verdict { white-space: nowrap; font-weight: 600; }
.yes { color: #00704f; } .nearly { color: #5f6f00; } .same { color: #6b5b00; }
.differs { color: #9a4a00; } .turned { color: #b3261e; }
.plots { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1rem 0; }
.plots figure { margin: 0; max-width: 100%; }
.plots svg { max-width: 100%; height: auto; }
.scroll { overflow-x: auto; } .scroll td { white-space: nowrap; }
.tally { display: flex; flex-wrap: wrap; gap: 2rem; margin: 1.25rem 0; padding: 0; list-style: none; }
.tally b { display: block; font-size: 1.6rem; line-height: 1.2; }
summary { cursor: pointer; color: var(--dim); }
a { color: #0b5cad; }
@media (max-width: 40rem) { td, th { padding-right: .4rem; } }
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
            "<h2>Published and ours</h2>",
            _summary(report),
            *_otherwise(report),
            *(part for outcome in report.outcomes for part in _section(*outcome)),
            "</body></html>",
        )
    )


def _opening(report: Report) -> list[str]:
    counts = Counter(claim.verdict for claim in report.claims)
    items = "".join(
        f'<li class="{look}"><b>{verdict.mark} {counts[verdict]}</b>{verdict}</li>' for verdict, look in _LOOKS.items()
    )
    scale = report.scale
    counts_told = (
        f", up to {scale.auction_counts[-1]:,} auction subscriptions and {scale.expression_counts[-1]:,} expressions"
    )
    told = {
        "scale": scale.name + (counts_told if report.lab == "filtering" else ""),
        "seed": str(report.seed),
        **report.circumstances,
    }
    is_toy = scale.name == "quick"
    return [
        '<p class="dim">Published experiments, run again. Every verdict is computed from the measurements of this run, '
        "which are processor times of one thread: compare ratios, not absolute figures.</p>",
        "<p><b>A quick run at toy size.</b> It shows that everything runs; its verdicts mean little.</p>"
        if is_toy
        else "",
        f'<ul class="tally">{items}</ul>',
        f"<p><small>{escape('; '.join(f'{name}: {value}' for name, value in told.items()))}</small></p>",
    ]


def _otherwise(report: Report) -> list[str]:
    """Say what did not come out as published, and why that may be."""
    items = [
        f"<li><b>{escape(claim.statement)}.</b> Published: {escape(claim.published)}. Here: {escape(claim.ours)}. "
        f'{escape(claim.remark)} <a href="#{_anchor(experiment)}">{escape(experiment.key)}</a></li>'
        for experiment, result, _ in report.outcomes
        for claim in result.claims
        if not claim.verdict.holds
    ]
    return ["<h2>What did not come out as published</h2>", "<ul>", *items, "</ul>"] if items else []


def _summary(report: Report) -> str:
    """Write all claims as one table, under their questions."""
    rows = ""
    for experiment, result, _ in report.outcomes:
        if result.claims:
            link = f'<a href="#{_anchor(experiment)}">{escape(experiment.question)}</a>'
            rows += f'<tr><th class="group" colspan="4">{link} <small>{escape(experiment.source)}</small></th></tr>'
            rows += _claim_rows(result.claims)
    return f"<table><thead><tr>{_HEAD}</tr></thead><tbody>{rows}</tbody></table>"


def _claims_table(claims: Sequence[Claim]) -> str:
    return f"<table><thead><tr>{_HEAD}</tr></thead><tbody>{_claim_rows(claims)}</tbody></table>"


def _claim_rows(claims: Sequence[Claim]) -> str:
    return "".join(
        f"<tr><td>{escape(claim.statement)}<br><small>{escape(claim.where)}</small></td>"
        f"<td>{escape(claim.published)}</td><td>{escape(claim.ours)}</td>"
        f'<td class="verdict {_LOOKS[claim.verdict]}">{claim.verdict.mark} {claim.verdict}</td></tr>'
        for claim in claims
    )


def _section(experiment: Experiment, result: Result, seconds: float) -> list[str]:
    remarks = dict.fromkeys(claim.remark for claim in result.claims if claim.remark)
    parts = [
        f'<h2 id="{_anchor(experiment)}">{escape(experiment.question)}</h2>',
        f'<p class="dim">{escape(experiment.source)}. {escape(result.setup)} <small>({seconds:,.0f} s)</small></p>',
        '<div class="plots">',
        *(f"<figure>{drawn(plot)}</figure>" for plot in result.plots),
        "</div>",
        _claims_table(result.claims) if result.claims else "",
        *(f"<p>{escape(remark)}</p>" for remark in remarks),
    ]
    if result.rows:
        told = f"measurements, {len(result.rows)} rows"
        parts.append(f"<details><summary>{told}</summary>{_rows_table(result.rows)}</details>")
    return parts


def _rows_table(rows: Sequence[Row]) -> str:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(_cell(row.get(column)))}</td>' for column in columns)}</tr>" for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _anchor(experiment: Experiment) -> str:
    return experiment.key.replace(" ", "-")
