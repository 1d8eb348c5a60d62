"""Multi-label data from Parquet to predictions: columns of 0 and 1, a column of lists, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from boost_core.catalogue import resolve_config
from boost_core.prediction import predict_sets, probabilities, scores
from tests.workers.parquet_tables import Columns, job_of, plan_of, train_on_threads, train_plan, write
from workers.data_plan import DataPlan
from workers.errors import DataError
from workers.model_file import from_bytes, model_sha256, to_bytes
from workers.scoring import predict_table

NAMES = ("red", "green", "blue")
LISTS = pa.list_(pa.string())
MH = {"name": "adaboost_mh", "weak_learner": {"kind": "hamming_tree", "max_leaves": 4}}
MR = {"name": "adaboost_mr", "outputs": "votes", "weak_learner": {"kind": "stump"}}


def colours(n_rows: int = 80, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Features, and sets that follow them with noise; the first two rows have no label and all of them."""
    random = np.random.default_rng(seed)
    X = random.integers(0, 6, (n_rows, 3)).astype(np.float64)
    sets = (X + random.normal(size=X.shape) > 2.5).astype(np.int64)
    sets[0], sets[1] = 0, 1
    return X, sets


def columns(X: np.ndarray, sets: np.ndarray, **more: Any) -> Columns:
    table = {f"x{place}": pa.array(values) for place, values in enumerate(X.T)}
    return table | {name: pa.array(sets[:, place]) for place, name in enumerate(NAMES)} | more


def lists(X: np.ndarray, sets: np.ndarray) -> Columns:
    table = {f"x{place}": pa.array(values) for place, values in enumerate(X.T)}
    return table | {"colours": pa.array([[NAMES[k] for k in np.flatnonzero(row)] for row in sets], LISTS)}


def refusal(table: Columns, folder: Path, **request: Any) -> DataError:
    with pytest.raises(DataError) as caught:
        plan_of(write(folder / "t.parquet", table), **request)
    assert caught.value.loc == ("data", "label")
    return caught.value


def config(algorithm: dict[str, Any]) -> Any:
    return resolve_config({"algorithm": algorithm, "rounds": 6})


def member_model(plan: DataPlan, algorithm: dict[str, Any]) -> Any:
    members = train_on_threads(job_of(plan, config(algorithm)), 2, shuffle_seed=5)
    assert all(member.n_rows > 0 for member in members)
    return members[0].model


@pytest.mark.parametrize("algorithm", [MH, MR], ids=["mh", "mr"])
def test_columns_and_lists_give_models_that_predict_sets(tmp_path: Path, algorithm: dict[str, Any]):
    X, sets = colours()
    path = write(tmp_path / "columns.parquet", columns(X, sets))
    plan = plan_of(path, path, label=NAMES)
    assert (plan.classes, [feature.name for feature in plan.features]) == (NAMES, ["x0", "x1", "x2"])
    model = train_plan(plan, config(algorithm)).model
    assert model_sha256(member_model(plan, algorithm)) == model_sha256(model)
    assert model.n_rows == (80 if algorithm is MH else int(((sets.sum(axis=1) % 3) > 0).sum()))
    again = from_bytes(to_bytes(model))
    assert (again.label, again.classes, again.multi_label) == (NAMES, NAMES, True)
    assert model_sha256(again) == model_sha256(model)
    found = predict_sets(model, X)
    assert np.array_equal(found, scores(model, X) > 0)
    chance = probabilities(model, X)
    assert np.array_equal(chance > 0.5, found)
    assert chance == pytest.approx(1 / (1 + np.exp(-2 * scores(model, X) / 2**20)))
    predicted = predict_table(model, [path])
    assert predicted.labels == tuple(tuple(NAMES[k] for k in np.flatnonzero(row)) for row in found)
    assert predicted.error == pytest.approx((found != sets).mean())
    if algorithm is MH:
        assert predicted.error == model.figures.train_error[-1] == model.figures.valid_error[-1]
    # the lists' labels are sorted, which only turns the columns round
    by_list = train_plan(
        plan_of(write(tmp_path / "l.parquet", lists(X, sets)), label="colours", label_lists=True), config(algorithm)
    )
    assert by_list.model.classes == tuple(sorted(NAMES))
    assert by_list.model.label == "colours"
    order = [sorted(NAMES).index(name) for name in NAMES]
    assert np.array_equal(predict_sets(by_list.model, X)[:, order], found)
    ours = predict_table(by_list.model, [str(tmp_path / "l.parquet")])
    assert (ours.error, [set(row) for row in ours.labels]) == (predicted.error, [set(row) for row in predicted.labels])


