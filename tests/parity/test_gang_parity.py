"""One job, one model: in this process and on one, two and three Dask workers, however the rows are dealt."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from distributed import Client

from boost_core.catalogue import resolve_config
from boost_core.config import TrainingConfig
from boost_core.model import Model
from tests.builders import make_table
from tests.workers.parquet_tables import columns_of, plan_of, split_over_files
from workers.cluster import connect
from workers.data_plan import DataPlan
from workers.gang import GangSettings, train_on_gang
from workers.in_process import train_in_process
from workers.job import NoProgress, TrainingJob, TrainingOutcome
from workers.model_file import model_sha256

pytestmark = pytest.mark.parity

N_ROWS = 900
ROUNDS = 12
numbers = count()


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with connect("local:3") as client:
        client.wait_for_workers(3, timeout=60)
        yield client


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> DataPlan:
    folder = tmp_path_factory.mktemp("parity")
    table = make_table(N_ROWS, n_features=7, n_classes=5, seed=3)
    paths = split_over_files(folder, columns_of(table), (400, 1, 499), row_group_size=150)
    valid = make_table(200, n_features=7, n_classes=5, seed=4)
    return plan_of(paths, split_over_files(folder / "valid", columns_of(valid), (200,), row_group_size=64))


@pytest.fixture(scope="module", params=["free", "factorised"])
def config(request: pytest.FixtureRequest) -> TrainingConfig:
    tree = {"kind": "hamming_tree", "max_leaves": 6, "votes": request.param}
    config = resolve_config({"algorithm": {"name": "adaboost_mh", "weak_learner": tree}, "rounds": ROUNDS})
    assert config.weak_learner.parameters["votes"] == request.param
    return config


@pytest.fixture(scope="module")
def alone(plan: DataPlan, config: TrainingConfig) -> Model:
    return train_in_process(TrainingJob("alone", 1, plan, config, 1), NoProgress()).model


def on_gang(
    client: Client, plan: DataPlan, config: TrainingConfig, size: int, settings: GangSettings
) -> TrainingOutcome:
    return train_on_gang(TrainingJob(f"parity-{next(numbers)}", 1, plan, config), client, size, NoProgress(), settings)


def test_two_runs_in_process_give_one_model(plan: DataPlan, config: TrainingConfig, alone: Model) -> None:
    again = train_in_process(TrainingJob("again", 1, plan, config, 2), NoProgress()).model
    assert again.forest.n_rounds == again.forest.n_trees == ROUNDS
    assert model_sha256(again) == model_sha256(alone)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("shuffle_seed", [None, 1, 2])
def test_gangs_of_any_size_give_the_same_model(
    client: Client, plan: DataPlan, config: TrainingConfig, alone: Model, size: int, shuffle_seed: int | None
) -> None:
    outcome = on_gang(client, plan, config, size, GangSettings(shuffle_seed=shuffle_seed))
    assert outcome.workers == size
    assert len(outcome.rows_per_member) == size
    assert all(rows > 0 for rows in outcome.rows_per_member)
    assert sum(outcome.rows_per_member) == N_ROWS
    assert model_sha256(outcome.model) == model_sha256(alone)


@pytest.mark.parametrize("idle", [0, 1, 2])
def test_a_member_without_rows_changes_nothing(
    client: Client, plan: DataPlan, config: TrainingConfig, alone: Model, idle: int
) -> None:
    outcome = on_gang(client, plan, config, 3, GangSettings(shuffle_seed=5, idle=(idle,)))
    assert outcome.rows_per_member[idle] == 0
    assert sum(outcome.rows_per_member) == N_ROWS
    assert model_sha256(outcome.model) == model_sha256(alone)


# Algorithm and weak learner: every kind of leaf, of step, and of message between members.
KINDS: dict[str, dict[str, Any]] = {
    "mm": {"name": "adaboost_mm", "weak_learner": {"kind": "tree"}},
    "one vs all": {"name": "one_vs_all", "weak_learner": {"kind": "stump"}},
    "all pairs": {"name": "all_pairs", "weak_learner": {"kind": "hamming_tree"}},
    "independent stumps": {"name": "adaboost_mh", "weak_learner": {"kind": "independent_stumps"}},
    "product": {"name": "adaboost_mh", "weak_learner": {"kind": "product"}},
    "real leaves": {"name": "adaboost_mh", "weak_learner": {"kind": "real_tree"}},
    "samme": {"name": "samme", "weak_learner": {"kind": "tree"}},
    "resampling": {"name": "multiclass_adaboost", "sampling": "resample", "weak_learner": {"kind": "tree"}},
}


def test_weighted_rows_give_the_same_model(client: Client, tmp_path: Path) -> None:
    table = make_table(N_ROWS, n_features=7, n_classes=5, seed=3)
    weights = np.random.default_rng(1).choice([0.0, 0.25, 1.0, 3.7], N_ROWS)
    columns = columns_of(table) | {"w": pa.array(weights)}
    paths = split_over_files(tmp_path, columns, (400, 1, 499), row_group_size=150)
    plan = plan_of(paths, paths[:1], weight="w")
    algorithm = KINDS["resampling"] | {"class_weight": "balanced"}
    config = resolve_config({"algorithm": algorithm, "rounds": ROUNDS, "seed": 7})
    alone = train_in_process(TrainingJob("alone", 1, plan, config, 1), NoProgress()).model
    assert alone.forest.n_rounds == ROUNDS
    assert alone.n_rows == np.count_nonzero(weights)
    outcome = on_gang(client, plan, config, 2, GangSettings(shuffle_seed=3))
    assert model_sha256(outcome.model) == model_sha256(alone)


def test_the_conditions_of_the_rounds_are_the_same(client: Client, plan: DataPlan) -> None:
    """They are part of the model, so of its hash; the driver hears of them too."""
    config = resolve_config({"algorithm": KINDS["mm"], "rounds": ROUNDS, "conditions": True})
    alone = train_in_process(TrainingJob("alone", 1, plan, config, 1), NoProgress())
    outcome = on_gang(client, plan, config, 2, GangSettings(shuffle_seed=3))
    assert model_sha256(outcome.model) == model_sha256(alone.model)
    assert alone.model.conditions is not None
    assert alone.model.conditions.shape == (ROUNDS, 6)
    assert [each.record.conditions for each in outcome.rounds] == [each.record.conditions for each in alone.rounds]


@pytest.mark.parametrize("algorithm", ["adaboost_mh", "adaboost_mr"])
def test_rows_of_several_labels_give_the_same_model(client: Client, tmp_path: Path, algorithm: str) -> None:
    table = make_table(N_ROWS, n_features=7, n_classes=5, seed=3)
    sets = (np.arange(5) == table.labels[:, None]) | (np.random.default_rng(2).random((N_ROWS, 5)) < 0.2)
    columns = columns_of(table)
    columns["label"] = pa.array([np.flatnonzero(row).tolist() for row in sets])
    paths = split_over_files(tmp_path, columns, (400, 1, 499), row_group_size=150)
    plan = plan_of(paths, paths[:1], label_lists=True)
    outputs = {"outputs": "votes"} if algorithm == "adaboost_mr" else {}
    body = {"name": algorithm, "weak_learner": {"kind": "hamming_tree", "max_leaves": 6}, **outputs}
    config = resolve_config({"algorithm": body, "rounds": ROUNDS})
    alone = train_in_process(TrainingJob("alone", 1, plan, config, 1), NoProgress()).model
    assert alone.forest.n_rounds == ROUNDS
    outcome = on_gang(client, plan, config, 2, GangSettings(shuffle_seed=3))
    assert model_sha256(outcome.model) == model_sha256(alone)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_algorithm_gives_the_same_model(client: Client, plan: DataPlan, kind: str) -> None:
    config = resolve_config({"algorithm": KINDS[kind], "rounds": ROUNDS, "seed": 7})
    alone = train_in_process(TrainingJob("alone", 1, plan, config, 1), NoProgress()).model
    assert alone.forest.n_rounds == ROUNDS
    outcome = on_gang(client, plan, config, 2, GangSettings(shuffle_seed=3))
    assert all(rows > 0 for rows in outcome.rows_per_member)
    assert model_sha256(outcome.model) == model_sha256(alone)
