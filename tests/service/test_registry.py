"""Loading registered models: the cache, and files that are gone or are not what was registered."""

from pathlib import Path

import pytest

from service.artifacts import MemoryArtifacts
from service.errors import ArtifactGone, ModelNotFound
from service.job_states import JobState
from service.migrate import upgrade
from service.registry import ModelRegistry
from service.requests import parse, prepare
from service.sql_engine import memory_engine
from service.sql_store import SqlStore
from service.store import Lease, NewJob, NewVersion
from tests.service.tables_of_data import request
from workers.in_process import train_in_process
from workers.job import NoProgress, TrainingJob
from workers.model_file import model_sha256, to_bytes


class Shelf:
    """A registry with models on it, counting what it reads."""

    def __init__(self, data_root: Path) -> None:
        engine = memory_engine()
        upgrade(engine)
        self.store = SqlStore(engine)
        self.artifacts = MemoryArtifacts()
        self.registry = ModelRegistry(self.store, self.artifacts, cache_size=2)
        self.data_root = data_root
        self.reads = 0
        self._get = self.artifacts.get
        self.artifacts.get = self._counted  # type: ignore[method-assign]

    def _counted(self, key: str) -> bytes:
        self.reads += 1
        return self._get(key)

    def add(self, name: str, rounds: int = 2, sha256: str | None = None) -> str:
        plan, config = prepare(parse(request(rounds=rounds)), self.data_root)
        model = train_in_process(TrainingJob("j", 1, plan, config, 1), NoProgress()).model
        job, _ = self.store.submit(NewJob(name, {}, "h", rounds))
        taken = self.store.take("me", 60)
        assert taken is not None
        lease = Lease(job.id, taken.run, "me")
        self.store.change(lease, JobState.RUNNING)
        key = f"{job.id}.1.model"
        self.artifacts.put(key, to_bytes(model))
        self.store.complete(lease, {}, NewVersion(name, sha256 or model_sha256(model), key, model.metadata()))
        return key


@pytest.fixture
def shelf(data_root: Path) -> Shelf:
    return Shelf(data_root)


def test_a_model_is_read_once(shelf: Shelf) -> None:
    shelf.add("m")
    first = shelf.registry.load("m", None)
    assert shelf.registry.load("m", 1) is first
    assert shelf.reads == 1
    assert first.version.sha256 == model_sha256(first.model)


def test_the_newest_version_is_seen_at_once(shelf: Shelf) -> None:
    shelf.add("m")
    shelf.registry.load("m", None)
    shelf.add("m", rounds=3)
    assert shelf.registry.load("m", None).version.version == 2
    assert shelf.registry.load("m", 1).version.version == 1


def test_the_model_used_longest_ago_is_dropped(shelf: Shelf) -> None:
    for name in ("a", "b", "c"):
        shelf.add(name)
    for name in ("a", "b", "a", "c"):
        shelf.registry.load(name, None)
    assert shelf.reads == 3
    shelf.registry.load("a", None)
    assert shelf.reads == 3
    shelf.registry.load("b", None)
    assert shelf.reads == 4


def test_unknown_models_are_named(shelf: Shelf) -> None:
    with pytest.raises(ModelNotFound, match="'m'"):
        shelf.registry.load("m", None)


def test_a_file_that_cannot_be_trusted_is_named(shelf: Shelf) -> None:
    key = shelf.add("m")
    shelf.add("other", sha256="0" * 64)
    with pytest.raises(ArtifactGone, match=f"other version 1 holds sha256 .* registered was {'0' * 64}"):
        shelf.registry.load("other", None)
    shelf.artifacts.put(key, b"garbage")
    with pytest.raises(ArtifactGone, match="m version 1 cannot be read"):
        shelf.registry.load("m", None)
    shelf.artifacts.delete(key)
    with pytest.raises(ArtifactGone, match="missing"):
        shelf.registry.load("m", None)
