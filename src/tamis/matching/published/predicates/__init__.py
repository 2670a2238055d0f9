"""The first phase of all published algorithms: which predicates does an event fulfil?

Equal predicates of different subscriptions are one, known by a number (`registry`, `spelling`). A *view* is an
immutable index of the present predicates (`view`), made of levels with one index per attribute (`levels`).
"""

from tamis.matching.published.predicates.levels import Numbers
from tamis.matching.published.predicates.registry import Predicates
from tamis.matching.published.predicates.spelling import spelled
from tamis.matching.published.predicates.view import Fulfilled, PredicateView, Shares

__all__ = ["Fulfilled", "Numbers", "PredicateView", "Predicates", "Shares", "spelled"]
