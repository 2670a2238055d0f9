"""The A-Tree as it was published: nodes of two operands, arranged by dynamic programming.

`graph` arranges what is inserted and keeps the nodes in the tables of the shared graph, so the filters and everything
around it are the same; `descent` asks from the roots down, for comparison; `algorithm` makes algorithms of both.
`operands` is the published tree in plain Python, node by node, with operands that are numbers or undefined: what the
compiled one is tested against, and the only one that computes.

Source: Jewel 2004, chapter 3 and section 4.2.1 (docs/bibliography.md).
"""

from tamis_lab.matching.atree.published.operands import Of, OperandTree, With

__all__ = ["Of", "OperandTree", "With"]
