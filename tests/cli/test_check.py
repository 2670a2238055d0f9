from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import tamis as library
from tamis.cli.auction import SUBSCRIPTIONS
from tamis.language.rewrites import canonical
from tests.cli.conftest import program, tamis

if TYPE_CHECKING:
    from pathlib import Path


def test_a_good_text_is_shown_in_its_canonical_form_with_its_measures():
    result = tamis("check", "price<20 AND NOT (sold OR 3>bids)")
    assert result.exit_code == 0
    assert result.stdout == (
        "✓ bids >= 3 AND price < 20 AND sold = FALSE\n"  #
        "  size 10, depth 5, 3 predicates, least hits 3\n"
    )
    assert result.stderr == ""


def test_a_bad_text_gets_a_caret_under_its_mistake():
    result = tamis("check", "price < 20 AND")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == (
        "✗ line 1, column 15: found the end of the text, expected a condition\n"
        "    price < 20 AND\n"
        "                  ^\n"
    )


def test_a_hint_stands_below_the_caret():
    assert tamis("check", "bids > 3 AN price < 20").stderr.splitlines()[-1] == "  Did you mean AND?"


def test_a_caret_stands_right_behind_wide_characters():
    _, line, caret = tamis("check", "作者 = 5 AND").stderr.splitlines()
    assert line == "    作者 = 5 AND"
    assert caret == "    " + " " * 12 + "^", "each of the two characters takes two columns"


def test_a_caret_stands_right_in_the_middle_of_a_text_of_many_lines():
    error = tamis("check", "price < 20\n\tAND AND\nbids > 3").stderr.splitlines()
    assert error == [
        "✗ line 2, column 6: found AND, expected a condition",
        "     AND AND",
        "         ^",
    ]


def test_a_long_line_is_cut_around_its_mistake():
    text = " AND ".join(f"a{index} = {index}" for index in range(50)) + " AND AND b = 1 AND " + "c OR " * 50 + "c"
    _, line, caret = tamis("check", text).stderr.splitlines()
    assert len(line) <= 80
    assert line[caret.index("^") :].startswith("AND b = 1")
    assert line.startswith("    …")
    assert line.endswith("…")


def test_several_texts_are_told_apart():
    result = tamis("check", "price < 20", "price <", "bids")
    assert result.exit_code == 2
    assert result.stdout.count("✓") == 2
    assert "✗ text 2, line 1, column 8: found the end of the text" in result.stderr
    assert "1 of 3 texts is bad." in result.stderr


def test_standard_input_holds_one_text_a_line():
    result = tamis("check", "-", input="price < 20\r\n\n-- a comment\nbids >\n")
    assert result.exit_code == 2
    assert result.stdout.startswith("✓ price < 20\n")
    assert "✗ standard input:4:7: found the end of the text" in result.stderr


def test_a_file_holds_one_text_a_line(tmp_path: Path):
    path = tmp_path / "rules.txt"
    path.write_text("\ufeffprice < 20\nbids >\n", encoding="utf-8")
    result = tamis("check", "--file", str(path))
    assert result.exit_code == 2
    assert result.stdout.startswith("✓ price < 20\n")
    assert f"✗ {path}:2:7: found the end of the text" in result.stderr


def test_a_line_separator_inside_a_text_does_not_end_its_line():
    result = tamis("check", "-", input="title = 'one\u2028two'\n")
    assert result.exit_code == 0
    assert result.stdout.startswith(r"✓ title = 'one\u2028two'")


def test_a_schema_finds_out_misspelt_names(schema: Path):
    result = tamis("check", "--schema", str(schema), "prize < 20")
    assert result.exit_code == 2
    assert "there is no attribute prize" in result.stderr
    assert "Did you mean price?" in result.stderr


def test_a_schema_finds_out_wrong_types(schema: Path):
    result = tamis("check", "--schema", str(schema), "price < 20 AND title > 5")
    assert result.exit_code == 2
    assert "line 1, column 16: a text cannot be compared with a number" in result.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("price < 10 AND price > 20", "No event can match this."),
        ("NULL", "No event can match this."),
        ("price IS NULL OR price IS NOT NULL", "Every event matches this."),
    ],
)
def test_a_text_that_depends_on_no_event_says_so(text: str, told: str):
    assert told in tamis("check", text).stdout


