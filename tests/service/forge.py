"""How does a test start a real broker in a moment? A forge: a process that has everything imported, and forks.

A broker needs seconds to import its libraries and to load its kernels, and a test that kills it five hundred times has
not so many. The forge does it once. Then each order (a line of JSON) makes a child that runs the command `tamis` with
the arguments of the order, in a process of its own, over sockets of its own: what a shell would start, but for the
imports. The forge starts no threads, so that a fork is a whole process.

    {"run": ["serve", "--port", "0"], "output": FILE, "file_bytes": N, "disk": [FOLDER, N]}   →  {"process": 4711}
    {"wait": 4711}                                                                           →  {"exit": -9}

When its input ends, the forge ends whatever it has started and is still there.
"""

import ctypes
import faulthandler
import gc
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

_DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of Linux."""
_NEW_MOUNTS = 0x00020000
"""CLONE_NEWNS of Linux: a process sees mounts that others do not see."""


def main() -> None:
    """Import everything, then take orders until there are no more."""
    _warm_up()
    children: set[int] = set()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if "run" in order:
            process = os.fork()
            if process == 0:
                _become(order)
            children.add(process)
            answer = {"process": process}
        else:
            _, status = os.waitpid(order["wait"], 0)
            children.discard(order["wait"])
            answer = {"exit": os.waitstatus_to_exitcode(status)}
        print(json.dumps(answer), flush=True)
    for process in children:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def _warm_up() -> None:
    import uvloop  # noqa: F401

    import tamis.cli.app
    import tamis.cli.serve
    import tamis.service.log_lines
    import tamis.service.serving  # noqa: F401
    from tamis.language import parse
    from tamis.matching import Matcher

    matcher = Matcher()
    for number in range(40):
        matcher.add(number, parse(f"price < {number} AND region = 'EU'"))
    for count in (1, 64, 512):
        matcher.match_batch([{"price": 7, "region": "EU"}] * count)
    matcher.match({"price": 7, "region": "EU"})
    gc.collect()
    gc.freeze()  # or every child would look through all of it


def _become(order: dict) -> None:
    """Be the command that an order names; never returns."""
    code = 1
    try:
        os.setsid()
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)  # also if the forge has no time to say goodbye
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        output = os.open(order["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        faulthandler.register(signal.SIGUSR1, file=2, all_threads=True)  # where does a broker hang?
        os.chdir(Path(order["output"]).parent)
        if order["file_bytes"]:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (order["file_bytes"], resource.RLIM_INFINITY))
        if order["disk"]:
            _mount(*order["disk"])
        sys.argv = ["tamis", *order["run"]]
        from tamis.cli import main as command

        command()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _mount(folder: str, size_bytes: int) -> None:
    """Have a small disk of our own at a folder; others see it only as /proc/PROCESS/root/FOLDER."""
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_MOUNTS):
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", folder], check=True)


if __name__ == "__main__":
    main()
