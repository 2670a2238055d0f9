"""What is built can be installed somewhere else, with every extra, and does what the README says."""

from __future__ import annotations

import doctest
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from tools import distribution

from tests.ports import free_port

ROOT = distribution.ROOT
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = sorted(PROJECT["optional-dependencies"])
COMPLETE = "\n".join(f"{field}: x" for field in distribution.FIELDS)
HELD = ["tamis/__init__.py", "tamis/py.typed", "tamis_lab/py.typed", "tamis/data/bids.csv"]


# -- What must be in the archives


def test_the_examples_of_the_look_at_archives_run():
    tried = doctest.testmod(distribution)
    assert tried.attempted >= 2 and tried.failed == 0


def test_a_complete_wheel_has_no_problem():
    names = [*HELD, "tamis-1.0.0.dist-info/METADATA", "tamis-1.0.0.dist-info/RECORD"]
    assert list(distribution.problems_of_wheel(names, COMPLETE, set(HELD))) == []


@pytest.mark.parametrize("lost", HELD)
def test_a_file_that_the_wheel_lacks_is_named(lost):
    names = [name for name in HELD if name != lost]
    assert f"the wheel lacks {lost}" in list(distribution.problems_of_wheel(names, COMPLETE, set(HELD)))


@pytest.mark.parametrize("field", distribution.FIELDS)
def test_metadata_that_are_missing_are_named(field):
    partial = "\n".join(line for line in COMPLETE.splitlines() if not line.startswith(f"{field}:"))
    (problem,) = distribution.problems_of_wheel(HELD, partial, set(HELD))
    assert problem == f"the metadata do not say {field}"


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a source archive, which git does not know")
def test_what_git_knows_of_the_packages_includes_claims_data_schema_and_types():
    known = distribution.tracked()
    assert {"tamis/py.typed", "tamis_lab/py.typed", "tamis/language/expression.schema.json"} <= known
    assert {f"tamis_lab/experiments/claims/{lab}.toml" for lab in ("filtering", "routing", "topk")} <= known
    assert sum(name.startswith("tamis/workloads/data/auction/") for name in known) >= 12


def test_a_folder_without_archives_is_refused(tmp_path):
    assert distribution.problems(tmp_path) == [
        f"{tmp_path} has 0 wheels and 0 source archives, and should have one of each"
    ]


# -- What the container does


DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")


def test_the_container_runs_as_a_user_without_rights_and_its_kernels_are_warmed_as_that_user():
    steps = re.findall(r"^(FROM|COPY|RUN|USER|ENV|ENTRYPOINT) (.*)$", DOCKERFILE, re.MULTILINE)
    last = [step for step in steps if step[0] == "USER"][-1]
    assert last == ("USER", "tamis")
    assert steps.index(("RUN", "python /opt/warm.py")) > steps.index(last)
    assert all(kind not in ("RUN", "USER") for kind, _ in steps[steps.index(("RUN", "python /opt/warm.py")) + 1 :])


def test_everything_that_the_container_copies_is_there_and_is_sent_to_the_builder():
    sent = [line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")]
    copied = [
        name for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE) for name in line.split()[:-1]
    ]
    assert sorted(copied) == sorted(sent)
    assert all((ROOT / name).exists() for name in copied)


