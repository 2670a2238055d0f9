"""Imports point one way: a package knows the packages above it, never those below."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import tomllib
from functools import cache
from importlib import metadata
from itertools import chain
from pathlib import Path

import pytest
from tools import facts

pytestmark = pytest.mark.xdist_group("architecture")  # so that one process parses all modules, once

SOURCE = Path(__file__).parent.parent / "src" / "tamis"
LAB = SOURCE.with_name("tamis_lab")
ORDER = (
    "errors", "compilation", "ragged", "literature", "language", "selectivity", "matching", "relations", "pruning", "topk", "standing", "sources", "routing", "simulation",
    "service",
    "spark", "workloads", "cli",
)  # fmt: skip
NEVER = {("simulation", "service"), ("service", "simulation")}
ONLY = {"pyspark": "spark", "socket": "service"}
"""Libraries that one package alone may import."""


UNNAMED = ("multidict", "yarl", "py4j")
"""Libraries that are part of what others take and give: aiohttp, and pyspark."""


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a module, parsed once for all questions."""
    return tuple(ast.walk(facts.parsed(path)))


def imports(path: Path):
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module, node.lineno
            if node.module == "tamis":
                yield from ((f"tamis.{alias.name}", node.lineno) for alias in node.names)


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in (*SOURCE.rglob("*.py"), *LAB.rglob("*.py"))}
"""Every module by its name."""


def modules():
    return [path for path in sorted(SOURCE.rglob("*.py")) if path.parent != SOURCE]


def test_a_module_imports_only_packages_above_its_own():
    for path in modules():
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


def test_the_product_never_imports_the_lab():
    for path in sorted(SOURCE.rglob("*.py")):
        assert [name for name, _ in imports(path) if name.split(".")[0] == LAB.name] == [], path
        names = {node.value for node in nodes(path) if isinstance(node, ast.Constant)}
        is_loader = path in (SOURCE / "literature.py", SOURCE / "compilation.py")
        assert LAB.name not in names or is_loader, f"{path} knows the name of the lab; tamis.literature imports it"


LAB_ORDER = ("matching", "topk", "experiments")


def test_a_part_of_the_lab_imports_only_parts_above_its_own_and_no_command():
    for path in sorted(LAB.rglob("*.py")):
        place = path.relative_to(LAB).parts
        for name, line in imports(path):
            top = name.split(".")
            assert top[0] not in ONLY, f"{path}:{line} imports {name}, which is for {ONLY.get(top[0])} alone"
            assert top[:2] != ["tamis", "cli"], (
                f"{path}:{line} imports {name}; the command knows the lab, not the reverse"
            )
            if top[0] == LAB.name and len(place) > 1:
                assert len(top) > 1 and LAB_ORDER.index(top[1]) <= LAB_ORDER.index(place[0]), f"{path}:{line}"


def test_a_kernel_imports_nothing_else_of_tamis_but_kernels_of_its_own_package_and_what_makes_it_one():
    for source in (SOURCE, LAB):
        for path in source.rglob("kernels.py"):
            own = f"{source.name}.{path.relative_to(source).parts[0]}."
            others = [name for name, _ in imports(path) if name.startswith("tamis")]
            others = [name for name in others if name not in ("tamis.compilation", "tamis.ragged")]
            assert all(name.startswith(own) and name.endswith(".kernels") for name in others), path


MOST_ARGUMENTS = 8
ADAPTERS = {"tamis.topk.block.kernels._run_columns"}
"""Kernels that take the columns of tables one by one, because the dispatcher takes too long over so many tables; the
docstring of who calls it says how long."""


def test_a_kernel_takes_few_arguments_because_parallel_arrays_are_tables():
    longer = {
        f"{name}.{node.name}"
        for name, path in FILES.items()
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef) and is_compiled(node) and len(parameters(node)) > MOST_ARGUMENTS
    }
    assert longer == ADAPTERS


def is_compiled(function: ast.FunctionDef) -> bool:
    made_by = [each.func if isinstance(each, ast.Call) else each for each in function.decorator_list]
    return any(isinstance(each, ast.Name) and each.id in ("kernel", "njit") for each in made_by)


def parameters(function: ast.FunctionDef) -> list[ast.arg]:
    given = function.args
    several = [given.vararg, given.kwarg]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *(each for each in several if each)]


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


# -- What packages show each other


def package_of(module: str) -> str:
    """Return the package that a module belongs to: `tamis.matching`, `tamis_lab.topk`; of a package itself, itself."""
    return ".".join(module.split(".")[:2])


