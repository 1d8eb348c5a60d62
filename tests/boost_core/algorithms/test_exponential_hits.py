"""AdaBoost.M1 and SAMME: losses that count how often a row was answered right."""

import math

import numpy as np
import pytest
from hypothesis import given

from tests.boost_core.algorithms.single_label_runs import (
    Table,
    check_gang,
    check_oracle,
    make_table,
    outcomes_by_round,
    random_table,
    scores_by_round,
    small,
    strict_error,
    tables,
    train_alone,
)

NAMES = ["adaboost_m1", "samme"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("criterion", ["error", "gini", "entropy"])
@small
@given(table=tables())
def test_every_round_equals_the_oracle(name: str, criterion: str, table: Table):
    learner = {"kind": "tree", "criterion": criterion, "max_leaves": 4}
    check_oracle(table, {"name": name, "weak_learner": learner})


def right_by_round(table: Table, result) -> list[np.ndarray]:
    return [(sigma.max(axis=1) == 1) for sigma in outcomes_by_round(table, result)]


@small
@given(table=tables())
def test_m1_loss_is_the_product_of_its_factors_and_bounds_the_error(table: Table):
    result = train_alone(table, {"name": "adaboost_m1"})
    scores, u, product = scores_by_round(table, result), np.zeros(table.n_rows), 1.0
    for t, (record, right) in enumerate(zip(result.records, right_by_round(table, result), strict=True)):
        weights = np.exp(-u) / np.exp(-u).sum()
        err = float(weights[~right].sum())
        assert err < 0.5
        assert record.edge == pytest.approx(1 - 2 * err, abs=1e-6)
        u += np.where(right, 0.5, -0.5) * record.alpha
        ln_loss = math.log(np.exp(-u).mean())
        assert record.ln_loss == pytest.approx(ln_loss, abs=(t + 1) * 1e-7)
        assert strict_error(table, scores[t + 1]) <= math.exp(ln_loss) + 1e-9
        if err > 1e-6:
            product *= 2 * math.sqrt(err * (1 - err))
            assert ln_loss == pytest.approx(math.log(product), abs=(t + 1) * 1e-6)


@small
@given(table=tables())
def test_samme_loss_of_codewords_is_the_product_of_its_factors(table: Table):
    """Straight from the definition: codes of K numbers and beta = (K - 1)^2 / K alpha."""
    K = table.n_classes
    codes = (K * np.eye(K) - 1) / (K - 1)
    result = train_alone(table, {"name": "samme"})
    grid_scores = scores_by_round(table, result)
    ln_product = 0.0
    for t, (record, right) in enumerate(zip(result.records, right_by_round(table, result), strict=True)):
        before, f = ((K - 1) ** 2 / K * F @ codes for F in grid_scores[t : t + 2])
        D = np.exp(-(codes[table.labels] * before).sum(axis=1) / K)
        losses = np.exp(-(codes[table.labels] * f).sum(axis=1) / K)
        err = float(D[~right].sum() / D.sum())
        assert err < 1 - 1 / K
        assert record.edge == pytest.approx(1 - K * err / (K - 1), abs=1e-6)
        assert record.ln_loss == pytest.approx(math.log(losses.mean()), abs=(t + 1) * 1e-7)
        factor = (1 - err) * math.exp(-record.alpha * (K - 1) / K) + err * math.exp(record.alpha / K)
        assert factor < 1
        ln_product += math.log(factor)
        assert math.log(losses.mean()) == pytest.approx(ln_product, abs=(t + 1) * 1e-7)


def test_two_classes_make_both_the_same_and_twice_mm():
    for seed in range(4):
        table = random_table(seed, n_classes=2)
        m1, samme, mm = (train_alone(table, {"name": name}) for name in ("adaboost_m1", "samme", "adaboost_mm"))
        assert m1.forest.multiplier.tolist() == samme.forest.multiplier.tolist()
        assert [r.alpha for r in m1.records] == pytest.approx([2 * r.alpha for r in mm.records], abs=1e-5)
        assert [r.edge for r in m1.records] == pytest.approx([r.edge for r in mm.records], abs=1e-6)


def test_m1_stops_where_no_tree_answers_half_the_weight_right():
    table = random_table(2, n_rows=60, n_classes=5, noise=8.0)
    body = {"weak_learner": {"kind": "tree", "max_leaves": 2}}
    stalled = train_alone(table, {"name": "adaboost_m1", **body}, rounds=20)
    assert stalled.stop_reason == "edge_zero"
    assert len(stalled.records) == 0
    assert len(train_alone(table, {"name": "adaboost_mm", **body}, rounds=20).records) == 20


@pytest.mark.parametrize("name", NAMES)
def test_a_perfect_tree_ends_training_with_twice_the_cap(name: str):
    table = make_table([[0, 1, 2, 3, 0, 1]], [0, 1, 2, 2, 0, 1], 3)
    result = train_alone(table, {"name": name})
    assert result.stop_reason == "edge_one"
    assert [record.alpha for record in result.records] == [24.0]


def test_samme_claims_no_error_bound():
    """f = (1, 2, -3) with label 0 has loss 0.607 < 1 and is wrong (algorithms.md 3.5)."""
    code = np.array([1.0, -0.5, -0.5])
    assert math.exp(-code @ np.array([1.0, 2.0, -3.0]) / 3) == pytest.approx(0.6065, abs=1e-4)
    assert all(r.error_bound is None for r in train_alone(random_table(0), {"name": "samme"}).records)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("criterion", ["error", "gini", "entropy"])
def test_a_gang_of_any_size_trains_the_same_forest(name: str, criterion: str):
    learner = {"kind": "tree", "criterion": criterion, "max_leaves": 6}
    check_gang(random_table(4), {"name": name, "weak_learner": learner})


# --- the same criteria for votes ----------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@small
@given(table=tables())
def test_impurity_trees_as_votes_keep_the_loss_of_mh(criterion: str, table: Table):
    learner = {"kind": "tree", "criterion": criterion, "max_leaves": 4}
    result = train_alone(table, {"name": "adaboost_mh", "weak_learner": learner})
    Y = np.where(np.arange(table.n_classes) == table.labels[:, None], 1.0, -1.0)
    W1 = np.where(Y > 0, 0.5 / table.n_rows, 0.5 / table.n_rows / (table.n_classes - 1))
    scores = scores_by_round(table, result)
    for t, record in enumerate(result.records):
        W, H = W1 * np.exp(-Y * scores[t]), np.sign(scores[t + 1] - scores[t])
        assert record.edge == pytest.approx((W * Y * H).sum() / W.sum(), abs=1e-6)
        assert record.ln_loss == pytest.approx(math.log((W1 * np.exp(-Y * scores[t + 1])).sum()), abs=(t + 1) * 1e-7)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_the_first_impurity_tree_is_that_of_the_class_counts(criterion: str):
    """With asymmetric weights all wrong labels of all rows weigh the same, so only the true label is left."""
    for seed in range(5):
        table = random_table(seed, noise=0.5)
        learner = {"kind": "tree", "criterion": criterion, "max_leaves": 5}
        votes, answers = (
            train_alone(table, {"name": name, "weak_learner": learner}, rounds=1).forest
            for name in ("adaboost_mh", "adaboost_m1")
        )
        assert answers.n_trees == 1
        assert votes.node_feature.tolist() == answers.node_feature.tolist()
        assert votes.node_bin.tolist() == answers.node_bin.tolist()
        assert votes.payload.argmax(axis=1).tolist() == answers.payload[:, 0].tolist()


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_a_gang_grows_the_same_impurity_trees_as_votes(criterion: str):
    check_gang(random_table(4), {"name": "adaboost_mh", "weak_learner": {"kind": "tree", "criterion": criterion}})
