from __future__ import annotations

import pickle

import pytest

from tamis.routing import STRATEGIES
from tamis.service.errors import SettingsError
from tamis.service.settings import (
    Differences,
    KeepLimits,
    Publishing,
    Settings,
    differences,
    example_file,
    is_loopback,
    read_settings,
    renewed,
    settings_file,
)

FULL = """
name = "north"
data = "/var/lib/tamis"
origins = ["https://example.com"]
strategy = "covering"

[schema]
price = "double"
region = "string"
position = { x = "double", y = "double" }

[principals]
"shop.example" = ["shop"]

[[listeners]]
host = "127.0.0.1"

[[listeners]]
host = "0.0.0.0"
port = 443
[listeners.tls]
certificate = "a.pem"
key = "a.key"
client_ca = "ca.pem"
clients = "required"

[log]
sync = "0.2s"
keep = ["7d", "20GB"]
jetstream = { url = "nats://127.0.0.1:4222", replicas = 3 }

[limits]
event_bytes = "64kB"
events_per_s = 5

[roles.shop]
publish = { source = ["/shop/*"], type = ["order.*"], where = "price < 10000" }
receive = "region = 'EU'"
mode = "require"
subscribers = ["shop-*"]
"""


@pytest.fixture
def full(tmp_path):
    path = tmp_path / "tamis.toml"
    path.write_text(FULL, "utf-8")
    return path


def refusal(tmp_path, text: str, **more) -> str:
    path = tmp_path / "tamis.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(SettingsError) as refused:
        read_settings(path, **more)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)
    return str(refused.value).replace(str(path), "FILE")


def test_a_file_says_everything(full):
    settings = read_settings(full)
    assert settings.log.keep == KeepLimits(7 * 86_400.0, 20_000_000_000)
    assert settings.log.jetstream.replicas == 3 and settings.log.jetstream.stream == "tamis"
    assert [listener.port for listener in settings.listeners] == [7410, 443]
    assert settings.listeners[1].tls.clients == "required"
    assert settings.limits.event_bytes == 64_000 and settings.limits.events_per_s == 5.0
    assert settings.roles["shop"].publish == Publishing(source=("/shop/*",), type=("order.*",), where="price < 10000")
    assert settings.principals == {"shop.example": ("shop",)}
    assert str(settings.event_schema().type_of(("position", "x"))) == "double"


def test_without_anything_there_are_defaults_and_no_file_is_needed():
    assert read_settings() == Settings()


def test_the_environment_counts_over_the_file_and_flags_over_both(full):
    environment = {"TAMIS_LOG__SYNC": "never", "TAMIS_NAME": "south", "TAMIS_LISTENERS__1__PORT": "8443", "HOME": "/"}
    settings = read_settings(full, environment, {"name": "west", "data": None})
    assert str(settings.log.sync) == "never"
    assert settings.name == "west" and settings.data == "/var/lib/tamis"
    assert [listener.port for listener in settings.listeners] == [7410, 8443]
    assert settings.listeners[1].tls is not None, "only what is named changes"


def test_a_variable_is_text_and_becomes_what_the_setting_is():
    environment = {
        "TAMIS_LIMITS__DEPTH": "8", "TAMIS_LIMITS__EVENTS_PER_S": "2.5", "TAMIS_INSECURE": "true",
        "TAMIS_ORIGINS": "https://a.example, https://b.example", "TAMIS_LIMITS__WAIT": "90", "TAMIS_LOG__KEEP": "7d, 1GB",
        "TAMIS_ROLES__SHOP__RECEIVE": "x = 1", "TAMIS_ROLES__SHOP__PUBLISH__SOURCE": "/a/*,/b",
    }  # fmt: skip
    settings = read_settings(None, environment)
    assert settings.limits.depth == 8 and settings.limits.events_per_s == 2.5 and settings.limits.wait == 90
    assert settings.insecure and settings.origins == ("https://a.example", "https://b.example")
    assert settings.log.keep == KeepLimits(7 * 86_400.0, 10**9)
    assert settings.roles["shop"].receive == "x = 1" and settings.roles["shop"].publish.source == ("/a/*", "/b")


