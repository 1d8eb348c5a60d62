"""Sparse scores and the search on sparse gains, beside plain loops over all classes."""

import numpy as np
import pytest
from numpy.typing import NDArray

from boost_core import sparse_scores, sparse_search
from boost_core.config import Choice
from boost_core.cut import BIN, FEATURE, KIND, MISSING_LEFT, NO_CUT, RECORD_FIELDS, VALUE
from boost_core.fitted import Part, Speech, one_tree
from boost_core.scores import Scores, zero_scores
from boost_core.sparse_gains import Entries, SparseGains
from boost_core.sparse_rule import SPARSE_CLASSES, keeps_sparse
from boost_core.sparse_scores import zero_sparse_scores
from boost_core.team import Team
from boost_core.tree import Tree
from tests.builders import BinnedCodes, random_codes

Integers = NDArray[np.int64]
SIZES = [(4, True), (1, False), (6, False), (0, True), (0, False), (3, True)]


def all_leads(scores: Scores, labels: np.ndarray, n_rows: int) -> list[int]:
    """Found so many rows at a time."""
    return [lead for _, leads in scores.leads(labels, n_rows) for lead in leads.tolist()]


def written_out(scores: Scores) -> list[list[int]]:
    return [row for _, block in scores.blocks() for row in block.tolist()]


@pytest.mark.parametrize("n_classes", [2, 3, 9, 200])
def test_sparse_scores_are_those_of_all_pairs(monkeypatch: pytest.MonkeyPatch, n_classes: int):
    monkeypatch.setattr(sparse_scores, "BLOCK_SCORES", 30 * n_classes)
    random = np.random.default_rng(n_classes)
    labels = random.integers(0, n_classes, 70).astype(np.int32)
    copies = random.integers(1, 4, 70)
    sparse, dense = zero_sparse_scores(labels, n_classes), zero_scores(70, n_classes)
    added = []
    with Team(1) as team:
        for turn in range(12):
            answers = random.integers(0, n_classes, (5, 1)).astype(np.int32)
            leaves = random.integers(0, 5, 70).astype(np.int32)
            tree = Tree(np.empty((0, 6), np.int64), answers, 0, leaves)
            added.append((tree, 1 << 30 if turn == 8 else int(random.integers(1, 1 << 20))))
        back = [(tree, -units) for tree, units in reversed(added[4:])]
        for tree, units in [*added, *back]:
            for scores in (sparse, dense):
                scores.widen(np.array([units]), one_tree(tree, Speech.LABEL))
                scores.add(Part(tree), Speech.LABEL, units, tree.leaf_of_row, team)
            assert written_out(sparse) == written_out(sparse.wide()) == dense.values.tolist()
            assert all_leads(sparse, labels, 9) == all_leads(dense, labels, 70)
            for often in (None, copies):
                assert sparse.count_errors(labels, team, None, often) == dense.count_errors(labels, team, None, often)
    assert sparse.own.dtype == np.int64
    assert np.flatnonzero(sparse.answered).tolist() == sorted({int(a) for t, _ in added[:4] for a in t.payload[:, 0]})


def entries_of(dense: Integers, columns: Integers) -> Entries:
    """The entries of dense [n_rows, columns] that are not 0, named by columns."""
    rows, places = np.nonzero(dense)
    begin = np.searchsorted(rows, np.arange(dense.shape[0]))
    end = np.searchsorted(rows, np.arange(dense.shape[0]), side="right")
    return Entries(begin, end, columns[places].astype(np.int32), dense[rows, places])


def random_gains(random: np.random.Generator, n_rows: int, n_classes: int, n_hot: int) -> tuple[SparseGains, Integers]:
    """Sparse gains and the same with all entries, [n_rows, n_classes]; small numbers, so that there are ties."""
    hot_classes = np.sort(random.choice(n_classes, n_hot, replace=False)).astype(np.int32)
    dense = np.where(random.random((n_rows, n_classes)) < 0.2, random.integers(1, 5, (n_rows, n_classes)), 0)
    dense[:, hot_classes] *= random.choice([-1, 1], (n_rows, n_hot))
    cold = dense.copy()
    cold[:, hot_classes] = 0
    counts = random.integers(1, 3, n_rows)
    gains = SparseGains(
        np.empty((0, 0), np.int32),
        n_classes,
        0,
        int(np.abs(dense).sum()),
        mass=np.abs(dense).sum(axis=1),
        cold=entries_of(cold, np.arange(n_classes)),
        hot=entries_of(dense[:, hot_classes], np.arange(n_hot)),
        hot_classes=hot_classes,
        counts=counts,
        added=np.zeros(n_rows, np.int64),
        offset=0,
    )
    return gains, dense


