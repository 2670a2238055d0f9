"""How does one try out a network of brokers? A file that names them, all started here, a picture, Ctrl-C.

    strategy = "covering"

    [brokers.north]
    port = 7410

    [brokers.south]
    calls = ["north"]

Each broker is a process of its own with a folder of its own, joined to others over Unix sockets in these folders.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from tamis.cli.inputs import InputError
from tamis.cli.lessons import Example
from tamis.cli.output import AsJson, mistakes_shown, show, to_complain, to_people, to_programs
from tamis.errors import did_you_mean

EXAMPLES = (
    Example(
        """printf '[brokers.a]\\n[brokers.b]\\ncalls = ["a"]\\n' > network.toml""",
        "A file with two brokers.",
    ),
    Example("tamis network up network.toml --check", "Is the file good? Nothing is started."),
    Example("tamis network up nowhere.toml --check", "There is no such file.", exit_code=2),
)
NOTES = (
    "A table [cyan]\\[brokers.NAME][/cyan] for each broker: [cyan]calls[/cyan] names those that it is linked to, "
    "[cyan]port[/cyan] where clients reach it (0 takes a free one; with [cyan]shared[/cyan] several may have one), and "
    "all else in it is a setting of that broker, as in tamis.toml. What stands before the first table applies to all. "
    'Links must not form a cycle, unless [cyan]topology = "graph"[/cyan] stands before the first table.',
    "Ctrl-C ends all of them; their data stays in the folder.",
)
WIDTH, LAYER, RADIUS = 150, 110, 34
PATIENCE_S = 300.0
SETTLED_WITHIN_S = 10.0
"""So long the command waits for brokers of a graph to agree which links carry events."""


def network(
    action: Annotated[str, typer.Argument(metavar="up", help="What to do: up.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The brokers and their links (TOML).")],
    data: Annotated[Path, typer.Option(metavar="FOLDER", help="Where their folders are.")] = Path("tamis-network"),
    check: Annotated[bool, typer.Option("--check", help="Only check the file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start a network of brokers on this machine, and end it with Ctrl-C."""
    with mistakes_shown(as_json):
        if action != "up":
            raise InputError(f"{action!r} is not an action of this command", hint="tamis network up FILE")
        brokers = read_network(file)
        if check:
            _show_plan(brokers, as_json)
            return
        _run(brokers, data.resolve(), as_json)


# -- The file


def read_network(file: Path) -> dict[str, dict[str, Any]]:
    """Return the settings of each broker, with whom it calls; raise an error for a file that makes no tree.

    A file that says that its network is a graph need not make one.
    """
    try:
        document = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}", hint="tamis network up --help shows one.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: {error}", hint="It is written in TOML.") from None
    brokers = document.pop("brokers", None)
    if not isinstance(brokers, dict) or not brokers or not all(isinstance(each, dict) for each in brokers.values()):
        raise InputError(f"{file} names no brokers", hint="[brokers.north]")
    for name, broker in brokers.items():
        calls = broker.setdefault("calls", [])
        if not isinstance(calls, list):
            raise InputError(f"{file}: calls of {name} is not a list", hint='calls = ["north"]')
        for other in calls:
            if other not in brokers:
                raise InputError(
                    f"{file}: {name} calls {other!r}, which is not there", hint=did_you_mean(other, brokers)
                )
        brokers[name] = {**document, **broker}
    if document.get("topology") != "graph":
        _check_tree(file, brokers)
    return brokers


def _check_tree(file: Path, brokers: Mapping[str, Mapping[str, Any]]) -> None:
    parents = {name: name for name in brokers}

    def root(name: str) -> str:
        while parents[name] != name:
            name = parents[name]
        return name

    for name, broker in brokers.items():
        for other in broker["calls"]:
            if root(name) == root(other):
                raise InputError(
                    f"{file}: the link from {name} to {other} closes a cycle",
                    hint='Links form a tree: leave one out, or write topology = "graph" at the top.',
                )
            parents[root(name)] = root(other)


