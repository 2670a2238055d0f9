"""The page stands alone, says everything, and takes nothing for markup that is none."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html import escape
from html.parser import HTMLParser

import pytest

from tamis_lab.experiments.base import SCALES, Bars, Claim, Curve, Experiment, Judgement, Plot, Result
from tamis_lab.experiments.filtering import EXPERIMENTS
from tamis_lab.experiments.page import UNKNOWN, written
from tamis_lab.experiments.plots import PART_COLOURS, coinciding, drawn
from tamis_lab.experiments.running import Report
from tests.tamis_lab.experiments.scales import TINY

LINES = Plot(
    "Time & <space>",
    "subscriptions",
    "ms",
    (
        Curve("counting", (1, 10, 100), (1.0, 2.0, 3.0)),
        Curve("", (1, 10, 100), (1.5, 2.5, 3.5), is_dashed=True),
        Curve("somebody new", (1, 10, 100), (2.0, 2.0, 2.0)),
    ),
    is_log_x=True,
)
SHARES = Bars("Shares", ("one", "two"), {"counting": (0.25, 0.75), "atree": (0.5, 0.5)}, {"atree": "3 ms"})
CLAIMS = (
    Claim("a < b", "smaller", "0.50 times", Judgement.AGREES, "5.1", tolerance="a factor of 7", caveat="Counted."),
    Claim("b is faster", "0.73 times", "1.40 times", Judgement.TURNED, "5.2", "Caches have grown.", key="faster",
          tolerance="a factor of 1.5", caveat="Timed.", figures=(0.73, 1.4), repeats=(1.2, 1.4, 1.7), agreed_of=(0, 3)),
    Claim("c is the same", "the same", "from 1 to 9", Judgement.DIFFERS, "5.3", tolerance="twice", caveat="Chance.",
          figures=(4.0, 4.2)),
)  # fmt: skip


def report(claims=CLAIMS, plots=(LINES, SHARES)) -> Report:
    experiment = Experiment("an experiment", "Is a < b?", "Somebody 2008, section 5", lambda *_: None)
    result = Result("Some setup & more.", claims, plots, ({"n": 1, "<ms>": 2.5, "told": "x"}, {"n": 1_000_000}))
    return Report("filtering", TINY, 7, ((experiment, result, 3.2),), {"machine": "x86"})


class Balanced(HTMLParser):
    """Sees that every element is closed where it should be."""

    VOID = ("meta", "br", "input")

    def __init__(self):
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        self.links += [value for name, value in attrs if name in ("href", "src", "xlink:href") and value]

    def handle_startendtag(self, tag, attrs):
        self.links += [value for name, value in attrs if name in ("href", "src", "xlink:href") and value]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def parsed(page: str) -> Balanced:
    parser = Balanced()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


def test_the_page_needs_nothing_beside_it():
    found = parsed(written(report()))
    assert found.links and all(link.startswith("#") for link in found.links)
    assert "@import" not in written(report()) and "url(http" not in written(report())


def test_every_claim_stands_in_the_table_with_its_verdict():
    text = " ".join(parsed(written(report())).texts)
    for claim in CLAIMS:
        assert written(report()).count(f"<td>{escape(claim.statement)}<br>") == 1, "no claim stands there twice"
        assert claim.tolerance in text and claim.caveat in text
        assert claim.published in text and claim.ours in text
    assert "⇄ turned around" in text and "✓ agrees" in text and "≠ differs" in text


def test_what_does_not_agree_has_its_reason_in_the_row_below():
    page = written(report())
    for claim in CLAIMS[1:]:
        rows = [row for row in re.findall(r"<tr.*?</tr>", page) if f"<small>{claim.where}</small>" in row]
        assert len(rows) == 1
        for row in rows:
            behind = page[page.rindex(row) + len(row) :]
            assert behind.startswith('<tr class="why">')
            assert (claim.remark or UNKNOWN) in behind[: behind.index("</tr>")]
    assert '<tr class="why">' not in written(report(claims=CLAIMS[:1])), "what agrees needs no reason"


def test_every_experiment_is_in_the_table_of_contents_with_how_its_statements_came_out():
    page = written(report())
    (contents,) = re.findall(r'<div class="scroll contents">(.*?)</div>', page)
    assert 'href="#an-experiment"' in contents and 'id="an-experiment"' in page
    assert re.findall(r"<td>(\d*)</td>", contents) == ["1", "", "2"]


def test_published_figures_are_drawn_against_ours_with_error_bars():
    page = written(report())
    (scatter,) = re.findall(r"<h2>Published against ours</h2>(.*?)<h2>", page, re.DOTALL)
    assert "faster" not in scatter, "what lies near the line has no label"
    far = replace(CLAIMS[1], figures=(0.1, 9.0))
    assert ">faster<" in written(report(claims=(far, CLAIMS[2])))
    assert "Published against ours" not in written(report(claims=CLAIMS[:2])), "one point is not a plot"
    assert "1.20 to 1.70; 0 of 3 runs agree" in page


def test_what_agrees_can_be_left_out():
    page = written(report())
    assert 'id="otherwise"' in page and "#otherwise:checked ~ .scroll tr.agreed" in page
    assert page.count('<tr class="agreed">') == 1 and page.count('<tr class="judged">') == 2


def test_the_counts_are_told_apart():
    text = " ".join(parsed(written(report())).texts)
    assert "Of 3 published statements 1 agree, 0 roughly, 2 do not" in text


def test_wide_tables_scroll_in_a_box_of_their_own():
    page = written(report())
    assert page.count("<table>") == len(re.findall('<div class="scroll(?: raw| contents)?"><table>', page))


def test_lines_that_lie_on_each_other_are_named_and_none_hides_another():
    low = Curve("low", (1, 2), (1.0, 1.0))
    lines = (
        Curve("first", (1, 2), (5.0, 9.0)),
        low,
        Curve("second", (1, 2), (5.0, 9.01)),
        Curve("", (1, 2), (5.0, 9.0)),
    )
    plot = Plot("t", "x", "y", lines)
    assert coinciding(plot) == [("first", "second")]
    assert coinciding(replace(plot, lines=lines[:2])) == []
    page = written(report(plots=(plot,)))
    assert "<figcaption>On one line: first and second.</figcaption>" in page
    alone = drawn(replace(plot, lines=lines[:2]))
    assert len(_widths(drawn(plot))) == len(_widths(alone)) + 2, "each of three has a breadth of its own"


def _widths(svg):
    return set(re.findall(r"stroke-width: ([0-9.]+)", svg))


def test_small_differences_of_a_logarithmic_plot_are_differences():
    lines = Curve("a", (1, 2), (0.001, 100.0)), Curve("b", (1, 2), (0.01, 100.0))
    assert coinciding(Plot("t", "x", "y", lines)) == [("a", "b")]
    assert coinciding(Plot("t", "x", "y", lines, is_log_y=True)) == []


def test_the_circumstances_are_told():
    text = " ".join(parsed(written(report())).texts)
    assert "scale: tiny" in text and "seed: 7" in text and "machine: x86" in text


@pytest.mark.parametrize("plot", [LINES, SHARES], ids=["lines", "bars"])
def test_a_plot_is_well_formed_and_the_same_every_time(plot):
    svg = drawn(plot)
    ET.fromstring(re.sub(r'xlink:href="#', 'href="#', svg))
    assert svg.startswith("<svg") and svg == drawn(plot)
    for label in ("counting", "somebody new") if plot is LINES else ("counting", "atree", "75%", "3 ms"):
        assert label in svg


def test_the_axes_may_have_names_instead_of_numbers():
    svg = drawn(Plot("t", "", "y", (Curve("a", (1, 2), (3.0, 4.0)),), is_log_y=True, x_names=("class 1", "class 2")))
    assert "class 1" in svg and "class 2" in svg


def test_every_part_of_bars_has_a_colour_of_its_own():
    parts = ("subscribe", "rendezvous", "interested", "interest", "owner", "another")
    picture = drawn(Bars("Messages", parts, {"PA": (0.1, 0.2, 0.3, 0.2, 0.1, 0.1)}, {}))
    colours = re.findall(r"fill: (#[0-9a-f]{6})", picture)
    assert all(colours.count(colour) >= 2 for colour in set(PART_COLOURS)), "in the bar and in the legend"
    assert len(set(PART_COLOURS)) == len(PART_COLOURS) >= len(parts)


def test_a_full_run_says_where_its_sizes_are_not_the_published_ones():
    (experiment,) = [each for each in EXPERIMENTS if each.key == "conjunctive load"]
    full = Report("filtering", SCALES["full"], 1, ((experiment, Result("A load."), 1.0),), {})
    assert "4,000,000 subscriptions" in written(full) and "Not the published size" in written(full)
    assert "4,000,000 subscriptions" in full.as_dict()["experiments"][0]["other_size"]
    quick = replace(full, scale=SCALES["quick"])
    assert "Not the published size" not in written(quick)
    assert not quick.as_dict()["experiments"][0]["other_size"]
