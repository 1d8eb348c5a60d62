"""Forms a job's gang again when it broke, until it has trained, or until it is no use.

    gang broke -> who is left, and what do they hold -> new gang, new fence -> only lost rows move -> the rounds go on

A break is of use as long as rounds are finished between two of them; a member that is lost twice on the same rows
without that fails the job with its reason, unless it was compiling, and so do four breaks of any kind.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from distributed import Client

from boost_core.shard import RowRange
from workers.errors import GangBroken, GangUnavailable, Loss, TrainingFailed
from workers.job import ATTEMPTS, Assignment, MemberOutcome, Progress, TrainingJob, Warned
from workers.restart import Remains, clear_shelves, stored, survey

Attempt = Callable[[TrainingJob, "Plan"], list[MemberOutcome]]


@dataclass
class Plan:
    """How an attempt forms its gang. first: nothing is left of a gang before; avoid: workers that are not taken;
    doubted: that did not answer lately; noticed: when the gang before broke, on time.monotonic(). assignments: filled
    in once there is a gang, by address."""

    remains: Remains
    n_workers: int | None
    first: bool = True
    avoid: tuple[str, ...] = ()
    doubted: tuple[str, ...] = ()
    noticed: float = 0.0
    assignments: dict[str, Assignment] | None = None

    def lost_rows(self, loss: Loss) -> list[RowRange]:
        """Training rows that may be to blame for a loss: those of the lost workers."""
        if not loss.on_rows or self.assignments is None:
            return []
        return [rows for address in loss.workers for rows in self.assignments[address].train_ranges]


@dataclass
class _Break:
    """The last one: how far the job had come, and what was lost."""

    n_rounds: int
    lost: list[RowRange]
    times: int = 1


class Recovery:
    """One run of a job over all its gangs. most: how often a gang may break in all."""

    def __init__(self, client: Client, job: TrainingJob, progress: Progress, most: int) -> None:
        self._client, self._job, self._progress = client, job, progress
        self._most = min(most, ATTEMPTS - 1)
        self._last: _Break | None = None

    def run(self, attempt: Attempt, n_workers: int | None) -> list[MemberOutcome]:
        """Attempt after attempt. Errors: those of the attempt; the last GangBroken where another would be no use."""
        plan = Plan(stored(self._job), n_workers)
        try:
            for number in range(self._most + 1):
                try:
                    return attempt(replace(self._job, attempt=number), plan)
                except GangBroken as broken:
                    if number == self._most:
                        raise
                    plan = self._after(broken, plan, number)
                except GangUnavailable as error:
                    if plan.first:
                        raise
                    raise GangUnavailable(f"the gang broke and could not be formed again: {error}") from error
        finally:
            if self._last is not None or self._most:
                with suppress(TrainingFailed):  # a scheduler that is gone has taken the workers along
                    clear_shelves(self._client, self._job.job_id)
        raise AssertionError("unreachable")

    def _after(self, broken: GangBroken, plan: Plan, attempt: int) -> Plan:
        """The next plan. Errors: GangBroken, which says why there is none, if it came twice in one place."""
        # from now on the job's checkpoints are its own, whether or not it was resumed
        loss = broken.loss
        remains = survey(self._client, replace(self._job, attempt=attempt, resume=True), loss.silent)
        rows, last = plan.lost_rows(loss), self._last
        stuck = last is not None and remains.n_rounds <= last.n_rounds
        if last is not None and stuck and _meet(rows, last.lost):
            told = ", ".join(f"{start}..{stop - 1}" for start, stop in rows)
            raise _given_up(broken, f"members were lost twice on the rows {told} without a finished round between")
        if last is not None and stuck and last.times >= 3:
            raise _given_up(broken, "the gang broke four times without a finished round between")
        self._last = _Break(remains.n_rounds, rows, last.times + 1 if last is not None and stuck else 1)
        self._tell(broken, remains)
        size = len(plan.assignments) if plan.assignments else plan.n_workers
        # no one is lost and yet it broke again: two of them cannot reach each other, and one must go
        avoid = loss.suspects[:1] if stuck and not loss.workers else ()
        return Plan(
            remains,
            size,
            first=False,
            avoid=(*plan.avoid, *avoid),
            doubted=remains.silent,
            noticed=loss.noticed,
        )

    def _tell(self, broken: GangBroken, remains: Remains) -> None:
        if isinstance(self._progress, Warned):
            self._progress.warn(
                f"{broken}; going on after round {remains.n_rounds} with the rows that {len(remains.held)} workers "
                f"still hold (found {time.monotonic() - broken.loss.noticed:.1f} s after the break)"
            )


def _given_up(broken: GangBroken, why: str) -> GangBroken:
    """The break with why it was the last one, in the text itself: that alone becomes the reason of the job."""
    return GangBroken(f"{broken}; not tried again: {why}", broken.loss)


def _meet(first: list[RowRange], second: list[RowRange]) -> bool:
    return any(a < d and c < b for a, b in first for c, d in second)
