"""AdaBoost.MM with both steps, and what equals it under other names."""

import math

import numpy as np
import pytest
from hypothesis import given

from tests.boost_core.algorithms.single_label_runs import (
    Table,
    check_gang,
    check_oracle,
    check_pair_bounds,
    check_same,
    make_table,
    outcomes_by_round,
    pair_weights,
    random_table,
    scores_by_round,
    small,
    tables,
    train_alone,
)

STEPS = ["atanh", "exact"]


def tree(**limits: int) -> dict:
    return {"kind": "tree", **limits}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("learner", [tree(max_leaves=2), tree(), tree(max_depth=2), tree(max_nodes=5)])
@small
@given(table=tables())
def test_every_round_equals_the_oracle(step: str, learner: dict, table: Table):
    check_oracle(table, {"name": "adaboost_mm", "step": step, "weak_learner": learner})


@small
@given(table=tables())
def test_loss_edge_and_bound_of_every_round(table: Table):
    check_pair_bounds(table, train_alone(table, {"name": "adaboost_mm"}))


@small
@given(table=tables())
def test_the_exact_step_shrinks_the_loss_by_its_factor_and_more_than_artanh(table: Table):
    result = train_alone(table, {"name": "adaboost_mm", "step": "exact"})
    scores = scores_by_round(table, result)
    for t, (record, sigma) in enumerate(zip(result.records, outcomes_by_round(table, result), strict=True)):
        E = pair_weights(table, scores[t])
        right, wrong, total = E[sigma == 1].sum(), E[sigma == -1].sum(), E.sum()
        after = pair_weights(table, scores[t + 1]).sum()
        if wrong > 0 and record.alpha < 11:
            neither = total - right - wrong
            assert after / total == pytest.approx((neither + 2 * math.sqrt(right * wrong)) / total, abs=1e-6)
            edge = (right - wrong) / total
            alpha = math.atanh(edge)
            assert after / total <= (neither + right * math.exp(-alpha) + wrong * math.exp(alpha)) / total + 1e-6


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("learner", [tree(max_leaves=5), tree(max_leaves=16, max_depth=2)])
def test_a_gang_of_any_size_trains_the_same_forest(step: str, learner: dict):
    check_gang(random_table(1, n_classes=5), {"name": "adaboost_mm", "step": step, "weak_learner": learner})


@small
@given(table=tables())
def test_other_names_of_artanh_boosting_are_the_same_to_the_bit(table: Table):
    wanted = train_alone(table, {"name": "adaboost_mm"})
    for body in (
        {"name": "adaboost_mr"},
        {"name": "adaboost_cost"},
        {"name": "multiclass_adaboost"},
        {"name": "multiclass_adaboost", "mass": "sum"},
    ):
        check_same(train_alone(table, body), wanted)


@pytest.mark.parametrize("name", ["adaboost_mr", "multiclass_adaboost"])
def test_other_names_of_the_exact_step_are_the_same_to_the_bit(name: str):
    table = random_table(5)
    wanted = train_alone(table, {"name": "adaboost_mm", "step": "exact"})
    check_same(train_alone(table, {"name": name, "step": "exact"}), wanted)


@pytest.mark.parametrize("step", STEPS)
def test_two_classes_are_adaboost(step: str):
    """F1 - F0 of MM is f of AdaBoost with the same stumps (algorithms.md section 6, item 3)."""
    for seed in range(6):
        table = random_table(seed, n_classes=2)
        pairs = train_alone(table, {"name": "adaboost_mm", "step": step, "weak_learner": tree(max_leaves=2)}, rounds=10)
        votes = {"kind": "hamming_tree", "votes": "free", "max_leaves": 2}
        binary = train_alone(table, {"name": "adaboost", "weak_learner": votes}, rounds=10)
        assert [r.edge for r in pairs.records] == pytest.approx([r.edge for r in binary.records], abs=1e-6)
        assert [r.alpha for r in pairs.records] == pytest.approx([r.alpha for r in binary.records], abs=1e-5)
        assert [r.ln_loss for r in pairs.records] == pytest.approx([r.ln_loss for r in binary.records], abs=1e-5)


@pytest.mark.parametrize("step", STEPS)
def test_a_perfect_tree_ends_training_with_a_capped_step(step: str):
    table = make_table([[0, 1, 2, 3, 0, 1]], [0, 1, 2, 2, 0, 1], 3)
    result = train_alone(table, {"name": "adaboost_mm", "step": step})
    assert result.stop_reason == "edge_one"
    assert [record.alpha for record in result.records] == [12.0]
    assert result.records[0].strict_train_error == 0


def test_the_condition_of_samme_can_be_met_without_information():
    """algorithms.md section 4 (a): two examples, no features; the constants have no edge, so MM stops at once."""
    table = make_table([[1, 1]], [0, 1], 3)
    result = train_alone(table, {"name": "adaboost_mm"})
    boosted = train_alone(table, {"name": "samme"})
    # a constant gains P_i on one example and loses E on the other: edge 1/2 x (1 - 1/2), once; then it has none left
    assert result.records[0].edge == pytest.approx(0.25, abs=1e-9)
    assert all(record.edge >= 0.25 - 1e-6 for record in boosted.records)
    assert np.array([record.train_error for record in boosted.records]).min() >= 0.5


def test_depth_limits_are_limits():
    table = random_table(3, n_rows=60, n_classes=5, noise=3.0)
    for depth in (1, 2, 3):
        body = {"name": "adaboost_mm", "weak_learner": tree(max_leaves=64, max_depth=depth)}
        assert max(record.n_leaves for record in train_alone(table, body).records) == 2**depth
    for nodes, leaves in ((1, 1), (2, 1), (5, 3), (8, 4)):
        body = {"name": "adaboost_mm", "weak_learner": tree(max_leaves=64, max_nodes=nodes)}
        assert {record.n_leaves for record in train_alone(table, body).records} <= {leaves}


def test_trees_do_not_depend_on_how_many_histograms_are_kept(monkeypatch: pytest.MonkeyPatch):
    table = random_table(3, n_rows=60, n_classes=5, noise=3.0)
    body = {"name": "adaboost_mm", "weak_learner": tree(max_leaves=12, max_depth=4)}
    wanted = train_alone(table, body)
    monkeypatch.setattr("boost_core.growth.SLOT_BYTES", 1)
    check_same(train_alone(table, body), wanted)
