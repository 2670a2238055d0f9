"""Many readers or one writer, and a writer that waits is not made to wait for ever."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tamis_lab.matching.atree.gate import ReadersWriterLock


def test_readers_share_and_a_writer_is_alone():
    gate = ReadersWriterLock()
    inside: list[str] = []
    worst: list[tuple[int, int]] = []

    def read():
        for _ in range(200):
            with gate.reading():
                inside.append("r")
                worst.append((inside.count("r"), inside.count("w")))
                inside.remove("r")

    def write():
        for _ in range(100):
            with gate.writing():
                inside.append("w")
                worst.append((inside.count("r"), inside.count("w")))
                inside.remove("w")

    with ThreadPoolExecutor(6) as pool:
        for future in [pool.submit(read) for _ in range(4)] + [pool.submit(write) for _ in range(2)]:
            future.result()
    assert all(writers == 0 or (writers == 1 and readers == 0) for readers, writers in worst)


def test_a_waiting_writer_goes_before_new_readers():
    gate = ReadersWriterLock()
    order: list[str] = []
    is_reading, may_end = threading.Event(), threading.Event()

    def first():
        with gate.reading():
            is_reading.set()
            assert may_end.wait(10)
            order.append("first reader")

    def writer():
        with gate.writing():
            order.append("writer")

    def second():
        with gate.reading():
            order.append("second reader")

    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(first)]
        assert is_reading.wait(10)
        futures.append(pool.submit(writer))
        while not gate._waiting_writers:
            pass
        futures.append(pool.submit(second))
        may_end.set()
        for future in futures:
            future.result(10)
    assert order == ["first reader", "writer", "second reader"]


def test_the_gate_opens_again_after_a_failure():
    gate = ReadersWriterLock()
    for entrance in (gate.reading, gate.writing):
        with pytest.raises(ZeroDivisionError), entrance():
            raise ZeroDivisionError
    with gate.writing():
        pass
    with gate.reading():
        pass
