"""Is what we cite in the source at all?

`claims/contents.toml` has what each source contains, as far as we know it. A citation names places of a source, and is
refused if one of them is not in its contents:

    5.7, figures 5.5 to 5.8                       sections unless it says otherwise, of the source of the experiment
    tables 5.3 and 5.4; 5.4: over 350 a second    after a colon stands what is said there
    Bittner & Hinze 2006, section 4, figure 1e    another source is named

A span of figures of which only the whole is known ("5.5 to 5.8", which of them shows what is not known) can only be
cited whole: a precise number that nobody has checked is worse than an imprecise one.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tamis_lab.experiments.errors import LabError

CONTENTS = Path(__file__).parent / "claims" / "contents.toml"
OURS = "ours"
"""The citation of a statement that nobody else has made."""
_KINDS = {
    "section": "sections",
    "chapter": "sections",
    "appendix": "sections",
    "figure": "figures",
    "table": "tables",
    "example": "examples",
}
_KIND = r"sections?|chapters?|appendix|appendices|figures?|tables?|examples?"
_NUMBER = r"(?:[A-D](?:\.\d+)*|\d+(?:\.\d+)*)[a-f]?(?![\w%])"
_PLACES = re.compile(rf"(?:({_KIND}) )?({_NUMBER})(?: to ({_NUMBER}))?")
_DIGITS = 3
"""No source has a thousand of anything."""
_RUN = rf"(?:(?:, and |, | and | )(?:(?:{_KIND}) )?{_NUMBER}(?: to {_NUMBER})?)+"


@dataclass(frozen=True, slots=True)
class CitedPlace:
    """A part of a source.

    >>> print(CitedPlace("Bittner 2008", "figures", "5.1"))
    Bittner 2008, figure 5.1
    """

    source: str
    kind: str
    """`sections`, `figures`, `tables` or `examples`."""
    number: str

    def __str__(self) -> str:
        return f"{self.source}, {self.kind[:-1]} {self.number}"


@dataclass(frozen=True, slots=True)
class SourceContents:
    """What a source contains, as far as it is known."""

    parts: dict[str, dict[frozenset[str], str]]
    """By kind: numbers of which only the whole is known, and what they are about."""
    undecided: tuple[str, ...]
    """What is not known of it."""
    unchecked: str
    """A citation of places that modules name and nobody has compared with the source: a claim may not cite them."""


@cache
def contents(path: Path = CONTENTS) -> dict[str, SourceContents]:
    """Return what the sources contain, by the name that they have in the bibliography.

    >>> contents()["Bittner 2008"].parts["sections"][frozenset({"8.6.2"})]
    'with subscription pruning'
    """
    document = tomllib.loads(path.read_text("utf-8"))
    return {
        source: SourceContents(
            {
                kind: {frozenset(_span(*key.split(" to "))): about for key, about in parts.items()}
                for kind, parts in entry.items()
                if kind not in ("undecided", "unchecked")
            },
            tuple(entry.get("undecided", ())),
            entry.get("unchecked", ""),
        )
        for source, entry in document.items()
    }


def _span(first: str, last: str = "") -> list[str]:
    """Return all numbers of a span.

    >>> _span("5.9", "5.11"), _span("4"), _span("A.1", "B.2")
    (['5.9', '5.10', '5.11'], ['4'], [])
    """
    if not last:
        return [first]
    (front, _, low), (other, _, high) = first.rpartition("."), last.rpartition(".")
    if front != other or not (low.isdigit() and high.isdigit()) or max(len(low), len(high)) > _DIGITS:
        return []
    return [f"{front}.{number}" if front else str(number) for number in range(int(low), int(high) + 1)]


def cited(text: str, source: str = "") -> list[CitedPlace]:
    """Return the places that a citation names; of `source`, unless it names another.

    >>> [str(place) for place in cited("5.7, figures 5.5 and 5.6: a third", "Bittner 2008")]
    ['Bittner 2008, section 5.7', 'Bittner 2008, figure 5.5', 'Bittner 2008, figure 5.6']
    """
    places = []
    for part in text.split(";"):
        citation = part.partition(":")[0].strip()
        for name in contents():
            if citation.startswith(name):
                source, citation = name, citation.removeprefix(name).lstrip(", ")
        if not source:
            raise LabError(f"{text!r} does not say of which source; expected one of {', '.join(contents())}")
        rest = re.sub(r"[\s,]|\band\b", "", _PLACES.sub("", citation))
        if rest or not citation:
            raise LabError(f"{part.strip()!r} is not a citation; expected something like '5.7, figures 5.5 to 5.8'")
        places += _places(citation, source)
    return places


def cited_in(text: str) -> list[CitedPlace]:
    """Return the places that a longer text cites: a source by its name, and then where in it.

    >>> [str(place) for place in cited_in("The idea is old (Jewel 2004, sections 3.4 and 3.5, in C).")]
    ['Jewel 2004, section 3.4', 'Jewel 2004, section 3.5']
    """
    text = " ".join(text.split())
    names = "|".join(map(re.escape, contents()))
    return [place for source, run in re.findall(rf"({names})({_RUN})", text) for place in _places(run, source)]


def _places(citation: str, source: str) -> list[CitedPlace]:
    places, kind = [], "sections"
    for named, first, last in _PLACES.findall(citation):
        if named:
            kind = next(plural for word, plural in _KINDS.items() if named.startswith(word[:6]))
        numbers = _span(first, last)
        if not numbers:
            raise LabError(f"{first} to {last} of {source} is not a span; expected something like 5.1 to 5.3")
        places += [CitedPlace(source, kind, number) for number in numbers]
    return places


def missing(places: list[CitedPlace]) -> str:
    """Say which of the places that are cited together the source does not have; nothing if it has them all.

    >>> missing(cited("figure 5.6", "Bittner 2008"))
    'Bittner 2008, figure 5.6 is only known together with 5.5, 5.7, 5.8'
    >>> missing(cited("5.4.9", "Jewel 2004"))
    'Jewel 2004, section 5.4.9 is not in contents.toml'
    """
    for place in places:
        parts = contents()[place.source].parts.get(place.kind, {})
        whole = next((numbers for numbers in parts if place.number in numbers), None)
        if whole is None:
            return f"{place} is not in {CONTENTS.name}"
        named = {each.number for each in places if (each.source, each.kind) == (place.source, place.kind)}
        if not whole <= named:
            return f"{place} is only known together with {', '.join(sorted(whole - named))}"
    return ""
