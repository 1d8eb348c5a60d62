"""One model, however many members hold the rows and whichever rows they hold."""

from pathlib import Path

import pytest

from boost_core.records import StopReason
from tests.builders import Table, make_table, shared_figures
from tests.workers.parquet_tables import (
    columns_of,
    job_of,
    plan_of,
    small_config,
    split_over_files,
    train_on_threads,
    train_plan,
    write,
)
from tests.workers.test_in_process import config_of, crowded_table
from workers.errors import DataError
from workers.job import MemberOutcome, TrainingJob, TrainingOutcome, join_outcomes
from workers.model_file import model_sha256

pytestmark = pytest.mark.parity

GANGS: list[tuple[int, int | None, tuple[int, ...]]] = [
    *((size, seed, ()) for size in (1, 2, 3, 5) for seed in (None, 1)),
    (3, 2, (0,)),  # the member that carries the model holds no rows
    (3, 3, (1,)),
    (5, 4, (0, 2, 4)),
    (2, None, (1,)),
]


def job_on(folder: Path, table: Table, held_out: Table, name: str) -> TrainingJob:
    train = split_over_files(folder / "train", columns_of(table), [100, 0, table.n_rows - 100], row_group_size=64)
    valid = write(folder / "valid.parquet", columns_of(held_out), 20)
    return job_of(plan_of(train, valid), config_of(name, rounds=6))


Alone = tuple[TrainingJob, TrainingOutcome]


@pytest.fixture(scope="module", params=["adaboost", "factorised", "free", "stump", "balanced", "crowded"])
def alone(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Alone:
    """A job and what one process makes of it."""
    n_classes = 2 if request.param == "adaboost" else 4
    table, held_out = make_table(300, 4, n_classes, seed=20), make_table(45, 4, n_classes, seed=21)
    if request.param == "crowded":
        table, held_out = crowded_table(700), crowded_table(90)
    job = job_on(tmp_path_factory.mktemp("member"), table, held_out, request.param)
    return job, train_plan(job.plan, job.config)


@pytest.mark.parametrize(("size", "shuffle_seed", "idle"), GANGS)
def test_every_gang_makes_one_model(alone: Alone, size: int, shuffle_seed: int | None, idle: tuple[int, ...]):
    job, expected = alone
    members = train_on_threads(job, size, shuffle_seed, idle)
    gang = join_outcomes(members, size)
    assert model_sha256(gang.model) == model_sha256(expected.model)
    assert_rows_held(members, job.plan.train.n_rows, idle)
    records = [shared_figures([each.record for each in outcome.rounds]) for outcome in (gang, expected)]
    assert records[0] == records[1]
    assert len(records[0]) == 6
    assert gang.stop_reason == expected.stop_reason == StopReason.ROUNDS


def assert_rows_held(members: list[MemberOutcome], n_rows: int, idle: tuple[int, ...]) -> None:
    """Every member but the idle ones really held rows; only rank 0 carries the model."""
    held = [member.n_rows for member in members]
    assert sum(held) == n_rows
    assert [rank for rank, rows in enumerate(held) if rows == 0] == list(idle)
    assert [member.rank for member in members] == list(range(len(members)))
    assert [member.model is not None for member in members] == [rank == 0 for rank in range(len(members))]


def test_two_runs_give_the_same_bytes(alone: Alone):
    job, expected = alone
    assert model_sha256(train_plan(job.plan, job.config).model) == model_sha256(expected.model)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_give_the_same_bytes(alone: Alone, threads: int):
    job, expected = alone
    [member] = train_on_threads(job_of(job.plan, job.config, threads), 1)
    assert member.model is not None
    assert model_sha256(member.model) == model_sha256(expected.model)


def test_members_of_some_classes_only(tmp_path: Path):
    """Rows sorted by label: no member sees them all."""
    table = make_table(90, 3, 3, seed=22)
    job = job_of(plan_of(write(tmp_path / "t.parquet", columns_of(table.only(table.labels.argsort(kind="stable"))))))
    expected = model_sha256(train_plan(job.plan).model)
    for size in (2, 3, 6):
        assert model_sha256(join_outcomes(train_on_threads(job, size), size).model) == expected


def test_more_members_than_rows(tmp_path: Path):
    job = job_of(plan_of(write(tmp_path / "t.parquet", {"x": [1.0, None, 3.0], "label": ["a", "b", "a"]})))
    members = train_on_threads(job, 5)
    assert sorted(member.n_rows for member in members) == [0, 0, 1, 1, 1]
    assert model_sha256(join_outcomes(members, 5).model) == model_sha256(train_plan(job.plan).model)


def test_more_members_than_validation_rows(tmp_path: Path):
    table = make_table(60, 2, 3, seed=23)
    train = write(tmp_path / "t.parquet", columns_of(table))
    valid = write(tmp_path / "v.parquet", columns_of(table.only(slice(0, 2))))
    job = job_of(plan_of(train, valid))
    gang = join_outcomes(train_on_threads(job, 4), 4)
    alone = train_plan(job.plan)
    assert model_sha256(gang.model) == model_sha256(alone.model)
    assert [each.record.valid_error for each in gang.rounds] == [each.record.valid_error for each in alone.rounds]


def test_a_member_that_finds_changed_data_fails_the_gang_by_name(tmp_path: Path):
    table = make_table(60, 2, 3, seed=24)
    paths = split_over_files(tmp_path, columns_of(table), [30, 30], row_group_size=30)
    job = job_of(plan_of(paths), small_config())
    write(Path(paths[1]), columns_of(table.only(slice(0, 7))))
    with pytest.raises(DataError, match=r"'001.parquet' has changed since the job was planned"):
        train_on_threads(job, 2)
