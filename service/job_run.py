"""One run of one job: trains it, stores what it reports, and registers the model it gives."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from boost_core.records import StopReason
from service.artifacts import ArtifactStore
from service.errors import LeaseLost, StoreUnavailable, WrongState, is_deliberate
from service.job_states import JobState
from service.lease_keeper import LeaseKeeper
from service.registry import ModelRegistry
from service.requests import parse, prepare
from service.store import Job, JobStore, NewVersion, RoundEntry, VersionStore
from service.trainer import Trainer
from service.training_answer import training_answer
from service.warm_start import check_start, find_start
from workers.cluster_calls import SchedulerLost
from workers.data_plan import DataPlan
from workers.errors import CheckpointsUnavailable, GangUnavailable, TrainingFailed
from workers.job import CheckpointSettings, RoundProgress, TrainingJob, TrainingOutcome
from workers.memory_need import estimate, facts_of
from workers.model_file import model_sha256, to_bytes

# A follower sees rounds this late at most; a store on a disk takes some 10 ms for each write.
FLUSH_SECONDS = 0.25
FLUSH_ROUNDS = 500
TRAIN_PHASE = "train"
RETRY_SECONDS = 0.5  # a restarted database is back within some seconds

Result = TypeVar("Result")

log = logging.getLogger(__name__)


class RunProgress:
    """What the training tells (workers.job.Progress), written to the store in batches.

    Nothing is raised into the training when the lease is lost: it is asked to stop instead, so that every
    member of a gang ends in the same round.
    """

    def __init__(self, store: JobStore, keeper: LeaseKeeper, stopping: threading.Event) -> None:
        self._store = store
        self._keeper = keeper
        self._stopping = stopping
        self._running = False
        self._waiting: list[RoundEntry] = []
        self._flushed_at = time.monotonic()

    def phase(self, name: str) -> None:
        if name == TRAIN_PHASE and not self._running:
            self._running = True
            self._enter_running()
        elif name != TRAIN_PHASE:
            self._note_phase(name)

    def rounds_done(self, batch: Sequence[RoundProgress]) -> None:
        self.phase(TRAIN_PHASE)
        self._waiting += map(_entry, batch)
        late = time.monotonic() - self._flushed_at >= FLUSH_SECONDS
        if late or len(self._waiting) >= FLUSH_ROUNDS:
            self.flush()

    def warn(self, text: str) -> None:
        log.warning("job %s: %s", self._keeper.lease.job_id, text)
        try:
            self._store.note(self._keeper.lease, text)
        except LeaseLost:
            self._keeper.lost.set()
        except StoreUnavailable as error:
            log.warning("job %s: a note is lost: %s", self._keeper.lease.job_id, error)

    def cancel_requested(self) -> bool:
        return self._keeper.cancelled.is_set() or self._keeper.lost.is_set() or self._stopping.is_set()

    def flush(self) -> None:
        """Write the rounds that wait."""
        self._flushed_at = time.monotonic()
        try:
            if self._store.append_rounds(self._keeper.lease, self._waiting) is JobState.CANCELLING:
                self._keeper.cancelled.set()  # heard of here before the next heartbeat
            self._waiting = []
        except LeaseLost:
            self._waiting = []
            self._keeper.lost.set()
        except StoreUnavailable as error:
            log.warning("rounds of job %s wait: %s", self._keeper.lease.job_id, error)

    @property
    def ran(self) -> bool:
        """Whether rounds were trained: the workers were there."""
        return self._running

    def finish(self) -> None:
        """Write the last rounds. Raises StoreUnavailable if they still wait then."""
        self.flush()
        if self._waiting:
            raise StoreUnavailable(f"{len(self._waiting)} rounds are not stored yet")

    def _note_phase(self, name: str) -> None:
        """Tell what goes on before the first round; a training never waits for that to be stored."""
        try:
            self._store.enter_phase(self._keeper.lease, name)
        except LeaseLost:
            self._keeper.lost.set()
        except StoreUnavailable as error:
            log.warning("phase %s of job %s is not stored: %s", name, self._keeper.lease.job_id, error)

    def _enter_running(self) -> None:
        try:
            patiently(lambda: self._store.change(self._keeper.lease, JobState.RUNNING), self._keeper)
        except WrongState:
            # A cancellation came between, unless the change was stored and only the answer to it lost.
            if self._store.get(self._keeper.lease.job_id).state is JobState.CANCELLING:
                self._keeper.cancelled.set()
        except LeaseLost:
            self._keeper.lost.set()


def queued_seconds(job: Job) -> float:
    """How long the job waited before this run: since it was submitted, or queued again."""
    since = job.queued_at or job.submitted_at
    return 0.0 if job.started_at is None else max(0.0, (job.started_at - since).total_seconds())


def _entry(progress: RoundProgress) -> RoundEntry:
    figures = {**progress.record.to_dict(), "stages": progress.stages}
    return RoundEntry(figures.pop("round"), figures, progress.seconds, progress.reduction_seconds, progress.known)


class RunStore(JobStore, VersionStore, Protocol):
    """Jobs, and the models that they may go on from."""


class JobRun:
    """Carries one taken job to the end of its run. `stopping` is set when the server shuts down."""

    def __init__(
        self,
        store: RunStore,
        artifacts: ArtifactStore,
        trainer: Trainer,
        data_root: Path,
        stopping: threading.Event,
        checkpoints: CheckpointSettings | None = None,
    ) -> None:
        self._checkpoints = checkpoints
        self._store = store
        self._artifacts = artifacts
        self._trainer = trainer
        self._data_root = data_root
        self._stopping = stopping

    def execute(self, job: Job, keeper: LeaseKeeper, *, last_try: bool = False) -> bool:
        """Train; afterwards the job is over, or queued again: the server stops, the cluster is gone, or the job's
        workers or checkpoints were not to be had. False only in this last case; on the last try that ends the job.
        Raises LeaseLost.
        """
        progress = RunProgress(self._store, keeper, self._stopping)
        try:
            plan, outcome = self._train(job, keeper, progress)
            patiently(progress.finish, keeper)
            if keeper.lost.is_set():
                raise LeaseLost(f"run {job.run} of job {job.id} was taken over while it trained")
            if outcome.stop_reason is StopReason.CANCELLED:
                self._stopped(keeper)
            else:
                self._register(job, keeper, plan, outcome)
        except (LeaseLost, StoreUnavailable):
            # Nothing can be written now: the lease ends by itself, and the job is taken up again.
            raise
        except SchedulerLost as error:
            self._paused(keeper, error)
        except (CheckpointsUnavailable, GangUnavailable) as error:
            if last_try and not progress.ran:
                self._failed(keeper, error)
                return True
            self._paused(keeper, error, counts=progress.ran)
            return progress.ran
        except Exception as error:
            self._failed(keeper, error)
        return True

    def _train(self, job: Job, keeper: LeaseKeeper, progress: RunProgress) -> tuple[DataPlan, TrainingOutcome]:
        request = parse(job.body)
        # Planned again: the data may have changed since the job was accepted.
        plan, config = prepare(request, self._data_root)
        start = find_start(request, ModelRegistry(self._store, self._artifacts, 1))
        model = start.model if start else None
        check_start(model, plan, config)
        place = tuple(job.place or ())
        training = TrainingJob(
            job.id,
            job.run,
            plan,
            config,
            request.resources.threads,
            checkpoints=self._checkpoints,
            resume=self._checkpoints is not None,
            warm_start=model,
            profile=request.profile,
        )
        fewest = self._trainer.fewest(estimate(facts_of(plan, config)), place)
        return plan, self._trainer.train(training, len(place), progress, place, fewest)

    def _register(self, job: Job, keeper: LeaseKeeper, plan: DataPlan, outcome: TrainingOutcome) -> None:
        sha256 = model_sha256(outcome.model)
        answer = training_answer(outcome, plan, sha256, queued_seconds(job))
        # The run is in the key: an older run that wakes up cannot touch this one's file.
        key = f"{job.id}.{job.run}.model"
        self._artifacts.put(key, to_bytes(outcome.model))
        try:
            version = NewVersion(job.name, sha256, key, outcome.model.metadata())
            patiently(lambda: self._store.complete(keeper.lease, answer, version), keeper)
        except WrongState:
            # Cancelled after the last round.
            self._artifacts.delete(key)
            self._stopped(keeper)
        except StoreUnavailable:
            # It may have been registered without this side hearing of it: a file too many is harmless.
            raise
        except BaseException:
            if not self._is_registered(job):
                self._artifacts.delete(key)
                raise

    def _is_registered(self, job: Job) -> bool:
        """Whether the run's success was stored, though the answer to that was lost."""
        now = self._store.get(job.id)
        return now.state is JobState.SUCCEEDED and now.run == job.run

    def _stopped(self, keeper: LeaseKeeper) -> None:
        """The training ended early, and its workers are free."""
        lease = keeper.lease
        if self._store.get(lease.job_id).state is JobState.CANCELLING:
            self._store.change(lease, JobState.CANCELLED, "cancelled on request")
        else:
            self._store.give_back(lease, "the server was stopped", counts=False)

    def _paused(self, keeper: LeaseKeeper, error: TrainingFailed, *, counts: bool = True) -> None:
        """The workers are gone: the job waits for others in the queue, and goes on from its last checkpoint."""
        log.warning("job %s is queued again: %s", keeper.lease.job_id, error)
        self._store.give_back(keeper.lease, str(error), counts=counts)

    def _failed(self, keeper: LeaseKeeper, error: Exception) -> None:
        log.error("job %s failed: %s", keeper.lease.job_id, error, exc_info=not is_deliberate(error))
        if self._store.get(keeper.lease.job_id).state is JobState.CANCELLING:
            self._store.change(
                keeper.lease, JobState.CANCELLED, f"cancelled on request; it also failed: {_reason(error)}"
            )
        else:
            self._store.change(keeper.lease, JobState.FAILED, _reason(error))


def patiently(write: Callable[[], Result], keeper: LeaseKeeper) -> Result:
    """Write what must not be lost: again while the store does not answer, as long as the lease can still be ours."""
    until = time.monotonic() + keeper.seconds
    while True:
        try:
            return write()
        except StoreUnavailable:
            if time.monotonic() >= until or keeper.lost.wait(RETRY_SECONDS):
                raise


def _reason(error: Exception) -> str:
    if is_deliberate(error):
        return str(error)
    return f"internal error ({type(error).__name__}); the server's log has the details"
