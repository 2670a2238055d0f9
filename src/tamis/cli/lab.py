"""Do the published experiments come out the same, on this machine?

A lab runs them again and writes one page with plots and verdicts, and the same as JSON.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from tamis import literature
from tamis.cli.inputs import InputError, require_known
from tamis.cli.lessons import Example
from tamis.cli.output import AsJson, mistakes_shown, show, to_complain, to_people, to_programs

EXAMPLES = (
    Example("tamis lab", "Which labs are there, and what do they ask?"),
    Example("tamis lab filtering --quick --only 'turning points' --out lab", "One experiment, as a toy."),
)
NOTES = (
    "The folder gets [cyan]index.html[/cyan], which needs no other file, and [cyan]results.json[/cyan]. Without "
    "[bold]--quick[/bold] or [bold]--full[/bold] a lab takes half an hour; times are processor times, so other work on "
    "the machine affects them little.",
    "An experiment is a set of independent settings. With [bold]--spark URL[/bold] each is a task of a Spark "
    "job, and the rows are the same; Tamis must be installed where the tasks run. Experiments that measure times are "
    "left out unless [bold]--times[/bold] asks for them.",
)

DESCRIPTIONS = {
    "filtering": "matching algorithms: Boolean filtering, counting, cluster, Gryphon, the A-Tree",
    "topk": "ranked subscriptions: candidates, errors, thresholds, volume, messages",
    "routing": "networks of brokers: routing strategies, pruning, covering, advertisements, an event's way",
    "distributed": "ranked subscriptions in networks: strategies without a centre, D-ZaLaPS",
}
_COLOURS = {"agrees": "green", "agrees in direction": "yellow"}


def lab(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="The lab; without a name, all labs are listed.",
            autocompletion=lambda: list(DESCRIPTIONS),
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder to write to; it is created if necessary.")
    ] = Path("lab"),
    quick: Annotated[bool, typer.Option("--quick", help="Run at toy sizes, in about a minute.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Run at the published sizes, which takes hours.")] = False,
    only: Annotated[
        list[str] | None, typer.Option(metavar="EXPERIMENT", help="Run only this one; may be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The random seed of the traffic.")] = 1,
    repeats: Annotated[
        int,
        typer.Option(min=1, help="Run each experiment this many times, with different seeds: plots get error bars."),
    ] = 1,
    spark: Annotated[
        str | None,
        typer.Option(
            "--spark",
            metavar="URL",
            help="Measure the settings of each experiment on this Spark master, such as local[*]: counts, not times.",
        ),
    ] = None,
    times: Annotated[
        bool, typer.Option("--times", help="With --spark: run experiments that measure times, too.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run published experiments again, and compare."""
    if name is None:
        _show_labs(as_json)
        return
    with mistakes_shown(as_json):
        require_known(name, DESCRIPTIONS, "lab")
        if quick and full:
            raise InputError("a run is quick or full, not both")
        experiments = _experiments()
        chosen = _chosen(experiments.LABS[name], name, only or [], spark is not None, times)
        with _advancing() as tell, _spread_over(spark):
            scale = "quick" if quick else "full" if full else "default"
            report = experiments.run(name, scale=scale, seed=seed, repeats=repeats, only=chosen, tell=tell)
        try:
            page, results = experiments.write(report, out)
        except OSError as error:
            raise InputError(f"cannot write to {out}: {error.strerror or error}") from None
    if as_json:
        to_programs({"page": str(page), "results": str(results), **report.as_dict()})
    else:
        _show_report(report, page)


def _experiments() -> Any:
    """Return the labs, imported only here, so that no other command waits for arrays; or say what to install."""
    return literature.loaded("experiments", "this command")


def _chosen(experiments: Any, name: str, only: list[str], is_on_spark: bool, times: bool) -> list[str]:
    """Return the experiments to run, all of them if none is named; on Spark without those that measure times."""
    if times and not is_on_spark:
        raise InputError("--times goes with --spark; here, all experiments measure what they measure")
    if not is_on_spark or times:
        return only
    is_timed = literature.loaded("experiments.sweeping", "this command").is_timed
    timed = [each.key for each in experiments if is_timed(name, each.key)]
    asked = [key for key in only if key in timed]
    if asked:
        raise InputError(
            f"{', '.join(asked)} measures times, which are worth little where others work beside it",
            hint="Add --times to run it on Spark nevertheless.",
        )
    chosen = only or [each.key for each in experiments if each.key not in timed]
    if not chosen:
        raise InputError(f"all experiments of {name} measure times", hint="Add --times to run them on Spark.")
    return chosen


@contextmanager
def _spread_over(master: str | None) -> Iterator[None]:
    """Let experiments measure their settings on Spark, if it is wanted."""
    if master is None:
        yield
        return
    from functools import partial

    from tamis.spark import running
    from tamis.spark.spreading import spread

    sweeping = literature.loaded("experiments.sweeping", "this command")
    with (
        running(master=master, name="tamis lab", log=os.devnull) as session,
        sweeping.spreading(partial(spread, session)),
    ):
        yield


def _show_report(report: Any, page: Path) -> None:
    console = to_people()
    for claim in report.claims:
        colour = _COLOURS.get(claim.verdict, "red")
        line = Text.assemble((f"{claim.verdict.mark} ", f"bold {colour}"), claim.statement, (f"  {claim.ours}", "dim"))
        show(console, line, below="  ")
    console.print()
    show(console, Text(f"{report.summary}: {page}", "bold"))


def _show_labs(as_json: bool) -> None:
    with mistakes_shown(as_json):
        labs_known = _experiments().LABS
    if as_json:
        labs: list[dict[str, Any]] = [
            {
                "name": name,
                "about": about,
                "experiments": [{"key": each.key, "question": each.question} for each in labs_known[name]],
            }
            for name, about in DESCRIPTIONS.items()
        ]
        to_programs({"labs": labs})
        return
    console = to_people()
    for name, about in DESCRIPTIONS.items():
        show(console, Text.assemble((name, "bold cyan"), f"  {about}"), below="  ")
        table = Table.grid(padding=(0, 2, 0, 0))
        for experiment in labs_known[name]:
            table.add_row("", Text(experiment.key, "cyan", no_wrap=True), experiment.question)
        console.print(table)
    console.print()
    show(console, Text("tamis lab NAME --out DIR runs one of them.", "dim"))


@contextmanager
def _advancing() -> Iterator[Callable[[int, int, str], None]]:
    """Show which experiment is running and what it is doing, on a terminal only."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = to_complain()
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)
        yield lambda done, count, doing: progress.update(
            task, completed=done, total=count, description=doing, refresh=True
        )
