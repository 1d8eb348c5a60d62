"""The gain matrix and its scale against the naive twin."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boost_core.algorithms.adaboost import AdaBoost
from boost_core.algorithms.adaboost_mh import AdaBoostMH, error_factor, initial_weights
from boost_core.algorithms.atanh_step import atanh_step
from boost_core.algorithms.base import Gains, Problem
from boost_core.gain_matrix import GAIN_BITS, SUM_BITS, scale_for
from boost_core.intrinsics import gain_row, lanes_for, width_for
from boost_core.jit import kernel
from boost_core.scores import NO_PAIR, Scores
from boost_core.team import Team
from tests import reference
from tests.reference import FloatOracle, Options

WEIGHTS = ["asymmetric", "uniform", "balanced"]
cases = settings(max_examples=200, deadline=None, derandomize=True, database=None, print_blob=True)


def random_scores(seed: int, n_columns: int, reach: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels that hold every class, and scores up to reach units."""
    random = np.random.default_rng(seed)
    n_classes = max(n_columns, 2)
    labels = np.concatenate([np.arange(n_classes), random.integers(0, n_classes, int(random.integers(1, 90)))])
    return labels.astype(np.int32), random.integers(-reach, reach + 1, (len(labels), n_columns))


def engine_gains(options: Options, labels: np.ndarray, scores: np.ndarray, n_classes: int) -> tuple[Gains, np.ndarray]:
    counts = np.bincount(labels, minlength=n_classes).astype(np.int64)
    with Team(1) as team:
        problem = Problem(labels, counts, team)
        kind = AdaBoost if options.binary else AdaBoostMH
        algorithm = kind(problem, {"init_weights": options.init_weights})
        peaks = algorithm.peaks(Scores(scores))
        return algorithm.gains(Scores(scores), peaks), peaks


def check(options: Options, labels: np.ndarray, scores: np.ndarray, n_classes: int) -> None:
    counts = tuple(np.bincount(labels, minlength=n_classes).tolist())
    twin = reference.gain_matrix(scores.tolist(), labels.tolist(), counts, options)
    gains, peaks = engine_gains(options, labels, scores, n_classes)
    n_columns, matrix = scores.shape[1], gains.matrix
    assert matrix.values[:, :n_columns].tolist() == twin.values
    assert (matrix.values[:, n_columns] == 1).all()
    assert not matrix.values[:, n_columns + 1 :].any()
    assert (matrix.scale, gains.shift, matrix.n_channels) == (twin.scale, twin.shift, n_columns)
    assert matrix.total_mass == twin.mass() == gains.totals[0]
    assert np.abs(matrix.values).max() <= 1 << GAIN_BITS
    negative, positive = reference.peaks(scores.tolist(), labels.tolist(), n_classes, options)
    assert peaks.tolist() == [NO_PAIR if peak is None else peak for peak in (*negative, *positive)]


@kernel
def _gain_row(into, at, values, first, n_channels, lanes):  # type: ignore[no-untyped-def]
    gain_row(into, at, values, first, n_channels, lanes)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("n_channels", [1, 3, 8, 9, 10, 15, 26, 100])
def test_a_row_of_gains_has_a_count_and_is_filled_up(n_channels: int, kind: type[np.signedinteger]) -> None:
    n_padded = width_for(n_channels + 1)
    values = np.random.default_rng(n_channels).integers(0, 1 << GAIN_BITS, 2 * n_padded, endpoint=True).astype(np.int32)
    values[n_padded] = 1 << GAIN_BITS
    rows = np.full((3, n_padded), 7, kind)
    _gain_row(rows.reshape(-1), n_padded, values, n_padded, n_channels, lanes_for(n_padded))
    filled = [1, *[0] * (n_padded - n_channels - 1)]
    assert rows[1].tolist() == [*(-values[n_padded : n_padded + n_channels]).tolist(), *filled]
    assert (rows[[0, 2]] == 7).all()  # its neighbours stay


@pytest.mark.parametrize("reach", [0, 3, 1 << 20, 40 << 20, 1 << 29])
@pytest.mark.parametrize("n_classes", [2, 3, 7, 8])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_gains_of_adaboost_mh(weights: str, n_classes: int, reach: int):
    labels, scores = random_scores(n_classes, n_classes, reach)
    check(Options(init_weights=weights), labels, scores.astype(np.int32), n_classes)


@pytest.mark.parametrize("reach", [0, 3, 1 << 20, 40 << 20])
def test_gains_of_adaboost(reach: int):
    labels, scores = random_scores(reach % 1000, 1, reach)
    check(Options("adaboost"), labels, scores.astype(np.int32), 2)


def test_a_wrong_label_weight_beyond_the_fixed_point_stays_out_of_the_own_label():
    """Balanced: 1/(2K) for the only row outside a class, 1/(2Kn) for those in it; that row's margin is large."""
    labels = np.array([1] * 20 + [0], np.int32)
    scores = np.zeros((21, 2), np.int32)
    scores[20] = 5 << 20, -5 << 20
    check(Options(init_weights="balanced"), labels, scores, 2)


def test_wide_scores_give_the_gains_of_narrow_ones():
    labels, scores = random_scores(9, 4, 5 << 20)
    narrow, _ = engine_gains(Options(), labels, scores.astype(np.int32), 4)
    wide, _ = engine_gains(Options(), labels, scores.astype(np.int64), 4)
    assert (narrow.matrix.values == wide.matrix.values).all()
    check(Options(), labels, scores.astype(np.int64) + (1 << 40), 4)


