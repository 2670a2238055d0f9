"""A served broker calls the functions of the module that its settings name, and no others."""

from __future__ import annotations

import pytest

from tamis import AsyncClient
from tamis.service.errors import SettingsError
from tamis.service.links.frames import Greeting
from tamis.service.links.talking import LinkIdentity, RefusedError, Talk
from tamis.service.settings import Role, read_settings
from tests.hosted import rules

from .brokers import eventually, running

ADDRESS = "tests.hosted.rules:functions"


@eventually
async def test_subscriptions_call_functions_and_come_back_after_a_restart_with_the_same_versions_only(tmp_path):
    async with running(tmp_path, functions=ADDRESS) as broker, AsyncClient(broker.url) as client:
        await client.subscribe("score(price, category) > 30", name="ann").ready()
    async with running(tmp_path, functions=ADDRESS) as broker, AsyncClient(broker.url) as client:
        subscription = await client.subscribe("score(price, category) > 30", name="ann").ready()
        for price in (10, 20):
            await client.publish({"price": price, "category": "Crime"})
        assert (await anext(subscription)).data == {"price": 20, "category": "Crime"}
    for other in ("tests.hosted.rules:newer", None):
        with pytest.raises(SettingsError, match=r"of 'ann' calls a function: .*score"):
            async with running(tmp_path, functions=other):
                pass


@eventually
async def test_what_raises_is_null_counted_in_the_metrics_and_changes_no_other_match(tmp_path):
    async with running(tmp_path, functions=ADDRESS) as broker, AsyncClient(broker.url) as client:
        fragile = await client.subscribe("fragile(a) > 0", name="fragile").ready()
        other = await client.subscribe("a > 0", name="other").ready()
        for number in (1, 2, 4):
            await client.publish({"a": number})
        assert (await anext(fragile)).data == {"a": 4}
        assert [(await anext(other)).data["a"] for _ in range(3)] == [1, 2, 4]
        _, body = await broker.ask("GET", "/metrics", status=200)
        lines = body.decode().splitlines()
        counts = {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in lines if "function_failures" in line and line[0] != "#"}  # fmt: skip
        assert counts['tamis_function_failures_total{function="fragile@1",reason="raised"}'] >= 1
        assert counts['tamis_function_failures_total{function="fragile@1",reason="other kind"}'] >= 1


@eventually
async def test_check_and_errors_name_what_is_available(tmp_path):
    async with running(tmp_path, functions=ADDRESS) as broker:
        text = {"headers": {"Content-Type": "text/plain"}}
        _, answer = await broker.ask("POST", "/check", status=200, data="score(a, b) > 1", **text)
        assert answer["json"]["expression"] and answer["functions"]["score(number, string)"] == rules.score.row.summary
        _, problem = await broker.ask("POST", "/check", status=400, data="entirely_different(a) > 1", **text)
        assert "those of this host are fragile, is_even, score, slow" in str(problem)
        _, answer = await broker.ask("POST", "/check", {"where": "is_even(a)"}, status=200)
        assert answer["text"] == "is_even(a)"


@eventually
async def test_a_broker_without_functions_answers_as_before(tmp_path):
    async with running(tmp_path) as broker:
        text = {"headers": {"Content-Type": "text/plain"}}
        _, answer = await broker.ask("POST", "/check", status=200, data="a > 1", **text)
        assert set(answer) == {"text", "effective", "json"}
        await broker.ask("POST", "/check", status=400, data="score(a, b) > 1", **text)


@eventually
async def test_roles_may_call_functions(tmp_path):
    async with running(tmp_path, functions=ADDRESS, roles={"even": Role(receive="is_even(a)")}) as broker:
        assert broker.service.permissions.roles == {"even", "admin"}


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("no_such_module:functions", "functions: the module no_such_module cannot be imported"),
        ("json:dumps", "functions: json:dumps is a function, not"),
        ("__import__('os')", "does not name functions"),
    ],
)
def test_a_setting_that_names_no_functions_is_refused_with_what_would_be_right(address, message):
    with pytest.raises(SettingsError, match="my_rules:functions") as error:
        read_settings(overrides={"functions": address})
    assert message in str(error.value)


def test_settings_that_filter_by_functions_need_them():
    roles = {"roles.even.receive": "is_even(a)"}
    assert read_settings(overrides={**roles, "functions": ADDRESS}).host_functions() is rules.functions
    with pytest.raises(SettingsError, match="there is no function is_even"):
        read_settings(overrides=roles)


def test_a_link_between_brokers_with_other_functions_is_refused_by_name():
    def talk(broker, functions):
        return Talk(LinkIdentity("n", broker, functions=functions), b"x" * 16, None, None)

    one, two = talk("one", {"score": 1}), talk("two", {"score": 2})
    with pytest.raises(RefusedError, match="the functions differ: score@1 is here only, score@2 is there only"):
        one.receive(two.take_written())
    assert Greeting(1, "n", "b", b"", False, "d").functions == {}, "a greeting of before has none"
