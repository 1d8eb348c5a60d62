"""Ten rounds and ten more are twenty, to the bit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from boost_core.catalogue import ALGORITHMS
from boost_core.collective import Alone
from boost_core.errors import ConfigError
from boost_core.model import Feature, Model
from boost_core.records import Silent
from boost_core.shard import Shard
from boost_core.start import Start
from boost_core.team import Team
from boost_core.training import LN_TOLERANCE, TrainingResult, train
from boost_core.training_data import TrainingData
from boost_core.warm_start import model_so_far, refuse_other_bins, refuse_other_kind
from tests.boost_core.algorithms.small_runs import Table, config_for, facts, random_table
from tests.boost_core.test_sampling import body


def run(table: Table, config: Any, start: Start | None = None) -> TrainingResult:
    made, codes = table.binned
    shard = Shard(codes, table.labels, ((0, len(table.labels)),))
    data = TrainingData(shard, shard, made, np.bincount(table.labels, minlength=table.n_classes), len(table.labels))
    with Team(1) as team:
        return train(data, config, Alone(), Silent(), team, start)


def model_of(table: Table, config: Any, result: TrainingResult) -> Model:
    made, _ = table.binned
    features = tuple(Feature(f"x{j}", "double") for j in range(made.n_features))
    classes = tuple(range(table.n_classes))
    arrays = (made.thresholds, made.threshold_start, result.forest, result.figures())
    return Model(config, features, "label", classes, *arrays, fingerprint=0, n_rows=len(table.labels))


PLANNED = "os_zero_one"


@pytest.mark.parametrize("name", sorted(set(ALGORITHMS) - {PLANNED}))
def test_some_rounds_and_some_more_are_all_of_them(name: str):
    table = random_table(3, 2 if name == "adaboost" else 3, n_rows=60)
    more = {"shrinkage": 0.7} if not ALGORITHMS[name].fixed_steps else {}
    algorithm = body(name, ALGORITHMS[name].weak_learners[0], row_fraction=0.8, **more)
    short, whole = config_for(algorithm, 3), config_for(algorithm, 6)
    wanted = run(table, whole)
    model = model_of(table, short, run(table, short))
    refuse_other_kind(model, whole, model.features, model.classes)
    found = run(table, whole, Start(model_so_far(model, LN_TOLERANCE)))
    assert facts(found)[0] == facts(wanted)[0]
    assert found.stop_reason == wanted.stop_reason
    for one, other in zip(vars(found.figures()).values(), vars(wanted.figures()).values(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_measured_conditions_are_taken_over_and_may_begin_later():
    table = random_table(3, 3, n_rows=60)
    short, whole = config_for(body("adaboost_mm", "tree"), 3), config_for(body("adaboost_mm", "tree"), 5)
    wanted = run(table, replace(whole, conditions=True)).conditions()
    assert wanted is not None
    for measured in (True, False):
        first = run(table, replace(short, conditions=measured))
        model = replace(model_of(table, short, first), conditions=first.conditions())
        more = replace(whole, conditions=True)
        refuse_other_kind(model, more, model.features, model.classes)
        found = run(table, more, Start(model_so_far(model, LN_TOLERANCE))).conditions()
        assert found is not None
        np.testing.assert_array_equal(found[3:], wanted[3:])
        np.testing.assert_array_equal(found[:3], wanted[:3] if measured else np.full((3, 6), np.nan))


def test_differences_are_named():
    table = random_table(3, 3, n_rows=40)
    config = config_for(body("adaboost_mh", "hamming_tree"), 2)
    model = model_of(table, config, run(table, config))
    other = config_for(body("adaboost_mh", "hamming_tree", shrinkage=0.5), 1, seed=4)
    features = (*model.features[:2], Feature("x2", "int64"), Feature("x9", "double"))
    with pytest.raises(ConfigError) as caught:
        refuse_other_kind(model, other, features, (0, 1, 7))
    messages = [message for _, message in caught.value.problems]
    assert {loc for loc, _ in caught.value.problems} == {("warm_start",)}
    for number, words in enumerate(
        (["shrinkage", "1.0", "0.5"], ["seed", "0", "4"], ["x2", "int64", "x9"], ["2, 7"], ["2"])
    ):
        for word in words:
            assert word in messages[number]
    moved = replace(table, X=table.X + 1.0)
    with pytest.raises(ConfigError, match="x0"):
        refuse_other_bins(model, moved.binned[0])
    refuse_other_bins(model, table.binned[0])


def test_a_plan_of_all_rounds_cannot_be_gone_on_with():
    table = random_table(3, 3, n_rows=40)
    config = config_for(body(PLANNED, "tree"), 2)
    model = model_of(table, config, run(table, config))
    with pytest.raises(ConfigError, match="os_zero_one"):
        refuse_other_kind(model, config, model.features, model.classes)
