"""Small data sets, and the shortest way from a table to a trained forest, for tests of the engine."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

from boost_core import binning
from boost_core.binning import Binning
from boost_core.catalogue import resolve_config
from boost_core.collective import Alone, Collective
from boost_core.config import TrainingConfig
from boost_core.fitted import Speech
from boost_core.gain_matrix import GainMatrix
from boost_core.intrinsics import width_for
from boost_core.model import Forest
from boost_core.prediction import forest_scores
from boost_core.records import RoundRecord, Silent
from boost_core.shard import RowRange, Shard
from boost_core.team import Team
from boost_core.training import TrainingResult, train
from boost_core.training_data import TrainingData
from tests.reference import Grid, Options

ROOT = Path(__file__).resolve().parents[1]
REAL_DATA = Path(os.environ.get("EDGEWISE_TEST_DATA") or ROOT.parent / "shared" / "data")


@dataclass(frozen=True)
class Table:
    """Rows as a user has them: X float64 [n_rows, n_features], NaN = missing; labels int32 [n_rows]."""

    X: NDArray[np.float64]
    labels: NDArray[np.int32]
    n_classes: int

    @property
    def n_rows(self) -> int:
        return int(self.labels.shape[0])

    def only(self, rows: Any) -> "Table":
        return Table(np.ascontiguousarray(self.X[rows]), self.labels[rows], self.n_classes)


@dataclass(frozen=True)
class BinnedCodes:
    """Codes uint8 [n_features, n_rows] and what they mean."""

    binning: Binning
    codes: NDArray[np.uint8]

    def grid(self) -> Grid:
        return Grid(self.codes.T.tolist(), self.binning.n_thresholds.tolist())


@dataclass(frozen=True)
class BinnedTable(BinnedCodes):
    """A table with its bins."""

    table: Table


def bin_table(table: Table, max_bins: int = 255) -> BinnedTable:
    """Bin every column as the engine does: exact thresholds where values are few, else quantiles of all rows."""
    thresholds, missing = [], []
    for column in table.X.T:
        distinct, has_missing = binning.distinct_values(column, max_bins)
        few = len(distinct) <= max_bins
        present = column[~np.isnan(column)]
        thresholds.append(binning.midpoints(distinct) if few else binning.quantile_thresholds(present, max_bins))
        missing.append(has_missing)
    made = binning.make_binning(thresholds, missing)
    return BinnedTable(made, bin_rows(table, made), table)


def bin_rows(table: Table, made: Binning) -> NDArray[np.uint8]:
    codes = np.empty(table.X.T.shape, np.uint8)
    for feature, column in enumerate(table.X.T):
        binning.bin_column(np.ascontiguousarray(column), made.of_feature(feature), codes[feature])
    return codes


def shard_of(codes: NDArray[np.uint8], labels: NDArray[np.int32], ranges: Sequence[RowRange]) -> Shard:
    """The shard that holds these row ranges, in this order."""
    rows = np.concatenate([np.empty(0, np.int64), *(np.arange(*span) for span in ranges)]).astype(np.int64)
    return Shard(np.ascontiguousarray(codes[:, rows]), labels[rows], tuple(ranges))


def member_data(
    binned: BinnedTable, ranges: Sequence[RowRange] | None = None, valid: Table | None = None
) -> TrainingData:
    """What one member holds: all rows, or those of its ranges."""
    table = binned.table
    train_shard = shard_of(binned.codes, table.labels, [(0, table.n_rows)] if ranges is None else ranges)
    counts = np.bincount(table.labels, minlength=table.n_classes).astype(np.int64)
    if valid is None:
        return TrainingData(train_shard, None, binned.binning, counts)
    valid_codes = bin_rows(valid, binned.binning)
    valid_shard = shard_of(valid_codes, valid.labels, [(0, valid.n_rows)])
    return TrainingData(train_shard, valid_shard, binned.binning, counts, valid.n_rows)


def config_for(options: Options, rounds: int, stump: bool = False) -> TrainingConfig:
    """The engine's configuration of an oracle's options."""
    algorithm: dict[str, Any] = {"name": options.algorithm}
    if not options.binary:
        algorithm["init_weights"] = options.init_weights
    votes = "free" if options.free else "factorised"
    tree = {"kind": "hamming_tree", "max_leaves": options.max_leaves, "votes": votes}
    algorithm["weak_learner"] = {"kind": "stump"} if stump else tree
    return resolve_config({"algorithm": algorithm, "rounds": rounds})


def train_alone(
    binned: BinnedTable, config: TrainingConfig, threads: int = 1, valid: Table | None = None
) -> TrainingResult:
    return train_member(member_data(binned, valid=valid), config, Alone(), threads)


def train_member(
    data: TrainingData, config: TrainingConfig, collective: Collective, threads: int = 1
) -> TrainingResult:
    with Team(threads) as team:
        return boosted(train(data, config, collective, Silent(), team))


def boosted(result: TrainingResult) -> TrainingResult:
    """The rounds of boosting alone, as an oracle knows them: the constant model of a refused round 1 is none."""
    if not result.records or result.records[0].alpha > 0.0:
        return result
    forest = part_of_forest(result.forest, 0, 0)
    return replace(
        result, forest=replace(forest, speech=Speech.VOTES, payload=forest.payload.astype(np.int8)), records=()
    )


# --- forests ------------------------------------------------------------------------------------------------


def nested_tree(forest: Forest, number: int) -> tuple:
    """(cut, left, right) for a node, (leaf number, payload) for a leaf: the form of reference.NaiveTree.nested."""
    first_node, first_leaf = int(forest.node_start[number]), int(forest.leaf_start[number])
    n_nodes = int(forest.node_start[number + 1]) - first_node

    def describe(place: int) -> tuple:
        if place < 0:
            return ~place, tuple(forest.payload[first_leaf + ~place].tolist())
        node = first_node + place
        cut = (
            int(forest.node_feature[node]),
            int(forest.node_kind[node]),
            int(forest.node_bin[node]),
            bool(forest.node_missing_left[node]),
        )
        return cut, describe(int(forest.node_left[node])), describe(int(forest.node_right[node]))

    return describe(0 if n_nodes else -1)


def part_of_forest(forest: Forest, start: int, stop: int) -> Forest:
    """The rounds start..stop as a forest of their own."""
    first, last = int(forest.round_start[start]), int(forest.round_start[stop])
    nodes = slice(int(forest.node_start[first]), int(forest.node_start[last]))
    leaves = slice(int(forest.leaf_start[first]), int(forest.leaf_start[last]))
    by_node = {
        name: getattr(forest, name)[nodes]
        for name in (
            "node_feature", "node_kind", "node_bin", "node_threshold",
            "node_missing_left", "node_left", "node_right",
        )
    }  # fmt: skip
    return replace(
        forest,
        node_start=forest.node_start[first : last + 1] - forest.node_start[first],
        leaf_start=forest.leaf_start[first : last + 1] - forest.leaf_start[first],
        payload=forest.payload[leaves],
        multiplier=forest.multiplier[first:last],
        column=forest.column[first:last],
        round_start=forest.round_start[start : stop + 1] - first,
        **by_node,
    )


def scores_by_round(forest: Forest, X: NDArray[np.float64]) -> list[NDArray[np.int64]]:
    """Scores after every round, by prediction from raw rows; the first entry is before round 1."""
    total = np.zeros((X.shape[0], forest.n_columns), np.int64)
    found = [total]
    for number in range(forest.n_rounds):
        total = total + forest_scores(part_of_forest(forest, number, number + 1), X)
        found.append(total)
    return found


def arrays_of(forest: Forest) -> dict[str, NDArray[Any]]:
    """Every array of a forest by name, its code too."""
    arrays = {name: value for name, value in vars(forest).items() if isinstance(value, np.ndarray)}
    return arrays | {"code": forest.decoding.code}


def forest_arrays(forest: Forest) -> dict[str, Any]:
    """A forest to the bit: dtype, shape and bytes of every array by name, and what else it says."""
    exact = {
        name: (str(array.dtype), array.shape, np.ascontiguousarray(array).tobytes())
        for name, array in arrays_of(forest).items()
    }
    return exact | {"speech": forest.speech, "rule": forest.decoding.rule, "n_columns": forest.n_columns}


def shared_figures(records: Sequence[RoundRecord]) -> list[RoundRecord]:
    """Records without what depends on the number of members."""
    return [record._replace(bytes_reduced=0) for record in records]


# --- tables -------------------------------------------------------------------------------------------------


def make_table(n_rows: int, n_features: int, n_classes: int, seed: int, missing: float = 0.1) -> Table:
    """Rows whose label depends on the features, with noise; all features are small integers, some missing.

    The first feature has no missing values, the last one is constant where present.
    """
    random = np.random.default_rng(seed)
    X = random.integers(0, 12, (n_rows, n_features)).astype(np.float64)
    signal = X @ random.normal(size=n_features) + 2 * random.normal(size=n_rows)
    edges = np.quantile(signal, np.arange(1, n_classes) / n_classes)
    labels = np.searchsorted(edges, signal).astype(np.int32)
    X[random.random(X.shape) < missing] = np.nan
    X[:, 0] = np.nan_to_num(X[:, 0], nan=3.0)
    X[~np.isnan(X[:, -1]), -1] = 1.0
    return Table(X, labels, n_classes)


VALUES = [-2.5, -1.0, 0.0, 1.0, 1.5]


@st.composite
def small_tables(draw: Callable[[Any], Any], binary: bool = False, absent: bool = True) -> Table:
    """2 to 60 rows, 1 to 4 features, 2 to 6 classes, few distinct values: ties abound.

    Shapes: random rows with noisy labels; rows drawn value by value; rows copied from three with labels of their own;
    labels decided by one feature; constant features. absent: classes may have no row, and there may be fewer rows than
    classes.
    """
    n_classes = 2 if binary else draw(st.integers(2, 6))
    n_features = draw(st.sampled_from([4, 3, 2, 1]))
    shape = draw(st.sampled_from(["random", "random", "random", "drawn", "copies", "separable", "constant"]))
    if shape == "random":
        X, labels = _random_rows(draw(st.integers(0, 2**32 - 1)), n_features, n_classes)
    else:
        X, labels = draw(_drawn_rows(n_features, n_classes, shape))
    if not absent:
        labels, n_classes = _without_absent_classes(labels)
    return Table(np.ascontiguousarray(X), labels.astype(np.int32), n_classes)


def _random_rows(seed: int, n_features: int, n_classes: int) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Hypothesis leans to simple rows; these are as various as their seeds."""
    random = np.random.default_rng(seed)
    n_rows = int(random.integers(5, 61))
    X = random.choice(np.array(VALUES[: random.integers(2, 6)]), (n_rows, n_features))
    signal = X @ random.normal(size=n_features) + random.choice([0.0, 0.5, 2.0]) * random.normal(size=n_rows)
    labels = np.searchsorted(np.sort(random.choice(signal, n_classes - 1)), signal)
    X[random.random(X.shape) < random.choice([0.0, 0.1, 0.4])] = np.nan
    return X, labels