@cache
def public_names(package: str) -> set[str]:
    """Return the `__all__` of a package, as it is written."""
    path = FILES.get(package)
    for node in facts.parsed(path).body if path is not None and path.name == "__init__.py" else ():
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def open_modules() -> tuple[set[str], set[str]]:
    """Return the modules that the architecture opens to all packages, and those that it opens to the lab alone."""
    document = (SOURCE.parent.parent / "docs" / "architecture.md").read_text("utf-8")
    section = document.partition("### What packages show each other")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("| `")]
    columns = ([], [])
    for package, *cells in rows:
        prefix = package.strip(" `")
        prefix = prefix if prefix.startswith(LAB.name) else f"{SOURCE.name}.{prefix}"
        for column, cell in zip(columns, cells, strict=True):
            column += [f"{prefix}.{module}" for module in re.findall(r"`([\w.]+)`", cell)]
    return set(columns[0]), set(columns[1])


def crossings(own: str, path: Path):
    """Yield what a module imports from other packages: the line, the module it comes from, the name or nothing."""
    for node in nodes(path):
        if not isinstance(node, ast.ImportFrom) or (node.module or "").split(".")[0] not in (SOURCE.name, LAB.name):
            continue
        for alias in node.names:
            whole = f"{node.module}.{alias.name}"
            is_module = whole in FILES and alias.name not in public_names(node.module)
            module, name = (whole, None) if is_module else (node.module, alias.name)
            if package_of(module) != package_of(own) and module.count("."):
                yield node.lineno, module, name


def is_public(module: str, name: str | None) -> bool:
    """Is it a package, a module that stands alone (`tamis.errors`), or a name that a package above it shows?"""
    if module.count(".") == 1 and (name is None or FILES[module].name != "__init__.py"):
        return True
    above = [".".join(module.split(".")[:end]) for end in range(2, module.count(".") + 2)]
    return name is not None and any(name in public_names(package) for package in above)


def test_a_package_imports_of_another_what_that_one_shows():
    """Its public names, or names without an underscore of the modules that docs/architecture.md opens."""
    to_all, to_lab = open_modules()
    wrong = []
    for own, path in FILES.items():
        allowed = to_all | (to_lab if own.startswith(LAB.name) else set())
        for line, module, name in crossings(own, path):
            imported = f"{path.relative_to(SOURCE.parent)}:{line} imports {module}{f'.{name}' if name else ''}"
            if (name or "").startswith("_"):
                wrong.append(f"{imported}, which is that module's own")
            elif not is_public(module, name) and module not in allowed:
                wrong.append(
                    f"{imported}, which {package_of(module)} does not show: "
                    f"put it into its __all__, or open the module in docs/architecture.md"
                )
    assert not wrong, "\n".join(wrong)


def test_what_a_module_shows_other_packages_says_what_it_is():
    opened = set().union(*open_modules())
    assert sorted(opened - FILES.keys()) == [], "the architecture opens modules that are not there"
    used = set()
    for own, path in FILES.items():
        for _, module, name in crossings(own, path):
            if module in opened and not is_public(module, name):
                used.add(module)
                for node in facts.parsed(FILES[module]).body if name else ():
                    if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
                        assert ast.get_docstring(node), f"{module}.{name} is used by {own}, and nothing says what it is"
    assert sorted(opened - used) == [], "modules that no other package imports from need not be open"


def test_what_is_open_to_the_lab_alone_is_not_open_to_all():
    to_all, to_lab = open_modules()
    assert to_all and to_lab and not to_all & to_lab


