"""Sequences and changes as texts, as Python, as JSON; and what is said of bad ones."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.errors import ExpressionSyntaxError, JsonFormError, LanguageError, TypeMismatchError, UnknownAttributeError
from tamis.standing import Change, Sequence, StandingFormError, Step, interest, parse_subscription
from tamis.topk import Ranked, WindowError
from tests.strategies import conditions

GOOD = {
    "SEQUENCE kind = 'login' AND NOT ok THEN kind = 'login' AND ok WITHIN 5 MINUTES PER user": None,
    "SEQUENCE price > 30 AS high THEN price < high.price * 0.9 AFTER 1 SECOND WITHIN 1 HOUR PER symbol": None,
    "SEQUENCE kind = 'order' THEN NOT kind = 'payment' WITHIN 1 HOUR PER customer": None,
    "sequence a then b then c taking each once": "SEQUENCE a THEN b THEN c TAKING EACH ONCE",
    "sequence a same or then b taking  every": "SEQUENCE a SAME OR THEN b TAKING EVERY",
    "SEQUENCE a THEN NOT (b AND c) WITHIN 1 DAY": None,
    "SEQUENCE a THEN NOT NOT b WITHIN 1 DAY": "SEQUENCE a THEN NOT (NOT b) WITHIN 1 DAY",
    "SEQUENCE a THEN (NOT b)": None,
    "SEQUENCE NOT a THEN b": "SEQUENCE (NOT a) THEN b",
    "SEQUENCE (-a > 5) THEN b": None,
    "SEQUENCE a IS DISTINCT FROM b THEN c": "SEQUENCE NOT a <=> b THEN c",
    "SEQUENCE a IS NOT DISTINCT FROM b AS x THEN x.a = 1": "SEQUENCE a <=> b AS x THEN x.a = 1",
    "SEQUENCE then = 1 THEN within < 5 WITHIN 5 SECONDS PER per, taking": None,
    "SEQUENCE at > DATE '2024-02-29' THEN type IS A 'Quote' AND name LIKE 'a%' ESCAPE '/' WITHIN 1 HOUR": None,
    "SEQUENCE a THEN b PER `odd name`, b.`c d`": None,
    "SEQUENCE a THEN b WITHIN 90 SECONDS": None,
    "SEQUENCE a AS `my step` THEN b = `my step`.b": None,
    "CHANGE TO price > 30 UNTIL price < 28 PER symbol WHERE exchange = 'NYSE'": None,
    "change of online forget after 1 day per host": "CHANGE OF online PER host FORGET AFTER 1 DAY",
    "CHANGE TO where = 1 AND until WHERE per = 2 UNTIL forget": "CHANGE TO where = 1 AND until UNTIL forget WHERE per = 2",
    "CHANGE TO NOT a": None,
}


@pytest.mark.parametrize(("text", "printed"), list(GOOD.items()))
def test_a_text_prints_back_and_its_print_parses_to_the_same(text, printed):
    made = parse_subscription(text)
    assert isinstance(made, Sequence | Change)
    again = parse_subscription(str(made))
    assert again == made and hash(again) == hash(made) and str(again) == str(made)
    if printed is None and " IS " not in text:
        assert str(made) == text
    elif printed is not None:
        assert parse_subscription(printed) == made


@pytest.mark.parametrize("text", list(GOOD))
def test_json_and_pickle_keep_everything(text):
    made = parse_subscription(text)
    assert type(made).from_json(made.to_json()) == made
    assert pickle.loads(pickle.dumps(made)) == made


steps = st.builds(lambda condition, is_same: Step(condition, is_same=is_same), conditions, st.booleans())


@given(
    st.lists(steps, min_size=1, max_size=3),
    conditions,
    st.sampled_from(["LATEST", "FIRST", "EVERY", "EACH ONCE"]),
    st.sampled_from([None, 0.5, 300.0, 1e-9, 1e300]),
    st.booleans(),
)
def test_whatever_conditions_a_sequence_has_its_text_and_its_json_say_the_same(later, first, taking, within, is_absent):
    last = [Step(later[0].condition, is_absent=True)] if is_absent and within is not None else []
    sequence = Sequence([first, *later, *last], within=within, taking=taking, per=["a", "`b c`"])
    assert Sequence.parse(str(sequence)) == sequence
    assert Sequence.from_json(sequence.to_json()) == sequence


@given(conditions, conditions, conditions, st.booleans())
def test_whatever_conditions_a_change_has_its_text_and_its_json_say_the_same(condition, until, where, is_both_ways):
    change = Change(**{"of" if is_both_ways else "to": condition}, until=until, where=where, forget_after="1 DAY")
    assert Change.parse(str(change)) == change
    assert Change.from_json(change.to_json()) == change


def test_python_and_text_say_the_same():
    text = "SEQUENCE price > 30 AS high THEN price < high.price * 0.9 WITHIN 1 HOUR PER symbol"
    built = Sequence(
        [Step(tamis.attr("price") > 30, "high"), tamis.attr("price") < tamis.attr("high.price") * tamis.lit(0.9)],
        within="1 HOUR",
        per=[tamis.attr("symbol")],
    )
    assert str(built).replace("0.9D", "0.9") == text
    assert Change("price > 30") == Change.parse("CHANGE TO price > 30")
    assert Change(of=tamis.attr("sold"), per="shop") == Change.parse("CHANGE OF sold PER shop")


def test_every_kind_of_text_is_told_by_its_first_words():
    kinds = {
        "price < 20": tamis.Expression,
        "TOP 5 BY price OVER 1 HOUR": Ranked,
        "SEQUENCE a THEN b": Sequence,
        "CHANGE TO a": Change,
    }
    for text, kind in kinds.items():
        assert isinstance(parse_subscription(text), kind)
    for text in ("sequence = 5", "change > 1", "top = 5", "sequence IS NULL", "sequence NOT IN (1)", "sequence - 1 > 2",
                 "change", "sequence", "sequence.a = 1", "NOT sequence"):  # fmt: skip
        assert isinstance(parse_subscription(text), tamis.Expression), text


BAD = [
    ("SEQUENCE a", ExpressionSyntaxError, 11, "THEN"),
    ("SEQUENCE a THEN", ExpressionSyntaxError, 16, "condition"),
    ("SEQUENCE a PER b THEN c", ExpressionSyntaxError, 12, "THEN"),
    ("SEQUENCE a THEN b WITHIN", ExpressionSyntaxError, 25, "number"),
    ("SEQUENCE a THEN b WITHIN 5", ExpressionSyntaxError, 27, "SECONDS"),
    ("SEQUENCE a THEN b WITHIN 5 EVENTS", ExpressionSyntaxError, 28, "SECONDS"),
    ("SEQUENCE a THEN b WITHIN 5 MINUTS", WindowError, 28, "MINUTES"),
    ("SEQUENCE a THEN b WITHIN 0 SECONDS", WindowError, 26, "more than 0 seconds"),
    ("SEQUENCE a THEN b WITHIN 5 SECONDS WITHIN 6 SECONDS", ExpressionSyntaxError, 36, "AFTER"),
    ("SEQUENCE a THEN b TAKING ALL", ExpressionSyntaxError, 26, "EVERY"),
    ("SEQUENCE a THEN b PER", ExpressionSyntaxError, 22, "attribute"),
    ("SEQUENCE a THEN b PER user user", ExpressionSyntaxError, 28, "AFTER"),
    ("SEQUENCE a THEN NOT b", StandingFormError, 1, "WITHIN"),
    ("SEQUENCE a THEN NOT b AND c WITHIN 1 HOUR", ExpressionSyntaxError, 21, "THEN NOT (a AND b)"),
    ("SEQUENCE a THEN NOT b WITHIN 1 HOUR THEN c", ExpressionSyntaxError, 37, "PER"),
    ("SEQUENCE a SAME OR THEN NOT b WITHIN 1 HOUR", ExpressionSyntaxError, 25, "THEN NOT"),
    ("SEQUENCE a SAME THEN b", ExpressionSyntaxError, 17, "OR THEN"),
    ("SEQUENCE a AS THEN b", ExpressionSyntaxError, 20, "THEN"),
    ("SEQUENCE a AS x.y THEN b", ExpressionSyntaxError, 15, "without dots"),
    ("SEQUENCE a AS x THEN b AS x", StandingFormError, 1, "two steps"),
    ("SEQUENCE b > x.b AS y THEN b AS x", StandingFormError, 1, "not an earlier step"),
    ("SEQUENCE b AS x THEN x IS NULL", StandingFormError, 1, "x.price"),
    ("SEQUENCE a THEN b AFTER 2 HOURS WITHIN 1 HOUR", StandingFormError, 1, "leaves no time"),
    ("SEQUENCE a < 'x' THEN b + 'y' > 2", TypeMismatchError, 27, "number"),
    ("CHANGE TO", ExpressionSyntaxError, 10, "condition"),
    ("CHANGE TO a WHEN b", ExpressionSyntaxError, 13, "UNTIL"),
    ("CHANGE TO a FORGET 5 HOURS", ExpressionSyntaxError, 20, "AFTER"),
    ("CHANGE TO a PER b, c PER d", ExpressionSyntaxError, 22, "WHERE"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "column", "said"), BAD, ids=[text for text, *_ in BAD])
def test_a_bad_text_gets_a_typed_error_with_its_place_and_what_would_be_right(text, kind, column, said):
    with pytest.raises(kind) as caught:
        parse_subscription(text)
    assert caught.value.column == column
    assert said in str(caught.value)
    assert caught.value.text == text


def test_a_schema_knows_names_and_types_of_steps_and_references():
    schema = tamis.Schema({"price": "double", "symbol": "string"})
    parse_subscription("SEQUENCE price > 1 AS a THEN price < a.price AND symbol = a.symbol PER symbol", schema)
    for text, column in (
        ("SEQUENCE prize > 1 THEN price < 1", 10),
        ("SEQUENCE price > 1 AS a THEN price < a.prize", 38),
        ("SEQUENCE price > 1 THEN price < 1 PER symbool", 39),
        ("CHANGE TO price > 1 UNTIL prize < 1", 27),
    ):
        with pytest.raises(UnknownAttributeError) as caught:
            parse_subscription(text, schema)
        assert caught.value.column == column
    with pytest.raises(TypeMismatchError):
        parse_subscription("SEQUENCE price > 1 AS a THEN price < a.symbol", schema)
    with pytest.raises(StandingFormError, match="an attribute's"):
        parse_subscription("SEQUENCE price > 1 AS symbol THEN price < symbol.price", schema)
    with pytest.raises(UnknownAttributeError):
        Sequence(["price > 1", "prize > 2"]).checked(schema)


@pytest.mark.parametrize(
    "document",
    [
        "{", "[]", '{"tamis": 1}', '{"tamis": 2, "sequence": {"steps": []}}', '{"tamis": 1, "sequence": {}}',
        '{"tamis": 1, "sequence": {"steps": 5}}', '{"tamis": 1, "sequence": {"steps": [5, 6]}}',
        '{"tamis": 1, "sequence": {"steps": [{"condition": true}]}}',
        '{"tamis": 1, "sequence": {"steps": [{"condition": true, "same": 1}, {"condition": true}]}}',
        '{"tamis": 1, "sequence": {"steps": [{"condition": true}, {"condition": true}], "within": "1"}}',
        '{"tamis": 1, "sequence": {"steps": [{"condition": true}, {"condition": true}], "within": NaN}}',
        '{"tamis": 1, "sequence": {"steps": [{"condition": true}, {"condition": true}], "per": ["user"]}}',
        '{"tamis": 1, "sequence": {"steps": [{"condition": true}, {"condition": true}], "taking": 7}}',
        '{"tamis": 1, "change": {}}', '{"tamis": 1, "change": {"to": true, "of": true}}',
        '{"tamis": 1, "change": {"to": true, "by": 1}}',
    ],
)  # fmt: skip
def test_a_bad_document_gets_a_typed_error(document):
    with pytest.raises(LanguageError):
        Sequence.from_json(document)
    with pytest.raises(LanguageError):
        Change.from_json(document)


def test_a_document_of_the_other_kind_is_refused():
    with pytest.raises(StandingFormError):
        Sequence.from_json(Change("a").to_json())
    with pytest.raises(StandingFormError):
        Change.from_json(Sequence(["a", "b"]).to_json())
    with pytest.raises(JsonFormError):
        Change.from_json(tamis.parse("a").to_json())


def test_arguments_that_make_nothing_are_refused():
    for make in (
        lambda: Sequence(["a"]), lambda: Sequence(["a"] * 65), lambda: Sequence([Step("a", is_same=True), "b"]),
        lambda: Sequence([Step("a", is_absent=True), "b"], within=1), lambda: Step("a", "x.y"),
        lambda: Step("a", "x", is_absent=True), lambda: Sequence(["a", "b"], per=["a", "a"]),
        lambda: Sequence(["a", "b"], per=["a > 1"]), lambda: Sequence(["a", "b"], taking="ALL"),
        lambda: Change(), lambda: Change("a", of="b"), lambda: Sequence(["a", "b"], within=-1),
        lambda: Sequence(["a", "b"], within=float("inf")), lambda: Sequence(["a", "b"], within="5 EVENTS"),
    ):  # fmt: skip
        with pytest.raises(LanguageError):
            make()


def test_the_interest_is_true_for_every_event_that_matters():
    sequence = parse_subscription("SEQUENCE a = 1 AS x THEN NOT (b = x.b OR c = 2) WITHIN 1 HOUR")
    assert str(interest(sequence)) == "TRUE"
    sequence = parse_subscription("SEQUENCE a = 1 AS x THEN (b = x.b OR c = 2) AND d = 3 WITHIN 1 HOUR")
    assert str(interest(sequence)) == "a = 1 OR d = 3"
    assert interest(parse_subscription("TOP 5 BY price OVER 1 HOUR WHERE a = 1")) == tamis.parse("a = 1")
    assert interest(parse_subscription("CHANGE TO a WHERE b FORGET AFTER 1 DAY")) == tamis.parse("b")


@pytest.mark.parametrize(
    "text",
    [
        "SEQUENCE CASE WHEN a > 1 THEN b = 1 ELSE FALSE END THEN b = 1 WITHIN 1 HOUR",
        "SEQUENCE CASE x WHEN 1 THEN 5 ELSE 6 END = 5 THEN CASE y WHEN 'THEN' THEN 1 END = 1 WITHIN 1 HOUR",
        "SEQUENCE case = 1 THEN CASE -x WHEN 1 THEN 2 END = 2 WITHIN 1 HOUR",
    ],
)
def test_a_then_inside_a_case_is_not_the_next_step(text):
    sequence = parse_subscription(text)
    assert len(sequence.steps) == 2
    assert parse_subscription(str(sequence)) == sequence
