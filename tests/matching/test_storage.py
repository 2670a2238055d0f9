"""A matcher is saved whole and loaded as it was, or somebody is told what is wrong."""

from __future__ import annotations

import dataclasses
import json
import os
import stat
import struct
import subprocess
import sys
from decimal import Decimal
from random import Random
from zlib import crc32

import numpy as np
import pytest

import tamis
from tamis.language.expressions import Attribute, Call, Compare, Literal, Not
from tamis.matching import Matcher, SavedMatcherError
from tamis.matching.array_file import MAGIC, VERSION
from tamis.matching.block import kernels
from tests.language.spark_texts import Texts, rows

PREFIX = struct.Struct("<8sIIQQ")
MIXED = {
    "cheap": "price < 20 AND NOT sold",
    "words": "title LIKE '%castle%' OR title IN ('a', 'é', '😀') OR startswith(title, 'The ')",
    "times": "day >= DATE '2024-02-29' OR moment < TIMESTAMP '2024-02-29 12:00:00.5'",
    "numbers": "price IN (1, 2.50, 3) OR price > 1e300 OR price + shipping <= 0.5 * estimate",
    "count": "at_least(2, bids > 3, signed, length(title) < 9)",
    "always": "TRUE",
    "never": "FALSE",
    "nested": "seller.rating > 4.5 AND `odd name` <> 'x'",
}
EVENT = {"price": 12, "sold": False, "title": "The castle", "bids": 5, "signed": True, "seller": {"rating": 5}}


def mixed(algorithm="block"):
    matcher = Matcher(algorithm)
    matcher.add_many(MIXED)
    return matcher


@pytest.fixture
def path(tmp_path):
    mixed().save(tmp_path / "saved")
    return tmp_path / "saved"


def rewritten(path, change):
    """Change the header of a file as somebody would who knows the checksum."""
    content = path.read_bytes()
    magic, version, _, length, size = PREFIX.unpack(content[: PREFIX.size])
    header = json.loads(content[PREFIX.size : PREFIX.size + length])
    change(header)
    start = -(-(PREFIX.size + length) // 64) * 64
    new = json.dumps(header).encode()
    new_start = -(-(PREFIX.size + len(new)) // 64) * 64
    body = content[start:]
    written = PREFIX.pack(magic, version, crc32(new), len(new), size - start + new_start) + new
    path.write_bytes(written + bytes(new_start - len(written)) + body)


# -- What is not a saved matcher


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is empty"),
        (b"PK\x03\x04 something else", "is not a saved matcher"),
        (b"x", "is not a saved matcher"),
        (MAGIC, "is truncated: it ends after 8 bytes"),
        (PREFIX.pack(MAGIC, 99, 0, 0, 0), f"has version 99 of the format; this tamis reads version {VERSION}"),
        (PREFIX.pack(MAGIC, VERSION, 0, 2**60, 32), "is damaged: its header is not as it was saved"),
        (PREFIX.pack(MAGIC, VERSION, 0, 0, 32), "has a header that cannot be read"),
    ],
)
def test_another_file_is_told_from_a_saved_matcher(tmp_path, content, told):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(SavedMatcherError, match=told):
        Matcher.load(path)


def test_a_folder_and_an_absent_file_cannot_be_read(tmp_path):
    with pytest.raises(SavedMatcherError, match=f"cannot read {tmp_path}: Is a directory"):
        Matcher.load(tmp_path)
    with pytest.raises(SavedMatcherError, match="No such file"):
        Matcher.load(str(tmp_path / "absent"))


def test_no_part_of_a_file_passes_for_the_whole(tmp_path):
    path = tmp_path / "saved"
    small = Matcher("naive")
    small.add(1, "a = 1")
    small.save(path)
    content = path.read_bytes()
    assert len(content) < 2000
    for size in range(len(content)):
        path.write_bytes(content[:size])
        with pytest.raises(SavedMatcherError):
            Matcher.load(path)
    path.write_bytes(content)
    assert Matcher.load(path).match({"a": 1}) == [1]


def test_no_part_of_a_compiled_file_passes_for_the_whole(path):
    content = path.read_bytes()
    for size in range(0, len(content), 97):
        path.write_bytes(content[:size])
        with pytest.raises(SavedMatcherError, match=r"truncated|empty"):
            Matcher.load(path)


