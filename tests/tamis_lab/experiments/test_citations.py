"""What is cited is in the contents of its source."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis_lab.experiments import LABS, LabError
from tamis_lab.experiments.citations import OURS, CitedPlace, cited, cited_in, contents, missing
from tamis_lab.experiments.statements import FOLDER, statements

ROOT = Path(__file__).parents[3]
every_lab = pytest.mark.parametrize("lab", LABS)


def sources_of(lab: str) -> dict[str, str]:
    """The `[sources]` of a lab, read from its text without the reader that is tested."""
    text = (FOLDER / f"{lab}.toml").read_text("utf-8").partition("[sources]")[2].partition("\n[")[0]
    return dict(re.findall(r'^"(.+)" = "(.+)"$', text, re.MULTILINE))


@every_lab
def test_every_citation_of_a_claim_is_in_the_contents_of_its_source(lab):
    count = 0
    for experiment, by_key in statements(lab).items():
        for statement in by_key.values():
            for text in statement.where.values() if isinstance(statement.where, dict) else [statement.where]:
                if text != OURS:
                    places = cited(text, sources_of(lab)[experiment])
                    assert places and not missing(places), (experiment, statement.key, missing(places))
                    count += len(places)
    assert count > 30


@every_lab
def test_the_source_of_a_claim_is_one_of_its_experiment(lab):
    for experiment in LABS[lab]:
        if experiment.key in sources_of(lab):
            assert sources_of(lab)[experiment.key] in experiment.source, experiment.key


@every_lab
def test_an_experiment_and_its_row_of_the_page_cite_the_same_places_which_exist(lab):
    name = {"topk": "Top-k"}.get(lab, lab.capitalize())
    page = (ROOT / "docs" / "lab.md").read_text("utf-8").partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    for experiment in LABS[lab]:
        row = re.search(rf"^\| {experiment.key} \| .* \| (.*) \|$", page, re.MULTILINE)
        assert row, experiment.key
        if experiment.source != OURS and row[1] != OURS:
            assert set(cited_in(row[1])) == set(cited_in(experiment.source)) != set(), experiment.key
            assert not missing(cited_in(experiment.source)), missing(cited_in(experiment.source))


@pytest.mark.parametrize("folder", ["src", "docs"])
def test_what_modules_and_pages_cite_is_in_the_contents_or_said_to_be_unchecked(folder):
    unchecked = {place for name, each in contents().items() if each.unchecked for place in cited(each.unchecked, name)}
    count = 0
    for path in sorted((ROOT / folder).rglob("*.py" if folder == "src" else "*.md")):
        if path.name != "citations.py":  # has examples of wrong ones
            places = cited_in(path.read_text("utf-8"))
            known = [place for place in places if place not in unchecked]
            assert not missing(known), f"{path}: {missing(known)}"
            count += len(places)
    assert count > 30
    for place in unchecked:
        assert "not in contents" in missing([place]), f"{place} is known, and need not be called unchecked"


def test_every_source_is_in_the_bibliography():
    bibliography = (ROOT / "docs" / "bibliography.md").read_text("utf-8")
    for source in contents():
        assert f"- **{source}.**" in bibliography


def test_no_number_is_in_two_spans_of_the_contents():
    for source, each in contents().items():
        for kind, parts in each.parts.items():
            numbers = [number for span in parts for number in span]
            assert len(numbers) == len(set(numbers)) and all(parts) and all(parts.values()), (source, kind)


def test_a_section_whose_parts_are_in_the_contents_is_there_itself():
    for source, each in contents().items():
        numbers = {number for span in each.parts["sections"] for number in span}
        wholes = {number.rpartition(".")[0] for number in numbers if number.count(".") > 1}
        assert wholes <= numbers, (source, wholes - numbers)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("5.7", ["5.7"]),
        ("8.3.1, figure 8.6; 8.3.2, figure 8.10", ["8.3.1", "8.6", "8.3.2", "8.10"]),
        ("figures 8.3, 8.4 and 8.6: 15 against 7 ms", ["8.3", "8.4", "8.6"]),
        ("1, 2.4 to 2.6", ["1", "2.4", "2.5", "2.6"]),
        ("appendix B.2, tables A.1 to A.2", ["B.2", "A.1", "A.2"]),
        ("Bittner & Hinze 2006, section 4, figure 1e", ["4", "1e"]),
    ],
)
def test_a_citation_is_read_with_its_spans_and_its_words(text, numbers):
    assert [place.number for place in cited(text, "Bittner 2008")] == numbers


@pytest.mark.parametrize(
    "text",
    ["", "somewhere", "5.7 or so", "figure", "5.7, page 12x", "5.7;", "A.1 to B.2", "5.3 to 5.1", "1 to 999999999999"],
)
def test_what_is_not_a_citation_is_refused(text):
    with pytest.raises(LabError):
        cited(text, "Bittner 2008")


PIECES = (*"0159.,;: ABz٣²", " to ", " and ", "figures ", "section ", "Jewel 2004")


@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_any_text_is_a_citation_of_places_or_refused(pieces):
    try:
        places = cited("".join(pieces), "Bittner 2008")
    except LabError:
        return
    assert places and all(place.source in contents() and place.number for place in places)
    assert isinstance(missing(places), str)


def test_another_source_may_be_named_within_a_citation():
    one, two = cited("8.3.1; Mühl et al. 2002, 2.6", "Bittner 2008")
    assert (one, two) == (
        CitedPlace("Bittner 2008", "sections", "8.3.1"),
        CitedPlace("Mühl et al. 2002", "sections", "2.6"),
    )


def test_the_places_that_used_to_be_cited_and_are_not_known_are_refused():
    for source, text in [
        ("Pripužić 2010", "3.8.5"),
        ("Jewel 2004", "5.4.1"),
        ("Jewel 2004", "5.7.1"),
        ("Bittner 2008", "8.4.3"),
        ("Bittner 2008", "figure 8.20"),
        ("Bittner 2008", "7.2.1"),
    ]:
        assert missing(cited(text, source)), (source, text)
