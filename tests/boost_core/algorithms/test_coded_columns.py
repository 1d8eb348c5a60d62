"""One-vs-all, all pairs and error-correcting output codes: columns are binary AdaBoosts, decoded together."""

import math
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boost_core import growth, team
from boost_core.algorithms.all_pairs import pairs_code
from boost_core.algorithms.ecoc import default_columns, random_code, twice_least_distance
from boost_core.decoding import Decoding, Rule
from boost_core.scores import Scores, predicted_classes
from tests.boost_core.algorithms import oracle_votes as oracle
from tests.boost_core.algorithms.small_runs import (
    Table,
    cases,
    config_for,
    cuts_by_round,
    facts,
    random_table,
    scores_by_round,
    tables,
    train_alone,
    train_gang,
)

ROUNDS = 5
UNIT = 2.0**-20
ALGORITHMS: dict[str, dict[str, Any]] = {
    "one-vs-all": {"name": "one_vs_all"},
    "all pairs": {"name": "all_pairs"},
    "all pairs, votes": {"name": "all_pairs", "decoding": "hamming"},
    "dense code": {"name": "ecoc", "columns": 7},
    "dense code, votes": {"name": "ecoc", "columns": 7, "decoding": "hamming"},
    "sparse code": {"name": "ecoc", "code": "sparse", "columns": 9},
}
LEARNERS = {"stump": {"kind": "stump"}, "tree": {"kind": "hamming_tree", "max_leaves": 3}}
CONFIGURATIONS = [(algorithm, learner) for algorithm in ALGORITHMS for learner in LEARNERS]


def algorithm_of(configuration: tuple[str, str]) -> dict[str, Any]:
    return {**ALGORITHMS[configuration[0]], "weak_learner": LEARNERS[configuration[1]]}


def code_of(algorithm: dict[str, Any], n_classes: int, seed: int = 0) -> np.ndarray:
    if algorithm["name"] == "one_vs_all":
        return 2 * np.eye(n_classes, dtype=np.int8) - 1
    if algorithm["name"] == "all_pairs":
        return pairs_code(n_classes)
    return random_code(algorithm.get("code", "dense"), n_classes, algorithm["columns"], seed)


def decoded(scores: np.ndarray, code: np.ndarray, rule: str) -> list[int]:
    """The classes by the formulas, in floats."""
    f = scores * UNIT
    if rule == "argmax":
        return np.argmax(f, axis=1).tolist()
    signs = np.where(f >= 0, 1, -1)
    found = []
    for row, sign in zip(f, signs, strict=True):
        if rule == "loss":
            distances = np.exp(-code * row).sum(axis=1)
            distances = np.round(distances / distances.min(), 9)
        else:
            distances = (1 - code * sign).sum(axis=1) / 2
        found.append(int(np.argmin(distances)))
    return found


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=" ".join)
@cases
@given(data=st.data())
def test_every_round_equals_the_oracle(configuration: tuple[str, str], data: st.DataObject):
    table = data.draw(tables((2, 4)))
    algorithm = algorithm_of(configuration)
    result = train_alone(table, config_for(algorithm, ROUNDS))
    code = code_of(algorithm, table.n_classes)
    signs = code[table.labels].astype(int).tolist()
    rows = np.abs(np.array(signs)).sum(axis=0)
    initial = [[1.0 / max(int(m), 1) for m in rows]] * len(signs)
    worth, leaves = (oracle.factorised, 2) if configuration[1] == "stump" else (oracle.free, 3)
    made, codes = table.binned
    grid = oracle.Grid(codes.T.tolist(), made.n_thresholds.tolist())
    wanted = oracle.boost_columns(grid, signs, initial, lambda d, g: oracle.grow(d, g, worth, leaves), ROUNDS)

    assert len(result.records) == len(wanted)
    rule = "argmax" if algorithm["name"] == "one_vs_all" else algorithm.get("decoding", "loss")
    assert result.forest.decoding.rule == rule
    scores = scores_by_round(result.forest, table.X)
    for number, round_ in enumerate(wanted):
        assert cuts_by_round(result.forest)[number] == round_.cuts
        assert scores[number + 1].tolist() == round_.scores
        record = result.records[number]
        found = predicted_classes(scores[number + 1], result.forest.decoding)
        assert found.tolist() == decoded(scores[number + 1], code, rule)
        assert record.train_error == np.mean(found != table.labels)
        check_loss(record, np.array(signs), scores[number + 1] * UNIT)