def test_what_follows_the_end_is_noticed(path):
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(SavedMatcherError, match="is longer than it should be"):
        Matcher.load(path)


def test_a_flipped_byte_in_the_header_is_noticed(path):
    content = path.read_bytes()
    length = PREFIX.unpack(content[: PREFIX.size])[3]
    chance = Random(1)
    for place in [*range(PREFIX.size), *chance.sample(range(PREFIX.size, PREFIX.size + length), 300)]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(SavedMatcherError):
            Matcher.load(path)


def test_a_flipped_byte_in_an_array_is_noticed(path):
    content = path.read_bytes()
    length = PREFIX.unpack(content[: PREFIX.size])[3]
    expected = mixed().match(EVENT)
    chance = Random(1)
    noticed = 0
    for place in chance.sample(range(PREFIX.size + length, len(content)), 300):
        damaged = bytearray(content)
        damaged[place] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        try:
            found = Matcher.load(path).match(EVENT)
        except SavedMatcherError:
            noticed += 1
        else:
            assert found == expected, "only what lies between the arrays goes unnoticed"
    assert noticed > 100


def _first(header):
    return next(iter(header["arrays"].values()))


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.pop("arrays"),
        lambda header: header.update(document=None),
        lambda header: header.update(document=[1]),
        lambda header: header["arrays"].clear(),
        lambda header: _first(header).update(offset=2**40),
        lambda header: _first(header).update(offset=-64),
        lambda header: _first(header).update(offset=1),
        lambda header: _first(header).update(offset="0"),
        lambda header: _first(header).update(shape=[2**62, 2**62]),
        lambda header: _first(header).update(shape=[-1]),
        lambda header: _first(header).update(shape=[0, 2**70]),
        lambda header: _first(header).update(shape="12"),
        lambda header: _first(header).update(shape=[True]),
        lambda header: _first(header).update(dtype="|O8"),
        lambda header: _first(header).update(dtype="i4,f8"),
        lambda header: _first(header).update(dtype=["<i8"]),
        lambda header: _first(header).update(order="K"),
        lambda header: _first(header).pop("checksum"),
        lambda header: header["document"].pop("ids"),
        lambda header: header["document"].update(algorithm="magic"),
        lambda header: header["document"].update(algorithm=None),
        lambda header: header["document"].update(schema={"attributes": {"a": "no such type"}}),
        lambda header: header["document"].update(schema={"attributes": {}, "code": "import os"}),
        lambda header: header["document"].update(schema=5),
        lambda header: header["document"].update(ids=[1]),
        lambda header: header["document"].update(ids={"list": ["one"] * len(MIXED)}),
        lambda header: header["document"].update(ids={"list": [["a"]] * len(MIXED)}),
        lambda header: header["document"].update(ids={"list": []}),
        lambda header: header["document"].update(alive={"array": "priorities"}),
        lambda header: header["document"].update(priorities={"array": "alive"}),
        lambda header: header["document"].update(texts={"array": "alive"}),
        lambda header: header["document"].update(parts=[]),
        lambda header: header["document"].update(parts=5),
        lambda header: header["document"]["parts"][0].pop(),
        lambda header: header["document"]["parts"][0].__setitem__(0, None),
        lambda header: header["document"]["parts"][0].__setitem__(1, {"array": "priorities"}),
        lambda header: header["document"]["parts"][0][0].update(record="os.system"),
        lambda header: header["document"]["parts"][0][0].update(record="Maps"),
        lambda header: header["document"]["parts"][0][0]["fields"].pop("draft"),
        lambda header: header["document"]["parts"][0][0]["fields"].update(more=1),
        lambda header: header["document"]["parts"][0][0]["fields"].update(maps={"surprise": 1}),
        lambda header: header["document"]["parts"][0][0]["fields"]["draft"]["fields"].update(axes={"term": "a <"}),
        lambda header: header["document"]["parts"][0][0]["fields"]["draft"]["fields"].update(axes={"term": "a = 1"}),
        lambda header: header["document"]["parts"][0][0]["fields"]["draft"]["fields"].update(handles={"list": [1]}),
        lambda header: header["document"]["parts"][0][0]["fields"].update(scan_key={"literals": "{"}),
    ],
)  # fmt: skip
def test_a_header_that_somebody_made_up_is_refused(path, change):
    rewritten(path, change)
    with pytest.raises(SavedMatcherError):
        Matcher.load(path)


