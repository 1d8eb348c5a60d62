"""The port of the artifact store (bytes under a key), a folder that implements it and its in-memory twin."""

import os
import re
import tempfile
from pathlib import Path
from typing import Protocol

from service.errors import ArtifactGone

KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


class ArtifactStore(Protocol):
    """Keeps bytes under keys. A key is written once, whole or not at all."""

    def put(self, key: str, data: bytes) -> None:
        """Keep the bytes; afterwards they survive a crash."""

    def get(self, key: str) -> bytes:
        """The bytes of a key. Raises ArtifactGone."""

    def delete(self, key: str) -> None:
        """Forget a key, known or not."""

    def check(self) -> None:
        """Raises if nothing can be written."""


class LocalArtifacts:
    """Artifacts as files of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def put(self, key: str, data: bytes) -> None:
        with tempfile.NamedTemporaryFile(dir=self._folder, prefix=".writing-", delete=False) as file:
            try:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).replace(self._path(key))
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
        self._sync_folder()

    def get(self, key: str) -> bytes:
        try:
            return self._path(key).read_bytes()
        except FileNotFoundError:
            raise ArtifactGone(f"the artifact {key} is missing from {self._folder}") from None

    def delete(self, key: str) -> None:
        self._path(key).unlink(missing_ok=True)

    def check(self) -> None:
        with tempfile.NamedTemporaryFile(dir=self._folder, prefix=".check-"):
            pass

    def _path(self, key: str) -> Path:
        return self._folder / checked_key(key)

    def _sync_folder(self) -> None:
        # The new name itself must survive a crash, before the store says that the model exists.
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class MemoryArtifacts:
    """Artifacts in a dictionary, for tests and trials."""

    def __init__(self) -> None:
        self._data: dict[str, bytes] = {}

    def put(self, key: str, data: bytes) -> None:
        self._data[checked_key(key)] = data

    def get(self, key: str) -> bytes:
        try:
            return self._data[checked_key(key)]
        except KeyError:
            raise ArtifactGone(f"the artifact {key} is missing") from None

    def delete(self, key: str) -> None:
        self._data.pop(checked_key(key), None)

    def check(self) -> None:
        """Memory can be written."""


def checked_key(key: str) -> str:
    """The key, if it can be a file name everywhere. Raises ValueError."""
    if not KEY.fullmatch(key):
        raise ValueError(f"artifact key {key!r} may hold letters, digits, dot, dash and underscore only")
    return key
