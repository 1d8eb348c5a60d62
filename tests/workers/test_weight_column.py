"""Row weights from Parquet to the model: which are refused, what weight 0 removes, what whole weights are."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.builders import make_table
from tests.workers.parquet_tables import Columns, columns_of, job_of, plan_of, train_on_threads, train_plan, write
from workers.errors import DataError
from workers.model_file import model_sha256

NAN = float("nan")


def columns(weights: Any, **more: Any) -> Columns:
    n_rows = len(weights)
    return {"x": pa.array(np.arange(n_rows) * 1.0), "label": pa.array(np.arange(n_rows) % 2), "w": weights} | more


@pytest.mark.parametrize(
    ("weights", "count", "first"),
    [
        (pa.array([1.0, -2.0, -3.0]), 2, "-2.0 in row 1"),
        (pa.array([1, 2, None]), 1, "null in row 2"),
        (pa.array([NAN, 1.0, None], from_pandas=False), 2, "nan in row 0"),
        (pa.array([1.0, 1.0, float("inf")]), 1, "inf in row 2"),
        (pa.array([-1, 1, 1], pa.int8()), 1, "-1 in row 0"),
    ],
)
def test_weights_that_are_none_are_refused_with_their_place(tmp_path: Path, weights: Any, count: int, first: str):
    good, bad = write(tmp_path / "a.parquet", columns(pa.array(weights.to_pylist()[:0] or [1, 1], weights.type))), ""
    bad = write(tmp_path / "b.parquet", columns(weights))
    for train, valid in (([good, bad], None), (good, bad)):
        with pytest.raises(DataError) as caught:
            plan_of(train, valid, weight="w")
        assert caught.value.loc == ("data", "weight")
        assert f"column 'w' has {count} weight(s)" in caught.value.message
        assert f"the first is {first} of 'b.parquet'" in caught.value.message


def test_the_weight_is_no_feature_unless_it_is_not_the_weight(tmp_path: Path):
    path = write(tmp_path / "t.parquet", columns(pa.array([1.0, 2.0])))
    assert [feature.name for feature in plan_of(path, weight="w").features] == ["x"]
    assert [feature.name for feature in plan_of(path).features] == ["x", "w"]
    for request, loc in (
        ({"features": ("x", "w")}, "features"),
        ({"weight": "label"}, "weight"),
        ({"weight": "v"}, "weight"),
    ):
        with pytest.raises(DataError) as caught:
            plan_of(path, **({"weight": "w"} | request))
        assert caught.value.loc == ("data", loc)


def test_weight_0_removes_a_row_before_anything_is_counted(tmp_path: Path):
    """The removed rows hold a class, a missing label and a feature value that nobody else has."""
    table = columns_of(make_table(60, n_features=2, n_classes=3, seed=1))
    zeros = {name: pa.array([99.0, None]) for name in table if name != "label"} | {"label": pa.array([77, None])}
    both = {name: pa.concat_arrays([table[name].cast(zeros[name].type), zeros[name]]) for name in table}
    ones, kept = pa.array(np.ones(60)), pa.array([1.0] * 60 + [0.0] * 2)
    plain = plan_of(write(tmp_path / "a.parquet", table | {"w": ones}), weight="w")
    path = write(tmp_path / "b.parquet", both | {"w": kept})
    removed = plan_of(path, path, weight="w")
    assert (removed.classes, removed.n_train, removed.n_valid) == (plain.classes, 60, 60)
    expected, found = train_plan(plain).model, train_plan(removed).model
    assert found.n_rows == 60
    assert np.array_equal(found.thresholds, expected.thresholds)
    assert found.fingerprint == expected.fingerprint
    assert np.array_equal(found.forest.payload, expected.forest.payload)
    assert found.figures.valid_error.tolist() == expected.figures.train_error.tolist()


def test_whole_weights_are_repeated_rows_and_any_gang_gives_the_model(tmp_path: Path):
    table = columns_of(make_table(90, n_features=3, n_classes=3, seed=2))
    weights = np.random.default_rng(5).integers(0, 4, 90)
    repeated = {name: column.take(pa.array(np.repeat(np.arange(90), weights))) for name, column in table.items()}
    plan = plan_of(write(tmp_path / "w.parquet", table | {"w": pa.array(weights)}), weight="w")
    weighted = train_plan(plan).model
    plain = train_plan(plan_of(write(tmp_path / "r.parquet", repeated))).model
    assert np.array_equal(weighted.forest.node_threshold, plain.forest.node_threshold, equal_nan=True)
    assert np.array_equal(weighted.forest.multiplier, plain.forest.multiplier)
    assert np.array_equal(weighted.figures.train_error, plain.figures.train_error)
    assert weighted.fingerprint != plain.fingerprint
    members = train_on_threads(job_of(plan), 2, shuffle_seed=3)
    assert members[0].model is not None
    assert model_sha256(members[0].model) == model_sha256(weighted)