def test_every_module_has_a_user_beside_the_tests():
    """Some module imports it or something in it, or it is what Python or a command runs."""
    paths = FILES
    used = {name for name in paths if name.endswith("__main__") or name in ENTRIES}
    for own, path in paths.items():
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            else:
                names = {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
            used |= {name.rsplit(".", dots)[0] for name in names - {own} for dots in range(name.count(".") + 1)}
    used |= {f"{package}.{home}" for package, homes in by_name() for home in homes}
    used |= deferred()
    assert sorted(paths.keys() - used) == []


ENTRIES = (
    "tamis", "tamis.cli", "tamis.literature", "tamis_lab.matching.algorithms", "tamis_lab.matching.advice",
    "tamis_lab.matching.pipelining", "tamis_lab.experiments",
)  # fmt: skip
"""What users import, and what the product imports by name."""


def by_name():
    """Yield packages whose names are imported when somebody asks for them, and the modules of these names."""
    for path in SOURCE.rglob("__init__.py"):
        for node in facts.parsed(path).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOMES":
                yield module_name(path), set(ast.literal_eval(node.value).values())


def deferred():
    """Return the modules that a table names for when somebody needs them: `Deferred("module:name")`."""
    calls = (node for path in SOURCE.rglob("*.py") for node in nodes(path))
    named = (call for call in calls if isinstance(call, ast.Call) and ast.unparse(call.func) == "Deferred")
    return {call.args[0].value.partition(":")[0] for call in named if isinstance(call.args[0], ast.Constant)}


def test_the_architecture_names_every_module():
    """By the end of its dotted name, in backticks: `axes`, `block/draft`, `simulation.network`."""
    document = (SOURCE.parent.parent / "docs" / "architecture.md").read_text("utf-8")
    named = {words.strip("/").replace("/", ".") for words in re.findall(r"`([^`\n]+)`", document)}
    names = [module_name(path) for path in (*SOURCE.rglob("*.py"), *LAB.rglob("*.py")) if path.stem[:2] != "__"]
    ends = {name: {".".join(name.split(".")[start:]) for start in range(name.count(".") + 1)} for name in names}
    assert sorted(name for name in names if not ends[name] & named) == []


def test_every_module_says_what_it_is_for():
    for path in (*SOURCE.rglob("*.py"), *LAB.rglob("*.py")):
        assert ast.get_docstring(facts.parsed(path)), f"{path} has no docstring"


NAMESAKES = {
    "Delivery": "one event for one subscriber: out of a window, as the core says it, and as a program of the client sees it",
    "Gap": "positions that are lost: in the log, and as a program of the client is notified of them",
    "Hello": "the first message of a conversation: between brokers, and between a broker and a client",
    "Publish": "a publication: between brokers, and of a client",
    "Subscribe": "a subscription: between brokers, and of a client",
    "Subscription": "a row of a matcher, and what a client holds while it is subscribed; both are public",
    "Told": "what a subscription with a memory says of an event: as the core says it, on the WebSocket, and in a program",
    "Unsubscribe": "the end of a subscription: between brokers, and of a client",
}
"""Names of classes that stand in several modules: the same thing in two protocols, or as two layers see it."""


def test_a_class_has_its_name_for_itself():
    twice = facts.namesakes(sorted(FILES.values()), SOURCE.parent)
    assert sorted(twice) == sorted(NAMESAKES), "one word, one thing: rename, or say why not"


def test_a_local_says_what_it_holds_and_not_how_it_came():
    """See `VAGUE` in tools/facts.py."""
    vague = {
        f"{module}.{node.name}"
        for module, path in FILES.items()
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not facts.locals_of(node).isdisjoint(facts.VAGUE)
    }
    assert sorted(vague) == []


QUESTIONS = re.compile(
    r"_*(is|has|are|was|were|can|may|must|would|should|does|fits|covers|overlaps|holds|contains|knows|wants|needs|takes|accepts|allows|lies|belongs)(_|$)"
)
CHANGING = {
    "add", "append", "appendleft", "clear", "discard", "extend", "heappop", "heappush", "insert", "pop", "popitem", "popleft",
    "put", "remove", "setdefault", "sort", "spend", "update",
}  # fmt: skip
"""Methods that change what they are called on."""
SCRATCH = {
    "tamis.relations.advertisements.kernels._is_true": "counts in an array that it is given for that",
    "tamis.routing.interests.are_there": "makes its index when it is asked for the first time",
    "tamis_lab.matching.atree.graph.kernels.has_operands": "sorts in an array that it is given for that",
}
"""Questions whose answers need room, and which change nothing that another question would see."""


def base_of(node: ast.AST) -> str | None:
    """Return the variable that a target or a call begins with: of `self.a[b].c`, `self`."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def changes_of(function: ast.FunctionDef | ast.AsyncFunctionDef):
    """Yield the lines in which a function changes something that it was given."""
    given = {parameter.arg for parameter in (*function.args.args, *function.args.kwonlyargs)}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.Delete):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
            targets = [node.func]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):  # of which only the effect can be wanted
            called = node.value.func
            is_own = isinstance(called, ast.Attribute) and ast.unparse(called.value) == "self"
            targets = [called] if is_own else []
        else:
            continue
        flat = [part for each in targets for part in (each.elts if isinstance(each, ast.Tuple) else [each])]
        if any(isinstance(each, ast.Attribute | ast.Subscript) and base_of(each) in given for each in flat):
            yield node.lineno


def test_a_function_that_is_named_as_a_question_only_answers():
    wrong = {}
    for module, path in FILES.items():
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and QUESTIONS.match(node.name):
                lines = sorted(set(changes_of(node)))
                if lines:
                    wrong[f"{module}.{node.name}"] = lines
    assert sorted(wrong) == sorted(SCRATCH), "name it for what it does, or let it only answer"
    source = "def is_cut(self, tree):\n    self.count += 1\n    tree.children.pop()\n    return True"
    assert list(changes_of(ast.parse(source).body[0])) == [2, 3]
    source = "def is_cut(self, tree):\n    self._cut(tree)\n    print(tree)\n    return self._has_parts(tree)"
    assert list(changes_of(ast.parse(source).body[0])) == [2]


def test_every_library_that_is_imported_is_named_in_the_project():
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    named = {re.split(r"[^\w.-]", each)[0].replace("_", "-").lower() for each in wanted}
    homes = metadata.packages_distributions()
    for path in FILES.values():
        for name, line in imports(path):
            top = name.split(".")[0]
            if top not in sys.stdlib_module_names and top not in (SOURCE.name, LAB.name, *UNNAMED):
                assert top in homes, f"{path}:{line}: {top} is not installed; `make setup`"
                assert {home.lower() for home in homes[top]} & named, f"{path}:{line}: {top} is not in pyproject.toml"
