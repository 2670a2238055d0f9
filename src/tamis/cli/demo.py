"""What does it look like at work?

A stream of auction events meets a dozen subscriptions in the compiled matcher, and a short report says what came of it;
some of the events are asked about one by one by the definition of what matches, which has to say the same.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.bar import Bar
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tamis.cli import auction
from tamis.cli.lessons import Example
from tamis.cli.output import NO, AsJson, show, show_explanation, to_complain, to_people, to_programs
from tamis.language import Explanation, Expression, explain, holds, parse
from tamis.language.expressions import And
from tamis.language.measures import predicate_count

if TYPE_CHECKING:
    import pyarrow as pa

    from tamis.matching import Matcher

EXAMPLES = (
    Example("tamis demo", "Twenty thousand events, a few seconds."),
    Example("tamis demo --events 200 --seed 7", "Another, shorter stream."),
)
NOTES = ("The same seed gives the same events and the same matches; only the times differ.",)

MORE = "The same matcher takes a million subscriptions (tamis.Matcher), and tamis pipeline runs it on Spark."
_JUDGED = 100
"""So many events are asked about by the definition too."""

Trees = dict[str, Expression]
Events = list[dict[str, Any]]
Matches = dict[str, list[int]]
"""The events that matched, by subscription; an event is its index in the stream."""


@dataclass(frozen=True, slots=True)
class Case:
    """One event and one subscription that are worth a look. People count events from 1."""

    subscription: str
    number: int
    title: str
    explanation: Explanation

    def as_dict(self) -> dict[str, Any]:
        """The case as data."""
        return {"subscription": self.subscription, "event": self.number, "explanation": self.explanation.as_dict()}


def demo(
    event_count: Annotated[
        int, typer.Option("--events", min=1, max=1_000_000, help="How many events to match.")
    ] = 20_000,
    seed: Annotated[int, typer.Option(help="The random seed of the events.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Match a stream of book auctions against a dozen subscriptions, and report."""
    trees = {name: parse(text) for name, text in auction.SUBSCRIPTIONS.items()}
    events = list(auction.events(event_count, seed))
    console = to_people()
    if not as_json:
        _show_subscriptions(console)
    with _status("Getting the kernels ready; the first time that takes a while"):
        table = as_table(events)
        matcher = ready(trees, table)
    with _status("Matching"):
        start_s = perf_counter()
        matches = matched(matcher, table)
        elapsed_s = perf_counter() - start_s
    judged = events[:_JUDGED]
    wrong = len(pairs(by_definition(trees, judged)) ^ {pair for pair in pairs(matches) if pair[1] < len(judged)})
    verdict = _verdict(len(judged) * len(trees), wrong)
    match, near_miss = a_match(trees, events, matches), a_near_miss(trees, events)
    if as_json:
        document = {
            "events": event_count,
            "seed": seed,
            "algorithm": matcher.algorithm,
            "seconds": round(elapsed_s, 3),
            "events_per_second": round(event_count / elapsed_s),
            "matches": sum(map(len, matches.values())),
            "subscriptions": [
                {"name": name, "text": text, "matches": len(matches[name])}
                for name, text in auction.SUBSCRIPTIONS.items()
            ],
            "match": match.as_dict() if match else None,
            "near_miss": near_miss.as_dict() if near_miss else None,
            "judged_pairs": len(judged) * len(trees),
            "wrong": wrong,
        }
        to_programs(document)
    else:
        _show_counts(console, matches, event_count, elapsed_s)
        _show_case(console, match, "matches")
        _show_case(console, near_miss, "just misses")
        console.print(Text(verdict, "italic"))
        console.print(Text(MORE, "italic"))
    if wrong:
        raise typer.Exit(NO)


def as_table(events: Events) -> "pa.Table":
    """Return events as a table, which is how many of them come in at once."""
    import pyarrow as pa

    names = dict.fromkeys(name for event in events for name in event)
    return pa.table({name: [event.get(name) for event in events] for name in names})


