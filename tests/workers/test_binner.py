"""Any gang bins as one process does: same thresholds, same codes, same fingerprint."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

import workers.binner as binner_module
from boost_core.binning import SAMPLE_ROWS, Binning, fingerprint
from boost_core.collective import Alone, Collective
from boost_core.shard import Shard
from boost_core.team import Team
from tests.workers.parquet_tables import Columns, job_of, plan_of, small_config, write
from workers.assignment import assign
from workers.binner import (
    BLOCK_BYTES,
    GROUPS_A_THREAD,
    LEAST_COLUMNS,
    LEAST_ROWS,
    WIDTHS,
    Binned,
    Binner,
    blocks_of,
    groups_of,
)
from workers.errors import DataError
from workers.job import Assignment, TrainingJob
from workers.reading import RangeReader
from workers.thread_group import ThreadGroup

NAN = float("nan")
INF = float("inf")


@dataclass(frozen=True)
class Whole:
    """What a gang's members have between them: rows back in their order."""

    binning: Binning
    train: NDArray[np.uint8]
    valid: NDArray[np.uint8]
    fingerprint: int
    rows_held: tuple[int, ...]


def bin_member(assignment: Assignment, collective: Collective, threads: int = 1) -> Binned:
    plan = assignment.job.plan
    rows = Shard(np.empty((0, 0), np.uint8), np.empty(0, np.int32), assignment.train_ranges).row_numbers
    with Team(threads) as team, RangeReader(plan.train, assignment.train_ranges) as train:
        binner = Binner(assignment, collective, team, lambda phase: None)
        if plan.valid is None:
            return binner.run(train, None, rows)
        with RangeReader(plan.valid, assignment.valid_ranges) as valid:
            return binner.run(train, valid, rows)


def bin_whole(
    job: TrainingJob, size: int, shuffle_seed: int | None = None, idle: Sequence[int] = (), threads: int = 1
) -> Whole:
    assignments = assign(job, [1] * size, shuffle_seed, idle)
    if size == 1:
        members = [bin_member(assignments[0], Alone(), threads)]
    else:
        members = ThreadGroup(size).run(lambda end: bin_member(assignments[end.rank], end, threads))
    for member in members[1:]:
        assert_same_binning(member.binning, members[0].binning)
    n_valid = job.plan.valid.n_rows if job.plan.valid else 0
    n_features = len(job.plan.features)
    train = np.full((n_features, job.plan.train.n_rows), 255, np.uint8)
    valid = np.full((n_features, n_valid), 255, np.uint8)
    total = 0
    for assignment, member in zip(assignments, members, strict=True):
        shard = Shard(member.train, np.zeros(member.train.shape[1], np.int32), assignment.train_ranges)
        train[:, shard.row_numbers()] = member.train
        valid_rows = Shard(member.valid, shard.labels, assignment.valid_ranges).row_numbers()
        valid[:, valid_rows] = member.valid
        total += fingerprint(shard.bins, shard.labels, shard.row_numbers())
    held = tuple(member.train.shape[1] for member in members)
    return Whole(members[0].binning, train, valid, total % 2**64, held)


def assert_same_binning(one: Binning, other: Binning) -> None:
    assert one.thresholds.tobytes() == other.thresholds.tobytes()
    assert_array_equal(one.threshold_start, other.threshold_start)
    assert_array_equal(one.has_missing, other.has_missing)


def assert_same(one: Whole, other: Whole) -> None:
    assert_same_binning(one.binning, other.binning)
    assert_array_equal(one.train, other.train)
    assert_array_equal(one.valid, other.valid)
    assert one.fingerprint == other.fingerprint


def job_on(folder: Path, columns: Columns, valid: Columns | None = None, max_bins: int = 255) -> TrainingJob:
    """A job on these features; the label alternates."""

    def labelled(features: Columns) -> Columns:
        n_rows = len(next(iter(features.values())))
        return features | {"label": pa.array(np.arange(n_rows) % 2)}

    train_path = write(folder / "train.parquet", labelled(columns), 37)
    valid_path = None if valid is None else write(folder / "valid.parquet", labelled(valid), 5)
    return job_of(plan_of(train_path, valid_path), small_config(max_bins=max_bins))


