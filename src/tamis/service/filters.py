"""In which forms does a subscription come? Texts, the JSON form of the language, and the dialects of CloudEvents.

| form | |
|---|---|
| `price < 20` | a text |
| `{"where": "price < 20"}` | a text, where only JSON fits |
| `{"tamis": 1, "expression": …}` | the JSON form |
| `TOP 5 BY price OVER 1 HOUR`, `SEQUENCE …`, `CHANGE TO …` | texts that remember earlier events, and their JSON forms |
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
from tamis.language.expressions import Expression
from tamis.language.functions import NO_FUNCTIONS, Functions
from tamis.language.json_form import from_json
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.service.dialects import from_dialect
from tamis.service.errors import BadRequestError
from tamis.service.messages import Wanted
from tamis.service.standing import kind_of
from tamis.standing.json_form import from_json as standing_from_json
from tamis.standing.subscriptions import parse_subscription
from tamis.topk.json_form import from_json as ranked_from_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.language.schema import Schema

_STATEFUL_FORMS = {"ranked": ranked_from_json, "sequence": standing_from_json, "change": standing_from_json}


def wanted_of(given: Any, schema: Schema | None = None, limits: Limits = DEFAULT_LIMITS) -> Wanted:
    """Return what a subscription says, in whichever form it came.

    Raise a `LanguageError` with its place for a text that has no meaning, a `BadRequestError` for what is no filter.
    """
    if type(given) is dict and given.keys() == {"where"}:
        given = given["where"]
    if type(given) is str:
        return Wanted(given, parse_subscription(given, schema, limits=limits))
    if type(given) is dict and "tamis" in given:
        for name, read in _STATEFUL_FORMS.items():
            if name in given:
                stateful = read(given, limits=limits).checked(schema)
                return Wanted(_bounded(str(stateful), limits), stateful)
        expression = from_json(given, limits=limits)
    elif type(given) in (dict, list):
        expression = from_dialect(given, schema, limits)
    else:
        raise BadRequestError("this is not a filter", 'a text such as "price < 20", or its JSON form')
    check(expression, schema)
    check_size(expression, limits)  # a dialect may be deeper in our words than in its own
    return Wanted(_bounded(str(expression), limits), expression)


def _bounded(text: str, limits: Limits) -> str:
    if len(text) > limits.text_length:
        raise LimitError("text_length", limits.text_length, f"{len(text):,} characters")
    return text


def condition_of(wanted: Wanted, what: str) -> Expression:
    """Return what a subscription says, if it is a condition; raise an error for one that remembers earlier events.

    >>> print(condition_of(wanted_of("price < 20"), "a trial"))
    price < 20
    >>> try: condition_of(wanted_of("CHANGE TO price < 20"), "a trial")
    ... except BadRequestError as error: print(error.detail)
    a trial takes no change, which remembers earlier events
    """
    if isinstance(wanted.filter, Expression):
        return wanted.filter
    kind = {"ranked": "ranked subscription"}.get(kind_of(wanted.filter), kind_of(wanted.filter))
    raise BadRequestError(f"{what} takes no {kind}, which remembers earlier events", 'a condition such as "price < 20"')


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
