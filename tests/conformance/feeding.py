"""Feed matching algorithms the worst texts, in a process that may take so much memory and so much work.

    python -m tests.conformance.feeding short|bad|worst ALGORITHM...

prints a line for each algorithm and text, as JSON: refused by which error, or how many answers were wrong. A text that
takes too much ends the process: the operating system says so, and no clock does. `short` leaves the long texts out and
feeds two thirds of the others, `bad` feeds a tenth of the long ones, and `worst` feeds all at their full length.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import process_time

import tamis
from tamis.errors import TamisError
from tamis.matching import Matcher
from tests.worst_texts import LONG, WORST_TEXTS, WorstText, event

MEMORY_BYTES = 4 << 30
"""Of addresses, most of which belong to compiled code and its compiler, and hold nothing."""
CPU_S = {"short": 240, "bad": 240, "worst": 900}
"""For all of them; before there was a budget, one text took minutes and gigabytes."""
EVENTS = 40
"""Enough for a block."""


def fed(algorithm: str, text: str) -> dict[str, object]:
    """Register a text beside a plain one, match events one by one and together, explain, save, load and match again."""
    matcher = Matcher(algorithm)
    matcher.add("plain", "x >= 0")
    try:
        matcher.add("worst", text)
    except TamisError as refusal:
        assert matcher.match({"x": 1}) == ["plain"], "what is refused stays outside"
        return {"refused": type(refusal).__name__}
    expression = tamis.parse(text)
    chance = Random(text)
    events = [event(chance) for _ in range(EVENTS)]
    few = events[:2]
    # The reference meaning is asked a few times only: it is linear in the text, and some texts are long.
    expected = {number: tamis.holds(expression, each) for number, each in enumerate(few)}
    wrong = sum(("worst" in matcher.match(each)) != expected[number] for number, each in enumerate(few))
    table = matcher.match_batch(events).to_pydict()
    found = {number for number, name in zip(table["event"], table["subscription"], strict=True) if name == "worst"}
    wrong += sum((number in found) != truth for number, truth in expected.items())
    wrong += (matcher.explain("worst", few[0]).truth is True) != expected[0]
    matcher.add("late", text)  # one that is still open, and asks the same
    wrong += ("late" in matcher.match(few[1])) != expected[1]
    matcher.remove("late")
    with TemporaryDirectory() as folder:
        matcher.save(Path(folder) / "matcher")
        loaded = Matcher.load(Path(folder) / "matcher")
        wrong += ("worst" in loaded.match(few[0])) != expected[0]
    return {"wrong": wrong}


def texts(how: str) -> list[WorstText]:
    """Return the texts that are fed: the long ones too, or not."""
    return [text for text in WORST_TEXTS if how != "short" or len(text.worst) < LONG]


def written(text: WorstText, how: str) -> str:
    """Return a text of the size that is wanted: two thirds of a short one are still far beyond what needs a budget."""
    if how == "short":
        return text.text(text.size * 2 // 3)
    return text.worst if how == "worst" else text.bad


def main(how: str, algorithms: list[str]) -> None:
    """Feed all texts, at the size that is wanted."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S[how], CPU_S[how]))
    for algorithm in algorithms:
        for text in texts(how):
            start = process_time()
            outcome = fed(algorithm, written(text, how))
            row = {"algorithm": algorithm, "text": text.name, **outcome, "cpu_s": round(process_time() - start, 2)}
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
