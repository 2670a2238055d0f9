"""Nothing that README and docs show is only shown: each block is run, and this table says by which test.

A block with `>>>` is run by doctest, which pytest does for every page. Commands of every page are held against the
command line's own options. All other blocks stand in `RUN_BY`; a new one without a runner fails.
"""

from __future__ import annotations

import importlib
import re
import shlex
from pathlib import Path

import click
import pytest
import typer

from tamis.cli.app import app

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])

RUN_BY = {
    "docs/command-line.md": {"console": "cli.test_completion:test_the_lines_of_a_shell_are_printed_without_that_shell"},
    "docs/how-to/behind-a-proxy.md": {"toml": "test_how_to:test_the_settings_of_the_guides_to_the_service_are_read"},
    "docs/how-to/replay.md": {"console": "test_how_to:test_the_commands_of_the_guide_to_the_past_run"},
    "docs/how-to/systemd.md": {
        "ini": "test_how_to:test_the_unit_of_the_guide_to_systemd_starts_what_there_is",
        "sh": "test_how_to:test_the_commands_of_the_guide_to_systemd_make_what_the_unit_needs",
    },
    "docs/how-to/three-sites.md": {"toml": "test_how_to:test_the_settings_of_the_guides_to_the_service_are_read"},
    "docs/how-to/tls-and-roles.md": {
        "console": "test_how_to:test_the_command_of_the_guide_to_roles_checks_its_settings",
        "toml": "test_how_to:test_the_settings_of_the_guides_to_the_service_are_read",
    },
    "docs/how-to/changing-rules.md": {
        "console": "test_how_to:test_the_commands_of_the_guide_to_changes_run",
        "python": "test_pages:test_the_program_of_the_guide_to_changes_runs",
    },
    "docs/how-to/containers.md": {
        "dockerfile": "test_how_to:test_the_commands_of_the_guides_are_accepted",
        "toml": "test_how_to:test_the_settings_of_the_guide_to_containers_are_read",
        "console": "test_how_to:test_the_commands_of_the_guides_are_accepted",
        "yaml": "test_pages:test_the_probes_of_the_guide_to_containers_are_answered",
    },
    "docs/how-to/measuring.md": {"console": "test_how_to:test_the_commands_of_the_guide_to_measuring_run"},
    "docs/how-to/moving.md": {"console": "test_how_to:test_the_commands_of_the_guide_to_moving_run"},
    "docs/how-to/spark-cluster.md": {
        "sh": "test_pages:test_the_commands_of_the_guide_to_clusters_name_what_is_there",
        "python": "test_pages:test_the_programs_of_the_guide_to_clusters_run",
    },
    "docs/language.md": {
        "tamis": "test_docs:test_an_example_of_the_language_means_what_it_says",
        "tamis-beyond": "test_docs:test_an_example_of_the_language_means_what_it_says",
        "python": "test_pages:test_the_programs_of_the_language_run",
        "": "test_pages:test_a_file_of_functions_is_read_as_the_page_says",
    },
    "docs/pruning.md": {"indented": "test_pages:test_the_order_of_prunings_is_the_one_of_the_page"},
    "docs/service.md": {
        "console": "test_pages:test_the_commands_of_the_service_do_what_the_page_says",
        "python": "test_pages:test_the_client_of_the_service_does_what_the_page_says",
        "js": "test_pages:test_the_module_for_javascript_does_what_the_page_says",
        "toml": "test_pages:test_the_settings_of_the_service_are_read",
        "ini": "test_pages:test_the_unit_of_the_service_starts_it",
        "indented": "test_pages:test_a_consumer_has_each_effect_once",
    },
    "docs/settings.md": {"toml": "test_pages:test_the_settings_of_the_service_are_read"},
    "docs/spark.md": {
        "python": "test_pages:test_the_programs_of_spark_run",
        "sql": "test_pages:test_the_programs_of_spark_run",
        '{ .python title="examples/spark_pipeline/transformations/alerts.py" }': (
            "spark.test_pipelines:test_the_example_of_a_pipeline_matches_what_has_arrived"
        ),
        "sh": "spark.test_pipelines:test_the_example_of_a_pipeline_matches_what_has_arrived",
        "console": "test_blocks:test_a_command_is_one_that_the_command_line_takes",
    },
}  # fmt: skip
"""A page, a kind of block, and the test that runs all blocks of this kind on this page."""

