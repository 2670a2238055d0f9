"""How do sockets and disks meet one state machine? The core: one thread that owns the node.

    loop ──requests──▶ core ──blocks──▶ log writer ──"on disk"──▶ core
         ◀──answers───      ──changes─▶ state writer ──"kept"───▶ core
                            ──ranges──▶ log reader ──blocks─────▶ core

What waits for the core lies in its `inbox`. What is to be said is collected and handed to the loop once a round, so
that a connection writes once for many events. When nothing else is to be done, those who are behind catch up; while
events come in, they get a share of the time.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import math
import threading
import time
from collections import Counter, deque
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from tamis.service.errors import LogError, OverloadedError, ServiceError, StorageFullError
from tamis.service.inbox import Inbox
from tamis.service.log.ranges import RangeReader
from tamis.service.messages import (
    Answer,
    Append,
    Attach,
    Close,
    Deliveries,
    Ended,
    Keep,
    LinkAsked,
    Output,
    Publish,
    Read,
    Refused,
    Request,
    Say,
    Session,
    Subscribe,
    Take,
    Unsubscribe,
)
from tamis.service.standing import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tamis.service.changes import Buried
    from tamis.service.figures import Figures
    from tamis.service.log.base import Block, EventLog, Gap
    from tamis.service.messages import Principal
    from tamis.service.node import Node
    from tamis.service.permissions import Permissions
    from tamis.service.settings import LimitSettings
    from tamis.service.state import State
    from tamis.service.tracing import Tracing

TICK_S = 0.05
SETTLED_AFTER_S = 1.0
"""What was subscribed is laid out when nothing has changed for so long. While changes come, the matcher does it in the
background, and no event waits for that."""
GAUGES_EVERY_S = 1.0
NEEDED_WITHIN_S = 10.0
FULL_FOR_S = 10.0
"""So long after the disk refused something for want of room the broker is not ready; then the next event shows whether
there is some, and a broker that is sent none because it is not ready does not stay so for ever."""
MOST_CONTROL = 100_000
"""Requests that are no events and wait for the core, before it says that it is busy."""
_LOGGER = logging.getLogger("tamis.service")


def name_for_the_system() -> None:
    """Give this thread its name for tools of the system, too (`top -H`), where that is possible."""
    with contextlib.suppress(OSError):  # not Linux
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(threading.current_thread().name)


class Core:
    """The node, its threads and its disks, as the loop sees them."""

    def __init__(
        self,
        node: Node,
        log: EventLog,
        state: State,
        figures: Figures,
        limits: LimitSettings,
        *,
        catch_up_share: float = 0.2,
        on_failure: Callable[[ServiceError], None] = lambda error: None,
        tracing: Tracing | None = None,
    ) -> None:
        self.epoch = log.epoch
        self.figures = figures
        self.catch_up_share = catch_up_share
        self.limits = limits
        self.tracing = tracing
        """Who makes spans of traced events, if the settings ask for that."""
        self._traced: list[int] = []
        """Positions of traced events of the group that is being taken."""
        self._node, self._log, self._state = node, log, state
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count(1)
        self._listeners: dict[int, Callable[[list[Answer]], None]] = {}
        self._holding: set[int] = set()
        """Sessions that have asked for something which ends with them; of the others the node need not hear the end."""
        self._asked: set[asyncio.Future[Answer]] = set()
        """What `ask` waits for; when the core fails, nobody else will answer."""
        self.inbox = Inbox()
        self._blocks: SimpleQueue[Block | Callable[[], None] | None] = SimpleQueue()
        self._changes: SimpleQueue[Keep | None] = SimpleQueue()
        self._reads: SimpleQueue[Read | None] = SimpleQueue()
        self._taken: deque[tuple[int, float]] = deque()
        """When blocks that are not on disk were taken, by their last positions."""
        self._is_stopping = False
        self._is_to_wake = False
        """Will the core be woken at the end of this turn of the loop?"""
        self._catch_up_credit_s = 0.0
        self._gauges_at = 0.0
        self._changed_at = math.inf
        """When subscriptions were changed last, if that is not laid out yet."""
        self.failure: ServiceError | None = None
        self.is_full = False
        self._full_at = math.inf
        """When the disk was full last, if that was lately."""
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,), name=f"tamis {name}", daemon=True)
            for name, work in (
                ("core", self._run), ("log", self._write_log), ("state", self._write_state), ("reader", self._read_log)
            )
        ]  # fmt: skip
        if log.is_shared:
            self._threads.append(
                threading.Thread(target=self._guarded, args=(self._follow,), name="tamis follower", daemon=True)
            )

    # -- For the loop

    def start(self) -> None:
        """Keep what the node has changed because settings are others than they were, then start the threads.

        Whoever is answered afterwards can rely on it: a crash does not bring the old permissions back.
        """
        for output in self._node.start():
            assert isinstance(output, Keep)
            self._state.write(output.changes, is_urgent=output.is_urgent)
            self._node.kept(output.number)
        for thread in self._threads:
            thread.start()

    @property
    def head(self) -> int:
        """The position of the newest event that is on disk."""
        return self._node.gate.logged

    @property
    def first(self) -> int:
        """The position of the oldest event of the log."""
        return self._log.first

    @property
    def is_durable(self) -> bool:
        """Is what is acknowledged on disk, and not only on its way there?"""
        return self._node.is_durable

    @property
    def is_ready(self) -> bool:
        """Are events taken?"""
        return not self.why_not_ready

    @property
    def why_not_ready(self) -> str:
        """Why no events are taken; empty if they are."""
        if self.failure is not None:
            return str(self.failure)
        if self._is_stopping:
            return "the broker is stopping"
        return "the disk is full" if self.is_full else ""

    def open(self, principal: Principal, listener: Callable[[list[Answer]], None]) -> Session:
        """Begin a session; its answers come to the listener, several at once, in the loop's thread."""
        session = Session(next(self._numbers), principal)
        self._listeners[session.number] = listener
        return session

    def hear(self, session: Session, request: Request) -> None:
        """Hand a request over; raise an `OverloadedError` if too much waits already."""
        if self.failure is not None:
            raise self.failure
        if self._is_stopping:
            raise OverloadedError("the broker is stopping", "another try at the one that comes after it", 1.0)
        if not isinstance(request, Publish):
            if self.inbox.control_count >= MOST_CONTROL:
                raise OverloadedError("too many requests are waiting", "another try later", 1.0)
            if isinstance(request, Subscribe | Unsubscribe):
                self._changed_at = time.perf_counter()
            if isinstance(request, LinkAsked) and self.inbox.put_behind_events(session, request):
                return
            if isinstance(request, Attach | Take) or (isinstance(request, Subscribe) and not request.is_durable):
                self._holding.add(session.number)
            self.inbox.post(self._node.hear, (request, session), wakes=False)
            self._wake_soon()
            return
        if self.tracing is not None:
            self.tracing.heard(request)
        self.inbox.put(session, request, self.limits)

    def _wake_soon(self) -> None:
        """Wake the core when the loop has done what it is about.

        Of a thousand connections that acknowledge one event, the loop reads very many in one turn. Were the core awake
        at the first of them, both threads would take turns with each of the others.
        """
        if not self._is_to_wake:
            self._is_to_wake = True
            self._loop.call_soon(self._wake_now)

    def _wake_now(self) -> None:
        self._is_to_wake = False
        self.inbox.wake()

    def close(self, session: Session) -> None:
        """End a session; its listener is not called again."""
        if self._listeners.pop(session.number, None) is not None and session.number in self._holding:
            self._holding.discard(session.number)
            self._post(self._node.hear, Close(), session)

    async def ask(self, principal: Principal, request: Request) -> Answer:
        """Ask once, and wait for the answer; raise the error if the node refuses."""
        answered: asyncio.Future[Answer] = self._loop.create_future()
        self._asked.add(answered)

        def listen(answers: list[Answer]) -> None:
            for answer in answers:
                if not answered.done() and (
                    getattr(answer, "request", None) == getattr(request, "request", 0) or isinstance(answer, Ended)
                ):
                    answered.set_result(answer)

        session = self.open(principal, listen)
        try:
            self.hear(session, request)
            answer = await answered
        finally:
            self._asked.discard(answered)
            self.close(session)
        if isinstance(answer, Refused):
            raise answer.error
        return answer

    def refresh(self) -> None:
        """Learn what others have dropped of a shared log; this asks the log, and blocks."""
        if self._log.is_shared:
            log: Any = self._log
            log.refresh()

    def position_at(self, time_us: int) -> int:
        """Return the first position at or after a time; this reads the disk."""
        return self._log.position_at(time_us)

    def gaps(self) -> tuple[Gap, ...]:
        """Return what a repair has left out of the log."""
        return self._log.gaps()

    def read(self, first: int, last: int) -> Iterator[Block]:
        """Read blocks; this reads the disk."""
        return self._log.read(first, last)

    def dead(self, subscriber: str) -> list[Buried]:
        """Return dead letters; this reads the disk."""
        return self._state.dead(subscriber)

    def permit(self, permissions: Permissions, limits: LimitSettings) -> None:
        """Take other permissions and limits."""
        self.limits = limits
        roster = self._node.roster
        roster.subscriptions_each, roster.subscribers_each = limits.subscriptions, limits.subscribers
        self._changed_at = time.perf_counter()
        self._post(self._node.permit, permissions)

    def needed(self) -> int:
        """Return the lowest position that a durable subscriber needs; 0 if it is not known in time. This blocks."""
        answers: SimpleQueue[int] = SimpleQueue()

        def answer(now: float) -> list[Output]:
            answers.put(self._node.needed)
            return []

        self._post(answer)
        try:
            return answers.get(timeout=NEEDED_WITHIN_S)
        except Empty:  # the core is very busy, or has failed
            return 0

    def drop(self, before: int) -> None:
        """Drop what is old from the log, in the thread that writes it."""
        self._blocks.put(lambda: self._post(self._dropped, self._log.drop(before)))

    def _dropped(self, first: int, now: float) -> list[Output]:
        self._node.dropped(first)
        return []

    async def stop(self) -> None:
        """Take nothing more, finish what was taken, keep how far everybody has come, and end the threads."""
        self._is_stopping = True
        self.inbox.wake()
        await asyncio.to_thread(self._join)

    def _join(self) -> None:
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    # -- The core's thread

    def _post(self, work: Callable[..., Sequence[Output]], *arguments: Any) -> None:
        """Let the core do something with these arguments and the time."""
        self.inbox.post(work, arguments)

    def _run(self) -> None:
        ticked = 0.0
        while self.failure is None:
            is_stopping = self._is_stopping  # looked at before the inbox: the loop puts nothing in any more if it is
            if self.inbox.is_empty and not self._node.has_work:
                if is_stopping and not self._taken and self._node.kept_all:
                    break
                self.inbox.wait(TICK_S)
            control, words, group = self.inbox.take(self.limits)
            said: list[Say] = []
            for work, arguments in control:
                self._carry(work(*arguments, time.time()), said)
            for session, request in words:
                self._carry(self._node.hear(request, session, time.time()), said)
            if group:
                self._take(group, said)
            begun = time.perf_counter()
            if begun - ticked >= TICK_S:
                ticked = begun
                if begun - self._changed_at >= SETTLED_AFTER_S:
                    self._changed_at = math.inf
                    self._node.settle()
                self._carry(self._node.tick(time.time()), said)
                self._measure(begun)
            if self._node.has_work and (not self.inbox.publication_count or self._catch_up_credit_s > 0):
                begun = time.perf_counter()
                self._carry(self._node.work(time.time()), said)
                took_s = time.perf_counter() - begun
                self._catch_up_credit_s -= took_s
                self._node.neighbours.pace(took_s)
            self._say(said)
        self._finish()

    def _finish(self) -> None:
        if self.failure is None:
            self._carry(self._node.stop(), [])
        self._blocks.put(None)
        self._changes.put(None)
        self._reads.put(None)

    def _take(self, group: Sequence[tuple[Session, Publish, int]], said: list[Say]) -> None:
        begun = time.perf_counter()
        now = time.time()
        self._traced.clear()
        self._carry(self._node.accept([(session, request) for session, request, _ in group], now), said)
        self._carry(self._node.match_taken(now), said)  # while the disk works
        took_s = time.perf_counter() - begun
        if self.tracing is not None and self._traced:
            self.tracing.matched(self._traced, int(now * 1e9))
        self.figures.match_seconds.observe(took_s)
        self.figures.group_events.observe(sum(len(request.events) for _, request, _ in group))
        share = self.catch_up_share
        self._catch_up_credit_s = min(1.0, max(self._catch_up_credit_s, 0.0) + took_s * share / max(1e-9, 1 - share))

    def _carry(self, outputs: Sequence[Output], said: list[Say]) -> None:
        """Hand what the node wants done to whoever does it."""
        for output in outputs:
            if isinstance(output, Say):
                said.append(output)
            elif isinstance(output, Append):
                self._taken.append((output.block.last, time.perf_counter()))
                if self.tracing is not None:
                    self._traced += self.tracing.appended(output.block)
                self._blocks.put(output.block)
            elif isinstance(output, Keep):
                self._changes.put(output)
            else:
                self._reads.put(output)

    def _say(self, said: Sequence[Say]) -> None:
        """Hand answers to the loop, all of a session together."""
        if not said:
            return
        by_session: dict[int, list[Answer]] = {}
        for each in said:
            by_session.setdefault(each.session, []).append(each.answer)
            if isinstance(each.answer, Deliveries):
                self.figures.deliveries["sent"] += len(each.answer.items)
                if self.tracing is not None:
                    self.tracing.delivered(each.answer.subscriber, each.answer.items)
        self._loop.call_soon_threadsafe(self._spread, by_session)

    def _spread(self, by_session: dict[int, list[Answer]]) -> None:
        for number, answers in by_session.items():
            listener = self._listeners.get(number)
            if listener is not None:
                listener(answers)

    def _measure(self, now: float) -> None:
        """Write down, now and then, what can only be counted."""
        if now - self._gauges_at < GAUGES_EVERY_S:
            return
        self._gauges_at = now
        if now - self._full_at >= FULL_FOR_S:
            self.is_full, self._full_at = False, math.inf
        figures, node = self.figures, self._node
        states = {"live": 0, "behind": 0, "far": 0}
        waiting = subscriptions = 0
        kinds = Counter(dict.fromkeys(("ranked", "sequence", "change"), 0))
        for subscriber in node.roster:
            states[subscriber.state] += 1
            waiting += subscriber.deliveries.queue_count
            subscriptions += len(subscriber.subscriptions)
            kinds.update(kind_of(each.effective) for each in subscriber.stateful.values() if not each.until)
        figures.subscribers.update({state: count - figures.subscribers[state] for state, count in states.items()})
        figures.behind_events, figures.subscriptions = waiting, subscriptions
        figures.remembering, figures.told = kinds, node.dispatcher.told.copy()
        figures.events_taken["link"] = node.counts["relayed"]
        figures.events_taken["client"] = node.counts["taken"] - node.counts["relayed"]
        figures.events_known = node.counts["known"]
        figures.events_refused.update(
            {kind: count - figures.events_refused[kind] for kind, count in node.refusals.items()}
        )
        figures.open_subscriptions = node.open_count
        for state in ("again", "done", "dead", "lost"):
            figures.deliveries[state] = node.dispatcher.counts[state]
        node.neighbours.measure(figures)
        figures.log_first, figures.log_head, figures.ready = self.first, self.head, int(self.is_ready)

    # -- The disks' threads

    def _write_log(self) -> None:
        while (item := self._blocks.get()) is not None:
            blocks = []
            while not callable(item):
                assert item is not None
                blocks.append(item)
                if self._blocks.empty() or len(blocks) >= 64:
                    item = None
                    break
                item = self._blocks.get()
                if item is None:
                    self._blocks.put(None)
                    break
            if blocks:
                self._append(blocks)
            if callable(item):
                item()

    def _append(self, blocks: Sequence[Block]) -> None:
        """Write blocks, and tell the core. A shared log gives each block its positions, perhaps in several parts."""
        begun = time.perf_counter()
        for group in ([block] for block in blocks) if self._log.is_shared else [blocks]:
            try:
                written = self._log.append(group)
            except StorageFullError as full:
                self.is_full, self._full_at = True, time.perf_counter()
                for block in group:
                    self._post(self._not_written, block, full)
                continue
            self.is_full = False
            if self._log.is_shared:
                self._post(self._appended, written)
            else:
                self._post(self._on_disk, written[-1].last)
        self.figures.disk_seconds.observe(time.perf_counter() - begun)

    def _on_disk(self, last: int, now: float) -> list[Output]:
        if self.tracing is not None:
            self.tracing.on_disk(last)
        outputs = self._node.on_disk(last, now)
        while self._taken and self._taken[0][0] <= last:
            _, taken = self._taken.popleft()
            self.figures.publish_to_deliver_seconds.observe(time.perf_counter() - taken)
        return outputs

    def _appended(self, parts: Sequence[Block], now: float) -> list[Output]:
        last, _ = self._taken.popleft()
        if self.tracing is not None:
            self.tracing.on_disk(last)
        return self._node.appended(parts)

    def _not_written(self, block: Block, error: StorageFullError, now: float) -> list[Output]:
        self._taken.remove(next(each for each in self._taken if each[0] == block.last))
        if self.tracing is not None:
            self.tracing.not_written(block, type(error).__name__)
        return self._node.not_written(block, error, now)

    def _write_state(self) -> None:
        while (item := self._changes.get()) is not None:
            keeps = [item]
            while not self._changes.empty():
                following = self._changes.get()
                if following is None:
                    self._changes.put(None)
                    break
                keeps.append(following)
            changes = [change for keep in keeps for change in keep.changes]
            while True:
                try:
                    self._state.write(changes, is_urgent=any(keep.is_urgent for keep in keeps))
                    break
                except StorageFullError:  # nothing may be forgotten: it waits for room
                    self.is_full, self._full_at = True, time.perf_counter()
                    time.sleep(0.5)
            self._post(self._kept, keeps[-1].number)

    def _kept(self, number: int, now: float) -> list[Output]:
        return self._node.kept(number)

    def _read_log(self) -> None:
        reader = RangeReader(self._log)
        while (read := self._reads.get()) is not None:
            blocks, through = reader.read(read.first, read.last, read.count)
            self._post(self._node.take_read, blocks, through, self._log.first)

    def _follow(self) -> None:
        """Take what others write to a shared log."""
        log: Any = self._log  # which has more to it than a log of one broker
        follower = log.follow(self._node.head + 1)
        try:
            while not self._is_stopping:
                if blocks := follower.next_blocks(timeout_s=0.2):
                    overtaken = 0
                    if follower.is_overtaken:
                        log.refresh()
                        overtaken = min(log.first, blocks[0].first)
                    self._post(self._followed, blocks, overtaken)
        finally:
            follower.close()

    def _followed(self, blocks: Sequence[Block], overtaken: int, now: float) -> list[Output]:
        """Take blocks of a shared log, which may have dropped what came before them (`overtaken`, or 0)."""
        outputs = self._node.overtaken(overtaken) if overtaken else []
        return outputs + self._node.follow(blocks, now)

    def _guarded(self, work: Callable[[], None]) -> None:
        """Do a thread's work; what goes wrong there is the end of this process, and is said."""
        name_for_the_system()
        try:
            work()
        except Exception as error:
            _LOGGER.exception("the broker cannot go on")
            failure = error if isinstance(error, ServiceError) else LogError(f"{type(error).__name__}: {error}")
            self.failure = self.failure or failure
            for queue in (self._blocks, self._changes, self._reads):
                queue.put(None)
            self.inbox.wake()
            self._loop.call_soon_threadsafe(self._give_up, failure)

    def _give_up(self, failure: ServiceError) -> None:
        """Tell everybody who waits for an answer that there will be none."""
        for answered in self._asked:
            if not answered.done():
                answered.set_exception(failure)
        self._on_failure(failure)
