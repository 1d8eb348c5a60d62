"""Growth does not depend on how it is carried out: threads, kept histograms, members, speculation."""

import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from boost_core import bundles, growth, leaf_sums, lone_growth, team
from boost_core.catalogue import ALGORITHMS, resolve_config
from boost_core.collective import Alone
from boost_core.growth import Growth
from boost_core.jit import JIT_DISABLED
from boost_core.shard import Shard
from boost_core.team import Team
from boost_core.training import TrainingResult
from boost_core.tree import Tree
from boost_core.weak_learners.votes import Votes
from tests import reference
from tests.builders import (
    CONFIGURATIONS,
    BinnedTable,
    bin_table,
    config_for,
    forest_arrays,
    gain_matrix_of,
    make_table,
    member_data,
    nested_tree,
    random_codes,
    reference_options,
    scores_by_round,
    shard_of,
    shared_figures,
    train_alone,
    train_member,
)
from tests.reference import Options


def facts(result: TrainingResult) -> tuple[Any, ...]:
    return forest_arrays(result.forest), shared_figures(result.records), result.stop_reason


@pytest.fixture
def eager_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every piece of work goes to all threads, however small."""
    monkeypatch.setattr(growth, "WORTH_THREADS", -1)
    monkeypatch.setattr(team, "INLINE_WORK", -1)
    monkeypatch.setattr(team, "SHARED_WORK", -1)


@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_any_number_of_threads_gives_the_same_bits(eager_threads: None, configuration: str, threads: int):
    options = replace(reference_options(configuration), max_leaves=2 if "stump" in configuration else 7)
    binned = bin_table(make_table(90, 5, 2 if options.binary else 4, seed=threads))
    config = config_for(options, 12, "stump" in configuration)
    valid = make_table(50, 5, binned.table.n_classes, seed=11)
    alone, shared = (train_alone(binned, config, count, valid) for count in (1, threads))
    assert facts(shared) == facts(alone)


def test_threads_on_a_table_that_is_worth_them():
    binned = bin_table(make_table(9_000, 14, 6, seed=1))
    assert growth.WORTH_THREADS < 9_000 * 14 * 2
    assert lone_growth.WORTH_DIVIDING < 9_000 / 2  # rows are divided by several threads, too, more than once
    config = config_for(Options(max_leaves=9, free=True), 8)
    assert facts(train_alone(binned, config, 2)) == facts(train_alone(binned, config, 1))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("n_features", [2, 9, 40])
def test_features_counted_together_give_the_same_trees(
    eager_threads: None, monkeypatch: pytest.MonkeyPatch, threads: int, n_features: int
):
    table = make_table(400, n_features, 5, seed=n_features)
    binned = bin_table(replace(table, X=np.round(table.X)))
    sizes = np.diff(binned.binning.bin_start)
    assert len(bundles.neighbours(sizes, np.flatnonzero(sizes > 1))) >= 1
    config = config_for(Options(max_leaves=12, free=True), 8)
    with monkeypatch.context() as patched:
        patched.setattr(bundles, "ROOM_BYTES", 0)  # each by itself
        wanted = facts(train_alone(binned, config))
    monkeypatch.setattr(bundles, "ROWS_AN_ADDITION", 0)  # small leaves, too
    assert facts(train_alone(binned, config, threads)) == wanted
    oracle_agrees(binned, Options(max_leaves=6), 3, threads)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("kept", [2, 3, 5])
def test_fewer_kept_histograms_give_the_same_trees(monkeypatch: pytest.MonkeyPatch, free: bool, kept: int):
    """A leaf that lost its histogram has its children's built from their rows."""
    binned = bin_table(make_table(300, 4, 4, seed=kept))
    config = config_for(Options(init_weights="uniform", free=free, max_leaves=24), 6)
    wanted = facts(train_alone(binned, config))
    monkeypatch.setattr(growth, "SLOT_BYTES", kept * 8 * binned.table.n_classes * int(binned.binning.bin_start[-1]))
    assert facts(train_alone(binned, config)) == wanted


