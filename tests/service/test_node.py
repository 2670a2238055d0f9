"""What a node does, one promise at a time; `test_world` has all of them at once."""

from __future__ import annotations

import itertools

import pytest

from tamis.matching.reading import reader
from tamis.service import dispatching, event_keys, node, roster
from tamis.service.errors import ConflictError, StorageFullError, TooLargeError
from tamis.service.interest import Interest
from tamis.service.log.base import Gap
from tamis.service.messages import (
    Accepted,
    Acknowledge,
    Attach,
    Attached,
    CaughtUp,
    Close,
    Configure,
    Delivery,
    Describe,
    Ended,
    Forget,
    Lost,
    Match,
    Matched,
    Principal,
    Publish,
    Published,
    Refused,
    Revive,
    Subscribe,
    Subscribed,
    SubscriberSettings,
    Take,
    Taken,
    Unsubscribe,
    Wanted,
    Wrote,
)
from tamis.service.permissions import Permissions
from tamis.service.positions import Position
from tamis.service.settings import Role
from tamis.topk import many_texts
from tests.service.drive import Drive, incoming, wanted


def subscribed(drive: Drive, text: str = "TRUE", name: str = "ann", **more) -> Subscribed:
    answer = drive.hear(Subscribe(1, name, {"it": wanted(text)}, **more))
    assert isinstance(answer, Subscribed)
    return answer


def events(drive: Drive, session: int) -> list[int]:
    return [item.position.event for item in drive.deliveries(session)]


def publish(drive: Drive, first: int, last: int) -> None:
    for number in range(first, last + 1):
        drive.publish(incoming(number, n=number, even=number % 2 == 0))


# -- Acceptance


