"""Early stopping and the learning rate."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from boost_core.algorithms.atanh_step import make_step
from boost_core.catalogue import ALGORITHMS, resolve_config
from boost_core.collective import Alone
from boost_core.errors import ConfigError
from boost_core.fitted import Speech, one_tree
from boost_core.model import SCORE_UNITS
from boost_core.records import Silent, StopReason
from boost_core.shrinking import shrink
from boost_core.stopping import METRICS
from boost_core.team import Team
from boost_core.training import TrainingResult, train
from boost_core.training_data import TrainingData
from boost_core.tree import Tree
from tests.builders import bin_rows, bin_table, make_table, shard_of

LEARNERS = {"adaboost_mh": ["hamming_tree", "real_tree"], "adaboost_mm": ["tree"], "one_vs_all": ["stump"]}
PAIRS = [(name, kind) for name, kinds in LEARNERS.items() for kind in kinds] + [
    ("samme", "tree"),
    ("adaboost_m1", "tree"),
]


@pytest.fixture(scope="module")
def data() -> TrainingData:
    table, other = make_table(240, 5, 3, seed=1), make_table(160, 5, 3, seed=2)
    binned = bin_table(table)
    labels = table.labels.astype(np.int32)
    train_shard = shard_of(bin_rows(table, binned.binning), labels, ((0, 240),))
    valid = shard_of(bin_rows(other, binned.binning), other.labels.astype(np.int32), ((0, 160),))
    return TrainingData(train_shard, valid, binned.binning, np.bincount(labels, minlength=3), 160)


def run(
    data: TrainingData, algorithm: dict[str, Any], rounds: int, stopping: dict[str, Any] | None = None
) -> TrainingResult:
    config = resolve_config({"algorithm": algorithm, "rounds": rounds, "stopping": stopping})
    with Team(1) as team:
        return train(data, config, Alone(), Silent(), team)


def test_the_model_ends_at_its_best_round(data: TrainingData):
    tree = {"kind": "hamming_tree", "max_leaves": 4}
    patience = 5
    stopped = run(data, {"name": "adaboost_mh", "weak_learner": tree}, 500, {"patience": patience})
    errors = [record.valid_error for record in stopped.records]
    best = int(np.argmin(errors)) + 1
    assert stopped.stop_reason is StopReason.STOPPED_EARLY
    assert len(stopped.records) == best + patience
    assert stopped.forest.n_rounds == best == len(stopped.figures().edge)
    whole = run(data, {"name": "adaboost_mh", "weak_learner": tree}, best)
    np.testing.assert_array_equal(stopped.forest.payload, whole.forest.payload)
    np.testing.assert_array_equal(stopped.forest.multiplier, whole.forest.multiplier)


def test_all_rounds_may_run_and_the_best_one_counts(data: TrainingData):
    result = run(data, {"name": "adaboost_mh"}, 12, {"patience": 1000})
    assert result.stop_reason is StopReason.ROUNDS
    assert result.forest.n_rounds == int(np.argmin([record.valid_error for record in result.records])) + 1


@pytest.mark.parametrize("metric", ["error", "log_loss"])
def test_metrics_of_validation_need_validation_rows(data: TrainingData, metric: str):
    alone = TrainingData(data.train, None, data.binning, data.class_counts)
    with pytest.raises(ConfigError, match=r"stopping.*validation rows"):
        run(alone, {"name": "adaboost_mh"}, 5, {"patience": 5, "metric": metric})
    assert run(alone, {"name": "adaboost_mh"}, 5, {"patience": 1, "metric": "loss"}).records


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_any_reported_metric_stops_and_names_the_best_round(data: TrainingData, metric: str):
    stopping = {"metric": metric, "patience": 4, "min_delta": 0.003}
    stopped = run(data, {"name": "adaboost_mh"}, 200, stopping)
    values = [METRICS[metric](record) for record in stopped.records]
    best, least = 0, np.inf
    for number, value in enumerate(values, 1):
        if value < least - 0.003:
            best, least = number, value
    assert stopped.forest.n_rounds == best
    ended = stopped.stop_reason is StopReason.STOPPED_EARLY
    assert len(values) == (best + 4 if ended else 200)
    assert ended or metric == "loss"  # which falls on and on


@pytest.mark.parametrize(
    ("stopping", "place"),
    [
        ({"patience": 0}, ("stopping", "patience")),
        ({"metric": "x"}, ("stopping", "metric")),
        ({"min_delta": -1}, ("stopping", "min_delta")),
        (3, ("stopping",)),
    ],
)
def test_mistakes_in_stopping_are_named(stopping: Any, place: tuple[str, ...]):
    with pytest.raises(ConfigError) as refused:
        resolve_config({"algorithm": {"name": "adaboost_mh"}, "rounds": 5, "stopping": stopping})
    assert [loc for loc, _ in refused.value.problems] == [place]


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_the_first_step_is_as_much_shorter_as_asked(data: TrainingData, name: str, kind: str):
    whole = run(data, {"name": name, "weak_learner": {"kind": kind}}, 1)
    half = run(data, {"name": name, "weak_learner": {"kind": kind}, "shrinkage": 0.5}, 1)
    if whole.forest.speech == "values":
        np.testing.assert_allclose(half.forest.payload, whole.forest.payload / 2, atol=0.5)
    else:
        np.testing.assert_array_equal(half.forest.payload, whole.forest.payload)
        np.testing.assert_allclose(half.forest.multiplier, whole.forest.multiplier / 2, atol=0.5)


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_the_bound_of_shorter_steps_holds_and_the_loss_falls(data: TrainingData, name: str, kind: str):
    result = run(data, {"name": name, "weak_learner": {"kind": kind}, "shrinkage": 0.3}, 25)
    losses = [record.ln_loss for record in result.records]
    assert len(losses) == 25  # check_bounds ran after every round
    assert all(after < before + 1e-6 for before, after in pairwise(losses))
    assert losses[-1] <= result.records[-1].ln_bound + 25 * 2.0**-19


def test_a_step_shrunk_to_nothing_is_refused(data: TrainingData):
    tree = Tree(np.empty((0, 6), np.int64), np.ones((1, 3), np.int32), 1, np.zeros(1, np.int32))
    fitted = one_tree(tree, Speech.VOTES)
    step = make_step(0.1, 2.0**-SCORE_UNITS, -0.005, 0.0)
    assert step.refused is None
    _, shorter = shrink(fitted, step, 0.4)
    assert shorter.refused is StopReason.ALPHA_ZERO
    assert shorter.multipliers.tolist() == [0]


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_planned_steps_cannot_be_shrunk(name: str):
    body = {"algorithm": {"name": name, "shrinkage": 0.5}, "rounds": 1}
    if ALGORITHMS[name].fixed_steps:
        with pytest.raises(ConfigError, match="shrinkage"):
            resolve_config(body)
    else:
        assert resolve_config(body).algorithm.parameters["shrinkage"] == 0.5