def oracle_agrees(binned: BinnedTable, options: Options, rounds: int, threads: int = 1) -> None:
    table = binned.table
    expected = reference.boost(binned.grid(), table.labels.tolist(), table.n_classes, options, rounds)
    forest = train_alone(binned, config_for(options, rounds), threads).forest
    assert forest.multiplier.tolist() == [each.alpha for each in expected.rounds]
    for number, each in enumerate(expected.rounds):
        assert nested_tree(forest, number) == each.tree
    assert scores_by_round(forest, table.X)[-1].tolist() == [list(row) for row in expected.rounds[-1].scores]


@pytest.mark.parametrize("free", [False, True])
def test_trees_larger_than_the_table_stop_by_themselves(free: bool):
    binned = bin_table(make_table(25, 3, 3, seed=5))
    oracle_agrees(binned, Options(free=free, max_leaves=60), 4)


@pytest.mark.parametrize("free", [False, True])
def test_threads_with_more_of_them_than_features_follow_the_oracle(eager_threads: None, free: bool):
    oracle_agrees(bin_table(make_table(40, 2, 3, seed=7)), Options(free=free, max_leaves=6), 5, threads=4)


@pytest.mark.parametrize("n_classes", [3, 4, 5, 7, 8, 26])
def test_any_number_of_channels_follows_the_oracle(n_classes: int):
    """Vectors of every width the kernels have."""
    table = make_table(60, 2, n_classes, seed=n_classes)
    oracle_agrees(bin_table(table), Options(max_leaves=4, free=True), 3)


@pytest.mark.parametrize("name", sorted(ALGORITHMS.keys() - {"adaboost_mr"}))  # which learns label sets only
def test_rows_that_are_not_counted_change_no_model(monkeypatch: pytest.MonkeyPatch, name: str):
    """Without the count, bins of four sums take one vector."""
    binned = bin_table(make_table(120, 4, 2 if ALGORITHMS[name].refusal(4) else 4, seed=4, missing=0.3))
    for kind in ALGORITHMS[name].weak_learners:
        algorithm = {"name": name, "row_fraction": 0.8, "weak_learner": {"kind": kind}}
        config = resolve_config({"algorithm": algorithm, "rounds": 4})
        got = facts(train_alone(binned, config))
        with monkeypatch.context() as patched:
            patched.setattr(growth, "sums_in_bins", lambda _, n_channels: n_channels + 1)
            assert facts(train_alone(binned, config)) == got, kind


@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")
def test_growth_is_compiled_once_for_any_number_of_channels():
    """Only what sums gains up knows of them, since growth takes several times as long to compile."""
    grown, summed = [], []
    for n_classes in (3, 4, 9):
        train_alone(bin_table(make_table(60, 2, n_classes, seed=1)), config_for(Options(max_leaves=4, free=True), 2))
        grown.append(len(lone_growth.grow.signatures))
        summed.append(len(leaf_sums._sum_up.signatures))
    assert len(set(grown)) == 1
    assert summed[-1] > 1


@pytest.mark.parametrize("max_bins", [2, 3, 8])
def test_few_bins_of_many_values_follow_the_oracle(max_bins: int):
    table = make_table(60, 3, 3, seed=max_bins)
    random = np.random.default_rng(0)
    table = replace(table, X=table.X + random.random(table.X.shape))
    binned = bin_table(table, max_bins)
    assert (binned.binning.n_thresholds < max_bins).all()
    assert (binned.binning.n_thresholds > 0).all()
    oracle_agrees(binned, Options(max_leaves=5), 6)


def test_all_255_bins_and_missing_values_follow_the_oracle():
    random = np.random.default_rng(2)
    table = make_table(300, 1, 3, seed=1)
    column = random.permutation(np.concatenate([np.arange(255.0), np.full(45, np.nan)]))
    binned = bin_table(replace(table, X=column.reshape(-1, 1)))
    assert binned.codes.max() == 255
    oracle_agrees(binned, Options(max_leaves=4), 2)


