"""How tightly does each operator bind? The order of precedence, for the parser and the printer alike.

Loosest first. Nothing reaches across an open parenthesis (`FRAME`), and what is whole by itself (`PRIMARY`: a literal,
a name, a call) needs none.
"""

from __future__ import annotations

FRAME, OR, XOR, AND, NOT, PREDICATE, COMPARISON, SUM, PRODUCT, SIGN, PRIMARY = range(11)
