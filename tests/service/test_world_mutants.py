"""Nodes that are broken on purpose: the checkers of the world find each of them, and nothing in their whole twins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tamis.service import catching_up, node, roster
from tamis.service.catching_up import Window
from tamis.service.deliveries import InFlight, Sent
from tamis.service.dispatching import Dispatcher
from tamis.service.gate import Gate
from tamis.service.messages import CaughtUp, Published, Say
from tamis.service.node import Node
from tamis.service.positions import START, Position
from tamis.service.recent import Recent
from tamis.service.roster import Roster
from tamis.service.subscribers import Replay, Subscriber
from tests.service.world import World
from tests.service.world_checks import BrokenPromiseError
from tests.service.world_clients import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

MUTANTS: dict[str, Mutant] = {}
SEEDS = 500


@dataclass
class Mutant:
    """How to break a node, a seed by which it is known to be found, and in what kind of world."""

    break_it: Callable[[pytest.MonkeyPatch], None]
    seed: int
    options: dict[str, Any]


def mutant(seed: int, **options: Any) -> Callable[[Callable[[pytest.MonkeyPatch], None]], None]:
    def register(break_it: Callable[[pytest.MonkeyPatch], None]) -> None:
        MUTANTS[break_it.__name__.replace("_", " ")] = Mutant(break_it, seed, options)

    return register


REPLAYS = {"replay_share": 0.8, "is_quiet": True, "is_crashing": True, "steps": 500}


# -- What is said, and when


@mutant(0)
def acknowledges_before_the_disk_has_it(patch):
    whole = Gate.hold
    patch.setattr(Gate, "hold", lambda self, output, logged=0, kept=0: whole(self, output, kept=kept))


@mutant(1)
def delivers_before_the_gate_opens(patch):
    whole = InFlight.next
    patch.setattr(InFlight, "next", lambda self, logged, now: whole(self, 1 << 60, now))


@mutant(0)
def answers_before_the_state_has_it(patch):
    whole = Gate.hold
    patch.setattr(Gate, "hold", lambda self, output, logged=0, kept=0: whole(self, output, logged))


@mutant(5)
def answers_at_once_who_asks_for_the_same_again(patch):
    patch.setattr(Node, "keep_all", Node._keep)


@mutant(76, has_full_disks=True, steps=500)
def ignores_the_block_that_failed_of_a_mixed_publication(patch):
    def speaks_of(output, block):
        is_answer = isinstance(output, Say) and isinstance(output.answer, Published)
        return is_answer and block.first <= output.answer.last <= block.last

    patch.setattr(node, "_speaks_of", speaks_of)


@mutant(4)
def keeps_the_keys_of_what_was_not_written(patch):
    patch.setattr(node.EventKeys, "forget", lambda self, keys: None)


@mutant(1)
def says_too_early_that_somebody_has_caught_up(patch):
    whole = Node.sent

    def sent(self, subscriber, now):
        if subscriber.is_catching_up and subscriber.consumers:
            subscriber.is_catching_up = False
            return [
                *self.dispatcher.tell(subscriber, CaughtUp(subscriber.name, self.gate.logged)),
                *whole(self, subscriber, now),
            ]
        return whole(self, subscriber, now)

    patch.setattr(Node, "sent", sent)


# -- What survives


@mutant(0)
def saves_the_floor_before_done(patch):
    patch.setattr(Subscriber, "kept_floor", lambda self, logged: max(self.passed, self.deliveries.least_floor))


@mutant(7)
def forgets_old_versions_of_a_filter(patch):
    def end(self, subscriber, version, until):
        version.until = until
        gone = roster.SubscriptionGone(subscriber.name, version.key, version.number)
        changes = [*self._stop_replays(subscriber, version.key, version.number), gone]
        return changes if subscriber.is_durable else []

    patch.setattr(Roster, "_end", end)


@mutant(7)
def resumes_one_too_late(patch):
    whole = Subscriber.settle

    def settle(self, floor):
        whole(self, floor)
        self.looked += 1

    patch.setattr(Subscriber, "settle", settle)


@mutant(8)
def does_not_refill_the_keys(patch):
    patch.setattr(Node, "remember", lambda self, blocks: None)


@mutant(114)
def gives_positions_again_after_a_crash(patch):
    patch.setattr(node, "highest_position", lambda stored: 0)


@mutant(13)
def does_not_mark_repetitions_after_a_restart(patch):
    whole = Roster.restore
    patch.setattr(Roster, "restore", lambda self, stored, sent_through, now: whole(self, stored, START, now))


@mutant(368, **REPLAYS)
def begins_a_replay_before_it_is_kept(patch):
    patch.setattr(Subscriber, "is_held", property(lambda self: False))


# -- Catching up


@mutant(1)
def decides_a_replay_at_its_events(patch):
    patch.setattr(Replay, "position", lambda self, event: Position.of(event))


@mutant(1)
def applies_a_read_to_who_attached_lower(patch):
    whole = Node._look

    def look(self, ready, blocks, first, through, now, outputs):
        whole(self, ready, blocks, 0, through, now, outputs)

    patch.setattr(Node, "_look", look)


@mutant(1)
def turns_to_a_replay_that_begins_before_the_window(patch):
    whole = Window.__init__

    def init(self, blocks, first, *rest):
        whole(self, blocks, 0, *rest)

    patch.setattr(Window, "__init__", init)


@mutant(268)
def lets_go_of_what_is_not_on_disk(patch):
    add, let_go = Recent.add, Recent.let_go

    def add_and_let_go(self, block):
        add(self, block)
        let_go(self, block.last)

    patch.setattr(Recent, "add", add_and_let_go)


@mutant(1)
def passes_over_what_is_lost_in_silence(patch):
    whole = catching_up.skipped
    patch.setattr(node, "skipped", lambda *arguments: whole(*arguments)[:0])


@mutant(118, has_retention=True, kinds=((Worker,),), break_share=0.05, steps=900)
def tells_of_a_loss_only_once(patch):
    patch.setattr(Subscriber, "kept_floor", Subscriber.floor)
    whole = node.skipped

    def skipped(subscriber, first, gaps):
        losses = whole(subscriber, first, gaps)
        if subscriber.consumers:
            subscriber.losses = []
        return losses

    patch.setattr(node, "skipped", skipped)


@mutant(112)
def looks_past_damage_inside_a_window(patch):
    whole = Node._look

    def look(self, *arguments):
        gaps, self._gaps = self._gaps, ()
        whole(self, *arguments)
        self._gaps = gaps

    patch.setattr(Node, "_look", look)


@mutant(1)
def goes_on_serving_who_is_no_longer_live(patch):
    whole = Node.sent

    def sent(self, subscriber, now):
        was_live = self._live.get(subscriber.name)
        outputs = whole(self, subscriber, now)
        if was_live is subscriber and subscriber.consumers:
            self._live[subscriber.name] = subscriber
        return outputs

    patch.setattr(Node, "sent", sent)


@mutant(4)
def ends_replays_when_roles_change(patch):
    whole = Roster.subscribe

    def subscribe(self, *arguments, keeps_replays=False):
        return whole(self, *arguments)

    patch.setattr(Roster, "subscribe", subscribe)


@mutant(20, has_retention=False)
def never_lets_go_of_what_waits(patch):
    patch.setattr(Node, "_relieve", lambda self: None)


@mutant(1)
def goes_on_behind_what_it_has_let_go_of(patch):
    whole = Node._relieve

    def relieve(self):
        cursors = {each.name: (each.looked, each.passed) for each in self.roster}
        far = {each.name for each in self.roster if each.is_far}
        whole(self)
        for each in self.roster:
            if each.is_far and each.name not in far:
                each.looked, each.passed = cursors[each.name]

    patch.setattr(Node, "_relieve", relieve)


@mutant(1)
def never_comes_back_to_who_is_far(patch):
    whole = Node._takes_more
    patch.setattr(Node, "_takes_more", lambda self, subscriber: not subscriber.is_far and whole(self, subscriber))


# -- Consumers


@mutant(21, kinds=((Worker, Worker),), break_share=0.05, steps=500)
def lets_one_consumer_speak_for_all(patch):
    def sent_to(self, session, through):
        return [position for position in self._sent if position <= through]

    patch.setattr(InFlight, "sent_to", sent_to)


@mutant(44, kinds=((Worker, Worker),), break_share=0.05, steps=500)
def takes_what_comes_again_later_as_done(patch):
    def sent_to(self, session, through):
        return [position for position, sent in self._sent.items() if sent.session == session and position <= through]

    patch.setattr(InFlight, "sent_to", sent_to)


@mutant(301)
def gives_credit_back_twice(patch):
    def wait(self, sent, due_s):
        self._again[sent.delivery.position] = Sent(sent.delivery, sent.session, sent.attempts, due_s)
        self._again_order.append((due_s, sent.delivery.position))
        self._again_order.sort()

    patch.setattr(InFlight, "_wait", wait)


@mutant(22)
def buries_too_early(patch):
    whole = Dispatcher._again

    def again(self, subscriber, position, due_s, now):
        if subscriber.settings.attempts > 1 and subscriber.deliveries.attempts_of(position) == 1:
            return self._bury(subscriber, position, "once is enough", now)
        return whole(self, subscriber, position, due_s, now)

    patch.setattr(Dispatcher, "_again", again)


@mutant(410)
def delivers_once_too_often(patch):
    patch.setattr(Dispatcher, "_next", lambda self, subscriber, now: subscriber.deliveries.next(self._gate.logged, now))


@mutant(13)
def delivers_for_a_subscription_that_has_ended(patch):
    patch.setattr(InFlight, "drop_key", lambda self, key: [])


@mutant(86)
def serves_who_was_forgotten(patch):
    whole = Node._forget

    def forget(self, subscriber, *rest):
        consumers = dict(subscriber.consumers)
        outputs = whole(self, subscriber, *rest)
        subscriber.consumers = consumers
        if consumers:
            self._behind[subscriber.name] = subscriber
        return outputs

    patch.setattr(Node, "_forget", forget)


@mutant(11)
def gives_nothing_back_when_a_consumer_is_gone(patch):
    def give_back(self, session):
        for position in [each for each, sent in self._sent.items() if sent.session == session]:
            self.done(position)

    patch.setattr(InFlight, "give_back", give_back)


# -- A shared log


@mutant(26, node_count=2)
def counts_what_it_has_appended_as_followed(patch):
    whole = Node.appended

    def appended(self, block):
        self.gate.on_disk(block.last)
        return whole(self, block)

    patch.setattr(Node, "appended", appended)


@mutant(2, node_count=2, break_share=0.05, steps=500)
def delivers_an_event_that_was_written_twice(patch):
    whole = Node._learn_keys

    def learn(self, block):
        whole(self, block)
        self._repetitions.clear()

    patch.setattr(Node, "_learn_keys", learn)


@mutant(265, node_count=3)
def does_not_see_that_the_log_has_overtaken_it(patch):
    patch.setattr(Node, "overtaken", lambda self, first: [])


@mutant(27, node_count=2, has_retention=True, steps=500)
def goes_on_as_live_when_the_log_has_overtaken_it(patch):
    def overtaken(self, first):
        self.head = max(self.head, first - 1)
        self.dropped(first)
        return self.gate.on_disk(self.head)

    patch.setattr(Node, "overtaken", overtaken)


def is_found(name: str, seed: int) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        MUTANTS[name].break_it(patch)
        try:
            World(seed, **MUTANTS[name].options).run()
        except BrokenPromiseError:
            return True
    return False


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_node_is_found_and_its_whole_twin_is_not(name):
    mutant_ = MUTANTS[name]
    for seed in (mutant_.seed, *range(SEEDS)):
        if is_found(name, seed):
            World(seed, **mutant_.options).run()
            return
    raise AssertionError(f"{name} was not found in {SEEDS} worlds")
