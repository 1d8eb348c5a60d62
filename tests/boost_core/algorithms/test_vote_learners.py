"""AdaBoost and AdaBoost.MH with every weak learner: bit-equal to the oracle, loss identities, bounds, equivalences."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boost_core import growth, team
from boost_core.algorithms.adaboost_mh import initial_weights
from boost_core.records import StopReason
from boost_core.training import TrainingResult
from tests.boost_core.algorithms import oracle_votes as oracle
from tests.boost_core.algorithms.oracle_single_label import RankingVotesRule
from tests.boost_core.algorithms.small_runs import (
    Table,
    cases,
    config_for,
    cuts_by_round,
    facts,
    ln_slack,
    random_table,
    scores_by_round,
    tables,
    train_alone,
    train_gang,
)

ROUNDS = 6
UNIT = 2.0**-20
LEARNERS: dict[str, dict[str, Any]] = {
    "product": {"kind": "product", "factors": 2, "loop": True},
    "product once": {"kind": "product", "factors": 3, "loop": False},
    "stumps per label": {"kind": "independent_stumps", "alpha": "per_label"},
    "stumps shared": {"kind": "independent_stumps", "alpha": "shared"},
    "real tree": {"kind": "real_tree", "max_leaves": 4},
    "tree": {"kind": "tree", "max_leaves": 4},
    "gini tree": {"kind": "tree", "max_leaves": 4, "criterion": "gini"},
    "entropy tree": {"kind": "tree", "max_leaves": 4, "criterion": "entropy"},
}
IMPURE = ("gini tree", "entropy tree")
BINARY = ("product", "product once", "real tree", "tree")
CONFIGURATIONS = [
    *(
        (algorithm, learner)
        for algorithm in ("asymmetric", "uniform", "balanced")
        for learner in LEARNERS
        if learner not in IMPURE or algorithm == "asymmetric"
    ),
    *(("adaboost", learner) for learner in BINARY),
]


def algorithm_of(configuration: tuple[str, str]) -> dict[str, Any]:
    name, learner = configuration
    chosen = {"name": "adaboost"} if name == "adaboost" else {"name": "adaboost_mh", "init_weights": name}
    return {**chosen, "weak_learner": LEARNERS[learner]}


def grid_of(table: Table) -> oracle.Grid:
    made, codes = table.binned
    return oracle.Grid(codes.T.tolist(), made.n_thresholds.tolist())


def pairs_of(table: Table, name: str) -> tuple[list[list[int]], list[list[float]]]:
    """Y and W1, [n_rows][n_columns]."""
    n = table.labels.shape[0]
    if name == "adaboost":
        return [[1 if label == 1 else -1] for label in table.labels], [[1.0 / n]] * n
    counts = np.bincount(table.labels, minlength=table.n_classes)
    W = initial_weights(name, counts)
    signs = [[1 if label == c else -1 for c in range(table.n_classes)] for label in table.labels]
    weights = [[float(W.positive[c] if s > 0 else W.negative[c]) for c, s in enumerate(row)] for row in signs]
    return signs, weights


def expected(table: Table, configuration: tuple[str, str]) -> list[oracle.Round]:
    name, learner = configuration
    grid, (signs, initial) = grid_of(table), pairs_of(table, name)

    def stump_each(grid: oracle.Grid, gains: Any) -> oracle.Learnt:
        each = [oracle.grow(grid, [[row[c]] for row in gains], oracle.factorised, 2) for c in range(len(gains[0]))]
        says = [[stump.says[i][0] for stump in each] for i in range(len(gains))]
        return oracle.Learnt(sum(stump.value for stump in each), says, [cut for stump in each for cut in stump.cuts])

    if learner == "real tree":
        return oracle.boost_odds(grid, signs, initial, 4, ROUNDS)
    if learner == "stumps per label":
        return oracle.boost_columns(grid, signs, initial, stump_each, ROUNDS)
    if learner == "tree" and name == "adaboost":
        return oracle.boost_votes(grid, signs, initial, lambda d, g: oracle.grow(d, g, oracle.free, 4), ROUNDS)
    learn = {
        "product": lambda d, g: oracle.product(d, g, 2, 20),
        "product once": lambda d, g: oracle.product(d, g, 3, 1),
        "stumps shared": stump_each,
        "tree": lambda d, g: oracle.single_label(d, g, 4),
        "gini tree": lambda d, g: oracle.purest(d, g, 4, gini=True),
        "entropy tree": lambda d, g: oracle.purest(d, g, 4, gini=False),
    }[learner]
    return oracle.boost_votes(grid, signs, initial, learn, ROUNDS)


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=" ".join)
@cases
@given(data=st.data())
def test_every_round_equals_the_oracle(configuration: tuple[str, str], data: st.DataObject):
    table = data.draw(tables((2,) if configuration[0] == "adaboost" else (2, 3, 5)))
    if configuration[0] == "balanced" and table.labels.shape[0] < table.n_classes:
        table = random_table(1, 3)
    result = train_alone(table, config_for(algorithm_of(configuration), ROUNDS))
    wanted = expected(table, configuration)
    assert len(result.records) == len(wanted)
    for number, round_ in enumerate(wanted):
        assert cuts_by_round(result.forest)[number] == round_.cuts
        assert scores_by_round(result.forest, table.X)[number + 1].tolist() == round_.scores
        if not math.isnan(round_.edge):
            assert result.records[number].edge == round_.edge
    check_theory(table, configuration, result)


@dataclass(frozen=True)
class Told:
    """What a naive rule asks of a tree, of a product."""

    says: list[list[int]]

    def said(self) -> dict[int, list[int]]:
        return dict(enumerate(self.says))


@pytest.mark.parametrize("step", ["atanh", "exact"])
@cases
@given(table=tables((2, 3, 5)))
def test_ranking_with_products_equals_the_oracle(step: str, table: Table):
    body = {"name": "adaboost_mr", "outputs": "votes", "step": step, "weak_learner": LEARNERS["product"]}
    result = train_alone(table, config_for(body, ROUNDS))
    rule = RankingVotesRule(table.labels.tolist(), table.n_classes, body)
    F = [[0] * table.n_classes for _ in table.labels]
    for record, scores in zip(result.records, scores_by_round(result.forest, table.X)[1:], strict=True):
        gains = rule.gains(F)
        learnt = oracle.product(grid_of(table), gains.values, 2, 20)
        told: Any = Told(learnt.says)
        wanted = rule.step(*rule.outcomes(told, gains), gains.total)
        rule.add(F, told, wanted.units)
        assert record.edge == wanted.edge
        assert record.alpha == wanted.alpha
        assert scores.tolist() == F


def check_step(signs: np.ndarray, initial: np.ndarray, before: np.ndarray, after: np.ndarray, record: Any) -> None:
    """The edge and the step of one round by their formulas, at the engine's own scores."""
    W, H = initial * np.exp(-signs * before), (after - before) / record.alpha
    edge = (W * signs * H).sum() / W.sum()
    rounding = signs.size * 2.0**-28
    assert (np.abs(H) == 1).all()
    assert record.edge == pytest.approx(edge, abs=rounding)
    assert record.alpha == pytest.approx(math.atanh(edge), abs=2.0**-20 + 2 * rounding / (1 - edge**2))