def test_any_value_of_a_header_may_be_anything(path):
    """Nothing but the typed error is raised, whichever value is replaced; what loads in spite of it is not matched."""
    content = path.read_bytes()
    chance = Random(3)
    refused = 0
    for _ in range(400):
        path.write_bytes(content)
        rewritten(path, lambda header: _spoil(header, chance))
        try:
            Matcher.load(path, verify=False)
        except SavedMatcherError:
            refused += 1
    assert refused > 200


def _spoil(node, chance):
    while True:
        keys = list(node) if isinstance(node, dict) else range(len(node))
        if not keys:
            return
        key = chance.choice(list(keys))
        if not isinstance(node[key], dict | list) or chance.random() < 0.1:
            node[key] = chance.choice([None, True, -1, 2**70, 0.5, "", "alive", [], {}, [[]], {"array": "alive"}])
            return
        node = node[key]


def test_texts_that_are_no_texts_are_refused(tmp_path):
    for algorithm in ("naive", "block"):
        matcher = Matcher(algorithm)
        matcher.add(1, "a = 1")
        matcher.save(tmp_path / "saved")
        content = (tmp_path / "saved").read_bytes()
        assert content.count(b"a = 1") == 1
        for text in (b"a =  ", b"a = \xff"):
            (tmp_path / "saved").write_bytes(content.replace(b"a = 1", text))
            with pytest.raises(SavedMatcherError, match=r"texts\.data is not as it was saved"):
                Matcher.load(tmp_path / "saved")
            with pytest.raises(SavedMatcherError, match="not hold a matcher of this version"):
                Matcher.load(tmp_path / "saved", verify=False, recompile=True)


# -- What cannot be saved


@pytest.mark.parametrize(
    ("subscription_id", "told"),
    [
        (True, "not bool: True"),
        (1.5, "not float: 1.5"),
        (("a", 1), "not tuple"),
        (np.int64(5), "not int64"),
        ("\ud800", "half a surrogate pair"),
    ],
)
def test_ids_are_integers_or_texts(tmp_path, subscription_id, told):
    matcher = Matcher()
    matcher.add("first", "a = 1")
    matcher.add(subscription_id, "a = 1")
    with pytest.raises(SavedMatcherError, match=told):
        matcher.save(tmp_path / "saved")
    assert not list(tmp_path.iterdir()), "what cannot be saved leaves nothing behind"
    matcher.remove(subscription_id)
    matcher.save(tmp_path / "saved")
    assert Matcher.load(tmp_path / "saved").match({"a": 1}) == ["first"]


@pytest.mark.parametrize("ids", [[0, -1, 2**63 - 1], ["", "é", "\0", "1"], [1, "1"], [2**64, -(2**100)], [2**64, "a"]])
def test_ids_come_back_as_they_were(tmp_path, ids):
    matcher = Matcher()
    matcher.add_many([(each, "a = 1") for each in ids])
    matcher.save(tmp_path / "saved")
    loaded = Matcher.load(tmp_path / "saved")
    assert loaded.match({"a": 1}) == ids
    assert [type(each) for each in loaded.match({"a": 1})] == [type(each) for each in ids]
    assert all(each in loaded for each in ids)


@pytest.mark.parametrize(
    "condition",
    [
        Compare("=", Attribute(("a",)), Literal("\ud800")),
        Compare("=", Attribute(("a", "")), Literal(1)),
        Compare("<", Call("length", (Attribute(("a",)),)), Literal("long")),
        Compare("=", Attribute(("a",)), Literal(Decimal("1E+400"))),
    ],
    ids=["surrogate", "no name", "no meaning", "no literal"],
)
@pytest.mark.parametrize("algorithm", ["block", "naive"])
def test_an_expression_that_no_text_says_is_not_saved(tmp_path, algorithm, condition):
    matcher = Matcher(algorithm)
    matcher.add("odd", condition)
    with pytest.raises(SavedMatcherError):
        matcher.save(tmp_path / "saved")
    assert not list(tmp_path.iterdir())


def test_a_segment_that_holds_something_else_is_not_saved(tmp_path):
    matcher = mixed()
    segment, _ = matcher._engine.parts()[0]
    for strange in (object(), {"a": 1}, np.array([object()]), np.array(["a"]), [np.zeros(1), {1}], lambda: 0):
        object.__setattr__(segment, "maps", strange)
        with pytest.raises(SavedMatcherError, match=r"parts.0.maps[.1]* is .*, which cannot be saved"):
            matcher.save(tmp_path / "saved")
    assert not list(tmp_path.iterdir())


