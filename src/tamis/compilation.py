"""Where are compiled kernels kept? The cache of the just-in-time compiler.

Kernels are compiled when they are first used, and kept on disk, so that this happens once and not in every process.
Numba keeps them beside the source or in the user's cache, and refuses to work where it may write to neither, as for a
user without a home who runs what an administrator installed. So there are more places for the kernels of this package
and of `tamis_lab`, the first of which that can be written to is taken:

    what NUMBA_CACHE_DIR says    numba's own choice, and the user's
    the package itself           where the source lies; shared by all who use it
    the user's cache             $XDG_CACHE_HOME/tamis or ~/.cache/tamis, as each platform has it
    a folder for temporary files    tamis-kernels-UID, if it is the user's own: whoever may write there may run code
    memory                       then every process compiles for itself

What was kept is used for as long as nothing has changed that it was compiled from. Numba looks at the kernel's own
source; we look, too, at the modules from which that takes its steps, and take what cannot be read any more, as when a
class has got another name, for absent: the kernel is compiled anew, and kept in its place.

Nothing of this concerns the kernels of others. The packages that have kernels import this module first, or mark them
with `kernel`, which keeps what mypy knows of their arguments: a table where another belongs is a type error.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from contextlib import suppress
from functools import cache
from importlib.abc import InspectLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from llvmlite import ir  # type: ignore[import-untyped, unused-ignore]
from numba import config, njit, types
from numba.core import caching, cgutils
from numba.core.dispatcher import Dispatcher
from numba.core.types.containers import BaseTuple
from numba.core.types.npytypes import Array
from numba.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable

    Kernel = TypeVar("Kernel", bound=Callable[..., Any])

PACKAGE = Path(__file__).parent
OURS = (PACKAGE, PACKAGE.with_name("tamis_lab"))
"""The packages whose kernels are kept: this one, and the plug-in that is installed beside it."""


@cache
def kernel_cache() -> Path | None:
    """Return the folder where compiled kernels are kept; None where they are kept in memory only."""
    chosen = [Path(config.CACHE_DIR)] if config.CACHE_DIR else []
    for folder in (*chosen, PACKAGE / "matching" / "__pycache__", *_users_folders()):
        if _is_writable(folder):
            return PACKAGE if folder.name == "__pycache__" and PACKAGE in folder.parents else folder
    return _temporary_folder()


def _users_folders() -> list[Path]:
    """Return the user's folder for caches, as the platform has it."""
    if sys.platform == "win32":
        named = [os.environ.get("LOCALAPPDATA")]
    elif sys.platform == "darwin":
        named = [os.path.expanduser("~/Library/Caches")]
    else:
        named = [os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")]
    return [Path(each) / "tamis" for each in named if each and os.path.isabs(each)]


def _is_writable(folder: Path) -> bool:
    """Can something be written there? The only way to know is to do it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _temporary_folder() -> Path | None:
    try:
        folder = Path(tempfile.gettempdir()) / f"tamis-kernels-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    is_own = not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)
    return folder if stat.S_ISDIR(status.st_mode) and is_own and _is_writable(folder) else None


def _is_ours(path: str) -> bool:
    return any(package in Path(path).parents for package in OURS)


class KernelLocator(caching.UserProvidedCacheLocator):  # type: ignore[misc]
    """Keeps the kernels of our packages where `kernel_cache` says."""

    def __init__(self, py_func: Any, py_file: str) -> None:
        folder = kernel_cache()
        assert folder is not None
        self._py_file = py_file
        self._lineno = py_func.__code__.co_firstlineno
        self._cache_path = os.path.join(folder, self.get_suitable_cache_subpath(py_file))

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        if not _is_ours(py_file) or kernel_cache() in (None, PACKAGE):
            return None
        return super(caching.UserProvidedCacheLocator, cls).from_function(py_func, py_file)


class KernelFile(caching.IndexDataCacheFile):  # type: ignore[misc]
    """What is kept of a kernel, on the disk; what is out of date or cannot be read counts as absent."""

    def __init__(self, module: str, **places: Any) -> None:
        super().__init__(**places)
        self._module = module

    def _load_index(self) -> dict[Any, str]:
        try:
            if os.stat(self._index_path).st_mtime < newest_change(self._module):
                return {}
            entries: dict[Any, str] = super()._load_index()
        except Exception:  # a pickle of what is not there any more raises whatever it likes
            return {}
        return entries

    def _load_data(self, name: str) -> Any:
        try:
            return super()._load_data(name)
        except OSError:
            raise  # the caller knows what that means
        except Exception:
            return None


class KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """Keeps what was compiled of a kernel of ours."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file = KernelFile(
            function.__module__,
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=self._impl.locator.get_source_stamp(),
        )


