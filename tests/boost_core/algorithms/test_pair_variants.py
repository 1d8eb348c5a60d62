"""M2, Cost and MR: the pair loss under other names, with other steps, and with votes for every label."""

import math

import numpy as np
import pytest
from hypothesis import given

from boost_core.errors import ConfigError
from tests.boost_core.algorithms.single_label_runs import (
    Table,
    check_gang,
    check_oracle,
    check_pair_bounds,
    forest_arrays,
    outcomes_by_round,
    pair_weights,
    random_table,
    scores_by_round,
    small,
    strict_error,
    tables,
    train_alone,
)

VOTERS = [
    {"kind": "stump"},
    {"kind": "hamming_tree", "max_leaves": 4},
    {"kind": "hamming_tree", "max_leaves": 4, "votes": "factorised"},
    {"kind": "hamming_tree", "max_depth": 2},
]


# --- M2 -----------------------------------------------------------------------------------------------------


@small
@given(table=tables())
def test_m2_is_mm_with_doubled_scores(table: Table):
    one = check_oracle(table, {"name": "adaboost_m2"})
    other = train_alone(table, {"name": "adaboost_mm"})
    doubled = forest_arrays(other.forest) | forest_arrays_of_multiplier(2 * other.forest.multiplier)
    assert forest_arrays(one.forest) == doubled
    assert [r.edge for r in one.records] == [r.edge for r in other.records]
    assert [r.ln_loss for r in one.records] == [r.ln_loss for r in other.records]


def forest_arrays_of_multiplier(multiplier: np.ndarray) -> dict:
    return {"multiplier": (str(multiplier.dtype), multiplier.shape, multiplier.tobytes())}


@small
@given(table=tables())
def test_m2_weighs_by_its_pseudo_loss(table: Table):
    result = train_alone(table, {"name": "adaboost_m2"})
    check_pair_bounds(table, result, unit=0.5)
    for record in result.records:
        pseudo_loss = (1 - record.edge) / 2
        if record.alpha < 23:
            assert record.alpha == pytest.approx(math.log((1 - pseudo_loss) / pseudo_loss), abs=1e-5)


# --- Cost ---------------------------------------------------------------------------------------------------


@small
@given(table=tables())
def test_cost_with_half_the_edge_equals_the_oracle_and_keeps_its_bound(table: Table):
    result = check_oracle(table, {"name": "adaboost_cost", "step": "atanh_half"})
    scores = scores_by_round(table, result)
    for t, record in enumerate(result.records):
        before, after = (pair_weights(table, F).sum() for F in scores[t : t + 2])
        edge = record.edge
        assert record.alpha == pytest.approx(math.atanh(edge / 2), abs=1e-6)
        assert after / before <= (1 - edge**2 / 2) / math.sqrt(1 - edge**2 / 4) + 1e-6
        assert record.ln_loss == pytest.approx(math.log(after / table.n_rows), abs=(t + 1) * 1e-7)


# --- MR -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["atanh", "exact"])
@pytest.mark.parametrize("learner", VOTERS)
@small
@given(table=tables())
def test_mr_with_votes_equals_the_oracle(step: str, learner: dict, table: Table):
    check_oracle(table, {"name": "adaboost_mr", "outputs": "votes", "step": step, "weak_learner": learner})


@pytest.mark.parametrize("learner", [*VOTERS[:2], {"kind": "product"}])
@small
@given(table=tables())
def test_mr_with_votes_keeps_its_bound(learner: dict, table: Table):
    check_pair_bounds(table, train_alone(table, {"name": "adaboost_mr", "outputs": "votes", "weak_learner": learner}))


@small
@given(table=tables())
def test_mr_with_votes_and_the_exact_step_shrinks_by_its_factor(table: Table):
    result = train_alone(table, {"name": "adaboost_mr", "outputs": "votes", "step": "exact"})
    scores = scores_by_round(table, result)
    for t, (record, sigma) in enumerate(zip(result.records, outcomes_by_round(table, result), strict=True)):
        E, after = pair_weights(table, scores[t]), pair_weights(table, scores[t + 1]).sum()
        right, wrong, total = E[sigma == 1].sum(), E[sigma == -1].sum(), E.sum()
        if wrong > 0 and record.alpha < 11:
            assert after == pytest.approx(total - right - wrong + 2 * math.sqrt(right * wrong), abs=1e-6 * total)
        assert record.ln_loss == pytest.approx(math.log(after / table.n_rows), abs=(t + 1) * 1e-7)
        assert strict_error(table, scores[t + 1]) <= after / table.n_rows + 1e-9


def test_two_classes_make_ranking_votes_adaboost():
    """Votes (-v, v) move F1 - F0 by alpha v, as AdaBoost moves f."""
    for seed in range(4):
        table = random_table(seed, n_classes=2)
        stump = {"kind": "stump"}
        ranking = train_alone(table, {"name": "adaboost_mr", "outputs": "votes", "weak_learner": stump})
        binary = train_alone(table, {"name": "adaboost", "weak_learner": stump})
        assert [r.edge for r in ranking.records] == pytest.approx([r.edge for r in binary.records], abs=1e-6)
        assert [r.alpha for r in ranking.records] == pytest.approx([r.alpha for r in binary.records], abs=1e-5)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"name": "adaboost_mr", "outputs": "votes", "weak_learner": {"kind": "tree"}}, "hamming_tree, stump, product"),
        ({"name": "adaboost_mr", "weak_learner": {"kind": "stump"}}, "tree"),
        ({"name": "samme", "weak_learner": {"kind": "hamming_tree"}}, "tree"),
        (
            {"name": "adaboost_mm", "weak_learner": {"kind": "tree", "criterion": "gini"}},
            "adaboost_m1, samme, adaboost_mh",
        ),
    ],
)
def test_what_does_not_combine_is_refused_with_what_does(body: dict, named: str):
    with pytest.raises(ConfigError, match=f": {named}"):
        train_alone(random_table(0), body)


@pytest.mark.parametrize(
    "body",
    [
        {"name": "adaboost_m2"},
        {"name": "adaboost_cost", "step": "atanh_half"},
        *(
            {"name": "adaboost_mr", "outputs": "votes", "weak_learner": learner}
            for learner in [*VOTERS, {"kind": "product"}]
        ),
        {"name": "adaboost_mr", "outputs": "votes", "step": "exact"},
    ],
)
def test_a_gang_of_any_size_trains_the_same_forest(body: dict):
    check_gang(random_table(7), body)
