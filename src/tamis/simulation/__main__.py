"""Run the scenario of a seed again, and say what went wrong: `python -m tamis.simulation 42`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tamis.simulation.counting import measured
from tamis.simulation.scenarios import Scenario, simulate

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(words: Sequence[str]) -> int:
    """Run the scenarios of some seeds; return 1 if one of them had problems, 2 if a word is not a seed.

    >>> main(["42"])
    Scenario(seed=42, ...)
      ...
      nothing went wrong
    0
    """
    seeds: list[int] = []
    for word in words:
        try:
            seeds.append(int(word))
        except ValueError:
            print(
                f"{word!r} is not a seed; a seed is a whole number, as in: python -m tamis.simulation 42",
                file=sys.stderr,
            )
            return 2
    failed = 0
    for seed in seeds:
        scenario = Scenario.of_seed(seed)
        print(scenario)
        run = simulate(scenario)
        sent = ", ".join(f"{count} {kind}" for kind, count in sorted(run.counters.messages.items()))
        print(f"  sent: {sent or 'nothing'}; delivered: {run.counters.delivered_count}")
        print(f"  left: {measured(run.network)['entries']} entries")
        print("\n".join(f"  {problem}" for problem in run.problems) or "  nothing went wrong")
        failed += bool(run.problems)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["0"]))
