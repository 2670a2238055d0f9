"""Which links of a graph are used."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tamis.routing import spanning_links

NAMES = "abcdefg"
links = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda link: link[0] < link[1]),
    unique=True,
    max_size=14,
)


def components(brokers, chosen):
    found = {broker: {broker} for broker in brokers}
    for one, two in chosen:
        if one in found and two in found and found[one] is not found[two]:
            found[one] |= found[two]
            for each in found[two]:
                found[each] = found[one]
    return {frozenset(each) for each in found.values()}


@given(brokers=st.sets(st.sampled_from(NAMES)), all_links=links, used=links)
def test_what_can_be_connected_is_connected_without_a_circle_and_by_links_in_use_where_they_work(
    brokers, all_links, used
):
    brokers = sorted(brokers)
    chosen = spanning_links(brokers, all_links, used)
    assert set(chosen) <= set(all_links)
    assert components(brokers, chosen) == components(brokers, all_links)
    assert len(chosen) == len(brokers) - len(components(brokers, chosen)), "a forest"
    still_used = [link for link in all_links if link in used]
    assert components(brokers, [link for link in chosen if link in used]) == components(brokers, still_used)
    assert spanning_links(brokers, all_links, chosen) == sorted(chosen, key=all_links.index), "it stays as it is"
