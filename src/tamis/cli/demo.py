"""What does it look like at work?

A stream of auction events meets a dozen subscriptions, and a short report says what came of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Annotated, Any

import typer
from rich.bar import Bar
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tamis.cli import auction
from tamis.cli.lessons import Example
from tamis.cli.output import AsJson, show, show_explanation, to_complain, to_people, to_programs
from tamis.language import Explanation, Expression, explain, holds, parse
from tamis.language.expressions import And
from tamis.language.measures import predicate_count

EXAMPLES = (
    Example("tamis demo", "Two thousand events, a few seconds."),
    Example("tamis demo --events 200 --seed 7", "Another, shorter stream."),
)
NOTES = ("The same seed gives the same events and the same matches; only the times differ.",)

HONESTLY = (
    "This was the reference evaluator, which asks every subscription about every event: it is the definition of what "
    "matches, and not made for speed. The compiled matcher, tamis.Matcher, gives the same answers for a million "
    "subscriptions, and tamis pipeline runs it on Spark."
)

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
    ] = 2000,
    seed: Annotated[int, typer.Option(help="What decides the events.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Match a stream of book auctions against a dozen subscriptions, and report."""
    trees = {name: parse(text) for name, text in auction.SUBSCRIPTIONS.items()}
    events = list(auction.events(event_count, seed))
    console = to_people()
    if not as_json:
        _show_subscriptions(console)
    start_s = perf_counter()
    matches = matched(trees, _with_progress(events))
    elapsed_s = perf_counter() - start_s
    match, near_miss = a_match(trees, events, matches), a_near_miss(trees, events)
    if as_json:
        document = {
            "events": event_count,
            "seed": seed,
            "evaluator": "reference",
            "seconds": round(elapsed_s, 3),
            "events_per_second": round(event_count / elapsed_s),
            "matches": sum(map(len, matches.values())),
            "subscriptions": [
                {"name": name, "text": text, "matches": len(matches[name])}
                for name, text in auction.SUBSCRIPTIONS.items()
            ],
            "match": match.as_dict() if match else None,
            "near_miss": near_miss.as_dict() if near_miss else None,
            "note": HONESTLY,
        }
        to_programs(document)
    else:
        _show_counts(console, matches, event_count, elapsed_s)
        _show_case(console, match, "matches")
        _show_case(console, near_miss, "just misses")
        console.print(Text(HONESTLY, "italic"))


def matched(trees: Trees, events: Iterable[dict[str, Any]]) -> Matches:
    """Return which events match each subscription, by asking every one about every event."""
    matches: Matches = {name: [] for name in trees}
    for index, event in enumerate(events):
        for name, tree in trees.items():
            if holds(tree, event):
                matches[name].append(index)
    return matches


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


def _with_progress(events: Events) -> Iterable[dict[str, Any]]:
    from rich.progress import track  # here, so that no other command waits for it

    console = to_complain()  # the report alone goes to standard output
    return track(events, "Matching", console=console, transient=True, disable=not console.is_terminal)


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
    told = Text.assemble((f"Event {case.number:,}", "bold"), f", “{case.title}”, {verb} ", (case.subscription, "cyan"))
    show(console, told)
    console.print()
    show_explanation(console, case.explanation)
    console.print()
