"""Steps known in advance: AdaBoost.MM with a fixed sequence, and the optimal strategy for the exponential loss."""

import math

import numpy as np
import pytest
from hypothesis import given

from boost_core.errors import ConfigError
from tests.boost_core.algorithms.single_label_runs import (
    Table,
    check_gang,
    check_oracle,
    check_same,
    outcomes_by_round,
    pair_weights,
    random_table,
    scores_by_round,
    small,
    strict_error,
    tables,
    train_alone,
)

PLANS = [
    {"name": "adaboost_mm_fixed"},
    {"name": "adaboost_mm_fixed", "edge": 0.4},
    {"name": "adaboost_mm_fixed", "edges": [0.5, 0.3, 0.05]},
    {"name": "adaboost_mm_fixed", "alphas": [0.7, 2.0, 0.1]},
    {"name": "os_exponential"},
    {"name": "os_exponential", "edge": 0.2, "eta": 0.5},
]


def kappa(edge: float, alpha: float, n_classes: int) -> float:
    spread = math.exp(alpha) + math.exp(-alpha) - 2
    return 1 + (1 - edge) / n_classes * spread - (1 - math.exp(-alpha)) * edge


@pytest.mark.parametrize("body", PLANS)
@small
@given(table=tables())
def test_every_round_equals_the_oracle(body: dict, table: Table):
    check_oracle(table, body)


@pytest.mark.parametrize("body", PLANS)
@small
@given(table=tables())
def test_the_loss_moves_by_the_cost_of_the_weak_learner_which_is_kappa(body: dict, table: Table):
    result = train_alone(table, body)
    scores, K, rows = scores_by_round(table, result), table.n_classes, np.arange(table.n_rows)
    for t, (record, sigma) in enumerate(zip(result.records, outcomes_by_round(table, result), strict=True)):
        E, alpha = pair_weights(table, scores[t]), record.alpha
        before, after = E.sum(), pair_weights(table, scores[t + 1]).sum()
        C = (math.exp(alpha) - 1) * E
        C[rows, table.labels] = (math.exp(-alpha) - 1) * E.sum(axis=1)
        right = sigma.max(axis=1) == 1
        cost = C[rows, np.where(right, table.labels, sigma.argmin(axis=1))].sum()
        mean, own = C.sum() / K, C[rows, table.labels].sum()
        edge = (mean - cost) / (mean - own)
        assert record.edge == pytest.approx(edge, abs=1e-6)
        assert after == pytest.approx(before + cost, rel=1e-9)
        assert after == pytest.approx(kappa(edge, alpha, K) * before, rel=1e-9)
        assert record.ln_loss == pytest.approx(math.log(after / table.n_rows), abs=(t + 1) * 1e-7)
        assert strict_error(table, scores[t + 1]) <= after / table.n_rows + 1e-9


def test_the_planned_step_is_the_best_for_its_edge():
    table = random_table(1)
    for edge in (0.05, 0.3, 0.7):
        alpha = train_alone(table, {"name": "adaboost_mm_fixed", "edge": edge}, rounds=1).records[0].alpha
        least = kappa(edge, alpha, 3)
        assert least <= min(kappa(edge, alpha + 1e-3, 3), kappa(edge, alpha - 1e-3, 3))
        b1, bl = (1 - edge) / 3 + edge, (1 - edge) / 3
        assert least == pytest.approx(1 - (math.sqrt(b1) - math.sqrt(bl)) ** 2, abs=1e-9)


@small
@given(table=tables())
def test_the_optimal_strategy_is_the_fixed_sequence_of_one_step(table: Table):
    check_same(train_alone(table, {"name": "os_exponential"}), train_alone(table, {"name": "adaboost_mm_fixed"}))
    eta = {"name": "os_exponential", "edge": 0.3, "eta": 0.25}
    alphas = train_alone(table, {"name": "adaboost_mm_fixed", "alphas": [0.25]})
    assert train_alone(table, eta).forest.multiplier.tolist() == alphas.forest.multiplier.tolist()


def test_a_met_edge_in_every_round_gives_the_power_of_kappa():
    table = random_table(1, noise=0.3)
    result = train_alone(table, {"name": "os_exponential", "edge": 0.2}, rounds=10)
    assert all(record.edge >= 0.2 for record in result.records)
    last = result.records[-1]
    assert last.ln_bound == pytest.approx(math.log(2) + 10 * math.log(kappa(0.2, last.alpha, 3)), abs=1e-5)
    assert last.ln_loss <= last.ln_bound


def test_too_long_a_step_makes_the_loss_rise_and_training_goes_on():
    table = random_table(2, n_classes=5, noise=4.0)
    body = {"name": "adaboost_mm_fixed", "alphas": [3.0], "weak_learner": {"kind": "tree", "max_leaves": 2}}
    records = train_alone(table, body, rounds=4).records
    assert len(records) == 4
    assert records[0].ln_loss > math.log(4)


def test_two_plans_are_refused():
    with pytest.raises(ConfigError, match="alphas: cannot be combined with edges"):
        train_alone(random_table(0), {"name": "adaboost_mm_fixed", "edges": [0.1], "alphas": [0.1]})


@pytest.mark.parametrize("body", PLANS[2:5])
def test_a_gang_of_any_size_trains_the_same_forest(body: dict):
    check_gang(random_table(8), body)
