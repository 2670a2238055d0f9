"""Tamis: content-based publish/subscribe. Standing questions, exactly answered.

>>> import tamis
>>> wanted = tamis.parse("category = 'Thriller' AND (price < 20 OR signed AND bids <= 3)")
>>> tamis.holds(wanted, {"category": "Thriller", "price": 35, "signed": True, "bids": 2})
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tamis import errors
from tamis.language import (
    Explanation,
    Expression,
    Functions,
    Limits,
    Schema,
    Translation,
    all_of,
    any_of,
    at_least,
    attr,
    call,
    coalesce,
    explain,
    from_json,
    function,
    holds,
    json_schema,
    lit,
    parse,
    translate,
    truth,
    when,
    xor,
)

if TYPE_CHECKING:
    from tamis import pruning, relations, selectivity, standing, topk
    from tamis.matching import Matcher
    from tamis.service.client import AsyncClient, Client
    from tamis.standing import Change, Sequence, Standing
    from tamis.topk import Ranked, TopK

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "Change",
    "Client",
    "Explanation",
    "Expression",
    "Functions",
    "Limits",
    "Matcher",
    "Ranked",
    "Schema",
    "Sequence",
    "Standing",
    "TopK",
    "Translation",
    "all_of",
    "any_of",
    "at_least",
    "attr",
    "call",
    "coalesce",
    "errors",
    "explain",
    "from_json",
    "function",
    "holds",
    "json_schema",
    "lit",
    "parse",
    "pruning",
    "relations",
    "selectivity",
    "standing",
    "topk",
    "translate",
    "truth",
    "when",
    "xor",
]


_BY_PACKAGE = {"topk": ("Ranked", "TopK"), "standing": ("Change", "Sequence", "Standing")}


def __getattr__(name: str) -> Any:
    """Import matchers and their like when somebody asks for them: their compiler takes a second to load."""
    if name == "Matcher":
        from tamis.matching import Matcher

        return Matcher
    if name in ("AsyncClient", "Client"):
        return getattr(import_module("tamis.service.client"), name)
    if name in ("pruning", "relations", "selectivity"):
        return import_module(f"tamis.{name}")
    for package, names in _BY_PACKAGE.items():
        if name == package or name in names:
            module = import_module(f"tamis.{package}")
            return module if name == package else getattr(module, name)
    raise AttributeError(f"module 'tamis' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
