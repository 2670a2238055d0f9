from __future__ import annotations

import json

import pytest
from rich.cells import cell_len

import tamis as library
from tamis.cli.language import Phrase, topics
from tamis.language.functions import FUNCTIONS, callable_names
from tamis.language.tokens import RESERVED
from tests.cli.conftest import tamis

ENTRIES = [entry for entries in topics().values() for entry in entries]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.example)
def test_every_example_is_a_text_of_the_language(entry: Phrase):
    assert library.parse(str(library.parse(entry.example))) == library.parse(entry.example)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.form)
def test_every_example_uses_what_it_is_an_example_of(entry: Phrase):
    forms = {
        "text": "'it",
        "a.b": "seller.rating",
        "`…`": "`",
        "r'…'": "r'",
        "5e0  5D": "5e3",
        "IS TRUE": "IS NOT TRUE",
        "IS NULL": "IS NOT NULL",
        "--  /* */": "/*",
    }
    assert any(form in entry.example for form in (forms.get(entry.form) or entry.form).split("  "))


def test_no_function_and_no_keyword_is_missing():
    shown = " ".join(f"{entry.form} {entry.meaning}" for entry in ENTRIES)
    symbols = {function.symbol or name for name, function in FUNCTIONS.items()}
    for word in {*callable_names(), *RESERVED, *symbols}:
        assert word in shown


def test_what_spark_lacks_is_marked():
    marked = {entry.form for entry in ENTRIES if entry.is_extension}
    lacking = {name for name, function in FUNCTIONS.items() if function.spark is None}
    assert marked == lacking | {"XOR", "xor", "at_least", "IS A"}


@pytest.mark.parametrize("width", [80, 120])
def test_the_page_fits_the_terminal(width: int):
    result = tamis("language", env={"COLUMNS": str(width)})
    assert result.exit_code == 0
    assert max(map(cell_len, result.stdout.splitlines())) <= width
    for entry in ENTRIES:
        assert entry.example in result.stdout, "an example is never broken over two lines"


def test_json_lists_the_same():
    document = json.loads(tamis("language", "--json").stdout)
    assert list(document) == list(topics())
    assert document["Places and networks"][0]["is_extension"] is True
