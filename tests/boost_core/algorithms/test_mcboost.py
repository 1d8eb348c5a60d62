"""CD- and GD-MCBoost with all their weak learners and losses."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from boost_core.algorithms import simplex
from boost_core.algorithms.base import Problem
from boost_core.algorithms.gd_mcboost import GDMCBoost
from boost_core.algorithms.line_search import least_along
from boost_core.algorithms.margin_losses import row_limits
from boost_core.scores import UNIT, Scores
from boost_core.team import Team
from boost_core.training import TrainingResult
from tests.boost_core.algorithms import oracle_margins, small_runs
from tests.boost_core.algorithms.single_label_runs import (
    ROUNDS,
    Table,
    check_gang,
    check_run,
    forest_arrays,
    full_body,
    make_table,
    pair_weights,
    random_table,
    scores_by_round,
    small,
    strict_error,
    tables,
    train_alone,
)

few = settings(small, max_examples=12)
Floats = NDArray[np.float64]
LOSSES = ["exponential", "logistic", "tangent"]
CD = [
    {"kind": "stump"},
    {"kind": "regression_stump"},
    {"kind": "regression_tree", "max_leaves": 4},
    {"kind": "regression_tree", "max_depth": 2},
]
GD = [
    {"kind": "vector_tree", "max_leaves": 4},
    {"kind": "vector_tree", "max_depth": 2},
    {"kind": "tree", "max_leaves": 4},
]
BODIES = [
    *({"name": "cd_mcboost", "weak_learner": learner} for learner in CD),
    *({"name": "gd_mcboost", "weak_learner": learner} for learner in GD),
]


def losses_of(loss: str, table: Table, F: Floats) -> Floats:
    """A row's loss at scores, [n_rows]."""
    own = F[np.arange(table.n_rows), table.labels][:, None]
    margins = (own - F) / 2
    wrong = np.arange(table.n_classes) != table.labels[:, None]
    if loss == "tangent":
        return np.where(wrong, (2 * np.arctan(margins) - 1) ** 2, 0).sum(axis=1)
    # pair weights of half the scores
    total = pair_weights(table, F / 2).sum(axis=1)
    return total if loss == "exponential" else np.log1p(total)


# --- the engine and the oracle ------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("body", BODIES)
@few
@given(table=tables())
def test_every_round_equals_the_oracle(body: dict, loss: str, table: Table):
    body = {**body, "loss": loss}
    expected = oracle_margins.boost(table.grid(), table.labels.tolist(), table.n_classes, full_body(body), ROUNDS)
    check_run(table, train_alone(table, body), expected)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("body", BODIES)