@st.composite
def _drawn_rows(
    draw: Callable[[Any], Any], n_features: int, n_classes: int, shape: str
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    n_rows = draw(st.integers(2, draw(st.sampled_from([8, 25, 60]))))
    X = np.array([draw(_column(n_rows, shape)) for _ in range(n_features)], np.float64).T
    if shape == "copies":
        X = X[draw(st.lists(st.integers(0, min(n_rows, 3) - 1), min_size=n_rows, max_size=n_rows))]
    if shape == "separable":
        values, which = np.unique(X[:, 0], return_inverse=True)
        return X, which * n_classes // len(values)
    return X, np.array(draw(st.lists(st.integers(0, n_classes - 1), min_size=n_rows, max_size=n_rows)))


def _column(n_rows: int, shape: str) -> st.SearchStrategy[list[float]]:
    values = VALUES[:1] if shape == "constant" else VALUES
    missing = [float("nan")]
    some = st.sampled_from([values, values, values + missing, values[:2] + missing])
    return some.flatmap(lambda pool: st.lists(st.sampled_from(pool), min_size=n_rows, max_size=n_rows))


def _without_absent_classes(labels: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Number the classes that have rows; a lone class gets a second one."""
    present, dense = np.unique(labels, return_inverse=True)
    if len(present) == 1:
        dense = dense.copy()
        dense[0] = 1
    return dense, max(len(present), 2)


def read_real_table(name: str, part: str) -> Table:
    """A real data set; skips the test where there are none."""
    path = REAL_DATA / f"{name}.{part}.parquet"
    if not path.exists():
        pytest.skip(f"{path.name} is not at hand; EDGEWISE_TEST_DATA names the folder of the real data sets")
    columns = pq.read_table(path)
    labels = columns["label"].to_numpy()
    features = [name for name in columns.column_names if name != "label"]
    X = np.column_stack([columns[name].to_numpy() for name in features]).astype(np.float64)
    classes, dense = np.unique(labels, return_inverse=True)
    return Table(X, dense.astype(np.int32), len(classes))


def reference_options(label: str) -> Options:
    """Options from a short name such as "mh uniform free" (max_leaves is set apart)."""
    words = label.split()
    if words[0] == "adaboost":
        return Options("adaboost", free="free" in words)
    return Options("adaboost_mh", init_weights=words[1], free="free" in words)


LEARNERS = ("stump", "factorised", "free")
CONFIGURATIONS = [
    *(f"adaboost {learner}" for learner in LEARNERS),
    *(f"mh {weights} {learner}" for weights in ("asymmetric", "uniform", "balanced") for learner in LEARNERS),
]


def gain_matrix_of(values: NDArray[np.int64]) -> GainMatrix:
    """A gain matrix of given gains [n_rows, n_channels], laid out as the kernels want it."""
    n_rows, n_channels = values.shape
    padded = np.zeros((n_rows, width_for(n_channels + 1)), np.int32)
    padded[:, :n_channels] = values
    padded[:, n_channels] = 1
    return GainMatrix(padded, n_channels, 0, int(np.abs(values).sum()))


def random_codes(random: np.random.Generator, n_rows: int, sizes: Sequence[tuple[int, bool]]) -> BinnedCodes:
    """Random codes for features of (thresholds, has missing)."""
    made = binning.make_binning([np.arange(m, dtype=np.float64) for m, _ in sizes], [flag for _, flag in sizes])
    codes = np.empty((len(sizes), n_rows), np.uint8)
    for feature, (n_thresholds, has_missing) in enumerate(sizes):
        codes[feature] = random.integers(0, n_thresholds + 1 + has_missing, n_rows)
    return BinnedCodes(made, codes)
