"""Gains and draws kept in lists, beside plain loops over all classes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boost_core import sparse_gains, sparse_rule
from boost_core.algorithms.adaboost_m1 import AdaBoostM1
from boost_core.algorithms.base import Problem
from boost_core.algorithms.exponential_hits import ExponentialHits
from boost_core.algorithms.samme import Samme
from boost_core.algorithms.sparse_draws import Weights, accumulate, draw_pairs, drawn_label
from boost_core.config import Choice
from boost_core.draws import draw
from boost_core.fitted import Part, Speech, one_tree
from boost_core.scores import zero_scores
from boost_core.sparse_gains import Entries, SparseGains, hot_places
from boost_core.sparse_scores import zero_sparse_scores
from boost_core.team import Team
from boost_core.tree import Tree
from tests.calling import called

TREE = Choice("tree", {"criterion": "error"})


def written_out(gains: SparseGains) -> list[list[int]]:
    """All gains as they are stored."""
    found = np.zeros((gains.mass.shape[0], gains.n_channels), np.int64)
    for i in range(found.shape[0]):
        for entries, classes in ((gains.cold, None), (gains.hot, gains.hot_classes)):
            for k in range(entries.begin[i], entries.end[i]):
                column = int(entries.columns[k])
                found[i, column if classes is None else classes[column]] += entries.gains[k]
    return found.tolist()


def weights_of(
    labels: list[int], touched: list[dict[int, int]], u: list[int], n_classes: int, use_max: bool
) -> Weights:
    """Weights of rows with these E of touched labels; some own labels have hot entries, as answered ones do."""
    rows = []
    for i, own in enumerate(labels):
        row = [(c, u[i] - e) for c, e in sorted(touched[i].items())]
        rows.append([*row, (own, 77)] if i % 2 else row)
    sizes = np.cumsum([0, *(len(row) for row in rows)])
    flat = [entry for row in rows for entry in row]
    classes = np.array(sorted({c for c, _ in flat}), np.int32)
    columns = np.searchsorted(classes, [c for c, _ in flat]).astype(np.int32)
    hot = Entries(sizes[:-1].copy(), sizes[1:].copy(), columns, np.array([g for _, g in flat], np.int32))
    pairs = [(n_classes - 1 - len(row)) * each + sum(row.values()) for each, row in zip(u, touched, strict=True)]
    numbers = (np.array(u, np.int64), np.array(pairs, np.int64))
    return Weights(np.array(labels, np.int32), *numbers, hot, classes, n_classes, use_max)


def parts_of(own: int, row: dict[int, int], u: int, n_classes: int, use_max: bool) -> list[int]:
    """The weights of a row's labels."""
    E = [0 if c == own else row.get(c, u) for c in range(n_classes)]
    cover = max(E) if use_max else sum(E)
    return [sum(E) + cover if c == own else cover - E[c] for c in range(n_classes)]


@st.composite
def states(draw_from: st.DrawFn) -> tuple[list[int], list[dict[int, int]], list[int], int]:
    """Labels, E of touched labels, u and the number of classes; E is above u where it is stored."""
    n_classes = draw_from(st.integers(2, 9))
    labels = draw_from(st.lists(st.integers(0, n_classes - 1), min_size=1, max_size=6))
    u = [draw_from(st.integers(0, 4)) for _ in labels]
    touched = []
    for own, least in zip(labels, u, strict=True):
        others = draw_from(st.sets(st.integers(0, n_classes - 1), max_size=n_classes))
        touched.append({c: least + draw_from(st.integers(1, 5)) for c in sorted(others - {own})})
    return labels, touched, u, n_classes


