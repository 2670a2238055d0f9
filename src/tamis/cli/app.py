"""How do the commands become one program? The command tree."""

import io
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from tamis import __version__
from tamis.cli import (
    advise,
    asking,
    backup,
    check,
    demo,
    doctor,
    explain,
    lab,
    language,
    links,
    match,
    network,
    pipeline,
    publish,
    repair,
    run,
    serve,
    stream,
    subscribe,
    token,
    translate,
    warm,
    workload,
)
from tamis.cli.lessons import Example, epilog

EXAMPLES = (
    Example('tamis check "price < 20 AND"', "What is wrong with this text?", exit_code=2),
    Example("""tamis explain "price < 20 OR bids > 3" --event '{"price": 12}'""", "Does the event match, and why?"),
    Example("tamis language", "What can be written in a text?"),
    Example("tamis demo", "See all of it at work."),
    Example("tamis doctor", "Is everything installed that it needs?"),
)


class _PlainFlags:
    """Shows flags as people write them: `--once`, not `--once <bool>`."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, `--help` among them."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters


class Command(_PlainFlags, TyperCommand):
    """One of the commands."""


class CommandGroup(_PlainFlags, TyperGroup):
    """The program."""


app = typer.Typer(
    name="tamis",
    cls=CommandGroup,
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
        bool, typer.Option("--version", "-V", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Content-based publish/subscribe: standing queries, answered exactly."""


app.command("check", cls=Command, epilog=epilog(check.EXAMPLES, *check.NOTES))(check.check)
app.command("explain", cls=Command, epilog=epilog(explain.EXAMPLES, *explain.NOTES))(explain.explain)
app.command("translate", cls=Command, epilog=epilog(translate.EXAMPLES, *translate.NOTES))(translate.translate_)
app.command("language", cls=Command, epilog=epilog(language.EXAMPLES, *language.NOTES))(language.language)
app.command("doctor", cls=Command, epilog=epilog(doctor.EXAMPLES, *doctor.NOTES))(doctor.doctor)
app.command("demo", cls=Command, epilog=epilog(demo.EXAMPLES, *demo.NOTES))(demo.demo)
app.command("match", cls=Command, epilog=epilog(match.EXAMPLES, *match.NOTES))(match.match)
app.command("run", cls=Command, epilog=epilog(run.EXAMPLES, *run.NOTES))(run.run)
app.command("stream", cls=Command, epilog=epilog(stream.EXAMPLES, *stream.NOTES))(stream.stream)
app.command("pipeline", cls=Command, epilog=epilog(pipeline.EXAMPLES, *pipeline.NOTES))(pipeline.pipeline)
app.command("serve", cls=Command, epilog=epilog(serve.EXAMPLES, *serve.NOTES))(serve.serve)
app.command("publish", cls=Command, epilog=epilog(publish.EXAMPLES, *publish.NOTES))(publish.publish)
app.command("subscribe", cls=Command, epilog=epilog(subscribe.EXAMPLES, *subscribe.NOTES))(subscribe.subscribe)
app.command("token", cls=Command, epilog=epilog(token.EXAMPLES, *token.NOTES))(token.token)
app.command("links", cls=Command, epilog=epilog(links.EXAMPLES, *links.NOTES))(links.links)
app.command("top", cls=Command, epilog=epilog(links.TOP_EXAMPLES, *links.NOTES))(links.top)
app.command("network", cls=Command, epilog=epilog(network.EXAMPLES, *network.NOTES))(network.network)
app.command("try", cls=Command, epilog=epilog(asking.TRY_EXAMPLES, *asking.TRY_NOTES))(asking.try_)
app.command("why", cls=Command, epilog=epilog(asking.WHY_EXAMPLES, *asking.WHY_NOTES))(asking.why)
app.command("dead", cls=Command, epilog=epilog(asking.DEAD_EXAMPLES, *asking.DEAD_NOTES))(asking.dead)
app.command("repair", cls=Command, epilog=epilog(repair.EXAMPLES, *repair.NOTES))(repair.repair)
app.command("backup", cls=Command, epilog=epilog(backup.EXAMPLES, *backup.NOTES))(backup.backup)
app.command("restore", cls=Command, epilog=epilog(backup.RESTORE_EXAMPLES, *backup.RESTORE_NOTES))(backup.restore)
app.command("workload", cls=Command, epilog=epilog(workload.EXAMPLES, *workload.NOTES))(workload.workload)
app.command("warm", cls=Command, epilog=epilog(warm.EXAMPLES, *warm.NOTES))(warm.warm)
app.command("advise", cls=Command, epilog=epilog(advise.EXAMPLES, *advise.NOTES))(advise.advise)
app.command("lab", cls=Command, epilog=epilog(lab.EXAMPLES, *lab.NOTES))(lab.lab)


def start() -> None:
    """Run the program on the arguments it was started with."""
    for each in (sys.stdout, sys.stderr):
        if isinstance(each, io.TextIOWrapper):
            each.reconfigure(errors="backslashreplace")  # a ✓ must not end a program whose terminal has none
    app(prog_name="tamis")
