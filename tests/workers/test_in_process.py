"""A job trained in this process: from Parquet to the model that the engine would make of the same table."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from boost_core.catalogue import resolve_config
from boost_core.config import TrainingConfig
from boost_core.errors import ConfigError
from boost_core.model import Forest, Model
from boost_core.prediction import predict
from boost_core.records import StopReason
from boost_core.scores import predicted_classes
from tests.builders import Table, bin_table, forest_arrays, make_table, scores_by_round, train_alone
from tests.workers.parquet_tables import (
    columns_of,
    job_of,
    plan_of,
    read_all,
    small_config,
    split_over_files,
    train_plan,
    write,
    write_row_groups,
)
from workers.errors import DataError
from workers.in_process import train_in_process
from workers.job import NoProgress, RoundProgress
from workers.model_file import model_sha256
from workers.scoring import predict_table
from workers.stages import PHASES

NAN, INF = float("nan"), float("inf")


def config_of(name: str, rounds: int = 5, **changes: Any) -> TrainingConfig:
    """Options by a short name: adaboost, factorised, free, stump, balanced."""
    learner: dict[str, Any] = {"kind": "stump"}
    if name not in ("adaboost", "stump"):
        learner = {"kind": "hamming_tree", "max_leaves": 5, "votes": "free" if name == "free" else "factorised"}
    algorithm: dict[str, Any] = {"name": "adaboost" if name == "adaboost" else "adaboost_mh", "weak_learner": learner}
    if name == "balanced":
        algorithm["init_weights"] = "balanced"
    return resolve_config({"algorithm": algorithm, "rounds": rounds} | changes)


def crowded_table(n_rows: int) -> Table:
    """Features of more than 255 values, some missing."""
    table = make_table(n_rows, 3, 3, seed=6)
    X = table.X + np.random.default_rng(0).normal(size=table.X.shape).round(5)
    return Table(X, table.labels, table.n_classes)


# --- the engine's own model ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["adaboost", "factorised", "free", "stump", "balanced"])
def test_the_model_is_the_engines(tmp_path: Path, name: str):
    table = make_table(200, 4, 2 if name == "adaboost" else 3, seed=7)
    config = config_of(name)
    outcome = train_plan(plan_of(write(tmp_path / "t.parquet", columns_of(table), 70)), config)
    assert_is_the_engines(outcome.model, table, config)


@pytest.mark.parametrize("max_bins", [16, 255])
def test_the_model_of_crowded_features_is_the_engines(tmp_path: Path, max_bins: int):
    table, config = crowded_table(600), small_config(max_bins=max_bins)
    outcome = train_plan(plan_of(write(tmp_path / "t.parquet", columns_of(table))), config)
    assert_is_the_engines(outcome.model, table, config)


def assert_is_the_engines(model: Model, table: Table, config: TrainingConfig) -> None:
    binned = bin_table(table, config.max_bins)
    result = train_alone(binned, config)
    assert forest_arrays(model.forest) == forest_arrays(result.forest)
    assert model.thresholds.tobytes() == binned.binning.thresholds.tobytes()
    assert_array_equal(model.threshold_start, binned.binning.threshold_start)
    for name, figure in vars(result.figures()).items():
        assert_array_equal(getattr(model.figures, name), figure)
    assert model.config == config
    assert model.n_rows == table.n_rows


# --- how the data come --------------------------------------------------------------------------------------


def test_files_and_row_groups_do_not_matter(tmp_path: Path):
    columns = columns_of(make_table(130, 3, 3, seed=8))
    empty = pa.table(columns).slice(0, 0)
    whole = write(tmp_path / "whole.parquet", columns)
    spread = split_over_files(tmp_path / "spread", columns, [1, 0, 60, 69], row_group_size=11)
    hollow = write_row_groups(tmp_path / "hollow.parquet", [empty, pa.table(columns), empty])
    hashes = {model_sha256(train_plan(plan_of(paths)).model) for paths in (whole, spread, hollow)}
    assert len(hashes) == 1


def test_the_order_of_columns_does_not_matter_where_features_are_named(tmp_path: Path):
    columns = columns_of(make_table(60, 3, 2, seed=8))
    names = ("f2", "f0")
    one = train_plan(plan_of(write(tmp_path / "a.parquet", columns), features=names)).model
    turned = dict(reversed(columns.items()))
    other = train_plan(plan_of(write(tmp_path / "b.parquet", turned), features=names)).model
    assert model_sha256(one) == model_sha256(other)
    assert [feature.name for feature in one.features] == ["f2", "f0"]


def test_nulls_and_nan_are_missing_in_every_numeric_type(tmp_path: Path):
    table = make_table(150, 3, 3, seed=9, missing=0.2)
    forests = []
    for type_ in (pa.int8(), pa.uint32(), pa.int64(), pa.float16(), pa.float32(), pa.float64()):
        features = {f"f{k}": pa.array(column, from_pandas=True).cast(type_) for k, column in enumerate(table.X.T)}
        assert features["f1"].null_count > 0
        path = write(tmp_path / "t.parquet", features | {"label": pa.array(table.labels)})
        model = train_plan(plan_of(path)).model
        assert {feature.type for feature in model.features} == {str(type_)}
        forests.append(forest_arrays(model.forest))
    with_nan = train_plan(plan_of(write(tmp_path / "t.parquet", columns_of(table)))).model
    assert all(forest == forest_arrays(with_nan.forest) for forest in forests)


def test_nullable_booleans(tmp_path: Path):
    truth = [True, None, False] * 20
    path = write(tmp_path / "t.parquet", {"x": pa.array(truth), "label": pa.array(["yes", "none", "no"] * 20)})
    found = predict_table(train_plan(plan_of(path)).model, [path])
    assert found.error == 0.0


@pytest.mark.parametrize("names", [(0, 1, 2), (3, 4, 5), (0, 1, 3), ("a", "b", "c"), (-1, 0, 1), (-2.5, 0.0, 0.5)])
def test_label_values_do_not_matter(tmp_path: Path, names: Sequence[Any]):
    table = make_table(90, 2, 3, seed=10)
    labels = pa.array([names[label] for label in table.labels])
    model = train_plan(plan_of(write(tmp_path / "t.parquet", columns_of(table) | {"label": labels}))).model
    plain = train_plan(plan_of(write(tmp_path / "p.parquet", columns_of(table)))).model
    assert model.classes == tuple(names)
    assert forest_arrays(model.forest) == forest_arrays(plain.forest)
    assert model.fingerprint == plain.fingerprint


def test_dictionaries_that_differ_between_row_groups(tmp_path: Path):
    table = make_table(90, 2, 3, seed=10)
    text = pa.table(columns_of(table) | {"label": pa.array(["abc"[label] for label in table.labels])})
    groups = [text.slice(start, 30) for start in (0, 30, 60)]
    encoded = [group.set_column(2, "label", group["label"].combine_chunks().dictionary_encode()) for group in groups]
    assert len({str(group["label"].chunk(0).dictionary) for group in encoded}) > 1
    one = train_plan(plan_of(write(tmp_path / "plain.parquet", text))).model
    other = train_plan(plan_of(write_row_groups(tmp_path / "encoded.parquet", encoded))).model
    assert model_sha256(one) == model_sha256(other)


def test_the_smallest_data(tmp_path: Path):
    path = write(tmp_path / "t.parquet", {"x": [1, 2], "label": ["a", "b"]})
    outcome = train_plan(plan_of(path))
    assert outcome.stop_reason == StopReason.EDGE_ONE
    assert predict_table(outcome.model, [path]).error == 0.0


def test_features_that_say_nothing(tmp_path: Path):
    columns = {"constant": [7.0] * 4, "nothing": pa.nulls(4, pa.float64()), "label": [0, 1, 0, 1]}
    path = write(tmp_path / "t.parquet", columns)
    outcome = train_plan(plan_of(path))
    assert outcome.model.n_rows == 4
    assert predict_table(outcome.model, [path]).error == 0.5


# --- what an outcome says -----------------------------------------------------------------------------------


class Recorder(NoProgress):
    """Keeps what is reported; asks to cancel after some rounds."""

    def __init__(self, cancel_after: int | None = None) -> None:
        self.phases: list[str] = []
        self.rounds: list[RoundProgress] = []
        self._cancel_after = cancel_after

    def phase(self, name: str) -> None:
        self.phases.append(name)

    def rounds_done(self, batch: Sequence[RoundProgress]) -> None:
        self.rounds += batch

    def cancel_requested(self) -> bool:
        return self._cancel_after is not None and len(self.rounds) >= self._cancel_after


def test_outcome_and_progress(tmp_path: Path):
    path = write(tmp_path / "t.parquet", columns_of(make_table(100, 3, 3, seed=11)))
    progress = Recorder()
    outcome = train_in_process(job_of(plan_of(path, path)), progress)
    assert progress.phases == ["read", "compile", "train"]
    assert tuple(progress.rounds) == outcome.rounds
    assert [each.record.round for each in outcome.rounds] == [1, 2, 3, 4, 5]
    assert outcome.stop_reason == StopReason.ROUNDS
    assert (outcome.workers, outcome.rows_per_member) == (0, (100,))
    assert set(outcome.seconds) == {*PHASES, "total", "per_round"}
    assert all(value >= 0 for value in outcome.seconds.values())
    phases = sum(value for name, value in outcome.seconds.items() if name not in ("total", "per_round"))
    assert phases == pytest.approx(outcome.seconds["total"], rel=0.05, abs=0.01)
    assert outcome.peak_memory_bytes > 1_000_000


def test_a_cancelled_run_keeps_its_finished_rounds(tmp_path: Path):
    path = write(tmp_path / "t.parquet", columns_of(make_table(100, 3, 3, seed=11)))
    plan = plan_of(path)
    outcome = train_in_process(job_of(plan, small_config(rounds=50)), Recorder(cancel_after=2))
    assert outcome.stop_reason == StopReason.CANCELLED
    n_rounds = len(outcome.rounds)
    assert 2 <= n_rounds <= 3
    shorter = train_plan(plan, small_config(rounds=n_rounds)).model
    assert forest_arrays(shorter.forest) == forest_arrays(outcome.model.forest)


def test_recorded_errors_are_those_of_the_saved_model(tmp_path: Path):
    table, held_out = make_table(200, 3, 3, seed=12), make_table(80, 3, 3, seed=13)
    train, valid = write(tmp_path / "t.parquet", columns_of(table)), write(tmp_path / "v.parquet", columns_of(held_out))
    outcome = train_plan(plan_of(train, valid), small_config(rounds=12))
    last = outcome.rounds[-1].record
    assert predict_table(outcome.model, [train]).error == last.train_error
    assert predict_table(outcome.model, [valid]).error == last.valid_error
    for part, name in ((table, "train_error"), (held_out, "valid_error")):
        staged = [np.mean(predicted_classes(f) != part.labels) for f in scores_by_round(outcome.model.forest, part.X)]
        assert [getattr(each.record, name) for each in outcome.rounds] == staged[1:]


def test_two_classes_are_asked_for_and_three_given(tmp_path: Path):
    path = write(tmp_path / "t.parquet", columns_of(make_table(60, 2, 3, seed=14)))
    with pytest.raises(ConfigError, match=r"algorithm\.name"):
        train_plan(plan_of(path), config_of("adaboost"))


def test_data_that_changed_are_refused(tmp_path: Path):
    columns = columns_of(make_table(60, 2, 3, seed=14))
    plan = plan_of(write(tmp_path / "t.parquet", columns))
    write(tmp_path / "t.parquet", pa.table(columns).slice(1))
    with pytest.raises(DataError, match=r"'t.parquet' has changed since the job was planned"):
        train_plan(plan)


def test_jobs_of_several_threads_do_not_disturb_each_other(tmp_path: Path):
    tables = [make_table(150, 3, n_classes, seed=15) for n_classes in (2, 3, 5)]
    plans = [plan_of(write(tmp_path / f"{t.n_classes}.parquet", columns_of(t))) for t in tables] * 3
    alone = [model_sha256(train_plan(plan).model) for plan in plans[:3]] * 3
    with ThreadPoolExecutor(len(plans)) as pool:
        together = list(pool.map(lambda plan: model_sha256(train_plan(plan).model), plans))
    assert together == alone


# --- raw values and bins ------------------------------------------------------------------------------------

FLOATS = st.sampled_from([NAN, INF, -INF, 0.0, -0.0, 1.0, 1.4e-45, 3.4028234663852886e38, 16777216.0, 0.1]) | (
    st.floats(width=32)
)


@st.composite
def float32_tables(draw: Callable[[Any], Any]) -> Table:
    n_rows, n_features = draw(st.integers(2, 25)), draw(st.integers(1, 3))
    cells = draw(st.lists(FLOATS, min_size=n_rows * n_features, max_size=n_rows * n_features))
    labels = draw(st.lists(st.integers(0, 2), min_size=n_rows, max_size=n_rows))
    labels[:2] = [0, 1]
    X = np.array(cells, np.float32).astype(np.float64).reshape(n_rows, n_features)
    return Table(X, np.array(labels, np.int32), 1 + max(labels))


def codes_of(model: Model, X: NDArray[np.float64]) -> NDArray[np.int64]:
    """Bins of raw rows by the model's thresholds, [n_rows, n_features]."""
    codes = np.empty(X.shape, np.int64)
    for feature, column in enumerate(X.T):
        thresholds = model.thresholds[model.threshold_start[feature] : model.threshold_start[feature + 1]]
        codes[:, feature] = np.where(
            np.isnan(column), len(thresholds) + 1, np.searchsorted(thresholds, column, side="right")
        )
    return codes


