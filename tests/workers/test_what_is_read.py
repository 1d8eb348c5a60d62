"""What reading touches: which files, how often, and which of their bytes."""

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from boost_core.team import Team
from tests.workers.parquet_tables import job_of, plan_of, split_over_files, train_on_threads, train_plan
from workers import open_files, parquet_file
from workers.errors import DataError
from workers.job import join_outcomes
from workers.model_file import model_sha256
from workers.raw_column import owned
from workers.reading import RangeReader

N_ROWS, GROUP = 40_000, 5_000
SIZES = (20_000, 20_000)


class Recorder(io.FileIO):
    """A file that notes what is read of it."""

    def __init__(self, path: str, notes: list[tuple[str, int, int]]) -> None:
        super().__init__(path)
        self.notes, self.path = notes, path

    def readinto(self, buffer: Any) -> int | None:
        at = self.tell()
        size = super().readinto(buffer)
        self.notes.append((self.path, at, at + (size or 0)))
        return size

    def read(self, size: int | None = -1) -> bytes | None:
        at = self.tell()
        content = super().read(-1 if size is None else size)
        self.notes.append((self.path, at, at + len(content or b"")))
        return content


class Recorded:
    """Every file that is opened, with whether its footer was read then, and every byte range that is read."""

    def __init__(self) -> None:
        self.opened: list[tuple[str, bool]] = []
        self.read: list[tuple[str, int, int]] = []
        self.files: list[Recorder] = []
        self._lock = threading.Lock()

    def open(self, path: str, footer: pq.FileMetaData | None = None) -> pq.ParquetFile:
        with self._lock:
            self.opened.append((path, footer is None))
            self.files.append(Recorder(path, self.read))
            return pq.ParquetFile(self.files[-1], metadata=footer)

    def footers(self) -> list[str]:
        return sorted(path for path, whole in self.opened if whole)


@contextmanager
def recording(patch: pytest.MonkeyPatch) -> Iterator[Recorded]:
    recorded = Recorded()
    with patch.context() as inside:
        inside.setattr(parquet_file, "opened", recorded.open)
        yield recorded
    for file in recorded.files:
        file.close()


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Two files of four row groups; of the columns a and c are asked for, b and d lie between them."""
    random = np.random.default_rng(0)
    columns: dict[str, Any] = {name: random.normal(size=N_ROWS) for name in "abcd"}
    columns["label"] = random.integers(0, 3, N_ROWS)
    return split_over_files(tmp_path_factory.mktemp("read"), columns, SIZES, GROUP)


def allowed(paths: tuple[str, ...], names: set[str], groups: dict[str, set[int]]) -> dict[str, list[tuple[int, int]]]:
    """By file the bytes of the columns' chunks in the row groups, and of the footer."""
    found: dict[str, list[tuple[int, int]]] = {}
    for path in paths:
        footer = pq.read_metadata(path)
        size = Path(path).stat().st_size
        # a reader looks at the last 64 KB for the footer before it knows how long that is
        ranges = [(max(size - max(footer.serialized_size + 8, 64 << 10), 0), size)]
        for group in groups.get(path, ()):
            for place in range(footer.num_columns):
                chunk = footer.row_group(group).column(place)
                if chunk.path_in_schema in names:
                    start = chunk.dictionary_page_offset or chunk.data_page_offset
                    ranges.append((start, start + chunk.total_compressed_size))
        found[path] = ranges
    return found


def test_only_the_columns_and_row_groups_in_use_are_read(
    paths: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(paths, features=["a", "c"])
    rows = [(17_000, 21_000)]  # the end of the first file and the beginning of the second: row groups 3 and 0
    with recording(monkeypatch) as recorded, Team(2) as team, RangeReader(plan.train, rows, team) as reader:
        reader.columns(["a", "c"])
        reader.class_indices("label", plan.classes)
    may = allowed(paths, {"a", "c", "label"}, {paths[0]: {3}, paths[1]: {0}})
    strange = [
        (path, start, stop)
        for path, start, stop in recorded.read
        if stop > start and not any(low <= start and stop <= high for low, high in may[path])
    ]
    assert strange == []
    n_bytes = sum(stop - start for _, start, stop in recorded.read)
    whole = sum(Path(path).stat().st_size for path in paths)
    assert 0 < n_bytes < whole / 2
    assert recorded.footers() == sorted(paths)


def test_footers_are_read_once_by_the_plan_and_by_the_members_that_hold_rows(
    paths: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with recording(monkeypatch) as recorded:
        plan = plan_of(paths, features=["a", "c"])
    assert recorded.footers() == sorted(paths)
    may = allowed(paths, {"label"}, {path: set(range(4)) for path in paths})
    assert all(any(a <= start and stop <= b for a, b in may[path]) for path, start, stop in recorded.read)
    job = job_of(plan)
    with recording(monkeypatch) as recorded:
        members = train_on_threads(job, 4)  # two members a file
    assert recorded.footers() == sorted([*paths, *paths])
    assert model_sha256(join_outcomes(members, 4).model) == model_sha256(train_plan(plan).model)


def test_more_files_than_may_be_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is opened again must be the one that was planned."""
    monkeypatch.setattr(open_files, "MOST_IDLE", 2)
    columns = {"x": np.arange(12.0), "label": np.arange(12) % 2}
    paths = split_over_files(tmp_path, columns, [2] * 6, 2)
    plan = plan_of(paths)
    with Team(2) as team, RangeReader(plan.train, [(0, 12)], team) as reader:
        assert len(reader._files._idle) == 2
        assert reader.floats(["x"]).tolist() == [list(range(12))]
        split_over_files(tmp_path, {"x": np.arange(9.0, 21.0), "label": np.arange(12) % 2}, [2] * 6, 2)
        with pytest.raises(DataError, match=r"'00\d.parquet' has changed since the job was planned"):
            reader.floats(["x"])


def test_a_part_of_a_row_group_does_not_keep_the_rest_in_memory() -> None:
    whole = pa.array(np.arange(10_000.0))
    assert owned(whole.slice(100, 50), 10_000).get_total_buffer_size() < 1_000
    assert owned(whole.slice(100, 9_000), 10_000).get_total_buffer_size() == whole.nbytes


def test_arrows_own_threads_stay_out(paths: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Members decode in the threads of their teams: each thread of the team reads, and no other does."""
    plan = plan_of(paths)
    readers: set[str] = set()
    read = pq.ParquetFile.read_row_groups

    def noted(self: pq.ParquetFile, *arguments: Any, **options: Any) -> pa.Table:
        assert options["use_threads"] is False
        readers.add(threading.current_thread().name)
        return read(self, *arguments, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", noted)
    with Team(2) as team, RangeReader(plan.train, [(0, N_ROWS)], team) as reader:
        reader.columns(["a", "b", "c", "d"])
    assert readers <= {threading.current_thread().name, "edgewise-team"}
