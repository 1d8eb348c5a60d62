"""Follows the rounds of a member: times them, passes them on, and writes checkpoints without holding them up."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from boost_core.collective import Collective
from boost_core.records import Phase, RoundRecord
from boost_core.start import ModelSoFar
from workers.checkpoint import Checkpoint, to_memory
from workers.checkpoint_store import CheckpointStore
from workers.job import Progress, RoundProgress, Warned
from workers.rounds_so_far import RoundsSoFar
from workers.shelf import Kept, brought_up
from workers.stages import BILLIONTH, Clock, Timed

# Of training time, for checkpoints: each holds all rounds so far, so the longer the model the rarer. Half of the per
# cent that all of them may take, as the last one is written when no round is left to pay for it.
SHARE = 0.005


class Writer:
    """Writes checkpoints of one job in a thread of its own, one at a time, at most one every so many seconds.

    New rounds are joined to those before in the member's thread: that is Python's work, which it would wait for anyway,
    and with two threads in turns it took seven times as long. The rest needs no Python. Checkpoints are rarer where the
    processor time of the last one would come to more than SHARE of the time between two; what
    waits for a disk or a network holds up no round. A checkpoint that cannot be written is told of once, until one can
    be again; the one before it stays.
    """

    def __init__(
        self,
        store: CheckpointStore,
        job_id: str,
        seconds: float,
        warn: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        processor: Callable[[], float] = time.thread_time,
    ) -> None:
        self._store, self._job_id, self._seconds, self._warn = store, job_id, seconds, warn
        self._so_far = RoundsSoFar()
        self._clock, self._processor = clock, processor
        self._last, self._cost, self._joined = clock(), 0.0, 0.0
        self._thread: threading.Thread | None = None
        self._trouble: str | None = None
        self._told: str | None = None
        self.written = -1  # rounds of the last checkpoint

    def due(self) -> bool:
        """Whether it is time, and nothing is being written; also tells of trouble. From the member's thread."""
        self._tell()
        if self._thread is not None and self._thread.is_alive():
            return False
        return self._clock() - self._last >= max(self._seconds, self._cost / SHARE)

    def begin(self, checkpoint: Checkpoint) -> None:
        """Write in the background, but for what is done here."""
        self._last, began = self._clock(), self._processor()
        self._so_far.bring_up(checkpoint.model)
        self._joined = self._processor() - began
        self._thread = threading.Thread(target=self._write, args=(checkpoint,), name="checkpoint", daemon=True)
        self._thread.start()

    def finish(self, checkpoint: Checkpoint | None) -> None:
        """Wait for what is being written, then write this one, if it is newer."""
        if self._thread is not None:
            self._thread.join()
        if checkpoint is not None and checkpoint.n_rounds > self.written:
            self._write(checkpoint)
        self._tell()

    def _write(self, checkpoint: Checkpoint) -> None:
        began = self._processor()
        try:
            self._store.put(self._job_id, checkpoint.n_rounds, to_memory(checkpoint, self._so_far))
        except Exception as error:  # training goes on whatever happens to a disk
            why = error.strerror if isinstance(error, OSError) and error.strerror else repr(error)
            self._trouble = (
                f"the checkpoint of round {checkpoint.n_rounds} could not be written: {why}; training goes on, and "
                f"the checkpoint of {describe(self.written)} stays"
            )
        else:
            self.written, self._trouble, self._told = checkpoint.n_rounds, None, None
        self._cost = self._joined + self._processor() - began

    def _tell(self) -> None:
        trouble = self._trouble
        if trouble is not None and self._told is None:
            self._told = trouble
            self._warn(trouble)


def describe(n_rounds: int) -> str:
    """Which checkpoint there is."""
    return f"round {n_rounds}" if n_rounds >= 0 else "an earlier run, if there is one,"


class Reports(NamedTuple):
    """What a member tells: whether it reports rounds, its writer, whether its gang is the first of the run, and whether
    rounds come with their stages.

    A first gang begins with what an earlier run has reported; a later one perhaps with rounds that nobody heard of.
    """

    speaks: bool
    writer: Writer | None
    first: bool
    profile: bool = False


class TrainingObserver:
    """Times the rounds and passes them on. Only rank 0 reports and writes: all members have the same records.

    collective: asked how long its exchanges took, if it has any.
    """

    def __init__(self, clock: Clock, progress: Progress, kept: Kept, collective: Collective, reports: Reports) -> None:
        self._clock, self._progress, self._kept = clock, progress, kept
        self.enter: Callable[[Phase], None] = clock.enter
        self._timed = collective if isinstance(collective, Timed) else None
        self._reports, self._writer, self._profile = reports.speaks, reports.writer, reports.profile
        self._before, self._train_before, self._exchanged_before = clock.stages(), clock.train(), self._exchanged()
        self._passed: list[tuple[float, Mapping[str, float] | None]] = []  # of rounds not reported yet, the first last
        base = kept.base
        pairs = zip(base.model.records, base.round_seconds, strict=True)
        self.rounds: list[RoundProgress] = [
            RoundProgress(record, seconds, known=reports.first) for record, seconds in pairs
        ]
        if reports.speaks and self.rounds:
            progress.rounds_done(self.rounds)

    def round_done(self, record: RoundRecord) -> None:
        if self._passed:
            (seconds, stages), reduction = self._passed.pop(), 0.0
        else:
            spent, exchanged = self._clock.train(), self._exchanged()
            seconds, reduction = (spent - self._train_before) * BILLIONTH, exchanged - self._exchanged_before
            self._train_before, self._exchanged_before = spent, exchanged
            stages = self._stages() if self._profile else None
        done = RoundProgress(record, seconds, reduction, stages=stages)
        self.rounds.append(done)
        if self._reports:
            self._progress.rounds_done([done])

    def passed(self, nanoseconds: Sequence[int]) -> None:
        """Rounds share the time since the last report, which includes that of the records of those before them, as they
        do the time in kernels."""
        spent = self._clock.train()
        seconds = (spent - self._train_before) * BILLIONTH
        self._train_before = spent
        stages = self._stages() if self._profile else None
        whole, n_rounds = sum(nanoseconds), len(nanoseconds)
        shares = [each / whole if whole else 1.0 / n_rounds for each in nanoseconds]
        self._passed = [
            (seconds * share, stages and {name: part * share for name, part in stages.items()})
            for share in reversed(shares)
        ]

    def _stages(self) -> dict[str, float]:
        """Where the time since the last call went."""
        now, before = self._clock.stages(), self._before
        self._before = now
        return now.less(before).by_name()

    def _exchanged(self) -> float:
        return 0.0 if self._timed is None else self._timed.seconds_spent

    def keep(self, so_far: Callable[[], ModelSoFar]) -> None:
        """The shelf finds the model here if this run breaks."""
        self._kept.so_far = so_far
        if self._writer is not None and self._writer.due():
            self._writer.begin(self.checkpoint())

    def checkpoint(self) -> Checkpoint:
        """What there is now."""
        now, seconds = brought_up(self._kept), tuple(each.seconds for each in self.rounds)
        # the rounds of a model that training goes on from took none of this job's time
        return replace(now, round_seconds=(0.0,) * (now.n_rounds - len(seconds)) + seconds)

    def stop_requested(self) -> bool:
        return self._progress.cancel_requested()


def teller(progress: Progress) -> Callable[[str], None]:
    """How to warn whoever follows."""
    return progress.warn if isinstance(progress, Warned) else lambda text: None
