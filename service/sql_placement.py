"""What placing jobs reads and writes, over SQL: the queue, the workers that are given away, why jobs wait.

One runner places at a time: what it reads holds until it has written. Others wait for it some milliseconds.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from sqlalchemy import Connection, func, select, update

from service.job_states import JobState
from service.scheduling import Decision, Start, Stuck, Waiting, in_line
from service.sql_engine import POSTGRES
from service.tables import JobRecord
from workers.memory_need import Need

JOBS = JobRecord.__table__
LOCK = 0xED6E  # any number; of PostgreSQL's locks that live as long as a transaction
# A runner asks workers who has them before it decides. What ran for longer was answered for by its workers.
SURVEY_AGE_SECONDS = 20.0
UNKNOWN = Need(0, 0)


def one_at_a_time(connection: Connection) -> None:
    """Wait until no other runner places jobs. SQLite lets one transaction write at a time anyway."""
    if connection.dialect.name == POSTGRES:
        connection.execute(select(func.pg_advisory_xact_lock(LOCK)))


def read_waiting(connection: Connection, now: datetime) -> list[Waiting]:
    """The queued jobs, oldest first."""
    names = ("id", "number", "priority", "wanted_workers", "member_bytes", "row_bytes", "queued_at", "submitted_at")
    query = select(*(JOBS.c[name] for name in names)).where(JOBS.c.state == JobState.QUEUED.value)
    return [
        Waiting(
            row.id,
            row.number,
            row.priority,
            max(0.0, (now - (row.queued_at or row.submitted_at)).total_seconds()),
            row.wanted_workers,
            UNKNOWN if row.member_bytes is None else Need(row.member_bytes, row.row_bytes),
        )
        for row in connection.execute(query.order_by(JOBS.c.number))
    ]


def read_placed(connection: Connection, now: datetime) -> frozenset[str]:
    """Workers that were given to jobs so lately that a survey may not tell yet."""
    since = now - timedelta(seconds=SURVEY_AGE_SECONDS)
    leased = [state.value for state in JobState if state.is_leased]
    fresh = (JOBS.c.running_at.is_(None)) | (JOBS.c.running_at > since)
    rows = connection.execute(select(JOBS.c.place).where(JOBS.c.state.in_(leased) & fresh))
    return frozenset(address for row in rows for address in row.place or ())


def explain(connection: Connection, waits: Iterable[Stuck]) -> None:
    """Write down why jobs wait, where that is news."""
    for job in waits:
        same = (JOBS.c.id == job.job_id) & (JOBS.c.state == JobState.QUEUED.value)
        changed = func.coalesce(JOBS.c.reason, "") != job.reason
        connection.execute(update(JobRecord).where(same & changed).values(reason=job.reason))


def first_in_line(waiting: list[Waiting]) -> Decision:
    """The first job alone, in the runner's own process."""
    return Decision(tuple(Start(job.job_id, ()) for job in in_line(waiting)[:1]))
