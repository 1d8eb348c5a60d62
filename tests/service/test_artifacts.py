"""One suite for every artifact store, and what only the folder must do."""

from pathlib import Path

import pytest

from service.artifacts import ArtifactStore, LocalArtifacts, MemoryArtifacts
from service.errors import ArtifactGone


@pytest.fixture(params=["folder", "memory"])
def artifacts(request: pytest.FixtureRequest, tmp_path: Path) -> ArtifactStore:
    return LocalArtifacts(tmp_path / "new" / "folder") if request.param == "folder" else MemoryArtifacts()


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
