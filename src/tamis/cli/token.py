"""Who may use a broker? Tokens, made and taken back by whoever has its folder.

A token is shown once, when it is made; the folder keeps its digest. A running broker knows of changes at once.
"""

import time
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from tamis.cli.inputs import InputError
from tamis.cli.lessons import Example
from tamis.cli.output import AsJson, mistakes_shown, show, to_complain, to_people, to_programs, visible

if TYPE_CHECKING:
    from tamis.service.tokens import TokenRecord, Tokens

EXAMPLES = (
    Example("tamis token create ann --role shop --data d", "A token for ann, with the role shop."),
    Example("tamis token create bob --role admin --days 7 --data d", "Another, which ends in a week."),
    Example("tamis token list --data d", "List the tokens."),
    Example("tamis token remove 000000 --data d", "No token has this name.", exit_code=2),
)
NOTES = (
    "What a role may do is set in the broker's settings: [cyan]\\[roles.shop][/cyan] in tamis.toml; the role "
    "[cyan]admin[/cyan] is always there. A client shows its token as [cyan]TAMIS_TOKEN[/cyan], "
    "[cyan]--token-file[/cyan] or the header [cyan]Authorization: Bearer …[/cyan].",
)


class Action(StrEnum):
    """What to do with tokens."""

    create = "create"
    list = "list"
    remove = "remove"


def token(
    action: Annotated[Action, typer.Argument(help="What to do.")],
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The owner of the token; with remove, the token.", show_default=False),
    ] = None,
    role: Annotated[
        list[str] | None, typer.Option(metavar="ROLE", help="A role; may be repeated.", show_default=False)
    ] = None,
    days: Annotated[
        float | None,
        typer.Option(metavar="N", min=0.001, help="The lifetime of the token, in days.", show_default=False),
    ] = None,
    data: Annotated[Path, typer.Option(metavar="FOLDER", help="The broker's folder.")] = Path("tamis-data"),
    as_json: AsJson = False,
) -> None:
    """Create, list or remove the tokens with which clients authenticate."""
    with mistakes_shown(as_json):
        if (name is None) is not (action is Action.list):
            raise InputError(
                "tamis token list takes no name" if name else f"tamis token {action} needs a name",
                hint="tamis token create ann --role shop",
            )
        tokens = _opened(data, is_made=action is Action.create)
        try:
            _DO[action](tokens, name or "", tuple(role or ()), days, as_json)
        finally:
            tokens.close()


def _opened(data: Path, is_made: bool) -> "Tokens":
    from tamis.service.tokens import Tokens

    if is_made:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
    elif not (data / "tokens.db").exists():
        raise InputError(f"there are no tokens in {data}", hint="--data names the folder of the broker.")
    return Tokens(data / "tokens.db")


def _create(tokens: "Tokens", name: str, roles: tuple[str, ...], days: float | None, as_json: bool) -> None:
    ends = None if days is None else time.time() + days * 86_400
    secret = tokens.create(name, roles, ends)
    if as_json:
        to_programs({"token": secret, "principal": name, "roles": list(roles), "ends": _moment(ends)})
        return
    typer.echo(secret)  # alone on standard output, so that it can go into a file
    show(to_complain(), Text(f"This is the only time that it is shown. It is for {name}.", "dim"))
    if not roles:
        show(to_complain(), Text("It has no role: --role NAME says what it may do.", "yellow"))


def _list(tokens: "Tokens", name: str, roles: tuple[str, ...], days: float | None, as_json: bool) -> None:
    rows = list(tokens)
    if as_json:
        to_programs({"tokens": [_data(row) for row in rows]})
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("token", "whose", "roles", "ends"):
        table.add_column(heading)
    for row in rows:
        table.add_row(row.name, visible(row.principal), visible(", ".join(row.roles)) or "-", _moment(row.ends) or "-")
    to_people().print(table)


def _remove(tokens: "Tokens", name: str, roles: tuple[str, ...], days: float | None, as_json: bool) -> None:
    removed = tokens.revoke(name)
    if as_json:
        to_programs({"removed": _data(removed)})
    else:
        show(to_people(), Text.assemble(("✓ ", "bold green"), f"{removed.name} of {removed.principal} opens nothing."))


_DO = {Action.create: _create, Action.list: _list, Action.remove: _remove}


def _data(token: "TokenRecord") -> dict[str, Any]:
    return {"token": token.name, "principal": token.principal, "roles": list(token.roles), "ends": _moment(token.ends)}


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
