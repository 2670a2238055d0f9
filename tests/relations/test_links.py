"""Links hold for every event; an axis has every value that its term can have."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.language.expressions import Attribute, Call
from tamis.language.ranges.value_sets import is_member
from tamis.relations.domains import axis_of
from tamis.relations.enclosures import requirements
from tamis.relations.forms import Context
from tamis.relations.links import links
from tamis.relations.samples import EventSample
from tests.strategies import conditions, events, number_terms, predicates, text_terms

SCHEMA = tamis.Schema(
    {"i": "int", "d": "double", "e": "decimal(20,4)", "s": "string", "t": "array<string>"}, mandatory=["i"]
)


@given(condition=st.one_of(conditions, predicates), some_events=st.lists(events(), min_size=1, max_size=6))
@settings(max_examples=200)
def test_every_event_obeys_every_link(condition, some_events):
    context = Context(None)
    form = context.form(condition)
    sample = EventSample(some_events, None)
    for link in links(form.axes, form.facts, form.paths, None, context.axis):
        assert sample.matched(link).all(), link


EVENT_TYPES = tamis.Schema(
    {"type": "string", "price": "int", "pos": {"x": "int"}},
    hierarchy={"Quote": None, "StockQuote": "Quote", "News": None},
    mandatory_by_type={"Quote": ["price"], "StockQuote": ["pos.x"]},
)


def test_every_event_that_conforms_obeys_the_links_of_its_type():
    context = Context(EVENT_TYPES)
    conforming = [
        {"type": "StockQuote", "price": 1, "pos": {"x": 1}}, {"type": "Quote", "price": 1}, {"type": "News"},
        {"type": "News", "pos": {}}, {"pos": {"x": 1}}, {},
    ]  # fmt: skip
    others = [{"type": "StockQuote", "price": 1, "pos": {}}, {"type": "Quote"}, {"type": "StockQuote", "price": 1}]
    paths = [("type",), ("price",), ("pos",), ("pos", "x")]
    found = links([context.axis(Attribute(path)) for path in paths], [], paths, EVENT_TYPES, context.axis)
    for event, is_allowed in [(each, True) for each in conforming] + [(each, False) for each in others]:
        assert all(EventSample([event], EVENT_TYPES).matched(link).all() for link in found) is is_allowed, event


@given(
    term=st.one_of(number_terms, text_terms).filter(lambda term: isinstance(term, Call)),
    event=events(),
)
def test_the_value_of_a_term_is_one_that_its_axis_has(term, event):
    axis = axis_of(term, None)
    assert is_member(axis.cut_in(event, None), axis.values)


TYPED_TERMS = st.sampled_from(
    "i + 1|i * i|i / 2|i % 3|-i|abs(i)|i + d|d * e|e + e|e / i|e % i|length(s)|size(t)|lower(s)|least(i, d)|greatest(i, e)|avg(i, i)"
    "|distance(d, d, 1, 1)|i + 1.5|i + 1.5D|trim(s)|abs(d)".split("|")
).map(lambda text: tamis.parse(f"{text} IS NULL", SCHEMA).value)


@given(
    term=TYPED_TERMS,
    i=st.sampled_from([0, 1, -7, 2**63 - 1, -(2**63)]),
    d=st.one_of(st.none(), st.floats()),
    e=st.one_of(st.none(), st.decimals(-(10**15), 10**15, places=4)),
    s=st.one_of(st.none(), st.text(max_size=3)),
    t=st.one_of(st.none(), st.lists(st.text(max_size=1), max_size=3)),
)
def test_the_value_of_a_typed_term_is_one_that_its_axis_has(term, i, d, e, s, t):
    event = SCHEMA.conform({"i": i, "d": d, "e": e, "s": s, "t": t})
    axis = axis_of(term, SCHEMA)
    assert is_member(axis.cut_in(event, SCHEMA), axis.values), (axis, event)


def test_what_a_predicate_cannot_do_without():
    def needed(text):
        return sorted(str(attribute) for attribute in requirements(tamis.parse(text)))

    assert needed("low < high") == ["high", "low"]
    assert needed("low <=> high") == needed("low IS NULL") == []
    assert needed("least(low, high) < 3") == []
    assert needed("length(title) + low > 3") == ["low", "title"]
    assert needed("mid BETWEEN low AND high") == ["mid"]  # below a low end it is false, whatever the high end
    assert needed("title RLIKE 'x' XOR sold") == ["sold", "title"]


def test_axes_know_their_types():
    assert axis_of(Attribute(("i",)), SCHEMA).line == "int"
    assert axis_of(Attribute(("i",)), None).line == "any"
    assert axis_of(Attribute(("t",)), SCHEMA).line == "array"
    assert repr(axis_of(Attribute(("d",)), SCHEMA)) == "<Axis d: double>"