@pytest.mark.parametrize("seed", range(8))
def test_small_gains_beside_large_ones_follow_the_oracle(eager_threads: None, seed: int):
    """Whether a cut is worth it depends on its own leaf's gains: some of these add less than what is rounding of all
    rows, and are taken, and others are rounding of their own rows, and are not."""
    random, n_rows = np.random.default_rng(seed), 400
    case = random_codes(random, n_rows, [(1, False), (3, True), (5, False)])
    case.codes[0] = np.arange(n_rows) % 2
    noise = np.where(case.codes[2] < 2, 2, -1) * random.integers(0, 2, n_rows)
    gains = np.stack([np.full(n_rows, 1 << 30), np.full(n_rows, -(1 << 30)), noise], axis=1)
    is_small = case.codes[0] == 1
    bias = np.where(case.codes[2] >= 4, 3, -40)
    biased = bias[:, None] + random.integers(-4, 5, (n_rows, 3))
    gains[is_small] = biased[is_small]
    naive = reference.NaiveGrowth(case.grid(), gains.tolist(), True, 3)
    wanted = naive.grow(range(n_rows), 9)
    small = int(np.abs(gains).sum()) >> reference.GAIN_SHIFT
    assert any(node.best and 0 < node.best[0] - node.value <= small for node in nodes_of(wanted.root))
    left = [leaf for leaf in wanted.leaves if leaf.best and leaf.best[0] > leaf.value]
    assert any(not naive.increase(leaf) for leaf in left)
    shard = shard_of(case.codes, np.zeros(n_rows, np.int32), [(0, n_rows)])
    sums = np.array([*gains.sum(axis=0), n_rows], np.int64)
    for threads in (1, 4):
        with team.Team(threads) as members:
            grower = growth.Grower(shard, case.binning, Alone(), members)
            tree = grower.grow(Votes(free=True), gain_matrix_of(gains), sums, 9, 3)
        assert tree.value == wanted.value
        assert tree.nodes.shape[0] == len(wanted.leaves) - 1
        for number, leaf in enumerate(wanted.leaves):
            assert np.flatnonzero(tree.leaf_of_row == number).tolist() == sorted(leaf.rows)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", sorted(ALGORITHMS.keys() - {"adaboost_mr"}))  # which learns label sets only
def test_features_counted_together_give_every_algorithms_model(
    monkeypatch: pytest.MonkeyPatch, name: str, weighted: bool
):
    """Joint bins whose sums are 0 are passed over, which costs nobody a row that counts."""
    table = make_table(150, 6, 2 if ALGORITHMS[name].refusal(3) else 3, seed=1)
    binned = bin_table(replace(table, X=np.round(table.X)))
    data = member_data(binned)
    if weighted:
        copies = np.random.default_rng(0).integers(1, 9, 150)
        mass = np.bincount(table.labels, copies).astype(np.int64)
        data = replace(data, train=replace(data.train, copies=copies), class_counts=mass)
    for kind in ALGORITHMS[name].weak_learners:
        config = resolve_config({"algorithm": {"name": name, "weak_learner": {"kind": kind}}, "rounds": 4})
        with monkeypatch.context() as patched:
            patched.setattr(bundles, "ROOM_BYTES", 0)
            wanted = facts(train_member(data, config, Alone()))
        with monkeypatch.context() as patched:
            patched.setattr(bundles, "ROWS_AN_ADDITION", 0)
            assert facts(train_member(data, config, Alone())) == wanted, kind


def test_a_tree_stays_as_it_is_while_others_of_its_and_of_other_shapes_grow():
    """They grow in the same room. Each is the tree that a grower of its own gives."""
    random, n_rows = np.random.default_rng(5), 200
    case = random_codes(random, n_rows, [(7, False), (9, True), (30, False)])
    shard = shard_of(case.codes, np.zeros(n_rows, np.int32), [(0, n_rows)])
    shapes = [(9, 3), (9, 3), (4, 3), (9, 5), (9, 3), (4, 3)]  # leaves, channels
    grown: list[Tree] = []
    with team.Team(1) as alone:
        kept = growth.Grower(shard, case.binning, Alone(), alone)
        for (max_leaves, n_channels), turn in zip(shapes, range(len(shapes)), strict=True):
            gains = random.integers(-1000, 1000, (n_rows, n_channels))
            matrix, sums = gain_matrix_of(gains), np.array([*gains.sum(axis=0), n_rows], np.int64)
            if turn % 2:  # a sample of rows
                matrix.values[::3] = 0
                rows = np.flatnonzero(matrix.values[:, n_channels]).astype(np.int32)
                matrix = replace(matrix, rows=rows)
                sums = matrix.values[:, : n_channels + 1].sum(axis=0, dtype=np.int64)
            fresh = growth.Grower(shard, case.binning, Alone(), alone)
            grow = (Votes(free=True), matrix, sums, max_leaves, n_channels)
            grown += [kept.grow(*grow), fresh.grow(*grow)]
    assert len({each.nodes.tobytes() for each in grown}) == len(shapes)
    for one, other in zip(grown[::2], grown[1::2], strict=True):
        assert one.payload.tolist() == other.payload.tolist()
        assert one.nodes.tolist() == other.nodes.tolist()
        assert (one.value, one.leaf_of_row.tolist()) == (other.value, other.leaf_of_row.tolist())


