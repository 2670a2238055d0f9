"""How truth rises from predicates to subscriptions: three filters over one graph, one interface in `base`."""

from tamis_lab.matching.atree.filters.base import TruthFilter
from tamis_lab.matching.atree.filters.levels import General, Zero
from tamis_lab.matching.atree.filters.paths import Paths

__all__ = ["General", "Paths", "TruthFilter", "Zero"]
