"""Frames: what is written is read, in pieces of any size; what is no frame is refused before anything is reserved."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.service.links import frames
from tamis.service.links.frames import Ack, FrameReader, Greeting, Join, Kind, LinkClose, LinkError, LinkEvent, Pieces

BODIES = st.lists(st.tuples(st.sampled_from(Kind), st.binary(max_size=50)), max_size=8)


@given(BODIES, st.lists(st.integers(1, 40), min_size=1))
def test_frames_are_read_as_they_were_written_in_pieces_of_any_size(sent, sizes):
    data = b"".join(frames.frame(kind, body) for kind, body in sent)
    reader, came, number = FrameReader(), [], 0
    while data:
        size = sizes[number % len(sizes)]
        came += reader.feed(data[:size])
        data, number = data[size:], number + 1
    assert came == sent


@pytest.mark.parametrize("data", [b"\0\0\0\0\1", b"\xff\xff\xff\xff\1", b"\0\4\0\2\1", b"\0\0\0\1\0", b"\0\0\0\1\xff"])
def test_a_frame_of_a_wrong_length_or_kind_is_refused(data):
    with pytest.raises(LinkError):
        FrameReader().feed(data)


def test_only_small_frames_are_taken_before_the_other_end_is_known():
    reader = FrameReader()
    large = frames.frame(Kind.CONTROL, bytes(frames.MOST_GREETING_BYTES))
    with pytest.raises(LinkError, match="a frame of 262145 bytes; expected 1 to 262144"):
        reader.feed(large[:5])  # it says so in its first bytes; nothing is waited for
    reader = FrameReader()
    reader.most_bytes = frames.MOST_BYTES
    assert len(reader.feed(large)) == 1


@given(st.binary(max_size=300))
def test_bytes_from_anywhere_are_read_or_refused_with_a_typed_error(body):
    readers = [frames.read_ack, frames.read_events, Pieces().feed, FrameReader(1000).feed]
    readers += [partial(frames.read, message=message) for message in (Greeting, Join, LinkClose)]
    for reader in readers:
        with suppress(LinkError):
            reader(body)


@given(st.dictionaries(st.integers(1, 2**63), st.tuples(st.integers(0, 255), st.binary(max_size=30)), min_size=1))
def test_events_are_read_as_they_were_written(events):
    passed = [LinkEvent(position, *events[position]) for position in sorted(events)]
    written = list(frames.event_frames(passed, most_bytes=100))
    assert all(len(each) <= 100 + 5 for each in written)
    assert [event for each in written for event in frames.read_events(each[5:])] == passed


@pytest.mark.parametrize(
    "change", [lambda body: body[:-1], lambda body: body + b"x", lambda body: b"\0\0\0\3" + body[4:], lambda body: b""]
)
def test_events_that_are_cut_short_or_miscounted_are_refused(change):
    (written,) = frames.event_frames([LinkEvent(1, 0, b"{}"), LinkEvent(2, 0, b"{}")])
    with pytest.raises(LinkError):
        frames.read_events(change(written[5:]))


def test_events_whose_positions_do_not_ascend_are_refused():
    (written,) = frames.event_frames([LinkEvent(2, 0, b"{}"), LinkEvent(2, 0, b"{}")])
    with pytest.raises(LinkError, match="ascend"):
        frames.read_events(written[5:])


def test_a_large_control_message_travels_in_pieces(monkeypatch):
    monkeypatch.setattr(frames, "PIECE_BYTES", 7)
    sent = [(1, b""), (2, b"seven b"), (3, bytes(range(50)))]
    pieces = Pieces()
    came = [message for each in frames.control_frames(sent) if (message := pieces.feed(each[5:])) is not None]
    assert came == sent


def test_a_control_message_that_does_not_end_is_refused(monkeypatch):
    monkeypatch.setattr(frames, "MOST_CONTROL_BYTES", 100)
    pieces = Pieces()
    piece = frames._PIECE.pack(1, 0) + b"0123456789"
    for _ in range(5):
        pieces.feed(piece)
    with pytest.raises(LinkError, match="does not end"):
        pieces.feed(piece)


def test_an_acknowledgement_is_read_as_it_was_written():
    ack = Ack(2**63, 7, 5)
    assert frames.read_ack(frames.ack_frame(ack)[5:]) == ack
