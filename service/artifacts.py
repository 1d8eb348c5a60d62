"""The port of the artifact store (bytes under a key): a folder and an object store, and their in-memory twin."""

import os
import re
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

from service.errors import ArtifactGone
from workers.object_store import ObjectStore, local_path, object_store

ARTIFACT = "artifact"  # its name in its group of an object store
PROBE = "_check"  # no key begins like this
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


class ObjectArtifacts:
    """Artifacts as objects, each in a group of its own. objects: opened at every call, so that a server starts also
    while they cannot be reached; `/readyz` says so."""

    def __init__(self, objects: Callable[[], ObjectStore]) -> None:
        self._objects = objects

    def put(self, key: str, data: bytes) -> None:
        checked_key(key)
        self._objects().put(key, ARTIFACT, data)

    def get(self, key: str) -> bytes:
        checked_key(key)
        objects = self._objects()
        try:
            return objects.get(key, ARTIFACT)
        except FileNotFoundError:
            raise ArtifactGone(f"the artifact {key} is missing from {objects.place}") from None

    def delete(self, key: str) -> None:
        checked_key(key)
        self._objects().clear(key)

    def check(self) -> None:
        objects = self._objects()
        objects.put(PROBE, ARTIFACT, b"")
        objects.delete(PROBE, ARTIFACT)


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


def artifacts_at(location: str) -> ArtifactStore:
    """The store at a path or a URI (workers.object_store). Errors: OSError if a folder cannot be made."""
    path = local_path(location)
    return ObjectArtifacts(partial(object_store, location)) if path is None else LocalArtifacts(Path(path))


def checked_key(key: str) -> str:
    """The key, if it can be a file name everywhere. Raises ValueError."""
    if not KEY.fullmatch(key):
        raise ValueError(f"artifact key {key!r} may hold letters, digits, dot, dash and underscore only")
    return key
