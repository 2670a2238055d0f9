"""What does it save to read the JSON of an event in compiled loops?

    json_events    microseconds of processor time for an event that comes as bytes: `match_json`, beside a decoder and
                   `match`, which is Python's own, msgspec, and orjson where it is installed
    json_lines     the same of many events in one buffer: `match_json_lines`, beside msgspec and `match_batch`

The ways take turns in one run. `decode_only` is msgspec alone, and `match_only` an event that is a dictionary already.
`wrong` counts events that one of the ways matches differently.
"""

from __future__ import annotations

import json
from functools import partial
from importlib.util import find_spec
from time import process_time
from typing import TYPE_CHECKING, Any

import msgspec

from benchmarks.cases import built, events_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


def json_events(
    names: Sequence[str] = ("w1", "w2", "w3", "w4", "auction", "templates"),
    subscription_counts: Sequence[int] = (1_000, 100_000),
    event_count: int = 1_000,
    passes: int = 7,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How long does an event in JSON take until it is matched?"""
    for name in names:
        for count in subscription_counts:
            case = built(name, count, event_count, seed, with_yardstick=False)
            events = json.loads(json.dumps(events_of(case.events), default=str))
            documents = [msgspec.json.encode(event) for event in events]
            match, match_json = case.matcher.match, case.matcher.match_json
            ways: dict[str, Callable[[], list[Any]]] = {
                "match_json": lambda match_json=match_json, documents=documents: list(map(match_json, documents)),
                "msgspec": lambda match=match, documents=documents: [
                    match(msgspec.json.decode(each)) for each in documents
                ],
                "json": lambda match=match, documents=documents: [match(json.loads(each)) for each in documents],
                "decode_only": lambda documents=documents: list(map(msgspec.json.decode, documents)),
                "match_only": lambda match=match, events=events: list(map(match, events)),
            }
            if find_spec("orjson"):
                import orjson  # type: ignore[import-not-found, unused-ignore]

                loads = orjson.loads
                ways["orjson"] = lambda match=match, documents=documents, loads=loads: [
                    match(loads(each)) for each in documents
                ]
            expected = ways["match_only"]()
            answers = {way: work() for way, work in ways.items() if way != "decode_only"}
            best = dict.fromkeys(ways, float("inf"))
            for _ in range(passes):
                for way, work in ways.items():
                    start = process_time()
                    work()
                    best[way] = min(best[way], (process_time() - start) / len(documents) * 1e6)
            yield {
                "workload": name,
                "subscriptions": count,
                "bytes": sum(map(len, documents)) / len(documents),
                "matches": sum(map(len, expected)) / len(documents),
                **{f"{way}_us": us for way, us in best.items()},
                "to_msgspec": best["match_json"] / best["msgspec"],
                "to_json": best["match_json"] / best["json"],
                "wrong": sum(
                    one != other for answer in answers.values() for one, other in zip(answer, expected, strict=True)
                ),
            }


def json_lines(
    names: Sequence[str] = ("w1", "w2", "w3", "w4", "auction", "templates"),
    subscription_counts: Sequence[int] = (100_000,),
    event_counts: Sequence[int] = (64, 8_192),
    passes: int = 5,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How long does an event take, of many in JSON, one in each line?"""
    for name in names:
        for count in subscription_counts:
            case = built(name, count, max(event_counts), seed, with_yardstick=False)
            events = json.loads(json.dumps(events_of(case.batch(max(event_counts))), default=str))
            documents = [msgspec.json.encode(event) for event in events]
            matcher, decode = case.matcher, msgspec.json.Decoder().decode
            for event_count in dict.fromkeys(min(each, len(events)) for each in event_counts):
                buffer, decoded = b"\n".join(documents[:event_count]), events[:event_count]
                ways: dict[str, Callable[[], Any]] = {
                    "match_json_lines": partial(matcher.match_json_lines, buffer),
                    "msgspec": lambda matcher=matcher, buffer=buffer, decode=decode: matcher.match_batch(
                        list(map(decode, buffer.split(b"\n")))
                    ),
                    "match_batch_only": partial(matcher.match_batch, decoded),
                }
                order = [("event", "ascending"), ("subscription", "ascending")]
                answers = {way: work().sort_by(order) for way, work in ways.items()}
                best = dict.fromkeys(ways, float("inf"))
                for _ in range(passes):
                    for way, work in ways.items():
                        start = process_time()
                        work()
                        best[way] = min(best[way], (process_time() - start) / event_count * 1e6)
                yield {
                    "workload": name,
                    "subscriptions": count,
                    "events": event_count,
                    **{f"{way}_us": us for way, us in best.items()},
                    "to_msgspec": best["match_json_lines"] / best["msgspec"],
                    "matches": answers["match_json_lines"].num_rows,
                    "wrong": sum(not answer.equals(answers["match_batch_only"]) for answer in answers.values()),
                }