def _show_plan(brokers: Mapping[str, Mapping[str, Any]], as_json: bool) -> None:
    links = [[name, other] for name, broker in brokers.items() for other in broker["calls"]]
    if as_json:
        to_programs({"good": True, "brokers": list(brokers), "links": links})
    else:
        verdict = f"The file is good: {len(brokers)} brokers, {len(links)} links."
        show(to_people(), Text.assemble(("✓ ", "bold green"), verdict), below="  ")


# -- The picture


def picture(
    brokers: Mapping[str, Mapping[str, Any]],
    addresses: Mapping[str, str],
    idle: Collection[tuple[str, str]] = (),
) -> str:
    """Return the network as an SVG: brokers in layers, from the first one down; links that carry nothing are dashed.

    >>> brokers = {"north": {"calls": []}, "south": {"calls": ["north"]}}
    >>> picture(brokers, {}).count("<circle"), picture(brokers, {}).count("<line")
    (2, 1)
    """
    joined: dict[str, set[str]] = {name: set(broker["calls"]) for name, broker in brokers.items()}
    for name, broker in brokers.items():
        for other in broker["calls"]:
            joined[other].add(name)
    depths: dict[str, int] = {}
    for start in brokers:
        waiting = [] if start in depths else [(start, 0)]
        while waiting:
            name, depth = waiting.pop(0)
            depths[name] = depth
            waiting += [(other, depth + 1) for other in sorted(joined[name]) if other not in depths]
    layers = [[name for name in brokers if depths[name] == depth] for depth in range(max(depths.values()) + 1)]
    width = WIDTH * max(map(len, layers))
    places = {
        name: (width * (number + 0.5) / len(layer), LAYER * (depth + 0.5))
        for depth, layer in enumerate(layers)
        for number, name in enumerate(layer)
    }
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{LAYER * len(layers)}" '
        'font-family="sans-serif" font-size="13" text-anchor="middle">'
    ]
    for name, broker in brokers.items():
        for other in broker["calls"]:
            (x1, y1), (x2, y2) = places[name], places[other]
            dashes = ' stroke-dasharray="4 4"' if (name, other) in idle else ""
            parts.append(f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" stroke="#888"{dashes}/>')
    for name, (x, y) in places.items():
        parts.append(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{RADIUS}" fill="#eef" stroke="#446"/>')
        parts.append(f'<text x="{x:.0f}" y="{y + 4:.0f}">{_escaped(name)}</text>')
        if name in addresses:
            parts.append(f'<text x="{x:.0f}" y="{y + RADIUS + 14:.0f}" fill="#666">{_escaped(addresses[name])}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


# -- The processes


def settings_of(name: str, broker: Mapping[str, Any], sockets: Path) -> dict[str, object]:
    """Return the settings of a broker as names and values, its links over Unix sockets included."""
    settings = {key: value for key, value in broker.items() if key not in ("calls", "port", "shared")}
    settings |= {"name": name, "listeners": [{"port": broker.get("port", 0), "shared": broker.get("shared", False)}]}
    settings["link_listeners"] = [{"path": str(sockets / f"{name}.sock")}]
    settings["links"] = {other: {"url": f"unix://{sockets / f'{other}.sock'}"} for other in broker["calls"]}
    return settings


def _toml(table: Mapping[str, Any], path: tuple[str, ...] = ()) -> str:
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items() if not _is_table(value)]
    for key, value in table.items():
        inner = (*path, key)
        dotted = ".".join(map(json.dumps, inner))
        if isinstance(value, Mapping):
            lines += [f"[{dotted}]", _toml(value, inner)]
        elif _is_table(value):
            for member in value:
                lines += [f"[[{dotted}]]", _toml(member, inner)]
    return "\n".join(lines)


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, list) and bool(value) and isinstance(value[0], Mapping))


