"""Figures are read by Prometheus as they were counted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from tamis.service.figures import FIGURES, Figures, Histogram


def samples(figures):
    families = text_string_to_metric_families(figures.text())
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value for family in families for sample in family.samples
    }


def test_every_figure_is_read_by_prometheus_also_if_nothing_has_happened():
    figures = Figures()
    families = {family.name: family for family in text_string_to_metric_families(figures.text())}
    for figure in FIGURES:
        family = families[figure.name.removesuffix("_total")]
        assert family.type == figure.kind
        assert family.documentation == figure.meaning
    assert {figure.attribute for figure in FIGURES} == set(vars(figures)), "a figure that is counted is told"


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 2**60)))
def test_labels_of_any_text_are_read_as_they_were_counted(counts):
    figures = Figures()
    figures.events_refused.update(counts)
    read = {key[1][1]: value for key, value in samples(figures).items() if key[0] == "tamis_events_refused_total"}
    assert read == counts


@given(st.lists(st.floats(0, 20)), st.sampled_from([0.5, 0.9, 0.99, 1.0]))
def test_a_histogram_counts_what_lies_below_each_bound(values, share):
    figures = Figures()
    for value in values:
        figures.disk_seconds.observe(value)
    read = samples(figures)
    for bound in figures.disk_seconds.bounds:
        assert read["tamis_disk_seconds_bucket", ("le", f"{bound:g}")] == sum(value <= bound for value in values)
    assert read["tamis_disk_seconds_bucket", ("le", "+Inf")] == read["tamis_disk_seconds_count",] == len(values)
    quantile = figures.disk_seconds.quantile(share)
    assert sum(value <= quantile for value in values) >= share * len(values)


def test_a_value_on_a_bound_belongs_to_it():
    histogram = Histogram((1.0, 2.0))
    histogram.observe(1.0, times=3)
    histogram.observe(2.5)
    assert histogram.counts == [3, 0, 1]
    assert histogram.total == 5.5


def test_figures_have_the_names_that_operators_were_promised():
    promised = """
        events_taken_total{how} events_known_total events_refused_total{why} deliveries_total{state} disk_seconds
        match_seconds group_events publish_to_deliver_seconds subscribers{state} behind_events open_subscriptions
        loop_lag_seconds
    """
    names = {f"{figure.name}{{{figure.label}}}" if figure.label else figure.name for figure in FIGURES}
    assert {f"tamis_{name}" for name in promised.split()} <= names
