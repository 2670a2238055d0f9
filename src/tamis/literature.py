"""Where are the algorithms and the experiments of the literature? In a plug-in beside this package, imported by name.

`tamis_lab` holds the published matching algorithms and the experiments. It knows this package; this package knows its
name, and imports it when somebody asks for what is in it. So whoever does not ask waits for none of it, and everything
else works where it is not installed.

>>> loaded("matching.algorithms", "the algorithm 'atree'").ALGORITHMS["atree"].__name__
'ATree'
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tamis.errors import LabMissingError

if TYPE_CHECKING:
    from types import ModuleType

LAB = "tamis_lab"


def is_installed() -> bool:
    """Is the plug-in there? Nothing of it is imported to know that."""
    return find_spec(LAB) is not None


def loaded(part: str, wanted: str) -> ModuleType:
    """Return a part of the plug-in; without it, raise an error that says what was wanted and what to install."""
    if not is_installed():
        raise LabMissingError(wanted)
    return import_module(f"{LAB}.{part}")
