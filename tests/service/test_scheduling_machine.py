"""Jobs, runners, workers and strangers in whatever order Hypothesis finds: nobody shares a worker, and all jobs end.

The decisions, the store, the leases of workers and the runner's shell are the real ones. Played are time, the workers'
processes, and the trainings: a gang takes its leases one after another, others between.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from service.errors import WrongState
from service.job_states import JobState
from service.migrate import upgrade
from service.runner import Runner, RunnerSettings
from service.scheduling import Place, Site
from service.sql_engine import memory_engine
from service.sql_store import SqlStore
from service.store import Job, Lease, NewJob, NewVersion, Offer
from service.stuck_jobs import StuckJobs
from workers.lease import Lease as WorkerLease
from workers.lease import LeaseBook

GB = 10**9
LEASE_SECONDS = 30.0
LAPSE_SECONDS = 60.0
WAIT_SECONDS = 600.0
SIZES = (2, 4)


class Listener:
    """Stands for a worker's endpoint."""

    def close(self) -> None:
        """Nothing is open."""

    def abort(self, reason: str) -> None:
        """The member hears of it when it is asked."""


class PlayedTrainer:
    """What a runner asks of its trainer, about workers of the machine."""

    def __init__(self, machine: "Machine") -> None:
        self._machine = machine

    def prepare(self) -> None:
        """Connected."""

    def site(self, own_busy: bool) -> Site:
        workers = [
            Place(address, size, self._machine.books[address].holder is not None)
            for address, size in self._machine.sizes.items()
        ]
        return Site(tuple(workers), Place("", 8 * GB, own_busy))

    def offer(self) -> Offer:
        return Offer((), 8 * GB)


class SteppedRunner(Runner):
    """Looks when it is told to, and hands what it starts to the machine."""

    def __init__(self, machine: "Machine", owner: str) -> None:
        chosen = RunnerSettings(owner, None, LEASE_SECONDS, 1.0, WAIT_SECONDS)
        super().__init__(machine.store, PlayedTrainer(machine), lambda _stopping: None, chosen)  # type: ignore[arg-type, return-value]
        self.owner = owner
        self._stuck = StuckJobs(lambda: machine.seconds)
        self._machine = machine

    def look(self) -> None:
        self._attempt()
        assert self._trouble is None, self._trouble

    def _begin(self, job: Job) -> None:
        self._jobs[job.id] = job, None  # type: ignore[assignment]
        self._machine.gangs[job.id] = Gang(job, self)

    def ended(self, job: Job, placed: bool) -> None:
        self._jobs.pop(job.id)
        if placed:
            self._stuck.forget(job.id)
        else:
            self._stuck.not_to_be_had(job.id)


@dataclass
class Gang:
    """A job at work. seats: leases of the workers that it has; running: all were there and its members began."""

    job: Job
    runner: SteppedRunner
    seats: dict[str, WorkerLease] = field(default_factory=dict)
    running: bool = False

    @property
    def lease(self) -> Lease:
        return Lease(self.job.id, self.job.run, self.runner.owner)