def check_theory(table: Table, configuration: tuple[str, str], result: TrainingResult) -> None:
    """The loss by its formula, its identity where no step is capped, and the error bounds, at every round."""
    signs, initial = (np.array(each) for each in pairs_of(table, configuration[0]))
    slack, capped, before = 0.0, False, np.zeros(signs.shape)
    for record, scores in zip(result.records, scores_by_round(result.forest, table.X)[1:], strict=True):
        F = scores * UNIT
        ln_loss = math.log((initial * np.exp(-signs * F)).sum())
        slack += ln_slack(record, signs.size)
        capped = capped or bool((np.abs(F) >= 11.9).any()) or record.edge > 1 - 1e-6
        assert record.ln_loss <= record.ln_bound + slack or capped
        if not capped:
            assert abs(record.ln_loss - ln_loss) <= slack
            assert abs(record.ln_loss - record.ln_bound) <= slack
            if configuration[1] not in ("stumps per label", "real tree"):
                check_step(signs, initial, before, F, record)
            hamming = (initial * (F * signs <= 0)).sum()
            assert hamming <= math.exp(record.ln_bound + slack)
        assert record.error_bound is not None
        assert record.train_error <= record.strict_train_error
        before = F


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=" ".join)
def test_the_identity_holds_over_many_rounds(configuration: tuple[str, str]):
    table = random_table(3, 2 if configuration[0] == "adaboost" else 3, n_rows=60)
    result = train_alone(table, config_for(algorithm_of(configuration), 60))
    assert result.records
    for record in result.records:
        assert abs(record.ln_loss - record.ln_bound) <= record.round * 1e-7
    check_theory(table, configuration, result)


