from __future__ import annotations

import re
from pathlib import Path

import msgspec

from tamis.service.settings import LimitSettings, LogSettings, Settings, example_file, settings_page
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