def test_a_save_that_fails_leaves_the_file_as_it_was(path, monkeypatch):
    def full(number):
        raise OSError(28, "No space left on device")

    content = path.read_bytes()
    matcher = mixed()
    matcher.add("more", "a = 1")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SavedMatcherError, match=f"cannot write {path}: No space left on device"):
        matcher.save(path)
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == [path.name]


def test_a_folder_is_no_place_for_a_file(tmp_path):
    for place in (tmp_path, tmp_path / "absent" / "saved", ""):
        with pytest.raises(SavedMatcherError, match="cannot write"):
            mixed().save(place)
    assert not list(tmp_path.iterdir())


# -- What was saved


def test_every_field_of_a_segment_comes_back(tmp_path):
    chance = Random(5)
    texts = Texts(chance)
    matcher = Matcher()
    matcher.add_many(MIXED)
    matcher.add_many({number: tamis.parse(texts.condition(depth=number % 4)) for number in range(300)})
    matcher.learn(rows(300, chance))
    matcher.save(tmp_path / "saved")
    loaded = Matcher.load(tmp_path / "saved")
    before, after = matcher._engine.parts(), loaded._engine.parts()
    assert len(before) == len(after) == 1
    assert_same(before[0], after[0], "part")


def assert_same(one, two, name):
    """The same values of the same types, arrays in the same layout: to a kernel the layout is part of the type."""
    assert type(one) is type(two), name
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (two.dtype, two.shape), name
        assert one.flags.c_contiguous == two.flags.c_contiguous, name
        assert two.flags.writeable, f"{name} would be of another type to a kernel"
        assert two.ctypes.data % 64 == 0 or not two.size, name
        assert one.tobytes() == two.tobytes(), name
    elif dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            if not field.name.startswith("_"):
                assert_same(getattr(one, field.name), getattr(two, field.name), f"{name}.{field.name}")
            else:
                assert hasattr(two, field.name), f"{name}.{field.name}"
    elif isinstance(one, list | tuple):
        assert len(one) == len(two), name
        for index, pair in enumerate(zip(one, two, strict=True)):
            assert_same(*pair, f"{name}.{index}")
    else:
        assert repr(one) == repr(two), name


def test_a_schema_is_saved_too(tmp_path):
    schema = tamis.Schema(
        {"type": "string", "price": "decimal(10,2)", "tags": "array<string>", "at": {"x": "double"}},
        mandatory=["type"],
        hierarchy={"Quote": None, "StockQuote": "Quote"},
        mandatory_by_type={"Quote": ["price"]},
    )
    for algorithm in ("block", "naive"):
        matcher = Matcher(algorithm, schema)
        matcher.add("quotes", "type IS A 'Quote' AND at.x > 1")
        matcher.save(tmp_path / "saved")
        loaded = Matcher.load(tmp_path / "saved")
        assert loaded.schema == schema
        assert (loaded.algorithm, loaded.match({"type": "StockQuote", "at": {"x": 2}})) == (algorithm, ["quotes"])
        with pytest.raises(tamis.errors.UnknownAttributeError):
            loaded.add("more", "prize < 20")


@pytest.mark.parametrize("algorithm", ["block", "naive"])
def test_expressions_larger_than_a_text_may_be(tmp_path, algorithm):
    deep = Attribute(("a",))
    for _ in range(5001):
        deep = Not(deep)
    term = Attribute(("b",))
    for _ in range(3000):
        term = Call("negate", (term,))
    matcher = Matcher(algorithm)
    matcher.add_many({"deep": deep, "term": Compare("=", term, Literal(1)), "both": deep & Compare("<", term, term)})
    matcher.save(tmp_path / "saved")
    loaded = Matcher.load(tmp_path / "saved")
    assert loaded.match({"a": False, "b": 1}) == ["deep", "term"]
    assert loaded.expression("deep") == deep


def test_texts_stay_in_the_file_until_somebody_asks(path):
    loaded = Matcher.load(path)
    assert not loaded._register.sources._given
    assert str(loaded.expression("cheap")) == MIXED["cheap"]
    assert loaded.memory() > 0
    assert loaded.explain("cheap", EVENT).truth is True