@pytest.mark.parametrize("members", [2, 3, 4])
@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=" ".join)
def test_a_gang_gives_the_same_bits(configuration: tuple[str, str], members: int):
    table = random_table(7, 2 if configuration[0] == "adaboost" else 3)
    config = config_for(algorithm_of(configuration), 5)
    alone = facts(train_alone(table, config))
    for result in train_gang(table, config, members):
        assert facts(result) == alone


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=" ".join)
def test_threads_give_the_same_bits(configuration: tuple[str, str], monkeypatch: pytest.MonkeyPatch):
    table, config = (
        random_table(7, 2 if configuration[0] == "adaboost" else 3),
        config_for(algorithm_of(configuration), 4),
    )
    alone = facts(train_alone(table, config))
    monkeypatch.setattr(growth, "WORTH_THREADS", -1)
    monkeypatch.setattr(team, "INLINE_WORK", -1)
    assert facts(train_alone(table, config, threads=3)) == alone


# --- what the formulas say of a round -----------------------------------------------------------------------------


def test_steps_per_label_follow_the_formula():
    """Z = sum_l sqrt(W_l^2 - g_l^2), alpha_l = 0.5 ln((W_l + g_l) / (W_l - g_l)), at the engine's own scores."""
    table = random_table(5, 3, n_rows=50)
    result = train_alone(table, config_for(algorithm_of(("asymmetric", "stumps per label")), 10))
    signs, initial = (np.array(each) for each in pairs_of(table, "asymmetric"))
    scores = scores_by_round(result.forest, table.X)
    for number, record in enumerate(result.records):
        W = initial * np.exp(-signs * scores[number] * UNIT)
        h = np.sign(scores[number + 1] - scores[number])
        g, mass = (W * signs * h).sum(axis=0), W.sum(axis=0)
        alphas = np.abs(scores[number + 1] - scores[number]).max(axis=0) * UNIT
        np.testing.assert_allclose(alphas, 0.5 * np.log((mass + g) / (mass - g)), atol=1e-6)
        before = result.records[number - 1].ln_bound if number else 0.0
        Z = np.sqrt(mass**2 - g**2).sum() / mass.sum()
        assert record.ln_bound - before == pytest.approx(math.log(Z), abs=1e-7)
        assert math.sqrt(1 - (g.sum() / mass.sum()) ** 2) >= Z - 1e-12
        assert record.edge == pytest.approx(g.sum() / mass.sum(), abs=1e-7)


def test_unsmoothed_odds_leave_two_roots_of_the_weights():
    """Z = 2 sum_leaves sum_l sqrt(W+ W-) where no sum is 0."""
    random = np.random.default_rng(0)
    X = random.integers(0, 2, (200, 2)).astype(np.float64)
    table = Table(X, random.integers(0, 3, 200).astype(np.int32), 3)
    learner = {"kind": "real_tree", "max_leaves": 3, "smoothing": 0.0}
    result = train_alone(table, config_for({"name": "adaboost_mh", "weak_learner": learner}, 5))
    assert len(result.records) == 5
    before = 0.0
    for record in result.records:
        assert record.ln_bound - before == pytest.approx(math.log(1 - record.edge), abs=1e-7)
        assert record.alpha == 1.0
        before = record.ln_bound