def mixed_columns(n_rows: int, seed: int = 0) -> Columns:
    """Few and many values, missing ones, infinities, a constant, nothing, heavy repeats."""
    random = np.random.default_rng(seed)
    normal = random.normal(size=n_rows)
    with_missing = normal.copy()
    with_missing[random.random(n_rows) < 0.2] = NAN
    infinite = normal.copy()
    infinite[:9] = [INF, -INF, INF, NAN, -0.0, 0.0, 1e308, -1e308, 5e-324]
    few = random.integers(0, 4, n_rows)
    return {
        "many": pa.array(normal),
        "many_missing": pa.array(with_missing),
        "single": pa.array(normal.astype(np.float32)),
        "few": pa.array(few),
        "few_missing": pa.array(few, mask=random.random(n_rows) < 0.3),
        "flags": pa.array(few > 1),
        "bytes": pa.array(random.integers(-128, 128, n_rows).astype(np.int8)),
        "bytes_missing": pa.array(few.astype(np.uint8), mask=np.arange(n_rows) == n_rows - 1),
        "pixels": pa.array(random.integers(0, 256, n_rows).astype(np.uint8)),
        "few_bytes": pa.array(few.astype(np.uint8) + 250),
        "short": pa.array(random.integers(-500, 500, n_rows).astype(np.int16)),
        "infinite": pa.array(random.permutation(infinite)),
        "constant": pa.array(np.full(n_rows, 7)),
        "nothing": pa.nulls(n_rows, pa.float64()),
        "heavy": pa.array(np.where(few > 0, 0.0, normal)),
    }


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainingJob, Whole]:
    job = job_on(tmp_path_factory.mktemp("mixed"), mixed_columns(1500), mixed_columns(90, 1))
    return job, bin_whole(job, 1)


@pytest.mark.parametrize(
    ("size", "shuffle_seed", "idle"),
    [(1, 3, ()), (2, None, ()), (2, 1, ()), (3, None, ()), (3, 2, ()), (5, 4, ()), (3, 5, (0,)), (3, None, (1, 2))],
)
def test_any_gang_bins_as_one_process(
    mixed: tuple[TrainingJob, Whole], size: int, shuffle_seed: int | None, idle: tuple[int, ...]
):
    job, alone = mixed
    gang = bin_whole(job, size, shuffle_seed, idle)
    assert_same(gang, alone)
    assert [rank for rank, rows in enumerate(gang.rows_held) if rows == 0] == list(idle)
    assert sum(gang.rows_held) == 1500


def test_threads_change_nothing(mixed: tuple[TrainingJob, Whole]):
    job, alone = mixed
    assert_same(bin_whole(job, 2, 1, threads=2), alone)


@pytest.mark.parametrize("group_bytes", [1, 30_000])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_that_each_take_columns_of_their_own_change_nothing(
    mixed: tuple[TrainingJob, Whole], threads: int, group_bytes: int, monkeypatch: pytest.MonkeyPatch
):
    """Beside blocks, which are shared out: a lone member whose groups hold too much goes through these."""
    job, _ = mixed
    taken: list[list[range]] = []
    apart = Binner._apart
    monkeypatch.setattr(Binner, "_apart", lambda own, groups, *rest: taken.append(groups) or apart(own, groups, *rest))
    monkeypatch.setattr(binner_module, "WHOLE_WORK", 1 << 20)
    monkeypatch.setattr(binner_module, "LEAST_ROWS", 0)
    monkeypatch.setattr(binner_module, "GROUP_BYTES", group_bytes)
    own = bin_whole(job, 1, threads=threads)
    [groups] = taken
    assert [feature for group in groups for feature in group] == list(range(len(job.plan.features)))
    monkeypatch.setattr(binner_module, "BLOCK_BYTES", 1)
    assert_same(bin_whole(job, 1, threads=threads), own)
    assert len(taken) == 1


def test_an_error_of_one_thread_ends_the_binning_of_a_lone_member(
    mixed: tuple[TrainingJob, Whole], monkeypatch: pytest.MonkeyPatch
):
    job, _ = mixed
    last = job.plan.features[-1].name

    def failing(reader: RangeReader, names: Sequence[str], *arguments: Any) -> list[Any]:
        if last in names:
            raise DataError(("data",), "it is gone")
        return columns(reader, names, *arguments)

    columns = RangeReader.columns
    monkeypatch.setattr(RangeReader, "columns", failing)
    monkeypatch.setattr(binner_module, "WHOLE_WORK", 1 << 20)
    monkeypatch.setattr(binner_module, "LEAST_ROWS", 0)
    with pytest.raises(DataError, match="it is gone"):
        bin_whole(job, 1, threads=2)


@given(
    types=st.lists(st.sampled_from(["double", "float", "int32", "int16", "bool", "uint8"]), max_size=300),
    n_rows=st.integers(0, 10**9),
    threads=st.integers(1, 64),
)
def test_what_threads_hold_of_columns_is_no_more_than_a_block(types: list[str], n_rows: int, threads: int):
    groups = groups_of(types, n_rows, threads)
    if not groups:
        return
    assert [feature for group in groups for feature in group] == list(range(len(types)))
    widest = max(sum(WIDTHS.get(types[feature], 8) for feature in group) for group in groups)
    assert threads * widest * n_rows <= BLOCK_BYTES
    assert threads == 1 or (len(groups) >= GROUPS_A_THREAD * threads and n_rows >= LEAST_ROWS)


