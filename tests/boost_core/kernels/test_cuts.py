"""Partition and the search for the best cut against brute force."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from boost_core import objective
from boost_core.cut import (
    BIN,
    FEATURE,
    KIND,
    MASS,
    MISSING_LEFT,
    NO_CUT,
    RECORD_FIELDS,
    VALUE,
    FeatureSlices,
    divide,
    join_sides,
    partition,
    slice_features,
)
from boost_core.cut_search import left_sums, room_for_search, search_next, start_search
from boost_core.gain_matrix import channel_sums
from boost_core.gang_steps import new_frontier, note, settle
from boost_core.histogram import HistogramBuilder
from boost_core.intrinsics import width_for
from boost_core.jit import kernel
from boost_core.objective import set_leaves, set_root, sums_in_bins
from boost_core.team import Team
from boost_core.tree import GAIN_SHIFT
from boost_core.weak_learners.impurity import Impurity
from boost_core.weak_learners.labels import Labels
from boost_core.weak_learners.means import Means
from boost_core.weak_learners.real_tree import RealLeaves
from boost_core.weak_learners.vector_tree import Norms
from boost_core.weak_learners.votes import Votes
from tests import reference
from tests.builders import BinnedCodes, gain_matrix_of, random_codes
from tests.calling import called

SEEDS = range(12)


@kernel
def value_root(objective, sums, payload):
    """objective.set_root, callable from Python."""
    return set_root(objective, sums, sums.shape[0] - 1, payload)


@kernel
def value_leaves(objective, left, right, payloads):
    """objective.set_leaves, callable from Python; payloads: OUT [2, n_outputs]."""
    return set_leaves(objective, left, right, left.shape[0] - 1, payloads[0], payloads[1])


@kernel
def search_all(objective, hist, sums, layout, features, room, best):
    """best (OUT): of some features, in order."""
    best[VALUE] = NO_CUT
    sides, excess = (room[0], room[1]), (room[2], room[3])
    value = start_search(objective, sums, hist.shape[1], sides)
    for j in features:
        search_next(objective, value, hist, sums, layout, j, sides, excess, best)


@kernel
def sums_of(record, hist, layout):
    """record (IN, OUT): the sums of its cut's left side, behind it."""
    left_sums(hist, layout, record, record[RECORD_FIELDS:])


def random_case(seed: int) -> tuple[BinnedCodes, np.ndarray, np.random.Generator]:
    """Small gains and few bins: equal values are common."""
    random = np.random.default_rng(seed)
    n_rows, n_features, n_channels = (int(random.integers(1, most)) for most in (30, 5, 6))
    sizes = [(int(random.integers(0, 5)), bool(random.integers(2))) for _ in range(n_features)]
    gains = random.integers(-3, 4, (n_rows, n_channels))
    return random_codes(random, n_rows, sizes), gains, random


def search(case: BinnedCodes, gains: np.ndarray, free: bool, slices: FeatureSlices, counted: bool = True) -> np.ndarray:
    """The record of the best cut in one member's slice; counted: whether histograms count rows."""
    matrix = gain_matrix_of(gains)
    with Team(1) as team:
        builder = HistogramBuilder(case.codes, case.binning, team)
        [hist] = builder.empty(1, width_for(gains.shape[1] + counted))
        builder.add(matrix, None, hist)
        own = np.ascontiguousarray(hist[slices.bins[slices.rank] : slices.bins[slices.rank + 1]])
        sums = channel_sums(matrix, team)
    binning, origin = case.binning, int(slices.bins[slices.rank])
    layout = (binning.bin_start, binning.n_thresholds, binning.has_missing, origin)
    record = np.zeros(RECORD_FIELDS + len(sums), np.int64)
    room = np.empty(room_for_search(own.shape[1]), np.int64)
    search_all(Votes(free), own, sums, layout, np.arange(*slices.own), room, record[:RECORD_FIELDS])
    if record[VALUE] != NO_CUT:
        sums_of(record, own, layout)
    return record


def as_cut(record: np.ndarray) -> tuple[int, int, int, bool]:
    return int(record[FEATURE]), int(record[KIND]), int(record[BIN]), bool(record[MISSING_LEFT])


def best_cut(case: BinnedCodes, gains: np.ndarray, free: bool) -> tuple[int, tuple[int, int, int, bool]] | None:
    """The oracle's best cut of all rows, if it gains anything: which of the others is found is of no interest."""
    rows = range(len(gains))
    best = reference.best_cut(case.grid(), gains.tolist(), rows, free)
    own = sum(map(abs, reference.column_sums(gains.tolist(), rows, gains.shape[1])))
    return best if best is not None and best[0] > own else None


