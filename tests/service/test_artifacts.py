"""One suite for every artifact store, and what only the folder and the object store must do."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs

from service.artifacts import ArtifactStore, LocalArtifacts, MemoryArtifacts, ObjectArtifacts, artifacts_at
from service.errors import ArtifactGone
from tests.workers.object_server import Objects, credentials, object_server
from workers.object_store import ObjectStore


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Objects]]:
    credentials(monkeypatch)
    with object_server() as found:
        yield found


@pytest.fixture(params=["folder", "memory", "mock", "s3"])
def artifacts(request: pytest.FixtureRequest, tmp_path: Path) -> ArtifactStore:
    if request.param == "memory":
        return MemoryArtifacts()
    if request.param == "mock":
        objects = ObjectStore(fs._MockFileSystem(), "models", "models")
        return ObjectArtifacts(lambda: objects)
    s3 = request.param == "s3"
    return artifacts_at(request.getfixturevalue("bucket")[0] if s3 else str(tmp_path / "new" / "folder"))


def test_what_was_put_is_got(artifacts: ArtifactStore) -> None:
    artifacts.put("a.1.model", b"one")
    artifacts.put("b", b"")
    assert (artifacts.get("a.1.model"), artifacts.get("b")) == (b"one", b"")
    artifacts.put("a.1.model", b"two")
    assert artifacts.get("a.1.model") == b"two"


def test_what_is_gone_is_named(artifacts: ArtifactStore) -> None:
    artifacts.put("a", b"one")
    artifacts.delete("a")
    artifacts.delete("a")
    with pytest.raises(ArtifactGone, match="a is missing"):
        artifacts.get("a")


@pytest.mark.parametrize("key", ["", "../a", "a/b", ".hidden", "a\0b", "ü", "a" * 201])
def test_a_key_that_is_no_file_name_is_refused(artifacts: ArtifactStore, key: str) -> None:
    for call in (artifacts.get, artifacts.delete, lambda key: artifacts.put(key, b"")):
        with pytest.raises(ValueError, match="artifact key"):
            call(key)


def test_check_passes(artifacts: ArtifactStore) -> None:
    artifacts.check()


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifacts = LocalArtifacts(tmp_path)
    artifacts.put("a", b"old")

    def fail(_self: Path, _target: Path) -> Path:
        raise OSError("disk gone")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk gone"):
        artifacts.put("a", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert artifacts.get("a") == b"old"


def test_a_folder_that_is_gone_fails_the_check(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    artifacts = LocalArtifacts(folder)
    folder.rmdir()
    with pytest.raises(OSError, match="No such file"):
        artifacts.check()


def test_a_bucket_that_refuses_fails_the_check_and_keeps_nothing(bucket: tuple[str, Objects]) -> None:
    uri, objects = bucket
    artifacts = artifacts_at(uri)
    artifacts.put("a", b"old")
    artifacts.check()
    objects.refuse.add(("PUT", "partNumber"))
    for call in (artifacts.check, lambda: artifacts.put("b", b"new")):
        with pytest.raises(OSError, match="the bucket is full"):
            call()
    with pytest.raises(ArtifactGone, match=r"b is missing from s3://bucket/kept$"):
        artifacts.get("b")
    assert artifacts.get("a") == b"old"
    assert sum(1 for content in objects.held.values() if content) == 1
