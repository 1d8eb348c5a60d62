"""What a job is estimated to need: by its options, and shared by its members."""

from dataclasses import replace
from typing import Any

import pytest

from boost_core.catalogue import ALGORITHMS, resolve_config
from boost_core.model import Feature
from workers.data_plan import DataPlan, ParquetRows, TableRows
from workers.memory_need import DataFacts, Need, estimate, facts_of
from workers.worker_states import shared_memory

ROWS = 1_000_000


def plan(n_classes: int = 10, *, n_rows: int = ROWS, n_valid: int = 0, **options: Any) -> DataPlan:
    features = tuple(Feature(f"f{j}", "float") for j in range(20))
    valid = TableRows((ParquetRows("v", (n_valid,)),)) if n_valid else None
    return DataPlan(
        TableRows((ParquetRows("t", (n_rows,)),)), valid, "label", features, tuple(range(n_classes)), **options
    )


def facts(name: str = "adaboost_mh", n_classes: int = 10, data: Any = None, **config: Any) -> DataFacts:
    algorithm = {"name": name, **config.pop("algorithm", {})}
    return facts_of(data or plan(n_classes), resolve_config({"algorithm": algorithm, "rounds": 50, **config}))


def per_row(found: Need) -> float:
    return found.row_bytes / ROWS


def test_rows_need_bins_scores_and_gains() -> None:
    # 20 bins, 10 scores and 12 gains (with the count and what pads them) of 4 bytes, and some lists.
    assert 20 + 4 * (10 + 12) + 4 <= per_row(estimate(facts())) <= 20 + 4 * (10 + 12) + 60


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_has_an_estimate_that_knows_its_columns(name: str) -> None:
    n_classes = 2 if ALGORITHMS[name].refusal(6) else 6
    found = facts(name, n_classes)
    pairs = {"all_pairs": 15, "adaboost": 1}
    assert found.n_columns == pairs.get(name, found.n_columns) >= 1
    assert estimate(found).on(1) > ROWS * (20 + 4 * found.n_columns)


def test_options_cost_what_they_hold() -> None:
    base = per_row(estimate(facts()))
    weighted = per_row(estimate(facts(data=plan(weight="w"))))
    assert weighted - base == 16 + 4 * 12  # copies, numbers, and gains of 8 bytes
    stopping = {"metric": "train_error", "patience": 5}
    assert per_row(estimate(facts(stopping=stopping))) - base == 8 * 10  # scores taken back to the best round
    sampled = {"row_fraction": 0.5}
    assert per_row(estimate(facts(algorithm=sampled))) - base == 4 * 12  # the gains of the sample
    valid = estimate(facts(data=plan(n_valid=ROWS))).row_bytes - estimate(facts()).row_bytes
    assert 0 < valid < ROWS * base  # no gains of validation rows
    assert estimate(facts(max_bins=16)).member_bytes < estimate(facts()).member_bytes
    sets = per_row(estimate(facts(data=replace(plan(), label=("a", "b")))))
    assert sets - base == 10  # a byte a label


RESAMPLE = {"sampling": "resample"}


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [("multiclass_adaboost", {}), ("multiclass_adaboost", RESAMPLE), ("samme", {}), ("adaboost_m1", {})],
)
def test_sparse_states_do_not_grow_with_the_classes(name: str, algorithm: dict[str, Any]) -> None:
    some, many = (estimate(facts(name, n_classes, algorithm=algorithm)) for n_classes in (100, 10_000))
    assert facts(name, 100, algorithm=algorithm).sparse
    assert many.row_bytes == some.row_bytes
    assert per_row(estimate(facts(name, 100, algorithm=algorithm, rounds=500))) > per_row(some)


def test_sparse_states_cost_what_they_hold() -> None:
    pairs, hits = (per_row(estimate(facts(name, 100))) for name in ("multiclass_adaboost", "samme"))
    assert pairs - hits == 50 * 16  # a gain of every touched pair, sorted and not
    stopping = {"metric": "train_error", "patience": 5}
    assert per_row(estimate(facts("samme", 100, stopping=stopping))) - hits == 50 * 24  # copies to take rounds back
    by_default, few = (
        estimate(facts("multiclass_adaboost", 100, algorithm={**RESAMPLE, "sample_rows": n})) for n in (0, ROWS)
    )
    assert per_row(by_default) - pairs == 4 * 40  # four examples a row
    assert per_row(few) - pairs == 40
    dense = (per_row(estimate(facts("multiclass_adaboost", 10, algorithm=one))) for one in (RESAMPLE, {}))
    assert next(dense) - next(dense) == 2 * 4 * 12  # counts of examples, of two rounds
    many, few_tables = (estimate(facts(name, 10_000)).member_bytes for name in ("multiclass_adaboost", "samme"))
    assert many > few_tables  # of every class that was answered, or of the most frequent ones


def test_members_share_the_rows_alone() -> None:
    found = estimate(facts())
    assert found.on(2) - found.member_bytes == -(-found.row_bytes // 2)


@pytest.mark.parametrize(
    ("limit", "machine", "on_host", "share"), [(None, 12, 3, 4), (3, 12, 3, 3), (12, 12, 3, 4), (0, 12, 1, 12)]
)
def test_workers_of_one_host_share_its_memory(limit: int | None, machine: int, on_host: int, share: int) -> None:
    assert shared_memory(limit, machine, on_host) == share