@pytest.mark.parametrize("block_bytes", [1, 30_000, 1 << 40])
def test_blocks_change_nothing(mixed: tuple[TrainingJob, Whole], block_bytes: int, monkeypatch: pytest.MonkeyPatch):
    job, alone = mixed
    monkeypatch.setattr(binner_module, "BLOCK_BYTES", block_bytes)
    assert_same(bin_whole(job, 2, 1), alone)


def test_codes_follow_from_thresholds(mixed: tuple[TrainingJob, Whole]):
    """The definition, by NumPy: the number of thresholds at or below the value, one more bin for missing ones."""
    _, alone = mixed
    for part, columns in ((alone.train, mixed_columns(1500)), (alone.valid, mixed_columns(90, 1))):
        for feature, column in enumerate(columns.values()):
            values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            thresholds = alone.binning.of_feature(feature)
            expected = np.searchsorted(thresholds, values, side="right")
            expected[np.isnan(values)] = len(thresholds) + 1
            assert_array_equal(part[feature], expected)


def test_thresholds_are_exact_where_values_are_few(mixed: tuple[TrainingJob, Whole]):
    binning = mixed[1].binning
    by_name = {name: binning.of_feature(place).tolist() for place, name in enumerate(mixed_columns(9))}
    assert by_name["few"] == by_name["few_missing"] == [0.5, 1.5, 2.5]
    assert by_name["flags"] == [0.5]
    assert by_name["few_bytes"] == [250.5, 251.5, 252.5]
    assert by_name["constant"] == by_name["nothing"] == []
    missing = dict(zip(by_name, binning.has_missing.tolist(), strict=True))
    assert [name for name in by_name if missing[name]] == [
        *("many_missing", "few_missing", "bytes_missing", "infinite", "nothing")
    ]


def test_crowded_features_get_bins_of_about_equal_mass(mixed: tuple[TrainingJob, Whole]):
    alone = mixed[1]
    assert len(alone.binning.of_feature(0)) == 254
    counts = np.bincount(alone.train[0], minlength=255)
    assert counts.min() >= 1
    assert counts.max() <= 2 * 1500 / 255
    place = list(mixed_columns(9)).index("heavy")
    heavy = alone.binning.of_feature(place)
    assert (np.diff(heavy) > 0).all()
    assert alone.train[place][0] == np.searchsorted(heavy, np.asarray(mixed_columns(1500)["heavy"])[0], side="right")


@pytest.mark.parametrize(("distinct", "n_thresholds"), [(2, 1), (254, 253), (255, 254), (256, 254), (300, 254)])
def test_the_number_of_values_decides(tmp_path: Path, distinct: int, n_thresholds: int):
    values = np.random.default_rng(1).permutation(np.repeat(np.arange(distinct) * 0.25, 3))
    job = job_on(tmp_path, {"x": pa.array(values)})
    alone, gang = bin_whole(job, 1), bin_whole(job, 3, 1)
    assert_same(gang, alone)
    assert len(alone.binning.thresholds) == n_thresholds
    if distinct <= 255:
        assert alone.binning.thresholds.tolist() == [0.25 * k + 0.125 for k in range(distinct - 1)]


def test_values_that_are_many_only_over_all_members(tmp_path: Path):
    """Each member sees fewer than max_bins values, together they are more."""
    job = job_on(tmp_path, {"x": pa.array(np.arange(300.0))}, max_bins=200)
    alone = bin_whole(job, 1)
    assert_same(bin_whole(job, 3), alone)
    assert len(alone.binning.thresholds) == 199


@pytest.mark.parametrize("max_bins", [2, 3, 16])
def test_max_bins(tmp_path: Path, max_bins: int):
    job = job_on(tmp_path, mixed_columns(400), max_bins=max_bins)
    alone = bin_whole(job, 1)
    assert_same(bin_whole(job, 2, 1), alone)
    assert alone.binning.n_thresholds.max() == max_bins - 1


@pytest.mark.parametrize("n_rows", [2, 3, 4])
def test_more_members_than_rows(tmp_path: Path, n_rows: int):
    job = job_on(tmp_path, {"x": pa.array([0.5, None, -2.0, 0.5][:n_rows]), "y": pa.array([1, 2, 3, 4][:n_rows])})
    gang = bin_whole(job, 5)
    assert_same(gang, bin_whole(job, 1))
    assert gang.rows_held.count(0) == 5 - n_rows


