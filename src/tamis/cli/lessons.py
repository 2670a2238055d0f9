"""How does `--help` teach? Tested examples in the help texts.

By examples that run. They are data, so that the tests can run every one of them and see that it ends with
the exit code it promises.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.markup import escape

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Example:
    """A command, what it shows, and the exit code it ends with."""

    command: str
    shows: str
    exit_code: int = 0


def epilog(examples: Iterable[Example], *notes: str) -> str:
    """Return what stands at the foot of a `--help`: the notes, then the examples.

    >>> print(epilog([Example("tamis demo", "A minute of auctions.")], "It is short."))
    It is short.
    <BLANKLINE>
    [bold]Examples[/bold]
    <BLANKLINE>
      [dim]A minute of auctions.[/dim]
      [cyan]$ tamis demo[/cyan]
    """
    shown = [
        f"  [dim]{escape(example.shows)}[/dim]\n  [cyan]$ {escape(example.command)}[/cyan]" for example in examples
    ]
    return "\n\n".join((*notes, "[bold]Examples[/bold]", *shown))
