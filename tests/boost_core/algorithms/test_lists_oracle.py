"""Algorithms that keep lists in place of rows by classes, beside the oracle that keeps everything."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from boost_core import sparse_gains, sparse_growth, sparse_rule
from tests.boost_core.algorithms.single_label_runs import Table, check_gang, check_oracle, random_table, small, tables

BODIES: list[dict[str, Any]] = [
    {"name": "adaboost_m1"},
    {"name": "samme"},
    {"name": "adaboost_cost", "step": "atanh_half"},
    {"name": "multiclass_adaboost", "sampling": "resample"},
    {"name": "multiclass_adaboost", "sampling": "resample", "mass": "sum", "sample_rows": 30},
]
# what `lists` sets is the same for all examples
with_lists = settings(small, suppress_health_check=[*small.suppress_health_check, HealthCheck.function_scoped_fixture])


@pytest.fixture(autouse=True)
def lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists for any number of classes, few tables, and nodes that need a second search."""
    monkeypatch.setattr(sparse_rule, "SPARSE_CLASSES", 0)
    monkeypatch.setattr(sparse_gains, "MOST_HOT", 1)
    monkeypatch.setattr(sparse_growth, "FIRST_CLASSES", 1)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: "-".join(str(each) for each in body.values()))
@with_lists
@given(table=tables())
def test_lists_equal_the_oracle(body: dict[str, Any], table: Table):
    check_oracle(table, body, seed=3)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: "-".join(str(each) for each in body.values()))
def test_gangs_with_lists_train_one_model(body: dict[str, Any]):
    for seed in range(3):
        check_gang(random_table(seed, n_classes=5, noise=2.0), body, seed=seed)
