"""What was published, statement by statement, and who judges it?

The statements are data: `claims/LAB.toml` has, for each experiment, what was said, where, what of it is compared, the
figure or direction that was published, and how far ours may be from it. An experiment measures, names the statement
that a measurement is about, and leaves the rest to the judge, which is the same for all of them.

    [["auction time"]]
    key = "time"
    text = "Time of Boolean filtering for that of counting, all classes, at 500,000 subscriptions"
    where = "5.7, figures 5.5 to 5.8"
    compare = "ratio"                 one of `JUDGEMENTS`
    published = 0.73
    about = 1.5                       the tolerance, and other options of the judgement

`{word}` in a text stands for what the experiment says at that place. A statement that was made of several things names
the words that tell them apart (`each`); then any value may be a table by these words. A `remark` says why ours may come
out otherwise; one that many statements have stands under a name in `[remarks]`. A `caveat` says what our figure depends
on even where it agrees; `[caveats]` names one of `CAVEATS` for all statements of an experiment. `[sizes]` says in which
sizes of an experiment a full run differs from what was published, and why; who is not in it has the published ones, or
there are none. `[sources]` says whose statements an experiment compares with; `where` is read (`citations`), and a
place that is not in the contents of its source is refused.
"""

from __future__ import annotations

import inspect
import tomllib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any

from tamis_lab.experiments import citations, verdicts
from tamis_lab.experiments.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis_lab.experiments.base import Claim

FOLDER = Path(__file__).parent / "claims"
JUDGEMENTS: dict[str, Callable[..., Claim]] = {
    "ratio": verdicts.by_ratio,
    "added": verdicts.by_added,
    "direction": verdicts.by_direction,
    "equality": verdicts.by_equality,
    "value": verdicts.by_value,
    "limit": verdicts.by_limit,
    "order": verdicts.by_order,
    "trend": verdicts.by_trend,
    "line": verdicts.by_line,
    "share": verdicts.by_share,
}
"""What can be compared, and who compares it."""
CAVEATS = {
    "times": "Processor times of compiled loops: a ratio depends on this machine's caches, and varies by some percent.",
    "counts": "Counted, not timed: it depends on the load that was generated, not on the machine.",
    "bytes": "Bytes of our arrays, which are more compact than objects and lists of the time.",
    "messages": "Counted between simulated brokers, which have neither queues nor limits of bandwidth.",
    "streams": "Counted on generated streams: another seed or another distribution gives other figures.",
    "processes": "Real brokers on one machine: what is counted is exact, times and memory depend on the machine.",
    "mixed": "Times are of compiled loops on this machine, bytes are of our arrays; both vary with machine and load.",
    "definition": "Follows from definitions, so only a mistake of ours could change it.",
}
"""What figures depend on, for all statements of an experiment; a statement may say something else."""
_FIELDS = ("key", "text", "where", "compare", "published")
_MEASURED = {"at", "details"}
"""What only a run knows."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One published statement, or one that was made of several things."""

    key: str
    text: str
    where: Any
    compare: str
    published: Any
    """A figure, words, or an order of names; None if it follows from the sizes of the run."""
    each: tuple[str, ...]
    """The words that tell apart what it was said of."""
    options: dict[str, Any]
    caveat: str = ""

    @property
    def words(self) -> set[str]:
        """The words of the text that an experiment fills in."""
        return {name for _, name, _, _ in Formatter().parse(self.text) if name}


@cache
def statements(lab: str, folder: Path = FOLDER) -> dict[str, dict[str, Statement]]:
    """Return the statements of a lab, by experiment and key.

    >>> statements("filtering")["auction time"]["time"].published
    0.73
    """
    document = tomllib.loads((folder / f"{lab}.toml").read_text("utf-8"))
    remarks, sources, caveats, _ = (document.pop(name, {}) for name in ("remarks", "sources", "caveats", "sizes"))
    without = [experiment for experiment in document if caveats.get(experiment) not in CAVEATS]
    if without:
        raise LabError(f"{lab}.toml: [caveats] has none for {', '.join(without)}; expected one of {', '.join(CAVEATS)}")
    for entry in (entry for entries in document.values() for entry in entries if "remark" in entry):
        entry["remark"] = remarks.get(entry["remark"], entry["remark"])
    return {
        experiment: _by_key(
            f"{lab}.toml, {experiment}",
            [
                _read(f"{lab}.toml, {experiment}", entry, sources.get(experiment, ""), CAVEATS[caveats[experiment]])
                for entry in entries
            ],
        )
        for experiment, entries in document.items()
    }


