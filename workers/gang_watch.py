"""The driver's watch over a running gang, and its verdict when something went wrong.

A member's report, an event, or the clock wakes the watch. Trouble is the first report of a failure, a worker
that the scheduler has lost, or the scheduler itself gone. Then the other members are ended and their reports
awaited for a bounded time, since the first sign of trouble is often only a consequence of the real one.

The only member of a gang that freezes without dying is seen when Dask gives up its worker (worker-ttl, 5 minutes).
"""

import queue
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from distributed import Client, Future, Scheduler

from boost_core.errors import BoostError, CollectiveError, DeadlinePassed, MemberLost
from workers import plugin
from workers.cluster_calls import SchedulerLost, bounded, call_workers, known_workers
from workers.errors import GangBroken, Loss, WorkersError
from workers.gang_member import Failure, Report
from workers.job import MemberOutcome, NoProgress, Progress
from workers.messages import RunEnded
from workers.relay import Receiver
from workers.stages import COMPILE

PREFIX = "edgewise-"  # of the names of gangs' tasks and topics
TICK_SECONDS = 0.25  # between two looks at the cancellation
ROLL_CALL_SECONDS = 1.0  # between two looks at the scheduler's workers
CALL_SECONDS = 5.0
SILENCE_SECONDS = 30.0  # after which a scheduler that does not answer is given up
RESULT_SECONDS = 60.0  # for fetching a member's report; that of rank 0 holds the model
ENDING_SECONDS = 3.0  # for the other members' reports once there is trouble
ANSWER_SECONDS = 1.0  # a worker that does not even say in this time that it was told to end is not waited for


# What other threads tell: the rank of a member whose task has ended, or a message of the member of rank 0.
Item = int | dict[str, Any]
News = queue.SimpleQueue[Item]


@dataclass(frozen=True)
class Gang:
    """A running gang: its members' workers and tasks by rank."""

    job_id: str
    run: int
    workers: list[str]
    futures: list[Future[Any]]

    def name(self, rank: int) -> str:
        """What to call a member in messages."""
        return f"worker {self.workers[rank]} (member {rank} of {len(self.workers)})"


