"""How is a lab run, and what is left of it?

Experiments run one after the other. What they came to is a report: one HTML page that needs nothing beside it, and
the same as `results.json` for programs.
"""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tamis_lab.experiments import distributed, filtering, routing, topk
from tamis_lab.experiments.base import OUTCOMES, SCALES, Experiment, Result, Scale
from tamis_lab.experiments.errors import LabError, MissingPlotsError
from tamis_lab.experiments.repeats import merged
from tamis_lab.experiments.statements import other_sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tamis_lab.experiments.base import Claim

LABS: dict[str, tuple[Experiment, ...]] = {
    "filtering": filtering.EXPERIMENTS,
    "topk": topk.EXPERIMENTS,
    "routing": routing.EXPERIMENTS,
    "distributed": distributed.EXPERIMENTS,
}
"""Every lab by its name."""
PAGE, RESULTS = "index.html", "results.json"
_PACKAGES = ("tamis", "numba", "numpy", "pyarrow")


@dataclass(frozen=True, slots=True)
class Report:
    """What a lab came to."""

    lab: str
    scale: Scale
    seed: int
    outcomes: tuple[tuple[Experiment, Result, float], ...]
    """Each experiment, its result, and the seconds that it took."""
    circumstances: dict[str, str] = field(default_factory=dict)
    repeats: int = 1
    """How often each experiment ran, with `seed` and the numbers after it."""

    @property
    def other_sizes(self) -> dict[str, str]:
        """By experiment, in which sizes a full run differs from what was published, and why; nothing of other runs."""
        return other_sizes(self.lab) if self.scale.name == "full" else {}

    @property
    def claims(self) -> list[Claim]:
        """All claims, in order."""
        return [claim for _, result, _ in self.outcomes for claim in result.claims]

    @property
    def counts(self) -> dict[str, int]:
        """How many statements agree, agree roughly, do not agree, and were not measured."""
        outcomes = Counter(claim.verdict.outcome for claim in self.claims)
        return {outcome: outcomes[outcome] for outcome in OUTCOMES}

    @property
    def summary(self) -> str:
        """The counts in words; what agrees roughly is not said to agree."""
        parts = [f"{count} {outcome}" for outcome, count in self.counts.items() if count or outcome != OUTCOMES[-1]]
        return f"Of {len(self.claims)} published statements {', '.join(parts)}"

    def as_dict(self) -> dict[str, Any]:
        """Return the report as data."""
        return {
            "lab": self.lab,
            "scale": asdict(self.scale),
            "seed": self.seed,
            "repeats": self.repeats,
            **self.circumstances,
            "counts": self.counts,
            "experiments": [
                {
                    "key": experiment.key,
                    "question": experiment.question,
                    "source": experiment.source,
                    "seconds": round(seconds, 3),
                    "setup": result.setup,
                    "other_size": self.other_sizes.get(experiment.key, ""),
                    "claims": [asdict(claim) for claim in result.claims],
                    "rows": list(result.rows),
                }
                for experiment, result, seconds in self.outcomes
            ],
        }


def run(
    lab: str,
    *,
    scale: str = "default",
    seed: int = 1,
    repeats: int = 1,
    only: Sequence[str] = (),
    tell: Callable[[int, int, str], None] = lambda done, count, doing: None,
) -> Report:
    """Run the experiments of a lab, or only some of them; `tell` hears how many are done and what is being done.

    With `repeats`, each experiment runs so often, with other seeds, and what it comes to has error bars.
    """
    experiments = chosen(lab, only)
    if not find_spec("matplotlib"):
        raise MissingPlotsError
    size = SCALES[scale]
    outcomes = []
    for done, experiment in enumerate(experiments):

        def report_progress(doing: str, key: str = experiment.key, done: int = done) -> None:
            tell(done, len(experiments), f"{key}: {doing}")

        report_progress("")
        start = perf_counter()
        seeds = range(seed, seed + repeats)
        result = merged([experiment.run(size, each, report_progress) for each in seeds], seeds)
        outcomes.append((experiment, result, perf_counter() - start))
    tell(len(experiments), len(experiments), "")
    return Report(lab, size, seed, tuple(outcomes), _circumstances(), repeats)


def chosen(lab: str, only: Sequence[str]) -> tuple[Experiment, ...]:
    """Return the experiments of a lab, or those of them that were asked for.

    >>> [experiment.key for experiment in chosen("filtering", ["overlap", "length"])]
    ['length', 'overlap']
    """
    known = LABS[lab]
    keys = [experiment.key for experiment in known]
    for key in only:
        if key not in keys:
            raise LabError(f"the lab {lab!r} has no experiment {key!r}, only {', '.join(keys)}")
    return tuple(experiment for experiment in known if not only or experiment.key in only)


def write(report: Report, folder: Path) -> tuple[Path, Path]:
    """Write the page and the results into a folder; return where they are."""
    from tamis_lab.experiments.page import written  # here, because it draws, and nothing else needs to

    folder.mkdir(parents=True, exist_ok=True)
    page, results = folder / PAGE, folder / RESULTS
    page.write_text(written(report), encoding="utf-8")
    results.write_text(json.dumps(report.as_dict(), indent=2, allow_nan=False) + "\n", encoding="utf-8")
    return page, results


def _circumstances() -> dict[str, str]:
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{processor()}, {os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "python": platform.python_version(),
        "versions": ", ".join(f"{package} {version(package)}" for package in _PACKAGES),
    }


def processor(described: Path = Path("/proc/cpuinfo")) -> str:
    """Return the model of the processor, if the system tells it."""
    try:
        lines = described.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(filter(None, models), platform.processor() or "a processor that is not named")