class Machine(RuleBasedStateMachine):
    """The world around the scheduler."""

    def __init__(self) -> None:
        super().__init__()
        engine = memory_engine()
        upgrade(engine)
        self.seconds = 0.0
        self.store = SqlStore(engine, lambda: datetime(2031, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds))
        self.books: dict[str, LeaseBook] = {}
        self.sizes: dict[str, int] = {}
        self.gangs: dict[str, Gang] = {}
        self.strangers: dict[str, WorkerLease] = {}
        self.n_workers, self.n_owners = 0, 0
        self.runners = [self.new_runner(), self.new_runner()]
        for size in (*SIZES, SIZES[-1]):
            self.worker_joins(size)

    def teardown(self) -> None:
        """From any state on, all jobs come to their end in bounded time, if nothing else happens."""
        for address in list(self.strangers):
            self.stranger_ends(address)
        n_jobs = len(self.store.list_jobs(None, 1000, None))
        for _ in range(3 * n_jobs + 30):
            for runner in self.runners:
                runner.look()
            for gang in list(self.gangs.values()):
                while gang.job.id in self.gangs and not gang.running:
                    self.step(gang)
                if gang.job.id in self.gangs:
                    self.finish(gang)
            self.nobody_shares()
            self.seconds += 40
        for job in self.store.list_jobs(None, 1000, None):
            assert job.state.is_final, (job.state, job.reason)
            if job.state is JobState.FAILED:
                assert "waited 600 s for that to change" in (job.reason or "")
        self.store.close()

    def new_runner(self) -> SteppedRunner:
        self.n_owners += 1
        return SteppedRunner(self, f"runner{self.n_owners}")

    def some(self, data: st.DataObject, things: Any) -> Any:
        return data.draw(st.sampled_from(list(things)))

    @rule(
        workers=st.sampled_from([None, None, 0, 1, 2, 3]),
        rows=st.sampled_from([0, 0, 3, 5]),
        priority=st.integers(-1, 1),
    )
    def submit(self, workers: int | None, rows: int, priority: int) -> None:
        need = {"member_bytes": GB // 2, "row_bytes": rows * GB}
        self.store.submit(NewJob("m", {}, "h", 9, None, priority, workers, **need))

    @rule(which=st.integers(0, 1))
    def look(self, which: int) -> None:
        self.runners[which].look()

    @precondition(lambda self: any(not gang.running for gang in self.gangs.values()))
    @rule(data=st.data())
    def gang_leases(self, data: st.DataObject) -> None:
        self.step(self.some(data, [gang for gang in self.gangs.values() if not gang.running]))

    def step(self, gang: Gang) -> None:
        """One more lease; when all are there the members begin, when one is not to be had all are given back."""
        job = gang.job
        if self.store.extend(gang.lease, LEASE_SECONDS) is JobState.CANCELLING:
            self.end(gang, JobState.CANCELLED)
            return
        missing = [address for address in job.place or () if address not in gang.seats]
        if missing:
            taken = self.books[missing[0]].take(job.id, job.run, LAPSE_SECONDS) if missing[0] in self.books else None
            if isinstance(taken, WorkerLease):
                gang.seats[missing[0]] = taken
            else:
                self.end(gang, None)
            return
        for address in gang.seats:
            if address not in self.books or self.books[address].holder != (job.id, job.run):
                self.end(gang, None)  # a lease has lapsed, or the worker is gone
                return
        for address in gang.seats:
            self.books[address].begin(job.id, job.run, job.id)
        gang.running = True
        self.store.change(gang.lease, JobState.RUNNING)

    def end(self, gang: Gang, state: JobState | None, *, placed: bool = False) -> None:
        """The workers are free, then the store hears of it; None: the job goes back to the queue."""
        self.free(gang)
        if state is None:
            self.store.give_back(gang.lease, "workers", counts=False)
        elif state is JobState.SUCCEEDED:
            self.store.complete(gang.lease, {}, NewVersion("m", "f" * 64, "a", {}))
        else:
            self.store.change(gang.lease, state)
        del self.gangs[gang.job.id]
        gang.runner.ended(gang.job, placed or state is not None)

    def free(self, gang: Gang) -> None:
        for address, seat in gang.seats.items():
            if address in self.books and seat.began:
                self.books[address].end(seat)
            elif address in self.books:
                self.books[address].release(*seat.holder, "not needed")

    @precondition(lambda self: any(gang.running for gang in self.gangs.values()))
    @rule(data=st.data())
    def a_training_ends(self, data: st.DataObject) -> None:
        self.finish(self.some(data, [gang for gang in self.gangs.values() if gang.running]))

    def finish(self, gang: Gang) -> None:
        cancelled = self.store.extend(gang.lease, LEASE_SECONDS) is JobState.CANCELLING
        self.end(gang, JobState.CANCELLED if cancelled else JobState.SUCCEEDED)

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """A cancelled job is out of the queue at once, or ends at its gang's next step or round."""
        if jobs := self.store.list_jobs(None, 1000, None):
            try:
                self.store.request_cancel(self.some(data, jobs).id)
            except WrongState:
                return

    @precondition(lambda self: len(self.books) > 1)
    @rule(data=st.data())
    def worker_dies(self, data: st.DataObject) -> None:
        """Its gang goes on with a free worker, also one that was given to another job; else it is queued again."""
        address = self.some(data, self.books)
        del self.books[address], self.sizes[address]
        self.strangers.pop(address, None)
        for gang in [gang for gang in self.gangs.values() if gang.running and address in gang.seats]:
            del gang.seats[address]
            free = [name for name, book in self.books.items() if book.holder is None]
            cancelled = self.store.extend(gang.lease, LEASE_SECONDS) is JobState.CANCELLING
            if cancelled or not free:
                self.end(gang, JobState.CANCELLED if cancelled else None, placed=True)
                continue
            taken = self.books[free[0]].take(gang.job.id, gang.job.run, LAPSE_SECONDS)
            assert isinstance(taken, WorkerLease)
            self.books[free[0]].begin(gang.job.id, gang.job.run, gang.job.id)
            gang.seats[free[0]] = taken

    @precondition(lambda self: len(self.books) < 5)
    @rule(size=st.sampled_from(SIZES))
    def worker_joins(self, size: int) -> None:
        self.n_workers += 1
        name = f"w{self.n_workers}"
        self.books[name] = LeaseBook(Listener, lambda: self.seconds)  # type: ignore[arg-type]
        self.sizes[name] = size * GB

    @rule(which=st.integers(0, 1))
    def runner_dies(self, which: int) -> None:
        """Members that run end with their driver; leases that nobody took up lapse; jobs are queued again in time."""
        dead = self.runners[which]
        for gang in [gang for gang in self.gangs.values() if gang.runner is dead]:
            if gang.running:
                self.free(gang)
            del self.gangs[gang.job.id]
        self.runners[which] = self.new_runner()

    @rule(data=st.data())
    def stranger_comes(self, data: st.DataObject) -> None:
        """A command line trains on a worker of the same cluster, past the store."""
        free = [address for address, book in self.books.items() if book.holder is None]
        if free:
            address = self.some(data, free)
            taken = self.books[address].take(f"cli{self.seconds}", 1, LAPSE_SECONDS)
            assert isinstance(taken, WorkerLease)
            self.books[address].begin(*taken.holder, "cli")
            self.strangers[address] = taken

    @precondition(lambda self: bool(self.strangers))
    @rule(data=st.data())
    def a_stranger_ends(self, data: st.DataObject) -> None:
        self.stranger_ends(self.some(data, self.strangers))

    def stranger_ends(self, address: str) -> None:
        self.books[address].end(self.strangers.pop(address))

    @rule(seconds=st.sampled_from([1, 10, 25]))
    def time_passes(self, seconds: int) -> None:
        for gang in self.gangs.values():
            self.store.extend(gang.lease, LEASE_SECONDS)
        self.seconds += seconds

    @invariant()
    def nobody_shares(self) -> None:
        running = [gang for gang in self.gangs.values() if gang.running]
        seats = [address for gang in running for address in gang.seats]
        assert len(seats) == len(set(seats))
        for gang in running:
            assert all(self.books[address].holder == (gang.job.id, gang.job.run) for address in gang.seats)
        here = [gang.runner.owner for gang in self.gangs.values() if not gang.job.place]
        assert len(here) == len(set(here))

    @invariant()
    def the_store_gives_no_worker_twice(self) -> None:
        starting = self.store.list_jobs(JobState.STARTING, 1000, None)
        given = [address for job in starting for address in job.place or ()]
        assert len(given) == len(set(given))


Machine.TestCase.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
test_scheduling_machine = Machine.TestCase