def check_loss(record: Any, signs: np.ndarray, F: np.ndarray) -> None:
    """The mean over the columns that have rows of mean exp(-M f); its bound, and that of the error."""
    rows = np.abs(signs).sum(axis=0)
    sums = (np.abs(signs) * np.exp(-signs * F)).sum(axis=0)
    ln_loss = math.log((sums[rows > 0] / rows[rows > 0]).mean())
    if np.abs(F).max() < 11.9:
        assert record.ln_loss == pytest.approx(ln_loss, abs=1e-6)
        assert record.ln_loss == pytest.approx(record.ln_bound, abs=1e-6)
    if record.error_bound is not None and np.abs(F).max() < 11.9:
        assert record.strict_train_error <= record.error_bound * (1 + 1e-6)


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=" ".join)
@pytest.mark.parametrize("members", [2, 3, 4])
def test_a_gang_gives_the_same_bits(configuration: tuple[str, str], members: int):
    table, config = random_table(4, 4), config_for(algorithm_of(configuration), 4)
    alone = facts(train_alone(table, config))
    for result in train_gang(table, config, members):
        assert facts(result) == alone


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=" ".join)
def test_threads_give_the_same_bits(configuration: tuple[str, str], monkeypatch: pytest.MonkeyPatch):
    table, config = random_table(4, 4), config_for(algorithm_of(configuration), 4)
    alone = facts(train_alone(table, config))
    monkeypatch.setattr(growth, "WORTH_THREADS", -1)
    monkeypatch.setattr(team, "INLINE_WORK", -1)
    assert facts(train_alone(table, config, threads=3)) == alone


# --- equivalences -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", list(LEARNERS))
@pytest.mark.parametrize("seed", range(3))
def test_columns_of_one_vs_all_are_binary_runs(learner: str, seed: int):
    """Each column has the scores of a run of adaboost on its labels, to the bit, until that ends."""
    table = random_table(seed, 3)
    result = train_alone(table, config_for({"name": "one_vs_all", "weak_learner": LEARNERS[learner]}, 12))
    together = scores_by_round(result.forest, table.X)
    for column in range(3):
        single = Table(table.X, (table.labels == column).astype(np.int32), 2)
        config = config_for({"name": "adaboost", "weak_learner": LEARNERS[learner]}, 12)
        alone = scores_by_round(train_alone(single, config).forest, table.X)
        for number in range(len(together)):
            assert (together[number][:, column] == alone[min(number, len(alone) - 1)][:, 0]).all()


def test_a_finished_column_waits_for_the_others():
    table = random_table(1, 3, n_rows=60)
    easy = Table(np.column_stack([table.X, table.labels == 1]), table.labels, 3)
    result = train_alone(easy, config_for({"name": "one_vs_all"}, 6))
    assert len(result.records) == 6
    multipliers = result.forest.multiplier.reshape(6, 3)
    assert multipliers[:, 1].tolist() == [12 << 20, 0, 0, 0, 0, 0]
    assert (multipliers[:, [0, 2]] > 0).all()


@pytest.mark.parametrize("weights", ["uniform", "asymmetric", "balanced"])
@pytest.mark.parametrize("seed", range(3))
def test_mh_with_a_step_a_label_is_one_vs_all_with_its_weights(weights: str, seed: int):
    table = random_table(seed, 4)
    learner = {"kind": "independent_stumps", "alpha": "per_label"}
    mh = train_alone(table, config_for({"name": "adaboost_mh", "init_weights": weights, "weak_learner": learner}, 8))
    ova = train_alone(table, config_for({"name": "one_vs_all", "init_weights": weights}, 8))
    assert cuts_by_round(mh.forest) == cuts_by_round(ova.forest)
    if weights == "uniform":  # 1/n and 1/(nK) round to other gains
        np.testing.assert_allclose(mh.forest.multiplier, ova.forest.multiplier, atol=2)
    else:
        assert facts(mh) == facts(ova)