@pytest.mark.parametrize(("free", "counted"), [(False, True), (True, True), (True, False)])
@pytest.mark.parametrize("seed", range(40))
def test_best_cut_of_a_node(seed: int, free: bool, counted: bool):
    case, gains, _ = random_case(seed)
    grid, rows = case.grid(), range(len(gains))
    best = best_cut(case, gains, free)
    record = search(case, gains, free, slice_features(case.binning, 0, 1), counted)
    if best is None:
        assert record[VALUE] <= abs(gains.sum(axis=0)).sum()
        return
    value, cut = best
    left, _ = reference.partition(grid, rows, cut)
    sums = reference.column_sums(gains.tolist(), left, gains.shape[1])
    assert record[VALUE] == value
    assert as_cut(record) == cut
    told = counted or width_for(gains.shape[1]) > gains.shape[1]  # three channels are filled up by it
    assert record[RECORD_FIELDS:].tolist() == [*sums, len(left) if told else 0]


@pytest.mark.parametrize("size", [2, 3, 7])
@pytest.mark.parametrize("seed", SEEDS[:6])
def test_the_first_of_the_members_best_cuts_is_the_best(seed: int, size: int):
    case, gains, _ = random_case(seed)
    best = best_cut(case, gains, False)
    records = [search(case, gains, False, slice_features(case.binning, rank, size)) for rank in range(size)]
    values = [int(record[VALUE]) for record in records]
    winner = records[values.index(max(values))]
    gained = max(values) > abs(gains.sum(axis=0)).sum()
    assert best == ((max(values), as_cut(winner)) if gained else None)


OBJECTIVES = [Votes(True), Labels(1), Norms(3), RealLeaves(0.5), Impurity(True), Impurity(False)]


def test_every_objective_that_needs_no_count_is_tried():
    assert objective._uncounted.keys() == {type(each) for each in OBJECTIVES}
    assert [sums_in_bins(each, 4) for each in (*OBJECTIVES, Votes(False), Means(1.0))] == [4] * len(OBJECTIVES) + [5, 5]


def test_bins_have_room_for_a_count_or_none():
    """By which a search tells whether rows are counted."""
    for n_channels in range(1, 300):
        n_sums = sums_in_bins(Votes(True), n_channels)
        assert (width_for(n_sums) > n_channels) == (n_sums == n_channels + 1)


@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.parametrize("chosen", OBJECTIVES, ids=repr)
@pytest.mark.parametrize("seed", SEEDS[:4])
def test_a_cut_without_rows_on_a_side_is_worth_what_its_node_is(chosen: Any, seed: int, has_missing: bool):
    """So no count is needed to tell that it is none. All rows are in one of two bins, or are missing in the feature."""
    random = np.random.default_rng(seed)
    nodes = random.integers(0, 1 << 40, (2, 5))  # of four channels: weights, where they have to be
    if not isinstance(chosen, Impurity | RealLeaves):
        nodes -= 1 << 39
    payloads = np.zeros((2, 4), np.int32)
    worth = [*value_leaves(chosen, nodes[0], nodes[1], payloads), value_root(chosen, nodes[1], payloads[0])]
    layout = (np.array([0, 2 + has_missing]), np.array([1]), np.array([has_missing]), 0)
    for node, own in zip((*nodes, nodes[1]), worth, strict=True):
        for filled in range(2 + has_missing):
            hist = np.zeros((2 + has_missing, 4), np.int64)
            hist[filled] = node[:4]
            found, room = np.zeros(RECORD_FIELDS, np.int64), np.empty(room_for_search(4), np.int64)
            search_all(chosen, hist, node, layout, np.arange(1), room, found)
            assert found[VALUE] == own


@pytest.mark.parametrize("size", [1, 2, 3, 9])
def test_feature_slices_cover_every_feature_once(size: int):
    case, _, _ = random_case(3)
    slices = [slice_features(case.binning, rank, size) for rank in range(size)]
    covered = [feature for part in slices for feature in range(*part.own)]
    assert covered == list(range(case.binning.n_features))
    assert slices[0].bins[0] == 0
    assert slices[0].bins[-1] == case.binning.bin_start[-1]


