"""How does a broker come to life? One command, no file, no account.

Without settings it listens on this machine only, keeps its log in the folder `tamis-data`, and everybody here may do
everything. What an operator decides stands in a file, in the environment or in flags, the later ones being right.
"""

import asyncio
import errno
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from tamis.cli.brokers import DEFAULT_URL
from tamis.cli.feed import EXAMPLE_TEXT
from tamis.cli.inputs import InputError
from tamis.cli.lessons import Example
from tamis.cli.output import AsJson, mistakes_shown, show, to_complain, to_people, to_programs

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from tamis.service.edges import EdgePlace
    from tamis.service.serving import Service
    from tamis.service.settings import Settings

EXAMPLES = (
    Example("tamis serve --check", "Check the settings without starting anything."),
    Example(
        "tamis serve --host 0.0.0.0 --check",
        "An address that others can reach needs TLS and roles.",
        exit_code=2,
    ),
    Example("""echo '[log]' > tamis.toml && echo 'keep = "30d"' >> tamis.toml""", "A file of settings,"),
    Example("tamis serve --config tamis.toml --port 8000 --check", "and a flag, which takes precedence."),
)
NOTES = (
    "[cyan]tamis serve[/cyan] alone is enough: it prints where it listens and what to try. [cyan]--demo[/cyan] adds a "
    "feed of auctions to watch. Ctrl-C or SIGTERM ends it, and nothing that was acknowledged is lost; SIGHUP reads the "
    "settings again.",
    "Settings are also variables: [cyan]TAMIS_LOG__SYNC=0.2s[/cyan] is [cyan]sync[/cyan] of the table "
    "[cyan]\\[log][/cyan]. See docs/service.md.",
)


