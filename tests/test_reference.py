"""The pages of the reference, which are made from the code when the site is built, leave nothing out."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest
import yaml
from tools import reference

import tamis
from tamis.errors import TamisError

ROOT = Path(__file__).parent.parent


def navigation() -> set[str]:
    """The pages that the navigation of the site names."""
    text = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2]

    def leaves(node):
        if isinstance(node, str):
            yield node
        else:
            for part in node if isinstance(node, list) else node.values():
                yield from leaves(part)

    return set(leaves(yaml.safe_load(text)))


def code_lines(page: str):
    return [line for block in re.findall(r"^```.*?^```", page, re.MULTILINE | re.DOTALL) for line in block.splitlines()]


def test_every_command_and_option_is_in_the_reference():
    import typer

    from tamis.cli.app import app

    page = reference.commands_page()
    commands = typer.main.get_command(app).commands
    assert len(commands) > 15
    for name, command in commands.items():
        section = page.partition(f"\n## tamis {name}\n")[2].partition("\n## ")[0]
        assert command.help in section
        for parameter in command.params:
            if parameter.param_type_name == "option" and not parameter.hidden:
                assert all(f"`{option}`" in section for option in parameter.opts), f"tamis {name} {parameter.opts}"


def test_every_error_is_in_the_reference_with_what_to_do_about_it():
    page = reference.errors_page()
    named = {name for classes in reference.error_classes().values() for name, _ in classes}
    assert named == set(reference.cures()), "tools/cures.toml says what to do about each error, and about nothing else"
    for name in named:
        (row,) = re.findall(rf"^\| `{name}` \| (.+) \| (.+) \|$", page, re.MULTILINE)
        assert all(cell.strip() for cell in row), name


def test_the_errors_that_are_read_from_the_source_are_those_that_are_raised():
    """Reading finds what importing finds, of the modules that need neither Spark nor a server."""
    for module in ("tamis.errors", "tamis.matching.errors", "tamis.topk.errors", "tamis.relations.errors"):
        classes = vars(importlib.import_module(module)).values()
        own = {
            kind.__name__
            for kind in classes
            if inspect.isclass(kind) and issubclass(kind, TamisError) and kind.__module__ == module
        }
        assert own == {name for name, _ in reference.error_classes()[module]}


def test_every_public_package_has_a_page():
    source = Path(tamis.__file__).parent
    public = {"tamis", "tamis.service.client"}
    for module in pkgutil.iter_modules([str(source)], "tamis."):
        path = source / module.name.removeprefix("tamis.") / "__init__.py"
        if module.ispkg and any(
            isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
            for node in ast.parse(path.read_text("utf-8")).body
        ):
            public.add(module.name)
    assert public - {"tamis.cli"} == set(reference.PACKAGES)


def test_every_public_name_is_in_the_reference():
    pytest.importorskip("pyspark")
    pages = reference.names_pages()
    for package in reference.PACKAGES:
        page = pages[f"reference/{package}.md"]
        names = importlib.import_module(package).__all__
        assert set(re.findall(r"^## (.+)$", page, re.MULTILINE)) == set(names)
        assert " at 0x" not in page, "an address of memory is different in each build"
    assert "### Matcher.add_many" in pages["reference/tamis.md"]


def test_the_navigation_names_every_page_and_no_other():
    written = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    generated = {f"reference/{package}.md" for package in reference.PACKAGES}
    generated |= {"reference/commands.md", "reference/errors.md"}
    assert not written & generated
    assert navigation() == written | generated


GUIDES = sorted((ROOT / "docs").glob("tutorials/*.md")) + sorted((ROOT / "docs").glob("how-to/*.md"))


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_no_code_of_a_guide_is_cut_off(path):
    lines = code_lines(path.read_text("utf-8"))
    assert lines, "a guide shows how"
    assert max(map(len, lines)) <= reference.WIDTH, max(lines, key=len)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_no_line_of_an_example_is_cut_off(path):
    assert max(map(len, path.read_text("utf-8").splitlines())) <= reference.WIDTH


def test_no_code_of_the_commands_is_cut_off():
    assert max(map(len, code_lines(reference.commands_page()))) <= reference.WIDTH
