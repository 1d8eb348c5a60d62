"""Small tables, and the shortest way from one to a trained forest, alone or in a gang of threads."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from boost_core import binning
from boost_core.binning import Binning
from boost_core.catalogue import resolve_config
from boost_core.collective import Alone, Collective
from boost_core.config import TrainingConfig
from boost_core.model import Forest
from boost_core.prediction import forest_scores
from boost_core.records import RoundRecord, Silent
from boost_core.shard import Shard
from boost_core.team import Team
from boost_core.training import TrainingResult, train
from boost_core.training_data import TrainingData
from tests.builders import boosted

cases = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@dataclass(frozen=True)
class Table:
    """X float64 [n_rows, n_features], NaN = missing, binned; labels int32 [n_rows]."""

    X: NDArray[np.float64]
    labels: NDArray[np.int32]
    n_classes: int

    @property
    def binned(self) -> tuple[Binning, NDArray[np.uint8]]:
        found = [binning.distinct_values(np.ascontiguousarray(column), 255) for column in self.X.T]
        made = binning.make_binning([binning.midpoints(values) for values, _ in found], [lack for _, lack in found])
        codes = np.empty(self.X.T.shape, np.uint8)
        for feature, column in enumerate(self.X.T):
            binning.bin_column(np.ascontiguousarray(column), made.of_feature(feature), codes[feature])
        return made, codes


def random_table(seed: int, n_classes: int, n_rows: int = 40, n_features: int = 3, missing: float = 0.1) -> Table:
    """Few distinct values, so ties abound; labels depend on the features with noise; every class has a row."""
    random = np.random.default_rng(seed)
    X = random.integers(0, 5, (n_rows, n_features)).astype(np.float64)
    signal = X @ random.normal(size=n_features) + 0.5 * random.normal(size=n_rows)
    labels = np.searchsorted(np.quantile(signal, np.arange(1, n_classes) / n_classes), signal)
    labels[:n_classes] = np.arange(n_classes)
    X[random.random(X.shape) < missing] = np.nan
    return Table(X, labels.astype(np.int32), n_classes)


@st.composite
def tables(draw: Callable[[Any], Any], classes: tuple[int, ...]) -> Table:
    """Random rows; fewer rows than classes; copies with labels of their own; perfect separation; constant features."""
    n_classes, seed = draw(st.sampled_from(classes)), draw(st.integers(0, 2**32 - 1))
    shape = draw(st.sampled_from(["random", "random", "random", "few", "copies", "separable", "constant"]))
    random = np.random.default_rng(seed)
    n_features = int(random.integers(1, 4))
    table = random_table(seed, n_classes, int(random.integers(n_classes, 30)), n_features)
    if shape == "few":
        rows = slice(0, max(2, n_classes - 1))
        return Table(table.X[rows], table.labels[rows], n_classes)
    if shape == "copies":
        return replace(table, X=table.X[random.integers(0, 2, table.X.shape[0])])
    if shape == "separable":
        return replace(table, X=np.column_stack([table.X, table.labels]))
    if shape == "constant":
        return replace(table, X=np.ones_like(table.X))
    return table


def config_for(algorithm: dict[str, Any], rounds: int, seed: int = 0) -> TrainingConfig:
    return resolve_config({"algorithm": algorithm, "rounds": rounds, "seed": seed})


def train_whole(
    table: Table, rows: NDArray[np.int64], config: TrainingConfig, collective: Collective, threads: int = 1
) -> TrainingResult:
    """Train as the member that holds these rows, ascending; the constant model of a refused round 1 is kept."""
    made, codes = table.binned
    ranges = tuple((int(i), int(i) + 1) for i in rows)
    shard = Shard(np.ascontiguousarray(codes[:, rows]), table.labels[rows], ranges)
    counts = np.bincount(table.labels, minlength=table.n_classes).astype(np.int64)
    data = TrainingData(shard, shard, made, counts, table.labels.shape[0])
    with Team(threads) as team:
        return train(data, config, collective, Silent(), team)


def train_rows(
    table: Table, rows: NDArray[np.int64], config: TrainingConfig, collective: Collective, threads: int = 1
) -> TrainingResult:
    """The same, rounds of boosting alone."""
    return boosted(train_whole(table, rows, config, collective, threads))


def train_alone(table: Table, config: TrainingConfig, threads: int = 1) -> TrainingResult:
    return train_rows(table, np.arange(table.labels.shape[0]), config, Alone(), threads)


def train_gang(
    table: Table, config: TrainingConfig, members: int, train: Callable[..., TrainingResult] = train_rows
) -> list[TrainingResult]:
    """Every member's result; the rows are spread over the first three at most, so a fourth one holds none."""
    from workers.thread_group import ThreadGroup

    owner = np.random.default_rng(members).integers(0, min(members, 3), table.labels.shape[0])

    def member(collective: Collective) -> TrainingResult:
        return train(table, np.flatnonzero(owner == collective.rank), config, collective)

    return ThreadGroup(members).run(member)


def facts(result: TrainingResult) -> tuple[Any, ...]:
    """All that must not depend on the number of members."""
    arrays = {
        name: value.tobytes() if isinstance(value, np.ndarray) else str(value)
        for name, value in vars(result.forest).items()
        if name != "decoding"
    }
    records = [record._replace(bytes_reduced=0) for record in result.records]
    return arrays, result.forest.decoding.rule, result.forest.decoding.code.tobytes(), records, result.stop_reason


def ln_slack(record: RoundRecord, n_cells: int) -> float:
    """How far one round may move ln loss by rounding, where no step is capped."""
    return 1e-7 + n_cells / (2.0**28 * max(1 - record.edge, 1e-12))


def part_of(forest: Forest, start: int, stop: int) -> Forest:
    """Trees start..stop as a forest of their own (round_start is not kept)."""
    nodes = slice(int(forest.node_start[start]), int(forest.node_start[stop]))
    leaves = slice(int(forest.leaf_start[start]), int(forest.leaf_start[stop]))
    by_node = {name: value[nodes] for name, value in vars(forest).items() if name in NODE_ARRAYS}
    return replace(
        forest,
        node_start=forest.node_start[start : stop + 1] - forest.node_start[start],
        leaf_start=forest.leaf_start[start : stop + 1] - forest.leaf_start[start],
        payload=forest.payload[leaves],
        multiplier=forest.multiplier[start:stop],
        column=forest.column[start:stop],
        **by_node,
    )


NODE_ARRAYS = (
    "node_feature", "node_kind", "node_bin", "node_threshold", "node_missing_left", "node_left", "node_right",
)  # fmt: skip


def scores_by_round(forest: Forest, X: NDArray[np.float64]) -> list[NDArray[np.int64]]:
    """Scores after every round, by prediction from raw rows; the first entry is before round 1."""
    found = [np.zeros((X.shape[0], forest.n_columns), np.int64)]
    for number in range(forest.n_rounds):
        start, stop = int(forest.round_start[number]), int(forest.round_start[number + 1])
        found.append(found[-1] + forest_scores(part_of(forest, start, stop), X))
    return found


def cuts_by_round(forest: Forest) -> list[list[tuple[int, int, int, bool]]]:
    """Every node's (feature, kind, bin, missing left), by round."""
    fields = (forest.node_feature, forest.node_kind, forest.node_bin, forest.node_missing_left)
    cuts = list(zip(*(array.tolist() for array in fields), strict=True))
    edges = [int(forest.node_start[int(tree)]) for tree in forest.round_start]
    return [cuts[start:stop] for start, stop in pairwise(edges)]
