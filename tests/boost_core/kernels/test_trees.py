"""Rows down trees: by bins and by raw values, against a naive walk."""

import numpy as np
import pytest

from boost_core import forest as forests
from boost_core.decoding import plain_decoding
from boost_core.fitted import Speech, one_tree
from boost_core.model import Forest
from boost_core.prediction import forest_scores
from boost_core.scores import UNIT
from boost_core.team import Team
from boost_core.tree import Tree
from tests import reference
from tests.builders import BinnedTable, Table, bin_rows, bin_table, make_table, nested_tree


def random_tree(random: np.random.Generator, binned: BinnedTable, n_leaves: int, n_columns: int) -> Tree:
    """A tree of random cuts; also such as no training would choose."""
    nodes: list[list[int]] = []
    holders: list[tuple[int, int] | None] = [None]
    for _ in range(n_leaves - 1):
        leaf = int(random.integers(len(holders)))
        feature = int(random.integers(binned.binning.n_features))
        n_thresholds = int(binned.binning.n_thresholds[feature])
        kind = 1 if n_thresholds == 0 or random.random() < 0.2 else 0
        last_left = int(random.integers(n_thresholds)) if kind == 0 else 0
        missing_left = 1 if kind == 1 else int(random.integers(2))
        holder, node = holders[leaf], len(nodes)
        nodes.append([feature, kind, last_left, missing_left, ~leaf, ~len(holders)])
        if holder is not None:
            nodes[holder[0]][holder[1]] = node
        holders[leaf] = (node, 4)
        holders.append((node, 5))
    votes = random.choice(np.array([-1, 1], np.int32), (n_leaves, n_columns))
    empty = np.empty(0, np.int32)
    return Tree(np.array(nodes, np.int64).reshape(-1, 6), votes, 0, empty)


def random_forest(seed: int) -> tuple[BinnedTable, list[Tree], list[int]]:
    random = np.random.default_rng(seed)
    binned = bin_table(make_table(60, 4, 3, seed, missing=0.3))
    trees = [random_tree(random, binned, n_leaves, 3) for n_leaves in (1, 2, 5, 9)]
    return binned, trees, random.integers(1, 1 << 22, len(trees)).tolist()


def forest_of(trees: list[Tree], alphas: list[int], binned: BinnedTable) -> Forest:
    """A forest of three columns, a tree a round."""
    rounds = [one_tree(tree, Speech.VOTES) for tree in trees]
    return forests.make_forest(rounds, [np.array([alpha]) for alpha in alphas], plain_decoding(3), binned.binning)


@pytest.mark.parametrize("seed", range(5))
def test_rows_reach_the_same_leaf_by_bins_as_by_a_naive_walk(seed: int):
    binned, trees, alphas = random_forest(seed)
    forest = forest_of(trees, alphas, binned)
    grid = binned.grid()
    with Team(1) as team:
        for number, tree in enumerate(trees):
            nested = nested_tree(forest, number)
            wanted = [reference.route(nested, grid, row) for row in range(binned.table.n_rows)]
            assert forests.route(tree, binned.codes, binned.binning, team).tolist() == wanted


@pytest.mark.parametrize("seed", range(5))
def test_raw_rows_get_the_scores_of_their_bins(seed: int):
    binned, trees, alphas = random_forest(seed)
    forest = forest_of(trees, alphas, binned)
    grid = binned.grid()
    naive = np.zeros((binned.table.n_rows, 3), np.int64)
    for number, alpha in enumerate(alphas):
        nested = nested_tree(forest, number)
        for row in range(binned.table.n_rows):
            naive[row] += alpha * trees[number].payload[reference.route(nested, grid, row)]
    assert forest_scores(forest, binned.table.X).tolist() == naive.tolist()


def test_unseen_values_and_values_at_thresholds_go_where_their_bins_go():
    binned, trees, alphas = random_forest(7)
    thresholds = binned.binning.thresholds
    random = np.random.default_rng(0)
    values = np.concatenate([thresholds, np.nextafter(thresholds, -np.inf), [-np.inf, np.inf, -1e9, 1e9, np.nan, -0.0]])
    unseen = Table(random.choice(values, (200, 4)), np.zeros(200, np.int32), 3)
    forest = forest_of(trees, alphas, binned)
    codes = bin_rows(unseen, binned.binning)
    by_bins = np.zeros((200, 3), np.int64)
    with Team(1) as team:
        for tree, alpha in zip(trees, alphas, strict=True):
            by_bins += alpha * tree.payload[forests.route(tree, codes, binned.binning, team)]
    assert (forest_scores(forest, unseen.X) == by_bins).all()


def test_thresholds_of_nodes():
    binned, trees, _ = random_forest(1)
    nodes = trees[-1].nodes
    got = forests.node_thresholds(nodes, binned.binning)
    for (feature, kind, last_left, *_), threshold in zip(nodes.tolist(), got, strict=True):
        if kind == reference.THRESHOLD:
            assert threshold == binned.binning.of_feature(feature)[last_left]
        else:
            assert np.isnan(threshold)


def test_a_forest_without_trees_scores_zero():
    binned, _, _ = random_forest(2)
    empty = forest_of([], [], binned)
    assert (empty.n_trees, empty.n_rounds) == (0, 0)
    assert forest_scores(empty, binned.table.X).tolist() == [[0, 0, 0]] * binned.table.n_rows


def test_the_unit_of_scores():
    assert UNIT == reference.UNIT
