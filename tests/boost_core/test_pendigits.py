"""Thousands of rounds on real data: nothing underflows, nothing drifts, every bound holds at every round."""

import math

import numpy as np
import pytest

from boost_core.prediction import forest_scores
from boost_core.records import StopReason
from boost_core.training import TrainingResult
from tests import reference
from tests.builders import BinnedTable, config_for, part_of_forest, read_real_table, train_alone
from tests.reference import FloatOracle, Options

ROUNDS = 5_000
LN_TOLERANCE = 1e-7
OPTIONS = Options(max_leaves=9)
CHECKED_EVERY = 250


@pytest.fixture(scope="module")
def result(pendigits: BinnedTable) -> TrainingResult:
    return train_alone(pendigits, config_for(OPTIONS, ROUNDS), threads=2)


@pytest.mark.slow
def test_loss_identity_and_bounds_at_every_round(result: TrainingResult):
    assert result.stop_reason == StopReason.ROUNDS
    assert [record.round for record in result.records] == list(range(1, ROUNDS + 1))
    ln_bound = 0.0
    for record in result.records:
        ln_bound += 0.5 * math.log1p(-(record.edge**2))
        tolerance = record.round * LN_TOLERANCE
        assert abs(record.ln_loss - record.ln_bound) <= tolerance
        assert abs(record.ln_bound - ln_bound) <= tolerance
        assert 0 < record.edge < 1
        assert 0 < record.alpha < 12
        assert 0 <= record.loss <= record.bound * math.exp(tolerance)
        assert record.error_bound == pytest.approx(3 * record.bound, rel=1e-9)  # sqrt(K - 1)
        assert record.train_error <= record.strict_train_error <= record.error_bound
        assert 1 <= record.n_leaves <= 9  # 1: the constant beat every cut


@pytest.mark.slow
def test_scores_of_the_model_have_the_recorded_loss_and_errors(pendigits: BinnedTable, result: TrainingResult):
    """From raw rows, in float64, every few hundred rounds."""
    table = pendigits.table
    oracle = FloatOracle(table.labels, table.n_classes, OPTIONS)
    scores = np.zeros((table.n_rows, table.n_classes), np.int64)
    for start in range(0, ROUNDS, CHECKED_EVERY):
        stop = start + CHECKED_EVERY
        scores += forest_scores(part_of_forest(result.forest, start, stop), table.X, threads=2)
        record = result.records[stop - 1]
        F = scores * reference.UNIT
        assert abs(record.ln_loss - oracle.ln_loss(F)) <= stop * LN_TOLERANCE
        assert oracle.hamming_error(F) <= record.bound * math.exp(stop * LN_TOLERANCE)
        own = F[np.arange(table.n_rows), table.labels]
        others = F.copy()
        others[np.arange(table.n_rows), table.labels] = -np.inf
        assert record.strict_train_error == np.mean(others.max(axis=1) >= own)


@pytest.mark.slow
def test_early_rounds_do_not_depend_on_how_many_follow(pendigits: BinnedTable, result: TrainingResult):
    short = train_alone(pendigits, config_for(OPTIONS, 20))
    assert short.records == result.records[:20]


@pytest.mark.slow
def test_error_on_unseen_writers(result: TrainingResult):
    unseen = read_real_table("pendigits", "test")
    first = forest_scores(part_of_forest(result.forest, 0, 400), unseen.X, threads=2)
    assert np.mean(first.argmax(axis=1) != unseen.labels) <= 0.03