def ready(trees: Trees, events: "pa.Table") -> "Matcher":
    """Return a matcher that has its kernels compiled and has seen some events."""
    from tamis.matching import Matcher

    matcher = Matcher()
    matcher.add_many(trees)
    matched(matcher, events.slice(0, 64))
    return matcher


def matched(matcher: "Matcher", events: "pa.Table") -> Matches:
    """Return which events match each subscription."""
    matches: Matches = {name: [] for name in auction.SUBSCRIPTIONS}
    table = matcher.match_batch(events)
    for index, name in zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True):
        matches[name].append(index)
    return matches


def by_definition(trees: Trees, events: Events) -> Matches:
    """Return the same, by asking every subscription about every event."""
    return {name: [index for index, event in enumerate(events) if holds(tree, event)] for name, tree in trees.items()}


def pairs(matches: Matches) -> set[tuple[str, int]]:
    """Return matches as pairs of a subscription and an event."""
    return {(name, index) for name, indices in matches.items() for index in indices}


def _verdict(count: int, wrong: int) -> str:
    outcome = "all as found" if not wrong else f"{wrong:,} not as found, which is a mistake of ours: please report it"
    return f"The definition of what matches, asked about {count:,} pairs one by one: {outcome}."


def a_match(trees: Trees, events: Events, matches: Matches) -> Case | None:
    """Return a match to explain: of a subscription with many conditions that do not all have to hold."""
    names = [name for name, tree in trees.items() if matches[name] and not isinstance(tree, And)]
    if not names:
        return None
    name = max(names, key=lambda name: predicate_count(trees[name]))
    return _case(name, trees[name], matches[name][0], events)


def a_near_miss(trees: Trees, events: Events) -> Case | None:
    """Return an event that fails a subscription by its last condition only, after as many as possible."""
    conjunctions = {name: tree.operands for name, tree in trees.items() if isinstance(tree, And)}
    for name in sorted(conjunctions, key=lambda name: -len(conjunctions[name])):
        for index, event in enumerate(events):
            *others, last = (holds(part, event) for part in conjunctions[name])
            if all(others) and not last:
                return _case(name, trees[name], index, events)
    return None


def _case(name: str, tree: Expression, index: int, events: Events) -> Case:
    return Case(name, index + 1, events[index]["title"], explain(tree, events[index]))


@contextmanager
def _status(activity: str) -> Iterator[None]:
    console = to_complain()  # the report alone goes to standard output
    if console.is_terminal:
        with console.status(activity):
            yield
    else:
        yield


# -- The report


def _show_subscriptions(console: Console) -> None:
    show(console, Text("The subscriptions", "bold"))
    console.print()
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, text in auction.SUBSCRIPTIONS.items():
        table.add_row(Text(name, "cyan", no_wrap=True), text)
    console.print(table)
    console.print()


def _show_counts(console: Console, matches: Matches, event_count: int, elapsed_s: float) -> None:
    counts = {name: len(indices) for name, indices in matches.items()}
    met = f"{event_count:,} event{'s' if event_count > 1 else ''} met {len(counts)} subscriptions"
    show(console, Text(f"{met}: {sum(counts.values()):,} matches", "bold"))
    show(console, Text(f"in {elapsed_s:.2f} s, {event_count / elapsed_s:,.0f} events a second"))
    console.print()
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(ratio=1)
    most = max(1, *counts.values())
    for name, count in sorted(counts.items(), key=lambda pair: -pair[1]):
        table.add_row(Text(name, "cyan"), f"{count:,}", Bar(most, 0, count, color="green"))
    console.print(table)
    console.print()


def _show_case(console: Console, case: Case | None, verb: str) -> None:
    if case is None:
        return
    line = Text.assemble((f"Event {case.number:,}", "bold"), f", “{case.title}”, {verb} ", (case.subscription, "cyan"))
    show(console, line)
    console.print()
    show_explanation(console, case.explanation)
    console.print()
