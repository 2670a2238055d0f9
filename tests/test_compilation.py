"""Kernels are kept where the user may write, and in memory where that is nowhere. Tested as such a user."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tamis import compilation

SOURCE = Path(compilation.__file__).parent
NOBODY = 65534
WORK = """
import sys
sys.path.insert(0, {package!r})
import tamis, tamis.compilation
assert tamis.__file__.startswith({package!r}), tamis.__file__
matcher = tamis.Matcher({algorithm!r})
matcher.add_many({{1: "price < 20", 2: "price < 30"}})
assert matcher.match({{"price": 25}}) == [2]
assert matcher.match_batch([{{"price": 25}}] * 400)["subscription"].to_pylist() == [2] * 400
import tamis.relations
assert tamis.relations.covers(tamis.parse("price < 30"), tamis.parse("price < 20"))
print(tamis.compilation.kernel_cache())
"""

as_root = pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0 or shutil.which("setpriv") is None,
    reason="only root can become somebody without rights, with setpriv",
)


@pytest.fixture
def package(tmp_path):
    """A copy of the package that nobody may write to, as an administrator installs it; without compiled kernels."""
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:2]:
        parent.chmod(parent.stat().st_mode | 0o011)
    copy = tmp_path / "installed"
    for source in compilation.OURS:
        shutil.copytree(source, copy / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def as_nobody(package, algorithm="naive", **environment):
    """Run with the rights of nobody: to read everything, as an installed interpreter can be, and to write nothing."""
    rights = "-all,+dac_read_search"
    command = [
        "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
        f"--inh-caps={rights}", f"--ambient-caps={rights}",
        sys.executable, "-c", WORK.format(package=str(package), algorithm=algorithm),
    ]  # fmt: skip
    plain = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        command, env=plain | environment, cwd="/", capture_output=True, text=True, timeout=600, check=False
    )


@as_root
def test_a_user_without_a_home_and_with_a_read_only_installation_matches(package, tmp_path):
    found = as_nobody(package, TMPDIR=str(tmp_path / "missing"))
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() in (f"/tmp/tamis-kernels-{NOBODY}", f"/var/tmp/tamis-kernels-{NOBODY}", "None")
    shutil.rmtree(found.stdout.strip(), ignore_errors=True)
    assert not list(package.rglob("__pycache__"))


@as_root
def test_kernels_are_kept_in_a_folder_for_temporary_files_of_the_users_own(package, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir(mode=0o777)
    temporary.chmod(0o1777)
    found = as_nobody(package, TMPDIR=str(temporary))
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == str(temporary / f"tamis-kernels-{NOBODY}")
    kept = {path: path.stat().st_mtime_ns for path in temporary.rglob("*.nbc")}
    assert kept, "compiled kernels are there"
    assert as_nobody(package, TMPDIR=str(temporary)).returncode == 0
    assert kept == {path: path.stat().st_mtime_ns for path in temporary.rglob("*.nbc")}, "and are used again"


@as_root
@pytest.mark.slow
def test_kernels_of_the_lab_are_kept_beside_those_of_the_product(package, tmp_path):
    own = tmp_path / "cache"
    own.mkdir()
    os.chown(own, NOBODY, NOBODY)
    found = as_nobody(package, "counting", XDG_CACHE_HOME=str(own))
    assert found.returncode == 0, found.stderr
    assert [path for path in (own / "tamis").rglob("*.nbi") if "count" in path.name], "counting has kernels of its own"


@as_root
def test_the_users_cache_comes_before_temporary_files(package, tmp_path):
    own = tmp_path / "cache"
    own.mkdir()
    os.chown(own, NOBODY, NOBODY)
    found = as_nobody(package, XDG_CACHE_HOME=str(own))
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == str(own / "tamis")
    assert list(own.rglob("*.nbi"))


@as_root
@pytest.mark.slow
def test_the_flagship_works_for_such_a_user(package, tmp_path):
    assert as_nobody(package, "block", TMPDIR=str(tmp_path / "missing")).returncode == 0


# -- Which folder


@pytest.fixture
def nowhere(monkeypatch):
    """Nothing can be written to, until a test says what can."""
    writable = set()
    compilation.kernel_cache.cache_clear()
    monkeypatch.setattr(compilation, "_is_writable", lambda folder: folder in writable)
    monkeypatch.setattr(compilation.config, "CACHE_DIR", "")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/somebody")
    yield writable
    compilation.kernel_cache.cache_clear()


def test_the_first_folder_that_can_be_written_to_is_taken(nowhere, monkeypatch, tmp_path):
    monkeypatch.setattr(compilation.tempfile, "gettempdir", lambda: str(tmp_path))

    def chosen():
        compilation.kernel_cache.cache_clear()
        return compilation.kernel_cache()

    own = tmp_path / f"tamis-kernels-{os.getuid()}"
    assert chosen() is None
    for folder, told in [
        (own, own),
        (Path("/home/somebody/.cache/tamis"), Path("/home/somebody/.cache/tamis")),
        (SOURCE / "matching" / "__pycache__", SOURCE),
    ]:
        nowhere.add(folder)
        if sys.platform == "linux" or folder != Path("/home/somebody/.cache/tamis"):
            assert chosen() == told


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders have no owners here")
def test_a_folder_that_others_may_write_to_is_not_trusted(monkeypatch, tmp_path):
    monkeypatch.setattr(compilation.tempfile, "gettempdir", lambda: str(tmp_path))
    folder = tmp_path / f"tamis-kernels-{os.getuid()}"
    assert compilation._temporary_folder() == folder
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    assert compilation._temporary_folder() is None
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    assert compilation._temporary_folder() is None
    if os.getuid() == 0:
        folder.unlink()
        folder.mkdir(mode=0o700)
        os.chown(folder, NOBODY, NOBODY)
        assert compilation._temporary_folder() is None


def test_a_kernel_stays_in_memory_where_there_is_no_place(nowhere, monkeypatch):
    monkeypatch.setattr(compilation.caching.CacheImpl, "_locator_classes", [compilation.KernelLocator])
    monkeypatch.setattr(compilation, "_temporary_folder", lambda: None)
    from numba import njit

    ours = compile("def double(number):\n    return 2 * number\n", str(SOURCE / "matching" / "kernels.py"), "exec")
    theirs = compile("def double(number):\n    return 2 * number\n", "/somewhere/kernels.py", "exec")
    names: dict = {}
    exec(ours, names)
    assert njit(cache=True)(names["double"])(4) == 8
    labs = compile("def double(number):\n    return 2 * number\n", str(compilation.OURS[1] / "kernels.py"), "exec")
    exec(labs, names)
    assert njit(cache=True)(names["double"])(4) == 8
    exec(theirs, names)
    with pytest.raises(RuntimeError, match="no locator available"):
        njit(cache=True)(names["double"])


# -- What was kept and is out of date


@pytest.fixture
def toy(monkeypatch, tmp_path):
    """A package of ours with a table, a step and a kernel, which is changed and loaded anew within a test.

    Gives a function: the table's class gets a name, the step a text, and then the kernel answers for the table (7, 30).
    """
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / "__init__.py").touch()
    kernels = "from tamis.compilation import kernel\nfrom toy.steps import step\n\n\n@kernel\ndef run(table):\n    return step(table.price)\n"
    (folder / "kernels.py").write_text(kernels)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(compilation, "OURS", (*compilation.OURS, folder))
    monkeypatch.setattr(compilation.config, "CACHE_DIR", "")
    compilation.newest_change.cache_clear()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python looks at seconds and sizes only

    def forget():
        for name in [name for name in sys.modules if name.split(".")[0] == "toy"]:
            del sys.modules[name]
        importlib.invalidate_caches()

    def answer(name="Prices", step="price + 1"):
        forget()
        for module, text in [
            ("tables", f"from typing import NamedTuple\n\n\nclass {name}(NamedTuple):\n    price: int\n    bid: int\n"),
            ("steps", f"from tamis.compilation import kernel\n\n\n@kernel\ndef step(price):\n    return {step}\n"),
        ]:
            path = folder / f"{module}.py"
            if not path.exists() or path.read_text() != text:
                path.write_text(text)
        compilation.newest_change.cache_clear()
        tables, kernels = importlib.import_module("toy.tables"), importlib.import_module("toy.kernels")
        found = kernels.run(getattr(tables, name)(7, 30))
        return found, sum(kernels.run.stats.cache_misses.values())

    yield answer
    forget()


def test_a_kept_kernel_is_used_while_nothing_has_changed(toy):
    assert toy() == (8, 1)
    assert toy() == (8, 0)


def test_a_kept_kernel_of_a_class_that_has_another_name_now_is_compiled_anew_and_kept_again(toy):
    assert toy() == (8, 1)
    assert toy(name="Quotes") == (8, 1), "without healing: Can't get attribute 'Prices'"
    assert toy(name="Quotes") == (8, 0)


def test_a_kept_kernel_is_compiled_anew_when_a_step_that_it_takes_from_another_module_has_changed(toy):
    assert toy() == (8, 1)
    assert toy(step="price + 2") == (9, 1)
    assert toy(step="price + 2")[0] == 9


@pytest.mark.parametrize("damage", [b"", b"no pickle", None], ids=["emptied", "overwritten", "cut"])
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_kept_kernel_that_is_damaged_is_compiled_anew_and_kept_again(toy, tmp_path, kind, damage):
    assert toy() == (8, 1)
    for path in (tmp_path / "toy" / "__pycache__").glob(f"kernels.*.{kind}"):
        path.write_bytes(path.read_bytes()[:-40] if damage is None else damage)
    assert toy() == (8, 1)
    assert toy() == (8, 0)


def test_what_the_kernels_of_the_flagship_are_compiled_from_is_known():
    importlib.import_module("tamis.topk.block.kernels")
    assert compilation._taken_from("tamis.topk.block.kernels") == {"tamis.topk.kernels", "tamis.ragged"}
    paths = [SOURCE / "topk" / "kernels.py", SOURCE / "ragged.py"]
    assert compilation.newest_change("tamis.topk.block.kernels") >= max(path.stat().st_mtime for path in paths)
