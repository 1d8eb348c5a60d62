"""The folder that outlives a server: job store, models, and the lock that keeps it to one server."""

import fcntl
import os
from pathlib import Path
from typing import Self

from service.errors import StartRefused


class StateDirectory:
    """A claimed state folder. The kernel drops the claim when the process ends, however it ends.

    `previous_owner` is the runner that held the folder before: whatever it still leases is dead by now.
    """

    def __init__(self, path: Path, lock: int, owner: str, previous_owner: str | None) -> None:
        self.path = path
        self.owner = owner
        self.previous_owner = previous_owner
        self._lock = lock

    @classmethod
    def claim(cls, path: Path, owner: str) -> Self:
        """Take the folder for `owner`, making it if need be. Raises StartRefused if that is impossible."""
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(path / "runner.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StartRefused(f"state folder {path}: {error.strerror}; choose another one (state_dir)") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise StartRefused(
                f"state folder {path} is in use by another server; stop that one or choose another state_dir"
            ) from None
        return cls(path, lock, owner, _exchange(lock, owner))

    @classmethod
    def share(cls, path: Path, owner: str) -> Self:
        """Use the folder beside other servers and runners: PostgreSQL keeps them apart. Raises StartRefused."""
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StartRefused(f"state folder {path}: {error.strerror}; choose another one (state_dir)") from None
        return cls(path, -1, owner, None)

    @property
    def database(self) -> Path:
        return self.path / "edgewise.db"

    def close(self) -> None:
        """Give the folder up."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _exchange(lock: int, owner: str) -> str | None:
    """Write the new owner into the lock file; returns the one before."""
    previous = os.pread(lock, 1024, 0).decode("utf-8", "replace")
    os.ftruncate(lock, 0)
    os.pwrite(lock, owner.encode(), 0)
    os.fsync(lock)
    return previous or None