def test_variables_that_a_cluster_or_a_command_sets_are_no_settings():
    others = {
        "TAMIS_PORT": "tcp://10.0.0.7:7410", "TAMIS_SERVICE_HOST": "10.0.0.7", "TAMIS_PORT_7410_TCP_PROTO": "tcp",
        "TAMIS_URL": "http://localhost:7410", "TAMIS_TOKEN": "x", "TAMIS_CONFIG": "tamis.toml", "TAMIS_HYPOTHESIS": "quick",
    }  # fmt: skip
    assert read_settings(None, others) == Settings()


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ("nam = 'x'", "FILE: there is no setting nam;", "Did you mean name?"),
        ("[log]\nkep = '7d'", "FILE: there is no setting log.kep;", "Did you mean keep?"),
        ("[[listeners]]\nprot = 5", "FILE: there is no setting listeners.0.prot;", "Did you mean port?"),
        ("[roles.shop]\nrecieve = 'x = 1'", "FILE: there is no setting roles.shop.recieve;", "Did you mean receive?"),
        ("[roles.shop.publish]\nwhen = 'x = 1'", "roles.shop.publish.when;", "one of source, type, where"),
        ("[log]\nkeep = 'long'", "FILE: log.keep: 'long' is not a setting of keep", "7d"),
        ("[log]\nsync = 'often'", "FILE: log.sync: 'often' is not a setting of sync", "always, never"),
        ("[limits]\nevent_bytes = '5 apples'", "FILE: limits.event_bytes: '5 apples' is not a size", "256kB"),
        ("[limits]\ndepth = 0", "FILE: limits.depth:", ">= 1"),
        ("[limits]\ndepth = '8'", "FILE: limits.depth:", "Expected `int`, got `str`"),
        ("[limits]\nevents_per_s = -1", "FILE: limits.events_per_s:", ">= 0"),
        ("[limits]\nevents_per_s = nan", "FILE: limits.events_per_s", ""),
        ("[catch_up]\nshare = 1.5", "FILE: catch_up.share:", "<= 1"),
        ("[logging]\nlevel = 'loud'", "FILE: logging.level:", "loud"),
        ("strategy = 'magic'", "FILE: strategy:", "magic"),
        ("log = 5", "FILE: log is a table", "[log]"),
        ("[name]\nx = 1", "FILE: name is not a table", "name ="),
        ("listeners = 5", "FILE: listeners is a list of tables", "[[listeners]]"),
        ("listeners = []", "there is no address to listen on", "[[listeners]]"),
        ("[listeners.tls]\nkey = 'x'", "FILE: listeners is a list of tables", ""),
        ("[[listeners]]\n[listeners.tls]\nkey = 'x'", "FILE: listeners.0.tls lacks certificate", "listeners.0.tls.certificate ="),
        ("[[listeners]]\nport = 70000", "FILE: listeners.0.port:", "65535"),
        ("name = 'a/b'", "FILE: name: 'a/b' is not the name", "letters"),
        ("principals = ['x']", "FILE: principals is a table", "[principals]"),
        ("[principals]\nann = 'shop'", "FILE: principals.ann:", "array"),
        ("[principals]\nann = ['shpo']\n[roles.shop]\n", "FILE: principals.ann: there is no role 'shpo'", "Did you mean shop?"),
        ("[roles.admin]\nreceive = 'TRUE'", "FILE: roles.admin: this role is always there", "another name"),
        ("[schema]\nprice = 'money'", "FILE: schema:", "double"),
        ("[schema]\nprice = 5", "FILE: schema:", "double"),
        ("[limits]\nevent_bytes = '5MB'", "limits.event_bytes is 5MB, more than limits.batch_bytes, which is 4MB", "at most"),
        ("[limits]\ngroup_bytes = 0", "limits.group_bytes is 0", "at least 1"),
        ("name = \nx", "FILE is not TOML", "line 1"),
        ("[limits]\nevents_per_s = inf", "FILE: limits.events_per_s:", "<= "),
    ],
)  # fmt: skip
def test_what_means_nothing_is_refused_with_its_place_and_what_would_be_right(tmp_path, text, place, hint):
    message = refusal(tmp_path, text)
    assert place in message
    assert hint in message


