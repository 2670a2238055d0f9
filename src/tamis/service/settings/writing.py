"""How does one read the settings? As the file that says them, and as a page of documentation: both from the Structs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from tamis.service.settings.quantities import Duration, KeepLimits, Size
from tamis.service.settings.reloading import changes_at_once
from tamis.service.settings.shapes import (
    CatchUp,
    Issuer,
    JetStream,
    LimitSettings,
    LinkAdaptation,
    LinkListener,
    LinkPruning,
    LinkSettings,
    LinkTls,
    Listener,
    Logging,
    LogSettings,
    Publishing,
    Role,
    Settings,
    Tls,
    TracingSettings,
    WebhookSettings,
)

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_EXAMPLES: dict[str, Any] = {
    "roles": {
        "shop": Role(
            publish=Publishing(source=("/shop/*",), type=("order.*",), where="amount < 10000"),
            receive="region = 'EU' AND NOT confidential",
            subscribers=("shop-*",),
        )
    },
    "principals": {"shop.example.com": ("shop",)},
    "issuers": {"company": Issuer(issuer="https://login.example.com", audience=("tamis",))},
    "schema": {"amount": "double", "region": "string", "confidential": "bool"},
    "listeners": (Listener(tls=Tls(certificate="broker.pem", key="broker.key")),),
    "link_listeners": (LinkListener(),),
    "link_tls": LinkTls(ca="network.pem", certificate="broker.pem", key="broker.key"),
    "links": {"north": LinkSettings(url="tamis+tls://north.example:7411", may_send="NOT confidential")},
    "jetstream": JetStream(url="nats://127.0.0.1:4222"),
}
"""What is shown, as a comment, for that which is empty unless somebody says something."""


class Row(NamedTuple):
    """What there is to know of a setting."""

    name: str
    default: str
    """As it is written in the file; empty if there is none."""
    description: str
    is_reloaded: bool


def settings_file(settings: Settings) -> str:
    """Return settings as the file that says them.

    >>> print(settings_file(Settings(name="north")).splitlines()[0])
    name = "north"
    """
    return "\n".join(_written(settings, (), explains=False)).strip() + "\n"


def example_file() -> str:
    """Return a file with every setting, its default and what it is for; what has no default is a comment."""
    return (
        "\n".join(["# The settings of a Tamis broker; all are optional.", *_written(Settings(), (), explains=True)])
        + "\n"
    )


def _written(table: Any, path: tuple[str, ...], *, explains: bool) -> Iterator[str]:
    """Yield the lines of a table: first its values, then the tables in it."""
    tables = []
    for name, description in _descriptions(type(table)):
        value = getattr(table, name)
        if _is_table(value):
            tables.append((name, value))
        elif explains and value in (None, {}, ()) and name in _EXAMPLES:
            tables.append((name, _EXAMPLES[name]))
        elif value is not None and value != {} and not (value == () and name in _EXAMPLES):
            if explains:
                yield f"# {description[0].upper()}{description[1:]}."
            yield f"{_key(name)} = {_literal(value)}"
    for name, value in tables:
        is_comment = explains and getattr(table, name) in (None, {}, ())
        mark = "# " if is_comment else ""
        inner = (*path, name)
        if isinstance(value, tuple):
            for listener in value:
                yield from ("", f"{mark}[[{_dotted(inner)}]]")
                yield from (mark + line for line in _written(listener, inner, explains=False) if line)
        elif isinstance(value, Mapping) and not isinstance(next(iter(value.values())), msgspec.Struct):
            yield from ("", f"{mark}[{_dotted(inner)}]")
            yield from (f"{mark}{_key(key)} = {_literal(member)}" for key, member in value.items())
        elif isinstance(value, Mapping):
            for key, member in value.items():
                yield from ("", f"{mark}[{_dotted((*inner, key))}]")
                yield from (mark + line for line in _written(member, (*inner, key), explains=False) if line)
        else:
            yield from ("", f"{mark}[{_dotted(inner)}]")
            lines = _written(value, inner, explains=explains and not is_comment)
            yield from (mark + line for line in lines)


def _is_table(value: Any) -> bool:
    if isinstance(value, tuple):
        return bool(value) and isinstance(value[0], msgspec.Struct)
    if isinstance(value, Mapping):
        return bool(value)
    return isinstance(value, msgspec.Struct) and not isinstance(value, KeepLimits)


def _descriptions(kind: type[msgspec.Struct]) -> Iterator[tuple[str, str]]:
    for name, annotation in get_type_hints(kind, include_extras=True).items():
        assert get_origin(annotation) is Annotated, f"{kind.__name__}.{name} is not described"
        metas = [meta for meta in get_args(annotation)[1:] if getattr(meta, "description", None)]
        yield name, metas[-1].description


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(map(_key, path))


def _text(value: str) -> str:
    """Return a text as TOML writes it; as in JSON, and DEL must be escaped too."""
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")


def _literal(value: Any) -> str:
    if isinstance(value, Duration | Size | KeepLimits):
        return _text(str(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(name)} = {_literal(member)}' for name, member in value.items())}}}"
    return _text(value) if isinstance(value, str) else repr(value)


def rows(kind: type[msgspec.Struct], path: tuple[str, ...]) -> Iterator[Row]:
    """Yield what there is to know of the settings of a table."""
    for (name, description), field in zip(_descriptions(kind), msgspec.structs.fields(kind), strict=True):
        default = field.default
        if not _is_table(default):  # those have a section of their own
            shown = "" if default in (None, msgspec.NODEFAULT) else _literal(default)
            yield Row(name, shown, description, changes_at_once((*path, name)))


_SECTIONS: tuple[tuple[str, type[msgspec.Struct], tuple[str, ...], str], ...] = (
    ("Outside of tables", Settings, (), ""),
    ("`[[listeners]]`", Listener, ("listeners", "0"), "One table for each address."),
    (
        "`[listeners.tls]`",
        Tls,
        ("listeners", "0", "tls"),
        "Right behind its `[[listeners]]`. Certificates are read anew at each reload, for new connections.",
    ),
    ("`[[link_listeners]]`", LinkListener, ("link_listeners", "0"), "One table for each address."),
    ("`[link_tls]`", LinkTls, ("link_tls",), ""),
    ("`[links.NAME]`", LinkSettings, ("links", "NAME"), "NAME is the `name` of the other broker."),
    ("`[links.NAME.pruning]`", LinkPruning, ("links", "NAME", "pruning"), "At least one of them but the measure."),
    ("`[links.NAME.adaptation]`", LinkAdaptation, ("links", "NAME", "adaptation"), ""),
    ("`[log]`", LogSettings, ("log",), ""),
    ("`[log.jetstream]`", JetStream, ("log", "jetstream"), ""),
    ("`[limits]`", LimitSettings, ("limits",), "What goes beyond a limit is refused, with an error that names it."),
    ("`[webhooks]`", WebhookSettings, ("webhooks",), ""),
    ("`[tracing]`", TracingSettings, ("tracing",), ""),
    ("`[catch_up]`", CatchUp, ("catch_up",), ""),
    ("`[logging]`", Logging, ("logging",), ""),
    (
        "`[roles.NAME]`",
        Role,
        ("roles", "NAME"),
        "Several roles of one principal unite. The role `admin` is always there and may do everything.",
    ),
    (
        "`[issuers.NAME]`",
        Issuer,
        ("issuers", "NAME"),
        "NAME is yours to choose. Needs `pip install 'tamis[jwt]'`. `role_names` is a table: `staff = [\"shop\"]`.",
    ),
    ("`publish` of a role", Publishing, ("roles", "NAME", "publish"), ""),
)


def settings_page() -> str:
    """Return the reference of all settings, in Markdown."""
    lines = []
    for title, kind, path, remark in _SECTIONS:
        lines += [f"### {title}", ""]
        lines += [remark, ""] if remark else []
        lines += ["| setting | default | | changes at a |", "|---|---|---|---|"]
        for row in rows(kind, path):
            default = f"`{row.default}`" if row.default else ""
            lines.append(
                f"| `{row.name}` | {default} | {row.description} | {'reload' if row.is_reloaded else 'start'} |"
            )
        lines.append("")
    return "\n".join(lines)