@pytest.mark.parametrize("seed", SEEDS)
def test_partition_keeps_the_order_on_both_sides(seed: int):
    case, gains, random = random_case(seed)
    grid, n_rows = case.grid(), len(gains)
    order = random.permutation(n_rows).astype(np.int32)
    start, stop = sorted(int(x) for x in random.integers(0, n_rows + 1, 2))
    for cut in reference.candidates(grid, range(n_rows)):
        feature, kind, last_left, missing_left = cut
        left, right = reference.partition(grid, order[start:stop].tolist(), cut)
        got = order.copy()
        missing_code = int(case.binning.n_thresholds[feature]) + 1
        how = (kind, last_left, missing_code, missing_left)
        middle = called(partition)(got, case.codes[feature], (start, stop), how, np.empty(n_rows, np.int32))
        assert got[start:middle].tolist() == left
        assert got[middle:stop].tolist() == right
        assert got[:start].tolist() == order[:start].tolist()
        assert got[stop:].tolist() == order[stop:].tolist()


@pytest.mark.parametrize("n_parts", [1, 2, 5])
@pytest.mark.parametrize("seed", SEEDS)
def test_segments_divided_each_for_itself_join_to_one_partition(seed: int, n_parts: int):
    case, gains, random = random_case(seed)
    n_rows = len(gains)
    order = random.permutation(n_rows).astype(np.int32)
    bounds = np.sort(random.integers(0, n_rows + 1, n_parts + 1))  # empty parts among them
    for feature, kind, last_left, missing_left in reference.candidates(case.grid(), range(n_rows)):
        cut = (kind, last_left, int(case.binning.n_thresholds[feature]) + 1, missing_left)
        codes, segment = case.codes[feature], (int(bounds[0]), int(bounds[-1]))
        whole, got, scratch = order.copy(), order.copy(), np.empty(n_rows, np.int32)
        wanted = called(partition)(whole, codes, segment, cut, np.empty(n_rows, np.int32))
        spans = list(pairwise(bounds.tolist()))
        sizes = np.array([called(divide)(got, codes, (a, b), cut, scratch[a:b]) for a, b in spans], np.int64)
        assert called(join_sides)(got, bounds, sizes, scratch) == wanted
        assert got.tolist() == whole.tolist()


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_votes_and_values_of_two_sides(seed: int, free: bool):
    random = np.random.default_rng(seed)
    left, right = random.integers(-4, 5, (2, 6))
    payloads = np.zeros((2, 5), np.int32)
    values = value_leaves(Votes(free), left, right, payloads)
    below, above = left[:5].tolist(), right[:5].tolist()  # the last entry counts rows
    if free:
        wanted = [reference.signs(below), reference.signs(above)]
    else:
        upper = reference.signs([high - low for low, high in zip(below, above, strict=True)])
        wanted = [[-vote for vote in upper], upper]
    assert payloads.tolist() == wanted
    assert tuple(values) == (reference.dot(wanted[0], below), reference.dot(wanted[1], above))
    assert sum(values) == reference.cut_value(below, above, free)


@pytest.mark.parametrize("free", [False, True])
def test_the_tree_without_cuts_votes_the_signs_of_its_sums(free: bool):
    payload = np.zeros(3, np.int32)
    assert value_root(Votes(free), np.array([-3, 0, 2, 9]), payload) == 5
    assert payload.tolist() == [-1, 1, 1]  # a sum of 0 votes +1


@pytest.mark.parametrize(
    ("gain", "told", "kept"),
    [
        (1001, 0, 1001),  # more than rounding of all rows: nobody adds up
        (1000, 6, 1000),  # more than that of the leaf's own
        (1, 6, 1),
        (0, 6, 0),
        (-1, 6, 0),
        (NO_CUT, 6, 0),
    ],
)
def test_masses_are_added_up_where_a_gain_may_be_rounding(gain: int, told: int, kept: int):
    """Of a child of three rows in a tree whose gains have a mass of 1000 units of rounding."""
    front = new_frontier(4, 1, 1, 9, 0, 1)
    front.mass[0], front.values[1], front.segments[1] = 1000 << GAIN_SHIFT, 7, (1, 4)
    chosen = np.array([[0, 1, -1]])
    found = np.zeros((1, 2, RECORD_FIELDS), np.int64)
    found[0, :, VALUE] = (gain if gain == NO_CUT else 7 + gain, NO_CUT)
    layout = (np.array([0, 2]), np.array([1]), np.array([False]), 0)
    records = np.empty((2, RECORD_FIELDS + 2), np.int64)
    rows, values = np.arange(5, dtype=np.int32), (np.array([50, 0, 1, 1, -2, 1, 3, 1, 60, 1], np.int32), 2)
    settle(front, chosen, np.zeros((1, 2, 2), np.int64), layout, found, rows, values, records)
    assert records[0, MASS] == told
    assert records[1, MASS] == 0
    note(front, chosen, np.stack([records, records]))
    assert front.gains[1] == kept