def naive_best(binned: BinnedCodes, rows: Integers, dense: Integers) -> list[int]:
    """Value, feature, kind, bin, missing left of the first best cut, by trying all."""
    best = [NO_CUT, 0, 0, 0, 0]
    for feature, n_thresholds in enumerate(binned.binning.n_thresholds):
        codes, missing = binned.codes[feature, rows], n_thresholds + 1
        cuts = [(0, b, side) for b in range(n_thresholds) for side in (1, 0)] + [(1, 0, 1)]
        for kind, last, missing_left in cuts:
            left = (codes == missing) if kind else np.where(codes == missing, missing_left == 1, codes <= last)
            pointless = not (codes == missing).any() and (kind == 1 or missing_left == 0)
            if pointless or left.all() or not left.any():
                continue
            value = int(dense[rows][left].sum(axis=0).max() + dense[rows][~left].sum(axis=0).max())
            if value > best[0]:
                best = [value, feature, kind, last, missing_left]
    return best


@pytest.mark.parametrize(("n_classes", "n_hot"), [(7, 0), (7, 3), (5, 5), (60, 10)])
def test_search_finds_the_cut_of_plain_loops(n_classes: int, n_hot: int):
    for seed in range(12):
        random = np.random.default_rng(seed)
        binned = random_codes(random, 40, SIZES)
        binning = binned.binning
        gains, dense = random_gains(random, 40, n_classes, n_hot)
        rows = np.flatnonzero(random.random(40) < 0.6).astype(np.int32)
        table = np.full((int(binning.bin_start[-1]), n_hot + 1), 99, np.int64)
        with Team(1) as team:
            entries = gains.hot_by_class(rows, team)
        every = (0, len(SIZES))
        sparse_search.fill_table(binned.codes, entries, rows, gains.counts, binning.bin_start, every, table)
        m = int(sparse_search.count_entries(rows, gains.cold))
        labels, sums, places = np.empty(m, np.int32), np.empty(m, np.int64), np.empty(m, np.int32)
        sparse_search.node_entries(rows, gains.cold, labels, sums, places)
        n_labels = int(sparse_search.number_labels(labels, np.full(n_classes, -1, np.int32)))
        layout = (binning.bin_start, binning.n_thresholds, binning.has_missing, 0, 0)
        floor, best = 0 if n_hot < n_classes else sparse_search.NOTHING, np.zeros(RECORD_FIELDS, np.int64)
        cold = (places, labels, sums)
        sparse_search.search_sparse(table, layout, every, floor, binned.codes, cold, n_labels, best)
        wanted = naive_best(binned, rows, dense)
        assert [int(best[field]) for field in (VALUE, FEATURE, KIND, BIN, MISSING_LEFT)] == wanted


@pytest.mark.parametrize("n_hot", [0, 4, 12])
def test_sums_of_leaves_and_of_all_rows(n_hot: int):
    random = np.random.default_rng(n_hot)
    gains, dense = random_gains(random, 50, 12, n_hot)
    with Team(1) as team:
        assert gains.sums(team).tolist() == [*dense.sum(axis=0).tolist(), 0, int(gains.counts.sum())]
        kept = random.random(50) < 0.5
        wanted = [*dense[kept].sum(axis=0).tolist(), 0, int(gains.counts[kept].sum())]
        assert gains.only(kept).sums(team).tolist() == wanted
        rows = np.flatnonzero(kept).astype(np.int32)
        assert gains.sums_of(rows, team).tolist() == [*dense[rows].sum(axis=0).tolist(), int(gains.counts[rows].sum())]


def test_many_classes_and_plain_trees_keep_the_sparse_state():
    tree = Choice("tree", {"criterion": "error"})
    assert keeps_sparse(tree, SPARSE_CLASSES)
    assert not keeps_sparse(tree, SPARSE_CLASSES - 1)
    assert not keeps_sparse(Choice("tree", {"criterion": "gini"}), SPARSE_CLASSES)
    assert not keeps_sparse(Choice("hamming_tree", {}), SPARSE_CLASSES)
    assert not keeps_sparse(None, SPARSE_CLASSES)
