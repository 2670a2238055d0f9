"""In which forms does a subscription come? Texts, the JSON form of the language, and the dialects of CloudEvents.

| form | |
|---|---|
| `price < 20` | a text |
| `{"where": "price < 20"}` | a text, where only JSON fits |
| `{"tamis": 1, "expression": …}` | the JSON form |
| `{"exact": {"type": "offer"}}`, `{"all": […]}`, … | a dialect (`dialects`) |

>>> wanted_of({"where": "price<20"}).text
'price<20'
>>> wanted_of({"prefix": {"type": "shop."}}).text
"startswith(type, 'shop.')"
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.errors import LanguageError, LimitError
from tamis.language.checking import check, check_size
from tamis.language.functions import NO_FUNCTIONS, Functions
from tamis.language.json_form import from_json
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.parser import parse
from tamis.service.dialects import from_dialect
from tamis.service.errors import BadRequestError
from tamis.service.messages import Wanted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.language.schema import Schema


def wanted_of(given: Any, schema: Schema | None = None, limits: Limits = DEFAULT_LIMITS) -> Wanted:
    """Return what a subscription says, in whichever form it came.

    Raise a `LanguageError` with its place for a text that has no meaning, a `BadRequestError` for what is no filter.
    """
    if type(given) is dict and given.keys() == {"where"}:
        given = given["where"]
    if type(given) is str:
        return Wanted(given, parse(given, schema, limits=limits))
    if type(given) is dict and "tamis" in given:
        expression = from_json(given, limits=limits)
    elif type(given) in (dict, list):
        expression = from_dialect(given, schema, limits)
    else:
        raise BadRequestError("this is not a filter", 'a text such as "price < 20", or its JSON form')
    check(expression, schema)
    check_size(expression, limits)  # a dialect may be deeper in our words than in its own
    text = str(expression)
    if len(text) > limits.text_length:
        raise LimitError("text_length", limits.text_length, f"{len(text):,} characters")
    return Wanted(text, expression)


def all_wanted(
    given: Mapping[str, Any],
    schema: Schema | None = None,
    limits: Limits = DEFAULT_LIMITS,
    functions: Functions = NO_FUNCTIONS,
) -> dict[str, Wanted]:
    """Return what several subscriptions say, by key. An error says which of them it is about.

    They may call these functions of the host.
    """
    with functions.in_use():
        return _all_wanted(given, schema, limits)


def _all_wanted(given: Mapping[str, Any], schema: Schema | None, limits: Limits) -> dict[str, Wanted]:
    wanted = {}
    for key, form in given.items():
        try:
            wanted[key] = wanted_of(form, schema, limits)
        except LanguageError as error:
            error.add_note(f"subscription {key!r:.80}")
            raise
        except BadRequestError as error:
            raise BadRequestError(f"subscription {key!r:.80}: {error.detail}", error.expected) from None
    return wanted
