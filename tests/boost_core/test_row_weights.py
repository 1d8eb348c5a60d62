"""Row weights: w counts as w copies to the bit; other weights against the formulas in float64; class weights."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from boost_core.class_weights import BALANCED, in_class_order
from boost_core.collective import Alone
from boost_core.errors import ConfigError
from boost_core.jit import JIT_DISABLED
from boost_core.model import Forest
from boost_core.row_weights import class_mass, copies_of
from boost_core.training import TrainingResult
from boost_core.training_data import TrainingData
from tests.boost_core.algorithms.single_label_runs import Table, random_table
from tests.boost_core.algorithms.small_runs import config_for
from tests.builders import train_member

ROUNDS = 4
TREE = {"kind": "tree", "max_leaves": 3}
# One algorithm at least for every kernel that knows of weights.
BODIES: list[dict[str, Any]] = [
    {"name": "adaboost_mh", "weak_learner": {"kind": "hamming_tree", "max_leaves": 3}},
    {"name": "adaboost_mh", "init_weights": "balanced", "weak_learner": {"kind": "real_tree", "max_leaves": 3}},
    {"name": "adaboost_mh", "weak_learner": {"kind": "tree", "max_leaves": 3, "criterion": "gini"}},
    {"name": "adaboost_mh", "weak_learner": {"kind": "product"}},
    {"name": "one_vs_all", "weak_learner": {"kind": "stump"}},
    {"name": "ecoc", "weak_learner": {"kind": "hamming_tree", "max_leaves": 3}},
    {"name": "adaboost_mm", "weak_learner": TREE},
    {"name": "adaboost_mm_fixed", "weak_learner": TREE},
    {"name": "adaboost_mr", "outputs": "votes", "weak_learner": {"kind": "stump"}},
    {"name": "samme", "weak_learner": TREE},
    {"name": "os_zero_one", "edge": 0.1, "weak_learner": TREE},
    {"name": "os_exponential", "baseline": [0.3, 0.3, 0.4], "edge": 0.2, "weak_learner": TREE},
    {"name": "gd_mcboost", "loss": "logistic", "weak_learner": {"kind": "vector_tree", "max_leaves": 3}},
    {"name": "cd_mcboost", "weak_learner": {"kind": "regression_stump"}},
]


@pytest.mark.parametrize("n_rows", [0, 1, 3, 4, 1001])
def test_rows_of_each_class(n_rows: int) -> None:
    labels = np.random.default_rng(n_rows).integers(0, 5, n_rows).astype(np.int32)
    copies = np.arange(n_rows, dtype=np.int64)
    assert class_mass(labels, None, 7).tolist() == [int((labels == place).sum()) for place in range(7)]
    assert class_mass(labels, copies, 7).tolist() == [int(copies[labels == place].sum()) for place in range(7)]


def data_of(table: Table, copies: np.ndarray | None = None) -> TrainingData:
    data = table.data([(0, table.n_rows)])
    if copies is None:
        return data
    counts = np.zeros(table.n_classes, np.int64)
    np.add.at(counts, table.labels, copies)
    return replace(data, train=replace(data.train, copies=copies), class_counts=counts)


def repeated(table: Table, copies: np.ndarray) -> Table:
    return replace(table, codes=np.repeat(table.codes, copies, axis=1), labels=np.repeat(table.labels, copies))


def run(data: TrainingData, body: dict[str, Any], rounds: int = ROUNDS) -> TrainingResult:
    return train_member(data, config_for(body, rounds), Alone())


def arrays(forest: Forest) -> list[Any]:
    return [value.tobytes() for value in vars(forest).values() if isinstance(value, np.ndarray)]


# Compiling every kernel once more for int64 gains takes minutes: most run without the JIT only (test_processors.py).
SOME = BODIES if JIT_DISABLED else [BODIES[0], BODIES[6]]


@pytest.mark.parametrize("body", SOME, ids=lambda body: f"{body['name']} {body['weak_learner']['kind']}")
def test_a_weight_of_w_is_w_copies(body: dict[str, Any]):
    table = random_table(5, 32)
    copies = np.random.default_rng(1).integers(1, 4, table.n_rows)
    weighted, plain = run(data_of(table, copies), body), run(data_of(repeated(table, copies)), body)
    assert weighted.forest.n_rounds > 0
    assert arrays(weighted.forest) == arrays(plain.forest)
    assert weighted.records == plain.records
    assert weighted.records != run(data_of(table), body).records


def test_weights_of_any_size_against_the_formulas():
    """AdaBoost.MH: loss = sum w W1 exp(-Y F) / sum w, W1 = 1/2 at the label and 1/(2 (K-1)) elsewhere."""
    table = random_table(7, 40, noise=3.0)
    weights = np.exp(np.random.default_rng(2).normal(size=table.n_rows) * 2)
    copies = copies_of(weights, Alone())
    assert np.abs(copies / copies.max() / (weights / weights.max()) - 1).max() < 1e-3
    share = copies / copies.sum()
    Y = np.where(np.arange(3) == table.labels[:, None], 1.0, -1.0)
    initial = np.where(Y > 0, 0.5, 0.25) * share[:, None]
    body = {"name": "adaboost_mh", "weak_learner": {"kind": "hamming_tree", "max_leaves": 3}}
    for rounds in range(1, ROUNDS + 1):
        result = run(data_of(table, copies), body, rounds)
        F, record = scores_of(result.forest, table), result.records[-1]
        assert record.ln_loss == pytest.approx(math.log((initial * np.exp(-Y * F)).sum()), abs=1e-6)
        wrong, level = F.argmax(axis=1) != table.labels, ((F[Y > 0][:, None] <= F) & (Y < 0)).any(axis=1)
        assert record.train_error == pytest.approx(share[wrong].sum(), abs=1e-12)
        assert record.strict_train_error == pytest.approx(share[level].sum(), abs=1e-12)
        assert record.error_bound is not None
        assert share[level].sum() <= record.error_bound == pytest.approx(math.sqrt(2) * record.bound)


def scores_of(forest: Forest, table: Table) -> np.ndarray:
    """Scores of a forest's trees by plain loops over codes."""
    F = np.zeros((table.n_rows, forest.n_columns))
    missing = table.binning.n_thresholds + 1
    for t in range(forest.n_trees):
        first, last = forest.node_start[t], forest.node_start[t + 1]
        for i in range(table.n_rows):
            place = 0 if last > first else -1
            while place >= 0:
                node = first + place
                feature = forest.node_feature[node]
                code = int(table.codes[feature, i])
                below = forest.node_kind[node] == 0 and code <= forest.node_bin[node]
                left = forest.node_missing_left[node] if code == missing[feature] else below
                place = int(forest.node_left[node] if left else forest.node_right[node])
            F[i] += forest.payload[forest.leaf_start[t] + ~place] * forest.multiplier[t] * 2.0**-20
    return F