DRAWN = "text"
"""Blocks that are drawings, grammars and conversations: nothing that could be run."""


def blocks(page: str) -> list[tuple[str, str]]:
    """Return kind and content of every block: what stands behind a fence, or `indented`.

    >>> blocks("A\\n\\n    tamis check\\n\\n```sh\\nls\\n```\\n")
    [('sh', 'ls\\n'), ('indented', 'tamis check\\n')]
    """
    fenced = re.findall(r"^```[ ]?([^\n]*)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    rest = re.sub(r"^```[^\n]*\n.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    indented = re.findall(r"(?:^|(?<=\n\n))((?:    [^\n]*\n|\n(?=    ))+)", rest)
    return [
        *((kind.strip(), content) for kind, content in fenced),
        *(("indented", re.sub("^    ", "", block, flags=re.MULTILINE)) for block in indented),
    ]


def commands(page: str) -> list[str]:
    """Return the commands of `tamis` and `make` in all blocks of a page, one line each."""
    lines = "\n".join(content for kind, content in blocks(page) if ">>>" not in content).replace("\\\n", " ")
    return [
        line.strip().removeprefix("$ ")
        for line in lines.splitlines()
        if re.match(r"\s*(\$ )?(.* \| )?tamis [a-z-]", line)
    ]


OTHERS = [
    pytest.param(path, kind, id=f"{path.relative_to(ROOT)}-{kind or 'plain'}")
    for path in PAGES
    if "tutorials" not in path.parts
    for kind in sorted({kind for kind, content in blocks(path.read_text("utf-8")) if ">>>" not in content} - {DRAWN})
]
COMMANDS = sorted({command for path in PAGES for command in commands(path.read_text("utf-8"))})


@pytest.mark.parametrize(("path", "kind"), OTHERS)
def test_a_block_is_run_by_a_test(path, kind):
    page = str(path.relative_to(ROOT))
    content = [content for other, content in blocks(path.read_text("utf-8")) if other == kind and ">>>" not in content]
    if kind == "indented" and all(_is_command(line) for line in _lines(content)):
        return
    assert kind in RUN_BY.get(page, {}), f"which test runs the blocks `{kind}` of {page}?"
    module, _, name = RUN_BY[page][kind].partition(":")
    assert hasattr(importlib.import_module(f"tests.{module}"), name)


def _is_command(line: str) -> bool:
    """Is it one that the tests below take, or one of the Makefile's, or an installation?"""
    return not line or line in COMMANDS or line.startswith(("make ", "curl -N ", "pip install "))


def _lines(contents: list[str]) -> list[str]:
    return [line.strip() for content in contents for line in content.replace("\\\n", " ").splitlines()]


def test_the_commands_of_make_are_targets():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = {
        name for path in PAGES for name in re.findall(r"^\s*make ([a-z-]+)", path.read_text("utf-8"), re.MULTILINE)
    }
    assert named
    assert named <= targets


def test_the_table_names_only_what_is_there():
    for page, kinds in RUN_BY.items():
        there = {kind for kind, content in blocks((ROOT / page).read_text("utf-8")) if ">>>" not in content}
        assert set(kinds) <= there, page


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_one_that_the_command_line_takes(command):
    if command.endswith("-completion"):
        return  # they print and end; tests/cli/test_completion.py runs them
    words = shlex.split(command.rpartition(" | ")[2] if " | tamis" in command else command, comments=True)
    words = words[: next((at for at, word in enumerate(words) if word in (">", "|", "&", "2>")), len(words))]
    assert words[0] == "tamis"
    context = typer.main.get_command(app).make_context("tamis", words[1:])
    while isinstance(context.command, click.Group):
        rest = [*context.protected_args, *context.args]
        if not rest:
            return
        name, inner, rest = context.command.resolve_command(context, rest)
        assert inner is not None, f"there is no command {name}"
        context = inner.make_context(name, rest, parent=context, resilient_parsing=False)
