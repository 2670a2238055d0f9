from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.errors import TamisError
from tamis.matching import Matcher
from tamis.matching.admission import CandidateRow, admitted

SCHEMA = tamis.Schema({"price": "double", "title": "string"})
TEXTS = ("price < 20", "price > 5", "title = 'a'", "price <", "prize < 20", "title < 3", "", None, "'\ud800'", "TRUE")


ROWS = st.tuples(
    st.sampled_from([1, 2, 3, None, -(2**40)]), st.sampled_from(TEXTS), st.sampled_from([0, 3, 2**40, None])
)


@given(rows=st.lists(ROWS.map(lambda values: CandidateRow(*values))), schema=st.sampled_from([None, SCHEMA]))
def test_rows_are_admitted_as_if_each_was_added_by_itself(rows, schema):
    plain, rejected = Matcher(schema=schema), []
    for place, row in enumerate(rows):
        if row.id is not None and row.condition is not None and abs(row.priority or 0) < 2**31 and row.id in plain:
            rejected.append((row.id, row.condition, "DuplicateIdError", place))  # of two mistakes this one is told
            continue
        try:
            plain.add(row.id, row.condition, priority=row.priority or 0)
        except TamisError as error:
            rejected.append((row.id, row.condition, type(error).__name__, place))
    matcher, found = admitted([row._replace(place=place) for place, row in enumerate(rows)], schema)
    assert [(row.id, row.condition, row.error, row.row) for row in found] == rejected
    for event in ({"price": 12, "title": "a"}, {"price": 3}, {}):
        assert sorted(matcher.match(event)) == sorted(plain.match(event))


def test_a_bad_row_takes_no_id_and_the_first_good_one_stays():
    rows = [CandidateRow(7, "price <"), CandidateRow(7, "price < 20"), CandidateRow(7, "price < 30")]
    matcher, rejected = admitted(rows, None)
    assert matcher.match({"price": 25}) == []
    assert matcher.match({"price": 15}) == [7]
    assert [row.error for row in rejected] == ["ExpressionSyntaxError", "DuplicateIdError"]
    assert "line 1, column 8" in rejected[0].reason
    assert "the first one stays" in rejected[1].reason


def test_matches_come_in_the_order_of_ids_whatever_the_order_of_rows():
    matcher, _ = admitted([CandidateRow("b", "TRUE"), CandidateRow("a", "TRUE"), CandidateRow("c", "TRUE", 1)], None)
    assert matcher.match({}) == ["c", "a", "b"]
