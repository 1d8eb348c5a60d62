"""The job store over SQL. Every change of a state goes through `_move`.

SQLite lets one transaction write at a time. On PostgreSQL, whoever is about to change a job locks its row first
(SELECT ... FOR UPDATE), so decisions hold until they are written; a lease's run number fences whoever lost it.
"""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, RowMapping, delete, insert, select, tuple_, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql.elements import ColumnElement

from service.errors import JobNotFound, KeyReused, LeaseLost, WrongState
from service.job_states import JobState, after_cancel, after_loss, after_resume, check_transition
from service.scheduling import Start
from service.sql_engine import insert_ignoring
from service.sql_placement import explain, first_in_line, one_at_a_time, read_placed, read_waiting
from service.sql_runners import add_rounds, note_runner, read_runners, read_totals, touch_runner
from service.sql_session import storable, stored_text
from service.sql_versions import SqlVersions, register
from service.store import (
    Decide,
    Job,
    Lease,
    NewJob,
    NewVersion,
    Offer,
    RoundEntry,
    RunnerNews,
    Totals,
    Transition,
    Version,
)
from service.tables import JobRecord, ModelRecord, RoundRow, TransitionRecord

JOBS = JobRecord.__table__
ROUNDS = RoundRow.__table__
NO_LEASE: dict[str, Any] = {"lease_owner": None, "lease_expires": None}
IDENTITY = {"job_id", "run", "round", "seconds"}
FIGURES = tuple(column.name for column in ROUNDS.columns if column.name not in IDENTITY)


def utc_now() -> datetime:
    """The moment, aware."""
    return datetime.now(UTC)


