"""Small tables, training on them alone or in a gang, and the checks that every single-label algorithm passes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from boost_core.binning import Binning, make_binning
from boost_core.catalogue import resolve_config
from boost_core.collective import Alone, Collective
from boost_core.model import Forest
from boost_core.records import Silent
from boost_core.shard import RowRange, Shard
from boost_core.team import Team
from boost_core.training import TrainingResult, train
from boost_core.training_data import TrainingData
from tests.boost_core.algorithms import oracle_single_label as oracle
from tests.boost_core.algorithms.oracle_trees import Grid
from tests.builders import boosted

ROUNDS = 6
Body = dict[str, Any]

small = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    phases=[Phase.explicit, Phase.generate],  # shrinking takes long, and the examples are small already
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@dataclass(frozen=True)
class Table:
    """Binned rows: codes uint8 [n_features, n_rows]; the code after the last bin is a missing value."""

    codes: NDArray[np.uint8]
    labels: NDArray[np.int32]
    n_classes: int
    binning: Binning

    @property
    def n_rows(self) -> int:
        return int(self.labels.shape[0])

    @property
    def counts(self) -> NDArray[np.int64]:
        return np.bincount(self.labels, minlength=self.n_classes).astype(np.int64)

    def grid(self) -> Grid:
        return Grid(self.codes.T.tolist(), self.binning.n_thresholds.tolist())

    def data(self, ranges: Sequence[RowRange]) -> TrainingData:
        """What the member with these rows holds."""
        rows = np.concatenate([np.empty(0, np.int64), *(np.arange(*span) for span in ranges)]).astype(np.int64)
        shard = Shard(np.ascontiguousarray(self.codes[:, rows]), self.labels[rows], tuple(ranges))
        return TrainingData(shard, None, self.binning, self.counts)


def make_table(columns: Sequence[Sequence[int]], labels: Sequence[int], n_classes: int, n_bins: int = 4) -> Table:
    """columns: codes of each feature, 0..n_bins - 1, or n_bins for missing."""
    codes = np.array(columns, np.uint8).reshape(len(columns), len(labels))
    missing = [bool((column == n_bins).any()) for column in codes]
    thresholds = [np.arange(n_bins - 1, dtype=np.float64)] * len(columns)
    return Table(codes, np.array(labels, np.int32), n_classes, make_binning(thresholds, missing))


def random_table(seed: int, n_rows: int = 40, n_classes: int = 3, n_features: int = 3, noise: float = 1.0) -> Table:
    """Labels follow the features, with noise; the second feature has missing values."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, 4, (n_features, n_rows))
    signal = random.normal(size=n_features) @ codes + noise * random.normal(size=n_rows)
    labels = np.searchsorted(np.quantile(signal, np.arange(1, n_classes) / n_classes), signal)
    if n_features > 1:
        codes[1][random.random(n_rows) < 0.2] = 4
    return make_table(codes.tolist(), labels.tolist(), n_classes)


@st.composite
def tables(draw: Callable[[Any], Any]) -> Table:
    """Random rows; rows drawn value by value; copies with different labels; a perfect feature; constant features.

    Two, three or five classes, some of them absent, and at times fewer rows than classes.
    """
    n_classes = draw(st.sampled_from([3, 2, 5]))
    shape = draw(st.sampled_from(["random", "random", "drawn", "copies", "separable", "constant", "few"]))
    n_features = draw(st.integers(1, 3))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    if shape == "random":
        noise = draw(st.sampled_from([0.3, 1.0, 4.0]))
        return random_table(seed, int(random.integers(6, 45)), n_classes, n_features, noise)
    n_rows = int(random.integers(2, n_classes + 1)) if shape == "few" else int(random.integers(2, 30))
    columns = random.integers(0, draw(st.sampled_from([2, 4, 5])), (n_features, n_rows))
    labels = random.integers(0, n_classes, n_rows)
    if shape == "copies":
        columns = columns[:, random.integers(0, min(n_rows, 3), n_rows)]
    elif shape == "constant":
        columns[:] = 1
    elif shape == "separable":
        labels = np.minimum(columns[0], n_classes - 1)
    return make_table(columns.tolist(), labels.tolist(), n_classes)