def test_json_tells_good_texts_and_bad_ones():
    result = tamis("check", "--json", "price < 20", "price <")
    assert result.exit_code == 2
    assert result.stderr == ""
    document = json.loads(result.stdout)
    assert (document["good"], document["bad"]) == (1, 1)
    good, bad = document["texts"]
    assert good == {
        "text": "price < 20",
        "source": "text 1",
        "line": None,
        "ok": True,
        "canonical": "price < 20",
        "size": 3,
        "depth": 2,
        "predicates": 1,
        "least_hits": 1,
    }
    assert bad["ok"] is False
    assert bad["error"]["error"] == "ExpressionSyntaxError"
    assert (bad["error"]["line"], bad["error"]["column"]) == (1, 8)


def test_nothing_to_check_is_a_mistake():
    result = tamis("check")
    assert result.exit_code == 2
    assert "there is nothing to check" in result.stderr


@pytest.mark.parametrize("option", ["--file", "--schema"])
@pytest.mark.parametrize("kind", ["absent", "directory"])
def test_a_file_that_cannot_be_read_is_a_mistake(option: str, kind: str, tmp_path: Path):
    path = tmp_path if kind == "directory" else tmp_path / "absent"
    result = tamis("check", "price < 20", option, str(path))
    assert result.exit_code == 2
    assert f"cannot read {path}" in result.stderr.replace("\n  ", " ")
    document = json.loads(tamis("check", "price < 20", option, str(path), "--json").stdout)
    assert document["error"]["error"] == "InputError"


@pytest.mark.parametrize("text", list(SUBSCRIPTIONS.values()))
def test_the_canonical_form_shown_is_a_text_again(text: str):
    shown = tamis("check", text).stdout.splitlines()[0].removeprefix("✓ ")
    assert canonical(library.parse(shown)) == canonical(library.parse(text))


# -- On a terminal


def test_a_terminal_gets_colours_and_wrapped_lines():
    text = " AND ".join(f"attribute_{index} = {index}" for index in range(20))
    result = tamis("check", text, terminal=True)
    assert "\x1b[1;32m✓" in result.stdout
    assert "\n" not in tamis("check", text).stdout.removesuffix("\n").split("\n  size")[0], "a pipe gets it in one line"
    assert max(map(len, _uncoloured(result.stdout).splitlines())) <= 80


def test_the_caret_is_red():
    assert "\x1b[1;31m                  ^\x1b[0m" in tamis("check", "price < 20 AND", terminal=True).stderr


def test_no_color_takes_the_colours_away():
    result = tamis("check", "price < 20 AND", terminal=True, env={"NO_COLOR": "1"})
    assert "✗" in result.stderr
    assert "\x1b[1;31m" not in result.stderr
    assert "\x1b[33m" not in result.stderr


def test_an_escape_sequence_in_a_text_never_reaches_the_terminal():
    for text in ("title = '\x1b[2J'", "'\x1b[2J' +", "title = \x1b", "`\x1b[2J` < 3", "\x1b[2J('a')"):
        result = tamis("check", text)
        assert "\x1b" not in result.stdout + result.stderr


# -- Hostile input


@pytest.mark.parametrize(
    "junk",
    [
        bytes(range(256)) * 20,
        b"\x00" * 5_000,
        b"\xff\xfe" + "price < 20".encode("utf-16-le"),
        b"title = 'caf\xe9'",
        b"(" * 1_000_000,
        b"a" * 1_000_001,
        b"NOT " * 250_000,
        b"'" + b"x" * 1_000_000,
        b"a = 1 AND " * 100_000,
        b"a IN (" + b"1," * 500_000,
    ],
    ids=["bytes", "zeros", "utf-16", "latin-1", "parentheses", "name", "nots", "quote", "ands", "list"],
)
def test_junk_is_a_mistake_and_no_traceback(junk: bytes):
    result = tamis("check", "-", input=junk)
    assert result.exit_code == 2
    assert "✗" in result.stderr
    assert max(map(len, result.stderr.splitlines())) < 200, "a mistake in a large text is told in a few lines"
    document = json.loads(tamis("check", "--json", "-", input=junk).stdout)
    assert document["bad"] >= 1


def test_bytes_that_are_no_unicode_do_not_end_the_program():
    result = program("check", b"title = '\xff'", b"`\xff` < 3", b"\xff")  # type: ignore[arg-type]
    assert result.returncode == 2
    assert b"Traceback" not in result.stderr


def _uncoloured(text: str) -> str:
    from rich.text import Text

    return Text.from_ansi(text).plain
