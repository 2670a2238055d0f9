"""How is a broker joined to others, and how do its links fare? A table, once or live."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tamis.cli.brokers import DEFAULT_URL, NOTE, BrokerOption, CaOption, CertificateOption, TokenFileOption, talking_to
from tamis.cli.lessons import Example
from tamis.cli.output import AsJson, mistakes_shown, show, to_people, to_programs, visible

if TYPE_CHECKING:
    from tamis.service.client import Client

EXAMPLES = (
    Example("tamis links --at localhost:1", "No broker answers there, and the command says so at once.", exit_code=2),
)
NOTES = (
    "The states of a link are [cyan]live[/cyan] (the neighbour has reached the end of the log), [cyan]behind[/cyan] "
    "(it is catching up), [cyan]away[/cyan] (it is not connected, and its position is kept) and [cyan]calling[/cyan] "
    "(it was never reached). In a graph only links that carry are used for events; [cyan]idle[/cyan] links are in "
    "reserve, and [cyan]leaving[/cyan] links still hold events that will go another way.",
    NOTE,
)
TOP_EXAMPLES = (Example("tamis top --at localhost:1 --rounds 1", "No broker answers there.", exit_code=2),)
_STATES = {
    "live": "green",
    "behind": "yellow",
    "joining": "yellow",
    "away": "red",
    "calling": "red",
    "idle": "dim",
    "leaving": "yellow",
}


def links(
    at: BrokerOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    certificate: CertificateOption = None,
    as_json: AsJson = False,
) -> None:
    """Show the links of a broker to others."""
    with mistakes_shown(as_json), talking_to(at, token_file, ca, certificate) as client:
        described = client.links()
    if as_json:
        to_programs(described)
        return
    console = to_people()
    if not described["links"]:
        show(console, Text(f"{visible(described['broker'])} has no links."))
        return
    console.print(link_table(described))


def link_table(described: dict[str, Any]) -> Table:
    """Return the links of a broker as a table."""
    table = Table(title=f"links of {visible(described['broker'])}", title_justify="left", box=None, header_style="dim")
    for name in ("link", "state", "carries", "sent", "received", "on its way", "wants", "told", "behind it"):
        table.add_column(
            name, justify="right" if name in ("sent", "received", "on its way", "wants", "told") else "left"
        )
    for link in described["links"]:
        counts = [f"{link.get(name, 0):,}" for name in ("sent", "received", "unacknowledged", "wants", "told")]
        state = Text(link["state"], _STATES.get(link["state"], ""))
        remark = visible(link.get("refusal") or ", ".join(link.get("behind", ())))
        carries = "yes" if link.get("carries") else "no"
        table.add_row(visible(link["name"] or link["url"]), state, carries, *counts, remark)
    return table


def top(
    at: BrokerOption = DEFAULT_URL,
    every: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="The time between updates.")] = 1.0,
    rounds: Annotated[int, typer.Option(metavar="N", min=0, help="Stop after N updates; 0 never stops.")] = 0,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    certificate: CertificateOption = None,
    as_json: AsJson = False,
) -> None:
    """Watch a broker at work: events, deliveries and links, as a live table."""
    with mistakes_shown(as_json), talking_to(at, token_file, ca, certificate) as client:
        looks = _looks(client, every, rounds)
        if as_json:
            for _, figures, _ in looks:
                to_programs({"figures": figures, **client.links()})
            return
        with Live(console=to_people(), auto_refresh=False) as live:
            for before, figures, seconds in looks:
                live.update(overview(client, before, figures, seconds), refresh=True)
        if not to_people().is_terminal:  # only the last table is written then, without an end of its line
            to_people().print()


def _looks(client: "Client", every_s: float, rounds: int) -> Iterator[tuple[dict[str, float], dict[str, float], float]]:
    """Yield the figures of the look before, those of this one, and the seconds between; the first is both."""
    before, looked, number = figures_of(client), time.monotonic(), 1
    yield before, before, 1.0
    while number != rounds:
        try:
            time.sleep(every_s)
        except KeyboardInterrupt:
            return
        now, figures = time.monotonic(), figures_of(client)
        yield before, figures, now - looked
        before, looked, number = figures, now, number + 1


def figures_of(client: "Client") -> dict[str, float]:
    """Return the figures of a broker, by name and label, as `/metrics` writes them."""
    figures: dict[str, float] = {}
    for line in client.metrics().splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            figures[name] = float(value)
    return figures


def overview(client: "Client", before: dict[str, float], now: dict[str, float], seconds: float) -> Table:
    """Return what a broker does, as a table of tables."""

    def total(figures: dict[str, float], name: str) -> float:
        return sum(value for label, value in figures.items() if label.split("{")[0] == name)

    def rate(before: float, now: float) -> str:
        return f"{(now - before) / max(seconds, 1e-9):,.0f}"

    def total_rate(name: str) -> str:
        return rate(total(before, name), total(now, name))

    sent = 'tamis_deliveries_total{state="sent"}'
    states = {state: now.get(f'tamis_subscribers{{state="{state}"}}', 0) for state in ("live", "behind", "far")}
    table = Table(box=None, show_header=False, title_justify="left")
    table.add_column(style="dim")
    table.add_column(justify="right")
    for title, value in (
        ("events taken", f"{total_rate('tamis_events_taken_total')}/s"),
        ("deliveries", f"{rate(before.get(sent, 0), now.get(sent, 0))}/s"),
        ("from publishing to delivery", delays(before, now)),
        ("subscribers", ", ".join(f"{count:,.0f} {state}" for state, count in states.items())),
        ("events that wait for them", f"{total(now, 'tamis_behind_events'):,.0f}"),
        ("subscriptions", f"{total(now, 'tamis_subscriptions'):,.0f}"),
        ("connections", f"{total(now, 'tamis_connections'):,.0f}"),
        ("head of the log", f"{total(now, 'tamis_log_head'):,.0f}"),
        ("to neighbours", f"{total_rate('tamis_link_bytes_out_total')} bytes/s"),
    ):
        table.add_row(title, value)
    frame = Table.grid(padding=(1, 0))
    frame.add_row(table)
    frame.add_row(link_table(client.links()))
    return frame


_DELAY = "tamis_publish_to_deliver_seconds_bucket"


def delays(before: dict[str, float], now: dict[str, float]) -> str:
    """Return how long half of the events took to be delivered between two looks, and 99 of 100: bounds of a histogram.

    >>> bucket = 'tamis_publish_to_deliver_seconds_bucket{le="%s"}'
    >>> before = {bucket % "0.001": 5, bucket % "0.01": 5, bucket % "+Inf": 5}
    >>> delays(before, {bucket % "0.001": 8, bucket % "0.01": 9, bucket % "+Inf": 9}), delays(before, before)
    ('half within 1 ms, 99 % within 10 ms', 'none was')
    """
    counts = {
        float(label.partition('"')[2].rstrip('"}').replace("+Inf", "inf")): count - before.get(label, 0.0)
        for label, count in now.items()
        if label.startswith(_DELAY)
    }
    total = max(counts.values(), default=0.0)
    if not total:
        return "none was"

    def within(share: float) -> str:
        bound = min(bound for bound, count in counts.items() if count >= share * total)
        return "more" if bound == float("inf") else f"{bound * 1_000:g} ms"

    return f"half within {within(0.5)}, 99 % within {within(0.99)}"
