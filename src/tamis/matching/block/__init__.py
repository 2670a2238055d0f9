"""The block matcher: many events against many subscriptions at once.

`draft` turns expressions into clauses of leaves over `axes`, `segment` lays them out, `maps` adds bitmaps for the
clauses that many events reach, `algorithm` registers and merges while others match, and `kernels` holds the
compiled loops.
"""
