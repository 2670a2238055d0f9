"""A coverage-guided fuzzer of the parser: `python -m tests.fuzz [libFuzzer's options]`.

Whatever the bytes, the parser answers with an expression or with a typed error; an expression prints as a text that
parses to an equal one, survives JSON, and has the same meaning in every form.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["tamis"]):
    import tamis
    from tamis.errors import LanguageError
    from tamis.language.rewrites import canonical, nnf

EVENT = {"a": 1, "b": {"c": "x"}, "x": [1, 2], "t": True}


def one(data: bytes) -> None:
    """Try one input."""
    text = data.decode("utf-8", "surrogateescape")
    try:
        expression = tamis.parse(text)
    except LanguageError as error:
        str(error)
        return
    assert tamis.parse(str(expression)) == expression
    assert tamis.from_json(expression.to_json()) == expression
    truth = tamis.truth(expression, EVENT)
    assert tamis.truth(nnf(expression), EVENT) is truth
    assert tamis.holds(canonical(expression), EVENT) is (truth is True)


if __name__ == "__main__":
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
