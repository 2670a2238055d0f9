"""The words that are not used: the list is read, and every kind of prose is looked at."""

from __future__ import annotations

import doctest
import subprocess
import sys
from pathlib import Path

import pytest
from tools import words

LISTED = words.rules(words.WORDS.read_text("utf-8"))


def uses(path: str, text: str) -> list[str]:
    return [use.words for use in words.uses([(Path(path), 1, text)], LISTED)]


def test_the_examples_of_the_checker_run():
    tried = doctest.testmod(words)
    assert tried.attempted >= 5 and tried.failed == 0


@pytest.mark.parametrize(
    "text",
    ["8 rows are no subscriptions", "A text is\nno list", "the client is told", "It is as true as it holds.", "Lists out, pairs after."],
)  # fmt: skip
def test_a_word_of_the_list_is_noticed(text):
    assert uses("a.md", text)


@pytest.mark.parametrize(
    "text",
    ["there is no such rule", "There\nare no rules", "It is no longer there", "can be told apart", "It is so.\n\nNo rule is.", "bis not"],
)  # fmt: skip
def test_what_only_looks_like_it_is_left_alone(text):
    assert uses("a.md", text) == []


def test_code_in_markdown_is_not_prose_and_lines_are_those_of_the_file():
    text = "# Title\n\n```\nit is told\n```\n\n    it is told\n\n`told` and then\nit is told.\n"
    (use,) = words.uses([(Path("a.md"), 1, words.of_markdown(text))], LISTED)
    assert (use.line, use.words) == (10, "told")
    assert str(use).startswith("a.md:10: 'told'; write: ")


def test_messages_are_looked_at_and_docstrings_and_keys_are_not(tmp_path):
    source = '''
"""A module is told."""
NAMES = {"told": "told"}
"""What is told."""
def f(name):
    """Is told."""
    raise ValueError(f"{name!r} is no " "column", "nobody was told")
'''
    assert [text for _, text in words.of_python(source)] == ["… is no column", "nobody was told"]


def test_the_helps_of_commands_are_looked_at():
    helps = {path.stem: text for path, _, text in words.of_commands()}
    assert "Check that everything tamis needs is installed" in helps["doctor"]
    assert len(helps) > 15


@pytest.mark.parametrize("line", ["told", "told  ->", "(  ->  close it", "  ->  nothing"])
def test_a_line_that_is_not_a_rule_is_refused_with_its_number(line):
    with pytest.raises(ValueError, match=r"words\.txt:2: "):
        words.rules(f"# a comment\n{line}\n")


def test_a_folder_with_a_bad_message_fails_and_names_the_place(tmp_path, monkeypatch, capsys):
    (tmp_path / "docs").mkdir()
    (tmp_path / "src").mkdir()
    (tmp_path / "docs" / "a.md").write_text("Everything\nis told.\n")
    (tmp_path / "CHANGELOG.md").write_text("In the past it was told.\n")
    (tmp_path / "src" / "b.py").write_text('raise OSError(f"{1} is no file")\n')
    monkeypatch.setattr(words, "of_commands", lambda: iter(()))
    whole = words.everything
    monkeypatch.setattr(words, "everything", lambda: whole(tmp_path))
    assert words.main() == 1
    assert [line.split(";")[0] for line in capsys.readouterr().out.splitlines()] == ["docs/a.md:2: 'told'", "src/b.py:1: 'is no'"]  # fmt: skip
    (tmp_path / "docs" / "a.md").unlink()
    (tmp_path / "src" / "b.py").unlink()
    assert words.main() == 0


def test_the_spelling_list_holds_words_that_the_checker_takes_for_mistakes():
    root = words.ROOT
    accepted = (root / "tools" / "spelling.txt").read_text("utf-8").split()
    assert accepted == sorted(set(accepted))
    checked = subprocess.run(
        [sys.executable, "-m", "codespell_lib", "-"],
        input="\n".join(accepted),
        capture_output=True,
        text=True,
        check=False,
        cwd=root.parent,
    )
    assert len(checked.stdout.splitlines()) >= len(accepted), "a word that is not a mistake need not be accepted"
