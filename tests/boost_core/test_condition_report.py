"""What a training reports of the weak-learning conditions: their naive twin, lists or a matrix, any gang."""

from dataclasses import astuple

import numpy as np
import pytest

from boost_core import sparse_gains, sparse_rule
from boost_core.algorithms.base import Gains
from boost_core.catalogue import ALGORITHMS, resolve_config
from boost_core.collective import Alone, Collective
from boost_core.condition_report import ConditionMeter
from boost_core.conditions import Conditions, as_figures, conditions
from boost_core.errors import ConfigError
from boost_core.fitted import Speech, one_tree
from boost_core.gain_matrix import GainMatrix
from boost_core.records import RoundRecord, Silent
from boost_core.team import Team
from boost_core.training import TrainingResult, train
from boost_core.tree import NODE_FIELDS, Tree
from tests.boost_core.algorithms.single_label_runs import (
    Table,
    pair_weights,
    random_table,
    scores_by_round,
    train_alone,
)
from workers.thread_group import ThreadGroup

ROUNDS = 5
BODIES = [
    {"name": name, "weak_learner": {"kind": "tree", "max_leaves": 3}}
    for name in sorted(ALGORITHMS)
    if "tree" in ALGORITHMS[name].weak_learners and name != "adaboost"
] + [{"name": "multiclass_adaboost", "sampling": "resample"}]


def run(table: Table, body: dict, collective: Collective | None = None, rows: list | None = None) -> TrainingResult:
    config = resolve_config({"algorithm": body, "rounds": ROUNDS, "conditions": True})
    with Team(1) as team:
        data = table.data(rows if rows is not None else [(0, table.n_rows)])
        return train(data, config, collective or Alone(), Silent(), team)


def measured(result: TrainingResult) -> list[Conditions | None]:
    return [record.conditions for record in result.records]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_exact_sums_give_the_figures_of_the_naive_form(seed: int, weighted: bool):
    random = np.random.default_rng(seed)
    n, K = 40, int(random.integers(2, 7))
    labels, leaf_of_row = random.integers(0, K, n).astype(np.int32), random.integers(0, 3, n).astype(np.int32)
    costs = random.integers(-50, 2**30, (n, K))
    costs[np.arange(n), labels] = costs.min(axis=1) - random.integers(0, 2, n) * 1000
    values = np.zeros((n, K + 3), np.int64 if weighted else np.int32)
    values[:, :K] = -costs
    matrix = GainMatrix(values, K, 0, int(np.abs(costs).sum()))
    answers = random.integers(0, K, (3, 1)).astype(np.int32)
    fitted = one_tree(Tree(np.empty((0, NODE_FIELDS), np.int64), answers, 0, leaf_of_row), Speech.LABEL)
    with Team(2) as team:
        meter = ConditionMeter(True, labels, Alone(), team)
        meter.note(fitted)
        found = meter.measure(None, Gains(matrix, np.zeros(1, np.int64), 0))  # type: ignore[arg-type]
    wanted = conditions(costs.astype(np.float64), labels, answers[leaf_of_row, 0])
    assert found is not None
    np.testing.assert_allclose(found.figures(), wanted.figures(), rtol=1e-6, atol=1e-7)


def test_the_figures_are_those_of_the_costs_at_each_rounds_scores():
    table = random_table(3, n_rows=45, n_classes=4)
    result = run(table, {"name": "adaboost_mm"})
    scores = scores_by_round(table, result)
    for t, record in enumerate(result.records):
        C = pair_weights(table, scores[t])
        C[np.arange(45), table.labels] = -C.sum(axis=1)
        wanted = conditions(C, table.labels, (scores[t + 1] - scores[t]).argmax(axis=1))
        assert record.conditions is not None
        np.testing.assert_allclose(record.conditions.figures(), wanted.figures(), atol=1e-6)
        assert record.conditions.mr == pytest.approx(record.edge, abs=1e-12)


def test_each_algorithms_own_edge_is_the_gamma_of_its_condition():
    table = random_table(5, n_rows=60, n_classes=4)
    own = {
        "adaboost_mm": "mr", "adaboost_m2": "mr", "adaboost_m1": "m1", "samme": "samme", "adaboost_mh": "mh",
        "adaboost_mm_fixed": "uniform", "os_exponential": "uniform", "os_zero_one": "uniform",
    }  # fmt: skip
    for name, condition in own.items():
        for record in run(table, {"name": name, "weak_learner": {"kind": "tree", "max_leaves": 6}}).records:
            assert getattr(record.conditions, condition) == pytest.approx(record.edge, abs=1e-7), name


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body["name"] + body.get("sampling", ""))
def test_gangs_report_the_same_and_the_model_does_not_change(body: dict):
    table = random_table(7, n_rows=50, n_classes=4)
    alone = run(table, body)
    assert len(measured(alone)) == len(alone.records) > 0
    assert None not in measured(alone)
    plain = train_alone(table, body, ROUNDS)
    assert plain.forest.payload.tolist() == alone.forest.payload.tolist()
    unmeasured = [record._replace(conditions=None, bytes_reduced=0) for record in alone.records]
    assert unmeasured == [record._replace(bytes_reduced=0) for record in plain.records]
    n = table.n_rows
    for dealt in ([[(30, n)], [(0, 30)]], [[(0, 9), (40, n)], [], [(9, 40)]]):
        for member in ThreadGroup(len(dealt)).run(lambda end, dealt=dealt: run(table, body, end, dealt[end.rank])):
            assert measured(member) == measured(alone)


@pytest.mark.parametrize(
    "body",
    [
        {"name": "adaboost_mm"},
        {"name": "adaboost_mm_fixed"},
        {"name": "samme"},
        {"name": "adaboost_m1"},
        {"name": "multiclass_adaboost", "sampling": "resample"},
    ],
    ids=lambda body: body["name"],
)
def test_lists_of_gains_give_the_figures_of_the_matrix(monkeypatch: pytest.MonkeyPatch, body: dict):
    table = random_table(8, n_rows=60, n_classes=5)
    dense = run(table, body)
    assert len(measured(dense)) > 1
    monkeypatch.setattr(sparse_rule, "SPARSE_CLASSES", 0)
    monkeypatch.setattr(sparse_gains, "MOST_HOT", 2)
    assert measured(run(table, body)) == measured(dense)


def test_records_and_arrays_keep_what_was_measured():
    found = Conditions(0.5, 0.25, None, 0.1, -0.5, -1.0)
    record = RoundRecord(1, 0.1, 0.2, 0.5, -0.7, 0.6, -0.5, None, 0.1, 0.2, None, 4, 80, conditions=found)
    assert record.to_dict()["conditions"] == vars(found)
    assert RoundRecord.from_dict(record.to_dict()) == record
    assert RoundRecord.from_dict(record._replace(conditions=None).to_dict()).conditions is None
    figures = as_figures([None, found])
    assert figures is not None
    assert [Conditions.from_figures(row) for row in figures] == [None, found]
    assert as_figures([None, None]) is None
    assert len(astuple(found)) == figures.shape[1]


@pytest.mark.parametrize("body", [{"name": "adaboost_mh"}, {"name": "gd_mcboost"}, {"name": "cd_mcboost"}])
def test_weak_learners_without_one_label_a_row_are_refused(body: dict):
    with pytest.raises(ConfigError, match=r"conditions: .*they go with the weak learner 'tree'"):
        resolve_config({"algorithm": body, "conditions": True})
