"""What the tests play: the same happenings for the definition and for the processor."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tamis.standing import NaiveStanding, Standing

Happening = tuple[Any, ...]
"""("event", event, at, id) | ("advance", at) | ("withdraw", id, at) | ("add", id, text) | ("remove", id)"""


def play(processor: Any, happenings: list[Happening]) -> list[list[Any]]:
    """Return what a processor tells, happening by happening."""
    told: list[list[Any]] = []
    for kind, *arguments in happenings:
        method = getattr(processor, "process" if kind == "event" else kind)
        told.append(method(*arguments) or [])
    return told


def told(text: str, events: list[Any], *, until: float | None = None, processor: type = Standing, **options: Any):
    """Return what one subscription is told of events, given as (time, event) pairs: ids are 1, 2, ..."""
    standing = processor(**options)
    standing.add("s", text)
    notifications = [
        each for number, (at, event) in enumerate(events, start=1) for each in standing.process(event, at, number)
    ]
    if until is not None:
        notifications += standing.advance(until)
    return [
        (
            each.events if len(each.events) > 1 else each.events[0],
            each.at,
            *(() if each.change is None else (each.change,)),
        )
        for each in notifications
    ]


PROCESSORS = (NaiveStanding, Standing)

# -- Small worlds: few attributes and values, so that steps often match, tie and repeat.

values = st.sampled_from([0, 1, 2, None, 1.0, "x", float("nan")])
events = st.fixed_dictionaries({}, optional={"a": values, "b": values, "g": st.sampled_from([0, 1, None, True, 1.0])})
CONDITIONS = (
    "a = 1",
    "a > 0",
    "a < 2",
    "b = 1",
    "a = 1 AND b = 1",
    "NOT a = 1",
    "a IS NULL",
    "TRUE",
    "a = 1 OR b = 2",
    "b <> 1",
)
conditions = st.sampled_from(CONDITIONS)
spans = st.sampled_from(["0.5 SECONDS", "1 SECOND", "2 SECONDS", "3 SECONDS", "1000000000 WEEKS"])
pers = st.sampled_from(["", " PER g", " PER g, b"])


@st.composite
def sequences(draw: st.DrawFn) -> str:
    """Draw the text of a sequence."""
    count = draw(st.integers(2, 3))
    names = [draw(st.sampled_from([None, name])) for name in ("p", "q", "r")]
    text = "SEQUENCE "
    for index in range(count):
        condition = draw(conditions)
        earlier = [name for name in names[:index] if name]
        if earlier and draw(st.booleans()):
            name = draw(st.sampled_from(earlier))
            operator = draw(st.sampled_from(["=", "<", ">=", "<>", "<=>"]))
            attribute = draw(st.sampled_from("ab"))
            condition = draw(st.sampled_from(["{0} AND {1}", "{0} OR {1}", "NOT ({0} AND {1})", "{1}"])).format(
                condition, f"{attribute} {operator} {name}.{draw(st.sampled_from('ab'))}"
            )
        is_last = index == count - 1
        if is_last and draw(st.integers(0, 3)) == 0:
            text += f" THEN NOT ({condition}) WITHIN {draw(spans)}"
            break
        link = "" if index == 0 else draw(st.sampled_from([" THEN ", " THEN ", " SAME OR THEN "]))
        text += f"{link}({condition})" + (f" AS {names[index]}" if names[index] else "")
    else:
        if draw(st.booleans()):
            text += f" WITHIN {draw(spans)}"
    if draw(st.integers(0, 3)) == 0 and "WITHIN 0.5" not in text:
        text += " AFTER 1 SECOND"
    return text + draw(pers) + draw(st.sampled_from(["", " TAKING FIRST", " TAKING EVERY", " TAKING EACH ONCE"]))


@st.composite
def changes(draw: st.DrawFn) -> str:
    """Draw the text of a change."""
    text = f"CHANGE {draw(st.sampled_from(['TO', 'OF']))} {draw(conditions)}"
    if draw(st.booleans()):
        text += f" UNTIL {draw(conditions)}"
    text += draw(pers)
    if draw(st.booleans()):
        text += f" WHERE {draw(conditions)}"
    if draw(st.integers(0, 2)) == 0:
        text += f" FORGET AFTER {draw(spans)}"
    return text


texts = st.one_of(sequences(), changes(), conditions)
gaps = st.sampled_from([0.0, 0.0, 0.5, 1.0, 1.0, 2.0, 5.0])


@st.composite
def stories(draw: st.DrawFn, lateness: float = 0.0, length: int = 14) -> list[Happening]:
    """Draw happenings in order of time, or out of it by no more than the lateness."""
    happenings: list[Happening] = [("add", f"s{number}", draw(texts)) for number in range(draw(st.integers(1, 4)))]
    present = [happening[1] for happening in happenings]
    now, next_number = 0.0, len(present)
    count = draw(st.integers(3, length))
    for number in range(count):
        now += draw(gaps)
        at = now - draw(st.sampled_from([0.0, 0.5, 1.0])) if lateness else now
        at = max(at, now - lateness)
        match draw(st.integers(0, 11)):
            case 0:
                happenings.append(("advance", now))
            case 1:
                happenings.append(("withdraw", draw(st.integers(0, count)), at))
            case 2:
                happenings.append(("add", f"s{next_number}", draw(texts)))
                present.append(f"s{next_number}")
                next_number += 1
            case 3 if present:
                happenings.append(("remove", present.pop(draw(st.integers(0, len(present) - 1)))))
            case 4:
                happenings.append(("event", draw(events), at, draw(st.integers(0, count))))  # perhaps it comes again
            case 5:
                happenings.append(("event", draw(events), at, f"e{number}", at + draw(gaps)))  # it expires
            case _:
                happenings.append(("event", draw(events), at, None))
    happenings.append(("advance", now + draw(gaps)))
    return happenings