@cache
def newest_change(module: str) -> float:
    """Return when the modules were last changed from which a module takes what its kernels are compiled with.

    Numba compiles what a kernel calls into it, from whichever module, but compares the date of its own module only.
    """
    reached, waiting = {module}, [module]
    while waiting:
        further = _taken_from(waiting.pop()) - reached
        reached |= further
        waiting += further
    paths = [getattr(sys.modules[name], "__file__", None) for name in reached - {module}]
    return max((os.stat(path).st_mtime for path in paths if path), default=0.0)


def _taken_from(module: str) -> set[str]:
    """Return the modules of ours that a module imports when it is loaded; packages only hand on.

    This one is left out: its changes concern where kernels are kept, and each would have all of them compiled anew.
    """
    spec = sys.modules[module].__spec__
    code = spec.loader.get_code(module) if spec and isinstance(spec.loader, InspectLoader) else None
    names = code.co_names if code else ()
    own = tuple(f"{package.name}." for package in OURS)
    named = [name for name in names if name.startswith(own)]
    named += [f"{package}.{name}" for package in named for name in names]  # from tamis.relations import kernels
    loaded = {name for name in named if name in sys.modules and not hasattr(sys.modules[name], "__path__")}
    return loaded - {__name__}


def is_compiled(kernel: Any) -> bool:
    """Was a kernel of ours compiled before, in this process or, as far as files tell, in another?

    >>> is_compiled(len)  # which is none
    False
    """
    if not isinstance(kernel, Dispatcher):
        return False  # the compiler is switched off
    if kernel.signatures:
        return True
    kept = getattr(kernel, "_cache", None)
    if not isinstance(kept, KernelCache):
        return False
    target = kernel.targetctx.codegen().magic_tuple()  # the processor that the kernel is compiled for
    return any(key[1] == target for key in kept._cache_file._load_index())


def _arrange() -> None:
    """Put our locator behind numba's first two, and let kernels stay in memory where there is no place at all."""
    caching.CacheImpl._locator_classes.insert(2, KernelLocator)
    plain = Dispatcher.enable_caching

    def enable_caching(self: Any) -> None:
        if not _is_ours(self.py_func.__code__.co_filename):
            plain(self)
            return
        with suppress(RuntimeError):  # no locator has a place for it
            self._cache = KernelCache(self.py_func)

    Dispatcher.enable_caching = enable_caching  # type: ignore[method-assign]


_arrange()


def kernel(function: Kernel) -> Kernel:
    """Compile a function when it is first called: without the interpreter's lock, and kept on disk."""
    compiled: Kernel = njit(nogil=True, cache=True)(function)
    return compiled


def inlined(function: Kernel) -> Kernel:
    """Compile a function into those that call it: a step of a hot loop, which has a name and costs no call.

    To hand a table of 20 arrays to a function takes as long as a small step itself.
    """
    compiled: Kernel = njit(nogil=True, cache=True, forceinline=True)(function)
    return compiled


def _without_owners(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return a value whose arrays are the same memory, and belong to nobody."""
    if isinstance(kind, BaseTuple):
        parts = [
            _without_owners(context, builder, part, builder.extract_value(value, place))
            for place, part in enumerate(kind.types)
        ]
        return context.make_tuple(builder, kind, parts)
    if isinstance(kind, Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = array.meminfo.type(None)
        array.parent = array.parent.type(None)
        return array._getvalue()
    return value


if config.DISABLE_JIT:

    def borrowed(table: Any) -> Any:
        """Return the same table."""
        return table

    def prefetch(rows: Any, row: Any) -> None:
        """Do nothing: the interpreter is not that quick."""

else:

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def borrowed(typingctx: Any, table: Any) -> Any:
        """Return the same table, whose arrays nobody counts references to, for as long as somebody else holds it.

        Compiled code counts references whenever a function is entered with an array or takes one out of a tuple, by an
        atomic operation each. For a small step of a hot loop over a table of 20 arrays that is most of its time. So a
        kernel may borrow what its caller holds until it returns. It must not return any of it.
        """

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return _without_owners(context, builder, signature.args[0], arguments[0])

        return table(table), codegen

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def prefetch(typingctx: Any, rows: Any, row: Any) -> Any:
        """Ask for the memory of a row of an array that is read soon, and do not wait for it."""

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = signature.args[0]
            array = context.make_array(kind)(context, builder, arguments[0])
            stride = cgutils.unpack_tuple(builder, array.strides, kind.ndim)[0]
            address = builder.add(builder.ptrtoint(array.data, stride.type), builder.mul(arguments[1], stride))
            number = ir.IntType(32)
            function = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number]),
                "llvm.prefetch.p0",
            )
            # To be read, to stay in all caches, data.
            builder.call(function, [builder.inttoptr(address, cgutils.voidptr_t), number(0), number(3), number(1)])
            return context.get_dummy_value()

        return types.void(rows, row), codegen
