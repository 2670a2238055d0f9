"""How are very many texts of subscriptions read, ranked ones among them? Their conditions by the compiled reader.

Of ranked subscriptions many have one head, `TOP 5 BY price OVER 1 HOUR`, and each a condition of its own. So heads are
parsed once each, and conditions are read in columns (`tamis.matching.reading`). What that does not understand, or might
be a mistake, is nobody's here: whoever asks parses it, and gets the parser's answer or its error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tamis.errors import TamisError
from tamis.matching.reading import MANY, read_many
from tamis.topk.ranked import Ranked
from tamis.topk.text import is_ranked, parse_ranked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema

_WHERE = re.compile(r"\bWHERE\b", re.IGNORECASE)
_STATEFUL = ("top", "sequence", "change")
"""How texts of other sorts begin: a condition that begins so, too, is left to the parser, which tells them apart."""


def read_subscriptions(texts: Sequence[str], schema: Schema | None = None) -> dict[str, Ranked | Expression]:
    """Return what texts say, conditions and ranked subscriptions, as far as it can be read without the parser.

    >>> texts = [f"TOP 3 BY price OVER 1 HOUR WHERE bids > {n}" for n in range(300)] + ["bids < 5", "lower(a) = 'x'"]
    >>> known = read_subscriptions(texts)
    >>> all(str(said) == text.replace("price", "price ASC") for text, said in known.items())
    True
    """
    if len(texts) < MANY:
        return {}
    heads: dict[str, Ranked | None] = {}
    asked: list[tuple[str, Ranked | None, str]] = []
    for text in texts:
        if not text.lstrip()[:8].lower().startswith(_STATEFUL):
            asked.append((text, None, text))
            continue
        head, *conditions = _WHERE.split(text)
        if len(conditions) == 1:
            if head not in heads:
                heads[head] = _head(head, schema)
            ranked = heads[head]
            if ranked is not None:
                asked.append((text, ranked, conditions[0]))
    known: dict[str, Ranked | Expression] = {}
    conditions_said = read_many([condition for _, _, condition in asked], schema)
    for (text, ranked, _), condition in zip(asked, conditions_said, strict=True):
        if condition is not None:
            known[text] = condition if ranked is None else _where(ranked, condition)
    return known


def _where(ranked: Ranked, condition: Expression) -> Ranked:
    """Return a ranked subscription that asks only for events that fulfil a condition."""
    half_life = ranked.half_life_s
    return Ranked(ranked.score, ranked.k, ranked.window, condition, order=ranked.order, half_life=half_life)


def _head(head: str, schema: Schema | None) -> Ranked | None:
    """Return what ranked subscriptions begin with; None if it is something else, or a mistake."""
    try:
        return parse_ranked(head, schema) if is_ranked(head) else None
    except TamisError:
        return None