class SqlStore(SqlVersions):
    """Implements store.JobStore and store.VersionStore. `clock` is there for tests to place moments."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime] = utc_now) -> None:
        super().__init__(engine)
        self._clock = clock

    def submit(self, new: NewJob) -> tuple[Job, bool]:
        try:
            return self._submit(new)
        except IntegrityError:
            # Another server stored the same key between the question and the row; now it is there to be found.
            return self._submit(new)

    def _submit(self, new: NewJob) -> tuple[Job, bool]:
        with self._sessions.writing() as connection:
            if known := _by_key(connection, new.idempotency_key):
                return _same_request(known, new), False
            job_id = uuid.uuid4().hex
            values = {field.name: getattr(new, field.name) for field in fields(NewJob)}
            now = self._clock()
            connection.execute(
                insert(JobRecord).values(
                    **values, id=job_id, state=JobState.QUEUED.value, submitted_at=now, queued_at=now
                )
            )
            self._note(connection, job_id, 0, JobState.QUEUED, None)
            return _get(connection, job_id), True

    def find_key(self, key: str) -> Job | None:
        with self._sessions.reading() as connection:
            return _by_key(connection, key)

    def get(self, job_id: str) -> Job:
        with self._sessions.reading() as connection:
            return _get(connection, job_id)

    def list_jobs(self, state: JobState | None, limit: int, before: int | None) -> list[Job]:
        query = select(JOBS).order_by(JOBS.c.number.desc()).limit(limit)
        if state is not None:
            query = query.where(JOBS.c.state == state.value)
        if before is not None:
            query = query.where(JOBS.c.number < before)
        with self._sessions.reading() as connection:
            return [_job(row) for row in connection.execute(query).mappings()]

    def transitions(self, job_id: str) -> list[Transition]:
        table = TransitionRecord.__table__
        query = select(table).where(table.c.job_id == job_id).order_by(table.c.number)
        with self._sessions.reading() as connection:
            _get(connection, job_id)
            rows = connection.execute(query).mappings().all()
        return [Transition(JobState(row["state"]), row["run"], row["at"], row["reason"]) for row in rows]

    def place(self, owner: str, lease_seconds: float, decide: Decide) -> list[Job]:
        with self._sessions.writing() as connection:
            one_at_a_time(connection)
            now = self._clock()
            decision = decide(read_waiting(connection, now), read_placed(connection, now))
            explain(connection, (*decision.waits, *decision.stuck))
            for refused in decision.refused:
                for job in self._start(connection, Start(refused.job_id, ()), owner, lease_seconds):
                    self._move(connection, job, JobState.FAILED, refused.reason, {})
            return [job for each in decision.starts for job in self._start(connection, each, owner, lease_seconds)]

    def take(self, owner: str, lease_seconds: float) -> Job | None:
        jobs = self.place(owner, lease_seconds, lambda waiting, _placed: first_in_line(list(waiting)))
        return jobs[0] if jobs else None

    def _start(self, connection: Connection, start: Start, owner: str, lease_seconds: float) -> list[Job]:
        """The job with a lease and a new run; none if it was cancelled meanwhile."""
        job = _get(connection, start.job_id, lock=True)
        if job.state is not JobState.QUEUED:
            return []
        connection.execute(delete(RoundRow).where(RoundRow.job_id == job.id))
        now = self._clock()
        lease = {"lease_owner": owner, "lease_expires": now + timedelta(seconds=lease_seconds)}
        fresh = {
            "run": job.run + 1,
            "rounds_done": 0,
            "workers": len(start.addresses),
            "place": list(start.addresses),
            "started_at": now,
            "running_at": None,
            "phase": None,
        }
        return [self._move(connection, job, JobState.STARTING, None, {**lease, **fresh, "reason": None})]

    def extend(self, lease: Lease, lease_seconds: float) -> JobState:
        expires = self._clock() + timedelta(seconds=lease_seconds)
        with self._sessions.writing() as connection:
            _write(connection, lease, {"lease_expires": expires})
            touch_runner(connection, lease.owner, self._clock())
            return _get(connection, lease.job_id).state

    def change(self, lease: Lease, new: JobState, reason: str | None = None) -> Job:
        with self._sessions.writing() as connection:
            return self._move(connection, _held(connection, lease), new, reason, {})

    def enter_phase(self, lease: Lease, phase: str) -> None:
        with self._sessions.writing() as connection:
            _write(connection, lease, {"phase": phase})

    def append_rounds(self, lease: Lease, rounds: Sequence[RoundEntry]) -> JobState | None:
        if not rounds:
            return None
        key = {"job_id": lease.job_id, "run": lease.run}
        rows = [{**key, **entry.figures, "round": entry.round, "seconds": entry.seconds} for entry in rounds]
        with self._sessions.writing() as connection:
            _write(connection, lease, {"rounds_done": max(entry.round for entry in rounds)})
            # A batch whose commit was not heard of is sent again.
            if connection.execute(insert_ignoring(connection.dialect, RoundRow), rows).rowcount:
                add_rounds(connection, lease.owner, rounds, self._clock())
            return _get(connection, lease.job_id).state

    def rounds(self, job_id: str, after: int, limit: int, every: int = 1) -> tuple[int, list[RoundEntry]]:
        with self._sessions.reading() as connection:
            run = _get(connection, job_id).run
            chosen = (ROUNDS.c.job_id == job_id) & (ROUNDS.c.run == run) & (ROUNDS.c.round > after)
            if every > 1:
                chosen &= ROUNDS.c.round % every == 0
            query = select(ROUNDS).where(chosen).order_by(ROUNDS.c.round).limit(limit)
            rows = connection.execute(query).mappings().all()
        return run, [_round(row) for row in rows]

    def latest_rounds(self, jobs: Sequence[Job]) -> dict[str, RoundEntry]:
        keys = [(job.id, job.run, job.rounds_done) for job in jobs if job.rounds_done]
        if not keys:
            return {}
        query = select(ROUNDS).where(tuple_(ROUNDS.c.job_id, ROUNDS.c.run, ROUNDS.c.round).in_(keys))
        with self._sessions.reading() as connection:
            return {row["job_id"]: _round(row) for row in connection.execute(query).mappings()}

    def complete(self, lease: Lease, answer: dict[str, Any], version: NewVersion) -> Version:
        with self._sessions.writing() as connection:
            job = _held(connection, lease)
            check_transition(job.state, JobState.SUCCEEDED)
            number = register(connection, version, job.id, self._clock())
            values = {"answer": answer, "model_name": version.name, "model_version": number}
            self._move(connection, job, JobState.SUCCEEDED, None, values)
        return self.version(version.name, number)

    def request_cancel(self, job_id: str) -> Job:
        with self._sessions.writing() as connection:
            job = _get(connection, job_id, lock=True)
            new = after_cancel(job.state)
            return job if new is job.state else self._move(connection, job, new, "cancelled on request", {})

    def resume(self, job_id: str, rounds: int | None) -> Job:
        with self._sessions.writing() as connection:
            job = _get(connection, job_id, lock=True)
            new, asked = after_resume(job.state), job.rounds if rounds is None else rounds
            if asked < job.rounds:
                raise WrongState(f"the job has {job.rounds} rounds; it can be resumed with as many or more")
            values = {
                "rounds": asked, "body": {**job.body, "rounds": asked}, "lost_runs": 0, "most_rounds": 0,
                "finished_at": None,
            }  # fmt: skip
            if new is job.state:
                connection.execute(update(JobRecord).where(JOBS.c.id == job_id).values(**values))
                return _get(connection, job_id)
            values["queued_at"] = self._clock()
            return self._move(connection, job, new, "resumed on request", values)

    def note(self, lease: Lease, text: str) -> None:
        with self._sessions.writing() as connection:
            job = _held(connection, lease)
            _write(connection, lease, {"reason": text})
            self._note(connection, job.id, job.run, job.state, text)

    def release(self, owner: str | None, reason: str, *, counts: bool = True) -> list[Job]:
        dead: ColumnElement[bool] = JOBS.c.lease_owner == owner
        if owner is None:
            dead = JOBS.c.lease_expires < self._clock()
        with self._sessions.writing() as connection:
            query = select(JOBS).where(dead).order_by(JOBS.c.number).with_for_update()
            rows = connection.execute(query).mappings().all()
            return [self._lose(connection, _job(row), reason, counts) for row in rows]

    def give_back(self, lease: Lease, reason: str, *, counts: bool = True) -> Job:
        with self._sessions.writing() as connection:
            return self._lose(connection, _held(connection, lease), reason, counts)

    def delete(self, job_id: str) -> None:
        with self._sessions.writing() as connection:
            job = _get(connection, job_id, lock=True)
            if not job.state.is_final:
                raise WrongState(f"job {job_id} is {job.state}; cancel it before it can be deleted")
            connection.execute(delete(JobRecord).where(JOBS.c.id == job_id))

    def see_runner(self, owner: str, trouble: str | None, offer: Offer) -> None:
        news = RunnerNews(
            owner, self._clock(), stored_text(trouble), len(offer.worker_bytes), offer.worker_bytes, offer.own_bytes
        )
        with self._sessions.writing() as connection:
            note_runner(connection, news)

    def runners(self, within_seconds: float) -> list[RunnerNews]:
        with self._sessions.reading() as connection:
            return read_runners(connection, self._clock() - timedelta(seconds=within_seconds))

    def totals(self) -> Totals:
        with self._sessions.reading() as connection:
            return read_totals(connection)

    def check(self) -> None:
        # A statement that writes without changing anything: a read-only or full disk shows here.
        with self._sessions.writing() as connection:
            connection.execute(update(ModelRecord).where(ModelRecord.next_version < 0).values(next_version=1))

    def close(self) -> None:
        """Close the connections."""
        self._sessions.close()

    def _lose(self, connection: Connection, job: Job, reason: str, counts: bool) -> Job:
        lost = 0
        if counts:
            lost = 1 if job.rounds_done > job.most_rounds else job.lost_runs + 1
        values = {"lost_runs": lost, "most_rounds": max(job.rounds_done, job.most_rounds)}
        for state in after_loss(job.state, lost):
            why = reason
            if state is JobState.FAILED:
                why = f"{reason}; this was run {lost} in a row that was lost without a further round, the last one"
            job = self._move(connection, job, state, why, values)
        return job

    def _move(self, connection: Connection, job: Job, new: JobState, reason: str | None, values: dict[str, Any]) -> Job:
        """The only door to a job's state."""
        check_transition(job.state, new)
        reason = stored_text(reason)
        values = {"state": new.value, "reason": reason, **values}
        if new is JobState.RUNNING:
            values["running_at"] = self._clock()
        if new.is_final:
            values["finished_at"] = self._clock()
        if not new.is_leased:
            values |= NO_LEASE
        # Rows are locked when they are read; the state is in the condition for whoever forgets that.
        unchanged = (JOBS.c.id == job.id) & (JOBS.c.state == job.state.value) & (JOBS.c.run == job.run)
        if connection.execute(update(JobRecord).where(unchanged).values(**values)).rowcount != 1:
            raise LeaseLost(f"job {job.id} changed meanwhile; it was {job.state} in run {job.run}")
        moved = _get(connection, job.id)
        self._note(connection, job.id, moved.run, new, reason)
        return moved

    def _note(self, connection: Connection, job_id: str, run: int, state: JobState, reason: str | None) -> None:
        row = {"job_id": job_id, "run": run, "state": state.value, "reason": reason, "at": self._clock()}
        connection.execute(insert(TransitionRecord).values(**row))


