"""The stream as a process of its own, killed again and again: nothing is lost, nothing is doubled."""

from __future__ import annotations

import json
from random import Random

import pytest

pipeline = pytest.importorskip("tamis.spark")

from tamis.matching import Matcher  # noqa: E402
from tests.spark.killing import MortalStream  # noqa: E402
from tests.spark.nats_server import NatsServer  # noqa: E402
from tests.spark.test_folders import address  # noqa: E402
from tests.spark.webhook_receiver import Receiver  # noqa: E402
from tests.spark.worlds import ChangingWorld, NatsWorld, World  # noqa: E402

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SUBSCRIPTIONS = {number: f"price < {number % 8} OR number = {number}" for number in range(40)}


def change(world, done):
    """Change the log of a world."""
    world.log.change(add={1000 + done: f"price = {done % 7}"}, remove=[done])


def killed(world, stream, kills, chance, every=5, meanwhile=None, change=change):
    """Kill a stream so often, then let it come to its end; the world goes on while it is dead."""
    done = 0
    while done < kills:
        if not stream.is_killed(chance):
            world.arrive(files=10)  # it was done: give it more
            continue
        done += 1
        if done % every == 0:
            change(world, done)
            if meanwhile is not None:
                meanwhile()
    stream.run()


def arguments(world, **given):
    """The arguments of `tamis stream` for a world."""
    named = {
        "events": world.arriving, "subscriptions": world.log.path, "out": world.out, "checkpoint": world.checkpoint, "files": 1,
        "master": "local[2]", **given,
    }  # fmt: skip
    found = [word for name, value in named.items() for word in (f"--{name.replace('_', '-')}", value)]
    return [*found, "--keep", "number", "--keep", "price"]


@pytest.mark.parametrize(("format", "kills"), [("parquet", 20), ("parquet_folder", 6)])
def test_kills_at_random_moments_change_nothing_in_the_result(spark, tmp_path, format, kills):
    world = World(spark, tmp_path)
    world.log.add(SUBSCRIPTIONS)
    world.arrive(files=40 if kills > 10 else 20)
    stream = MortalStream(*arguments(world, format=format), commits=world.out / "_tamis" / "commits")
    killed(world, stream, kills, Random(5), every=5 if kills > 10 else 3)
    assert len(world.check()) > 1_000
    assert len({commit["version"] for commit in pipeline.commits(world.out)}) > 1


def test_kills_change_nothing_where_checkpoint_matches_and_log_are_not_on_the_disk(spark, tmp_path):
    world = World(spark, tmp_path)
    place = address(spark, tmp_path, "viewfs")
    world.move(place)
    world.log.add(SUBSCRIPTIONS)
    world.arrive(files=20)
    mount = place.removeprefix("viewfs://").partition("/")[0]
    (tmp_path / "conf").mkdir()
    settings = f"spark.hadoop.fs.viewfs.mounttable.{mount}.link./data file://{tmp_path}\n"
    (tmp_path / "conf" / "spark-defaults.conf").write_text(settings)
    commits = tmp_path / "out" / "_tamis" / "commits"
    stream = MortalStream(*arguments(world), commits=commits, env={"SPARK_CONF_DIR": str(tmp_path / "conf")})
    killed(world, stream, kills=5, chance=Random(11), every=2)
    assert len(world.check()) > 1_000
    assert len({commit["version"] for commit in pipeline.commits(world.out)}) > 1


def test_kills_change_nothing_where_rules_come_as_a_stream(spark, tmp_path):
    world = ChangingWorld(spark, tmp_path)
    world.log = pipeline.SubscriptionLog(world.checkpoint / "tamis" / "subscriptions")
    spoken, broken = {}, []

    def say(world, done):
        """Two texts that are new, one that replaces another, one that goes, and one that is none."""
        texts = {f"a{done}": f"price = {done % 7}", f"b{done}": f"number % {done + 2} = 0", "all": f"price < {done}"}
        texts |= {f"a{done - 1}": None} if done else {}
        broken.append(f"broken{done}")
        rows = [("remove" if text is None else "add", each, text) for each, text in texts.items()]
        world.say(*((*row, world.told + number) for number, row in enumerate([*rows, ("add", broken[-1], "price <")])))
        spoken.update(texts)

    say(world, 0)
    world.arrive(files=10)
    steps = world.log.path, world.out / "_tamis" / "commits"
    stream = MortalStream(tmp_path, commits=steps, module=("tests.spark.feeding_program",))
    killed(world, stream, kills=5, chance=Random(12), every=1, change=say)
    assert len(world.check()) > 100
    assert len({commit["version"] for commit in pipeline.commits(world.out)}) > 1
    assert world.log.at(world.log.version) == {each: text for each, text in spoken.items() if text is not None}
    aside = pipeline.read_rejected(spark, world.checkpoint / "tamis" / "rejected").collect()
    assert sorted(row.id for row in aside if row.error != "LateChangeError") == sorted(broken)


def expected(world):
    """The pairs that the versions of the batches call for; they are written down beside the checkpoint."""
    found, seen = [], 0
    commits = [json.loads(record.read_bytes()) for record in (world.checkpoint / "tamis" / "commits").glob("*.json")]
    for commit in sorted(commits, key=lambda each: each["batch"]):
        matcher = Matcher()
        matcher.add_many(world.log.at(commit["version"]))
        for number in range(seen, seen + commit["rows_in"]):
            found += [(number, each) for each in matcher.match({"number": number, "price": number % 7})]
        seen += commit["rows_in"]
    assert seen == world.files * 10
    return sorted(found)


def test_from_nats_to_nats_each_match_is_taken_once_though_stream_and_server_are_killed(spark, tmp_path):
    server = NatsServer(tmp_path / "nats")
    try:
        world = NatsWorld(spark, tmp_path, server, "IN")
        # The server knows ids for so long; a stream that stays down longer than that may send twice.
        out = server.make("OUT", subjects=["out.>"], duplicate_window=int(1800e9))
        world.log.add(SUBSCRIPTIONS)
        world.arrive(files=20)
        given = arguments(
            world, events=world.url, out=f"{out}?subject=out.{{subscription_id}}", events_option="max_messages=10"
        )
        stream = MortalStream(*given, commits=world.checkpoint / "tamis" / "commits")

        def restarted():
            server.kill()
            server.start()

        killed(world, stream, kills=6, chance=Random(6), every=3, meanwhile=restarted)
        bodies = [json.loads(message.body) for message in server.messages("OUT")]
        assert sorted((body["number"], body["subscription_id"]) for body in bodies) == expected(world)
    finally:
        server.stop()


def test_a_webhook_that_passes_over_the_keys_it_knows_takes_each_match_once(spark, tmp_path):
    receiver = Receiver()
    receiver.chance = Random(9)  # it fails by itself, too
    try:
        world = World(spark, tmp_path)
        world.log.add(SUBSCRIPTIONS)
        world.arrive(files=12)
        given = arguments(world, out=receiver.url, out_option="batch_rows=7", format="parquet_folder")
        stream = MortalStream(*given, commits=world.checkpoint / "tamis" / "commits")
        killed(world, stream, kills=4, chance=Random(8), every=2)
        rows, passed_over = receiver.rows()
        assert sorted((row["number"], row["subscription_id"]) for row in rows) == expected(world)
        assert passed_over > 0, "nothing was sent twice: that is not a test"
    finally:
        receiver.close()
