"""What can be asked about where a value lies among operands, and how often is the answer yes?"""

from __future__ import annotations

EQUAL, UNEQUAL, BELOW, AT_MOST, ABOVE, AT_LEAST, WITHIN, BEYOND, FROM_TO, AMONG, NOT_AMONG = range(11)
"""Equal to operand a, not equal, below, at most, above, at least; from a to b, not from a to b, from a up to but
without b; one of a set of operands, none of them."""

GUESSES = (0.01, 0.95, 0.4, 0.4, 0.4, 0.4, 0.2, 0.8, 0.05, 0.05, 0.9)
"""How often each holds, as long as nothing is known: only the order matters."""
