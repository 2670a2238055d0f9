"""Why did a subscriber get an event, or why not? The reasons, from what the node knows and what the log has.

The node says which versions of which subscriptions were in force for the event, and what became of its delivery; the
log has the event itself. From both comes one sentence, and for each subscription the explanation of its condition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.language.explanation import Explanation, explain
from tamis.language.meaning import holds
from tamis.service.standing import is_stateful
from tamis.standing import interest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tamis.language.schema import Schema
    from tamis.service.messages import DeliveryFacts, VersionFacts


class Judged(NamedTuple):
    """A version of a subscription, and what it says of the event."""

    version: VersionFacts
    explanation: Explanation
    is_withheld: bool
    """Whether what was asked for matches, and the part of it that its owner may receive does not."""

    @property
    def is_remembered(self) -> bool:
        """Is the event one of those that it remembers, and tells of when others come?"""
        return self.version.counts and self.explanation.truth is True and is_stateful(self.version.effective)

    @property
    def matches(self) -> bool:
        """Does the event count for it?"""
        return self.version.counts and self.explanation.truth is True and not is_stateful(self.version.effective)


def judged(versions: Iterable[VersionFacts], record: Mapping[str, Any], schema: Schema | None) -> list[Judged]:
    """Return what each version says of an event."""
    verdicts = []
    for version in versions:
        explanation = explain(interest(version.effective), record, schema)
        is_withheld = explanation.truth is not True and holds(interest(version.asked), record, schema)
        verdicts.append(Judged(version, explanation, is_withheld))
    return verdicts


def sentence(name: str, verdicts: list[Judged], delivery: DeliveryFacts, is_dead: bool) -> str:
    """Return in one sentence why a subscriber got an event, or why not."""
    if not verdicts:
        return f"{name} has no subscriptions."
    if not any(each.matches for each in verdicts):
        if any(each.is_remembered for each in verdicts):
            return (
                f"A subscription of {name} remembers it, together with other events; "
                "whatever follows from them is delivered at a position of its own."
            )
        if any(each.version.counts and each.is_withheld for each in verdicts):
            return f"{name} asked for it, but it is not among what its owner may receive."
        if any(each.version.counts for each in verdicts):
            return f"No subscription of {name} that was in force matches it."
        if any(each.explanation.truth is True for each in verdicts):
            return (
                f"A subscription of {name} matches it, but was not in force when it came; "
                "a replay that is over is not remembered, nor a text that was replaced once everything before is done."
            )
        return (
            f"No subscription of {name} that is known was in force when it came, and none matches it; "
            "a text that was replaced is known until everything before is done."
        )
    if is_dead:
        return f"It is a dead letter of {name}."
    count = f"{delivery.attempts} time{'s' * (delivery.attempts != 1)}"
    return {
        "done": f"{name} has said that it is done.",
        "sent": f"It was delivered to {name} {count}, and is not done.",
        "again": f"It was delivered to {name} {count}, and waits to come again.",
        "waiting": f"It is the turn of {name} soon: it waits to be sent.",
        "ahead": f"{name} has not come to it yet.",
    }[delivery.state]
