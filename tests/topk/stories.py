"""Generated stories: what clients do to a processor, step by step, and what it answers.

A *variant* is a way to make a processor. The block algorithm comes with a log of eight events and indexes that are chosen
after three, so that a short story passes through everything that a long one would.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tamis.topk import TopK, interest
from tamis.topk.algorithms import ALGORITHMS, IS_EXACT
from tamis.topk.block import rankings
from tamis.topk.block.algorithm import BlockRankings
from tamis.topk.index.choice import INDEXES
from tamis.topk.settings import FILTERED, FILTERS
from tests.topk.streams import STEPS, events, ranked_subscriptions


def variants():
    """Return {name: how to make a processor} of all that is exact, but for the definition itself."""
    found = {}
    for algorithm in ALGORITHMS:
        if IS_EXACT[algorithm] and algorithm != "naive":
            found[algorithm] = {"algorithm": algorithm}
    for algorithm in FILTERED:
        for each in FILTERS:
            found[f"{algorithm} behind {each}"] = {"algorithm": algorithm, "filter": each, "buffer": 4}
        found[f"{algorithm} behind the longest buffer"] = {"algorithm": algorithm, "filter": "probabilistic"}
    for index in ("grid", "tree"):
        for each in FILTERS:
            found[f"strict behind {each} with {index}"] = {
                "algorithm": "strict", "filter": each, "buffer": 4, "index": index
            }  # fmt: skip
    found["relaxed behind the longest buffer with grid"] = {
        "algorithm": "relaxed", "filter": "probabilistic", "index": "grid"
    }  # fmt: skip
    found["relaxed at once"] = {"algorithm": "relaxed", "gamma": 0.0}
    for index in INDEXES:
        found[f"block with {index}"] = {"algorithm": "block", "index": index, "log_length": 8}
    return found


VARIANTS = variants()


def made(log_length=None, **settings):
    """Make a processor; with a `log_length`, one of the block algorithm that runs out of room soon."""
    processor = TopK(**settings)
    if log_length is not None:
        processor._engine = BlockRankings(None, log_length=log_length, index=settings.get("index", "auto"))
    return processor


def hurried(monkeypatch):
    """Let indexes be chosen after few events."""
    monkeypatch.setattr(rankings, "_CHOSEN_FIRST", 3)
    monkeypatch.setattr(interest, "_FIRST_INDEX", 3)
    monkeypatch.setattr(rankings, "_CHOSEN_EVERY", 5)


CONDITIONS = ("c = 'a'", "x > 1", "TRUE")
CLIENTS = (None, None, "ann", "bob")


@st.composite
def stories(draw, most=25, lateness=0.0):
    """A list of (verb, arguments): what is done to a processor, in an order that makes sense."""
    steps = []
    now, names, active, published = 0.0, 0, [], []

    def subscribe():
        nonlocal names
        wanted = draw(ranked_subscriptions) if draw(st.integers(0, 5)) else draw(st.sampled_from(CONDITIONS))
        steps.append(("add", (f"s{names}", wanted, draw(st.sampled_from(CLIENTS)))))
        active.append(f"s{names}")
        names += 1

    def event():
        name = draw(st.sampled_from(published)) if published and draw(st.integers(0, 9)) == 0 else f"e{len(published)}"
        published.append(name)
        # As late as is allowed, never later.
        at = now - (draw(st.sampled_from([0.0, 0.5, 1.0])) * lateness if lateness else 0.0)
        expires = at + draw(st.sampled_from([None, None, None, 0.0, 1.0, 3.0]).map(lambda each: each or 1e300))
        return draw(events()), at, name, expires

    for _ in range(draw(st.integers(1, 3))):
        subscribe()
    for _ in range(draw(st.integers(0, most))):
        now += draw(st.sampled_from(STEPS))
        verb = draw(st.sampled_from("publish publish publish publish batch withdraw advance change".split()))
        if verb == "publish":
            steps.append(("process", event()))
        elif verb == "batch":
            steps.append(("process_batch", [event() for _ in range(draw(st.integers(0, 12)))]))
        elif verb == "withdraw" and published:
            steps.append(("withdraw", (draw(st.sampled_from(published)), now)))
        elif verb == "advance":
            steps.append(("advance", (now,)))
        elif verb == "change":
            change = draw(st.sampled_from("add remove deactivate activate".split()))
            if change == "add" or not active:
                subscribe()
                continue
            steps.append((change, (draw(st.sampled_from(active)),)))
            if change == "remove":
                active.remove(steps[-1][1][0])
    steps.append(("advance", (now + 100.0,)))
    return steps


def told(processor, story):
    """Return what a processor answers to each step of a story."""
    answers = []
    for verb, arguments in story:
        if verb == "add":
            name, wanted, client = arguments
            answers.append(processor.add(name, wanted, client=client))
        elif verb == "process_batch":
            contents, times, names, ends = (
                (list(each) for each in zip(*arguments, strict=True)) if arguments else [[]] * 4
            )
            answers.append(processor.process_batch(contents, times, names, ends))
        else:
            answers.append(getattr(processor, verb)(*arguments))
    return answers


_DEFINED: dict[str, list] = {}


def told_by_definition(story, lateness=0.0):
    """Return what the naive processor answers, remembered, because every variant is asked the same stories."""
    written = f"{lateness} {story}"
    if written not in _DEFINED:
        if len(_DEFINED) > 1000:
            _DEFINED.clear()
        _DEFINED[written] = told(TopK("naive", lateness=lateness), story)
    return _DEFINED[written]
