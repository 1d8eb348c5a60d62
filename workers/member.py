"""What every member of a gang does: read its rows, bin them, compile, train. Large ones let another process compile."""

import ctypes
import resource
import sys
import time
from statistics import median

import pyarrow as pa

from boost_core.collective import Collective
from boost_core.model import Model
from boost_core.records import Phase
from boost_core.team import Team
from boost_core.training import TrainingResult, train
from boost_core.warm_up import WarmUp, warm_up
from workers.checkpoint import Checkpoint
from workers.checkpoint_store import checkpoints_at
from workers.job import Assignment, MemberOutcome, Progress
from workers.kernel_maker import Order, growth_made_apart, make_kernels, worth_a_process
from workers.library_pages import give_back_libraries
from workers.loading import Loader
from workers.machine_limits import cpu_limit
from workers.observer import Reports, TrainingObserver, Writer, teller
from workers.shelf import Kept, own_shelf
from workers.stages import COMPILE, READ, Clock, kernel_clock

M_MMAP_THRESHOLD, MAPPED = -3, 8 << 20  # mallopt's name for it; smaller arrays are not worth fresh pages each round


def available_cores() -> int:
    """Cores this process may use."""
    return cpu_limit()


def peak_memory_bytes() -> int:
    """Greatest resident size of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) if sys.platform == "darwin" else int(peak) * 1024  # kilobytes except on macOS


def give_back(team: Team) -> None:
    """Give memory that reading or compiling has freed back to the system, where allocators would keep it: what training
    needs comes on top. Arrow's keeps a heap for each thread.

    From then on arrays of MAPPED bytes go back as soon as they are freed: glibc raises that limit with every such array
    that it sees, and a round's leaves then stay in its heap beside those of the next one.
    """
    team.together(team.threads, lambda rank: pa.default_memory_pool().release_unused())
    system = ctypes.CDLL(None) if sys.platform == "linux" else None
    if system is not None and hasattr(system, "malloc_trim"):  # glibc alone has it
        system.malloc_trim(0)
        system.mallopt(M_MMAP_THRESHOLD, MAPPED)


def run_member(assignment: Assignment, collective: Collective, progress: Progress) -> MemberOutcome:
    """Do one member's part of a job.

    Errors: DataError (the data changed since they were planned), CheckpointRefused (since the checkpoint was written),
    ConfigError, BoundBroken, CollectiveError.
    """
    clock, started = Clock(), time.perf_counter()
    with Team(assignment.threads, kernel_clock()) as team:
        clock.watch(team.times, collective)
        kept = _prepare(assignment, collective, team, (clock, progress))
        collective.barrier()
        progress.phase("train")
        result, observer = _train(assignment, collective, team, kept, (clock, progress))
    stages = clock.stages()
    seconds = {**stages.phases(), "total": time.perf_counter() - started}
    seconds["per_round"] = median(each.seconds for each in observer.rounds) if observer.rounds else 0.0
    return MemberOutcome(
        rank=assignment.rank,
        model=_model(assignment, kept, result) if assignment.rank == 0 else None,
        stop_reason=result.stop_reason,
        rounds=tuple(observer.rounds) if assignment.rank == 0 else (),
        seconds=seconds,
        peak_memory_bytes=peak_memory_bytes(),
        n_rows=kept.data.train.n_rows,
        margins=result.margins,
        stages=stages,
    )


def _prepare(assignment: Assignment, collective: Collective, team: Team, told: tuple[Clock, Progress]) -> Kept:
    """Read the rows and see to it that all kernels are compiled."""
    clock, progress = told
    plan = assignment.job.plan
    kind = WarmUp(collective.size > 1, plan.weight is not None, plan.multi_label, plan.valid is not None)
    order = Order.of(assignment.job, kind)
    if worth_a_process(assignment, order):
        clock.enter(COMPILE)
        progress.phase(COMPILE)
        make_kernels(order, progress.cancel_requested)
        clock.enter(READ)
    with growth_made_apart(assignment, order, progress.cancel_requested) as growth_is_made:
        progress.phase(READ)
        kept = Loader(assignment, collective, team, clock.enter).load(own_shelf())
        give_back(team)
        clock.enter(COMPILE)
        progress.phase(COMPILE)
        warm_up(assignment.job.config, len(plan.classes), kind, growth_is_made)
    give_back(team)
    give_back_libraries()
    return kept


def _train(
    assignment: Assignment, collective: Collective, team: Team, kept: Kept, told: tuple[Clock, Progress]
) -> tuple[TrainingResult, TrainingObserver]:
    """All rounds that are missing. The last checkpoint holds all that were run, also of a job that was cancelled."""
    clock, progress = told
    writer = _writer(assignment, progress)
    reports = Reports(assignment.rank == 0, writer, assignment.job.attempt == 0, assignment.job.profile)
    observer = TrainingObserver(clock, progress, kept, collective, reports)
    last: Checkpoint | None = None
    try:
        result = train(kept.data, assignment.job.config, collective, observer, team, kept.start)
        observer.enter(Phase.CHECKPOINT)
        last = observer.checkpoint() if writer else None
    finally:
        kept.freeze()
        if writer is not None:
            writer.finish(last)
    return result, observer


def _writer(assignment: Assignment, progress: Progress) -> Writer | None:
    """Only the member of rank 0 writes, where checkpoints are wanted."""
    job = assignment.job
    if assignment.rank != 0 or job.checkpoints is None:
        return None
    store = checkpoints_at(job.checkpoints.folder)
    return Writer(store, job.checkpoint_name, job.checkpoints.seconds, teller(progress))


def _model(assignment: Assignment, kept: Kept, result: TrainingResult) -> Model:
    plan, binning = assignment.job.plan, kept.data.binning
    return Model(
        config=assignment.job.config,
        features=plan.features,
        label=plan.label,
        classes=plan.classes,
        thresholds=binning.thresholds,
        threshold_start=binning.threshold_start,
        forest=result.forest,
        figures=result.figures(),
        fingerprint=kept.base.fingerprints[0],
        n_rows=kept.base.n_rows,
        temperature=result.temperature,
        conditions=result.conditions(),
    )