# --- training -----------------------------------------------------------------------------------------------


def full_body(body: Body) -> Body:
    """The request's algorithm with all defaults."""
    config = resolve_config({"algorithm": body})
    learner = {"kind": config.weak_learner.name, **config.weak_learner.parameters}
    return {"name": config.algorithm.name, **config.algorithm.parameters, "weak_learner": learner}


def train_member(data: TrainingData, body: Body, rounds: int, collective: Collective, seed: int) -> TrainingResult:
    config = resolve_config({"algorithm": body, "rounds": rounds, "seed": seed})
    with Team(1) as team:
        return boosted(train(data, config, collective, Silent(), team))


def train_alone(table: Table, body: Body, rounds: int = ROUNDS, seed: int = 0) -> TrainingResult:
    return train_member(table.data([(0, table.n_rows)]), body, rounds, Alone(), seed)


def nested_trees(forest: Forest) -> list[tuple]:
    """(cut, left, right) for a node, (leaf number, payload) for a leaf, of every tree."""

    def describe(tree: int, place: int) -> tuple:
        if place < 0:
            return ~place, tuple(forest.payload[forest.leaf_start[tree] + ~place].tolist())
        node = int(forest.node_start[tree]) + place
        cut = (
            int(forest.node_feature[node]),
            int(forest.node_kind[node]),
            int(forest.node_bin[node]),
            bool(forest.node_missing_left[node]),
        )
        return cut, describe(tree, int(forest.node_left[node])), describe(tree, int(forest.node_right[node]))

    has_nodes = np.diff(forest.node_start) > 0
    return [describe(tree, 0 if has_nodes[tree] else -1) for tree in range(forest.n_trees)]


def payload_of(nested: tuple, grid: Grid, row: int) -> tuple[int, ...]:
    while len(nested) == 3:
        cut, left, right = nested
        nested = left if grid.goes_left(row, cut) else right
    return nested[1]


def scores_by_round(table: Table, result: TrainingResult) -> list[NDArray[np.float64]]:
    """F before round 1 and after every round, float64 [n_rows, n_classes], of trees that answer or vote."""
    grid, label = table.grid(), result.forest.speech == "label"
    found = [np.zeros((table.n_rows, table.n_classes))]
    for nested, multiplier in zip(nested_trees(result.forest), result.forest.multiplier.tolist(), strict=True):
        F = found[-1].copy()
        for i in range(table.n_rows):
            said = payload_of(nested, grid, i)
            F[i] += multiplier * 2.0**-20 * (np.arange(table.n_classes) == said[0] if label else np.array(said))
        found.append(F)
    return found


def outcomes_by_round(table: Table, result: TrainingResult) -> list[NDArray[np.int64]]:
    """sigma(i, l) in {-1, 0, +1} of every round's weak learner, int64 [n_rows, n_classes]; 0 at the true label."""
    grid, label = table.grid(), result.forest.speech == "label"
    found = []
    for nested in nested_trees(result.forest):
        sigma = np.zeros((table.n_rows, table.n_classes), np.int64)
        for i, y in enumerate(table.labels):
            said = payload_of(nested, grid, i)
            H = 2 * (np.arange(table.n_classes) == said[0]) - 1 if label else np.array(said)
            sigma[i] = (H[y] - H) // 2
        found.append(sigma)
    return found


def pair_weights(table: Table, F: NDArray[np.float64]) -> NDArray[np.float64]:
    """E(i,l) = exp(F(i,l) - F(i,y)), 0 at the true label."""
    rows = np.arange(table.n_rows)
    E = np.exp(F - F[rows, table.labels][:, None])
    E[rows, table.labels] = 0.0
    return E


def strict_error(table: Table, F: NDArray[np.float64]) -> float:
    rows = np.arange(table.n_rows)
    others = F.copy()
    others[rows, table.labels] = -np.inf
    return float((others.max(axis=1) >= F[rows, table.labels]).mean())


# --- checks -------------------------------------------------------------------------------------------------