def _job(row: RowMapping) -> Job:
    return Job(**{**row, "state": JobState(row["state"])})


def _round(row: RowMapping) -> RoundEntry:
    return RoundEntry(row["round"], {name: row[name] for name in FIGURES}, row["seconds"])


def _get(connection: Connection, job_id: str, *, lock: bool = False) -> Job:
    """One job; locked, nobody else changes it before this transaction ends."""
    query = select(JOBS).where(JOBS.c.id == job_id)
    row = None
    if storable(job_id):
        row = connection.execute(query.with_for_update() if lock else query).mappings().first()
    if row is None:
        raise JobNotFound(f"there is no job {job_id!r:.100}")
    return _job(row)


def _by_key(connection: Connection, key: str | None) -> Job | None:
    if key is None:
        return None
    row = connection.execute(select(JOBS).where(JOBS.c.idempotency_key == key)).mappings().first()
    return None if row is None else _job(row)


def _same_request(known: Job, new: NewJob) -> Job:
    if known.body_hash != new.body_hash:
        raise KeyReused(
            f"Idempotency-Key {new.idempotency_key!r} belongs to job {known.id}, which was another request; "
            "send a new key for a new request"
        )
    return known


def _leased(lease: Lease) -> ColumnElement[bool]:
    return (JOBS.c.id == lease.job_id) & (JOBS.c.run == lease.run) & (JOBS.c.lease_owner == lease.owner)


def _lost(lease: Lease) -> LeaseLost:
    return LeaseLost(f"run {lease.run} of job {lease.job_id} is no longer held by {lease.owner}")


def _held(connection: Connection, lease: Lease) -> Job:
    row = connection.execute(select(JOBS).where(_leased(lease)).with_for_update()).mappings().first()
    if row is None:
        raise _lost(lease)
    return _job(row)


def _write(connection: Connection, lease: Lease, values: dict[str, Any]) -> None:
    if connection.execute(update(JobRecord).where(_leased(lease)).values(**values)).rowcount != 1:
        raise _lost(lease)
