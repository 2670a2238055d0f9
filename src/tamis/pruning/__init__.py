"""How may a filter be generalised, and which generalisation comes first?

A filter that is true for more events is cheaper to keep and to match, and costs events that nobody wanted. `trees`
says what may be left out, `measures` what that costs and saves, `sequencing` in which order one filter would be
pruned, and `bulk` and `pruner` how many are pruned together, at once or while they come and go, until a goal is
reached (`goals`); `cut_off` chooses one; `table` is what a broker keeps of others' filters (`packing`). What cannot be
pruned may have its predicates replaced (`replacement`); any filters become one by pruning what they say together
(`mergers`); advertisements are pruned by what they keep out (`advertisements`, `characteristics`).
"""

from typing import TYPE_CHECKING, Any

from tamis.pruning.errors import DuplicateEntryError, GoalError, UnknownEntryError, UnknownMeasureError
from tamis.pruning.goals import Goal
from tamis.pruning.measures import MEASURES, FilterFigures, FilterVersions, Measure, figures
from tamis.pruning.trees import Option, options, pruning_form

if TYPE_CHECKING:
    from tamis.pruning.advertisements import advertisement_pruner
    from tamis.pruning.bulk import prune_many
    from tamis.pruning.characteristics import Characteristics
    from tamis.pruning.cut_off import CutOff, choose_cut_off
    from tamis.pruning.mergers import merge_by_pruning
    from tamis.pruning.pruner import Pruner
    from tamis.pruning.replacement import replace_predicates
    from tamis.pruning.sequencing import PruningSequences, PruningStep, sequence, sequences
    from tamis.pruning.table import PrunedTable

_COMPILED = {
    "Characteristics": "characteristics",
    "CutOff": "cut_off",
    "PrunedTable": "table",
    "Pruner": "pruner",
    "PruningSequences": "sequencing",
    "PruningStep": "sequencing",
    "sequence": "sequencing",
    "advertisement_pruner": "advertisements",
    "choose_cut_off": "cut_off",
    "merge_by_pruning": "mergers",
    "prune_many": "bulk",
    "replace_predicates": "replacement",
    "sequences": "sequencing",
}

__all__ = [
    "MEASURES",
    "Characteristics",
    "CutOff",
    "DuplicateEntryError",
    "FilterFigures",
    "FilterVersions",
    "Goal",
    "GoalError",
    "Measure",
    "Option",
    "PrunedTable",
    "Pruner",
    "PruningSequences",
    "PruningStep",
    "UnknownEntryError",
    "UnknownMeasureError",
    "advertisement_pruner",
    "choose_cut_off",
    "figures",
    "merge_by_pruning",
    "options",
    "prune_many",
    "pruning_form",
    "replace_predicates",
    "sequence",
    "sequences",
]


def __getattr__(name: str) -> Any:
    """Import what is compiled when somebody asks for it: the compiler takes a second to load."""
    if name in _COMPILED:
        from importlib import import_module

        return getattr(import_module(f"tamis.pruning.{_COMPILED[name]}"), name)
    raise AttributeError(f"module 'tamis.pruning' has no attribute {name!r}")
