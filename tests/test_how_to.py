"""What the how-to guides say holds: their tables of equivalents, and the settings and commands that they show."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import tamis
from tests.cli.conftest import tamis as run_tamis
from tests.ports import free_port
from tests.walkthrough import do, is_shown, steps, terminal

HOW_TO = Path(__file__).parent.parent / "docs" / "how-to"


def equivalents():
    for line in (HOW_TO / "moving.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == 4 and "`" in cells[1]:
            yield pytest.param(*(cell.strip("`") for cell in cells), id=cells[1].strip("`"))


EQUIVALENTS = list(equivalents())
assert len(EQUIVALENTS) > 25, "the tables are there to be tried"


@pytest.mark.parametrize(("other", "condition", "matching", "not_matching"), EQUIVALENTS)
def test_an_equivalent_of_another_system_matches_what_it_says(other, condition, matching, not_matching):
    assert other
    assert tamis.holds(tamis.parse(condition), json.loads(matching))
    assert not tamis.holds(tamis.parse(condition), json.loads(not_matching))


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (HOW_TO / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_the_settings_of_the_guide_to_containers_are_read(tmp_path):
    from tamis.service.settings import read_settings

    (text,) = blocks("containers.md", "toml")
    file = tmp_path / "tamis.toml"
    file.write_text(text)
    settings = read_settings(file)
    assert settings.listeners[0].host == tomllib.loads(text)["listeners"][0]["host"]
    assert list(settings.roles) == ["shop"]


def test_the_commands_of_the_guides_are_accepted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (text,) = blocks("containers.md", "console")
    assert run_tamis(*shlex.split(text.removeprefix("$ tamis "))).exit_code == 0
    (image,) = blocks("containers.md", "dockerfile")
    program, command, *options = json.loads(image.partition("\nCMD ")[2])
    assert (program, command) == ("tamis", "serve")
    (tmp_path / "tamis.toml").write_text("")
    changed = ["tamis.toml" if option == "/etc/tamis.toml" else option for option in options]
    assert run_tamis("serve", *changed, "--check").exit_code == 0


@pytest.mark.skipif(shutil.which("curl") is None, reason="the guide uses curl")
def test_the_commands_of_the_guide_to_changes_run(tmp_path):
    port = str(free_port())
    broker = f"```console\n$ tamis serve --port {port} --data :memory: &\n✓ The broker is ready.\n```\n"
    do(broker + (HOW_TO / "changing-rules.md").read_text("utf-8").replace("7410", port), tmp_path)


def settings_of(tmp_path, text):
    from tamis.service.settings import read_settings

    (tmp_path / "tamis.toml").write_text(text)
    return read_settings(tmp_path / "tamis.toml")


def test_the_settings_of_the_guides_to_the_service_are_read(tmp_path):
    from tamis.cli.network import read_network

    tokens, certificates = (settings_of(tmp_path, text) for text in blocks("tls-and-roles.md", "toml"))
    assert set(tokens.roles) == {"shop", "reader"}
    assert tokens.listeners[0].tls.certificate == "broker.pem"
    assert certificates.listeners[0].tls.clients == "required"
    assert certificates.principals["shop.example.com"] == ("shop",)
    centre, north, network = blocks("three-sites.md", "toml")
    assert settings_of(tmp_path, centre).link_listeners[0].tls.key == "centre.key"
    assert settings_of(tmp_path, north).links["centre"].tls.ca == "network.pem"
    (tmp_path / "sites.toml").write_text(network)
    assert set(read_network(tmp_path / "sites.toml")) == {"centre", "north", "south"}
    listener, origins = blocks("behind-a-proxy.md", "toml")
    assert settings_of(tmp_path, origins + listener).origins == ("https://events.example.com",)


def test_the_command_of_the_guide_to_roles_checks_its_settings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tamis.toml").write_text(blocks("tls-and-roles.md", "toml")[0])
    check, token = blocks("tls-and-roles.md", "console")
    command, shown = check.splitlines()
    result = run_tamis(*shlex.split(command.removeprefix("$ tamis ")))
    assert (result.exit_code, " ".join(result.output.split())) == (0, shown)
    result = run_tamis(*shlex.split(token.removeprefix("$ tamis ")))
    assert result.exit_code == 0
    assert "tamis_" in result.stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="the guide uses curl")
def test_the_commands_of_the_guide_to_the_past_run(tmp_path):
    port = str(free_port())
    broker = f"```console\n$ tamis serve --port {port} --data :memory: &\n✓ The broker is ready.\n```\n"
    page = (HOW_TO / "replay.md").read_text("utf-8").replace("7410", port)
    page = re.sub(r"(\$ tamis try .*\n)…\n", r"\1", page)
    with terminal(tmp_path, {"TAMIS_URL": f"http://127.0.0.1:{port}"}) as (run, _):
        for command, expected in steps(broker + page):
            lines = run(command, expected)
            if not command.startswith("tamis try"):
                assert len(lines) == len(expected), lines
                assert all(map(is_shown, expected, lines)), lines
            else:
                assert any("1 of 2" in line for line in lines), lines


def test_the_unit_of_the_guide_to_systemd_starts_what_there_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (unit,) = blocks("systemd.md", "ini")
    keys = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line)
    program, command, *options = shlex.split(keys["ExecStart"])
    assert (program, command) == ("/opt/tamis/bin/tamis", "serve")
    (tmp_path / "tamis.toml").write_text("")
    options = [str(tmp_path / "tamis.toml") if option == "/etc/tamis.toml" else option for option in options]
    assert run_tamis("serve", *options, "--check").exit_code == 0
    if shutil.which("systemd-analyze") is not None:
        unit = unit.replace("/opt/tamis/bin/tamis", "/bin/true").replace("=tamis\n", "=root\n")
        (tmp_path / "tamis.service").write_text(unit)
        done = subprocess.run(
            ["systemd-analyze", "verify", str(tmp_path / "tamis.service")], capture_output=True, text=True, check=False
        )
        assert "tamis.service" not in done.stderr, done.stderr


def test_the_commands_of_the_guide_to_systemd_make_what_the_unit_needs(tmp_path):
    """They need a system of their own; what they name has to be what the unit names, and the backup is made."""
    from tamis.service.log.sqlite import SqliteLog
    from tamis.service.state import State

    (unit,) = blocks("systemd.md", "ini")
    keys = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line)
    program, _, *options = shlex.split(keys["ExecStart"])
    data = options[options.index("--data") + 1]
    install, backup = blocks("systemd.md", "sh")
    user, environment, *_ = (shlex.split(line) for line in install.splitlines())
    assert user[-1] == keys["User"] == keys["Group"]
    assert user[user.index("--home") + 1] == data == f"/var/lib/{keys['StateDirectory']}"
    assert program == f"{environment[3]}/bin/tamis"
    assert keys["Environment"] == f"NUMBA_CACHE_DIR=/var/cache/{keys['CacheDirectory']}"
    (tmp_path / "log").mkdir()
    log = SqliteLog(tmp_path / "data" / "log")
    State(tmp_path / "data" / "state.db", log.epoch, "tamis").close()
    log.close()
    words = shlex.split(backup.replace("$(date +%F)", "today").replace(data, str(tmp_path / "data")))
    assert words[0] == program
    words = [str(tmp_path / "saved") if word.startswith("/backup/") else word for word in words[1:]]
    assert run_tamis(*words).exit_code == 0
    assert (tmp_path / "saved" / "backup.json").is_file()


def test_the_commands_of_the_guide_to_measuring_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (text,) = blocks("measuring.md", "console")
    for command in text.replace("\\\n", " ").splitlines():
        result = run_tamis(*shlex.split(command.removeprefix("$ tamis ")))
        assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["rows"] > 0


def test_the_commands_of_the_guide_to_moving_run(tmp_path):
    do((HOW_TO / "moving.md").read_text("utf-8"), tmp_path)


def patterns():
    page = (HOW_TO / "moving.md").read_text("utf-8").partition("| EventBridge |")[2].partition("\n\n")[0]
    for line in page.splitlines()[2:]:
        cells = [cell.strip().strip("`") for cell in line.strip("|").split(" | ")]
        if cells[0].startswith("{"):
            yield pytest.param(*cells, id=cells[0])


@pytest.mark.parametrize(("pattern", "condition", "matching", "not_matching"), list(patterns()))
def test_a_pattern_in_the_guide_is_translated_into_what_matches_the_same(pattern, condition, matching, not_matching):
    translated = tamis.translate(pattern).condition
    for event in (json.loads(matching), json.loads(not_matching)):
        assert tamis.holds(translated, event) is tamis.holds(condition, event)
