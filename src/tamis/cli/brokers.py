"""Which broker does a command talk to, and as whom? The options of every command that has a client.

The address is a flag or the variable `TAMIS_URL`. The token is `TAMIS_TOKEN` or stands in a file, never in a flag:
other users of a machine can read those.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tamis.cli.inputs import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.service.client import Client

DEFAULT_URL = "http://127.0.0.1:7410"
TOKEN = "TAMIS_TOKEN"

BrokerOption = Annotated[str, typer.Option(metavar="URL", help="The broker.", envvar="TAMIS_URL")]
TokenFileOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The file that holds the token; the default is TAMIS_TOKEN.", show_default=False),
]
CaOption = Annotated[
    Path | None,
    typer.Option("--ca", metavar="FILE", help="The certificate authorities to trust (PEM).", show_default=False),
]
CertificateOption = Annotated[
    Path | None,
    typer.Option("--certificate", metavar="FILE", help="The client certificate and its key (PEM).", show_default=False),
]
NOTE = (
    "The broker is also named by [cyan]TAMIS_URL[/cyan], and a token by [cyan]TAMIS_TOKEN[/cyan] or "
    "[cyan]--token-file[/cyan]."
)


@contextmanager
def talking_to(url: str, token_file: Path | None, ca: Path | None, certificate: Path | None) -> Iterator[Client]:
    """Give a client of the broker at an address."""
    from tamis.service.client import Client  # here, so that other commands need not have its libraries

    client = Client(url, token=_token(token_file), ca=ca, certificate=certificate, source="/cli")
    try:
        yield client
    finally:
        client.close()


def _token(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get(TOKEN)
    try:
        return file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {file}: {getattr(error, 'strerror', None) or error}") from None