def check_oracle(table: Table, body: Body, rounds: int = ROUNDS, seed: int = 0) -> TrainingResult:
    """The engine equals the integer oracle: trees, steps and errors to the bit."""
    expected = oracle.boost(table.grid(), table.labels.tolist(), table.n_classes, full_body(body), rounds, seed)
    result = train_alone(table, body, rounds, seed)
    check_run(table, result, expected)
    return result


def check_run(table: Table, result: TrainingResult, expected: oracle.NaiveRun) -> None:
    """Trees, steps and errors of a run equal those of an oracle to the bit."""
    assert result.stop_reason == expected.stop_reason
    assert result.forest.multiplier.tolist() == [each.units for each in expected.rounds]
    assert nested_trees(result.forest) == [each.tree for each in expected.rounds]
    for record, wanted in zip(result.records, expected.rounds, strict=True):
        assert record.alpha == wanted.alpha
        assert record.edge == pytest.approx(wanted.edge, rel=1e-12, abs=1e-12)
        assert record.train_error == wanted.wrong / table.n_rows
        assert record.strict_train_error == wanted.strictly_wrong / table.n_rows
        assert record.ln_loss == pytest.approx(wanted.ln_loss, rel=1e-12, abs=1e-12)
        assert record.ln_bound == pytest.approx(wanted.ln_bound, rel=1e-9, abs=1e-9)
    if expected.rounds:
        last = scores_by_round(table, result)[-1] * 2.0**20
        assert last.astype(np.int64).tolist() == [list(row) for row in expected.rounds[-1].scores]


def check_gang(table: Table, body: Body, rounds: int = ROUNDS, seed: int = 0) -> None:
    """1, 2 and 3 members give one forest, however the rows are dealt out."""
    groups = pytest.importorskip("workers.thread_group")
    alone = train_alone(table, body, rounds, seed)
    a, b, n = table.n_rows // 3, table.n_rows // 2, table.n_rows
    for dealt in ([[(0, n)]], [[(b, n)], [(0, b)]], [[(0, a), (b, n)], [], [(a, b)]]):
        members = groups.ThreadGroup(len(dealt)).run(
            lambda end, dealt=dealt: train_member(table.data(dealt[end.rank]), body, rounds, end, seed)
        )
        for member in members:
            assert forest_arrays(member.forest) == forest_arrays(alone.forest)
            assert [record.ln_loss for record in member.records] == [record.ln_loss for record in alone.records]
            assert member.stop_reason == alone.stop_reason
            assert member.margins == alone.margins


def check_same(one: TrainingResult, other: TrainingResult) -> None:
    """The same forest and figures, to the bit."""
    assert forest_arrays(one.forest) == forest_arrays(other.forest)
    assert [(r.edge, r.alpha, r.ln_loss) for r in one.records] == [(r.edge, r.alpha, r.ln_loss) for r in other.records]
    assert one.stop_reason == other.stop_reason


def forest_arrays(forest: Forest) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    return {
        name: (str(array.dtype), array.shape, np.ascontiguousarray(array).tobytes())
        for name, array in vars(forest).items()
        if isinstance(array, np.ndarray)
    }


def check_pair_bounds(table: Table, result: TrainingResult, unit: float = 1.0) -> None:
    """Every round: the float64 loss, edge and factor at the engine's scores; unit: exponent of a score of 1."""
    scores = scores_by_round(table, result)
    ln_bound = math.log(table.n_classes - 1)
    for t, (record, sigma) in enumerate(zip(result.records, outcomes_by_round(table, result), strict=True)):
        E, after = pair_weights(table, unit * scores[t]), pair_weights(table, unit * scores[t + 1])
        edge = float((E * sigma).sum() / E.sum())
        assert record.edge == pytest.approx(edge, abs=1e-6)
        assert record.ln_loss == pytest.approx(math.log(after.sum() / table.n_rows), abs=(t + 1) * 1e-7)
        factor = math.sqrt(max(1 - edge * edge, math.exp(2 * oracle.CAPPED_LN_FACTOR)))
        assert after.sum() / E.sum() <= factor + 1e-6
        ln_bound += math.log(factor)
        assert math.log(after.sum() / table.n_rows) <= ln_bound + (t + 1) * 1e-6
        assert strict_error(table, scores[t + 1]) <= after.sum() / table.n_rows + 1e-9
