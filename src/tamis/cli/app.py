"""How do the commands become one program?"""

import io
import sys
from typing import Annotated

import typer

from tamis import __version__
from tamis.cli import check, demo, explain, lab, language, match, pipeline, stream, workload
from tamis.cli.lessons import Example, epilog

EXAMPLES = (
    Example('tamis check "price < 20 AND"', "What is wrong with this text?", exit_code=2),
    Example("""tamis explain "price < 20 OR bids > 3" --event '{"price": 12}'""", "Does the event match, and why?"),
    Example("tamis language", "What can be written in a text?"),
    Example("tamis demo", "What does all of it look like at work?"),
)

app = typer.Typer(
    name="tamis",
    rich_markup_mode="rich",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,  # an event may hold what should not stand in a log
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"tamis {__version__}")
        raise typer.Exit


@app.callback(
    epilog=epilog(EXAMPLES, "Every command has a [bold]--help[/bold] with examples, and [bold]--json[/bold].")
)
def tamis(
    version: Annotated[
        bool, typer.Option("--version", metavar="", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Content-based publish/subscribe: standing questions, exactly answered."""


app.command("check", epilog=epilog(check.EXAMPLES, *check.NOTES))(check.check)
app.command("explain", epilog=epilog(explain.EXAMPLES, *explain.NOTES))(explain.explain)
app.command("language", epilog=epilog(language.EXAMPLES, *language.NOTES))(language.language)
app.command("demo", epilog=epilog(demo.EXAMPLES, *demo.NOTES))(demo.demo)
app.command("match", epilog=epilog(match.EXAMPLES, *match.NOTES))(match.match)
app.command("stream", epilog=epilog(stream.EXAMPLES, *stream.NOTES))(stream.stream)
app.command("pipeline", epilog=epilog(pipeline.EXAMPLES, *pipeline.NOTES))(pipeline.pipeline)
app.command("workload", epilog=epilog(workload.EXAMPLES, *workload.NOTES))(workload.workload)
app.command("lab", epilog=epilog(lab.EXAMPLES, *lab.NOTES))(lab.lab)


def run() -> None:
    """Run the program on the arguments it was started with."""
    for each in (sys.stdout, sys.stderr):
        if isinstance(each, io.TextIOWrapper):
            each.reconfigure(errors="backslashreplace")  # a ✓ must not end a program whose terminal has none
    app(prog_name="tamis")
