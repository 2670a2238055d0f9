"""What a subscription says.

A subscription's text is a Boolean SQL expression, the part that would stand behind WHERE. This package
reads it (`parser`), builds it from Python (`builder`) or JSON (`json_form`), or translates it from rules of other
systems (`foreign`). It checks an expression against a `schema`, defines its meaning (`meaning`: the definition that
every matcher is tested against), explains an answer (`explanation`), and rewrites expressions into the forms that
matchers need (`rewrites`). Every function of the language is one row of a table (`functions`), and `ranges` says which
values make a predicate true.
"""

from tamis.language.builder import Value, all_of, any_of, at_least, attr, call, coalesce, lit, when, xor
from tamis.language.checking import check
from tamis.language.explanation import Explanation, explain
from tamis.language.expressions import Condition, Expression, Term
from tamis.language.foreign import Assumption, Translation, translate
from tamis.language.functions import Functions, function
from tamis.language.json_form import from_json, json_schema
from tamis.language.limits import Limits
from tamis.language.meaning import Event, holds, truth
from tamis.language.parser import parse
from tamis.language.schema import Schema

__all__ = [
    "Assumption",
    "Condition",
    "Event",
    "Explanation",
    "Expression",
    "Functions",
    "Limits",
    "Schema",
    "Term",
    "Translation",
    "Value",
    "all_of",
    "any_of",
    "at_least",
    "attr",
    "call",
    "check",
    "coalesce",
    "explain",
    "from_json",
    "function",
    "holds",
    "json_schema",
    "lit",
    "parse",
    "translate",
    "truth",
    "when",
    "xor",
]
