"""How much memory do the classes of the auction scenario take?

Class 1 sits on its turning point, classes 2 and 3 far beyond theirs. The thesis prints the verdicts; the ratios follow
from its formulas and its table of characteristics. They are compared with the memory that was allocated
(`own_memory`); the bytes of the structures that the formulas count stand beside it. For all classes together, a process
of its own registers them with each algorithm, and what it has resident is compared, too (`resident`).
"""

from __future__ import annotations

from dataclasses import replace

from tamis.language import parse
from tamis_lab.experiments.base import Claim, Curve, Experiment, Judgement, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.books import books
from tamis_lab.experiments.filtering import resident
from tamis_lab.experiments.filtering.own_memory import ALLOCATED, own_memory
from tamis_lab.experiments.filtering.subjects import A_TREES, BOOLEAN, CLUSTER, COUNTING, GRYPHON, PATHS, field_of
from tamis_lab.experiments.statements import Judge

judged = Judge("filtering", "auction memory")

FEWEST, RESIDENT_TIMES = 1_000, 20
"""With fewer subscriptions no processes are started; in them there are so many times as many."""
MIXES = {
    "class 1": (1.0, 0.0, 0.0),
    "class 2": (0.0, 1.0, 0.0),
    "class 3": (0.0, 0.0, 1.0),
    "all three": (1.0, 1.0, 1.0),
}


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Measure the memory of all algorithms, class by class."""
    rows: list[Row] = []
    claims = []
    for name, mix in MIXES.items():
        workload = books(subscription_mix=mix)
        field = field_of(BOOLEAN, COUNTING, CLUSTER, GRYPHON, *A_TREES, schema=workload.schema)
        texts = workload.subscriptions(2 * scale.memory_count, seed)["condition"].to_pylist()
        field.register(texts, tell)
        row: Row = {"subscriptions": name}
        for subject in field.subjects.values():
            row[f"{subject.name} in all"] = subject.engine.memory() / subject.count
            if subject.name != GRYPHON:
                row[subject.name] = subject.payload() / subject.count
        for subject_name, taken in own_memory(field, (BOOLEAN, COUNTING), map(parse, texts)).items():
            row[subject_name + ALLOCATED] = taken
        rows.append(row)
        beside = f"{row[BOOLEAN] / row[COUNTING]:.2f} by the structures that the formulas count"
        claims.append(
            judged("bytes", row[BOOLEAN + ALLOCATED] / row[COUNTING + ALLOCATED], name=name, at=f"allocated; {beside}")
        )
    claims.append(_resident(rows[-1], scale, seed, tell))
    places = tuple(range(1, len(rows) + 1))
    names = (BOOLEAN, COUNTING, CLUSTER, PATHS)
    lines = tuple(Curve(name, places, tuple(row[name] for row in rows)) for name in names)
    lines += tuple(
        Curve(name + ALLOCATED, places, tuple(row[name + ALLOCATED] for row in rows), is_dashed=True, kin=name)
        for name in (BOOLEAN, COUNTING)
    )
    setup = (
        f"{2 * scale.memory_count:,} subscriptions. Bytes of the structures that the formulas count; of the A-Tree "
        "those of nodes, edges, subscriptions and working memory; dashed, all that was allocated but the index of "
        "predicates."
    )
    plot = Plot("Memory by class", "", "bytes a subscription", lines, x_names=tuple(MIXES))
    return Result(setup, tuple(claims), (plot,), tuple(rows))


def _resident(row: Row, scale: Scale, seed: int, tell: Tell) -> Claim:
    """Judge the memory of processes; those of toys show what an interpreter does, and are not started."""
    if scale.memory_count < FEWEST or not resident.is_readable():
        claim = judged("resident", 1.0)
        why = "Resident memory of few subscriptions is that of the interpreter, and some systems do not tell it."
        return replace(claim, verdict=Judgement.UNMEASURED, ours="not measured", remark=why, figures=None)
    tell("resident memory of processes")
    texts = books().subscriptions(RESIDENT_TIMES * scale.memory_count, seed)["condition"].to_pylist()
    for name, taken in resident.own_resident((BOOLEAN, COUNTING), texts).items():
        row[f"{name} resident"] = taken
    at = f"with {len(texts):,} subscriptions"
    return judged("resident", max(row[f"{BOOLEAN} resident"], 1.0) / max(row[f"{COUNTING} resident"], 1.0), at=at)


EXPERIMENT = Experiment(
    "auction memory",
    "How much memory do the classes of the auction scenario take?",
    "Bittner 2008, sections 5.5 and 5.6",
    run,
)
