"""What runners tell of themselves, and their totals, over SQL."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, func, select, update

from service.sql_engine import insert_ignoring
from service.store import RoundEntry, RunnerNews, Totals
from service.tables import JobRecord, RunnerRecord

RUNNERS = RunnerRecord.__table__
TOTALS = ("rounds", "round_seconds", "reduction_seconds", "reduction_bytes")


def note_runner(connection: Connection, news: RunnerNews) -> None:
    """Write down that a runner lives."""
    values = {
        "seen_at": news.seen_at,
        "trouble": news.trouble,
        "workers": news.workers,
        "worker_bytes": list(news.worker_bytes),
        "own_bytes": news.own_bytes,
    }
    row = {"owner": news.owner, **values, **dict.fromkeys(TOTALS, 0)}
    if not connection.execute(insert_ignoring(connection.dialect, RunnerRecord).values(**row)).rowcount:
        connection.execute(update(RunnerRecord).where(RUNNERS.c.owner == news.owner).values(**values))


def touch_runner(connection: Connection, owner: str, now: datetime) -> None:
    """A heartbeat of a job is one of its runner."""
    connection.execute(update(RunnerRecord).where(RUNNERS.c.owner == owner).values(seen_at=now))


def add_rounds(connection: Connection, owner: str, rounds: Sequence[RoundEntry], now: datetime) -> None:
    """Add finished rounds to their runner's totals. A row a runner: runners never wait for each other here."""
    rounds = [entry for entry in rounds if not entry.known]
    added: dict[str, Any] = {
        "rounds": len(rounds),
        "round_seconds": sum(entry.seconds for entry in rounds),
        "reduction_seconds": sum(entry.reduction_seconds for entry in rounds),
        "reduction_bytes": sum(int(entry.figures["bytes_reduced"] or 0) for entry in rounds),
    }
    grown = {name: RUNNERS.c[name] + value for name, value in added.items()}
    if not connection.execute(update(RunnerRecord).where(RUNNERS.c.owner == owner).values(**grown)).rowcount:
        row = {"owner": owner, "seen_at": now, "trouble": None, "workers": 0, "worker_bytes": [], **added}
        connection.execute(insert_ignoring(connection.dialect, RunnerRecord).values(**row))


def read_runners(connection: Connection, since: datetime) -> list[RunnerNews]:
    """Runners heard of since then, the latest first."""
    query = select(RUNNERS).where(RUNNERS.c.seen_at >= since).order_by(RUNNERS.c.seen_at.desc())
    rows = connection.execute(query).mappings().all()
    return [_news(row) for row in rows]


def _news(row: RowMapping) -> RunnerNews:
    memory = tuple(row["worker_bytes"])
    return RunnerNews(row["owner"], row["seen_at"], row["trouble"], row["workers"], memory, row["own_bytes"])


def read_totals(connection: Connection) -> Totals:
    """The figures of /metrics, of one moment."""
    jobs = JobRecord.__table__
    counts = connection.execute(select(jobs.c.state, func.count()).group_by(jobs.c.state)).all()
    sums = [func.coalesce(func.sum(RUNNERS.c[name]), 0) for name in TOTALS]
    rounds, seconds, reduction_seconds, reduction_bytes = connection.execute(select(*sums)).one()
    return Totals(
        {str(state): int(count) for state, count in counts},
        int(rounds),
        float(seconds),
        float(reduction_seconds),
        int(reduction_bytes),
    )
