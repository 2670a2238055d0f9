"""Which rules could not match anything that came? Who runs a command is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from tamis.cli.output import show, to_complain, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHOWN = 10


def show_unmet(unmet: Sequence[str]) -> None:
    """Warn of attributes that no event had, and of comparisons that met values of another type only."""
    if not unmet:
        return
    console = to_complain()
    show(console, Text.assemble(("! ", "bold yellow"), ("some rules could match nothing of this:", "bold")), below="  ")
    for subscription in unmet[:_SHOWN]:
        show(console, Text(f"  {visible(subscription)}"), below="    ")
    if len(unmet) > _SHOWN:
        show(console, Text(f"  and {len(unmet) - _SHOWN:,} more"), below="    ")