def test_infinities_are_ordinary_extremes(tmp_path: Path):
    job = job_on(tmp_path, {"x": pa.array([INF, 1.0, -INF, 2.0]), "y": pa.array([INF, -INF, INF, -INF])})
    alone = bin_whole(job, 1)
    assert alone.binning.of_feature(0).tolist() == [1.0, 1.5, INF]
    assert alone.train[0].tolist() == [3, 1, 0, 2]
    assert alone.train[1].tolist() == [1, 0, 1, 0]


def test_zeros_of_either_sign_are_one_value(tmp_path: Path):
    job = job_on(tmp_path, {"x": pa.array([0.0, -0.0, 1.0, -0.0])})
    alone = bin_whole(job, 2)
    assert alone.binning.thresholds.tolist() == [0.5]
    assert alone.train[0].tolist() == [0, 0, 1, 0]


def test_missing_values_that_only_validation_has(tmp_path: Path):
    job = job_on(tmp_path, {"x": pa.array([1.0, 2.0, 3.0])}, {"x": pa.array([None, 9.0, NAN, -INF])})
    for whole in (bin_whole(job, 1), bin_whole(job, 3)):
        assert whole.valid[0].tolist() == [3, 2, 3, 0]
        assert not whole.binning.has_missing[0]


def test_the_sample_does_not_depend_on_who_holds_the_rows(tmp_path: Path):
    """More rows than the sample takes."""
    n_rows = SAMPLE_ROWS + 20_000
    column = np.random.default_rng(5).normal(size=n_rows)
    path = write(tmp_path / "t.parquet", {"x": column, "label": np.arange(n_rows) % 2}, 20_000)
    job = job_of(plan_of(path))
    alone = bin_whole(job, 1)
    assert_same(bin_whole(job, 3, 1), alone)
    everything = np.quantile(column, np.arange(1, 255) / 255)
    assert alone.binning.thresholds.tobytes() != everything.tobytes()
    counts = np.bincount(alone.train[0], minlength=255)
    assert np.abs(counts / n_rows * 255 - 1).max() < 0.4  # quantiles of a sample, of 257 rows a bin


def test_the_seed_decides_the_sample(tmp_path: Path):
    n_rows = SAMPLE_ROWS + 5000
    path = write(tmp_path / "t.parquet", {"x": np.arange(float(n_rows)), "label": np.arange(n_rows) % 2})
    plan = plan_of(path)
    one, other = (bin_whole(job_of(plan, small_config(seed=seed)), 1) for seed in (0, 1))
    assert one.binning.thresholds.tobytes() != other.binning.thresholds.tobytes()


def test_the_fingerprint_sees_every_row(tmp_path: Path):
    values = np.arange(20.0)
    first = bin_whole(job_on(tmp_path / "a", {"x": pa.array(values)}), 2, 1).fingerprint
    assert first == bin_whole(job_on(tmp_path / "b", {"x": pa.array(values + 5)}), 3).fingerprint  # the same bins
    values[[3, 4]] = values[[4, 3]]
    assert first != bin_whole(job_on(tmp_path / "c", {"x": pa.array(values)}), 2, 1).fingerprint


VALUES = st.sampled_from([None, NAN, INF, -INF, 0.0, -0.0, 1.0, 5e-324, -1e308, 1e308, 1.7976931348623157e308]) | (
    st.floats(width=32) | st.floats()
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=30),
    size=st.integers(2, 4),
    shuffle_seed=st.none() | st.integers(0, 9),
    max_bins=st.sampled_from([2, 3, 8, 255]),
)
def test_any_values_in_any_gang(
    tmp_path: Path, rows: list[tuple[Any, Any]], size: int, shuffle_seed: int | None, max_bins: int
):
    columns = {
        name: pa.array(list(column), pa.float64()) for name, column in zip("xy", zip(*rows, strict=True), strict=True)
    }
    job = job_on(tmp_path, columns, max_bins=max_bins)
    alone = bin_whole(job, 1)
    assert_same(bin_whole(job, size, shuffle_seed), alone)
    for feature in range(2):
        thresholds = alone.binning.of_feature(feature)
        assert (np.diff(thresholds) > 0).all()
        assert len(thresholds) < max_bins


@given(
    types=st.lists(st.sampled_from(["double", "float", "int32", "int16", "bool", "uint8"]), min_size=1, max_size=300),
    n_rows=st.integers(1, 10**9),
    size=st.integers(1, 50),
)
def test_blocks_cover_the_features_in_order(types: list[str], n_rows: int, size: int):
    blocks = blocks_of(types, n_rows, size)
    assert [feature for block in blocks for feature in block] == list(range(len(types)))
    assert all(len(block) > 0 for block in blocks)
    widths = [sum(WIDTHS.get(types[feature], 8) for feature in block) for block in blocks]
    most = BLOCK_BYTES // max(n_rows // size, 1)
    assert all(width <= most or len(block) <= LEAST_COLUMNS for width, block in zip(widths, blocks, strict=True))
