"""The first phase of all published algorithms: which predicates does an event fulfil?

Equal predicates of different subscriptions are one, known by a number (`registry`, `spelling`). A *view* is an
immutable index of the present predicates (`view`), made of levels with one index per attribute (`levels`).
"""

from tamis_lab.matching.predicates.levels import Numbers
from tamis_lab.matching.predicates.registry import PredicateRegistry
from tamis_lab.matching.predicates.spelling import spelled
from tamis_lab.matching.predicates.view import Fulfilled, PredicateView, Shares

__all__ = ["Fulfilled", "Numbers", "PredicateRegistry", "PredicateView", "Shares", "spelled"]
