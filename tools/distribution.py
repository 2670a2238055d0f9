"""Is everything in the wheel and in the source archive that must be, and nothing else?

    python tools/distribution.py dist       looks at the archives in a folder; exits with 1 if something is wrong

The wheel has exactly the files of the packages under `src` that git knows: code, claims, data, the schema, `py.typed`.
The source archive has these, too, and what one needs to test and document them. Both must have complete metadata.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from email import message_from_string
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parent.parent
PACKAGES = ("tamis", "tamis_lab")
BESIDE = (
    "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "Dockerfile", "LICENSE", "Makefile", "README.md", "SECURITY.md",
    "pyproject.toml", "requirements.lock", "docs/index.md", "tests/conftest.py", "tools/distribution.py",
)  # fmt: skip
"""What the source archive has besides the packages."""
FIELDS = (
    "Name", "Version", "Summary", "License-Expression", "License-File", "Requires-Python", "Keywords", "Classifier",
    "Author", "Description-Content-Type", "Provides-Extra",
)  # fmt: skip
"""What the metadata must say."""


def tracked(root: Path = ROOT) -> set[str]:
    """Return the files of the packages that git knows, as the wheel names them: `tamis/py.typed`."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", "src"], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    return {str(PurePosixPath(name).relative_to("src")) for name in listed.split("\0") if name}


def problems_of_wheel(names: Iterable[str], metadata: str, files: set[str]) -> Iterator[str]:
    """Yield what is wrong with a wheel that has these files.

    >>> list(problems_of_wheel(["tamis/a.py", "tests/x.py"], "Name: tamis", {"tamis/a.py", "tamis/a.csv"}))[:2]
    ['the wheel lacks tamis/a.csv', 'the wheel has tests/x.py, which is not a file of the packages']
    """
    held = {name for name in names if not name.partition("/")[0].endswith(".dist-info")}
    yield from (f"the wheel lacks {name}" for name in sorted(files - held))
    yield from (f"the wheel has {name}, which is not a file of the packages" for name in sorted(held - files))
    yield from (
        f"{name}/py.typed is missing: nobody sees its types" for name in PACKAGES if f"{name}/py.typed" not in held
    )
    known = message_from_string(metadata)
    yield from (f"the metadata do not say {field}" for field in FIELDS if not known.get(field))


def problems_of_source(names: Iterable[str], files: set[str]) -> Iterator[str]:
    """Yield what is wrong with a source archive that has these files, without their common folder.

    >>> list(problems_of_source([*BESIDE, "src/tamis/a.py", ".venv/x"], {"tamis/a.py"}))
    ['the source archive has .venv/x']
    """
    held = set(names)
    wanted = {*BESIDE, *(f"src/{name}" for name in files)}
    yield from (f"the source archive lacks {name}" for name in sorted(wanted - held))
    made = (".venv/", "artifacts/", "site/", "dist/", ".git/")
    strange = (name for name in sorted(held) if name.startswith(made) or "__pycache__" in name)
    yield from (f"the source archive has {name}" for name in strange)


def problems(folder: Path, root: Path = ROOT) -> list[str]:
    """Return what is wrong with the archives in a folder."""
    wheels, sources = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sources) != 1:
        return [f"{folder} has {len(wheels)} wheels and {len(sources)} source archives, and should have one of each"]
    files = tracked(root)
    with zipfile.ZipFile(wheels[0]) as wheel:
        names = [name for name in wheel.namelist() if not name.endswith("/")]
        metadata = next(wheel.read(name).decode() for name in names if name.endswith(".dist-info/METADATA"))
    with tarfile.open(sources[0]) as source:
        held = [member.name.partition("/")[2] for member in source.getmembers() if member.isfile()]
    return [*problems_of_wheel(names, metadata, files), *problems_of_source(held, files)]


def main() -> int:
    """Print what is wrong, or what there is."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "dist")
    mistakes = problems(folder)
    for mistake in mistakes:
        print(mistake, file=sys.stderr)
    if not mistakes:
        for path in sorted(folder.glob("tamis-*")):
            print(f"{path}   {path.stat().st_size / 1e6:.1f} MB")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