@few
@given(table=tables())
def test_the_loss_is_the_recorded_one_falls_every_round_and_bounds_the_error(body: dict, loss: str, table: Table):
    result = train_alone(table, {**body, "loss": loss}, rounds=8)
    scores = scores_by_round(table, result)
    before = losses_of(loss, table, scores[0]).mean()
    for t, (record, F) in enumerate(zip(result.records, scores[1:], strict=True)):
        after = losses_of(loss, table, F).mean()
        assert record.loss == pytest.approx(after, rel=(t + 1) * 1e-7, abs=1e-12)
        assert after < before * (1 + 1e-8)
        assert strict_error(table, F) <= after / (math.log(2) if loss == "logistic" else 1.0) + 1e-12
        assert 0 < record.edge <= 1
        if loss == "exponential" and record.alpha < 11:
            assert after / before <= math.sqrt(1 - record.edge**2) + 1e-6
        before = after


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("body", BODIES)
def test_a_gang_of_any_size_trains_the_same_forest(body: dict, loss: str):
    check_gang(random_table(2, n_classes=4), {**body, "loss": loss}, rounds=5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("body", [BODIES[0], BODIES[2], *BODIES[4:]])
@few
@given(table=tables())
def test_shorter_steps_keep_the_bound(body: dict, loss: str, table: Table):
    """The loop checks it; with the tangent loss it is not the chord of a convex function."""
    result = train_alone(table, {**body, "loss": loss, "shrinkage": 0.4}, rounds=8)
    losses = [losses_of(loss, table, F).mean() for F in scores_by_round(table, result)]
    assert all(after <= before * (1 + 1e-8) for before, after in pairwise(losses))


# --- gradients and steps ------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_gains_are_twice_the_negative_gradient(loss: str, n_classes: int):
    table = random_table(3, n_rows=12, n_classes=n_classes)
    units = np.random.default_rng(n_classes).integers(-3 << 20, 3 << 20, (12, n_classes)).astype(np.int32)
    with Team(1) as team:
        algorithm = GDMCBoost(Problem(table.labels, table.counts, team), {"loss": loss})
        scores = Scores(units)
        found = algorithm.gains(scores, algorithm.peaks(scores))
    shift = math.exp(found.shift * UNIT / 2)
    gradient = found.matrix.values[:, :n_classes] * 2.0**-found.matrix.scale * shift / -2
    F, h = units * UNIT, 1e-5
    for k in range(n_classes):
        up, down = F.copy(), F.copy()
        up[:, k] += h
        down[:, k] -= h
        numeric = (losses_of(loss, table, up) - losses_of(loss, table, down)) / (2 * h)
        assert gradient[:, k] == pytest.approx(numeric, rel=1e-5, abs=1e-7)
    assert (found.matrix.values[:, :n_classes].sum(axis=1) == 0).all()
    assert math.exp(algorithm.ln_loss(found, found.totals)) == pytest.approx(losses_of(loss, table, F).mean())


def test_a_component_of_the_gradient_is_its_product_with_the_codewords():
    """Leaves say the mean of w = (Q Y)[:, j], and all scores move along the codewords' component j."""
    table, codes = random_table(6, n_classes=4), simplex.codewords(4)
    body = {"name": "cd_mcboost", "weak_learner": {"kind": "regression_tree", "max_leaves": 6}}
    scores = scores_by_round(table, train_alone(table, body, rounds=7))
    for t, (F, after) in enumerate(pairwise(scores)):
        code, q = codes[:, t % 3], pair_weights(table, F / 2)
        w = (q.sum(axis=1) * code[table.labels] - q @ code) / 2
        step = (after - F) @ code / (code @ code)
        assert after - F == pytest.approx(np.outer(step, code), abs=1e-5)
        means = np.array([w[step == said].mean() for said in step])
        assert means / np.abs(means).max() == pytest.approx(step / np.abs(step).max(), abs=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("body", BODIES)
def test_no_step_near_the_one_taken_is_better(body: dict, loss: str):
    table = random_table(9, n_classes=4)
    result = train_alone(table, {**body, "loss": loss})
    scores = scores_by_round(table, result)
    for record, (F, after) in zip(result.records, pairwise(scores), strict=True):
        if record.alpha > 11.9:
            continue  # capped
        least = losses_of(loss, table, after).sum()
        for factor in (0.98, 0.999, 1.001, 1.02):
            assert losses_of(loss, table, F + factor * (after - F)).sum() >= least - 1e-9


def test_the_line_search_finds_where_the_slope_changes_its_sign():
    random = np.random.default_rng(0)
    for _ in range(50):
        weight, move = random.exponential(size=6) ** 3, random.uniform(-1, 1, 6)
        if (weight * move).sum() < 0:
            move = -move

        def slope(alpha: float, weight: Floats = weight, move: Floats = move) -> tuple[float, float]:
            each = weight * np.exp(-alpha * move)
            return -float((each * move).sum()), float((each * move * move).sum())

        found = least_along(slope)
        if found == 12.0:
            assert slope(12.0)[0] < 0
        else:
            assert slope(found - 2e-7)[0] <= 0 <= slope(found + 2e-7)[0]
    assert least_along(lambda alpha: (0.1, 1.0)) == 0.0
    assert least_along(lambda alpha: (-1.0, 0.0)) == 12.0
    assert least_along(lambda alpha: (math.sin(alpha - 1), math.cos(alpha - 1))) == pytest.approx(1.0, abs=1e-6)


def test_limits_of_a_row_are_limits():
    margins = np.linspace(-60, 60, 200_001)
    root = 2 * np.arctan(margins) - 1
    limits = row_limits(False, 0.0, 2)
    assert (root**2).max() <= limits.loss
    assert np.abs(4 * root / (1 + margins**2)).max() <= limits.weight
    assert np.abs(8 * (1 - margins * root) / (1 + margins**2) ** 2).max() <= limits.curve
    for n_classes in (2, 5):
        for exponent in (-30.0, -1.0, 0.0, 2.0, 100.0):
            total = (n_classes - 1) * math.exp(exponent)  # all margins are as low as they may be
            limits = row_limits(True, exponent, n_classes)
            assert math.log1p(total) <= limits.loss * (1 + 1e-12)
            assert total / (1 + total) <= min(limits.weight, limits.curve) * (1 + 1e-12)


def test_the_loss_is_convex_along_lines_but_for_the_tangent():
    table, random = random_table(4, n_classes=4), np.random.default_rng(1)
    for _ in range(20):
        F, D = random.normal(size=(2, table.n_rows, 4))
        for loss in ("exponential", "logistic"):
            along = [losses_of(loss, table, F + alpha * D).sum() for alpha in np.linspace(-4, 4, 41)]
            assert (np.diff(along, 2) > -1e-9 * np.max(along)).all()


# --- codewords ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3, 4, 10, 26])
def test_codewords_are_a_regular_simplex(n_classes: int):
    codes = simplex.codewords(n_classes)
    gram = (n_classes * np.eye(n_classes) - 1) / (n_classes - 1)
    assert codes @ codes.T == pytest.approx(gram, abs=1e-12)
    assert codes.sum(axis=0) == pytest.approx(np.zeros(n_classes - 1), abs=1e-12)


def test_vector_leaves_point_along_their_rows_gradients():
    """Through the codewords themselves: g = S / |S| with S the sum of Q Y, outputs <g, Y[k]>."""
    table, codes = random_table(8, n_classes=4), simplex.codewords(4)
    result = train_alone(table, {"name": "gd_mcboost"}, rounds=1)
    q = pair_weights(table, np.zeros((table.n_rows, 4)))
    Q = -q / 2
    Q[np.arange(table.n_rows), table.labels] = q.sum(axis=1) / 2
    moved = scores_by_round(table, result)[1] / result.records[0].alpha
    for said in np.unique(moved, axis=0):
        rows = (moved == said).all(axis=1)
        S = (Q[rows] @ codes).sum(axis=0)
        assert said == pytest.approx(codes @ (S / np.linalg.norm(S)), abs=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("learner", GD)
def test_the_gradient_does_not_care_which_class_has_which_codeword(learner: dict, loss: str):
    for seed in range(3):
        table = random_table(seed, n_classes=4)
        order = np.random.default_rng(seed).permutation(4)
        other = Table(table.codes, order[table.labels].astype(np.int32), 4, table.binning)
        body = {"name": "gd_mcboost", "loss": loss, "weak_learner": learner}
        one, two = (train_alone(each, body) for each in (table, other))
        assert [r.ln_loss for r in one.records[:4]] == pytest.approx([r.ln_loss for r in two.records[:4]], abs=1e-5)


def test_the_limit_of_coordinate_descent_does_not_depend_on_the_order_of_components():
    table = random_table(5, n_rows=40, n_classes=3, noise=4.0)
    limits = []
    for order in ([0, 1, 2], [2, 0, 1]):
        labels = np.array(order)[table.labels].astype(np.int32)
        other = Table(table.codes, labels, 3, table.binning)
        limits.append(train_alone(other, {"name": "cd_mcboost"}, rounds=800).records[-1].loss)
    assert limits[0] == pytest.approx(limits[1], rel=2e-3)


# --- what it equals -----------------------------------------------------------------------------------------


@few
@given(table=tables())
def test_codewords_with_the_exponential_loss_are_mm_with_the_exact_step(table: Table):
    one = train_alone(table, {"name": "gd_mcboost", "weak_learner": {"kind": "tree"}})
    other = train_alone(table, {"name": "adaboost_mm", "step": "exact"})
    doubled = 2 * other.forest.multiplier
    as_doubled = {"multiplier": (str(doubled.dtype), doubled.shape, doubled.tobytes())}
    assert forest_arrays(one.forest) == forest_arrays(other.forest) | as_doubled
    assert [(r.edge, r.ln_loss, r.ln_bound) for r in one.records] == [
        (r.edge, r.ln_loss, r.ln_bound) for r in other.records
    ]
    K = table.n_classes
    for a, b in zip(one.records, other.records, strict=True):
        assert a.alpha * K / (2 * (K - 1)) == pytest.approx(b.alpha)


def test_the_step_in_closed_form_is_that_of_the_line_search(monkeypatch: pytest.MonkeyPatch):
    table = random_table(1, n_classes=4)
    body = {"name": "gd_mcboost", "weak_learner": {"kind": "tree"}}
    wanted = train_alone(table, body)
    monkeypatch.setattr(GDMCBoost, "_closed", lambda self, fitted: False)
    found = train_alone(table, body)
    assert [r.alpha for r in found.records] == pytest.approx([r.alpha for r in wanted.records], abs=1e-5)
    assert [r.edge for r in found.records] == pytest.approx([r.edge for r in wanted.records], abs=1e-5)


def test_two_classes_are_adaboost():
    """s(:, 0) = -f: the first class has the codeword +1 (algorithms.md section 6, item 3)."""
    for seed in range(5):
        table = random_table(seed, n_classes=2)
        free = {"kind": "hamming_tree", "votes": "free", "max_leaves": 2}
        pairs = [
            ({"name": "cd_mcboost"}, {"name": "adaboost", "weak_learner": {"kind": "stump"}}),
            (
                {"name": "gd_mcboost", "weak_learner": {"kind": "vector_tree", "max_leaves": 2}},
                {"name": "adaboost", "weak_learner": free},
            ),
        ]
        for body, binary in pairs:
            one, other = train_alone(table, body, rounds=8), train_alone(table, binary, rounds=8)
            for name, tolerance in (("edge", 1e-6), ("alpha", 1e-5), ("ln_loss", 1e-5)):
                assert [getattr(r, name) for r in one.records] == pytest.approx(
                    [getattr(r, name) for r in other.records], abs=tolerance
                )
            F = scores_by_round(table, one)[-1]
            assert (F[:, 0] == -F[:, 1]).all()


def test_two_classes_make_vectors_and_codewords_one():
    for loss in LOSSES:
        table = random_table(11, n_classes=2)
        one, other = (
            train_alone(table, {"name": "gd_mcboost", "loss": loss, "weak_learner": {"kind": kind}})
            for kind in ("vector_tree", "tree")
        )
        assert [r.ln_loss for r in one.records] == pytest.approx([r.ln_loss for r in other.records], abs=1e-5)


# --- components ---------------------------------------------------------------------------------------------


def moved_components(result: TrainingResult) -> list[int]:
    """The first class that each round's weak learner moves."""
    forest = result.forest
    starts = forest.leaf_start.tolist()
    return [int(forest.payload[a:b].any(axis=0).argmax()) for a, b in pairwise(starts)]


def test_components_take_turns():
    for learner in CD:
        result = train_alone(random_table(3, n_classes=4), {"name": "cd_mcboost", "weak_learner": learner}, rounds=9)
        assert moved_components(result) == [0, 1, 2] * 3


def test_a_component_with_nothing_to_gain_is_skipped():
    """The feature tells class 1 from class 2; class 0 is as likely on both sides, so component 0 has no gain at all."""
    table = make_table([[0, 0, 0, 1, 1, 1]], [0, 1, 1, 0, 2, 2], 3)
    for learner in CD:
        result = train_alone(table, {"name": "cd_mcboost", "weak_learner": learner}, rounds=1)
        assert moved_components(result) == [1]


def test_training_stops_after_a_cycle_of_components_with_nothing_to_gain():
    table = make_table([[1] * 8], [0, 1, 2, 3] * 2, 4)
    for body in BODIES:
        result = train_alone(table, body)
        assert (result.stop_reason, len(result.records)) == ("edge_zero", 0)


def test_a_perfect_learner_ends_training_with_a_capped_step():
    table = make_table([[0, 1, 0, 1]], [0, 1, 0, 1], 2)
    for body in BODIES:
        for loss in ("exponential", "logistic"):
            result = train_alone(table, {**body, "loss": loss})
            assert result.stop_reason == "edge_one"
            assert [(r.alpha, r.strict_train_error) for r in result.records] == [(12.0, 0)]


def test_the_tangent_loss_leaves_an_outlier_alone():
    """Right margins settle at tan(1 / 2), where the loss is 0; a wrong copy cannot drag its rows' scores along."""
    table = make_table([[0] * 20 + [3] * 20], [0] * 20 + [1] * 19 + [0], 2)
    result = train_alone(table, {"name": "gd_mcboost", "loss": "tangent"}, rounds=20)
    F = scores_by_round(table, result)[-1]
    assert F[0, 0] - F[0, 1] == pytest.approx(2 * math.tan(0.5), abs=1e-3)
    assert result.records[-1].train_error == pytest.approx(1 / 40)


# --- three Gaussians ----------------------------------------------------------------------------------------

MEANS = ([1, 2], [-1, 0], [2, -1])
COVARIANCES = ([[1, 0.5], [0.5, 2]], [[1, 0.3], [0.3, 1]], [[0.4, 0.1], [0.1, 0.8]])


def three_gaussians(random: np.random.Generator, n_rows: int) -> small_runs.Table:
    """Saberian & Vasconcelos 2011, section 5; rounded to 1/16, so that 255 bins hold the values."""
    labels = random.integers(0, 3, n_rows)
    X = np.array([random.multivariate_normal(MEANS[y], COVARIANCES[y]) for y in labels])
    return small_runs.Table(np.rint(X * 16) / 16, labels.astype(np.int32), 3)


def bayes_error(table: small_runs.Table) -> float:
    logs = []
    for mean, covariance in zip(MEANS, COVARIANCES, strict=True):
        away = table.X - np.array(mean)
        logs.append(-(away @ np.linalg.inv(covariance) * away).sum(axis=1) - np.log(np.linalg.det(covariance)))
    return float((np.argmax(logs, axis=0) != table.labels).mean())


def test_coordinate_descent_comes_within_three_points_of_bayes_on_three_gaussians():
    random = np.random.default_rng(0)
    table, test = three_gaussians(random, 1000), three_gaussians(random, 1000)
    result = small_runs.train_alone(table, small_runs.config_for({"name": "cd_mcboost"}, 100))
    scores = small_runs.scores_by_round(result.forest, test.X)[-1]
    assert float((scores.argmax(axis=1) != test.labels).mean()) <= bayes_error(test) + 0.03
