"""Multi-label data: AdaBoost.MH and MR against the formulas in float64 at every round, and sets of one label each."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from boost_core.errors import ConfigError
from boost_core.jit import JIT_DISABLED
from boost_core.label_sets import label_mass
from boost_core.training_data import TrainingData
from tests.boost_core.algorithms.single_label_runs import Table, random_table
from tests.boost_core.test_row_weights import arrays, data_of, run, scores_of

N_LABELS = 3  # with the count of rows a gain matrix of one lane, as in the other tests
INIT = ["asymmetric", "uniform", "balanced"]
LEARNERS: list[dict[str, Any]] = [
    {"kind": "hamming_tree", "max_leaves": 3},
    {"kind": "stump"},
    {"kind": "product"},
    {"kind": "independent_stumps"},
    {"kind": "independent_stumps", "alpha": "shared"},
    {"kind": "real_tree", "max_leaves": 3},
]


# what compiles kernels for int64 gains runs without the JIT only (test_processors.py)
WEIGHTED = [False, True] if JIT_DISABLED else [False]


def with_sets(table: Table, sets: np.ndarray, copies: np.ndarray | None = None) -> TrainingData:
    data = table.data([(0, table.n_rows)])
    shard = replace(data.train, labels=np.zeros(table.n_rows, np.int32), sets=sets, copies=copies)
    n_rows = table.n_rows if copies is None else int(copies.sum())
    return replace(
        data, train=shard, valid=shard, n_valid=n_rows, class_counts=label_mass(sets, copies), set_rows=n_rows
    )


def random_sets(seed: int, n_rows: int = 30) -> tuple[Table, np.ndarray]:
    """Every label depends on the features with noise; rows without labels and with all of them are there."""
    table, random = random_table(seed, n_rows, N_LABELS), np.random.default_rng(seed + 1)
    signal = table.codes.T @ random.normal(size=(3, N_LABELS)) + random.normal(size=(n_rows, N_LABELS))
    sets = (signal > np.median(signal, axis=0)).astype(np.uint8)
    sets[0], sets[1] = 0, 1
    return table, sets


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: " ".join(map(str, learner.values())))
@pytest.mark.parametrize("init", INIT)
def test_sets_of_one_label_are_single_label_data(init: str, learner: dict[str, Any]):
    table = random_table(11, 30)
    sets = (np.arange(3) == table.labels[:, None]).astype(np.uint8)
    body = {"name": "adaboost_mh", "init_weights": init, "weak_learner": learner}
    several, single = run(with_sets(table, sets), body), run(data_of(table), body)
    assert single.forest.n_rounds > 0
    assert arrays(several.forest) == arrays(single.forest)
    for ours, theirs in zip(several.records, single.records, strict=True):
        assert (ours.edge, ours.alpha, ours.ln_loss, ours.ln_bound) == (
            theirs.edge, theirs.alpha, theirs.ln_loss, theirs.ln_bound,
        )  # fmt: skip


def initial_weights(init: str, sets: np.ndarray, share: np.ndarray) -> np.ndarray:
    """W1 by the formulas, for rows that hold `share` of the mass each."""
    K, p = sets.shape[1], sets.sum(axis=1)[:, None]
    if init == "uniform":
        return np.repeat(share[:, None] / K, K, axis=1)
    if init == "balanced":
        own = (share[:, None] * sets).sum(axis=0)
        return np.where(sets == 1, 1 / (2 * K * own), 1 / (2 * K * (1 - own))) * share[:, None]
    safe = np.clip(p, 1, K - 1)
    mixed = np.where(sets == 1, 1 / (2 * safe), 1 / (2 * (K - safe)))
    return np.where((p > 0) & (p < K), mixed, 1 / K) * share[:, None]


@pytest.mark.parametrize("weighted", WEIGHTED)
@pytest.mark.parametrize("init", INIT)
def test_hamming_loss_and_bound_at_every_round(init: str, weighted: bool):
    table, sets = random_sets(21)
    copies = np.random.default_rng(4).integers(1, 9, table.n_rows) if weighted else None
    share = np.full(table.n_rows, 1 / table.n_rows) if copies is None else copies / copies.sum()
    W1, Y = initial_weights(init, sets, share), 2.0 * sets - 1
    assert W1.sum() == pytest.approx(1)
    for learner in (LEARNERS[0], LEARNERS[3], LEARNERS[5]):
        body = {"name": "adaboost_mh", "init_weights": init, "weak_learner": learner}
        for rounds in range(1, 4):
            result = run(with_sets(table, sets, copies), body, rounds)
            F, record = column_scores(result.forest, table), result.records[-1]
            loss = (W1 * np.exp(-Y * F)).sum()
            assert record.ln_loss == pytest.approx(math.log(loss), abs=1e-6)
            assert (W1 * (Y * F <= 0)).sum() <= loss <= record.bound * (1 + 1e-6)
            wrong = (share[:, None] * ((F > 0) != (sets == 1))).sum() / N_LABELS
            strict = (share[:, None] * (Y * F <= 0)).sum() / N_LABELS
            assert record.train_error == pytest.approx(wrong) == record.valid_error
            assert record.strict_train_error == pytest.approx(strict)
            assert record.error_bound is not None
            assert strict <= record.error_bound == pytest.approx((share[:, None] / N_LABELS / W1).max() * record.bound)


def column_scores(forest: Any, table: Table) -> np.ndarray:
    """Scores also of trees that speak for one column."""
    if (forest.column < 0).all():
        return scores_of(forest, table)
    F = np.zeros((table.n_rows, forest.n_columns))
    for t in range(forest.n_trees):
        nodes, leaves = slice(*forest.node_start[t : t + 2]), slice(*forest.leaf_start[t : t + 2])
        one = {
            name: value[nodes]
            for name, value in vars(forest).items()
            if name.startswith("node_") and name != "node_start"
        }
        starts = {
            "node_start": np.array([0, nodes.stop - nodes.start]),
            "leaf_start": np.array([0, leaves.stop - leaves.start]),
        }
        payload, ends = forest.payload[leaves], {"multiplier": forest.multiplier[t : t + 1], "column": np.array([-1])}
        alone = replace(forest, payload=payload, n_columns=1, **one, **starts, **ends)
        F[:, forest.column[t]] += scores_of(alone, table)[:, 0]
    return F


@pytest.mark.parametrize("weighted", WEIGHTED)
@pytest.mark.parametrize("learner", LEARNERS[:3], ids=lambda learner: learner["kind"])
def test_ranking_loss_and_bound_at_every_round(learner: dict[str, Any], weighted: bool):
    table, sets = random_sets(33)
    copies = np.random.default_rng(4).integers(1, 9, table.n_rows) if weighted else np.ones(table.n_rows, np.int64)
    ranked = [i for i in range(table.n_rows) if 0 < sets[i].sum() < N_LABELS]
    assert len(ranked) < table.n_rows
    body = {"name": "adaboost_mr", "outputs": "votes", "weak_learner": learner}
    product = 1.0
    for rounds in range(1, 4):
        result = run(with_sets(table, sets, copies if weighted else None), body, rounds)
        F, record = scores_of(result.forest, table), result.records[-1]
        gaps = [np.subtract.outer(F[i][sets[i] == 1], F[i][sets[i] == 0]) for i in ranked]
        share = copies[ranked] / copies[ranked].sum()
        loss = sum(s * np.exp(-gap).mean() for s, gap in zip(share, gaps, strict=True))
        product *= math.sqrt(1 - record.edge**2)
        assert record.ln_loss == pytest.approx(math.log(loss), abs=1e-6)
        assert record.loss <= product * (1 + 1e-6)
        assert record.bound == pytest.approx(product, rel=1e-6)
        strict = sum(s * (gap <= 0).mean() for s, gap in zip(share, gaps, strict=True))
        plain = sum(s * ((gap < 0) + 0.5 * (gap == 0)).mean() for s, gap in zip(share, gaps, strict=True))
        assert record.strict_train_error == pytest.approx(strict, abs=1e-9)
        assert record.train_error == pytest.approx(plain, abs=1e-9)
        assert record.valid_error == record.train_error
        assert strict <= loss


def test_weights_are_copies_of_sets_too():
    table, sets = random_sets(5)
    copies = np.random.default_rng(1).integers(1, 4, table.n_rows)
    again = replace(table, codes=np.repeat(table.codes, copies, axis=1), labels=np.repeat(table.labels, copies))
    for body in (
        {"name": "adaboost_mh", "weak_learner": {"kind": "independent_stumps"}},
        {"name": "adaboost_mr", "outputs": "votes", "weak_learner": {"kind": "stump"}},
    ):
        weighted = run(with_sets(table, sets, copies), body)
        repeated = run(with_sets(again, np.repeat(sets, copies, axis=0)), body)
        assert arrays(weighted.forest) == arrays(repeated.forest)
        assert [record.ln_loss for record in weighted.records] == [record.ln_loss for record in repeated.records]


@pytest.mark.parametrize(
    ("body", "place", "words"),
    [
        ({"name": "samme"}, ("algorithm", "name"), "adaboost_mh with hamming_tree"),
        (
            {"name": "adaboost_mh", "weak_learner": {"kind": "tree"}},
            ("algorithm", "weak_learner", "kind"),
            "adaboost_mr",
        ),
        ({"name": "adaboost_mr"}, ("algorithm", "outputs"), "votes"),
        (
            {"name": "adaboost_mr", "outputs": "votes", "step": "exact", "weak_learner": {"kind": "stump"}},
            ("algorithm", "step"),
            "atanh",
        ),
        ({"name": "adaboost_mh", "class_weight": "balanced"}, ("algorithm", "class_weight"), "null"),
    ],
)
def test_what_does_not_combine_is_refused_by_name(body: dict[str, Any], place: tuple[str, ...], words: str):
    table, sets = random_sets(1)
    with pytest.raises(ConfigError) as caught:
        run(with_sets(table, sets), body)
    [(loc, message)] = caught.value.problems
    assert loc == place
    assert words in message


def test_scores_of_0_predict_no_label_and_are_strict_errors():
    from boost_core.label_sets import HammingJudge, RankingJudge
    from boost_core.scores import zero_scores
    from boost_core.team import Team

    table, sets = random_sets(2)
    shard, scores = with_sets(table, sets).train, zero_scores(table.n_rows, N_LABELS)
    with Team(1) as team:
        assert HammingJudge().count(scores, shard, team) == (int(sets.sum()), sets.size)
        ranking = RankingJudge(1024.0)
        whole = ranking.whole(shard)
        assert ranking.count(scores, shard, team) == (whole // 2, whole)
