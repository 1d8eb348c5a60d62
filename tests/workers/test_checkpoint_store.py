"""One suite for every checkpoint store: a folder, memory, and an object store over several file systems of pyarrow.

The S3 one is pyarrow's own client against a server of this process (object_server.py).
"""

import contextlib
import errno
import itertools
import pickle
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fsspec import filesystem
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import fs

from tests.workers.object_server import Objects, credentials, object_server
from tests.workers.test_checkpoint import Cancels, job_of, plan, small  # noqa: F401
from workers import checkpoint_store, object_store
from workers.checkpoint import to_bytes
from workers.checkpoint_store import (
    KEPT,
    CheckpointStore,
    FolderCheckpoints,
    MemoryCheckpoints,
    ObjectCheckpoints,
    checkpoints_at,
    kept_rounds,
    newest,
)
from workers.data_plan import DataPlan
from workers.errors import CheckpointDamaged, CheckpointsUnavailable
from workers.in_process import train_in_process
from workers.job import CheckpointSettings, NoProgress
from workers.model_file import model_sha256
from workers.object_store import ObjectStore, checked_location
from workers.observer import Writer

OBJECTS = ("mock", "local", "fsspec", "s3")
numbers = itertools.count()


@pytest.fixture(scope="module")
def bucket() -> Iterator[tuple[str, Objects]]:
    with pytest.MonkeyPatch.context() as patch:
        credentials(patch)
        with object_server() as found:
            yield found


Fresh = Callable[[], CheckpointStore]


def objects_of(kind: str, folder: Path, request: pytest.FixtureRequest) -> ObjectStore:
    """A store that nobody has used."""
    name = f"store{next(numbers)}"
    if kind == "mock":
        return ObjectStore(fs._MockFileSystem(), name, name)
    if kind == "local":
        return ObjectStore(fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem()), name, name)
    if kind == "fsspec":
        return ObjectStore(fs.PyFileSystem(fs.FSSpecHandler(filesystem("memory"))), f"/{name}", name)
    uri, _ = request.getfixturevalue("bucket")
    return object_store.object_store(uri.replace("/kept?", f"/{name}?"))


@pytest.fixture(params=["folder", "memory", *OBJECTS])
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Fresh:
    def make() -> CheckpointStore:
        if request.param == "folder":
            return FolderCheckpoints(tmp_path / f"new{next(numbers)}" / "folder")
        if request.param == "memory":
            return MemoryCheckpoints()
        objects = objects_of(request.param, tmp_path, request)
        return ObjectCheckpoints(lambda: objects)

    return make


@pytest.fixture
def store(fresh: Fresh) -> CheckpointStore:
    return fresh()


def test_the_last_two_are_kept(store: CheckpointStore) -> None:
    assert store.rounds("a") == []
    store.delete("a")
    for n_rounds in (1, 5, 10, 12):
        store.put("a", n_rounds, b"%d" % n_rounds)
    store.put("a-b", 3, b"other")
    assert store.rounds("a") == [12, 10]
    assert store.get("a", 10) == b"10"
    with pytest.raises(FileNotFoundError, match=r"a"):
        store.get("a", 5)
    store.put("a", 12, b"again")
    assert store.get("a", 12) == b"again"
    store.delete("a")
    assert (store.rounds("a"), store.rounds("a-b")) == ([], [3])


@pytest.mark.parametrize("content", [b"", b"\0", bytes(range(256)) * 90_000], ids=["none", "one", "many parts"])
def test_bytes_come_back(store: CheckpointStore, content: bytes) -> None:
    """S3 gets 23 MB in three parts."""
    store.put("a", 1, content)
    assert store.get("a", 1) == content


@pytest.mark.parametrize("job", ["", "../a", "a/b", ".hidden", "a.b", "a\0b", "a\n", "ä", "a" * 129, "_check"])
def test_a_job_id_that_is_no_file_name_is_refused(store: CheckpointStore, job: str) -> None:
    for call in (store.rounds, store.delete, lambda job: store.put(job, 1, b""), lambda job: store.get(job, 1)):
        with pytest.raises(ValueError, match="job id"):
            call(job)


@pytest.mark.parametrize("job", ["0", "0000000001", "a-", "A_b-c", "a" * 128])
def test_ids_at_the_edge(store: CheckpointStore, job: str) -> None:
    store.put(job, 1, b"x")
    assert store.rounds(job) == [1]
    assert store.rounds(job[:-1] or "1") == []


