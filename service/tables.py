"""The tables of the job store and the model registry; migrations/ brings a database to this shape."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, DateTime, Dialect, ForeignKey, Index, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator


class UtcDateTime(TypeDecorator[datetime]):
    """A moment. Aware on this side whatever the database keeps; always UTC there."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a time stamp without a time zone: {value}")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """Base of every table."""


class JobRecord(Base):
    """A job: what was asked, where it is, who works on it until when, and how it ended."""

    __tablename__ = "jobs"
    __table_args__ = (Index("ix_jobs_state_number", "state", "number"), {"sqlite_autoincrement": True})

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)  # order of submission
    id: Mapped[str] = mapped_column(String(32), unique=True)
    name: Mapped[str] = mapped_column(String(100))
    idempotency_key: Mapped[str | None] = mapped_column(String(200), unique=True)
    body_hash: Mapped[str] = mapped_column(String(64))
    body: Mapped[dict[str, Any]] = mapped_column(JSON)
    rounds: Mapped[int] = mapped_column(BigInteger)
    state: Mapped[str] = mapped_column(String(16))
    reason: Mapped[str | None] = mapped_column(Text)
    run: Mapped[int] = mapped_column(default=0)
    rounds_done: Mapped[int] = mapped_column(BigInteger, default=0)
    workers: Mapped[int | None]  # of the current run; 0 = in the server's process
    lease_owner: Mapped[str | None] = mapped_column(String(200))
    lease_expires: Mapped[datetime | None] = mapped_column(UtcDateTime)
    submitted_at: Mapped[datetime] = mapped_column(UtcDateTime)
    started_at: Mapped[datetime | None] = mapped_column(UtcDateTime)  # the current run was taken
    running_at: Mapped[datetime | None] = mapped_column(UtcDateTime)  # its first round began
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    answer: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    model_name: Mapped[str | None] = mapped_column(String(100))
    model_version: Mapped[int | None]
    lost_runs: Mapped[int] = mapped_column(default=0, server_default="0")  # runners that died since the last new round
    most_rounds: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")  # of any lost run
    priority: Mapped[int] = mapped_column(default=0, server_default="0")
    wanted_workers: Mapped[int | None]  # None = as few as it fits on, 0 = in the server's process
    # Estimated: of each worker, and of all rows together. None: stored before there were estimates.
    member_bytes: Mapped[int | None] = mapped_column(BigInteger)
    row_bytes: Mapped[int | None] = mapped_column(BigInteger)
    queued_at: Mapped[datetime | None] = mapped_column(UtcDateTime)  # submitted or resumed: since then it waits
    phase: Mapped[str | None] = mapped_column(String(16))  # of the current run before its first round
    place: Mapped[list[str] | None] = mapped_column(JSON(none_as_null=True))  # workers that the current run was given


class TransitionRecord(Base):
    """One change of a job's state."""

    __tablename__ = "job_transitions"
    __table_args__ = ({"sqlite_autoincrement": True},)

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), index=True)
    run: Mapped[int]
    state: Mapped[str] = mapped_column(String(16))
    at: Mapped[datetime] = mapped_column(UtcDateTime)
    reason: Mapped[str | None] = mapped_column(Text)


class RoundRow(Base):
    """The figures of one round (boost_core.records.RoundRecord) and what it took."""

    __tablename__ = "rounds"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    run: Mapped[int] = mapped_column(primary_key=True)
    round: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    edge: Mapped[float | None]
    alpha: Mapped[float | None]
    loss: Mapped[float | None]
    ln_loss: Mapped[float | None]
    bound: Mapped[float | None]
    ln_bound: Mapped[float | None]
    error_bound: Mapped[float | None]
    train_error: Mapped[float | None]
    strict_train_error: Mapped[float | None]
    valid_error: Mapped[float | None]
    n_leaves: Mapped[int]
    bytes_reduced: Mapped[int] = mapped_column(BigInteger)
    seconds: Mapped[float]
    conditions: Mapped[dict[str, float | None] | None] = mapped_column(JSON(none_as_null=True))  # where asked for
    stages: Mapped[dict[str, float] | None] = mapped_column(JSON(none_as_null=True))  # seconds; where asked for


class ModelRecord(Base):
    """A name in the registry, and its next version's number: that of a deleted one never returns."""

    __tablename__ = "models"

    name: Mapped[str] = mapped_column(String(100), primary_key=True)
    next_version: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class VersionRecord(Base):
    """A registered model: where its file is and what it must contain."""

    __tablename__ = "model_versions"

    name: Mapped[str] = mapped_column(ForeignKey("models.name", ondelete="CASCADE"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    sha256: Mapped[str] = mapped_column(String(64))
    artifact: Mapped[str] = mapped_column(String(200))
    # Not a foreign key: a job may be deleted while its model stays.
    job_id: Mapped[str] = mapped_column(String(32))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    # "metadata" is taken by SQLAlchemy.
    description: Mapped[dict[str, Any]] = mapped_column("metadata", JSON)


class KeyRecord(Base):
    """An API key: of its secret only a hash."""

    __tablename__ = "api_keys"

    id: Mapped[str] = mapped_column(String(12), primary_key=True)
    name: Mapped[str] = mapped_column(String(100))
    secret_sha256: Mapped[str] = mapped_column(String(64))
    scopes: Mapped[list[str]] = mapped_column(JSON)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    revoked_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class RunnerRecord(Base):
    """A runner: when it was heard of last, and the totals of all that it ever ran. Rows stay: totals never fall."""

    __tablename__ = "runners"

    owner: Mapped[str] = mapped_column(String(200), primary_key=True)
    seen_at: Mapped[datetime] = mapped_column(UtcDateTime)
    trouble: Mapped[str | None] = mapped_column(Text)
    workers: Mapped[int]
    worker_bytes: Mapped[list[int]] = mapped_column(JSON, default=list, server_default="[]")  # memory of each
    own_bytes: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")  # memory of its own process
    rounds: Mapped[int] = mapped_column(BigInteger)
    round_seconds: Mapped[float]
    reduction_seconds: Mapped[float]
    reduction_bytes: Mapped[int] = mapped_column(BigInteger)