@cases
@given(st.floats(2.0**-200, 1.0), st.one_of(st.integers(1, 2**31), st.integers(1, 2**45)))
def test_scale_is_the_greatest_that_fits(largest: float, n_cells: int):
    assert scale_for(largest, n_cells) == reference.scale_for(largest, n_cells)


@pytest.mark.parametrize("largest", [1.0, 0.5, 2.0**-60, math.nextafter(1.0, 0.0), math.nextafter(0.5, 1.0)])
@pytest.mark.parametrize("n_cells", [1, 2, 3, 2**31 - 1, 2**31, 2**31 + 1, 2**32, 2**33 + 5, 2**40])
def test_scale_leaves_room_for_every_sum(largest: float, n_cells: int):
    scale = scale_for(largest, n_cells)
    assert scale == reference.scale_for(largest, n_cells)
    assert n_cells * Fraction(largest) * Fraction(2) ** scale < 2**SUM_BITS


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("counts", [[1, 1], [3, 5, 9], [40, 1, 7, 2]])
def test_initial_weights_sum_to_one_and_their_error_factor_is_the_proved_one(weights: str, counts: list[int]):
    initial = initial_weights(weights, np.array(counts))
    n_rows = sum(counts)
    total = sum(c * p + (n_rows - c) * q for c, p, q in zip(counts, initial.positive, initial.negative, strict=True))
    assert total == pytest.approx(1.0, rel=1e-14)
    labels = np.repeat(np.arange(len(counts)), counts).astype(np.int32)
    oracle = FloatOracle(labels, len(counts), Options(init_weights=weights))
    assert error_factor(initial, n_rows) == pytest.approx(oracle.error_factor(), rel=1e-12)


# --- step ---------------------------------------------------------------------------------------------------


@cases
@given(st.integers(1, 2**61), st.fractions(0, 1))
def test_step_is_the_rounded_artanh_of_the_edge(normaliser: int, share: Fraction):
    value = int(share * normaliser)
    got = atanh_step(value, normaliser, 1)
    assert got.edge == value / normaliser
    assert got.perfect == (value == normaliser)
    [units] = got.multipliers.tolist()
    assert units == reference.step(value, normaliser)
    assert got.alpha == units * reference.UNIT
    if not got.perfect:
        exact = 0.5 * (math.log(normaliser + value) - math.log(normaliser - value))
        assert units == pytest.approx(min(exact, 12.0) * 2**20, abs=0.5 + 1e-6)


@pytest.mark.parametrize(("value", "normaliser"), [(1, 2), (3, 7), (10**15, 10**15 + 7), (1, 10**18)])
def test_the_loss_shrinks_by_what_the_step_says(value: int, normaliser: int):
    exact = Fraction(normaliser**2 - value**2, normaliser**2)
    wanted = 0.5 * math.log(exact) if exact > Fraction(1, 2) else 0.5 * math.log(float(exact))
    assert atanh_step(value, normaliser, 1).ln_factor == pytest.approx(max(wanted, -math.log(math.cosh(12))), abs=1e-14)


def test_a_perfect_learner_gets_the_cap_and_its_capped_factor():
    got = atanh_step(5, 5, 1)
    assert got.perfect
    assert got.multipliers.tolist() == [12 << 20]
    assert got.ln_factor == pytest.approx(-math.log(math.cosh(12)), abs=1e-14)
    assert math.exp(-12) <= math.exp(got.ln_factor) <= math.sqrt(1 - math.tanh(12) ** 2) * (1 + 1e-9)


def test_an_edge_beyond_the_cap_is_not_perfect_but_capped():
    normaliser = 2**60
    got = atanh_step(normaliser - 1, normaliser, 1)
    assert not got.perfect
    assert got.multipliers.tolist() == [12 << 20]
    assert got.ln_factor == pytest.approx(-math.log(math.cosh(12)), abs=1e-14)


@pytest.mark.parametrize(("value", "normaliser", "n_cells"), [(9 << 30, 10 << 30, 40), ((1 << 36) - 50, 1 << 36, 90)])
def test_slack_covers_gains_that_are_all_half_a_unit_off(value: int, normaliser: int, n_cells: int):
    """The step is chosen for N and V; the true weights of right and wrong pairs may each be n_cells / 2 units off."""
    step = atanh_step(value, normaliser, n_cells)
    right, wrong, off = (normaliser + value) / 2, (normaliser - value) / 2, n_cells / 2
    alpha = step.alpha
    for sign in (-1, 1):  # the most that rounding can have taken from, or given to, the wrong pairs
        true_wrong = max(wrong + sign * off / 2, 0.0)
        loss = right * math.exp(-alpha) + true_wrong * math.exp(alpha)
        assert math.log(loss / normaliser) <= step.ln_factor + step.ln_slack + 1e-12


def test_slack_of_a_perfect_learner_covers_pairs_whose_gains_rounded_to_zero():
    normaliser, n_cells = 3 << 30, 200
    step = atanh_step(normaliser, normaliser, n_cells)
    unseen = n_cells / 2 / normaliser
    loss = math.exp(-12) + unseen * math.exp(12)
    assert math.log(loss) <= step.ln_factor + step.ln_slack + 1e-12
    assert atanh_step(normaliser, normaliser, 0).ln_slack == 0.0


def test_no_value_and_no_weights_give_no_step():
    assert atanh_step(0, 10, 1).alpha == 0
    assert atanh_step(0, 10, 1).ln_factor == 0.0