def test_a_damaged_last_one_falls_back_on_the_one_before(store: CheckpointStore) -> None:
    store.put("a", 3, to_bytes(small()))
    store.put("a", 7, b"half a file")
    assert newest(store, "a") is not None
    store.put("a", 3, b"nor this")
    with pytest.raises(CheckpointDamaged, match="no checkpoint of job a can be read"):
        newest(store, "a")
    assert newest(store, "b") is None


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "delete"]),
        st.sampled_from("ab"),
        st.integers(0, 5),
        st.binary(max_size=3),
    ),
    max_size=12,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(steps=STEPS)
def test_any_use_is_that_of_a_dictionary(fresh: Fresh, steps: list[tuple[str, str, int, bytes]]) -> None:
    store, model = fresh(), dict[str, dict[int, bytes]]({"a": {}, "b": {}})
    for what, job, n_rounds, content in steps:
        if what == "put":
            store.put(job, n_rounds, content)
            model[job][n_rounds] = content
            model[job] = dict(sorted(model[job].items())[-KEPT:])
        else:
            store.delete(job)
            model[job] = {}
        for each, held in model.items():
            assert store.rounds(each) == sorted(held, reverse=True)
            assert {number: store.get(each, number) for number in held} == held


def test_jobs_at_once_and_writers_of_one_job_at_once(store: CheckpointStore) -> None:
    """As a member that was believed dead and the one that took over: neither loses what the other has put."""

    def write(job: str, first: int) -> None:
        for n_rounds in range(first, first + 8, 2):
            store.put(job, n_rounds, b"%d of %s" % (n_rounds, job.encode()))

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(write, job, first) for job in ("a", "b", "c") for first in (1, 2)]:
            done.result()
    for job in ("a", "b", "c"):
        assert store.rounds(job) == [8, 7]
        assert [store.get(job, number) for number in (7, 8)] == [b"7 of " + job.encode(), b"8 of " + job.encode()]


class Overtaken:
    """A file system of pyarrow on which somebody else acts right after an object is closed."""

    def __init__(self, files: Any, act: Callable[[], None]) -> None:
        self._files, self._act = files, act

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def open_output_stream(self, path: str, compression: None) -> Any:
        stream, act = self._files.open_output_stream(path, compression=compression), self._act

        class Closing:
            write = stream.write

            def close(self) -> None:
                stream.close()
                act()

        return Closing()


@pytest.mark.parametrize("fresh", OBJECTS, indirect=True)
def test_a_writer_that_is_overtaken_has_not_failed(store: CheckpointStore) -> None:
    """What it has just put is dropped for newer ones before it looks whether it is there."""
    assert isinstance(store, ObjectCheckpoints)
    objects = store.objects()

    def overtake() -> None:
        for n_rounds in (5, 6):
            store.put("a", n_rounds, b"%d" % n_rounds)

    slow = ObjectCheckpoints(lambda: replace(objects, files=Overtaken(objects.files, overtake)))
    slow.put("a", 1, b"1")
    assert store.rounds("a") == [6, 5]
    assert len(left(store, "a")) == 2


@pytest.mark.parametrize("fresh", OBJECTS, indirect=True)
def test_two_writers_of_one_round_do_not_drop_each_others(store: CheckpointStore) -> None:
    assert isinstance(store, ObjectCheckpoints)
    objects = store.objects()
    slow = ObjectCheckpoints(
        lambda: replace(objects, files=Overtaken(objects.files, lambda: store.put("a", 1, b"the other's")))
    )
    slow.put("a", 1, b"one's")
    assert store.rounds("a") == [1]
    assert store.get("a", 1) in {b"one's", b"the other's"}
    store.put("a", 1, b"a third")
    assert store.get("a", 1) == b"a third"
    assert len(left(store, "a")) == 1


