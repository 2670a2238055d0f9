from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tamis.service.settings import (
    Duration,
    Issuer,
    JetStream,
    KeepLimits,
    LimitSettings,
    Listener,
    LogSettings,
    Publishing,
    Role,
    Settings,
    Size,
    Sync,
    Tls,
    example_file,
    read_settings,
    settings_file,
    settings_page,
)  # fmt: skip
from tamis.service.settings.reloading import AT_ONCE

PAGE = Path(__file__).parents[3] / "docs" / "settings.md"


def test_the_page_of_the_documentation_has_all_settings_as_they_are():
    page = PAGE.read_text("utf-8")
    assert settings_page().rstrip() in page, "write docs/settings.md again from tamis.service.settings.settings_page()"
    assert f"```toml\n{example_file()}```" in page, "write it again from tamis.service.settings.example_file()"


def test_the_page_names_every_setting_of_every_table():
    page = settings_page()
    for kind in (Settings, LogSettings, LimitSettings):
        for field in msgspec.structs.fields(kind):
            is_table = isinstance(field.default, msgspec.Struct) or field.name == "listeners"
            assert (f"| `{field.name}` |" in page) != (is_table and field.name != "keep"), field.name


def test_what_changes_at_a_reload_exists():
    names = {f"limits.{name}" for name in LimitSettings.__struct_fields__} | set(Settings.__struct_fields__)
    names |= {f"log.{name}" for name in LogSettings.__struct_fields__} | {"listeners.*.tls"}
    assert set(AT_ONCE) <= names


def test_every_description_is_plain_words():
    for line in settings_page().splitlines():
        assert not re.search(r"\b(TODO|FIXME)\b", line)
        assert line.count("|") in (0, 5), line


plain = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = st.lists(plain, max_size=3).map(tuple)
roles = st.builds(
    Role,
    publish=st.none() | st.builds(Publishing, source=names, type=names, where=st.none() | st.just("subject < '3'")),
    receive=st.sampled_from([None, "TRUE", "source = 'it''s' AND NOT type LIKE '%\\n%'"]),
    mode=st.sampled_from(["restrict", "require"]),
    subscribers=names,
    admin=st.booleans(),
)
durations, sizes = st.integers(0, 10**7).map(Duration), st.integers(5_000_000, 10**13).map(Size)
everything = st.builds(
    Settings,
    name=st.sampled_from(["tamis", "north-1"]),
    data=plain.filter(bool),
    insecure=st.just(True),
    origins=names,
    schema=st.none() | st.dictionaries(plain, st.sampled_from(["int", "array<string>", {"x y": "double"}]), min_size=1),
    listeners=st.lists(
        st.builds(
            Listener,
            host=plain,
            port=st.integers(0, 65_535),
            tls=st.none() | st.builds(Tls, certificate=plain, key=plain),
        ),
        min_size=1,
        max_size=3,
    ).map(tuple),
    log=st.builds(
        LogSettings,
        sync=st.sampled_from([Sync(0.0), Sync(0.25), Sync.read("never")]),
        keep=st.builds(KeepLimits, st.none() | st.integers(0, 10**9).map(float), st.none() | st.integers(0, 10**15)),
        hold=durations,
        jetstream=st.none() | st.builds(JetStream, url=plain, replicas=st.integers(1, 5)),
    ),
    limits=st.builds(LimitSettings, inbox_bytes=sizes, wait=durations, events_per_s=st.floats(0, 1e9)),
    roles=st.dictionaries(plain.filter(lambda name: name != "admin"), roles, max_size=3),
)
issuers = st.builds(
    Issuer,
    issuer=st.just("https://login.example"),
    audience=st.lists(plain, min_size=1, max_size=3).map(tuple),
    algorithms=st.sampled_from([("RS256",), ("ES256", "EdDSA")]),
    keys=st.sampled_from(["", "keys.json", "https://keys.example/x", "http://127.0.0.1:80/"]),
    prefix=plain,
    role_names=st.dictionaries(plain, st.just(("admin",)), max_size=2),
    leeway=durations,
)


@given(everything, issuers)
def test_what_is_written_is_read_as_the_same(settings, issuer):
    if settings.roles:
        settings = msgspec.structs.replace(settings, issuers={"company": issuer})
    with TemporaryDirectory() as folder:
        path = Path(folder) / "tamis.toml"
        path.write_bytes(settings_file(settings).encode())
        assert read_settings(path) == settings
