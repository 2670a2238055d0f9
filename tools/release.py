"""Can this commit be released? A dry run of a release, which uploads nothing and tags nothing.

    python tools/release.py            the version, the changelog, the citation and the tree; all mistakes at once

`make release` runs it first, then the checks, all tests and the build, and prints what is left for a person to do.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
RELEASED = re.compile(r"\d+\.\d+\.\d+(?:rc\d+)?")
"""A version of a release: 1.2.3, or 1.2.3rc1 for a candidate."""
SECTION = re.compile(r"^## (?P<version>[^\s,]+), (?P<date>.+?)\s*$(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def version_of(module: str) -> str:
    r"""Return the version that the package says it has.

    >>> version_of('x = 1\n__version__ = "1.2.3"\n')
    '1.2.3'
    """
    match = re.search(r'^__version__ = "(.+)"$', module, re.MULTILINE)
    return match[1] if match else ""


def problems_of_changelog(text: str, version: str) -> Iterator[str]:
    r"""Yield why the changelog is not ready for a version.

    >>> list(problems_of_changelog("## 1.0.0, unreleased\n\n- All.\n", "1.0.0"))
    ['CHANGELOG.md: the section of 1.0.0 has no date yet, but "unreleased"; write "## 1.0.0, YYYY-MM-DD"']
    """
    section = SECTION.search(text)
    if section is None or section["version"] != version:
        top = section["version"] if section else "nothing"
        yield f'CHANGELOG.md: the top section should be "## {version}, YYYY-MM-DD", and is that of {top}'
        return
    if not DATE.fullmatch(section["date"]):
        yield (
            f'CHANGELOG.md: the section of {version} has no date yet, but "{section["date"]}"; '
            f'write "## {version}, YYYY-MM-DD"'
        )
    if not re.search(r"^- \S", section["text"], re.MULTILINE):
        yield f"CHANGELOG.md: the section of {version} says nothing"


def problems_of_citation(text: str, version: str) -> Iterator[str]:
    r"""Yield where CITATION.cff disagrees.

    >>> list(problems_of_citation("version: 0.9.0\n", "1.0.0"))
    ['CITATION.cff cites version 0.9.0, not 1.0.0']
    """
    match = re.search(r"^version: (.+)$", text, re.MULTILINE)
    cited = match[1].strip("\"'") if match else "none"
    if cited != version:
        yield f"CITATION.cff cites version {cited}, not {version}"


def problems_of_tree(root: Path, version: str) -> Iterator[str]:
    """Yield what git has to say against a release: changes that are not committed, a tag that is there already."""
    changed = _git(root, "status", "--porcelain").splitlines()
    if changed:
        yield f"the tree is not clean: {len(changed)} paths are changed or unknown, such as {changed[0][3:]}"
    if _git(root, "tag", "--list", f"v{version}"):
        yield f"the tag v{version} is there already; a version is released once"


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.rstrip("\n")


def problems(root: Path = ROOT) -> list[str]:
    """Return everything that stands against a release of this commit."""
    version = version_of((root / "src/tamis/__init__.py").read_text("utf-8"))
    if not RELEASED.fullmatch(version):
        return [f"src/tamis/__init__.py: __version__ is {version!r}, and should be like 1.2.3 or 1.2.3rc1"]
    return [
        *problems_of_changelog((root / "CHANGELOG.md").read_text("utf-8"), version),
        *problems_of_citation((root / "CITATION.cff").read_text("utf-8"), version),
        *problems_of_tree(root, version),
    ]


def main() -> int:
    """Print what stands against a release, or with `--next` what is left to do."""
    if "--next" in sys.argv:
        version = version_of((ROOT / "src/tamis/__init__.py").read_text("utf-8"))
        print(f"Version {version} can be released. Nothing was uploaded or tagged. What is left to do:")
        print(f"  git tag -a v{version} -m 'Version {version}'     # and push the tag")
        print("  .venv/bin/uv publish dist/*                 # asks for a token of the package index")
        return 0
    mistakes = problems()
    for mistake in mistakes:
        print(mistake, file=sys.stderr)
    if mistakes:
        print("This commit cannot be released yet. CONTRIBUTING.md says what a release takes.", file=sys.stderr)
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