class Full:
    """A file system of pyarrow with room for half of what is written. What is closed is published, as pyarrow does.

    dies: the writer is gone then, and nothing is tidied up.
    """

    def __init__(self, files: Any, dies: bool) -> None:
        self._files, self._dies = files, dies

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def delete_file(self, path: str) -> None:
        if self._dies:
            raise OSError("the writer is dead")
        self._files.delete_file(path)

    def open_output_stream(self, path: str, compression: None) -> Any:
        stream = self._files.open_output_stream(path, compression=compression)

        class Half:
            close = stream.close

            def write(self, content: bytes) -> None:
                stream.write(content[: len(content) // 2])
                raise OSError(errno.ENOSPC, "No space left on device")

        return Half()


@contextlib.contextmanager
def full(store: CheckpointStore, patch: pytest.MonkeyPatch, dies: bool = False) -> Iterator[CheckpointStore]:
    """The same store on a full disk."""
    if isinstance(store, ObjectCheckpoints):
        objects = store.objects()
        yield ObjectCheckpoints(lambda: replace(objects, files=Full(objects.files, dies)))
        return
    assert isinstance(store, FolderCheckpoints)

    def no_room(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with patch.context() as inner:
        inner.setattr(checkpoint_store.os, "fsync", no_room)
        if dies:
            inner.setattr(Path, "unlink", no_room)
        yield store


def left(store: CheckpointStore, job: str) -> list[str]:
    """What there is of a job, whole or not, in folders or as objects."""
    if isinstance(store, FolderCheckpoints):
        return [path.name for path in store.folder.iterdir() if path.name.startswith((job, ".writing"))]
    assert isinstance(store, ObjectCheckpoints)
    objects = store.objects()
    infos = objects.files.get_file_info(fs.FileSelector(f"{objects.path}/{job}", allow_not_found=True))
    return [info.base_name for info in infos if info.type == fs.FileType.File]


on_disks = pytest.mark.parametrize("fresh", ["folder", *OBJECTS], indirect=True)


@on_disks
@pytest.mark.parametrize("dies", [False, True], ids=["fails", "dies"])
def test_a_put_that_ends_half_way_is_never_found(
    store: CheckpointStore, dies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = to_bytes(small())
    store.put("a", 3, whole)
    with full(store, monkeypatch, dies) as broken:
        for n_rounds in (3, 7):  # in the place of one that there is, and of one that there is not
            with pytest.raises(OSError, match="No space left") as caught:
                broken.put("a", n_rounds, bytes(5000))
            assert caught.value.errno == errno.ENOSPC
    assert len(left(store, "a")) == (3 if dies else 1)
    assert store.rounds("a") == [3]
    assert store.get("a", 3) == whole
    with pytest.raises(FileNotFoundError):
        store.get("a", 7)
    found = newest(store, "a")
    assert found is not None
    store.put("a", 7, whole)
    store.put("a", 8, whole)
    assert store.rounds("a") == [8, 7]
    store.delete("a")
    assert store.rounds("a") == []
    if isinstance(store, ObjectCheckpoints):
        assert left(store, "a") == []


@on_disks
def test_a_full_store_is_told_of_once_and_leaves_what_is_there(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    with full(store, monkeypatch) as broken:
        writer = Writer(broken, "a", 0.0, told.append)
        for _ in range(2):
            writer.finish(small())
    assert len(told) == 1
    assert "No space left on device" in told[0]
    assert "training goes on" in told[0]
    assert left(store, "a") == []


@pytest.mark.parametrize("kind", ["folder", "local"])
def test_a_disk_that_is_really_full(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a disk of its own takes the right to mount")
    try:
        objects = objects_of("local", disk, request)
        store = FolderCheckpoints(disk) if kind == "folder" else ObjectCheckpoints(lambda: objects)
        store.put("a", 1, bytes(100_000))
        with pytest.raises(OSError, match="No space left") as caught:
            store.put("a", 2, bytes(300_000))
        assert caught.value.errno == errno.ENOSPC
        assert store.rounds("a") == [1]
        assert store.get("a", 1) == bytes(100_000)
        store.put("a", 2, bytes(100_000))
        assert store.rounds("a") == [2, 1]
    finally:
        subprocess.run(["umount", disk], check=True)


# --- what only pyarrow's client of S3 can tell --------------------------------------------------------------------


@pytest.mark.parametrize(
    "refused",
    [("POST", "uploads"), ("PUT", "partNumber"), ("POST", "uploadId"), ("GET", "list-type")],
    ids=["at the start", "in a part", "at the end", "when it is looked for"],
)
def test_a_bucket_that_refuses(bucket: tuple[str, Objects], refused: tuple[str, str]) -> None:
    uri, objects = bucket
    store, job = checkpoints_at(uri), f"job{next(numbers)}"
    store.put(job, 1, b"first")
    objects.refuse.add(refused)
    try:
        with pytest.raises(OSError, match=r"cannot write in s3://bucket/kept: .*the bucket is full") as caught:
            store.put(job, 2, bytes(12_000_000))
    finally:
        objects.refuse.clear()
    assert "a-secret" not in str(caught.value)
    assert store.rounds(job) == [1]
    assert [key for key in objects.held if f"/{job}/0000000002" in key] == []


def test_a_bucket_that_is_away_pauses_who_resumes_and_not_who_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    credentials(monkeypatch)
    with socket.socket() as held:  # nobody can come to listen there
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        store = checkpoints_at(f"s3://bucket/kept?region=here&scheme=http&endpoint_override=127.0.0.1:{port}")
        with pytest.raises(CheckpointsUnavailable, match=r"of job a cannot be looked up: .*s3://bucket/kept"):
            kept_rounds(store, "a")
        told: list[str] = []
        Writer(store, "a", 0.0, told.append).finish(small())
    assert "could not be written: cannot write in s3://bucket/kept" in told[0]


def test_a_bucket_that_does_not_exist_is_named(bucket: tuple[str, Objects]) -> None:
    store = checkpoints_at(bucket[0].replace("//bucket/", "//nobody/"))
    with pytest.raises(OSError, match="cannot write in s3://nobody/kept"):
        store.put("a", 1, b"x")


def test_a_job_goes_on_from_a_bucket(plan: DataPlan, bucket: tuple[str, Objects], tmp_path: Path) -> None:  # noqa: F811
    """By what crosses to members on other machines: the URI, and nothing else."""
    uri, _ = bucket
    places = pickle.loads(pickle.dumps(CheckpointSettings(uri, 0.0, f"job{next(numbers)}")))
    job = replace(job_of(plan, tmp_path), checkpoints=places)
    whole = train_in_process(replace(job, checkpoints=None), NoProgress())
    first = Cancels(2)
    train_in_process(job, first)
    assert 0 < len(first.rounds) < job.config.rounds
    resumed = train_in_process(job, NoProgress())
    assert model_sha256(resumed.model) == model_sha256(whole.model)
    assert checkpoints_at(uri).rounds(places.name)[0] == job.config.rounds
    assert not any(tmp_path.glob("*.checkpoint"))
    assert b"a-secret" not in pickle.dumps(job)


# --- which locations there are --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "location",
    [
        "s3://bucket",
        "s3://bucket/some/folder?region=eu-central-1",
        "s3://bucket/f?scheme=http&endpoint_override=minio:9000",
        "gs://bucket/folder",
        "abfss://container@account.dfs.core.windows.net/folder",
        "file:///mnt/shared",
    ],
)
def test_known_locations(location: str) -> None:
    assert checked_location(location) == location


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("ftp://host/hidden", "scheme 'ftp' is not known; use a path, or one of file, s3, gs, gcs, abfs, abfss"),
        ("hdfs://host/x", "scheme 'hdfs' is not known"),
        ("s3://id:hidden@bucket/x", "holds no credentials: set them in the environment"),
        ("s3://hidden@bucket/x", "holds no credentials"),
        ("abfss://account:hidden@container/x", "holds no credentials"),
        ("s3://bucket/x?secret_key=hidden", "has no option 'secret_key'; there are endpoint_override, region, scheme"),
        ("gs://bucket/x?access_token=hidden", "has no option 'access_token'"),
        ("s3:///x", "names a bucket or container first"),
        ("s3://bucket/../x", "without '#', '.' and '..'"),
        ("s3://bucket/x#y", "without '#'"),
        ("file://host/x", "three slashes"),
        ("file://relative", "three slashes"),
        ("s3://[bucket/x", "is no URI"),
    ],
)
def test_other_locations_are_refused_by_name(location: str, words: str) -> None:
    with pytest.raises(ValueError, match=r"location|scheme|is no URI") as caught:
        checked_location(location)
    assert words in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_a_build_of_pyarrow_without_a_file_system_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bare:
        def __getattr__(self, name: str) -> Any:
            raise ImportError(f"The pyarrow installation is not built with support for '{name}'")

    monkeypatch.setattr(object_store, "fs", Bare())
    with pytest.raises(ValueError, match=r"this build of pyarrow \(.*\) has no GcsFileSystem; install one that has"):
        checked_location("gs://bucket/folder")


def test_a_path_and_a_file_uri_are_the_same_folder(tmp_path: Path) -> None:
    (tmp_path / "with space").mkdir()
    by_path = checkpoints_at(str(tmp_path / "with space"))
    assert by_path == checkpoints_at(f"file://{tmp_path}/with%20space")
    assert isinstance(by_path, FolderCheckpoints)
