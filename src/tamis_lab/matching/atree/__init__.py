"""One shared graph of all sub-expressions, through which truth rises from predicates to subscriptions.

`translation` makes instructions of an expression (`certainty` says where NOT and XOR may stay), `graph` shares what is
equal, `filters` are the three ways to match an event, `unknowns` corrects the rare event that breaks a promise of its
schema, and `algorithm` lets people register while others match (`gate`). Composite events are `sequences`: a tree over
the graph whose nodes remember an event each. `published` is the tree as its source has it, for comparison.

Source: Jewel 2004 (docs/bibliography.md).
"""

from tamis_lab.matching.atree.sequences import AllOf, AnyOf, SequenceTree, Then

__all__ = ["AllOf", "AnyOf", "SequenceTree", "Then"]
