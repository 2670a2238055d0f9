"""The classes of subscriptions and advertisements of the literature, with the figures printed for them."""

from __future__ import annotations

S1 = "p1 AND p2 AND (p3 AND p4 OR p5 AND p6)"
S2 = "p1 AND p2 AND (p3 AND (p5 AND p6 OR p7 AND p8) OR p4 AND (p9 AND p10 OR p11 AND p12))"
S3 = "(p1 OR p2) AND (p3 AND (p6 OR p7) OR p4 AND p5)"
A1 = "p1 AND (p2 AND p3 OR p4 AND p5)"
A5 = "p1 AND (p2 AND (p4 AND p5 OR p6 AND p7) OR p3 AND (p8 AND p9 OR p10 AND p11))"
A6 = "p2 AND p3 OR p4 AND p5"
A8 = "p2 AND (p4 AND p5 OR p6 AND p7) OR p3 AND (p8 AND p9 OR p10 AND p11)"

# name: text, leaves, junctions, least hits, bytes, options
CLASSES = {
    "S1": (S1, 6, 4, 4, 38, 7),
    "S2": (S2, 12, 10, 5, 80, 15),
    "S3": (S3, 7, 6, 3, 47, 6),
    "A1": (A1, 5, 4, 3, 33, 6),
    "A5": (A5, 11, 10, 4, 75, 14),
    "A6": (A6, 4, 3, 2, 26, 4),
    "A8": (A8, 10, 9, 3, 68, 12),
}

SHARES = {"p1": 0.015, "p2": 0.002, "p3": 0.16, "p4": 0.15, "p5": 0.011, "p6": 0.87, "p7": 0.011}
OCCURRENCES = {"p1": 100, "p2": 30, "p3": 500, "p4": 70, "p5": 60, "p6": 400, "p7": 60}


def share(predicate):
    """The share of a predicate of S3 in the worked example."""
    return SHARES[str(predicate.left)]


def occurrence(predicate):
    return OCCURRENCES[str(predicate.left)]
