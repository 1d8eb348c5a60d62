"""The port of the checkpoint store: a folder and an object store that implement it, and their in-memory twin.

A checkpoint has the job and the number of rounds in its name, so writing one never touches the one before.
"""

import os
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from workers.checkpoint import Checkpoint, from_bytes
from workers.errors import CheckpointDamaged, CheckpointsUnavailable
from workers.object_store import ObjectStore, local_path, object_store

KEPT = 2  # the last one, and the one before in case the last cannot be read
JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
NAME = re.compile(r"(?P<job>[A-Za-z0-9][A-Za-z0-9_-]*)\.(?P<rounds>[0-9]{10})\.checkpoint")


class CheckpointStore(Protocol):
    """Keeps the last two checkpoints of every job. Errors, of every method: OSError; ValueError for a strange id."""

    def put(self, job_id: str, n_rounds: int, content: bytes | memoryview) -> None:
        """Keep a checkpoint, whole or not at all; it survives a crash. Then drop all but the last two."""

    def rounds(self, job_id: str) -> list[int]:
        """The numbers of rounds of what is kept, most first."""

    def get(self, job_id: str, n_rounds: int) -> bytes:
        """Errors: OSError if there is none."""

    def delete(self, job_id: str) -> None:
        """Forget a job."""


@dataclass(frozen=True)
class FolderCheckpoints:
    """Checkpoints as files of one folder, which is made when it is needed."""

    folder: Path

    def put(self, job_id: str, n_rounds: int, content: bytes | memoryview) -> None:
        path = self._path(job_id, n_rounds)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = self.folder / f".writing-{secrets.token_hex(8)}"
        try:
            with temporary.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        self._sync()
        for old in self.rounds(job_id)[KEPT:]:
            self._path(job_id, old).unlink(missing_ok=True)

    def rounds(self, job_id: str) -> list[int]:
        checked_job(job_id)
        try:
            names = [path.name for path in self.folder.iterdir()]
        except FileNotFoundError:
            return []
        found = (NAME.fullmatch(name) for name in names)
        return sorted((int(match["rounds"]) for match in found if match and match["job"] == job_id), reverse=True)

    def get(self, job_id: str, n_rounds: int) -> bytes:
        return self._path(job_id, n_rounds).read_bytes()

    def delete(self, job_id: str) -> None:
        for n_rounds in self.rounds(job_id):
            self._path(job_id, n_rounds).unlink(missing_ok=True)

    def _path(self, job_id: str, n_rounds: int) -> Path:
        return self.folder / f"{checked_job(job_id)}.{n_rounds:010}.checkpoint"

    def _sync(self) -> None:
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@dataclass(frozen=True)
class ObjectCheckpoints:
    """Checkpoints as objects: a group for each job, and the rounds as name.

    objects: opened at every call, so that a store that cannot be reached now does no harm before it is needed.
    """

    objects: Callable[[], ObjectStore]

    def put(self, job_id: str, n_rounds: int, content: bytes | memoryview) -> None:
        checked_job(job_id)
        objects = self.objects()
        objects.put(job_id, f"{n_rounds:010}", content)
        for old in self.rounds(job_id)[KEPT:]:
            objects.delete(job_id, f"{old:010}")

    def rounds(self, job_id: str) -> list[int]:
        checked_job(job_id)
        names = self.objects().names(job_id)
        return sorted((int(name) for name in names if name.isdecimal()), reverse=True)

    def get(self, job_id: str, n_rounds: int) -> bytes:
        checked_job(job_id)
        return self.objects().get(job_id, f"{n_rounds:010}")

    def delete(self, job_id: str) -> None:
        checked_job(job_id)
        self.objects().clear(job_id)


@dataclass(frozen=True)
class MemoryCheckpoints:
    """Checkpoints in a dictionary, for tests and trials."""

    held: dict[tuple[str, int], bytes] = field(default_factory=dict)

    def put(self, job_id: str, n_rounds: int, content: bytes | memoryview) -> None:
        self.held[checked_job(job_id), n_rounds] = bytes(content)
        for old in self.rounds(job_id)[KEPT:]:
            self.held.pop((job_id, old), None)

    def rounds(self, job_id: str) -> list[int]:
        checked_job(job_id)
        return sorted((n_rounds for job, n_rounds in list(self.held) if job == job_id), reverse=True)

    def get(self, job_id: str, n_rounds: int) -> bytes:
        try:
            return self.held[checked_job(job_id), n_rounds]
        except KeyError:
            raise FileNotFoundError(f"job {job_id} has no checkpoint of round {n_rounds}") from None

    def delete(self, job_id: str) -> None:
        for n_rounds in self.rounds(job_id):
            self.held.pop((job_id, n_rounds), None)


def checkpoints_at(location: str) -> CheckpointStore:
    """The store at a path or a URI (object_store.checked_location), which nobody connects to yet."""
    path = local_path(location)
    return ObjectCheckpoints(partial(object_store, location)) if path is None else FolderCheckpoints(Path(path))


def kept_rounds(store: CheckpointStore, job_id: str) -> list[int]:
    """The numbers of rounds of a job's checkpoints, most first. Errors: CheckpointsUnavailable."""
    try:
        return store.rounds(job_id)
    except OSError as error:
        raise CheckpointsUnavailable(f"the checkpoints of job {job_id} cannot be looked up: {error}") from error


def newest(store: CheckpointStore, job_id: str) -> Checkpoint | None:
    """The last checkpoint of a job that can be read; None if there is none.

    Errors: CheckpointDamaged if there are some and none can be read; CheckpointRefused for another format;
    CheckpointsUnavailable.
    """
    damaged: Exception | None = None
    for n_rounds in kept_rounds(store, job_id):
        try:
            return from_bytes(store.get(job_id, n_rounds))
        except FileNotFoundError:
            continue  # dropped meanwhile for a newer one
        except (CheckpointDamaged, OSError) as error:
            damaged = error
    if damaged is not None:
        raise CheckpointDamaged(f"no checkpoint of job {job_id} can be read: {damaged}") from damaged
    return None


def checked_job(job_id: str) -> str:
    """The id, if it can be a part of a file's name. Errors: ValueError."""
    if not JOB.fullmatch(job_id):
        raise ValueError(f"job id {job_id!r:.200} may hold letters, digits, dash and underscore only")
    return job_id