def other_sizes(lab: str, folder: Path = FOLDER) -> dict[str, str]:
    """Return, for experiments of a lab, how a full run differs from the published sizes, and why.

    >>> other_sizes("filtering")["conjunctive load"][:46]
    'Published are up to 4,000,000 subscriptions; a'
    """
    sizes: dict[str, str] = tomllib.loads((folder / f"{lab}.toml").read_text("utf-8")).get("sizes", {})
    return sizes


def _by_key(place: str, statements: list[Statement]) -> dict[str, Statement]:
    by_key = {statement.key: statement for statement in statements}
    if len(by_key) != len(statements):
        raise LabError(f"{place}: two statements have one key; expected a key for each")
    return by_key


def _read(place: str, entry: dict[str, Any], source: str, caveat: str) -> Statement:
    """Return a statement, having seen that the judge can take it."""
    place = f"{place}, {entry.get('key', 'a statement without key')!r}"
    missing = [name for name in _FIELDS[:-1] if not entry.get(name)]
    if missing:
        raise LabError(f"{place}: {', '.join(missing)} missing; a statement has {', '.join(_FIELDS)}")
    if entry["compare"] not in JUDGEMENTS:
        raise LabError(f"{place}: there is no comparison {entry['compare']!r}, only {', '.join(JUDGEMENTS)}")
    options = {name: value for name, value in entry.items() if name not in (*_FIELDS, "each", "caveat")}
    taken = inspect.signature(JUDGEMENTS[entry["compare"]]).parameters.keys() - {"statement", "where", *_MEASURED}
    unknown = options.keys() - taken
    if unknown:
        raise LabError(f"{place}: a comparison by {entry['compare']} takes no {', '.join(sorted(unknown))}")
    statement = Statement(
        entry["key"],
        entry["text"],
        entry["where"],
        entry["compare"],
        entry.get("published"),
        tuple(entry.get("each", ())),
        options,
        entry.get("caveat", caveat),
    )
    if not set(statement.each) <= statement.words:
        raise LabError(f"{place}: each of {', '.join(statement.each)} is to be a word of the text")
    _check_citations(place, statement.where, source)
    return statement


def _check_citations(place: str, where: Any, source: str) -> None:
    for text in where.values() if isinstance(where, dict) else [where]:
        if text == citations.OURS:
            continue
        try:
            problem = citations.missing(citations.cited(text, source))
        except LabError as error:
            problem = str(error)
        if problem:
            raise LabError(f"{place}: {problem}")


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges what an experiment measured, by what was published.

    >>> judged = Judge("filtering", "auction time")
    >>> claim = judged("time", 0.8, at="at 1,000")
    >>> claim.key, claim.published, claim.ours, claim.verdict
    ('time', '0.73 times', '0.80 times, at 1,000', <Judgement.AGREES: 'agrees'>)
    """

    lab: str
    experiment: str

    def __call__(self, key: str, *measured: Any, **given: Any) -> Claim:
        """Compare what was measured with a statement.

        What is given are the words of the text, and what only the run knows: where it was measured, a reason why it may
        have come out otherwise.
        """
        statement = statements(self.lab)[self.experiment][key]
        words = {name: given.pop(name) for name in statement.words}
        which = ", ".join(str(words[name]) for name in statement.each)

        def of_these(value: Any) -> Any:
            return value[which] if isinstance(value, dict) else value

        published = given.pop("published") if statement.published is None else of_these(statement.published)
        assert not given.keys() & statement.options.keys(), "a run does not change what was written down beforehand"
        options = {name: of_these(value) for name, value in statement.options.items()} | given
        claim = JUDGEMENTS[statement.compare](
            statement.text.format(**words), published, *measured, where=of_these(statement.where), **options
        )
        return replace(claim, key=f"{key} ({which})" if which else key, caveat=statement.caveat)
