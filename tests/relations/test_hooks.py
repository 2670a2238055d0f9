"""Functions that say of themselves what covers, excludes and unites them: networks, in a world of all their addresses."""

from __future__ import annotations

import ipaddress
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.relations import MergingIndex, covers, identical, merge, mergers, overlaps, satisfiable

FOUR = [
    str(each) for length in (29, 30, 31, 32) for each in ipaddress.ip_network("10.0.0.0/29").subnets(new_prefix=length)
]
SIX = [
    str(each)
    for length in (126, 127, 128)
    for each in ipaddress.ip_network("2001:db8::/126").subnets(new_prefix=length)
]
NETWORKS = [*FOUR, "10.0.0.0/8", "0.0.0.0/0", "11.0.0.0/8", *SIX, "::/0"]
ADDRESSES = [*(f"10.0.0.{number}" for number in range(9)), "10.9.9.9", "11.1.1.1", "12.1.1.1"]
ADDRESSES += [f"2001:db8::{number}" for number in range(5)]
WORLD = [{}, {"ip": None}, {"ip": "no address"}, {"ip": 7}, *({"ip": each} for each in ADDRESSES)]
"""Every address that some network above has and some other has not, and all that is no address."""


def asked(network):
    return tamis.parse(f"in_cidr(ip, '{network}')")


MATCHED = {
    network: frozenset(number for number, event in enumerate(WORLD) if tamis.holds(asked(network), event))
    for network in NETWORKS
}


@pytest.mark.parametrize(("one", "two"), list(product(NETWORKS, NETWORKS))[::7])
def test_networks_cover_overlap_and_exclude_each_other_exactly(one, two):
    assert bool(covers(asked(one), asked(two))) is (MATCHED[one] >= MATCHED[two])
    assert bool(overlaps(asked(one), asked(two))) is bool(MATCHED[one] & MATCHED[two])
    not_one, not_two = (tamis.parse(f"NOT in_cidr(ip, '{each}')") for each in (one, two))
    assert bool(covers(not_two, not_one)) is (MATCHED[one] >= MATCHED[two])
    assert bool(covers(not_two, asked(one))) is not (MATCHED[one] & MATCHED[two])


def test_all_pairs_merge_perfectly_or_not_at_all():
    merged_count = 0
    for one, two in combinations(NETWORKS, 2):
        found = mergers([asked(one), asked(two)])
        everything = frozenset().union(
            *({number for number, event in enumerate(WORLD) if tamis.holds(each.expression, event)} for each in found)
        )
        assert everything == MATCHED[one] | MATCHED[two]
        assert all(each.perfect for each in found)
        merged_count += len(found) == 1
        is_network = any(MATCHED[each] == everything for each in (*FOUR, *SIX))
        if one in FOUR and two in FOUR:
            assert (len(found) == 1) is is_network, (one, two)
    assert merged_count > 50


def test_many_networks_become_the_one_that_they_make():
    small = [f"in_cidr(ip, '10.0.0.{number}/32') AND port = 80" for number in range(8)]
    merger = merge(small)
    assert identical(merger.expression, "in_cidr(ip, '10.0.0.0/29') AND port = 80")
    assert str(merger.expression) in (
        "port = 80 AND in_cidr(ip, '10.0.0.0/29')",
        "in_cidr(ip, '10.0.0.0/29') AND port = 80",
    )
    assert merger.perfect


def test_an_index_finds_the_other_half():
    index = MergingIndex()
    index.add(1, "in_cidr(ip, '10.0.0.0/9') AND port = 80")
    index.add(2, "in_cidr(other, '10.0.0.0/9') AND port = 80")
    index.add(3, "in_cidr(ip, '10.0.0.0/9') AND port = 81")
    assert index.candidates("in_cidr(ip, '10.128.0.0/9') AND port = 80") == [1]


def test_two_networks_at_once_are_impossible_if_they_have_no_address_in_common():
    assert not satisfiable("in_cidr(ip, '10.0.0.0/8') AND in_cidr(ip, '11.0.0.0/8')")
    assert not satisfiable("in_cidr(ip, '10.0.0.0/8') AND in_cidr(ip, '::/0')")
    assert satisfiable("in_cidr(ip, '10.0.0.0/8') AND in_cidr(ip, '10.1.0.0/16') AND in_cidr(other, '11.0.0.0/8')")


addresses = st.one_of(
    st.ip_addresses().map(str),
    st.sampled_from([*ADDRESSES, "::ffff:10.0.0.1", "fe80::1%eth0", "10.0.0.1/32", "010.0.0.1", ""]),
)


@given(
    st.lists(st.ip_addresses().flatmap(lambda each: st.integers(0, each.max_prefixlen).map(lambda length: str(ipaddress.ip_network((each, length), strict=False)))), min_size=2, max_size=2),
    st.lists(addresses, max_size=6),
)  # fmt: skip
def test_no_address_refutes_what_networks_say_of_each_other(networks, asked_for):
    one, two = map(asked, networks)
    covering, overlapping, either = covers(one, two), overlaps(one, two), merge([one, two]).expression
    for address in asked_for:
        first, second = tamis.holds(one, {"ip": address}), tamis.holds(two, {"ip": address})
        assert not (covering and second and not first)
        assert overlapping or not (first and second)
        assert tamis.holds(either, {"ip": address}) is (first or second)