def serve(
    data: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER", help="The folder of the log; :memory: keeps nothing on disk.", show_default="tamis-data"
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, max=65_535, help="The port; 0 chooses a free one.", show_default="7410"),
    ] = None,
    host: Annotated[
        str | None, typer.Option(metavar="NAME", help="The address to listen on.", show_default="127.0.0.1")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file of settings (TOML).", show_default=False)
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Accept connections from other hosts without TLS and roles.")
    ] = False,
    link: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="Another broker to call, as tamis://host:7411; may be repeated."),
    ] = None,
    link_port: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, max=65_535, help="Listen for other brokers at this port (default 7411)."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The name of the broker.", show_default="tamis")
    ] = None,
    edges: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, max=64, help="Start N more processes behind the same address.", show_default="0"
        ),
    ] = None,
    edge: Annotated[str | None, typer.Option(hidden=True)] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Publish a feed of auctions to it.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Only check the settings.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start a broker, which delivers published events to their subscribers at least once."""
    flags: dict[str, object] = {
        "data": data, "listeners.0.port": port, "listeners.0.host": host, "insecure": insecure or None, "name": name,
        "neighbours": link or None, "link_listeners.0.port": link_port,
        "link_listeners.0.host": host if link_port is not None else None, "edges": edges,
    }  # fmt: skip
    overrides = {name: value for name, value in flags.items() if value is not None}
    with mistakes_shown(as_json):
        _require_libraries()
        if edge is not None:
            raise typer.Exit(_run_edge(json.loads(edge)))
        from tamis.service.settings import read_settings

        def read() -> "Settings":
            return read_settings(config, os.environ, overrides)

        settings = read()
        if demo and (settings.roles or settings.listeners[0].tls is not None):
            raise InputError("the feed has no token and no certificate", hint="--demo is for a broker without roles.")
        if check:
            _show_settings(settings, as_json)
            return
        order = {"config": None if config is None else str(config), "overrides": overrides}
        code = _run(settings, read, demo, as_json, order)
    if code:
        raise typer.Exit(code)


def _require_libraries() -> None:
    from tamis.service.errors import ServiceMissingError

    try:
        import aiohttp  # noqa: F401
        import msgspec  # noqa: F401
    except ImportError as error:
        raise ServiceMissingError("tamis serve", str(error.name)) from None


def _show_settings(settings: "Settings", as_json: bool) -> None:
    listeners = [f"{listener.host}:{listener.port}" for listener in settings.listeners]
    if as_json:
        to_programs({"good": True, "data": settings.data, "listeners": listeners})
    else:
        sentence = f"The settings are good: {', '.join(listeners)}, data in {settings.data}."
        show(to_people(), Text.assemble(("✓ ", "bold green"), sentence), below="  ")


def _run_edge(order: dict[str, Any]) -> int:
    """Run an edge broker, which a first one has started."""
    import msgspec

    from tamis.service.edges import READY, EdgePlace
    from tamis.service.log_lines import set_up_logging
    from tamis.service.serving import serve as run
    from tamis.service.settings import read_settings

    def read() -> "Settings":
        return read_settings(order["config"], os.environ, order["overrides"])

    def ready(service: "Service") -> None:
        os.write(1, READY)

    settings = read()
    set_up_logging(settings.logging)
    return _in_a_loop(run(settings, read, ready, place=msgspec.convert(order["place"], EdgePlace)))


def _run(settings: "Settings", read: "Callable[[], Settings]", demo: bool, as_json: bool, order: dict[str, Any]) -> int:
    """Run the broker until it ends; return the exit code."""
    from tamis.service.log_lines import set_up_logging

    set_up_logging(settings.logging)
    if not as_json:
        waiting = "Getting ready; the first time kernels are compiled, which takes some twenty seconds …"
        show(to_complain(), Text(waiting, "dim"))
    import msgspec

    from tamis.service.serving import serve as run

    def edge_command(place: "EdgePlace") -> list[str]:
        said = json.dumps({**order, "place": msgspec.to_builtins(place)})
        return [sys.executable, "-m", "tamis.cli", "serve", "--edge", said]

    feeds: list[asyncio.Task[None]] = []

    def ready(service: "Service") -> None:
        if demo:
            from tamis.cli.feed import feed

            feeds.append(asyncio.create_task(feed(service.addresses[0])))
        if as_json:
            facts: dict[str, Any] = {
                "addresses": service.addresses,
                "links": service.links.addresses,
                "data": settings.data,
            }
            if service.edges is not None:
                facts["edges"] = list(service.edges.processes.values())
            to_programs({**facts, "token": service.first_token})
            sys.stdout.flush()
        else:
            _greet(to_people(), service, demo)

    try:
        return _in_a_loop(run(settings, read, ready, edge_command))
    except OSError as error:
        if error.errno in (errno.EADDRINUSE, errno.EACCES, errno.EADDRNOTAVAIL):
            raise InputError(
                f"cannot listen: {error.strerror or error}", hint="--port and --host name another address."
            ) from None
        raise


def _in_a_loop(running: Any) -> int:
    try:
        import uvloop
    except ImportError:  # not on Windows
        code: int = asyncio.run(running)
    else:
        code = uvloop.run(running)
    return code


def _greet(console: "Console", service: "Service", demo: bool) -> None:
    """Say where the broker is, and three things to try."""
    from tamis.service.settings import is_loopback

    settings = service.settings
    show(console, Text.assemble(("✓ ", "bold green"), ("The broker is ready.", "bold")))
    for address in service.addresses:
        show(console, Text.assemble("  at ", (address, "cyan")))
    for address in service.links.addresses:
        show(console, Text.assemble("  for other brokers at ", (address, "cyan")))
    show(console, Text(f"  data in {settings.data}", "dim"))
    if settings.insecure and not all(is_loopback(listener.host) for listener in settings.listeners):
        show(console, Text("! Others can reach it, without TLS or without roles (insecure).", "bold red"))
    if service.first_token is not None:
        show(console, Text.assemble("  The token of an admin, shown only now: ", (service.first_token, "bold yellow")))
    address = service.addresses[0]
    show(console, Text("Try, in another terminal:"))
    for command in commands_to_try(address, demo):
        show(console, Text.assemble("  ", (command, "cyan")), below="    ")


def commands_to_try(address: str, demo: bool) -> list[str]:
    """Return three commands that show what a broker does.

    >>> for command in commands_to_try("http://127.0.0.1:7410", demo=False):
    ...     print(command)
    curl -N 'http://127.0.0.1:7410/listen?where=price<20'
    tamis subscribe "price < 20" --as ann
    tamis publish '{"price": 12}'
    """
    is_default = address == DEFAULT_URL
    at, to = ("", "") if is_default else (f" --at {address}", f" --to {address}")
    text = EXAMPLE_TEXT if demo else "price < 20"
    since = " --from -1m" if demo else ""
    return [
        f"curl -N '{address}/listen?where=price<{5 if demo else 20}'",
        f'tamis subscribe "{text}" --as ann{since}{at}',
        f"""tamis publish '{{"price": {3 if demo else 12}}}'{to}""",
    ]
