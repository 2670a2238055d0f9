"""Where does the next token end, and what is it? The lexer.

One regular expression takes white space and the token behind it in a single step. A token's kind is
the upper-case keyword or the operator itself, or one of "name", "quoted", "number", "string", "end".
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tamis.errors import ExpressionSyntaxError, LiteralError

RESERVED = frozenset(
    ("AND", "OR", "NOT", "XOR", "IN", "LIKE", "RLIKE", "REGEXP", "BETWEEN", "IS", "NULL", "TRUE", "FALSE", "ESCAPE")
)
"""Words that must be back-quoted to be attributes."""

NAME = r"[^\W\d]\w*+"
STRING = r"""[rR]'[^']*+'|[rR]"[^"]*+"|'[^'\\]*+(?:(?:\\.|'')[^'\\]*+)*+'|"[^"\\]*+(?:(?:\\.|"")[^"\\]*+)*+\""""
NUMBER = r"(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+(?:BD|bd|[LlSsYyDdFf])?+(?![\w.])"
_TOKEN = re.compile(
    rf"""\s*+(?:
      ((?![rR]['"]){NAME}(?:\.{NAME})*+)
    | ({STRING})
    | ({NUMBER})
    | (--[^\n]*+|/\*)
    | (<=>|<=|>=|<>|!=|==|[=<>+\-*/%(),.!])
    | (`[^`]*+(?:``[^`]*+)*+`)
    | (\Z)
    | (.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_WORD, _STRING, _NUMBER, _COMMENT, _OPERATOR, _QUOTED, _END, _BAD = range(1, 9)
_KINDS = ("", "", "string", "number", "", "", "quoted", "end", "")
_SAME = {"!=": "<>", "==": "=", "!": "NOT"}
_WORDS = {word: word for word in RESERVED} | {word.lower(): word for word in RESERVED}
_WORDS |= {"REGEXP": "RLIKE", "regexp": "RLIKE"}
_COMMENT_EDGE = re.compile(r"/\*|\*/")


class Token(NamedTuple):
    """A piece of the text: what it is, how it is written, where it starts and ends."""

    kind: str
    text: str
    start: int
    end: int


def next_token(text: str, position: int) -> Token:
    """Return the first token at or behind a position.

    >>> next_token("price <= 20", 5)
    Token(kind='<=', text='<=', start=6, end=8)
    """
    while True:
        token_match = _TOKEN.match(text, position)
        assert token_match is not None, "the last alternatives take the end and every character"
        group = token_match.lastindex
        assert group is not None
        piece = token_match[group]
        position = token_match.end()
        if group == _WORD:
            return Token(_WORDS.get(piece) or _keyword(piece), piece, position - len(piece), position)
        if group == _OPERATOR:
            return Token(_SAME.get(piece, piece), piece, position - len(piece), position)
        if group == _COMMENT:
            position = _comment_end(text, position - 2) if piece == "/*" else position
        elif group == _BAD:
            raise _bad_character(text, position - 1)
        else:
            return Token(_KINDS[group], piece, position - len(piece), position)


_AFTER_CASE = frozenset({"name", "quoted", "number", "string", "(", "NOT", "TRUE", "FALSE", "NULL"})
_NEGATED = frozenset({"BETWEEN", "IN", "LIKE", "RLIKE"})
ENDS_OPERAND = frozenset({"name", "quoted", "number", "string", ")", "TRUE", "FALSE", "NULL"})
"""Behind such a token, a name is not an operand."""


def opens_case(text: str, token: Token) -> bool:
    """Does this token, where an operand is due, open a CASE? If not, it may be an attribute of that name.

    CASE, WHEN, THEN, ELSE and END are not reserved: events that have such attributes keep them.

    >>> [opens_case(text, next_token(text, 0)) for text in ("CASE WHEN a THEN 1 END = 1", "case = 1", "case - a > 1")]
    [True, False, False]
    """
    if token.kind != "name" or token.text.upper() != "CASE":
        return False
    following = next_token(text, token.end)
    if following.kind == "NOT":
        return next_token(text, following.end).kind not in _NEGATED
    if following.kind in ("-", "+"):
        return _is_when(text, following)
    return following.kind in _AFTER_CASE


def _is_when(text: str, sign: Token) -> bool:
    """Is WHEN the first word behind a whole operand? Then `CASE -x WHEN` opens a CASE, as `case - x > 0` does not."""
    nesting, is_complete, token = 0, False, next_token(text, sign.end)
    while token.kind != "end" and nesting >= 0:
        if token.kind == "name" and is_complete and nesting == 0:
            return token.text.upper() == "WHEN"
        nesting += (token.kind == "(") - (token.kind == ")")
        is_complete = token.kind in ENDS_OPERAND
        token = next_token(text, token.end)
    return False


def _keyword(word: str) -> str:
    # Only ASCII words: "ıs".upper() is "IS", and yet it is a name.
    return _WORDS.get(word.upper(), "name") if word.isascii() else "name"


def _comment_end(text: str, position: int) -> int:
    """Return where a bracketed comment ends. They nest, as in Spark SQL."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, position):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    raise ExpressionSyntaxError("this comment is never closed", text=text, position=position, expected=("*/",))


def _bad_character(text: str, position: int) -> ExpressionSyntaxError | LiteralError:
    character = text[position]
    if character in "'\"`":
        return ExpressionSyntaxError(
            f"this {'name' if character == '`' else 'text'} is never closed",
            text=text,
            position=position,
            expected=(f"a closing {character}",),
        )
    if character.isdigit() or character == ".":
        return LiteralError(
            "this is not a number",
            text=text,
            position=position,
            hint="A name that starts with a digit must be back-quoted: `2nd_price`.",
        )
    hints = {
        "|": "Write OR.",
        "&": "Write AND.",
        "^": "Write XOR.",
        "~": "Write title RLIKE 'pattern'.",
        "@": "Write array_contains(tags, 'new').",
        ";": "An expression is one condition; leave the semicolon out.",
        "“": "Quote texts with ' or \".",
        "‘": "Quote texts with ' or \".",
        "’": "Quote texts with ' or \".",
        "≤": "Write <=.",
        "≥": "Write >=.",
        "≠": "Write <>.",
    }
    return ExpressionSyntaxError(
        f"{character!r} has no meaning here", text=text, position=position, hint=hints.get(character)
    )


_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))|''|\"\"", re.DOTALL)
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def string_value(piece: str) -> str:
    r"""Return the text that a string literal denotes, by Spark SQL's rules for escapes.

    >>> string_value(r"'it''s \u00e9'"), string_value(r"r'a\n'")
    ("it's é", 'a\\n')
    """
    if piece[0] in "rR":
        return piece[2:-1]
    quote, inner = piece[0], piece[1:-1]
    if "\\" not in inner and quote not in inner:
        return inner
    return _ESCAPE.sub(lambda found: _unescaped(found, quote), inner)


def _unescaped(escape: re.Match[str], quote: str) -> str:
    short, long, octal, single = escape.groups()
    if short or long:
        code = int(short or long, 16)
        if code > 0x10FFFF:
            raise ValueError(f"\\U{long} is beyond Unicode")
        return chr(code)
    if octal:
        return chr(int(octal, 8))
    if single:
        return _ESCAPES.get(single, single)
    return quote if escape[0][0] == quote else escape[0]
