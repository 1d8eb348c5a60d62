"""The engine, step by step at its own scores, stays within rounding of the published formulas in float64."""

import math
from dataclasses import replace

import numpy as np
import pytest

from boost_core.training import TrainingResult
from tests import reference
from tests.builders import (
    CONFIGURATIONS,
    BinnedTable,
    bin_table,
    config_for,
    make_table,
    nested_tree,
    reference_options,
    scores_by_round,
    train_alone,
)
from tests.reference import FloatOracle, Grid, Options

ROUNDS = 25
LN_TOLERANCE = 1e-7  # of ln loss, a round
SUMMATION = 1e-12  # float64 sums of a few hundred terms, relative to the sum of their absolute values


def trained(configuration: str, seed: int) -> tuple[BinnedTable, Options, TrainingResult]:
    options = replace(reference_options(configuration), max_leaves=2 if configuration.endswith("stump") else 6)
    binned = bin_table(make_table(90, 3, 2 if options.binary else 4, seed))
    config = config_for(options, ROUNDS, configuration.endswith("stump"))
    return binned, options, train_alone(binned, config)


def check_cuts(nested: tuple, rows: list[int], grid: Grid, gains: np.ndarray, free: bool, unit: float) -> None:
    """Every cut of the tree is the best of its node, but for the rounding of the node's gains."""
    if len(nested) == 2:
        return
    cut, left, right = nested
    values = reference.float_cut_values(grid, gains, rows, free)
    slack = gains[rows].size * unit + SUMMATION * np.abs(gains[rows]).sum()
    assert values[cut] >= max(values.values()) - slack
    below, above = reference.partition(grid, rows, cut)
    check_cuts(left, below, grid, gains, free, unit)
    check_cuts(right, above, grid, gains, free, unit)


def votes_of_rows(nested: tuple, grid: Grid, n_rows: int) -> np.ndarray:
    by_leaf: dict[int, tuple[int, ...]] = {}

    def collect(part: tuple) -> None:
        if len(part) == 2:
            by_leaf[part[0]] = part[1]
        else:
            collect(part[1])
            collect(part[2])

    collect(nested)
    return np.array([by_leaf[reference.route(nested, grid, row)] for row in range(n_rows)], np.float64)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_each_round_follows_the_formulas(configuration: str, seed: int):
    binned, options, result = trained(configuration, seed)
    table, grid = binned.table, binned.grid()
    oracle = FloatOracle(table.labels, table.n_classes, options)
    counts = tuple(np.bincount(table.labels, minlength=table.n_classes).tolist())
    scores = scores_by_round(result.forest, table.X)
    assert len(result.records) == ROUNDS

    for number, record in enumerate(result.records):
        F = scores[number] * reference.UNIT
        weights, _ = oracle.weights(F)
        scale = reference.gain_matrix(scores[number].tolist(), table.labels.tolist(), counts, options).scale
        unit, nested = 2.0**-scale, nested_tree(result.forest, number)
        check_cuts(nested, list(range(table.n_rows)), grid, weights * oracle.signed(), options.free, unit)

        edge = oracle.edge(F, votes_of_rows(nested, grid, table.n_rows))
        rounding = weights.size * unit / weights.sum()
        assert record.edge == pytest.approx(edge, abs=rounding)
        assert record.alpha == pytest.approx(math.atanh(edge), abs=2.0**-21 + 2 * rounding / (1 - edge**2))
        ln_loss = oracle.ln_loss(scores[number + 1] * reference.UNIT)
        assert abs(record.ln_loss - ln_loss) <= (number + 1) * LN_TOLERANCE
        assert record.loss == pytest.approx(math.exp(record.ln_loss), rel=1e-12)


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_a_float_run_of_its_own_reaches_the_same_loss(configuration: str):
    """The engine's learners with float64 steps of their own: the losses differ by rounding alone."""
    binned, options, result = trained(configuration, 2)
    table, grid = binned.table, binned.grid()
    oracle = FloatOracle(table.labels, table.n_classes, options)
    F = np.zeros_like(oracle.signed())
    for number, record in enumerate(result.records):
        votes = votes_of_rows(nested_tree(result.forest, number), grid, table.n_rows)
        F = F + math.atanh(oracle.edge(F, votes)) * votes
        assert abs(record.ln_loss - oracle.ln_loss(F)) <= (number + 1) * LN_TOLERANCE