class Watch:
    """Follows one gang to its end. Everything happens in the thread that calls `until_done`."""

    def __init__(
        self, client: Client, gang: Gang, progress: Progress, news: News, receiver: Receiver | None = None
    ) -> None:
        """receiver: of the gangs before this one in the same run, so that no round is handed on twice."""
        self._client = client
        self._gang = gang
        self._progress = progress
        self._receiver = receiver or Receiver(progress)
        self._news = news
        self._reports: dict[int, Report] = {}
        self._gone: dict[int, str] = {}
        self._scheduler_lost: SchedulerLost | None = None
        self._cancelled = False
        self._silent: list[int] = []
        self._noticed = 0.0
        self._heard_at = time.monotonic()
        self._next_roll_call = self._heard_at + ROLL_CALL_SECONDS

    def until_done(self) -> list[MemberOutcome]:
        """All members' outcomes. Errors: as train_on_gang."""
        for rank, future in enumerate(self._gang.futures):
            future.add_done_callback(partial(tell_done, self._news, rank))
        try:
            self._follow()
        except BaseException:  # of the follower, or an interrupt: it is told nothing any more
            self._receiver = Receiver(NoProgress())
            self._end_the_others()
            raise
        if self._in_trouble():
            self._noticed = time.monotonic()
            self._end_the_others()
            raise self._verdict()
        outcomes = [report.outcome for report in self._reports.values() if report.outcome is not None]
        self._receiver.rounds(next(outcome.rounds for outcome in outcomes if outcome.rank == 0))
        return outcomes

    def _follow(self) -> None:
        """Until all members have reported or there is trouble."""
        while self._waits_for_members() and not self._in_trouble():
            self._wait(TICK_SECONDS)
            self._pass_on_cancellation()
            if time.monotonic() >= self._next_roll_call:
                self._call_roll()

    def _wait(self, seconds: float) -> None:
        """Act on news in order; return when there is none left, or none came in time."""
        with suppress(queue.Empty):
            self._act_on(self._news.get(timeout=seconds))
            while True:
                self._act_on(self._news.get_nowait())

    def _act_on(self, news: Item) -> None:
        if isinstance(news, int):
            self._fetch_report(news)
        else:
            self._receiver.receive(news)

    def _fetch_report(self, rank: int) -> None:
        future = self._gang.futures[rank]
        if future.cancelled():
            self._gone[rank] = "had its task cancelled from outside the gang"
            self._call_roll()
            return
        try:
            self._reports[rank] = future.result(timeout=RESULT_SECONDS)
        except Exception as error:
            self._call_roll()  # a worker that died before its report was fetched takes it along
            if rank not in self._gone:
                self._reports[rank] = Report(rank, failure=Failure.of(error))

    # The state of the gang.

    def _waits_for_members(self) -> bool:
        return len(self._reports) < len(self._gang.workers)

    def _in_trouble(self) -> bool:
        failed = any(report.failure for report in self._reports.values())
        return failed or bool(self._gone) or self._scheduler_lost is not None

    def _pass_on_cancellation(self) -> None:
        """Tell the members; one that hears it is enough, so it is told again only if none has."""
        if not self._cancelled and self._progress.cancel_requested():
            arguments = (self._gang.job_id, self._gang.run)
            answers = call_workers(self._client, plugin.cancel, self._gang.workers, *arguments, seconds=CALL_SECONDS)
            self._cancelled = True in answers.values()

    def _call_roll(self) -> None:
        """Which of the members that have not reported are on workers that the scheduler has lost?"""
        try:
            known = known_workers(self._client, CALL_SECONDS)
            self._heard_at = time.monotonic()
        except SchedulerLost as error:
            # A busy scheduler may be late with an answer; a broken connection has lost the tasks for good.
            if self._client.status != "running" or time.monotonic() - self._heard_at > SILENCE_SECONDS:
                self._scheduler_lost = error
            return
        finally:
            self._next_roll_call = time.monotonic() + ROLL_CALL_SECONDS
        for rank, address in enumerate(self._gang.workers):
            if address not in known and rank not in self._reports:
                self._gone[rank] = "died"

    def _end_the_others(self) -> None:
        """Break the members that still run, and wait a bounded time for what those say that can be reached."""
        until = time.monotonic() + ENDING_SECONDS
        self._wait(0.0)  # members notice a death by themselves: most have reported by now
        self._call_roll()  # and who is dead could not be told
        self._tell_the_others()
        while set(self._missing()) - set(self._silent) and self._scheduler_lost is None and time.monotonic() < until:
            self._wait(TICK_SECONDS)
            self._call_roll()

    def _tell_the_others(self) -> None:
        missing = {self._gang.workers[rank]: rank for rank in self._missing()}
        if self._scheduler_lost is None and missing:
            arguments = (self._gang.job_id, self._gang.run, "another member of the gang failed")
            answers = call_workers(self._client, plugin.release, list(missing), *arguments, seconds=ANSWER_SECONDS)
            self._silent = [missing[address] for address, answer in answers.items() if isinstance(answer, TimeoutError)]
            self._call_roll()

    def _missing(self) -> list[int]:
        """Ranks of members that may still report."""
        ranks = range(len(self._gang.workers))
        return [rank for rank in ranks if rank not in self._reports and rank not in self._gone]

    # The verdict.

    def _verdict(self) -> BaseException:
        """The cause: a member's own error, else who died, else the most telling complaint about another."""
        failures = {rank: report.failure for rank, report in self._reports.items() if report.failure}
        rank = min(failures, key=lambda rank: (severity(failures[rank]), rank), default=None)
        if rank is not None and severity(failures[rank]) == 0:
            return self._own_error(rank, failures[rank])
        complaint = f"{self._gang.name(rank)} says: {failures[rank].text}" if rank is not None else ""
        causes = [f"{self._gang.name(gone)} {how} {self._when()}" for gone, how in self._gone.items()]
        if self._scheduler_lost is not None:
            return SchedulerLost("; ".join(filter(None, [f"{self._scheduler_lost} ({self._when()})", complaint])))
        told = "; ".join(filter(None, [*causes, complaint]))
        suspects = [address for address in self._gang.workers if address in complaint.partition(" says: ")[2]]
        loss = self._loss([*self._gone, *self._missing()])
        return GangBroken(told, replace(loss, suspects=tuple(suspects), on_rows=self._receiver.phase != COMPILE))

    def _loss(self, ranks: Sequence[int]) -> Loss:
        lost, silent = (tuple(self._gang.workers[rank] for rank in each) for each in (ranks, self._silent))
        return Loss(lost, self._noticed, silent)

    def _own_error(self, rank: int, failure: Failure) -> BaseException:
        error = failure.error()
        if isinstance(error, (WorkersError, BoostError)):
            error.add_note(f"raised by {self._gang.name(rank)} {self._when()}")
            return error
        failed = GangBroken(f"{self._gang.name(rank)} failed {self._when()}: {failure.text}", self._loss([rank]))
        failed.__cause__ = error
        failed.add_note(failure.trace)
        return failed

    def _when(self) -> str:
        if self._receiver.last_round:
            return f"after round {self._receiver.last_round}"
        return f"in phase {self._receiver.phase!r}" if self._receiver.phase else "before it began"


def severity(failure: Failure) -> int:
    """Order of blame, 0 first: own errors, then complaints about others, then what was done to the member."""
    error = failure.error()
    order: tuple[type[CollectiveError], ...] = (DeadlinePassed, MemberLost, RunEnded)
    if not isinstance(error, CollectiveError):
        return 0
    return 2 + order.index(type(error)) if type(error) in order else 1


def tell_done(news: News, rank: int, future: Future[Any]) -> None:
    """A member's task has ended. Called from a thread of Dask's."""
    news.put(rank)


@contextmanager
def subscribed(client: Client, topic: str) -> Iterator[News]:
    """Messages of a topic become news; afterwards neither the cluster nor the client knows of the topic.

    To be entered before the members' tasks are sent, or the first messages find no subscriber.
    """
    news: News = queue.SimpleQueue()
    client.subscribe_topic(topic, lambda event: news.put(event[1]))
    try:
        yield news
    finally:
        if client.status == "running":
            with suppress(Exception):  # the verdict matters, not whether a dying cluster could be swept
                if not bounded(client, client.run_on_scheduler, forget_topic, topic, seconds=CALL_SECONDS):
                    client.unsubscribe_topic(topic)
        getattr(client, "_event_handlers", {}).pop(topic, None)


def forget_topic(topic: str, dask_scheduler: Scheduler) -> bool:
    """Drop a finished gang's topic, and those of drivers that died; whether that went.

    The scheduler would keep their events for ever, and Dask has no public way to drop a topic. Its own
    unsubscribe drops no event, and would bring a dropped topic back.
    """
    topics = getattr(getattr(dask_scheduler, "_broker", None), "_topics", None)
    if topics is None:
        return False
    ours = [name for name in topics if name.startswith(PREFIX)]
    orphans = [name for name in ours if topics[name].subscribers.isdisjoint(dask_scheduler.clients)]
    for name in {topic, *orphans}:
        topics.pop(name, None)
    return True
