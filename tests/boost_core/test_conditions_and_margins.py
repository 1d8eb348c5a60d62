"""Weak-learning conditions, the papers' counterexamples, and margins (algorithms.md sections 4 and 5)."""

import math

import numpy as np
import pytest

from boost_core import margin_report
from boost_core.conditions import Conditions, conditions, worst_means
from boost_core.margins import bracket, ln_share_bound, rounds_to_zero_error, shares_below, vote_margins
from tests.boost_core.algorithms.single_label_runs import (
    check_gang,
    outcomes_by_round,
    pair_weights,
    random_table,
    scores_by_round,
    train_alone,
)


def pair_costs(seed: int, n_rows: int = 30, n_classes: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Costs of AdaBoost.MM at random scores, labels, and answers."""
    random = np.random.default_rng(seed)
    labels, answers = random.integers(0, n_classes, (2, n_rows))
    F = random.normal(size=(n_rows, n_classes))
    rows = np.arange(n_rows)
    C = np.exp(F - F[rows, labels][:, None])
    C[rows, labels] = 0.0
    C[rows, labels] = -C.sum(axis=1)
    return C, labels, answers


def baseline(n_classes: int, label: int, own: float, other: float) -> np.ndarray:
    row = np.full(n_classes, other)
    row[label] = own
    return row


@pytest.mark.parametrize("seed", range(5))
def test_every_gamma_is_where_its_condition_turns(seed: int):
    """C.1h = sum <C, B(gamma)> at the gamma found, with each family's baseline."""
    C, labels, answers = pair_costs(seed)
    n, K = C.shape
    found, paid = conditions(C, labels, answers), C[np.arange(n), answers].sum()
    uniform, half, worst = found.uniform, found.mh, found.worst
    U = np.array([baseline(K, y, (1 - uniform) / K + uniform, (1 - uniform) / K) for y in labels])
    assert (C * U).sum() == pytest.approx(paid)
    MH = np.array([baseline(K, y, 0.5 + half / 2, 0.5 - half / 2) for y in labels])
    assert (C * MH).sum() == pytest.approx(paid)
    assert (worst * C[np.arange(n), labels] + (1 - worst) * worst_means(C, labels)).sum() == pytest.approx(paid)
    assert found.mr == pytest.approx(found.uniform)  # rows sum to 0
    assert found.worst >= found.uniform - 1e-12
    assert found.mh >= found.m1 - 1e-12  # M1's condition implies MH's


def test_the_worst_baseline_is_the_worst_of_all():
    """No distribution with b_y >= b_l + gamma, equality for some l, costs more than gamma C(y) + (1 - gamma) m."""
    random = np.random.default_rng(0)
    C, labels, _ = pair_costs(1, n_rows=6)
    m = worst_means(C, labels)
    for gamma in (0.1, 0.5):
        for i, y in enumerate(labels):
            limit = gamma * C[i, y] + (1 - gamma) * m[i]
            for _ in range(300):
                # weights of the wrong labels up to that of the true one, which is ahead by gamma afterwards
                share = np.minimum(random.exponential(size=4), 1.0) * (random.random(4) < 0.7)
                share[y] = 1.0
                b = (1 - gamma) * share / share.sum()
                b[y] += gamma
                assert C[i] @ b <= limit + 1e-9


def test_samme_asks_too_little():
    """Two examples, three labels: one of two constants always meets SAMME's condition, and neither can be boosted."""
    labels = np.array([0, 1])
    C = np.array([[-1.0, 1.0, 0.0], [1.0, -1.0, 0.0]])
    for gamma in (0.05, 0.2, 0.5):
        U = np.array([baseline(3, y, (1 - gamma) / 3 + gamma, (1 - gamma) / 3) for y in labels])
        assert (C * U).sum() == pytest.approx(-2 * gamma)
        for answer in (0, 1):
            assert C[:, answer].sum() == 0.0 > (C * U).sum()
    for weights in np.random.default_rng(1).random((20, 2)):
        T = np.where(np.arange(3) == labels[:, None], -1.0, 1.0) * weights[:, None]
        met = [conditions(T, labels, np.full(2, answer)).samme for answer in (0, 1)]
        assert max(met) >= 1 - 3 / 2 * 0.5 - 1e-12


@pytest.mark.parametrize(("n_classes", "gamma"), [(3, 0.2), (5, 0.1), (10, 0.3)])
def test_mh_asks_too_much(n_classes: int, gamma: float):
    """Right on 1/K + gamma of the rows: as good as random with gamma, but not by MH's baseline."""
    n = 1000 * n_classes
    right = round(n * (1 / n_classes + gamma))
    labels, answers = np.zeros(n, np.int64), np.where(np.arange(n) < right, 0, 1)
    C = np.zeros((n, n_classes))
    C[:, 0] = -1.0
    B = np.array([baseline(n_classes, 0, 0.5 + gamma / 2, 0.5 - gamma / 2)])
    paid = C[np.arange(n), answers].sum()
    assert (paid - (C * B).sum()) / n == pytest.approx(0.5 - 1 / n_classes - gamma / 2)
    assert (paid > (C * B).sum()) == (gamma < 1 - 2 / n_classes)
    wanted = gamma * n_classes / (n_classes - 1)
    assert conditions(C, labels, answers).uniform == pytest.approx(wanted, rel=1e-3)


def test_an_edge_of_the_engine_is_the_gamma_of_its_costs():
    table = random_table(3, n_rows=45, n_classes=4)
    result = train_alone(table, {"name": "adaboost_mm"}, rounds=5)
    scores = scores_by_round(table, result)
    for t, record in enumerate(result.records):
        C = pair_weights(table, scores[t])
        C[np.arange(45), table.labels] = -C.sum(axis=1)
        answers = (scores[t + 1] - scores[t]).argmax(axis=1)
        found = conditions(C, table.labels, answers)
        assert found.mr == pytest.approx(record.edge, abs=1e-6)
        assert isinstance(found, Conditions)


def test_margins_stay_below_what_the_edges_prove():
    table = random_table(2, n_rows=45, n_classes=3)
    result = train_alone(table, {"name": "adaboost_mm"}, rounds=12)
    scores, outcomes = scores_by_round(table, result), outcomes_by_round(table, result)
    grid = np.linspace(-1.0, 1.0, 21)
    for t in range(1, len(result.records) + 1):
        edges = [record.edge for record in result.records[:t]]
        margins = vote_margins(scores[t], table.labels, sum(record.alpha for record in result.records[:t]))
        assert np.abs(margins).max() <= 1.0 + 1e-12
        shares = shares_below(margins, grid)
        for theta, share in zip(grid, shares, strict=True):
            assert share == np.mean(margins <= theta)
            assert share <= math.exp(ln_share_bound(edges, float(theta), 2.0)) + 1e-6
        found = bracket(margins, edges)
        assert found.low <= margins.mean()
        assert found.gap == found.high - found.low
    assert len(outcomes) == 12


def test_rounds_to_zero_error():
    edge, n = 0.25, 40
    rounds = rounds_to_zero_error(edge, n, 2.0)
    assert 2.0 * (1 - edge**2) ** (rounds / 2) < 1 / n


@pytest.mark.parametrize("name", ["adaboost_mm", "adaboost_m2"])
def test_a_training_reports_the_margins_of_its_rows(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(margin_report, "BLOCK_ROWS", 7)
    table = random_table(2, n_rows=45, n_classes=3)
    result = train_alone(table, {"name": name}, rounds=12)
    report, edges = result.margins, [record.edge for record in result.records]
    assert report is not None
    steps = float(sum(result.forest.multiplier)) * 2.0**-20
    margins = vote_margins(scores_by_round(table, result)[-1], table.labels, steps)
    assert report.least == pytest.approx(margins.min(), abs=1e-12)
    assert report.mean == pytest.approx(margins.mean(), abs=1e-8)
    np.testing.assert_allclose(report.shares, shares_below(margins, np.array(report.grid)), atol=1 / 45)
    assert report.least_edge == min(edges)
    for theta, share in zip(report.grid, report.shares, strict=True):
        assert share <= math.exp(ln_share_bound(edges, theta, 2.0)) + 1e-9
    check_gang(table, {"name": name}, rounds=12)