def _run(brokers: Mapping[str, Mapping[str, Any]], data: Path, as_json: bool) -> None:
    signal.signal(signal.SIGTERM, lambda number, frame: (_ for _ in ()).throw(KeyboardInterrupt))
    processes: dict[str, subprocess.Popen[bytes]] = {}
    with tempfile.TemporaryDirectory(prefix="tamis-") as folder:  # paths of sockets must be short
        try:
            for name, broker in brokers.items():
                processes[name] = _started(name, broker, data / name, Path(folder))
            addresses = {name: _address(name, data / name, process) for name, process in processes.items()}
            idle = _idle_links(brokers, addresses)
            (data / "network.svg").write_text(picture(brokers, addresses, idle), "utf-8")
            _show_network(brokers, addresses, idle, data, as_json)
            while True:
                time.sleep(0.2)
                for name, process in processes.items():
                    if process.poll() is not None:
                        raise InputError(f"the broker {name} has ended", hint=f"{data / name / 'log'} says why.")
        except KeyboardInterrupt:
            pass
        finally:
            for process in processes.values():
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
            for process in processes.values():
                process.wait()


def _started(name: str, broker: Mapping[str, Any], folder: Path, sockets: Path) -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "tamis.toml"
    config.write_text(_toml(settings_of(name, broker, sockets)) + "\n", "utf-8")
    command = [sys.executable, "-m", "tamis.cli", "serve", "--config", str(config), "--data", str(folder / "data")]
    with (folder / "ready.json").open("wb") as ready, (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [*command, "--json"], stdout=ready, stderr=log, env=dict(os.environ), start_new_session=True
        )


def _address(name: str, folder: Path, process: subprocess.Popen[bytes]) -> str:
    """Wait until a broker is ready; return where clients reach it."""
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends:
        try:
            facts = json.loads((folder / "ready.json").read_text("utf-8"))
        except ValueError:
            if process.poll() is not None:
                break
            time.sleep(0.02)
            continue
        if "addresses" in facts:
            address: str = facts["addresses"][0]
            return address
        raise InputError(f"the broker {name} did not start: {facts.get('error', facts)}")
    raise InputError(f"the broker {name} did not start", hint=f"{folder / 'log'} says why.")


def _idle_links(brokers: Mapping[str, Mapping[str, Any]], addresses: Mapping[str, str]) -> set[tuple[str, str]]:
    """Return the links that carry no events, when all others do: in a graph, those that are in reserve."""
    links = [(name, other) for name, broker in brokers.items() for other in broker["calls"]]
    if not any(broker.get("topology") == "graph" for broker in brokers.values()):
        return set()
    ends = time.monotonic() + SETTLED_WITHIN_S
    while True:
        states = {
            (name, link["name"]): link["carries"] or link["state"]
            for name, address in addresses.items()
            for link in json.load(urllib.request.urlopen(f"{address}/links"))["links"]
        }
        idle = {link for link in links if states.get(link) == "idle"}
        if time.monotonic() > ends or all(link in idle or states.get(link) is True for link in links):
            return idle
        time.sleep(0.05)


def _show_network(
    brokers: Mapping[str, Mapping[str, Any]],
    addresses: Mapping[str, str],
    idle: Collection[tuple[str, str]],
    data: Path,
    as_json: bool,
) -> None:
    if as_json:
        facts = {"brokers": dict(addresses), "idle": sorted(map(list, idle)), "picture": str(data / "network.svg")}
        to_programs(facts)
        sys.stdout.flush()
        return
    console = to_people()
    show(console, Text.assemble(("✓ ", "bold green"), (f"{len(brokers)} brokers are ready.", "bold")))
    table = Table(box=None, header_style="dim")
    for title in ("broker", "clients at", "calls"):
        table.add_column(title)
    for name, broker in brokers.items():
        calls = [f"{other} (idle)" if (name, other) in idle else other for other in broker["calls"]]
        table.add_row(name, addresses[name], ", ".join(calls))
    console.print(table)
    show(console, Text(f"Logs are in {data / 'NAME' / 'log'}, a picture is in {data / 'network.svg'}.", "dim"))
    first, *_, last = (*addresses.values(), *addresses.values())
    show(console, Text("Try, in other terminals:"))
    for command in (
        f"tamis subscribe 'price < 20' --at {last}",
        f"tamis publish '{{\"price\": 12}}' --to {first}",
        f"tamis top --at {first}",
    ):
        show(console, Text(f"  {command}", "cyan"))
    show(to_complain(), Text("Ctrl-C ends all of them.", "dim"))
