"""What do people write who know another dialect of SQL, and what would be right here? Hints for syntax errors.

A mistake that many make deserves a hint that leads on, not the list of all functions. Each row is a word, as an
operator or as a function, and what to write instead.
"""

from __future__ import annotations

_CLOCK = (
    "A condition has no clock, or it would mean something else at every moment. Let events carry the time, or compare "
    "with a fixed one: ends > TIMESTAMP '2026-01-31 12:00:00'."
)
_ANY_CASE = "Upper and lower case differ. Write lower(title) LIKE '%house%'."
_IN_TEXT = "Write contains(title, 'house')."
_IN_ARRAY = "Write array_contains(tags, 'new')."
_BOTH = "Within a text, write contains(title, 'house'); among the members of an array, array_contains(tags, 'new')."
_PATTERN = "Write title RLIKE 'pattern'."
_MISSING = "Write coalesce(price, 0) < 20."
_CHOICE = "Write CASE WHEN signed THEN 30 ELSE 20 END > price."
_NO_AGGREGATE = "A condition sees one event, so there is nothing to aggregate."

OPERATORS: dict[str, str] = {
    "ilike": _ANY_CASE,
    "contains": _BOTH,
    "includes": _BOTH,
    "has": _IN_ARRAY,
    "overlaps": "Write arrays_overlap(tags, array('new', 'rare')).",
    "matches": _PATTERN,
    "similar": _PATTERN,
    "glob": "Write title LIKE 'The %', with % for any text and _ for one character.",
    "starts": "Write startswith(title, 'The').",
    "startswith": "It is a function: startswith(title, 'The').",
    "ends": "Write endswith(title, 'End').",
    "endswith": "It is a function: endswith(title, 'End').",
    "isnull": "Write price IS NULL.",
    "notnull": "Write price IS NOT NULL.",
    "equals": "Write title = 'It'.",
    "eq": "Write title = 'It'.",
    "case": _CHOICE,
}
"""Words between two values."""

FUNCTIONS: dict[str, str] = {
    "ilike": _ANY_CASE,
    **dict.fromkeys(("now", "current_timestamp", "current_date", "current_time", "localtimestamp", "getdate"), _CLOCK),
    **dict.fromkeys(("sysdate", "today", "unix_timestamp", "curdate", "utcnow", "date_sub", "date_add"), _CLOCK),
    **dict.fromkeys(("includes", "has", "any", "some", "array_has", "list_contains", "list_has", "member"), _IN_ARRAY),
    **dict.fromkeys(("arrayoverlap", "list_has_any", "array_has_any", "hasany"), OPERATORS["overlaps"]),
    **dict.fromkeys(("strpos", "instr", "position", "charindex", "locate", "indexof"), _IN_TEXT),
    **dict.fromkeys(("regexp_like", "regexp", "regexp_matches", "matches", "match", "regex"), _PATTERN),
    **dict.fromkeys(("ifnull", "nvl", "isnull", "isnotnull"), _MISSING),
    **dict.fromkeys(("iif", "decode", "when", "nvl2"), _CHOICE),
    "min": f"{_NO_AGGREGATE} For the least of several values, write least(low, high) < 5.",
    "max": f"{_NO_AGGREGATE} For the greatest of several values, write greatest(low, high) < 5.",
    "sum": f"{_NO_AGGREGATE} For the sum of several values, write low + high < 5.",
    "starts_with": OPERATORS["starts"],
    "ends_with": OPERATORS["ends"],
}
"""Words before a parenthesis."""

CLOCKS = {"current_timestamp": _CLOCK, "current_date": _CLOCK, "current_time": _CLOCK, "localtimestamp": _CLOCK}
"""What other dialects call without a parenthesis; here it is an attribute, where events have one of that name."""
