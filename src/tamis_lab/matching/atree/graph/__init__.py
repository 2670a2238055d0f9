"""One graph of all expressions: `shared` keeps it, `kernels` change it."""

from tamis_lab.matching.atree.graph.shared import Programs, SharedGraph

__all__ = ["Programs", "SharedGraph"]