def test_a_mistake_in_the_environment_names_the_variable():
    with pytest.raises(SettingsError, match=r"the variable TAMIS_LOG__KEEP: log.keep: 'x' .*; expected an age"):
        read_settings(None, {"TAMIS_LOG__KEEP": "x"})
    with pytest.raises(SettingsError, match=r"the variable TAMIS_NAM: there is no setting nam; .*Did you mean name"):
        read_settings(None, {"TAMIS_NAM": "x"})
    with pytest.raises(SettingsError, match=r"the flag for limits.depth: limits.depth: Expected `int`"):
        read_settings(None, None, {"limits.depth": "deep"})


def test_a_filter_of_a_role_that_cannot_be_read_is_refused_with_a_caret(tmp_path):
    message = refusal(tmp_path, "[roles.shop]\nreceive = \"region = 'EU' AND\"")
    assert message.startswith("FILE: roles.shop.receive: line 1, column 18: found the end of the text")
    assert message.splitlines()[1:3] == ["  region = 'EU' AND", "                   ^"]
    message = refusal(tmp_path, '[roles.shop]\npublish = { where = "amount < < 3" }')
    assert message.startswith("FILE: roles.shop.publish.where: line 1, column 10")


def test_a_filter_of_a_role_is_checked_against_the_schema_and_the_context_of_events(tmp_path):
    message = refusal(tmp_path, "[schema]\nprice = 'double'\n[roles.shop]\nreceive = \"prize < 3 AND source = '/a'\"")
    assert "roles.shop.receive" in message and "prize" in message and "Did you mean price" in message


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        read_settings(tmp_path / "absent.toml")
    (tmp_path / "odd.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="is not TOML"):
        read_settings(tmp_path / "odd.toml")


TLS = "[listeners.tls]\ncertificate = 'a'\nkey = 'b'\n"
ROLE = "[roles.shop]\nreceive = 'TRUE'\n"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "broker.example.com", "::ffff:10.0.0.1", ""])
def test_an_address_that_others_reach_needs_tls_and_roles(tmp_path, host):
    at = f"[[listeners]]\nhost = '{host}'\n"
    assert "with no TLS (listeners.0.tls with certificate and key) and no roles" in refusal(tmp_path, at)
    message = refusal(tmp_path, at + TLS)
    assert "no roles" in message and "no TLS" not in message
    message = refusal(tmp_path, at + ROLE)
    assert "no TLS" in message and "no roles" not in message
    path = tmp_path / "tamis.toml"
    for text in (at + TLS + ROLE, "insecure = true\n" + at):
        path.write_text(text)
        assert read_settings(path).listeners[0].host == host


def test_each_address_is_looked_at(tmp_path):
    text = f"[[listeners]]\n[[listeners]]\nhost = '::1'\n[[listeners]]\nhost = '10.0.0.1'\n{ROLE}"
    assert "listeners.2.host: others can reach '10.0.0.1', with no TLS (listeners.2.tls" in refusal(tmp_path, text)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.8.8.8", "::1", "localhost", "LOCALHOST", "::ffff:127.0.0.1", "::1%lo"]
)
def test_loopback_addresses_need_nothing(host):
    assert is_loopback(host)
    assert read_settings(overrides={"listeners.0.host": host}).listeners[0].host == host


