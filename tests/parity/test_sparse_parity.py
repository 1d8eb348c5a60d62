"""Sparse and dense state, any number of members: one model, to the bit."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from boost_core import sparse_gains, sparse_growth, sparse_rule
from boost_core.catalogue import resolve_config
from boost_core.collective import Alone
from boost_core.config import TrainingConfig
from boost_core.records import Silent
from boost_core.team import Team
from boost_core.training import train
from tests.builders import BinnedTable, Table, bin_table, make_table, member_data, train_alone
from tests.parity.test_engine_parity import Gang, facts, spread_rows

pytestmark = pytest.mark.parity

ALGORITHMS = {
    "multiclass_adaboost": {"name": "multiclass_adaboost"},
    "adaboost_mm exact": {"name": "adaboost_mm", "step": "exact"},
    "adaboost_mm_fixed": {"name": "adaboost_mm_fixed", "alphas": [0.9, 0.4, 1.7]},
    "weights and samples": {
        "name": "adaboost_mm",
        "class_weight": "balanced",
        "row_fraction": 0.7,
        "feature_fraction": 0.6,
    },
    "adaboost_m2": {"name": "adaboost_m2", "shrinkage": 0.5},
    "adaboost_cost": {"name": "adaboost_cost", "step": "atanh_half"},
    "samme": {"name": "samme"},
    "samme, weights and samples": {
        "name": "samme",
        "class_weight": "balanced",
        "row_fraction": 0.7,
        "feature_fraction": 0.6,
    },
    "resampling": {"name": "multiclass_adaboost", "sampling": "resample", "sample_rows": 900},
    "resampling by sums, weights and samples": {
        "name": "multiclass_adaboost",
        "sampling": "resample",
        "mass": "sum",
        "sample_rows": 20_000,
        "step": "exact",
        "class_weight": "balanced",
        "row_fraction": 0.8,
    },
    "few examples": {"name": "multiclass_adaboost", "sampling": "resample", "sample_rows": 60, "retries": 3},
    "adaboost_m1": {"name": "adaboost_m1", "shrinkage": 0.5},
}
LEAVES = {"adaboost_m1": 100}  # for it goes on only while more than half of the weight is answered right


def config_of(name: str, rounds: int = 12, **learner: int) -> TrainingConfig:
    limits = {"kind": "tree", "max_leaves": LEAVES.get(name, 6), **learner}
    options = {"stopping": {"metric": "log_loss", "patience": 5}} if name == "adaboost_m2" else {}
    return resolve_config({"algorithm": {**ALGORITHMS[name], "weak_learner": limits}, "rounds": rounds, **options})


def dense(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_rule, "SPARSE_CLASSES", 1 << 30)


def sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_rule, "SPARSE_CLASSES", 0)
    monkeypatch.setattr(sparse_growth, "FIRST_CLASSES", 3)  # so that nodes need a second search
    monkeypatch.setattr(sparse_gains, "MOST_HOT", 2)  # so that some answered classes are cold


def tables() -> list[tuple[BinnedTable, Table]]:
    """Few classes, all of them answered in time; more than there are answers; classes without rows, nothing missing."""
    made = [make_table(160, 4, 3, seed=1), make_table(220, 4, 40, seed=2), make_table(120, 3, 90, seed=3, missing=0.0)]
    valid = [make_table(60, 4, 3, seed=4), make_table(60, 4, 40, seed=5), make_table(60, 3, 90, seed=6)]
    return list(zip(map(bin_table, made), valid, strict=True))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_sparse_state_gives_the_model_of_the_dense_one(monkeypatch: pytest.MonkeyPatch, name: str):
    for binned, valid in tables():
        dense(monkeypatch)
        wanted = train_alone(binned, config_of(name), valid=valid)
        assert len({record.valid_error for record in wanted.records}) > 1
        sparse(monkeypatch)
        assert facts(train_alone(binned, config_of(name), valid=valid)) == facts(wanted)


def test_nothing_to_learn_gives_the_constant_model(monkeypatch: pytest.MonkeyPatch):
    table = make_table(80, 3, 5, seed=7)
    binned = bin_table(replace(table, X=np.zeros_like(table.X), labels=np.arange(80, dtype=np.int32) % 5))
    found = []
    for choose in (dense, sparse):
        choose(monkeypatch)
        with Team(1) as crew:
            found.append(train(member_data(binned, valid=table), config_of("adaboost_m2"), Alone(), Silent(), crew))
    assert len(found[0].records) == 1
    assert facts(found[1]) == facts(found[0])


@pytest.mark.parametrize("members", [1, 2, 3])
def test_leaves_that_keep_no_table_get_the_same_children(monkeypatch: pytest.MonkeyPatch, members: int):
    for number, (binned, valid) in enumerate(tables()):
        dense(monkeypatch)
        config = config_of("multiclass_adaboost", max_leaves=14)
        wanted = facts(train_alone(binned, config, valid=valid))
        sparse(monkeypatch)
        for room in (1, 200_000):  # one table, and a few
            monkeypatch.setattr(sparse_growth, "TABLE_BYTES", room)
            gang = Gang(
                binned, spread_rows(binned.table.n_rows, members, number), valid, spread_rows(60, members, seed=9)
            )
            for result in gang.train(config):
                assert facts(result) == wanted


@pytest.mark.parametrize("members", [1, 2, 3])
@pytest.mark.parametrize(
    "names",
    [
        ("multiclass_adaboost", "weights and samples", "multiclass_adaboost"),
        ("samme", "samme, weights and samples", "samme"),
        ("adaboost_m1", "adaboost_m1", "samme"),
        ("resampling", "resampling by sums, weights and samples", "resampling"),
        ("few examples", "few examples", "resampling by sums, weights and samples"),
    ],
    ids=lambda names: names[0],
)
def test_members_of_a_gang_keep_sparse_state(monkeypatch: pytest.MonkeyPatch, names: Sequence[str], members: int):
    for number, (name, (binned, valid)) in enumerate(zip(names, tables(), strict=True)):
        dense(monkeypatch)
        wanted = facts(train_alone(binned, config_of(name), valid=valid))
        sparse(monkeypatch)
        spread = spread_rows(binned.table.n_rows, members, number, empty=1 if members == 3 else None)
        gang = Gang(binned, spread, valid, spread_rows(valid.n_rows, members, seed=9))
        for result in gang.train(config_of(name)):
            assert facts(result) == wanted
