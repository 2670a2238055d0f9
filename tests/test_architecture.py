"""Imports point one way: a package knows the packages above it, never those below."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "tamis"
LAB = SOURCE.with_name("tamis_lab")
ORDER = (
    "errors", "compilation", "ragged", "literature", "language", "selectivity", "matching", "relations", "pruning", "topk", "sources", "routing", "simulation",
    "service",
    "spark", "workloads", "cli",
)  # fmt: skip
NEVER = {("simulation", "service"), ("service", "simulation")}
ONLY = {"pyspark": "spark", "socket": "service"}
"""Libraries that one package alone may import."""


def imports(path: Path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module, node.lineno
            if node.module == "tamis":
                yield from ((f"tamis.{alias.name}", node.lineno) for alias in node.names)


def modules():
    return [path for path in sorted(SOURCE.rglob("*.py")) if path.parent != SOURCE]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_packages_above_its_own(path):
    own = path.relative_to(SOURCE).parts[0]
    assert own in ORDER, f"{own} has no place in the architecture yet"
    for name, line in imports(path):
        top = name.split(".")
        if top[0] in ONLY:
            assert own == ONLY[top[0]], f"{path}:{line} imports {name}, which is for {ONLY[top[0]]} alone"
        if top[0] != "tamis":
            continue
        other = top[1] if len(top) > 1 else ""
        if other not in ORDER:
            # the workloads and the command line stand on top of everything and may use the public names
            assert ORDER.index(own) >= ORDER.index("workloads"), f"{path}:{line} imports {name}"
            continue
        assert ORDER.index(other) <= ORDER.index(own), f"{path}:{line} imports {name}, which stands below {own}"
        assert (own, other) not in NEVER, f"{path}:{line}: {own} and {other} never know each other"


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_the_product_never_imports_the_lab(path):
    assert [name for name, _ in imports(path) if name.split(".")[0] == LAB.name] == []
    names = {node.value for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Constant)}
    is_loader = path in (SOURCE / "literature.py", SOURCE / "compilation.py")
    assert LAB.name not in names or is_loader, f"{path} knows the name of the lab; tamis.literature imports it"


LAB_ORDER = ("matching", "topk", "experiments")


@pytest.mark.parametrize("path", sorted(LAB.rglob("*.py")), ids=lambda path: str(path.relative_to(LAB)))
def test_a_part_of_the_lab_imports_only_parts_above_its_own_and_no_command(path):
    place = path.relative_to(LAB).parts
    for name, line in imports(path):
        top = name.split(".")
        assert top[0] not in ONLY, f"{path}:{line} imports {name}, which is for {ONLY.get(top[0])} alone"
        assert top[:2] != ["tamis", "cli"], f"{path}:{line} imports {name}; the command knows the lab, not the reverse"
        if top[0] == LAB.name and len(place) > 1:
            assert len(top) > 1 and LAB_ORDER.index(top[1]) <= LAB_ORDER.index(place[0]), f"{path}:{line}"


def test_a_kernel_imports_nothing_else_of_tamis_but_kernels_of_its_own_package_and_what_makes_it_one():
    for source in (SOURCE, LAB):
        for path in source.rglob("kernels.py"):
            own = f"{source.name}.{path.relative_to(source).parts[0]}."
            others = [name for name, _ in imports(path) if name.startswith("tamis")]
            others = [name for name in others if name not in ("tamis.compilation", "tamis.ragged")]
            assert all(name.startswith(own) and name.endswith(".kernels") for name in others), path


@pytest.mark.parametrize(
    "path",
    [path for source in (SOURCE, LAB) for path in sorted(source.rglob("__init__.py"))],
    ids=lambda path: str(path.parent.relative_to(SOURCE.parent)),
)
def test_the_public_names_of_a_package_are_those_in_its_all_and_say_what_they_are(path):
    if "spark" in path.parts:
        pytest.importorskip("pyspark")
    package = importlib.import_module(module_name(path))
    own = {
        name
        for name, value in vars(package).items()
        if not inspect.ismodule(value)  # a subpackage that somebody imported
        and getattr(value, "__module__", "").split(".")[0] in (SOURCE.name, LAB.name)
        and not name.startswith("_")
    }
    public = getattr(package, "__all__", [])
    assert own <= set(public), f"{package.__name__} shows what is not in its __all__"
    assert len(set(public)) == len(public)
    for name in public:
        value = getattr(package, name)
        assert value.__doc__ or not (inspect.isroutine(value) or inspect.isclass(value)), name


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_every_module_has_a_user_beside_the_tests():
    """Some module imports it or something in it, or it is what Python or a command runs."""
    paths = {module_name(path): path for path in (*SOURCE.rglob("*.py"), *LAB.rglob("*.py"))}
    used = {name for name in paths if name.endswith("__main__") or name in ENTRIES}
    for own, path in paths.items():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            else:
                names = {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
            used |= {name.rsplit(".", dots)[0] for name in names - {own} for dots in range(name.count(".") + 1)}
    used |= {f"{package}.{home}" for package, homes in by_name() for home in homes}
    assert sorted(paths.keys() - used) == []


ENTRIES = ("tamis", "tamis.cli", "tamis.literature", "tamis_lab.matching.algorithms", "tamis_lab.experiments")
"""What users import, and what the product imports by name."""


def by_name():
    """Yield packages whose names are imported when somebody asks for them, and the modules of these names."""
    for path in SOURCE.rglob("__init__.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOMES":
                yield module_name(path), set(ast.literal_eval(node.value).values())


def test_the_architecture_names_every_module():
    """By the end of its dotted name, in backticks: `axes`, `block/draft`, `simulation.network`."""
    document = (SOURCE.parent.parent / "docs" / "architecture.md").read_text("utf-8")
    named = {words.strip("/").replace("/", ".") for words in re.findall(r"`([^`\n]+)`", document)}
    names = [module_name(path) for path in (*SOURCE.rglob("*.py"), *LAB.rglob("*.py")) if path.stem[:2] != "__"]
    ends = {name: {".".join(name.split(".")[start:]) for start in range(name.count(".") + 1)} for name in names}
    assert sorted(name for name in names if not ends[name] & named) == []


def test_every_module_says_what_it_is_for():
    for path in (*SOURCE.rglob("*.py"), *LAB.rglob("*.py")):
        assert ast.get_docstring(ast.parse(path.read_text("utf-8"))), f"{path} has no docstring"
