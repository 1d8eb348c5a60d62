"""What the papers prove, at every round: loss identities, error bounds, equivalences, degenerate cases."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from boost_core.records import RoundRecord, StopReason
from boost_core.training import TrainingResult
from tests import reference
from tests.builders import (
    CONFIGURATIONS,
    BinnedTable,
    Table,
    bin_table,
    config_for,
    forest_arrays,
    make_table,
    nested_tree,
    reference_options,
    scores_by_round,
    shared_figures,
    small_tables,
    train_alone,
)
from tests.reference import FloatOracle, Options

LN_TOLERANCE = 1e-7
CAP = 12.0
WEIGHTS = ["asymmetric", "uniform", "balanced"]
cases = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    phases=[Phase.explicit, Phase.generate],  # shrinking takes minutes, and the examples are small already
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def rounding(record: RoundRecord, n_cells: int) -> float:
    """How far a round can move ln loss from its bound when every gain is off by half a unit.

    N is 2**29 units at least; N - V, and N of the round after, are n_cells / 2 units off at most. Under a capped step
    of edge 1, wrong pairs whose gains round to 0 may grow unseen.
    """
    if record.edge == 1:
        return math.log1p(n_cells / 2**30 * math.exp(2 * CAP)) + LN_TOLERANCE
    return n_cells / (2.0**29 * (1 - record.edge)) + LN_TOLERANCE


def check_rounds(binned: BinnedTable, options: Options, result: TrainingResult) -> None:
    """The identity of the loss where no step is capped, and all bounds, at every round."""
    table = binned.table
    oracle = FloatOracle(table.labels, table.n_classes, options)
    n_cells = table.n_rows * (1 if options.binary else table.n_classes)
    scores = scores_by_round(result.forest, table.X)
    slack, ln_bound, capped = 0.0, 0.0, False
    for number, record in enumerate(result.records, start=1):
        F = scores[number] * reference.UNIT
        slack += rounding(record, n_cells)
        capped = capped or record.alpha == CAP
        if not capped:
            ln_bound += 0.5 * math.log1p(-(record.edge**2))
            assert record.ln_bound == pytest.approx(ln_bound, abs=slack)
            assert abs(record.ln_loss - record.ln_bound) <= slack
        assert math.isfinite(record.ln_loss)
        assert record.ln_loss <= record.ln_bound + slack
        assert record.error_bound == pytest.approx(oracle.error_factor() * math.exp(record.ln_bound), rel=1e-9)
        assert oracle.hamming_error(F) <= math.exp(record.ln_bound + slack)
        assert record.train_error <= record.strict_train_error <= record.error_bound * math.exp(slack)
        assert 0 < record.edge <= 1


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@cases
@given(data=st.data())
def test_identities_and_bounds_on_small_tables(configuration: str, data: st.DataObject):
    options = reference_options(configuration)
    table = data.draw(small_tables(options.binary, absent=options.init_weights != "balanced"))
    max_leaves = 2 if "stump" in configuration else data.draw(st.sampled_from([8, 7, 6, 5, 4, 3, 2]))
    options = replace(options, max_leaves=max_leaves)
    binned = bin_table(table)
    check_rounds(binned, options, train_alone(binned, config_for(options, 30, "stump" in configuration)))


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_identity_holds_to_the_stated_tolerance_over_many_rounds(configuration: str):
    options = replace(reference_options(configuration), max_leaves=2 if "stump" in configuration else 5)
    binned = bin_table(make_table(400, 4, 2 if options.binary else 5, seed=8))
    result = train_alone(binned, config_for(options, 400, "stump" in configuration))
    assert len(result.records) == 400
    for record in result.records:
        assert abs(record.ln_loss - record.ln_bound) <= record.round * LN_TOLERANCE
    check_rounds(binned, options, result)


@pytest.mark.parametrize("learner", ["stump", "factorised", "free"])
def test_binary_error_is_half_of_one_minus_the_edge(learner: str):
    """gamma = 1 - 2 err under the weights of the round; in round 1 they are equal."""
    options = replace(reference_options(f"adaboost {learner}"), max_leaves=2 if learner == "stump" else 4)
    binned = bin_table(make_table(120, 3, 2, seed=4))
    [record] = train_alone(binned, config_for(options, 1, learner == "stump")).records
    assert record.edge == pytest.approx(1 - 2 * record.train_error, abs=1e-8)


# --- equivalences -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["asymmetric", "uniform"])
@pytest.mark.parametrize("seed", range(4))
def test_two_classes_of_mh_with_stumps_are_binary_adaboost(seed: int, weights: str):
    """With W1 = 1/(2n) on all pairs: F(:,1) = f and F(:,0) = -f, same stumps, same edges."""
    binned = bin_table(make_table(80, 3, 2, seed))
    one = train_alone(binned, config_for(Options("adaboost"), 30, stump=True))
    two = train_alone(binned, config_for(Options(init_weights=weights), 30, stump=True))
    assert two.stop_reason == one.stop_reason
    assert [record.edge for record in two.records] == [record.edge for record in one.records]
    assert two.forest.multiplier.tolist() == one.forest.multiplier.tolist()
    assert [record.ln_bound for record in two.records] == pytest.approx([r.ln_bound for r in one.records], abs=1e-12)
    cuts = ("node_feature", "node_kind", "node_bin", "node_missing_left", "node_threshold")
    for name in cuts:
        np.testing.assert_array_equal(getattr(two.forest, name), getattr(one.forest, name))
    pairs = zip(scores_by_round(two.forest, binned.table.X), scores_by_round(one.forest, binned.table.X), strict=True)
    for pair, single in pairs:
        assert (pair[:, 1] == single[:, 0]).all()
        assert (pair[:, 0] == -single[:, 0]).all()


@pytest.mark.parametrize("configuration", ["adaboost", "mh asymmetric", "mh uniform", "mh balanced"])
def test_a_factorised_tree_of_two_leaves_is_a_stump(configuration: str):
    options = reference_options(f"{configuration} factorised")
    binned = bin_table(make_table(100, 3, 2 if options.binary else 4, seed=1))
    tree, stump = (train_alone(binned, config_for(options, 25, stump)) for stump in (False, True))
    assert forest_arrays(tree.forest) == forest_arrays(stump.forest)
    assert shared_figures(tree.records) == shared_figures(stump.records)


@pytest.mark.parametrize("votes", ["factorised", "free"])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_value_of_a_tree_does_not_fall_with_its_leaves(weights: str, votes: str):
    """At the same weights (round 1) a larger tree has at least the edge of a smaller one, and grows from it."""
    binned = bin_table(make_table(150, 4, 3, seed=6, missing=0.05))
    edges, cuts = [], []
    for max_leaves in range(2, 20):
        options = replace(reference_options(f"mh {weights} {votes}"), max_leaves=max_leaves)
        result = train_alone(binned, config_for(options, 1))
        edges.append(result.records[0].edge)
        cuts.append(list(zip(result.forest.node_feature.tolist(), result.forest.node_bin.tolist(), strict=True)))
    assert edges == sorted(edges)
    if (weights, votes) != ("uniform", "factorised"):  # there the constant may stay unbeaten: its edge is 1 - 2/K
        assert edges[0] < edges[-1]
    for smaller, larger in itertools.pairwise(cuts):
        assert larger[: len(smaller)] == smaller


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_columns_that_say_nothing_change_nothing(configuration: str):
    """Constant columns and copies of a column lose every tie against what came before."""
    options = replace(reference_options(configuration), max_leaves=2 if "stump" in configuration else 5)
    table = make_table(60, 3, 2 if options.binary else 3, seed=3)
    more = Table(np.column_stack([table.X, np.full(60, 2.0), table.X]), table.labels, table.n_classes)
    config = config_for(options, 15, "stump" in configuration)
    one, other = (train_alone(bin_table(each), config) for each in (table, more))
    assert forest_arrays(one.forest) == forest_arrays(other.forest)
    assert shared_figures(one.records) == shared_figures(other.records)


def test_order_preserving_changes_of_a_feature_change_only_thresholds():
    table = make_table(80, 3, 3, seed=5)
    stretched = replace(table, X=np.exp(table.X / 3))
    config = config_for(Options(max_leaves=5), 15)
    one, other = (train_alone(bin_table(each), config) for each in (table, stretched))
    for number in range(15):
        assert nested_tree(one.forest, number) == nested_tree(other.forest, number)
    assert shared_figures(one.records) == shared_figures(other.records)


# --- degenerate cases ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_a_perfect_first_learner_gets_the_capped_step_and_ends_the_run(configuration: str):
    options = replace(reference_options(configuration), max_leaves=2 if "stump" in configuration else 4)
    labels = np.repeat(np.arange(2, dtype=np.int32), 20)
    table = Table(np.column_stack([np.arange(40.0), labels]), labels, 2)
    result = train_alone(bin_table(table), config_for(options, 50, "stump" in configuration))
    [record] = result.records
    assert result.stop_reason == StopReason.EDGE_ONE
    assert record.edge == 1.0
    assert record.alpha == CAP
    assert record.train_error == record.strict_train_error == 0.0
    assert record.ln_loss == pytest.approx(-CAP, abs=1e-6)
    assert record.ln_bound == pytest.approx(-math.log(math.cosh(CAP)), abs=1e-12)
    assert record.ln_loss <= record.ln_bound


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("counts", [(10, 10), (17, 3), (1, 1)])
def test_constant_features_leave_only_the_constant(configuration: str, counts: tuple[int, int]):
    options = replace(reference_options(configuration), max_leaves=2 if "stump" in configuration else 4)
    labels = np.repeat(np.arange(2, dtype=np.int32), counts)
    binned = bin_table(Table(np.full((len(labels), 3), 4.0), labels, 2))
    result = train_alone(binned, config_for(options, 20, "stump" in configuration))
    assert result.stop_reason in {StopReason.EDGE_ZERO, StopReason.ALPHA_ZERO}
    if counts[0] == counts[1] or options.init_weights == "balanced":
        assert result.records == ()
    assert all(record.n_leaves == 1 for record in result.records)
    check_rounds(binned, options, result)


def test_only_missing_values_are_a_constant():
    labels = np.array([0, 0, 1, 2], np.int32)
    binned = bin_table(Table(np.full((4, 2), np.nan), labels, 3))
    result = train_alone(binned, config_for(Options(init_weights="uniform", max_leaves=3), 5))
    assert all(record.n_leaves == 1 for record in result.records)
    check_rounds(binned, Options(init_weights="uniform"), result)


def test_a_cut_on_missing_or_not():
    labels = np.array([0, 0, 0, 1, 1], np.int32)
    X = np.array([[np.nan], [np.nan], [np.nan], [7.0], [7.0]])
    result = train_alone(bin_table(Table(X, labels, 2)), config_for(Options(), 3))
    assert result.stop_reason == StopReason.EDGE_ONE
    assert nested_tree(result.forest, 0) == ((0, reference.MISSING, 0, True), (0, (1, -1)), (1, (-1, 1)))


def test_contradicting_copies_of_a_row_stop_or_run_but_stay_finite():
    X = np.zeros((6, 1))
    labels = np.array([0, 1, 2, 0, 1, 2], np.int32)
    for weights in WEIGHTS:
        options = Options(init_weights=weights, max_leaves=3)
        binned = bin_table(Table(X, labels, 3))
        check_rounds(binned, options, train_alone(binned, config_for(options, 10)))


def test_classes_without_rows_get_the_lowest_scores():
    table = make_table(40, 3, 3, seed=2)
    wide = replace(table, n_classes=5)
    for weights in ("asymmetric", "uniform"):
        config = config_for(Options(init_weights=weights, free=True, max_leaves=4), 10)
        result = train_alone(bin_table(wide), config)
        final = scores_by_round(result.forest, table.X)[-1]
        assert (final[:, 3:] == final.min(axis=1, keepdims=True)).all()


def test_validation_errors_are_those_of_the_models_predictions():
    table, valid = make_table(120, 3, 4, seed=9), make_table(70, 3, 4, seed=10)
    result = train_alone(bin_table(table), config_for(Options(max_leaves=4), 12), valid=valid)
    for record, scores in zip(result.records, scores_by_round(result.forest, valid.X)[1:], strict=True):
        wrong, _ = reference.count_errors(scores.tolist(), valid.labels.tolist())
        assert record.valid_error == wrong / 70


def test_figures_are_the_records_as_arrays():
    result = train_alone(bin_table(make_table(50, 2, 3, seed=0)), config_for(Options(max_leaves=3), 6))
    figures = result.figures()
    for name in ("edge", "ln_loss", "ln_bound", "train_error"):
        assert getattr(figures, name).tolist() == [getattr(record, name) for record in result.records]
    assert np.isnan(figures.valid_error).all()