def test_weights_and_sets_together_on_any_gang(tmp_path: Path):
    X, sets = colours()
    weights = np.random.default_rng(3).integers(0, 3, 80)
    path = write(tmp_path / "t.parquet", columns(X, sets, w=pa.array(weights)))
    plan = plan_of(path, path, label=NAMES, weight="w")
    model = train_plan(plan, config(MR)).model
    assert model.n_rows == int(((sets.sum(axis=1) % 3 > 0) & (weights > 0)).sum())
    assert model_sha256(member_model(plan, MR)) == model_sha256(model)
    assert model.figures.valid_error.tolist() == model.figures.train_error.tolist()


def test_what_is_no_label_set_is_refused_with_its_count(tmp_path: Path):
    X, sets = colours(8)
    two = sets.copy()
    two[3:5, 1] = 2
    assert (
        "'green' has 2 values other than 0 and 1, such as 2 in 't.parquet'"
        in refusal(columns(X, two), tmp_path, label=NAMES).message
    )
    missing = columns(X, sets) | {"blue": pa.array([None, *sets[1:, 2]])}
    assert "'blue' has 1 values other than 0 and 1, such as null" in refusal(missing, tmp_path, label=NAMES).message
    text = columns(X, sets) | {"blue": pa.array(["yes"] * 8)}
    assert "'blue' (string)" in refusal(text, tmp_path, label=NAMES).message
    assert "one label" in refusal(columns(X, sets), tmp_path, label=("red",)).message
    assert "'pink'" in refusal(columns(X, sets), tmp_path, label=("red", "pink")).message
    assert "lists of integers or strings" in refusal(columns(X, sets), tmp_path, label="red", label_lists=True).message
    for bad in ([None, ["a"], ["b"]], [[None], ["a"], ["b"]]):
        table = {"x": pa.array([1.0, 2.0, 3.0]), "tags": pa.array(bad, LISTS)}
        assert "1 missing lists or labels" in refusal(table, tmp_path, label="tags", label_lists=True).message
    table = {"x": pa.array([1.0, 2.0]), "tags": pa.array([["a"], []], LISTS)}
    assert "fewer than two different labels ('a')" in refusal(table, tmp_path, label="tags", label_lists=True).message


def test_validation_labels_that_training_lacks_are_named(tmp_path: Path):
    train = write(tmp_path / "t.parquet", {"x": pa.array([1.0, 2.0]), "tags": pa.array([["a", "b"], []], LISTS)})
    valid = write(tmp_path / "v.parquet", {"x": pa.array([1.0]), "tags": pa.array([["a", "c"]], LISTS)})
    with pytest.raises(DataError, match="'c'"):
        plan_of(train, valid, label="tags", label_lists=True)


def test_unknown_and_missing_labels_at_prediction(tmp_path: Path):
    X, sets = colours()
    model = train_plan(
        plan_of(write(tmp_path / "t.parquet", lists(X, sets)), label="colours", label_lists=True), config(MH)
    ).model
    table = lists(X[:3], sets[:3]) | {"colours": pa.array([["pink"], None, ["red"]], LISTS)}
    found = predict_sets(model, X[:3])
    truth = np.array([[0, 0, 0], [0, 0, 1]]) == 1  # blue, green, red
    error = predict_table(model, [write(tmp_path / "p.parquet", table)]).error
    assert error == pytest.approx((found[[0, 2]] != truth).mean())
    nothing = {name: column for name, column in table.items() if name != "colours"}
    assert predict_table(model, [write(tmp_path / "q.parquet", nothing)]).error is None
