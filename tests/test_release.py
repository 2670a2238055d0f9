"""What stands against a release is said, all of it at once."""

from __future__ import annotations

import doctest
import re
import subprocess

import pytest
from tools import release

import tamis


def git(folder, *arguments):
    options = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *options, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def ready(tmp_path):
    """A tree that can be released."""
    (tmp_path / "src" / "tamis").mkdir(parents=True)
    (tmp_path / "src" / "tamis" / "__init__.py").write_text('__version__ = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## 1.2.0, 2027-01-31\n\n- It is faster.\n\n## 1.1.0, 2026-12-01\n"
    )
    (tmp_path / "CITATION.cff").write_text("version: 1.2.0\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "all")
    return tmp_path


def test_the_examples_of_the_recipe_run():
    tried = doctest.testmod(release)
    assert tried.attempted >= 3 and tried.failed == 0


def test_a_tree_that_is_ready_can_be_released(ready):
    assert release.problems(ready) == []


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        ("CHANGELOG.md", "## 1.2.0, unreleased\n\n- It is faster.\n", "no date yet"),
        ("CHANGELOG.md", "## 1.2.0, 2027-01-31\n\n## 1.1.0, 2026-12-01\n\n- Old.\n", "says nothing"),
        ("CHANGELOG.md", "## 1.1.0, 2026-12-01\n\n- Old.\n", "is that of 1.1.0"),
        ("CHANGELOG.md", "", "is that of nothing"),
        ("CITATION.cff", "version: 1.1.0\n", "cites version 1.1.0"),
        ("CITATION.cff", "", "cites version none"),
    ],
)
def test_what_disagrees_with_the_version_is_named(ready, path, text, problem):
    (ready / path).write_text(text)
    git(ready, "commit", "-qam", "change")
    (mistake,) = release.problems(ready)
    assert mistake.startswith(path) and problem in mistake


@pytest.mark.parametrize("version", ["", "1.2", "1.2.0.dev1", "1.2.0+local", "v1.2.0"])
def test_a_version_that_is_not_one_of_a_release_is_refused(ready, version):
    (ready / "src" / "tamis" / "__init__.py").write_text(f'__version__ = "{version}"\n')
    (mistake,) = release.problems(ready)
    assert "should be like 1.2.3" in mistake


def test_what_is_not_committed_and_a_tag_that_is_there_are_both_named(ready):
    git(ready, "tag", "v1.2.0")
    (ready / "new.txt").write_text("")
    unclean, tagged = release.problems(ready)
    assert unclean == "the tree is not clean: 1 paths are changed or unknown, such as new.txt"
    assert "v1.2.0 is there already" in tagged


def test_citation_and_changelog_of_this_tree_have_its_version():
    root = release.ROOT
    assert list(release.problems_of_citation((root / "CITATION.cff").read_text("utf-8"), tamis.__version__)) == []
    section = release.SECTION.search((root / "CHANGELOG.md").read_text("utf-8"))
    assert section["version"] == tamis.__version__


def test_the_citation_has_the_five_works_of_the_bibliography():
    root = release.ROOT
    bibliography = (root / "docs" / "bibliography.md").read_text("utf-8").partition("Also used:")[0]
    titles = [" ".join(title.split()) for title in re.findall(r"\*([^*]+?)\.\*(?!\*)", bibliography)]
    cited = re.findall(r"^    title: (.+)$", (root / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    assert len(cited) == 5
    assert sorted(cited) == sorted(titles)