def test_the_container_has_the_uv_that_make_has():
    (version,) = re.findall(r"^UV_VERSION := (\S+)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert f"uv=={version}" in DOCKERFILE


# -- What was built, installed elsewhere


def run(*command: str | Path, **options) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, outside of the checkout and without what this process knows of it."""
    expected = options.pop("exits_with", 0)
    names = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "NUMBA_CACHE_DIR", "PYTHONDONTWRITEBYTECODE")
    env = {name: value for name, value in os.environ.items() if name not in names} | options.pop("env", {})
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, timeout=900, check=False, env=env, **options
    )
    assert done.returncode == expected, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


UV = Path(sys.executable).with_name("uv")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built from the source archive, which was built from the files that git knows."""
    folder = tmp_path_factory.mktemp("dist")
    run(UV, "build", "--quiet", "--python", sys.executable, "--out-dir", folder, ROOT)
    assert distribution.problems(folder) == []
    (path,) = folder.glob("*.whl")
    return path


class Elsewhere:
    """An environment that has nothing but the wheel and what it asks for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "env" / "bin"
        self.env = {"NUMBA_CACHE_DIR": str(folder / "kernels"), "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}"}

    def install(self, wheel: Path, extra: str) -> None:
        """Make it empty and install the wheel; always in one place, so that kernels are compiled once for all extras."""
        shutil.rmtree(self.folder / "env", ignore_errors=True)
        run(UV, "venv", "--quiet", "--python", sys.executable, self.folder / "env")
        wanted = f"tamis[{extra}] @ {wheel.as_uri()}" if extra else f"tamis @ {wheel.as_uri()}"
        options = ("--quiet", "--python", self.bin / "python", "--constraint", ROOT / "requirements.lock")
        run(UV, "pip", "install", *options, wanted, env=self.env)
        where = self.python("import tamis, tamis_lab; print(tamis.__file__, tamis_lab.__file__)").split()
        assert all(Path(path).is_relative_to(self.folder) for path in where), "the checkout is not what is tested"

    def python(self, statement: str) -> str:
        return run(self.bin / "python", "-c", statement, cwd=self.folder, env=self.env).stdout

    def shell(self, line: str, exits_with: int = 0) -> str:
        return run("sh", "-c", line, cwd=self.folder, env=self.env, exits_with=exits_with).stdout


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory) -> Elsewhere:
    return Elsewhere(tmp_path_factory.mktemp("elsewhere"))


def shell_lines(beginning: str) -> list[str]:
    """Return the commands of the README that begin like this, without their comments."""
    lines = re.findall(r"^    (\S.*?)(?:\s{2,}#.*)?$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    return [line for line in lines if line.startswith(beginning)]


def served(place: Elsewhere) -> None:
    """A broker, a listener and a publisher, as the README has them, on a free port."""
    port = free_port()
    assert shell_lines("tamis serve") == ["tamis serve"]
    (publish,) = shell_lines("tamis publish")
    env = os.environ | place.env
    broker = subprocess.Popen(
        [place.bin / "tamis", "serve", "--port", str(port)], cwd=place.folder, env=env, stdout=subprocess.DEVNULL
    )
    try:
        for _ in range(600):
            code = f"from urllib.request import urlopen; print(urlopen('http://127.0.0.1:{port}/ready').status)"
            probe = [place.bin / "python", "-c", code]
            if subprocess.run(probe, capture_output=True, check=False, env=env).returncode == 0:
                break
            assert broker.poll() is None, "the broker ended"
            time.sleep(0.5)
        place.shell(f"{publish} --to http://127.0.0.1:{port}")
        past = f"import tamis; print([e.data for e in tamis.Client('http://127.0.0.1:{port}').read('price < 20')])"
        assert place.python(past) == "[{'price': 12}]\n"
    finally:
        broker.send_signal(signal.SIGTERM)
        assert broker.wait(60) == 0


def warmed(place: Elsewhere) -> None:
    """What the container does when it is built: kernels in a folder of their own; a second time there are no more."""
    folder = place.folder / "image"
    shutil.rmtree(folder, ignore_errors=True)
    env = place.env | {"NUMBA_CACHE_DIR": str(folder)}
    counts = []
    for _ in range(2):
        run(place.bin / "python", ROOT / "tools" / "warm.py", cwd=place.folder, env=env)
        counts.append(len(list(folder.rglob("*.nbc"))))
    assert counts[0] == counts[1] > 0


def of_extra(place: Elsewhere, extra: str) -> None:
    """Use what an extra is for."""
    if extra == "data":
        place.shell("tamis workload flights --events 100 --subscriptions 10 --out flights")
        assert (place.folder / "flights" / "events.parquet").exists()
    elif extra == "jwt":  # beside the extra service; with what the algorithms of elliptic curves need
        assert place.python("import jwt; print(jwt.get_algorithm_by_name('ES256') is not None)") == "True\n"
    elif extra == "otel":
        exporter = "from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as exporter"
        assert place.python(f"{exporter}; print(exporter.__name__)") == "OTLPSpanExporter\n"
    elif extra == "lab":
        place.shell("tamis lab filtering --quick --only 'turning points' --out lab")
        assert "<html" in (place.folder / "lab" / "index.html").read_text("utf-8").lower()
        assert json.loads((place.folder / "lab" / "results.json").read_text("utf-8"))
    elif extra == "nats":
        findings = json.loads(place.shell("tamis doctor --json"))["findings"]
        assert {finding["name"]: finding["is_well"] for finding in findings}["nats-py"]
    elif extra == "service":
        served(place)
        warmed(place)
    elif extra == "spark":
        place.python("import tamis.spark; print(tamis.spark.match, tamis.spark.match_stream)")
    else:
        raise AssertionError(f"nothing is known that the extra {extra!r} is for")


@pytest.mark.slow
@pytest.mark.xdist_group("distribution")
@pytest.mark.parametrize("extra", EXTRAS)
def test_the_wheel_installed_with_an_extra_elsewhere_runs_the_examples_of_the_readme(extra, wheel, elsewhere):
    elsewhere.install(wheel, extra)
    shutil.copy(ROOT / "README.md", elsewhere.folder)
    options = ("-o", "NORMALIZE_WHITESPACE", "-o", "ELLIPSIS")
    run(elsewhere.bin / "python", "-m", "doctest", *options, "README.md", cwd=elsewhere.folder, env=elsewhere.env)
    of_extra(elsewhere, extra)


@pytest.mark.slow
@pytest.mark.xdist_group("distribution")
def test_the_wheel_alone_runs_the_examples_and_the_commands_of_the_readme(wheel, elsewhere):
    elsewhere.install(wheel, "")
    for page in ("README.md", "docs/index.md"):  # with what stands above their first example
        shutil.copy(ROOT / page, elsewhere.folder)
        run(elsewhere.bin / "python", "-m", "doctest", "-o", "NORMALIZE_WHITESPACE", "-o", "ELLIPSIS", Path(page).name,
            cwd=elsewhere.folder, env=elsewhere.env)  # fmt: skip
    rules = "subscription_id,condition\ncheap,price < 20\n"
    (elsewhere.folder / "rules.csv").write_text(rules)
    (elsewhere.folder / "s.csv").write_text(rules)
    table = (
        "import pyarrow as pa, pyarrow.parquet as pq; pq.write_table(pa.table({'price': [12.0, 25.0]}), 'a.parquet')"
    )
    elsewhere.python(table)
    assert shell_lines("tamis check") and shell_lines("tamis explain") and shell_lines("tamis language")
    for line in shell_lines("tamis check"):
        elsewhere.shell(line, exits_with=2)
    for line in (*shell_lines("tamis explain"), *shell_lines("tamis language"), *shell_lines("tamis doctor")):
        assert elsewhere.shell(line)
    elsewhere.shell("tamis workload auction --events 5 --subscriptions 5 --out auctions")  # reads data of the package
    (fed,) = shell_lines("echo")
    assert "cheap" in elsewhere.shell(fed)
    for line in set(shell_lines("tamis match")):
        elsewhere.shell(line)
    assert "cheap" in elsewhere.python(
        "import pyarrow.parquet as pq; print(pq.read_table('pairs.parquet').to_pydict())"
    )


@pytest.mark.slow
@pytest.mark.xdist_group("distribution")
def test_the_types_of_the_wheel_are_seen_by_whoever_installs_it(wheel, elsewhere):
    elsewhere.install(wheel, "")
    (elsewhere.folder / "uses.py").write_text(
        "import tamis\nimport tamis_lab\nmatcher = tamis.Matcher()\nreveal_type(tamis.holds)\nmatcher.add('a', 3.5j)\n"
    )
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--python-executable", elsewhere.bin / "python", "--cache-dir", os.devnull,
         "--follow-imports", "silent", "uses.py"],
        cwd=elsewhere.folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "import-untyped" not in checked.stdout and re.search(r"-> (builtins\.)?bool\"", checked.stdout), (
        checked.stdout
    )
    assert "arg-type" in checked.stdout, "a wrong argument is noticed"