def test_smoothing_shortens_the_leaf_values():
    table = random_table(2, 3)
    learners = [{"kind": "real_tree", "smoothing": smoothing} for smoothing in (0.0, 1.0)]
    plain, smooth = (
        train_alone(table, config_for({"name": "adaboost_mh", "weak_learner": learner}, 1)) for learner in learners
    )
    assert np.abs(smooth.forest.payload).max() < np.abs(plain.forest.payload).max()
    assert np.abs(plain.forest.payload).max() <= 12 << 20


# --- equivalences -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_two_classes_are_binary_adaboost(seed: int):
    """Products and single-label trees at K = 2: F(:,1) = f and F(:,0) = -f, edges equal."""
    table = random_table(seed, 2)
    for learner in ("product", "tree", "real tree"):
        one = train_alone(table, config_for(algorithm_of(("adaboost", learner)), 8))
        two = train_alone(table, config_for(algorithm_of(("uniform", learner)), 8))
        assert [r.edge for r in one.records] == pytest.approx([r.edge for r in two.records], abs=1e-9)
        if learner == "real tree":
            continue  # its smoothing is per label, half as much here
        scores = [scores_by_round(result.forest, table.X) for result in (one, two)]
        for single, pair in zip(*scores, strict=True):
            assert (pair[:, 1] == single[:, 0]).all()
            assert (pair[:, 0] == -single[:, 0]).all()


@pytest.mark.parametrize("seed", range(4))
def test_a_product_is_worth_at_least_its_first_stump(seed: int):
    table = random_table(seed, 4)
    edges = [
        train_alone(table, config_for({"name": "adaboost_mh", "weak_learner": learner}, 1)).records[0].edge
        for learner in ({"kind": "stump"}, LEARNERS["product"], {"kind": "product", "factors": 4})
    ]
    assert edges[0] <= edges[1]
    assert edges[0] <= edges[2]


def test_a_product_learns_exclusive_or():
    """Stumps see nothing in it, and so does the first factor: any step away from a tie starts the pair."""
    X = np.array([[a, b] for a in (0.0, 1.0) for b in (0.0, 1.0)] * 5 + [[0.0, 0.0]])
    labels = (X[:, 0] != X[:, 1]).astype(np.int32)
    result = train_alone(Table(X, labels, 2), config_for(algorithm_of(("adaboost", "product")), 3))
    assert result.stop_reason == StopReason.EDGE_ONE
    assert result.records[-1].train_error == 0


def test_shared_steps_are_no_better_than_steps_per_label():
    """Z of the shared step is sqrt(1 - (sum g)^2), at least sum sqrt(W_l^2 - g_l^2), for the same stumps."""
    table = random_table(6, 4)
    shared, apart = (
        train_alone(table, config_for(algorithm_of(("asymmetric", learner)), 1)).records[0]
        for learner in ("stumps shared", "stumps per label")
    )
    assert shared.edge == pytest.approx(apart.edge, abs=1e-8)
    assert apart.ln_bound <= shared.ln_bound + 1e-8


def test_perfect_learners_stop():
    labels = np.repeat(np.arange(2, dtype=np.int32), 15)
    table = Table(np.column_stack([np.arange(30.0), labels]), labels, 2)
    for configuration in CONFIGURATIONS:
        result = train_alone(table, config_for(algorithm_of(configuration), 20))
        assert result.stop_reason == StopReason.EDGE_ONE, configuration
        assert result.records[-1].train_error == result.records[-1].strict_train_error == 0
        assert len(result.records) == 1


def test_columns_that_say_nothing_change_nothing():
    table = random_table(3, 3)
    more = replace(table, X=np.column_stack([table.X, np.full(40, 2.0), table.X]))
    for configuration in CONFIGURATIONS[:6]:
        config = config_for(algorithm_of(configuration), 5)
        assert facts(train_alone(table, config)) == facts(train_alone(more, config))