def test_acceptance_5_a_subscriber_that_reads_nothing_keeps_memory_flat_and_then_catches_up():
    drive = Drive(queue_events=16, recent_bytes=2_000)
    subscribed(drive)
    drive.hear(Attach(1, "ann", credit=4), 2)
    sizes = set()
    for number in range(1, 3_001):
        drive.publish(incoming(number, n=number))
        if number > 1_000 and number % 100 == 0:
            drive.tick()
            drive.work()
            deliveries = drive.node.roster.subscribers["ann"].deliveries
            sizes.add(
                (deliveries.queue_count, deliveries.unacknowledged_count, drive.node._recent._size_bytes // 1_000)
            )
    assert len(sizes) == 1
    assert next(iter(sizes))[0] <= 17
    while len(done := events(drive, 2)) < 3_000:
        drive.hear(Acknowledge(0, "ann", done=tuple(map(Position.of, done[-4:]))), 2)
        drive.work()
    assert list(dict.fromkeys(done)) == list(range(1, 3_001))


def test_acceptance_6_ten_that_were_away_are_caught_up_in_one_pass(monkeypatch):
    drive = Drive(queue_events=10_000, queue_bytes=10_000_000, recent_bytes=1)
    for number in range(10):
        subscribed(drive, f"n % 10 = {number}", f"s{number}")
    publish(drive, 1, 1_000)
    matched = []
    whole = Interest.hits

    def counting(self, records, names):
        matched.append(len(records))
        return whole(self, records, names)

    monkeypatch.setattr(Interest, "hits", counting)
    for number in range(10):
        drive.hear(Attach(1, f"s{number}", credit=1_000), 10 + number)
    drive.work()
    for number in range(10):
        assert events(drive, 10 + number) == [each for each in range(1, 1_001) if each % 10 == number]
    assert sum(matched) == 1_000


@pytest.mark.parametrize("crashes", [False, True])
def test_acceptance_7_every_event_is_judged_by_the_filter_of_its_position(crashes):
    drive = Drive(queue_events=4, recent_bytes=1)
    versions = []
    for step in range(12):
        text = ("even", "NOT even", "n % 3 = 0")[step % 3]
        versions.append((subscribed(drive, text).since, text))
        publish(drive, step * 5 + 1, step * 5 + 5)
        if crashes and step % 4 == 3:
            drive.crash()

    def judged(number: int) -> bool:
        text = [text for since, text in versions if since < number][-1]
        return {"even": number % 2 == 0, "NOT even": number % 2 == 1, "n % 3 = 0": number % 3 == 0}[text]

    drive.hear(Attach(1, "ann", credit=1_000), 2)
    drive.work()
    # `n` is the position here as long as none was skipped
    assert events(drive, 2) == [number for number in range(1, 61) if judged(number)]
    drive.hear(Acknowledge(0, "ann", done=tuple(map(Position.of, events(drive, 2)))), 2)
    drive.tick()
    assert drive.node.roster.subscribers["ann"].past == {}
    assert [row.until for row in drive.state.rows.subscriptions.values()] == [0]


# -- What the world found


def test_a_replay_that_begins_before_the_window_is_read_from_its_beginning():
    drive = Drive(recent_bytes=1)
    publish(drive, 1, 10)
    drive.hear(Attach(1, "ann", credit=100), 2)
    subscribed(drive, replay_from=3)
    drive.work()
    assert events(drive, 2) == list(range(3, 11))


def test_two_replays_at_one_position_have_positions_of_their_own():
    drive = Drive()
    publish(drive, 1, 3)
    drive.hear(Attach(1, "ann", credit=100), 2)
    drive.hear(Subscribe(1, "ann", {"x": wanted("TRUE")}, replay_from=1))
    drive.hear(Subscribe(2, "ann", {"y": wanted("TRUE")}, replay_from=2))
    drive.work()
    positions = [item.position for item in drive.deliveries(2)]
    assert positions == sorted(set(positions))
    assert [position.event for position in positions] == [1, 2, 3, 2, 3]


def test_a_replay_from_the_future_holds_nothing_up():
    drive = Drive()
    drive.hear(Attach(1, "ann", credit=100), 2)
    subscribed(drive, replay_from=50)
    publish(drive, 1, 3)
    drive.work()
    assert events(drive, 2) == [1, 2, 3]


def test_a_replay_begins_when_it_is_kept():
    drive = Drive()
    publish(drive, 1, 3)
    subscribed(drive, "FALSE")
    drive.hear(Attach(1, "ann", credit=100), 2)
    drive.is_state_slow = True
    drive.hear(Subscribe(1, "ann", {"it": wanted("TRUE")}, replay_from=1))
    drive.work()
    assert events(drive, 2) == []
    drive.is_state_slow = False
    drive.sync()
    drive.work()
    assert events(drive, 2) == [1, 2, 3]


def test_positions_of_a_replay_that_was_ended_are_not_used_again():
    drive = Drive()
    publish(drive, 1, 3)
    subscribed(drive, replay_from=1)
    drive.hear(Attach(1, "ann", acknowledges=False, credit=100), 2)
    drive.work()
    sent = {item.position for item in drive.deliveries(2)}
    drive.hear(Unsubscribe(2, "ann", ("it",)))
    drive.crash()
    subscribed(drive, replay_from=1)
    drive.hear(Attach(1, "ann", acknowledges=False, credit=100), 2)
    drive.work()
    assert events(drive, 2) == [1, 2, 3]
    assert not sent & {item.position for item in drive.deliveries(2)}


def test_a_replay_survives_a_change_of_roles_with_what_may_be_seen_then():
    owner = Principal("ann", ("shop",))
    drive = Drive(Permissions({"shop": Role(receive="TRUE")}))
    admin = Principal("root", ("admin",))
    for number in range(1, 7):
        drive.hear(Publish(1, (incoming(number, n=number, even=number % 2 == 0),)), 9, admin)
    drive.is_state_slow = True
    drive.hear(Subscribe(1, "ann", {"it": wanted("TRUE")}, replay_from=1), 1, owner)
    drive.do(drive.node.permit(Permissions({"shop": Role(receive="even")}), drive.now))
    drive.is_state_slow = False
    drive.sync()
    drive.hear(Attach(1, "ann", credit=100), 2, owner)
    drive.work()
    assert events(drive, 2) == [2, 4, 6]


def test_who_may_not_use_a_subscriber_any_more_does_not_consume_it():
    bob = Principal("bob", ("helper",))
    drive = Drive(Permissions({"helper": Role(receive="TRUE", subscribers=("ann",)), "ann": Role(receive="TRUE")}))
    ann = Principal("ann", ("ann",))
    drive.hear(Subscribe(1, "ann", {"it": wanted("TRUE")}), 1, ann)
    assert isinstance(drive.hear(Attach(1, "ann"), 2, bob), Attached)
    drive.do(drive.node.permit(Permissions({"helper": Role(receive="TRUE"), "ann": Role(receive="TRUE")}), drive.now))
    assert isinstance(drive.said[-1][1], Ended)
    drive.hear(Publish(1, (incoming(1),)), 9, Principal("root", ("admin",)))
    assert events(drive, 2) == []


def test_a_stream_that_takes_the_place_of_another_gets_everything_in_order():
    drive = Drive()
    subscribed(drive)
    drive.hear(Attach(1, "ann", acknowledges=False, credit=10), 2)
    publish(drive, 1, 3)
    answers = drive.node.hear(Attach(1, "ann", False, 10, done_through=Position.of(1)), _session(3), drive.now)
    assert isinstance(answers[0].answer, Ended)
    publish(drive, 4, 6)
    drive.work()
    assert events(drive, 3) == [2, 3, 4, 5, 6]
    assert [item.is_again for item in drive.deliveries(3)] == [True, True, False, False, False]


def _session(number: int):
    from tamis.service.messages import Session
    from tests.service.drive import ROOT

    return Session(number, ROOT)


def test_a_session_that_attaches_again_keeps_what_it_has_used_of_its_credit():
    drive = Drive()
    subscribed(drive)
    for _ in range(3):
        drive.hear(Attach(1, "ann", credit=2), 2)
    publish(drive, 1, 5)
    drive.hear(Attach(1, "ann", credit=3), 2)
    assert events(drive, 2) == [1, 2, 3]


def test_who_is_done_up_to_a_position_does_not_speak_for_others():
    drive = Drive()
    subscribed(drive)
    drive.hear(Attach(1, "ann", credit=1), 2)
    drive.hear(Attach(1, "ann", credit=5), 3)
    publish(drive, 1, 4)
    first = events(drive, 2)
    drive.hear(Close(), 2)  # what it had goes to the other
    drive.hear(Acknowledge(0, "ann", done_through=Position.of(4)), 3)
    drive.hear(Close(), 3)
    drive.hear(Attach(1, "ann", credit=9), 4)
    drive.work()
    assert events(drive, 4) == first


def test_an_answer_to_a_long_poll_that_was_lost_is_not_done_with_the_next():
    drive = Drive()
    subscribed(drive)
    publish(drive, 1, 2)
    for session, number in ((2, 1), (3, 2)):
        drive.hear(Take(1, "ann", 1, 5.0), session)
        drive.work()
        (taken,) = [answer for each, answer in drive.said if each == session and isinstance(answer, Taken)]
        assert [item.position.event for item in taken.items] == [number]
    drive.hear(Acknowledge(0, "ann", done_through=Position.of(2)), 4)
    drive.tick(60.0)
    drive.hear(Take(1, "ann", 5, 0.0), 5)
    drive.work()
    (taken,) = [answer for each, answer in drive.said if each == 5]
    assert [item.position.event for item in taken.items] == [1]


def test_credit_is_given_back_once_for_what_comes_again_and_is_done_before():
    drive = Drive()
    subscribed(drive)
    drive.hear(Attach(1, "ann", credit=2), 2)
    publish(drive, 1, 6)
    drive.hear(Acknowledge(0, "ann", again=(Position.of(1),), in_s=50.0), 2)
    drive.hear(Acknowledge(0, "ann", done=(Position.of(1),)), 2)
    assert events(drive, 2) == [1, 2, 3]


def test_what_was_delivered_often_enough_becomes_a_dead_letter_also_when_consumers_go():
    drive = Drive()
    subscribed(drive)
    drive.hear(Configure(2, "ann", SubscriberSettings(attempts=2)))
    drive.publish(incoming(1))
    for session in (2, 3, 4):
        drive.hear(Attach(1, "ann"), session)
        drive.work()
        drive.hear(Close(), session)
    assert [events(drive, session) for session in (2, 3, 4)] == [[1], [1], []]
    (letter,) = drive.state.rows.dead.values()
    assert letter.attempts == 2
    drive.hear(Attach(1, "ann"), 5)
    drive.hear(Revive(1, "ann", (Delivery(letter.position, letter.keys, letter.body),)))
    assert events(drive, 5) == [1]
    drive.hear(Acknowledge(1, "ann", done=(letter.position,)), 5)
    assert drive.state.rows.dead == {}


def test_a_delivery_that_nobody_has_cannot_be_given_up():
    drive = Drive()
    subscribed(drive)
    publish(drive, 1, 1)
    drive.hear(Acknowledge(1, "ann", never=(Position.of(1),)), 2)
    drive.hear(Attach(1, "ann"), 3)
    drive.work()
    assert events(drive, 3) == [1]


def test_an_event_that_a_passing_subscriber_refuses_is_no_dead_letter():
    drive = Drive()
    subscribed(drive, is_durable=False)
    drive.hear(Attach(1, "ann", is_durable=False), 1)
    drive.publish(incoming(1))
    assert isinstance(drive.hear(Acknowledge(7, "ann", never=(Position.of(1),))), Accepted)
    assert drive.state.rows.is_empty()


def test_a_repeated_request_is_not_answered_before_the_first_is_kept():
    drive = Drive()
    drive.is_state_slow = True
    request = Subscribe(1, "ann", {"it": wanted("TRUE")})
    assert drive.hear(request) is None
    assert drive.hear(request, 2) is None
    drive.is_state_slow = False
    drive.sync()
    assert [session for session, answer in drive.said if isinstance(answer, Subscribed)] == [1, 2]


def test_a_refusal_waits_for_the_change_that_it_is_because_of():
    drive = Drive()
    subscribed(drive)
    drive.is_state_slow = True
    drive.hear(Unsubscribe(1, "ann", ("it",)))
    assert drive.hear(Unsubscribe(1, "ann", ("it",)), 2) is None
    drive.is_state_slow = False
    drive.sync()
    assert isinstance(drive.said[-1][1], Refused)


def test_changed_settings_do_not_forget_what_is_done():
    drive = Drive()
    subscribed(drive)
    drive.hear(Attach(1, "ann"), 2)
    publish(drive, 1, 3)
    drive.hear(Acknowledge(0, "ann", done=(Position.of(2), Position.of(3))), 2)
    drive.tick()
    drive.hear(Configure(2, "ann", SubscriberSettings(wait_s=5.0)))
    drive.crash()
    drive.hear(Attach(1, "ann"), 3)
    drive.work()
    assert events(drive, 3) == [1]


def test_a_subscriber_that_was_forgotten_while_its_events_went_to_the_disk_gets_nothing():
    drive = Drive()
    subscribed(drive)
    drive.hear(Attach(1, "ann"), 2)
    drive.is_log_slow = True
    drive.publish(incoming(1))
    drive.hear(Forget(1, "ann"))
    drive.is_log_slow = False
    drive.sync()
    drive.tick()
    assert events(drive, 2) == []
    assert drive.node._behind == drive.node._live == {}
    assert drive.state.rows.is_empty()


def test_a_poller_is_not_forgotten_while_it_polls():
    drive = Drive()
    subscribed(drive)
    drive.hear(Configure(2, "ann", SubscriberSettings(forget_after_s=100.0)))
    for session in range(10, 20):
        drive.tick(60.0)
        assert isinstance(drive.hear(Take(1, "ann", 1, 0.0), session), Taken | None)
        drive.tick(1.0)
        drive.hear(Close(), session)
    assert "ann" in drive.node.roster.subscribers
    drive.tick(101.0)
    assert "ann" not in drive.node.roster.subscribers


def test_a_loss_is_told_again_until_something_behind_it_is_done():
    drive = Drive(recent_bytes=1)
    subscribed(drive)
    publish(drive, 1, 6)
    drive.node.dropped(drive.log.drop(4))

    def told(session: int) -> list[Gap]:
        return [answer.gap for number, answer in drive.said if number == session and isinstance(answer, Lost)]

    for session in (2, 3):
        drive.hear(Attach(1, "ann", credit=1), session)
        drive.work()
        assert told(session) == [Gap(1, 3)]
        drive.hear(Close(), session)
    drive.tick()
    drive.crash()
    drive.hear(Attach(1, "ann", credit=1), 4)
    drive.work()
    assert told(4) == [Gap(1, 3)]
    drive.hear(Acknowledge(0, "ann", done=(Position.of(4),)), 4)
    drive.tick()
    drive.crash()
    drive.hear(Attach(1, "ann", credit=9), 5)
    drive.work()
    assert told(5) == []
    assert events(drive, 5) == [5, 6]


def test_a_long_poll_is_told_what_is_lost():
    drive = Drive(recent_bytes=1)
    subscribed(drive, "n > 5")
    publish(drive, 1, 6)
    drive.node.dropped(drive.log.drop(4))
    drive.hear(Take(1, "ann", 5, 5.0), 2)
    drive.work()
    (taken,) = [answer for session, answer in drive.said if session == 2]
    assert [loss.gap for loss in taken.losses] == [Gap(1, 3)]
    assert [item.position.event for item in taken.items] == [6]


def test_damage_in_the_middle_of_what_is_read_is_told():
    drive = Drive(recent_bytes=1)
    subscribed(drive)
    for first in (1, 3, 5):
        drive.publish(incoming(first), incoming(first + 1))
    drive.log.damage(1)
    drive.crash()
    drive.hear(Attach(1, "ann"), 2)
    drive.work()
    told = [answer for _, answer in drive.said if isinstance(answer, Lost)]
    assert [(loss.gap, loss.reason) for loss in told] == [(Gap(3, 4), "damage")]
    assert events(drive, 2) == [1, 2, 5, 6]


def test_a_mixed_publication_is_refused_if_one_of_its_blocks_was_not_written():
    drive = Drive()
    drive.is_log_slow = True
    drive.publish(incoming(1))
    drive.hear(Publish(2, (incoming(1), incoming(2))), 3)
    first = drive.log.writing.popleft()
    drive.do(drive.node.not_written(first, StorageFullError("no room"), drive.now))
    drive.is_log_slow = False
    drive.sync()
    assert [(session, type(answer)) for session, answer in drive.said] == [(99, Refused), (3, Refused)]
    drive.tick(5.0)
    answer = drive.hear(Publish(3, (incoming(1), incoming(2))), 3)
    assert isinstance(answer, Published)
    assert answer.known_count == 1


def test_a_full_disk_does_not_refuse_for_long_when_the_clock_is_set_back():
    drive = Drive()
    drive.is_log_slow = True
    drive.publish(incoming(1))
    block = drive.log.writing.popleft()
    drive.do(drive.node.not_written(block, StorageFullError("no room"), drive.now))
    drive.is_log_slow = False
    assert isinstance(drive.publish(incoming(1)), Refused)
    drive.now -= 3_600
    assert isinstance(drive.publish(incoming(1)), Published)


def test_the_floor_of_who_gets_nothing_is_kept_now_and_then():
    drive = Drive()
    subscribed(drive, "FALSE")
    drive.hear(Attach(1, "ann"), 2)
    publish(drive, 1, 5)
    drive.tick(60.0)
    assert drive.state.rows.floors["ann"].floor == Position.of(5)


def test_nothing_that_a_replay_still_needs_is_free_to_be_dropped():
    drive = Drive()
    publish(drive, 1, 9)
    subscribed(drive, replay_from=4)
    assert drive.node.needed == 4
    drive.hear(Attach(1, "ann", credit=100), 2)
    drive.work()
    assert len(events(drive, 2)) == 6
    assert drive.node.needed == 4
    drive.hear(Acknowledge(0, "ann", done=tuple(item.position for item in drive.deliveries(2))), 2)
    assert drive.node.needed == 10


def test_one_consumer_more_is_no_reason_to_tell_that_all_have_caught_up():
    drive = Drive()
    subscribed(drive)
    publish(drive, 1, 3)
    drive.hear(Attach(1, "ann", credit=100), 2)
    drive.work()
    drive.hear(Attach(1, "ann", credit=100), 3)
    publish(drive, 4, 5)
    assert [session for session, answer in drive.said if isinstance(answer, CaughtUp)] == [2]


def test_streams_and_consumers_that_acknowledge_do_not_share_a_subscriber():
    drive = Drive()
    subscribed(drive)
    drive.hear(Attach(1, "ann", acknowledges=False, credit=1), 2)
    refused = drive.hear(Attach(1, "ann"), 3)
    assert isinstance(refused, Refused)
    assert isinstance(refused.error, ConflictError)
    publish(drive, 1, 2)
    assert events(drive, 2) == [1]
    drive.hear(Wrote("ann", 1, 100), 2)
    assert events(drive, 2) == [1, 2]
    described = drive.hear(Describe(1, "ann"), 4)
    assert described.subscribers[0].floor == Position(0, 0)


# -- Limits


def test_over_waiting_bytes_those_furthest_behind_become_far_and_miss_nothing():
    drive = Drive(waiting_bytes=5_000, queue_events=100)
    for session, name in enumerate(("first", "second", "third"), 1):
        subscribed(drive, name=name)
        drive.hear(Attach(1, name, credit=1 if name != "third" else 1_000), session)
    drive.publish(incoming(0, n=0))
    drive.hear(Acknowledge(0, "second", done=(Position.of(1),)), 2)
    publish(drive, 1, 40)
    drive.work()
    states = {each.name: each.state for each in drive.node.roster}
    assert states == {"first": "far", "second": "far", "third": "live"}
    assert sum(each.waiting_bytes for each in drive.node.roster) <= 5_000
    assert events(drive, 3) == list(range(1, 42)), "others do not suffer"
    for session, name in ((1, "first"), (2, "second")):
        while len(events(drive, session)) < 41:
            last = events(drive, session)[-1]
            drive.hear(Acknowledge(0, name, done=(Position.of(last),)), session)
            drive.work()
        assert events(drive, session) == list(range(1, 42))


def test_the_one_furthest_behind_becomes_far_first():
    drive = Drive(waiting_bytes=4_000, queue_events=100)
    for session, name in ((1, "ahead"), (2, "slow")):
        subscribed(drive, name=name)
        drive.hear(Attach(1, name, credit=6 if name == "ahead" else 1), session)
    publish(drive, 1, 14)
    assert {each.name: each.state for each in drive.node.roster} == {"ahead": "live", "slow": "far"}


def test_one_owner_has_no_more_durable_subscribers_than_the_limit():
    drive = Drive(subscribers=2)
    for name in ("a", "b"):
        subscribed(drive, name=name)
    refused = drive.hear(Configure(1, "c", SubscriberSettings()))
    assert isinstance(refused, Refused)
    assert isinstance(refused.error, TooLargeError)
    assert "limits.subscribers" in str(refused.error)
    assert "c" not in drive.node.roster.subscribers
    assert isinstance(drive.hear(Attach(1, "passing", is_durable=False), 3), Attached), "passing ones do not count"
    assert isinstance(drive.hear(Configure(1, "theirs", SubscriberSettings()), 4, Principal("bob", (), True)), Accepted)
    drive.crash()
    assert isinstance(drive.hear(Configure(1, "c", SubscriberSettings())), Refused), "those of before a restart do"
    drive.hear(Forget(1, "a"))
    assert isinstance(drive.hear(Configure(1, "c", SubscriberSettings())), Accepted)


def test_the_pause_before_a_delivery_comes_again_doubles_with_every_attempt():
    drive = Drive()
    subscribed(drive)
    drive.hear(Configure(2, "ann", SubscriberSettings(wait_s=1.0, backoff_s=8.0)))
    drive.hear(Attach(1, "ann"), 2)
    drive.publish(incoming(1))
    came = [drive.now]
    while len(came) < 4 and drive.now < 1_200:
        drive.tick(1.0)
        if len(events(drive, 2)) > len(came):
            came.append(drive.now)
    assert [later - sooner for sooner, later in itertools.pairwise(came)] == [9.0, 17.0, 33.0]


def test_a_passing_subscriber_that_is_too_slow_goes_on_behind_a_gap_or_is_closed_as_it_asked():
    for ends_when_slow in (False, True):
        drive = Drive(queue_events=4)
        subscribed(drive, is_durable=False)
        drive.hear(Attach(1, "ann", False, credit=2, is_durable=False, ends_when_slow=ends_when_slow), 1)
        publish(drive, 1, 12)
        answers = [answer for session, answer in drive.said if session == 1]
        assert any(isinstance(answer, Lost) for answer in answers)
        assert any(isinstance(answer, Ended) for answer in answers) == ends_when_slow


def test_several_consumers_of_one_subscriber_share_the_work_by_their_free_credit():
    drive = Drive()
    subscribed(drive)
    drive.hear(Attach(1, "ann", credit=4), 2)
    drive.hear(Attach(1, "ann", credit=2), 3)
    publish(drive, 1, 8)
    assert (len(events(drive, 2)), len(events(drive, 3))) == (4, 2)
    assert sorted(events(drive, 2) + events(drive, 3)) == [1, 2, 3, 4, 5, 6]
    assert {1, 2} & set(events(drive, 3)), "nobody gets everything first"
    drive.hear(Acknowledge(1, "ann", tuple(Position.of(number) for number in events(drive, 3))), 3)
    assert events(drive, 3)[2:] == [7, 8]


def test_the_time_of_the_log_does_not_go_back_when_the_clock_is_set_back():
    drive = Drive()
    publish(drive, 1, 2)
    drive.now -= 500.0
    publish(drive, 3, 4)
    drive.now += 600.0
    publish(drive, 5, 5)
    times = [block.time_us for block in drive.log.blocks]
    assert times == [1_000_000_000] * 4 + [1_100_000_000]


def test_a_subscriber_of_somebody_else_is_refused_alike_whether_it_is_there_or_not():
    drive = Drive(Permissions({"shop": Role(receive="TRUE")}))
    ann, eve = Principal("ann", ("shop",)), Principal("eve", ("shop",))
    drive.hear(Subscribe(1, "ann", {"it": wanted("price < 20")}), 1, ann)
    for request in (Describe, Forget):
        there, absent = (drive.hear(request(1, name), 2, eve) for name in ("ann", "bob"))
        assert isinstance(there, Refused) and isinstance(absent, Refused)
        assert str(there.error).replace("ann", "bob") == str(absent.error)
        assert "price" not in str(there.error)


def test_a_text_that_is_longer_than_the_limits_of_now_comes_back_after_a_restart():
    drive = Drive()
    text = "n < 3" + " " * 1_500_000
    drive.hear(Subscribe(1, "ann", {"it": Wanted(text, wanted("n < 3").filter)}))
    drive.crash()
    drive.hear(Attach(1, "ann"), 2)
    publish(drive, 1, 5)
    assert events(drive, 2) == [1, 2]


def test_a_start_reads_many_texts_in_columns_and_finds_what_was_there(monkeypatch):
    said = []
    plain = roster.read_subscriptions
    monkeypatch.setattr(roster, "read_subscriptions", lambda texts: said.append(plain(texts)) or said[-1])
    monkeypatch.setattr(many_texts, "MANY", 1)
    monkeypatch.setattr(reader, "MANY", 1)
    monkeypatch.setattr(reader, "is_compiled", lambda: True)
    drive = Drive()
    texts = {"a": "n < 3 AND NOT even", "b": "n = 4 OR n = 5", "c": "abs(n) = 2"}
    drive.hear(Subscribe(1, "ann", {key: wanted(text) for key, text in texts.items()}))
    drive.crash()
    assert said[-1].keys() == {texts["a"], texts["b"]}, "functions are left to the parser"
    drive.hear(Attach(1, "ann"), 2)
    publish(drive, 1, 6)
    assert events(drive, 2) == [1, 2, 4, 5]


def test_a_long_poll_waits_as_long_as_it_is_allowed_to():
    drive = Drive()
    subscribed(drive)
    assert drive.hear(Take(1, "ann", 1, 900.0), 2) is None
    drive.tick(899.0)
    assert (2, Taken(1, ())) not in drive.said
    drive.tick(2.0)
    assert (2, Taken(1, ())) in drive.said
    assert isinstance(drive.hear(Take(1, "ann", 1, -1.0), 3), Refused)


def test_several_events_with_too_many_matches_are_not_answered_together(monkeypatch):
    monkeypatch.setattr(node, "MOST_MATCHES", 3)
    drive = Drive()
    drive.hear(Subscribe(1, "ann", {key: wanted("n < 5") for key in "abcd"}))
    assert len(drive.hear(Match(1, ({"n": 1},))).matches[0]) == 4
    assert isinstance(drive.hear(Match(1, ({"n": 9}, {"n": 9}))), Matched)
    refused = drive.hear(Match(1, ({"n": 1}, {"n": 9})))
    assert isinstance(refused, Refused) and isinstance(refused.error, TooLargeError)


def test_no_more_is_done_out_of_order_than_is_kept_in_memory(monkeypatch):
    monkeypatch.setattr(dispatching, "MOST_ISLANDS", 3)
    drive = Drive()
    subscribed(drive)
    drive.hear(Attach(1, "ann"), 2)
    publish(drive, 1, 6)
    for number in (3, 4, 5):
        assert isinstance(drive.hear(Acknowledge(1, "ann", (Position.of(number),)), 2), Accepted)
    refused = drive.hear(Acknowledge(1, "ann", (Position.of(6),)), 2)
    assert isinstance(refused, Refused) and isinstance(refused.error, TooLargeError)
    assert isinstance(drive.hear(Acknowledge(1, "ann", done_through=Position.of(2)), 2), Accepted)
    assert isinstance(drive.hear(Acknowledge(1, "ann", (Position.of(6),)), 2), Accepted)


def test_long_polls_take_no_more_than_their_credit_until_some_of_it_is_done(monkeypatch):
    monkeypatch.setattr(dispatching, "POLL_CREDIT", 2)
    drive = Drive()
    subscribed(drive)
    publish(drive, 1, 5)

    def taken(session):
        drive.hear(Take(1, "ann", 10, 0.0), session)
        drive.work()
        drive.tick(0.1)
        [answer] = [answer for number, answer in drive.said if number == session]
        return [item.position.event for item in answer.items]

    assert taken(2) == [1, 2]
    assert taken(3) == []
    drive.hear(Acknowledge(1, "ann", (Position.of(1),)), 4)
    assert taken(5) == [3]


def test_as_many_keys_are_known_as_the_settings_ask_for(monkeypatch):
    monkeypatch.setattr(event_keys, "CEILING", 10)
    drive = Drive(keys=50)
    publish(drive, 1, 200)
    assert [drive.publish(incoming(number)).known_count for number in range(151, 201)] == [1] * 50
