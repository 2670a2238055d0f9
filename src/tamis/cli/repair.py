"""What if the log of a broker is damaged? The damage is left out, and subscribers are told of the gap."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from tamis.cli.inputs import InputError
from tamis.cli.lessons import Example
from tamis.cli.output import NO, AsJson, mistakes_shown, show, to_complain, to_people, to_programs, visible

EXAMPLES = (Example("tamis repair --data nothing", "There is no log in this folder.", exit_code=2),)
NOTES = (
    "A broker that finds a flipped bit in its log does not start, and says where. Restore the file from a backup if "
    "there is one. Otherwise this command leaves the damaged events out, and nothing else; the damaged file stays "
    "beside the new one, and subscribers are notified of the positions that they will not get.",
    "[cyan]--dry-run[/cyan] only looks; it exits with 1 if something is damaged. The broker must not be running.",
)


def repair(
    data: Annotated[Path, typer.Option(metavar="FOLDER", help="The broker's folder.")] = Path("tamis-data"),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report what is damaged without changing anything.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Leave damaged events out of the log of a broker that is not running."""
    with mistakes_shown(as_json):
        if not (data / "log").is_dir():
            raise InputError(f"there is no log in {data}", hint="--data names the folder of the broker.")
        from tamis.service.log.repair import repair as mend

        with to_complain().status("Reading the log"):
            mended = mend(data / "log", _epoch(data), only_look=dry_run)
    if as_json:
        to_programs(
            {
                "repaired": not dry_run,
                "segments": [
                    {
                        "path": str(segment.path),
                        "what": segment.what,
                        "gaps": [{"first": gap.first, "last": gap.last} for gap in segment.gaps],
                    }
                    for segment in mended
                ],
            }
        )
    elif not mended:
        show(to_people(), Text.assemble(("✓ ", "bold green"), "The log is as it was written."))
    else:
        for segment in mended:
            show(to_people(), Text.assemble(("! ", "bold yellow"), visible(str(segment))), below="  ")
    if mended and dry_run:
        raise typer.Exit(NO)


def _epoch(data: Path) -> str:
    """Return the name of the log as the broker's state knows it; no segment may know it any more."""
    from tamis.service.state import State

    path = data / "state.db"
    if not path.exists():
        return ""
    state = State(path)
    try:
        return state.epoch
    finally:
        state.close()
