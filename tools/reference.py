"""Where do the pages of the reference come from? From the code, whenever the site is built.

Commands and options come from the definitions of the command line, errors from their docstrings and `cures.toml`, and
public names from the `__all__` and the docstrings of the packages. MkDocs calls `on_files` (`hooks` in mkdocs.yml), so
that no page is kept which could disagree with the code. tests/test_reference.py says what has to be in them.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import tomllib
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).parent.parent / "src"
CURES = Path(__file__).with_name("cures.toml")
WIDTH = 88
"""Code that is wider would have to be scrolled on a usual screen."""
PACKAGES = (
    "tamis", "tamis.language", "tamis.matching", "tamis.topk", "tamis.standing", "tamis.spark", "tamis.service.client",
    "tamis.relations", "tamis.pruning", "tamis.selectivity", "tamis.routing", "tamis.simulation", "tamis.workloads",
)  # fmt: skip
"""The packages whose public names people use, in the order of their pages."""


def on_files(files: Any, config: Any) -> Any:
    """Add the pages to the site; MkDocs calls it."""
    from mkdocs.structure.files import File

    for address, page in pages().items():
        files.append(File.generated(config, address, content=page))
    return files


def pages() -> dict[str, str]:
    """Return every page of the reference that is generated, by its address below docs/."""
    return {"reference/commands.md": commands_page(), "reference/errors.md": errors_page(), **names_pages()}


# -- Commands


def commands_page() -> str:
    """Return the page of all commands and their options."""
    import typer

    from tamis.cli.app import app

    parts = [
        "# Commands\n\nEvery command with its arguments and options, written from the program's own definitions. "
        "`tamis COMMAND --help` shows the same in a terminal, and `tamis --install-completion` teaches your shell to "
        "complete them."
    ]
    for path, command in _commands(("tamis",), typer.main.get_command(app)):
        parts += _command_parts(path, command)
    return "\n\n".join(parts) + "\n"


def _commands(path: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, part in getattr(command, "commands", {}).items():
        if not part.hidden:
            yield from _commands((*path, name), part)


def _command_parts(path: tuple[str, ...], command: Any) -> Iterator[str]:
    yield f"## {' '.join(path)}"
    yield _as_markdown(command.help or "")
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    usage = [_metavar(each) for each in arguments]
    yield _fenced("console", f"$ {' '.join((*path, *usage, '[OPTIONS]'))}")
    rows = [_parameter_row(each) for each in command.params if not getattr(each, "hidden", False)]
    if rows:
        yield "\n".join(("| | | default |", "|---|---|---|", *rows))
    notes, _, examples = (command.epilog or "").partition("[bold]Examples[/bold]")
    if notes.strip():
        yield _as_markdown(notes.strip())
    shown = [_shown_example(each) for each in re.split(r"\n\s*\n", examples.strip("\n")) if each]
    if shown:
        yield _fenced("console", "\n\n".join(shown))


def _shown_example(markup: str) -> str:
    """Return an example of a help: what it shows as a comment, and the command, which may take several lines."""
    comment, _, command = inspect.cleandoc("\n" + Text.from_markup(markup).plain).partition("\n$ ")
    return f"# {comment}\n$ {command}"


def _parameter_row(parameter: Any) -> str:
    is_argument = parameter.param_type_name == "argument"
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    if is_argument:
        names = f"`{_metavar(parameter)}`"
    elif not parameter.is_flag:
        names += f" {_metavar(parameter)}".replace("|", "\\|")
    meaning = _as_markdown(getattr(parameter, "help", None) or "").replace("|", "\\|")
    variable = getattr(parameter, "envvar", None)
    if variable:
        meaning += f" The variable `{variable}` sets it, too."
    return f"| {names} | {meaning} | {_shown_default(parameter)} |"


def _metavar(parameter: Any) -> str:
    """Return what stands for a value: the name that the option gives it, or the choices that there are."""
    annotation = parameter.type_descriptor.annotation
    for kind in (annotation, *get_args(annotation)):
        if inspect.isclass(kind) and issubclass(kind, Enum):
            return "|".join(str(each.value) for each in kind)
    return str(parameter.metavar or parameter.name.upper())


def _shown_default(parameter: Any) -> str:
    shown = getattr(parameter, "show_default", None)
    if isinstance(shown, str):
        return f"`{shown}`"
    if parameter.required:
        return "required"
    default = parameter.default
    if callable(default) or default in (None, False, (), []) or str(default).startswith("Sentinel"):
        return ""
    return f"`{getattr(default, 'value', default)}`"


def _as_markdown(markup: str) -> str:
    """Return a text of the terminal as Markdown: what is coloured there is code here."""
    return "\n\n".join(map(_paragraph_of_help, re.split(r"\n\s*\n", markup)))


def _paragraph_of_help(markup: str) -> str:
    if all(line.startswith("  ") for line in markup.splitlines()) and markup:
        return _fenced("text", inspect.cleandoc("\n" + Text.from_markup(markup).plain))
    code = re.sub(r"\[cyan\](.*?)\[/cyan\]", lambda part: f"`{part[1]}`", markup, flags=re.DOTALL)
    bold = re.sub(r"\[bold\](.*?)\[/bold\]", lambda part: f"**{part[1]}**", code, flags=re.DOTALL)
    return re.sub(r"\\\[", "[", re.sub(r"(?<!\\)\[/?(dim|green|red|yellow|blue|magenta)\]", "", bold))


# -- Errors


@cache
def error_classes() -> dict[str, list[tuple[str, str]]]:
    """Return every error that tamis raises for callers, by its module: the name and what it says of itself.

    The source is read and not imported, so that what needs Spark or aiohttp is there without them.
    """
    classes = [
        (module, node)
        for package in ("tamis", "tamis_lab")
        for path in sorted((SOURCE / package).rglob("*.py"))
        for module in (".".join(path.relative_to(SOURCE).with_suffix("").parts),)
        for text in (path.read_text("utf-8"),)
        if re.search(r"^class \w+(Error|Warning)\b", text, re.MULTILINE)  # to parse all modules takes seconds
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    ours = {"TamisError"}
    while True:
        heirs = {node.name for _, node in classes if ours & {ast.unparse(base) for base in node.bases}} - ours
        if not heirs:
            break
        ours |= heirs
    result: dict[str, list[tuple[str, str]]] = {}
    for module, node in classes:
        if node.name in ours or node.name.endswith("Warning"):
            meaning = inspect.cleandoc(ast.get_docstring(node) or "").partition("\n\n")[0]
            result.setdefault(module, []).append((node.name, " ".join(meaning.split())))
    # the errors that most people meet come first
    return dict(sorted(result.items(), key=lambda item: (item[0] != "tamis.errors", item[0])))


def cures() -> dict[str, str]:
    """Return what to do about each error, by its name."""
    return tomllib.loads(CURES.read_text("utf-8"))


def errors_page() -> str:
    """Return the page of all errors, with what to do about each."""
    known = cures()
    parts = [
        "# Errors\n\nEvery error is a `tamis.errors.TamisError`, so one `except` is enough. The message of an error "
        "says what is wrong, where, and what would be right; this page says what each kind means and what to do. Most "
        "errors are also one of Python's own (`ValueError`, `KeyError`, `ImportError`)."
    ]
    for module, classes in error_classes().items():
        rows = [f"| `{name}` | {meaning} | {known.get(name, '')} |".replace("\n", " ") for name, meaning in classes]
        parts += [f"## {module}", "\n".join(("| error | what it means | what to do |", "|---|---|---|", *rows))]
    return "\n\n".join(parts) + "\n"


# -- Public names


def names_pages() -> dict[str, str]:
    """Return a page for each package: its public names, with signatures and docstrings."""
    places: dict[int, tuple[str, str]] = {}
    result = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        parts = [
            f"# {package}",
            *_docstring_parts(module),
            "The examples here are run by the tests of the module that they come from.",
        ]
        for name in sorted(module.__all__, key=lambda name: (not name[0].isupper(), name.casefold())):
            parts += _name_parts(package, name, getattr(module, name), places)
        result[f"reference/{package}.md"] = "\n\n".join(parts) + "\n"
    return result


def _name_parts(package: str, name: str, value: Any, places: dict[int, tuple[str, str]]) -> Iterator[str]:
    yield f"## {name}"
    is_made = inspect.isclass(value) or inspect.isroutine(value)  # equal numbers are not the same thing
    place = places.setdefault(id(value), (package, name)) if is_made else (package, name)
    if place != (package, name):
        yield f"The same as [`{place[0]}.{place[1]}`]({place[0]}.md#{place[1].casefold()})."
    elif inspect.ismodule(value):
        known = f"{value.__name__}.md" if value.__name__ in PACKAGES else "errors.md"
        yield f"A module of its own: [`{value.__name__}`]({known})."
    elif inspect.isclass(value):
        yield _fenced("python", _signature(name, value))
        yield from _docstring_parts(value)
        for member, part in _members(value):
            yield f"### {name}.{member}"
            yield _fenced("python", _signature(member, part))
            yield from _docstring_parts(part)
    elif callable(value):
        yield _fenced("python", _signature(name, value))
        yield from _docstring_parts(value)
    else:
        yield _fenced("python", f"{name} = {_shortened(value)}")


def _members(owner: type) -> Iterator[tuple[str, Any]]:
    """Yield what a class and its bases in tamis define for everybody, and say something about."""
    for name in dir(owner):
        if name.startswith("_"):
            continue
        home = next((base for base in owner.__mro__ if name in vars(base)), None)
        if home is None or home.__module__.split(".")[0] not in ("tamis", "tamis_lab"):
            continue
        value = inspect.getattr_static(owner, name)
        value = getattr(value, "__func__", value)  # of class methods and static ones
        if isinstance(value, property) or inspect.isroutine(value):
            yield name, value


def _signature(name: str, value: Any) -> str:
    """Return how a name is called, on as many lines as it needs."""
    if isinstance(value, property):
        return name
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    shown = [_shown_parameter(each) for each in _with_marks(signature)]
    end = "" if signature.return_annotation is inspect.Signature.empty else f" -> {_kind(signature.return_annotation)}"
    if inspect.isclass(value):
        end = ""
    called = f"async {name}" if inspect.iscoroutinefunction(value) else name
    line = f"{called}({', '.join(shown)}){end}"
    if len(line) <= WIDTH or not shown:
        return line
    return "\n".join((f"{called}(", *(f"    {each}," for each in shown), f"){end}"))


def _with_marks(signature: inspect.Signature) -> Iterator[inspect.Parameter | str]:
    is_marked = False
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            is_marked = True
        if parameter.kind is parameter.KEYWORD_ONLY and not is_marked:
            is_marked = True
            yield "*"
        yield parameter


def _shown_parameter(parameter: inspect.Parameter | str) -> str:
    if isinstance(parameter, str):
        return parameter
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    shown = f"{stars}{parameter.name}"
    if parameter.annotation is not parameter.empty:
        shown += f": {_kind(parameter.annotation)}"
    if parameter.default is not parameter.empty:
        shown += f" = {_shortened(parameter.default)}"
    return shown


def _kind(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"ForwardRef\('(.*?)'\)", r"\1", text)
    return text if len(text) <= WIDTH - 20 else f"{text[: WIDTH - 21]}…"


def _shortened(value: Any) -> str:
    """Return a value as people write it, without addresses of memory and not longer than a line."""
    text = value.__name__ if inspect.isclass(value) or inspect.isroutine(value) else repr(value)
    if " at 0x" in text or len(text) > WIDTH // 2:
        return "…"
    return text


def _docstring_parts(value: Any) -> Iterator[str]:
    """Yield the paragraphs of a docstring as Markdown: examples and what is indented there are code."""
    text = inspect.getdoc(value) or ""
    for block in re.split(r"\n\s*\n", text):
        lines = block.splitlines()
        if not lines:
            continue
        start = next((index for index, line in enumerate(lines) if line.startswith(">>>")), None)
        is_table = any(re.match(r"\S.*?\S {3,}\S", line) for line in lines)  # arguments, and what they are
        if is_table or all(line.startswith("    ") for line in lines):
            yield _fenced("text", inspect.cleandoc("\n" + block))
        elif start is not None:
            if start:
                yield _paragraph(lines[:start])
            yield _fenced("pycon", "\n".join(lines[start:]))
        else:
            yield _paragraph(lines)


def _paragraph(lines: list[str]) -> str:
    parts = re.split(r"(`[^`]*`)", "\n".join(lines))
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;").replace("*", "\\*") for part in parts)


def _fenced(language: str, code: str) -> str:
    return f"```{language}\n{code}\n```"
