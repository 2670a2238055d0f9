"""The matching algorithms of the literature, as faithful and as fast as they can be made.

All of them share the predicate phase: `predicates` numbers the distinct predicates of all subscriptions, and tells for
an event which of them it fulfils. What differs is what comes after. `counting` counts hits of conjunctions, `cluster`
visits the conjunctions under the equality predicates that hold, `gryphon` follows a tree of tests, `boolean` counts
hits and then evaluates trees, and `atree` passes truth upwards through one shared graph (`atree.published`: through the
one that was published).

`algorithms.ALGORITHMS` is what `tamis.matching` finds here by name.
"""