def test_all_pairs_columns_see_their_two_classes_only():
    """A column has the scores, on the rows of its classes, of a binary run on those rows alone."""
    table = random_table(5, 3, n_rows=45, missing=0.0)
    result = train_alone(table, config_for({"name": "all_pairs"}, 6))
    together = scores_by_round(result.forest, table.X)[-1]
    for column, (first, second) in enumerate([(0, 1), (0, 2), (1, 2)]):
        own = np.flatnonzero((table.labels == first) | (table.labels == second))
        single = Table(table.X[own], (table.labels[own] == first).astype(np.int32), 2)
        config = config_for({"name": "adaboost", "weak_learner": {"kind": "stump"}}, 6)
        alone = scores_by_round(train_alone(single, config).forest, single.X)
        assert (together[own, column] == alone[-1][:, 0]).all()


# --- codes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("n_classes", [2, 3, 5, 26])
def test_random_codes(kind: str, n_classes: int):
    n_columns = default_columns(kind, n_classes)
    assert n_columns == math.ceil((10 if kind == "dense" else 15) * math.log2(n_classes) - 1e-9)
    code = random_code(kind, n_classes, n_columns, seed=3)
    assert code.shape == (n_classes, n_columns)
    assert (code.max(axis=0) == 1).all()
    assert (code.min(axis=0) == -1).all()
    assert set(np.unique(code)) <= ({-1, 1} if kind == "dense" else {-1, 0, 1})
    assert (code == random_code(kind, n_classes, n_columns, seed=3)).all()
    assert n_classes == 2 or (code != random_code(kind, n_classes, n_columns, seed=4)).any()
    distances = [(1 - code[a].astype(int) * code[b]).sum() for a in range(n_classes) for b in range(a)]
    assert twice_least_distance(code) == min(distances) > 0
    if n_classes == 26:
        assert abs(np.mean(code == 0) - (0.5 if kind == "sparse" else 0.0)) < 0.1
        assert abs(np.mean(code)) < 0.1


@pytest.mark.parametrize("rule", [Rule.LOSS, Rule.HAMMING])
def test_decoding_of_random_scores(rule: Rule):
    random = np.random.default_rng(1)
    code = random.integers(-1, 2, (6, 10)).astype(np.int8)
    sizes = random.choice([0.5, 3.0, 20.0], (200, 1))
    scores = np.round(random.normal(size=(200, 10)) * sizes * 2**20).astype(np.int64)
    found = predicted_classes(scores, Decoding(rule, code))
    assert found.tolist() == decoded(scores, code, str(rule))


def test_decoding_ties_go_to_the_smallest_class():
    code = np.array([[-1, 1], [1, 1], [1, 1]], np.int8)
    assert predicted_classes(np.array([[5, 0]], np.int64), Decoding(Rule.HAMMING, code)).tolist() == [1]
    assert predicted_classes(np.array([[0, 0]], np.int64), Decoding(Rule.LOSS, code)).tolist() == [0]


def test_too_many_classes_for_all_pairs_are_refused():
    from boost_core.algorithms.all_pairs import AllPairs

    assert AllPairs.refusal(64) is None
    assert "65" in (AllPairs.refusal(65) or "")


@pytest.mark.parametrize("name", ["dense code", "all pairs"])
def test_scores_of_a_code_are_not_watched_by_labels(name: str):
    """A label has no column there: of a constant model, which speaks for all columns, its own score would be sought
    behind the row's."""
    table = Table(np.zeros((30, 2)), (np.arange(30) % 5).astype(np.int32), 5)
    with mock.patch.object(Scores, "watch", autospec=True, side_effect=Scores.watch) as watch:
        train_alone(table, config_for({**ALGORITHMS[name], "weak_learner": LEARNERS["stump"]}, 2))
    assert [call.args[1] for call in watch.call_args_list] == [None]
