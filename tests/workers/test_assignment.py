"""Every row has exactly one holder, whatever the gang."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boost_core.shard import RowRange
from tests.workers.parquet_tables import job_of, plan_of, write
from workers.assignment import PIECES, assign, assign_ranges, even_ranges
from workers.job import TrainingJob


def rows_of(ranges: tuple[RowRange, ...]) -> list[int]:
    return [row for start, stop in ranges for row in range(start, stop)]


@given(n_rows=st.integers(0, 300), parts=st.integers(1, 40))
def test_even_ranges_follow_each_other_and_differ_by_a_row(n_rows: int, parts: int):
    ranges = even_ranges(n_rows, parts)
    sizes = [stop - start for start, stop in ranges]
    assert rows_of(tuple(ranges)) == list(range(n_rows))
    assert len(ranges) == parts
    assert max(sizes) - min(sizes) <= 1


@given(
    n_rows=st.integers(0, 300),
    size=st.integers(1, 9),
    shuffle_seed=st.none() | st.integers(0, 99),
    data=st.data(),
)
def test_every_row_has_one_holder(n_rows: int, size: int, shuffle_seed: int | None, data: st.DataObject):
    idle = data.draw(st.sets(st.integers(0, size - 1), max_size=size - 1))
    dealt = assign_ranges(n_rows, size, shuffle_seed, idle)
    assert len(dealt) == size
    assert sorted(row for ranges in dealt for row in rows_of(ranges)) == list(range(n_rows))
    assert all(start < stop for ranges in dealt for start, stop in ranges)
    assert not any(dealt[rank] for rank in idle)
    counts = [len(rows_of(dealt[rank])) for rank in range(size) if rank not in idle]
    assert max(counts) - min(counts) <= (1 if shuffle_seed is None else PIECES)


def test_a_shuffle_deals_several_ranges_and_depends_on_its_seed_only():
    dealt = assign_ranges(1000, 3, 1)
    assert dealt == assign_ranges(1000, 3, 1)
    assert dealt != assign_ranges(1000, 3, 2)
    assert [len(ranges) for ranges in dealt] == [PIECES] * 3
    assert any(ranges != tuple(sorted(ranges)) for ranges in dealt)


def test_a_shuffle_leaves_the_callers_random_numbers_alone():
    import random

    random.seed(5)
    expected = random.random()
    random.seed(5)
    assign_ranges(100, 3, 1)
    assert random.random() == expected


@pytest.fixture
def job(tmp_path: Path) -> TrainingJob:
    train = write(tmp_path / "t.parquet", {"x": list(range(10)), "label": [0, 1] * 5})
    valid = write(tmp_path / "v.parquet", {"x": [1, 2, 3], "label": [0, 1, 0]})
    return job_of(plan_of(train, valid), threads=2)


def test_assignments_name_rank_size_and_threads(job: TrainingJob):
    given_by_job = assign(job, [4, 4])
    assert [(each.rank, each.size, each.threads) for each in given_by_job] == [(0, 2, 2), (1, 2, 2)]
    free = TrainingJob(job.job_id, job.run, job.plan, job.config, threads=None)
    assert [each.threads for each in assign(free, [4, 1])] == [4, 1]


def test_validation_rows_are_dealt_too(job: TrainingJob):
    parts = assign(job, [1] * 2)
    assert [part.train_ranges for part in parts] == [((0, 5),), ((5, 10),)]
    assert [part.valid_ranges for part in parts] == [((0, 1),), ((1, 3),)]


def test_more_members_than_rows(job: TrainingJob):
    parts = assign(job, [1] * 15)
    assert sorted(row for part in parts for row in rows_of(part.train_ranges)) == list(range(10))
    assert sum(not part.train_ranges for part in parts) == 5


def test_without_validation_data_nobody_holds_any(tmp_path: Path):
    plan = plan_of(write(tmp_path / "t.parquet", {"x": [1, 2], "label": [0, 1]}))
    assert [part.valid_ranges for part in assign(job_of(plan), [1] * 3, 1)] == [(), (), ()]