def binned_scores(model: Model, codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Scores by walking the trees on bins, a row at a time."""
    forest, missing = model.forest, np.diff(model.threshold_start) + 1
    scores = np.zeros((len(codes), forest.n_columns), np.int64)
    for tree in range(forest.n_trees):
        for row, code in enumerate(codes):
            leaf = forest.leaf_start[tree] + leaf_of(forest, tree, code, missing)
            scores[row] += forest.multiplier[tree] * forest.payload[leaf]
    return scores


def leaf_of(forest: Forest, tree: int, code: NDArray[np.int64], missing: NDArray[np.int64]) -> int:
    first = int(forest.node_start[tree])
    place = 0 if forest.node_start[tree + 1] > first else -1
    while place >= 0:
        node = first + place
        feature = forest.node_feature[node]
        left = forest.node_kind[node] == 0 and code[feature] <= forest.node_bin[node]
        if code[feature] == missing[feature]:
            left = forest.node_missing_left[node]
        place = int(forest.node_left[node] if left else forest.node_right[node])
    return ~place


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=float32_tables(), unseen=st.lists(FLOATS, min_size=3, max_size=3), max_bins=st.sampled_from([3, 255]))
def test_raw_rows_reach_the_leaves_they_trained(tmp_path: Path, table: Table, unseen: list[float], max_bins: int):
    path = write(tmp_path / "t.parquet", columns_of(table, "float32"))
    outcome = train_plan(plan_of(path), small_config(rounds=4, max_bins=max_bins))
    model, names = outcome.model, [f"f{place}" for place in range(table.X.shape[1])]
    raw = np.ascontiguousarray(read_all([path], names).T)
    assert_array_equal(raw, table.X)
    more = np.concatenate([raw, np.array([unseen[: len(names)]])])
    staged = scores_by_round(model.forest, more)
    assert_array_equal(staged[-1], binned_scores(model, codes_of(model, more)))
    errors = [float(np.mean(predicted_classes(scores[:-1]) != table.labels)) for scores in staged[1:]]
    assert errors == [each.record.train_error for each in outcome.rounds]
    assert predict_table(model, [path]).labels == tuple(model.classes[index] for index in predict(model, raw))
