from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress

import typer

import tamis as library
from tamis.cli.output import _window
from tests.cli.conftest import environment, program, tamis


def test_the_version_is_the_librarys():
    assert program("--version").stdout.decode() == f"tamis {library.__version__}\n"


def test_the_version_has_a_short_option_and_the_package_is_a_program():
    assert tamis("-V").stdout == f"tamis {library.__version__}\n"
    command = [sys.executable, "-m", "tamis", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment({}), timeout=60)
    assert done.stdout == f"tamis {library.__version__}\n"


def test_a_pipe_gets_plain_text():
    result = program("explain", "price < 20 OR bids > 3", "--event", '{"price": 12}')
    assert result.returncode == 0
    assert b"\x1b" not in result.stdout
    assert "└─ ? bids > 3" in result.stdout.decode()


def test_exit_codes_reach_the_shell():
    assert program("explain", "price < 20", "--event", '{"price": 30}').returncode == 1
    assert program("check", "price <").returncode == 2


def test_a_terminal_that_knows_only_ascii_gets_escapes_not_a_traceback():
    result = program("check", "price < 20 AND title = 'é'", env={"PYTHONIOENCODING": "ascii"})
    assert result.returncode == 0
    assert result.stdout.startswith(rb"\u2713 price < 20 AND title = '\xe9'")


def test_a_reader_that_leaves_early_is_no_error_of_ours():
    writer = subprocess.Popen(
        [sys.executable, "-m", "tamis.cli", "check", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment({}),
    )
    assert writer.stdout is not None
    writer.stdout.close()
    _, errors = writer.communicate(b"price < 20\n" * 500, timeout=60)
    assert b"Traceback" not in errors


def test_importing_the_command_line_is_cheap():
    # Heavy libraries are imported by the commands that need them, and until now none does.
    look = "import sys, tamis.cli; print([name for name in ('typer', 'rich') if name in sys.modules])"
    assert _python(look) == "[]\n"
    heavy = "('numba', 'numpy', 'pandas', 'pyarrow', 'pyspark')"
    look = f"import sys, tamis.cli.app; print([name for name in {heavy} if name in sys.modules])"
    assert _python(look) == "[]\n"


def test_a_shell_completes_commands_and_options():
    words = {"_TAMIS_COMPLETE": "complete_bash", "COMP_WORDS": "tamis ch", "COMP_CWORD": "1"}
    assert program(env=words).stdout.decode().split() == ["check"]
    words = {"_TAMIS_COMPLETE": "complete_bash", "COMP_WORDS": "tamis explain --event", "COMP_CWORD": "2"}
    assert program("explain", env=words).stdout.decode().split() == ["--event", "--event-file"]


def test_completion_can_be_installed():
    assert "--install-completion" in tamis("--help").output
    assert "--show-completion" in tamis("--help").output


def test_json_is_ascii_whatever_the_terminal():
    result = program("check", "--json", "title = 'é'", env={"PYTHONIOENCODING": "ascii"})
    assert json.loads(result.stdout)["texts"][0]["canonical"] == "title = 'é'"


def test_a_window_shows_as_much_as_fits_around_the_place():
    line = "".join(chr(ord("a") + index % 26) for index in range(300))
    for position in range(301):
        shown, column = _window(line, position, 40)
        assert len(shown) <= 40
        if position < 300:
            assert shown[column] == line[position]
        assert len(shown) >= 30, "room on one side is used where the other has nothing to show"


def _python(statement: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", statement], capture_output=True, check=True, text=True, env=environment({}), timeout=60
    ).stdout


WITHOUT_PYSPARK = """
import importlib.abc, sys
class Block(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Block())
from importlib import util
find = util.find_spec
util.find_spec = lambda name, package=None: None if name.partition(".")[0] in ("pyspark", "py4j") else find(name, package)
from tamis.cli import main
main()
"""


def without_pyspark(*arguments, **options):
    """Run the program where PySpark is not installed and no Java either."""
    env = environment({"JAVA_HOME": "", "PATH": os.defpath} | options.pop("env", {}))
    command = [sys.executable, "-c", WITHOUT_PYSPARK, *arguments]
    return subprocess.run(command, capture_output=True, timeout=120, check=False, env=env, **options)


def test_a_stream_without_pyspark_is_told_what_to_install(tmp_path):
    (tmp_path / "arriving").mkdir()
    (tmp_path / "rules.csv").write_text("subscription_id,condition\n1,price < 3\n")
    result = without_pyspark(
        "stream", "--events", "arriving", "--subscriptions", "rules.csv", "--out", "o", "--checkpoint", "c", cwd=tmp_path
    )  # fmt: skip
    assert result.returncode == 2
    assert b"pip install 'tamis[spark]'" in result.stderr
    assert b"Traceback" not in result.stderr


def test_messages_of_several_lines_are_shown_as_lines(capsys):
    from tamis.cli.output import mistakes_shown
    from tamis.spark.errors import JavaError

    with suppress(typer.Exit), mistakes_shown(as_json=False):
        raise JavaError("there is no Java. Install it:\n  sudo apt-get install \x1b[2J")
    told = capsys.readouterr().err
    assert "\\u000a" not in told
    assert [line.strip() for line in told.splitlines()] == [
        "✗ there is no Java. Install it:", "sudo apt-get install \\u001b[2J"
    ]  # fmt: skip