@settings(deadline=None)
@given(state=states(), use_max=st.booleans())
def test_an_integer_falls_to_the_label_that_it_falls_to_among_all(
    state: tuple[list[int], list[dict[int, int]], list[int], int], use_max: bool
):
    labels, touched, u, n_classes = state
    weights, bounds = weights_of(*state, use_max), np.empty(len(labels) + 1, np.int64)
    accumulate(weights, bounds)
    for i, own in enumerate(labels):
        parts = parts_of(own, touched[i], u[i], n_classes, use_max)
        assert bounds[i + 1] - bounds[i] == sum(parts)
        cover = sum(parts) // n_classes
        found = [int(called(drawn_label)(weights, i, np.int64(cover), np.int64(rest))) for rest in range(sum(parts))]
        assert found == [label for label, part in enumerate(parts) for _ in range(part)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("use_max", [True, False])
def test_draws_are_counted_pair_by_pair(monkeypatch: pytest.MonkeyPatch, use_max: bool, threads: int):
    monkeypatch.setattr(sparse_gains, "MOST_HOT", 2)
    labels, u, n_classes, n_draws = [0, 3, 1, 4, 2], [2, 0, 1, 3, 2], 5, 400
    touched = [{2: 5}, {0: 4, 1: 1}, {}, {0: 4, 1: 5, 2: 6, 3: 7}, {4: 3}]
    weights, bounds = weights_of(labels, touched, u, n_classes, use_max), np.empty(6, np.int64)
    accumulate(weights, bounds)
    # this member holds two ranges: rows 0..1 come third among all members' and rows 2..4 first; 11 is another's
    edges, held = bounds[[0, 2, 5]], np.diff(bounds[[0, 2, 5]])
    spans = np.stack([np.array([held[1] + 11, 0, 0]), edges], axis=1)
    total, wanted = int(bounds[-1]) + 11, np.zeros((5, n_classes), np.int64)
    parts = [parts_of(own, row, least, n_classes, use_max) for own, row, least in zip(labels, touched, u, strict=True)]
    flat = [
        (i, c)
        for i in (2, 3, 4, -1, 0, 1)
        for c in range(n_classes if i >= 0 else 1)
        for _ in range(weight(parts, i, c))
    ]
    assert len(flat) == total
    with np.errstate(over="ignore"):  # the draws' words wrap around
        drawn_at = [int(draw(np.uint64(5), number, total)) for number in range(n_draws)]
    for i, c in (flat[at] for at in drawn_at):
        wanted[i, c] += i >= 0
    nothing = np.zeros(5, np.int64)
    empty = Entries(nothing, nothing, np.empty(0, np.int32), nothing)
    whole = SparseGains(
        np.empty((0, 0), np.int32), n_classes, 3, 0, mass=nothing, cold=empty, hot=empty,
        hot_classes=np.empty(0, np.int32), counts=np.ones(5, np.int64), added=nothing + 1, offset=5,
    )  # fmt: skip
    with Team(threads) as team:
        drawn = draw_pairs(whole, weights, bounds, (5, n_draws, total, spans), np.array([1, 0, 4, 3, 1]), team)
    assert drawn.hot_classes.tolist() == [2, 3]
    assert written_out(drawn) == wanted.tolist()
    assert drawn.mass.tolist() == wanted.sum(axis=1).tolist()
    assert (drawn.total_mass, drawn.offset, drawn.scale) == (int(wanted.sum()), 0, 3)
    assert 0 < drawn.total_mass < n_draws


def weight(parts: list[list[int]], i: int, c: int) -> int:
    """Of a label of this member's row, or all of another one's."""
    return parts[i][c] if i >= 0 else 11


@pytest.mark.parametrize("algorithm", [AdaBoostM1, Samme])
@pytest.mark.parametrize("weighted", [False, True])
def test_gains_of_right_answers_are_those_of_the_matrix(
    monkeypatch: pytest.MonkeyPatch, algorithm: type[ExponentialHits], weighted: bool
):
    random, n_rows, n_classes = np.random.default_rng(weighted), 60, 7
    monkeypatch.setattr(sparse_gains, "MOST_HOT", 3)
    labels = random.integers(0, n_classes, n_rows).astype(np.int32)
    copies = random.integers(1, 5, n_rows) if weighted else None
    counts = np.bincount(labels, weights=copies, minlength=n_classes).astype(np.int64)
    sparse, dense = zero_sparse_scores(labels, n_classes), zero_scores(n_rows, n_classes)
    with Team(2) as team:
        problem = Problem(labels, counts, team, weak_learner=TREE, copies=copies)
        both = []
        for limit in (1, n_classes + 1):
            monkeypatch.setattr(sparse_rule, "SPARSE_CLASSES", limit)
            both.append(algorithm(problem, {}))
        assert [each.sparse for each in both] == [True, False]
        for _ in range(8):
            peaks = [one.peaks(scores) for one, scores in zip(both, (sparse, dense), strict=True)]
            assert peaks[0].tolist() == peaks[1].tolist()
            lists, matrix = (one.gains(scores, peaks[0]) for one, scores in zip(both, (sparse, dense), strict=True))
            assert isinstance(lists.matrix, SparseGains)
            assert written_out(lists.matrix) == matrix.matrix.values[:, :n_classes].tolist()
            assert lists.matrix.mass.tolist() == np.abs(matrix.matrix.values[:, :n_classes]).sum(axis=1).tolist()
            assert lists.matrix.counts.tolist() == matrix.matrix.values[:, n_classes].tolist()
            assert (lists.totals.tolist(), lists.shift) == (matrix.totals.tolist(), matrix.shift)
            assert (lists.matrix.total_mass, lists.matrix.scale) == (matrix.matrix.total_mass, matrix.matrix.scale)
            answers = random.integers(0, n_classes, (4, 1)).astype(np.int32)
            tree = Tree(np.empty((0, 6), np.int64), answers, 0, random.integers(0, 4, n_rows).astype(np.int32))
            for scores in (sparse, dense):
                scores.widen(np.array([1 << 19]), one_tree(tree, Speech.LABEL))
                scores.add(Part(tree), Speech.LABEL, 1 << 19, tree.leaf_of_row, team)
        assert lists.matrix.hot_classes.shape[0] == 3


def test_the_classes_of_most_answers_have_tables(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sparse_gains, "MOST_HOT", 2)
    for answered, wanted in (([0, 0, 0], []), ([0, 3, 0], [1]), ([2, 1, 2, 2], [0, 2]), ([1, 5, 1, 4], [1, 3])):
        hot_classes, places = hot_places(np.array(answered, np.int64))
        assert hot_classes.tolist() == wanted
        assert places.tolist() == [wanted.index(c) if c in wanted else -1 for c in range(len(answered))]
