"""Row ranges across files and row groups give the rows of the whole table."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from boost_core.shard import RowRange
from boost_core.team import Team
from tests.workers.parquet_tables import plan_of, read_all, write, write_row_groups
from workers import parquet_file, reading
from workers.data_plan import DataPlan, DataRequest, TableRows, plan_data
from workers.errors import DataError
from workers.parquet_file import has_large_chunks
from workers.raw_column import to_floats
from workers.reading import RangeReader, class_indices

NAN = float("nan")
INF = float("inf")


# --- values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, None, -3], pa.int8()), [1, NAN, -3]),
        (pa.array([2**53, 2**53 + 1, -(2**63)]), [2.0**53, 2.0**53, -(2.0**63)]),
        (pa.array([2**64 - 1, None], pa.uint64()), [2.0**64, NAN]),
        (pa.array([True, None, False]), [1, NAN, 0]),
        (pa.array([0.1, None], pa.float32()), [float(np.float32(0.1)), NAN]),
        (pa.array(np.array([0.1, -0.0], np.float16)), [float(np.float16(0.1)), 0]),
        (pa.array([INF, -INF, NAN, None, 5e-324]), [INF, -INF, NAN, NAN, 5e-324]),
        (pa.nulls(2, pa.int32()), [NAN, NAN]),
        (pa.array([], pa.int32()), []),
        (pa.chunked_array([[1, None], [], [3]], pa.int64()), [1, NAN, 3]),
    ],
)
def test_numbers_become_float64_and_missing_ones_nan(column: Any, expected: list[float]):
    values = to_floats(column)
    assert values.dtype == np.float64
    assert_array_equal(values, np.array(expected, np.float64))


@pytest.mark.parametrize(
    ("column", "classes", "expected"),
    [
        ([4, 3, 5, 6], (3, 4, 5), [1, 0, 2, -1]),
        ([4, None], (3, 4), [1, -1]),
        (["b", "a", "c", None], ("a", "b"), [1, 0, -1, -1]),
        ([True, False, None], (False, True), [1, 0, -1]),
        ([-0.0, 0.0, 2.0, NAN, None], (0.0, 2.0), [0, 0, 1, -1, -1]),
        ([3.0, 4.5], (3, 4), [0, -1]),
        ([1, 0], ("0", "1"), [-1, -1]),
        (pa.array(["b", None, "a"]).dictionary_encode(), ("a", "b"), [1, -1, 0]),
        (pa.array([2**64 - 1], pa.uint64()), (1, 2**64 - 1), [1]),
        (pa.array(["b"], pa.large_string()), ("a", "b"), [1]),
        (pa.nulls(2), (0, 1), [-1, -1]),
        (pa.array([], pa.int64()), (0, 1), []),
    ],
)
def test_class_of_each_label(column: Any, classes: tuple[Any, ...], expected: list[int]):
    found = class_indices(pa.chunked_array([column]), classes)
    assert found.dtype == np.int32
    assert found.tolist() == expected


def test_chunks_with_dictionaries_of_their_own():
    chunks = [pa.array(part).dictionary_encode() for part in (["b", "a"], ["c", "b"])]
    assert class_indices(pa.chunked_array(chunks), ("a", "b", "c")).tolist() == [1, 0, 2, 1]


# --- ranges -------------------------------------------------------------------------------------------------

FLOATS = st.sampled_from([None, NAN, INF, -INF, 0.0, -1.5, 1e308])


@st.composite
def files_of_row_groups(draw: Callable[[Any], Any]) -> list[list[pa.Table]]:
    """1 to 4 files of 1 to 4 row groups of 0 to 6 rows; labels dictionary-encoded in each row group apart."""
    files = []
    for _ in range(draw(st.integers(1, 4))):
        groups = []
        for size in draw(st.lists(st.integers(0, 6), min_size=1, max_size=4)):
            labels = draw(st.lists(st.sampled_from("abc"), min_size=size, max_size=size))
            table = {
                "x": pa.array(draw(st.lists(FLOATS, min_size=size, max_size=size)), pa.float64(), from_pandas=False),
                "n": pa.array(draw(st.lists(st.none() | st.integers(-4, 4), min_size=size, max_size=size)), pa.int16()),
                "label": pa.array(labels, pa.string()).dictionary_encode(),
            }
            groups.append(pa.table(table))
        files.append(groups)
    files[0].append(pa.table({name: files[0][0][name].slice(0, 0) for name in ("x", "n", "label")}))
    files[0].append(
        pa.table(
            {
                "x": pa.array([0.5, 1.5]),
                "n": pa.array([1, 2], pa.int16()),
                "label": pa.array(["a", "b"]).dictionary_encode(),
            }
        )
    )
    return files


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=files_of_row_groups(), read_rows=st.sampled_from([1, 7, reading.READ_ROWS]), data=st.data())
def test_ranges_are_slices_of_the_whole_table(
    tmp_path: Path, files: list[list[pa.Table]], read_rows: int, data: st.DataObject
):
    paths = [write_row_groups(tmp_path / f"{place}.parquet", groups) for place, groups in enumerate(files)]
    plan = plan_of(paths)
    ends = st.integers(0, plan.train.n_rows)
    ranges = data.draw(st.lists(st.tuples(ends, ends).map(lambda pair: (min(pair), max(pair))), max_size=4))
    whole = read_all(paths, ["x", "n"])
    labels = [label for groups in files for table in groups for label in table["label"].to_pylist()]
    rows = [row for start, stop in ranges for row in range(start, stop)]
    with pytest.MonkeyPatch.context() as patch, RangeReader(plan.train, ranges) as reader:
        patch.setattr(reading, "READ_ROWS", read_rows)
        assert reader.n_rows == len(rows)
        floats, indices = reader.floats(["n", "x"]), reader.class_indices("label", plan.classes)
    assert floats.flags.c_contiguous
    assert_array_equal(floats, whole[[1, 0]][:, rows])
    assert [plan.classes[index] for index in indices] == [labels[row] for row in rows]


@pytest.mark.parametrize(
    ("ranges", "read_rows", "threads", "expected"),
    [
        ([(0, 100)], 1000, 1, [["a", 0, 1, 2], ["b", 0, 1]]),
        ([(0, 100)], 40, 1, [["a", 0, 1], ["a", 2], ["b", 0, 1]]),
        ([(0, 100)], 1, 1, [["a", 0], ["a", 1], ["a", 2], ["b", 0], ["b", 1]]),
        ([(0, 100)], 1000, 2, [["a", 0], ["a", 1], ["a", 2], ["b", 0], ["b", 1]]),
        ([(5, 30)], 1000, 1, [["a", 0, 1]]),
        ([(0, 5), (5, 30)], 1000, 1, [["a", 0, 1]]),
        ([(0, 5), (8, 30)], 1000, 1, [["a", 0, 1]]),
        ([(0, 15), (20, 30)], 1000, 1, [["a", 0], ["a", 1]]),
        ([(0, 20), (25, 30)], 1000, 1, [["a", 0], ["a", 1]]),
        ([(0, 20), (40, 60)], 1000, 1, [["a", 0], ["a", 2]]),
        ([(20, 40), (0, 20)], 1000, 1, [["a", 1], ["a", 0]]),
    ],
)
def test_neighbouring_row_groups_are_decoded_in_one_call(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ranges: list[RowRange],
    read_rows: int,
    threads: int,
    expected: list[list[Any]],
):
    """As far as no row that nobody wants lies between, and threads have enough to share."""
    rows = [row for start, stop in ranges for row in range(start, stop)]
    columns = {"x": np.arange(100.0), "label": np.arange(100) % 2}
    for name, start, stop in (("a", 0, 60), ("b", 60, 100)):
        write(tmp_path / f"{name}.parquet", {key: each[start:stop] for key, each in columns.items()}, 20)
    plan = plan_of([str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")])
    monkeypatch.setattr(reading, "READ_ROWS", read_rows)
    calls, read_run = [], RangeReader._read

    def noted(self: RangeReader, run: reading.Run, names: Sequence[str]) -> pa.Table:
        calls.append([Path(run.path).stem, *run.groups])
        return read_run(self, run, names)

    monkeypatch.setattr(RangeReader, "_read", noted)
    with Team(threads) as team, RangeReader(plan.train, ranges, team) as reader:
        assert reader.floats(["x"])[0].tolist() == rows
        assert calls == expected
        assert reader.class_indices("label", (0, 1)).tolist() == [row % 2 for row in rows]


@pytest.mark.parametrize("threads", [1, 2])
def test_labels_are_found_in_parts_of_any_order(tmp_path: Path, threads: int):
    labels = np.random.default_rng(0).integers(0, 5, 100)
    plan = plan_of(write(tmp_path / "t.parquet", {"x": np.arange(100.0), "label": labels}, 20))
    with Team(threads) as team, RangeReader(plan.train, [(15, 95)], team) as reader:
        indices, parts = reader.labelling("label", plan.classes)
        for part in reversed(parts):
            part()
    assert len(parts) >= 2 * threads
    assert indices.tolist() == labels[15:95].tolist()


@pytest.mark.parametrize(("n_rows", "large"), [(1_000, False), (100_000, True)])
def test_large_columns_are_read_by_few_bytes_at_a_time(tmp_path: Path, n_rows: int, large: bool):
    """And the rows are the same."""
    x = np.random.default_rng(0).random(n_rows)
    path = write(tmp_path / "t.parquet", {"x": x, "y": -x, "label": np.arange(n_rows) % 2})
    assert has_large_chunks(pq.read_metadata(path)) == large
    with RangeReader(plan_of(path).train, [(0, n_rows)]) as reader:
        assert_array_equal(reader.floats(["y", "x"]), [-x, x])


@pytest.mark.parametrize("n_rows", [1_000, 100_000])
def test_a_file_that_is_replaced_while_it_is_opened_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_rows: int
):
    columns = {"x": np.random.default_rng(0).random(n_rows), "label": np.arange(n_rows) % 2}
    path, other = write(tmp_path / "t.parquet", columns), write(tmp_path / "other.parquet", columns)
    plan, opened = plan_of(path), parquet_file.opened

    def replaced(path: str, footer: pq.FileMetaData | None = None) -> pq.ParquetFile:
        file = opened(path, footer)
        if Path(other).exists():
            Path(other).replace(path)
        return file

    monkeypatch.setattr(parquet_file, "opened", replaced)
    with pytest.raises(DataError, match=r"'t.parquet' has changed since the job was planned"):
        RangeReader(plan.train, [(0, n_rows)]).__enter__()


def test_columns_whose_names_begin_alike_are_kept_apart(tmp_path: Path):
    columns = {"a.b": [1, 2], "a": [3, 4], "a.b.c": [5, 6], "label.x": [7, 8], "label": [0, 1]}
    plan = plan_of(write(tmp_path / "t.parquet", columns))
    with RangeReader(plan.train, [(0, 2)]) as reader:
        assert reader.floats(["a", "label.x", "a.b"]).tolist() == [[3, 4], [7, 8], [1, 2]]
        assert reader.class_indices("label", (0, 1)).tolist() == [0, 1]


def test_no_ranges_open_no_file(tmp_path: Path):
    plan = plan_of(write(tmp_path / "t.parquet", {"x": [1, 2], "label": [0, 1]}))
    (tmp_path / "t.parquet").unlink()
    with RangeReader(plan.train, []) as reader:
        assert reader.floats(["x"]).shape == (1, 0)
        assert reader.class_indices("label", (0, 1)).shape == (0,)


# --- files that change after they were planned --------------------------------------------------------------


@pytest.fixture
def planned(tmp_path: Path) -> DataPlan:
    paths = [write(tmp_path / f"{name}.parquet", {"x": [1.0, 2.0], "label": [0, 1]}) for name in "ab"]
    return plan_of(paths)


def read(table: TableRows, ranges: tuple[RowRange, ...] = ((0, 4),)) -> None:
    with RangeReader(table, ranges) as reader:
        reader.class_indices("label", (0, 1))
        reader.floats(["x"])


@pytest.mark.parametrize(
    ("columns", "row_group_size"),
    [
        ({"x": [1.0], "label": [0]}, None),
        ({"x": [1.0, 2.0, 3.0], "label": [0, 1, 0]}, None),
        ({"x": [1.0, 2.0], "label": [0, 1]}, 1),
        ({"x": [1.0, 2.0], "label": [0, 2]}, None),
        ({"x": [1.0, 2.0], "label": [0, None]}, None),
        ({"x": [1.0, 2.0], "label": ["0", "1"]}, None),
        ({"x": ["1", "2"], "label": [0, 1]}, None),
        ({"y": [1.0, 2.0], "label": [0, 1]}, None),
        ({"x": [1.0, 2.0], "kind": [0, 1]}, None),
    ],
    ids=[
        "fewer rows",
        "more rows",
        "row groups",
        "label",
        "null label",
        "label type",
        "type",
        "no feature",
        "no label",
    ],
)
def test_a_file_that_changed_is_named(
    tmp_path: Path, planned: DataPlan, columns: dict[str, Any], row_group_size: int | None
):
    read(planned.train)
    write(tmp_path / "b.parquet", columns, row_group_size)
    read(planned.train, ((0, 2),))
    with pytest.raises(DataError, match=r"'b.parquet' has changed since the job was planned") as caught:
        read(planned.train)
    assert caught.value.loc == ("data",)


def test_a_file_that_is_gone_is_named(tmp_path: Path, planned: DataPlan):
    (tmp_path / "b.parquet").unlink()
    with pytest.raises(DataError, match=r"'b.parquet' cannot be read"):
        read(planned.train)


def test_a_file_cut_short_while_it_is_read_is_an_error(tmp_path: Path):
    """With a memory map the process would end by a signal."""
    path = write(tmp_path / "t.parquet", {"x": np.random.default_rng(0).random(50_000), "label": [0, 1] * 25_000})
    plan = plan_of(path)
    with RangeReader(plan.train, [(0, 50_000)]) as reader:
        with Path(path).open("r+b") as file:
            file.truncate(1000)
        with pytest.raises(DataError, match=r"'t.parquet' cannot be read"):
            reader.floats(["x"])


def test_errors_of_what_is_done_with_the_rows_pass_through(planned: DataPlan):
    with pytest.raises(ConnectionResetError), RangeReader(planned.train, [(0, 4)]):
        raise ConnectionResetError("a member is gone")


@pytest.mark.parametrize("ranges", [[(0, 100)], [(10, 30), (35, 100)]])
def test_unsigned_bytes_lie_in_their_room_and_nothing_else_does(tmp_path: Path, ranges: list[RowRange]) -> None:
    numbers = np.arange(100)
    columns = {
        "bytes": pa.array(numbers.astype(np.uint8)),
        "truths": pa.array(numbers % 3 == 0),
        "missing": pa.array(numbers.astype(np.uint8), mask=numbers == 99),
        "signed": pa.array(numbers.astype(np.int8)),
        "label": pa.array(numbers % 2),
    }
    path = str(tmp_path / "t.parquet")
    pq.write_table(pa.table(columns), path, row_group_size=50)
    plan, rows = plan_of([path]), [row for start, stop in ranges for row in range(start, stop)]
    names = ["bytes", "truths", "missing", "signed"]
    room = np.full((4, len(rows)), 77, np.uint8)
    with RangeReader(plan.train, ranges) as reader:
        found = reader.columns(names, None, room)
        for name, own, column in zip(names, room, found, strict=True):
            values = np.concatenate([tile.floats() for tile in column.tiles()])
            expected = columns[name].cast(pa.float64() if name != "truths" else pa.uint8()).to_numpy(False)[rows]
            assert_array_equal(values, expected)
            here = [np.shares_memory(tile.values, own) for tile in column.parts]
            assert all(here) if name in ("bytes", "truths") else not all(here)
        assert (room[3] == 77).all()
        reader.keep(numbers[rows] != 50)
        room[:] = 77
        assert len(reader.columns(names, None, room)) == 4
        assert (room == 77).all()  # rows that are left out have no place in it


@pytest.mark.parametrize("ranges", [[(0, 40)], [(0, 20)]])
def test_columns_are_found_behind_lists(tmp_path: Path, ranges: list[RowRange]) -> None:
    """Where a file has more leaves than columns."""
    lists = pa.array([{"a": row, "b": row} for row in range(40)])
    columns = {"lists": lists, "x": np.arange(40.0), "label": np.arange(40) % 2}
    path = str(tmp_path / "t.parquet")
    pq.write_table(pa.table(columns), path, row_group_size=20)
    plan = plan_data(DataRequest((path,), None, "label", features=("x",)))
    with RangeReader(plan.train, ranges) as reader:
        assert reader.floats(["x"]).tolist() == [list(range(ranges[0][1]))]