def test_a_loaded_matcher_goes_on(path):
    loaded = Matcher.load(path)
    loaded._engine.merge_always = True
    loaded.add("first", "price = 12", priority=5)
    loaded.remove("cheap")
    assert loaded.match(EVENT)[0] == "first"
    assert "cheap" not in loaded.match(EVENT)
    assert loaded.statistics()["segments"] == [len(MIXED)], "what was loaded is merged with what is new"
    loaded.save(path)
    again = Matcher.load(path)
    assert again.match(EVENT) == loaded.match(EVENT)
    with pytest.raises(tamis.matching.UnknownIdError):
        again.explain("cheap", EVENT)
    again.add("cheap", "price = 12")
    assert again.match(EVENT)[-1] == "cheap", "in the order of registration"


def test_dead_subscriptions_stay_dead(path):
    matcher = mixed()
    assert matcher.compile()
    matcher.remove("always")
    matcher.save(path)
    loaded = Matcher.load(path)
    assert loaded.match(EVENT) == matcher.match(EVENT)
    assert loaded._engine._parts[0].living == len(MIXED) - 1 < len(loaded._engine._parts[0].segment)


def test_the_file_is_not_changed_by_what_is_done_to_the_matcher(path):
    content = path.read_bytes()
    loaded = Matcher.load(path)
    for _, alive in loaded._engine.parts():
        alive[:] = False
    loaded.remove("cheap")
    loaded.add("new", "a = 1", priority=1)
    loaded.match(EVENT)
    assert path.read_bytes() == content


def test_a_file_may_be_replaced_while_it_is_mapped(path):
    first = Matcher.load(path)
    other = Matcher()
    other.add("other", "price = 12")
    other.save(path)
    assert first.match(EVENT) == mixed().match(EVENT)
    assert Matcher.load(path).match(EVENT) == ["other"]


def test_the_file_is_readable_to_those_who_may_read_files(path):
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_nothing_is_compiled_again(tmp_path, monkeypatch):
    batch = [{"a": number % 7, "b": str(number)} for number in range(300)]
    matcher = Matcher()
    matcher.add_many({number: f"a = {number % 7} AND b < '{number}'" for number in range(100)})
    expected = matcher.match_batch(batch)
    matcher.match(batch[0])
    matcher.save(tmp_path / "saved")
    known = _signatures()
    monkeypatch.setattr("tamis.matching.block.algorithm.compiled", None)
    loaded = Matcher.load(tmp_path / "saved")
    assert loaded.match_batch(batch).equals(expected), (
        "the first batch is no reason to lay out anew what knows its events"
    )
    assert loaded.match(batch[0]) == matcher.match(batch[0])
    assert _signatures() == known, "mapped arrays are of the same types as others"


def _signatures():
    return {name: len(each.signatures) for name, each in vars(kernels).items() if hasattr(each, "signatures")}


def test_guesses_are_laid_out_anew_after_loading_too(path):
    loaded = Matcher.load(path)
    assert not loaded.statistics()["is_informed"]
    loaded.match_batch([EVENT] * 256)
    assert loaded.statistics()["is_informed"]


def test_two_processes_map_the_same_file(path):
    look = "\n".join(
        [
            "import json, sys",
            "from tamis.matching import Matcher",
            "matcher = Matcher.load(sys.argv[1])",
            "matcher.remove('always')",
            "print(json.dumps(matcher.match(json.loads(sys.argv[2]))), flush=True)",
            "sys.stdin.read()",  # keeps the file mapped until it is told to go
        ]
    )
    mine = Matcher.load(path)
    command = [sys.executable, "-c", look, str(path), json.dumps(EVENT)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        found = json.loads(other.stdout.readline())
        mine.remove("cheap")
        expected = mixed().match(EVENT)
        assert found == [each for each in expected if each != "always"]
        assert mine.match(EVENT) == [each for each in expected if each != "cheap"]
        other.communicate(timeout=60)
    assert other.returncode == 0


def test_a_segment_keeps_nothing_outside_its_fields():
    segment, _ = mixed()._engine.parts()[0]
    for part in (segment, segment.draft, segment.maps, segment.draft.axes[0]):
        assert not hasattr(part, "__dict__"), "what `dataclasses.fields` does not list would not be saved"