@pytest.mark.parametrize(
    ("weights", "copies"),
    [
        ([1.0, 2.0, 3.0], [1, 2, 3]),
        ([2.0, 4.0], [2, 4]),
        ([0.5, 1.5], [1, 3]),
        ([2.0**-30, 2.0**-30], [1, 1]),
        ([2.0**-30, 3 * 2.0**-30], [1, 3]),
        ([1.0, 2.0**40], [1, 1 << 19]),
        ([1e300, 5e-324], None),
    ],
)
def test_copies(weights: list[float], copies: list[int] | None):
    found = copies_of(np.array(weights), Alone()).tolist()
    assert found == copies or (copies is None and found[1] == 1 and found[0] >= 1 << 19)
    assert copies_of(np.empty(0), Alone()).tolist() == []


def test_balanced_classes_weigh_the_same():
    table = random_table(3, 40)
    labels = np.where(np.arange(40) < 30, 0, table.labels)
    labels[30:32] = 1, 2
    table = replace(table, labels=labels.astype(np.int32))
    body = {"name": "adaboost_mm", "class_weight": BALANCED, "weak_learner": TREE}
    by_hand = copies_of(40 / (3 * table.counts)[table.labels], Alone())
    balanced = run(data_of(table), body)
    assert balanced.records == run(data_of(table, by_hand), {"name": "adaboost_mm", "weak_learner": TREE}).records
    mass = np.bincount(table.labels, by_hand)
    assert mass.max() / mass.min() == pytest.approx(1, rel=1e-4)


def test_a_map_of_class_weights_multiplies_row_weights():
    table = random_table(4, 24)
    copies = np.random.default_rng(3).integers(1, 4, table.n_rows)
    config = config_for({"name": "samme", "class_weight": {"b": 3, "true": 2}, "weak_learner": TREE}, ROUNDS)
    ordered = in_class_order(config, ["a", "b", True])
    assert ordered.algorithm.parameters["class_weight"] == [1.0, 3.0, 2.0]
    found = train_member(data_of(table, copies), ordered, Alone())
    by_hand = data_of(table, copies * np.array([1, 3, 2])[table.labels])
    assert found.records == run(by_hand, {"name": "samme", "weak_learner": TREE}).records


def test_class_weights_that_are_refused():
    for wrong in ("even", 3, [True], {"a": -1}, {"a": 0}, {"a": math.nan}, {"a": "1"}):
        with pytest.raises(ConfigError) as caught:
            config_for({"name": "samme", "class_weight": wrong}, 1)
        assert caught.value.problems[0][0] == ("algorithm", "class_weight")
    config = config_for({"name": "samme", "class_weight": {"1": 2, "4": 2}}, 1)
    with pytest.raises(ConfigError, match="no class has the label '4'; the classes are: 1, 2"):
        in_class_order(config, [1, 2])
