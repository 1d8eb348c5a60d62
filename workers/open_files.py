"""Parquet files that several threads read at once: each has a handle of its own, the footer is read once for all."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq

from workers import parquet_file
from workers.errors import DataError, Location
from workers.parquet_file import file_name, has_large_chunks, refusing

MOST_IDLE = 64  # handles kept open; a process may have 1,024 files open by default, and more files make a table
Identity = tuple[int, int, int, int]


class OpenFiles:
    """Handles that are lent to threads. loc: the data's place in the request, for errors."""

    def __init__(self, loc: Location) -> None:
        self._loc = loc
        self._lock = threading.Lock()
        self._idle: list[tuple[str, pq.ParquetFile]] = []  # the last used one last
        self._footers: dict[str, tuple[pq.FileMetaData, Identity]] = {}

    @contextmanager
    def borrowed(self, path: str) -> Iterator[pq.ParquetFile]:
        """A handle for the block alone.

        Errors: DataError if the file cannot be read, or is not the one that was open before.
        """
        with refusing(path, self._loc):
            file = self._idle_one(path) or self._opened(path)
            try:
                yield file
            except BaseException:
                file.close()
                raise
            self._give_back(path, file)

    def _idle_one(self, path: str) -> pq.ParquetFile | None:
        with self._lock:
            for place in range(len(self._idle) - 1, -1, -1):
                if self._idle[place][0] == path:
                    return self._idle.pop(place)[1]
        return None

    def _opened(self, path: str) -> pq.ParquetFile:
        known = self._footers.get(path)
        before = known[1] if known else identity_of(path)
        file = parquet_file.opened(path, known[0] if known else None)
        if known is None and has_large_chunks(file.metadata):
            file.close()
            file = parquet_file.opened(path, file.metadata)
        if identity_of(path) != before:
            file.close()
            raise changed(path)
        self._footers.setdefault(path, (file.metadata, before))
        return file

    def _give_back(self, path: str, file: pq.ParquetFile) -> None:
        with self._lock:
            self._idle.append((path, file))
            too_many = self._idle[:-MOST_IDLE]
            del self._idle[:-MOST_IDLE]
        for _, old in too_many:
            old.close()

    def close(self) -> None:
        """Close what is not lent."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, file in idle:
            file.close()


def identity_of(path: str) -> Identity:
    now = Path(path).stat()
    return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns


def changed(path: str) -> DataError:
    return DataError(("data",), f"{file_name(path)!r} has changed since the job was planned; submit the job again")
