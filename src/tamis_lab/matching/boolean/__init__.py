"""BoP: Boolean filtering without a normal form.

A subscription stays the tree it is, written as a short string of bytes (`encoding`). Hits are counted as the counting
algorithm counts them; who has as many as its tree needs at least is a candidate, and candidates are evaluated
against the predicates that hold. `grove` keeps the trees of one event type, `semantics` finds a sharper bound on the
hits than the tree alone gives, and `algorithm` puts event types and destinations on top.
"""