@pytest.mark.skipif(JIT_DISABLED, reason="a call without compilation holds what it is given")
def test_gains_are_not_held_from_one_tree_to_the_next():
    """Those of a sample are made anew each round, and two of them would have to fit the memory."""
    random = np.random.default_rng(1)
    case = random_codes(random, 60, [(5, True)] * 3)
    shard, gains = shard_of(case.codes, np.zeros(60, np.int32), [(0, 60)]), random.integers(-1000, 1000, (60, 3))
    with team.Team(1) as alone:
        grower = growth.Grower(shard, case.binning, Alone(), alone)
        matrix, sums = gain_matrix_of(gains), np.array([*gains.sum(axis=0), 60], np.int64)
        held = weakref.ref(matrix.values)
        tree = grower.grow(Votes(free=True), matrix, sums, 4, 3)
        del matrix
        assert tree.nodes.shape[0] == 3
        assert held() is None


def nodes_of(node: reference.Node) -> list[reference.Node]:
    """The nodes that were cut."""
    if node.left is None or node.right is None:
        return []
    return [node, *nodes_of(node.left), *nodes_of(node.right)]


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
@pytest.mark.parametrize("n_features", [1, 2, 7, 16, 64])
@pytest.mark.parametrize("n_channels", [10, 26])
def test_each_thread_has_blocks_of_whole_passes(eager_threads: None, n_channels: int, n_features: int, threads: int):
    codes = random_codes(np.random.default_rng(0), 20, [(99, False)] * n_features)
    matrix, growing = gain_matrix_of(np.ones((20, n_channels), np.int64)), Growth(Votes(True), 4, n_channels)
    with Team(threads) as some:
        grower = growth.Grower(Shard(codes.codes, np.zeros(20, np.int32), ((0, 20),)), codes.binning, Alone(), some)
        given = grower.growing(growing, matrix, matrix.sums(some))
    assert given is not None
    begins, together = given.blocks.edges[:, 0].tolist(), growth.features_a_pass(n_channels + 1)
    assert begins[0] == 0
    assert begins[-1] == n_features
    assert len(begins) - 1 <= growth.BLOCKS_A_THREAD * threads
    sizes = np.diff(begins)
    assert (sizes > 0).all()
    assert len(sizes) >= min(threads, n_features)
    assert (sizes % together != 0).sum() <= threads  # but for the last one of a thread


def test_a_table_without_cuts_has_one_block(eager_threads: None):
    """Kernels read what the first block has found."""
    codes = random_codes(np.random.default_rng(0), 20, [(0, False)] * 3)
    matrix = gain_matrix_of(np.ones((20, 4), np.int64))
    with Team(2) as some:
        grower = growth.Grower(Shard(codes.codes, np.zeros(20, np.int32), ((0, 20),)), codes.binning, Alone(), some)
        given = grower.growing(Growth(Votes(True), 4, 4), matrix, matrix.sums(some))
        tree = grower.grow(Votes(True), matrix, matrix.sums(some), 4, 4)
    assert given is not None
    assert given.blocks.edges.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert len(tree.nodes) == 0
    assert tree.leaf_of_row.tolist() == [0] * 20


def test_parts_are_as_even_as_weights_let_them_be():
    for weights, parts, wanted in (
        ([101] * 16, 2, [0, 8, 16]),
        ([96, 101, 101, 97] * 4, 2, [0, 8, 16]),
        ([250, 2, 2], 3, [0, 0, 1, 3]),
        ([2, 2, 250], 2, [0, 2, 3]),
        ([5], 2, [0, 1, 1]),
        ([], 2, [0, 0, 0]),
    ):
        assert growth.even_edges(np.array(weights, np.int64), parts).tolist() == wanted