@pytest.mark.parametrize(
    "host", ["127.0.0.1.example.com", "0127.0.0.1", "2130706433", "127.1", "localhost.", " 127.0.0.1"]
)
def test_what_only_looks_like_loopback_is_not(host):
    assert not is_loopback(host)


def test_settings_can_be_written_and_read_again(full, tmp_path):
    for settings in (Settings(), read_settings(full)):
        path = tmp_path / "again.toml"
        path.write_text(settings_file(settings), "utf-8")
        assert read_settings(path) == settings


def test_the_example_file_is_the_default_also_if_its_comments_count(tmp_path):
    path = tmp_path / "example.toml"
    path.write_text(example_file(), "utf-8")
    assert read_settings(path) == Settings()
    tables = [line for line in example_file().splitlines() if line.startswith(("# [", "# "))]
    lines = []
    for line in example_file().splitlines():
        is_setting = line.startswith("# [") or (line.startswith("# ") and " = " in line)
        lines.append(line[2:] if is_setting else line)
    assert tables
    path.write_text("\n".join(lines), "utf-8")
    settings = read_settings(path)
    assert settings.roles["shop"].publish.where == "amount < 10000"
    assert settings.log.jetstream is not None and settings.schema and settings.principals


def test_the_strategies_are_those_of_routing():
    for name in STRATEGIES:
        assert read_settings(overrides={"strategy": name}).strategy == name


def test_a_reload_changes_some_settings_and_the_others_wait(full):
    old = read_settings(full)
    new = read_settings(
        full,
        {"TAMIS_ROLES__SHOP__RECEIVE": "region = 'US'", "TAMIS_ROLES__GUEST__RECEIVE": "FALSE"},
        {
            "limits.depth": 7, "limits.ring_bytes": 10**9, "data": "elsewhere", "log.keep": "8d", "log.sync": "always",
            "listeners.1.tls.certificate": "b.pem", "listeners.1.port": 8443, "logging.level": "debug", "schema.price": "int",
        },
    )  # fmt: skip
    told = differences(old, new)
    assert set(told.at_start) == {"data", "log.sync", "limits.ring_bytes", "listeners.1.port", "schema.price"}
    assert {"limits.depth", "log.keep", "listeners.1.tls.certificate", "logging.level"} <= set(told.at_once)
    assert {"roles.shop.receive", "roles.guest.receive"} <= set(told.at_once)
    assert differences(old, old) == Differences((), ())


def test_a_reload_leaves_what_waits_for_a_start_as_it_was_and_takes_all_else(full):
    old = read_settings(full)
    new = read_settings(
        full,
        {"TAMIS_ROLES__SHOP__RECEIVE": "region = 'US'", "TAMIS_ROLES__GUEST__RECEIVE": "FALSE"},
        {
            "limits.depth": 7, "limits.credit": 9, "name": "north", "log.keep": "8d", "log.sync": "always",
            "listeners.1.tls.certificate": "b.pem", "listeners.1.port": 8443, "logging.form": "json", "schema.price": "int",
        },
    )  # fmt: skip
    after, asked = renewed(old, new), differences(old, new)
    assert differences(old, after) == Differences(asked.at_once, ())
    assert differences(after, new) == Differences((), asked.at_start)
    assert (after.limits.depth, after.limits.credit, after.name) == (7, old.limits.credit, old.name)
    assert (after.listeners[1].tls.certificate, after.listeners[1].port) == ("b.pem", old.listeners[1].port)
    assert renewed(new, read_settings()).listeners[1:] == new.listeners[1:]


def test_encryption_is_not_switched_on_by_a_reload():
    tls = {"listeners.0.tls.certificate": "a", "listeners.0.tls.key": "b"}
    assert "listeners.0.tls" in differences(read_settings(), read_settings(overrides=tls)).at_start
    assert renewed(read_settings(), read_settings(overrides=tls)).listeners[0].tls is None
    assert "listeners.0.tls" in differences(read_settings(overrides=tls), read_settings()).at_start
