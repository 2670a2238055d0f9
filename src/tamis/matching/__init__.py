"""Which subscriptions match an event?

One protocol (`Matcher`) in front of several algorithms (`base.Algorithm`). The flagship is `block`, which matches
many events at once; `naive` asks every subscription with the reference meaning, and is what the others are tested
against.
"""

import tamis.compilation  # noqa: F401 - where kernels are kept, before there is one
from tamis.matching.block.access import AccessPlan
from tamis.matching.errors import (
    BadTableError,
    DuplicateIdError,
    MatcherOptionError,
    SavedMatcherError,
    UnknownAlgorithmError,
    UnknownIdError,
    UnsupportedExpressionError,
    WatchError,
)
from tamis.matching.matcher import Matcher, ShortcutMatches
from tamis.matching.register import Subscription
from tamis.matching.rejections import Rejected
from tamis.matching.sightings import Unmet

__all__ = [
    "AccessPlan",
    "BadTableError",
    "DuplicateIdError",
    "Matcher",
    "MatcherOptionError",
    "Rejected",
    "SavedMatcherError",
    "ShortcutMatches",
    "Subscription",
    "UnknownAlgorithmError",
    "UnknownIdError",
    "Unmet",
    "UnsupportedExpressionError",
    "WatchError",
]
