"""How truth rises from predicates to subscriptions: three filters over one graph, one interface in `base`."""

from tamis.matching.published.atree.filters.base import Filter
from tamis.matching.published.atree.filters.levels import General, Zero
from tamis.matching.published.atree.filters.paths import Paths

__all__ = ["Filter", "General", "Paths", "Zero"]
