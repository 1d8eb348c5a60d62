"""Data with little or nothing to learn, for every algorithm with a weak learner each (algorithms.md section 2)."""

import numpy as np
import pytest

from boost_core.collective import Alone
from boost_core.records import StopReason
from boost_core.scores import predicted_classes
from tests.boost_core.algorithms.small_runs import (
    Table,
    config_for,
    facts,
    scores_by_round,
    train_gang,
    train_whole,
)
from tests.boost_core.test_sampling import PAIRS, body

ROUNDS = 4
EVEN = np.array([0, 1, 2] * 4)


def table(case: str, binary: bool) -> Table:
    """Twelve rows, or two of three classes."""
    labels = EVEN % 2 if binary or case == "two classes" else EVEN
    features = np.random.default_rng(4).integers(0, 4, (12, 2)).astype(np.float64)
    if case == "perfect":
        features[:, 1] = labels
    elif case == "constant":
        features[:] = 1.0
    elif case == "constant, one class ahead":
        features[:] = 1.0
        labels = np.array([1] * 8 + [0, 0, 0, 0]) if binary else np.array([1] * 8 + [0, 0, 2, 2])
    elif case == "copies":
        features[:] = features[:1]
        features[6:] = features[6]
    elif case == "one feature":
        features = features[:, :1]
    n_classes = 2 if binary or case == "two classes" else 3
    if case == "fewer rows than classes":
        return Table(features[:2], labels[:2].astype(np.int32), n_classes)
    return Table(features, labels.astype(np.int32), n_classes)


CASES = [
    "perfect", "constant", "constant, one class ahead", "copies", "one feature", "two classes",
    "fewer rows than classes",
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("name", "learner"), PAIRS)
def test_a_model_comes_of_any_data(name: str, learner: str, case: str):
    """It predicts on its training rows what its records say; alone and in a gang it is the same."""
    data = table(case, name == "adaboost")
    config = config_for(body(name, learner), ROUNDS)
    result = train_whole(data, np.arange(len(data.labels)), config, Alone())
    last = result.records[-1]
    predicted = predicted_classes(scores_by_round(result.forest, data.X)[-1], result.forest.decoding)
    assert result.forest.n_rounds == len(result.records) >= 1
    assert np.mean(predicted != data.labels) == last.train_error == last.valid_error
    if case == "perfect" and learner not in ("stump", "product", "regression_stump", "independent_stumps"):
        assert last.train_error == 0
    if last.alpha == 0.0:
        # refused in round 1: the constant model of the majority
        assert result.stop_reason in (StopReason.EDGE_ZERO, StopReason.ALPHA_ZERO, StopReason.EDGE_ONE)
        assert len(result.records) == 1
        assert set(predicted) == {np.bincount(data.labels).argmax()}
    if case == "constant":
        assert len(set(predicted)) == 1
    if case == "constant, one class ahead":
        assert set(predicted) == {1}
    for each in train_gang(data, config, 2, train_whole):
        assert facts(each) == facts(result)
