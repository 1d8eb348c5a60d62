"""The job store against a plain model of it, through whatever order of calls Hypothesis finds."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from service.errors import JobNotFound, LeaseLost, WrongState
from service.job_states import ALLOWED, JobState
from service.migrate import upgrade
from service.sql_engine import memory_engine
from service.sql_store import SqlStore
from service.store import Lease, NewJob, NewVersion, RoundEntry
from tests.service.test_store import FIGURES

LEASE_SECONDS = 30.0
OWNERS = st.sampled_from(["one", "two"])


@dataclass
class Expected:
    """What the store should hold of a job."""

    id: str
    state: JobState = JobState.QUEUED
    run: int = 0
    owner: str | None = None
    expires: datetime | None = None
    rounds: list[int] = field(default_factory=list)
    history: list[JobState] = field(default_factory=lambda: [JobState.QUEUED])

    def move(self, state: JobState) -> None:
        self.state = state
        self.history.append(state)
        if not state.is_leased:
            self.owner = self.expires = None

    def lose(self) -> None:
        if self.state is JobState.CANCELLING:
            self.move(JobState.CANCELLED)
        else:
            self.move(JobState.PAUSED)
            self.move(JobState.QUEUED)


class StoreMachine(RuleBasedStateMachine):
    """Leases are kept by whoever took them, also after they were lost: the store must tell."""

    leases: Any = Bundle("leases")

    def __init__(self) -> None:
        super().__init__()
        engine = memory_engine()
        upgrade(engine)
        self.now = datetime(2031, 1, 1, tzinfo=UTC)
        self.store = SqlStore(engine, lambda: self.now)
        self.jobs: dict[str, Expected] = {}
        self.versions = 0

    def teardown(self) -> None:
        self.store.close()

    def holds(self, lease: Lease) -> Expected | None:
        job = self.jobs.get(lease.job_id)
        return job if job is not None and (job.run, job.owner) == (lease.run, lease.owner) else None

    @rule()
    def submit(self) -> None:
        job, is_new = self.store.submit(NewJob("m", {}, "h", 9))
        assert is_new
        self.jobs[job.id] = Expected(job.id)

    @rule(owner=OWNERS, target=leases)
    def take(self, owner: str) -> Lease:
        queued = [job for job in self.jobs.values() if job.state is JobState.QUEUED]
        taken = self.store.take(owner, LEASE_SECONDS)
        assert (taken is None) == (not queued)
        if taken is None:
            return Lease("nothing", 0, owner)
        job = queued[0]
        assert taken.id == job.id
        job.owner, job.run, job.rounds = owner, job.run + 1, []
        job.expires = self.now + timedelta(seconds=LEASE_SECONDS)
        job.move(JobState.STARTING)
        return Lease(job.id, job.run, owner)

    @rule(lease=leases)
    def extend(self, lease: Lease) -> None:
        if (job := self.holds(lease)) is None:
            with pytest.raises(LeaseLost):
                self.store.extend(lease, LEASE_SECONDS)
            return
        assert self.store.extend(lease, LEASE_SECONDS) is job.state
        job.expires = self.now + timedelta(seconds=LEASE_SECONDS)

    @rule(lease=leases, state=st.sampled_from([JobState.RUNNING, JobState.FAILED, JobState.CANCELLED]))
    def change(self, lease: Lease, state: JobState) -> None:
        job = self.holds(lease)
        if job is None or state not in ALLOWED[job.state]:
            with pytest.raises(LeaseLost if job is None else WrongState):
                self.store.change(lease, state)
            return
        self.store.change(lease, state)
        job.move(state)

    @rule(lease=leases)
    def append(self, lease: Lease) -> None:
        job = self.holds(lease)
        number = len(job.rounds) + 1 if job else 1
        entry = RoundEntry(number, dict(FIGURES), 0.1)
        if job is None:
            with pytest.raises(LeaseLost):
                self.store.append_rounds(lease, [entry])
            return
        self.store.append_rounds(lease, [entry])
        job.rounds.append(number)

    @rule(lease=leases)
    def complete(self, lease: Lease) -> None:
        job = self.holds(lease)
        version = NewVersion("m", "f" * 64, "a", {})
        if job is None or job.state is not JobState.RUNNING:
            with pytest.raises(LeaseLost if job is None else WrongState):
                self.store.complete(lease, {}, version)
            return
        self.versions += 1
        assert self.store.complete(lease, {}, version).version == self.versions
        job.move(JobState.SUCCEEDED)

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        if not self.jobs:
            return
        job = self.jobs[data.draw(st.sampled_from(list(self.jobs)))]
        if job.state in {JobState.SUCCEEDED, JobState.FAILED}:
            with pytest.raises(WrongState):
                self.store.request_cancel(job.id)
            return
        self.store.request_cancel(job.id)
        if job.state is JobState.QUEUED:
            job.move(JobState.CANCELLED)
        elif job.state in {JobState.STARTING, JobState.RUNNING}:
            job.move(JobState.CANCELLING)

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        if not self.jobs:
            return
        job = self.jobs[data.draw(st.sampled_from(list(self.jobs)))]
        if not job.state.is_final:
            with pytest.raises(WrongState):
                self.store.delete(job.id)
            return
        self.store.delete(job.id)
        del self.jobs[job.id]
        with pytest.raises(JobNotFound):
            self.store.get(job.id)

    @rule(owner=OWNERS)
    def owner_dies(self, owner: str) -> None:
        lost = [job for job in self.jobs.values() if job.owner == owner]
        assert [job.id for job in self.store.release(owner, "gone")] == [job.id for job in lost]
        for job in lost:
            job.lose()

    @rule(seconds=st.sampled_from([1, 20, 40]))
    def time_passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)
        silent = [job for job in self.jobs.values() if job.expires is not None and job.expires < self.now]
        assert [job.id for job in self.store.release(None, "silent")] == [job.id for job in silent]
        for job in silent:
            job.lose()

    @invariant()
    def the_store_holds_what_is_expected(self) -> None:
        found = {job.id: job for job in self.store.list_jobs(None, 1000, None)}
        assert set(found) == set(self.jobs)
        for job in self.jobs.values():
            kept = found[job.id]
            assert (kept.state, kept.run, kept.lease_owner) == (job.state, job.run, job.owner)
            assert (kept.lease_expires is not None) == kept.state.is_leased
            assert (kept.finished_at is not None) == kept.state.is_final
            assert [entry.round for entry in self.store.rounds(job.id, 0, 1000)[1]] == job.rounds
            assert [step.state for step in self.store.transitions(job.id)] == job.history


StoreMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
test_store_machine = StoreMachine.TestCase
