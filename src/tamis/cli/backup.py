"""How is the data of a broker kept elsewhere, and brought back? Backups, made while it runs."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from tamis.cli.inputs import InputError
from tamis.cli.lessons import Example
from tamis.cli.output import AsJson, mistakes_shown, show, to_complain, to_people, to_programs

if TYPE_CHECKING:
    from tamis.service.backup import Backup

EXAMPLES = (Example("tamis backup saved --data nothing", "There is no broker in this folder.", exit_code=2),)
NOTES = (
    "The broker may run: the backup is as of one position of its log. Every event and every subscription that was "
    "acknowledged before that position is in it. Files of the log that will not change any more are linked, if the "
    "backup is on the same disk: that takes no room, but does not help if that disk breaks. "
    "[cyan]--copy[/cyan] copies them.",
    "[cyan]tamis restore[/cyan] makes a data folder of a backup.",
)
RESTORE_EXAMPLES = (Example("tamis restore nothing --data again", "There is no backup in this folder.", exit_code=2),)
RESTORE_NOTES = (
    "All of the backup is verified before there is a folder. The restored log has a new epoch (the name in its "
    "positions), so that nobody takes an event for another one that had the same position after the backup; "
    "subscribers continue where they were. [cyan]--keep-epoch[/cyan] keeps the old one. Use it only if the broker was "
    "stopped when the backup was made, and its old folder is gone.",
)


def backup(
    target: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make; it must not be there yet.")],
    data: Annotated[Path, typer.Option(metavar="FOLDER", help="The broker's folder.")] = Path("tamis-data"),
    copy: Annotated[bool, typer.Option("--copy", help="Copy files that could be linked.")] = False,
    as_json: AsJson = False,
) -> None:
    """Back up the data of a broker, which may be running."""
    with mistakes_shown(as_json):
        if not data.is_dir():
            raise InputError(f"there is no folder {data}", hint="--data names the folder of the broker.")
        from tamis.service.backup import back_up

        with to_complain().status("Copying"):
            made = back_up(data, target, is_linked=not copy)
    _tell(made, f"{target} holds the broker {made.name} as of", as_json)


def restore(
    source: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the backup.")],
    data: Annotated[Path, typer.Option(metavar="FOLDER", help="The broker's folder; it must not be there yet.")] = Path(
        "tamis-data"
    ),
    keep_epoch: Annotated[
        bool,
        typer.Option(
            "--keep-epoch", help="Keep the old epoch: positions from before the backup stay valid.", show_default=False
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make the data folder of a broker from a backup."""
    with mistakes_shown(as_json):
        if not source.is_dir():
            raise InputError(f"there is no folder {source}", hint="The argument names what 'tamis backup' has made.")
        from tamis.service.backup import restore as bring_back

        with to_complain().status("Reading the backup"):
            made = bring_back(source, data, keeps_epoch=keep_epoch)
    _tell(made, f"{data} is the broker {made.name} as of", as_json)


def _tell(made: "Backup", sentence: str, as_json: bool) -> None:
    if as_json:
        to_programs({"name": made.name, "position": made.position, "taken": made.taken, "parts": len(made.parts)})
        return
    taken = datetime.fromtimestamp(made.taken, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    show(to_people(), Text.assemble(("✓ ", "bold green"), f"{sentence} {made.position} ({taken})."), below="  ")
