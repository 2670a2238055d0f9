"""How may a filter be generalised, and which generalisation comes first?

A filter that is true for more events is cheaper to keep and to match, and costs events that nobody wanted. `trees` says
what may be left out, `measures` what that costs and saves, `sequencing` in which order one filter would be pruned, and
`bulk` and `pruner` how many are pruned together, at once or while they come and go, until a goal is reached (`goals`).
"""

from typing import TYPE_CHECKING, Any

from tamis.pruning.errors import DuplicateEntryError, GoalError, UnknownEntryError, UnknownMeasureError
from tamis.pruning.goals import Goal
from tamis.pruning.measures import MEASURES, Change, Figures, Measure, figures
from tamis.pruning.trees import Option, options, pruning_form

if TYPE_CHECKING:
    from tamis.pruning.bulk import prune_many
    from tamis.pruning.pruner import Pruner
    from tamis.pruning.sequencing import Sequences, Step, sequence, sequences

_COMPILED = {
    "prune_many": "bulk",
    "Pruner": "pruner",
    "Sequences": "sequencing",
    "Step": "sequencing",
    "sequence": "sequencing",
    "sequences": "sequencing",
}

__all__ = [
    "MEASURES",
    "Change",
    "DuplicateEntryError",
    "Figures",
    "Goal",
    "GoalError",
    "Measure",
    "Option",
    "Pruner",
    "Sequences",
    "Step",
    "UnknownEntryError",
    "UnknownMeasureError",
    "figures",
    "options",
    "prune_many",
    "pruning_form",
    "sequence",
    "sequences",
]


def __getattr__(name: str) -> Any:
    """Import what is compiled when somebody asks for it: the compiler takes a second to load."""
    if name in _COMPILED:
        from importlib import import_module

        return getattr(import_module(f"tamis.pruning.{_COMPILED[name]}"), name)
    raise AttributeError(f"module 'tamis.pruning' has no attribute {name!r}")
