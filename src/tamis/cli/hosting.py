"""Which functions of the host may the texts of a command call? Those of a module that its caller names.

A text never brings code with it: whoever runs the command names the module, which is imported from where it is
installed, or from the folder that the command is run in.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from tamis.cli.output import show, to_complain
from tamis.language.functions import NO_FUNCTIONS, Functions, imported_functions

if TYPE_CHECKING:
    from collections.abc import Iterator

FunctionsOption = Annotated[
    str | None,
    typer.Option(
        "--functions",
        metavar="MODULE:NAME",
        help="The functions that texts may call: a tamis.Functions and the module that has it.",
        show_default=False,
    ),
]


@contextmanager
def calling(address: str | None) -> Iterator[Functions]:
    """Let texts that are read meanwhile call the functions that are named, if any are."""
    functions = NO_FUNCTIONS if address is None else functions_at(address)
    with functions.in_use():
        yield functions


def functions_at(address: str) -> Functions:
    """Import functions; modules of the folder that the command is run in are found, too."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    return imported_functions(address)


def show_failures(functions: Functions) -> None:
    """Say which functions gave no value, and how often."""
    for name, failures in functions.failures.items():
        counts = ", ".join(f"{count:,} {how}" for how, count in failures.items())
        show(to_complain(), Text(f"{name} gave no value, so its result is NULL: {counts}", "yellow"), below="  ")
