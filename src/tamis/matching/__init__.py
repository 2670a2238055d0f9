"""Which subscriptions match an event?

`Matcher` (`matcher`, `registering`) is what people use. It keeps ids, priorities and texts, and asks an algorithm
behind it (`base.Algorithm`) for the matches. The flagship algorithm is `block`, which compiles subscriptions into
segments and matches one event (`block.probing`) or many at once (`block.maps`); `naive` asks every subscription with
the reference meaning, and is what the others are tested against.
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
