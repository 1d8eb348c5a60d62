"""Gangs leave out what no cut is looked for in: features without cuts, features and rows that were not drawn."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from boost_core import gang_growth, gang_sums
from boost_core.catalogue import resolve_config
from boost_core.config import TrainingConfig
from boost_core.cut import Offer
from tests.builders import BinnedTable, bin_table, make_table, train_alone
from tests.parity.test_engine_parity import Gang, facts, spread_rows
from workers.thread_group import ThreadCollective

pytestmark = pytest.mark.parity
N_ROWS, N_FEATURES, ROUNDS = 240, 20, 4


@pytest.fixture(params=[False, True], ids=["reduced", "copies"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Histograms are reduced, or built from copies of the slice's bins."""
    monkeypatch.setattr(gang_growth, "worth_copies", lambda *_: request.param)
    return bool(request.param)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Of every list of rows that a member builds a histogram of: features and rows."""
    found: list[tuple[int, int]] = []
    plain = gang_sums.build

    def noting(*state: Any) -> None:
        bounds, features, fours = state[1], state[6][0], state[8][0]
        found.extend((len(features) + fours.size, int(stop - start)) for start, stop in bounds)
        plain(*state)

    monkeypatch.setattr(gang_sums, "build", noting)
    return found


def config(**sampling: float) -> TrainingConfig:
    tree = {"kind": "hamming_tree", "max_leaves": 6}
    return resolve_config({"algorithm": {"name": "adaboost_mh", "weak_learner": tree, **sampling}, "rounds": ROUNDS})


def table(constant: range = range(0)) -> BinnedTable:
    """Some of its columns hold one value only."""
    made = make_table(N_ROWS, N_FEATURES, 4, seed=1)
    made.X[:, list(constant)] = 2.0
    return bin_table(replace(made, X=np.nan_to_num(made.X, nan=5.0)))


def parity(binned: BinnedTable, config: TrainingConfig, members: int = 3) -> int:
    """All members train the model of one process; the bytes that they send."""
    expected = facts(train_alone(binned, config))
    results = Gang(binned, spread_rows(N_ROWS, members, seed=2)).train(config)
    for result in results:
        assert facts(result) == expected
    return sum(record.bytes_reduced for result in results for record in result.records)


@pytest.mark.parametrize("constant", [range(1, 9), range(12, 20), range(0, 20, 2), range(20)])
def test_features_without_cuts_are_not_built(way: bool, built: list[tuple[int, int]], constant: range):
    binned = table(constant)
    offered = Offer.of(binned.binning)
    assert len(offered.features) <= N_FEATURES - len(constant)  # the last column of every such table is constant
    parity(binned, config())
    assert {features for features, _ in built} <= set(range(len(offered.features) + 1))
    if not way:
        assert {features for features, _ in built} == {len(offered.features)}


def test_features_that_are_not_drawn_are_neither_built_nor_sent(
    way: bool, built: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
):
    binned, sent = table(), []
    for fraction in (1.0, 0.2):
        built.clear()
        sent.append(parity(binned, config(feature_fraction=fraction)))
    most = max(features for features, _ in built)
    assert most <= 4
    if not way:
        assert most <= 4 < N_FEATURES
        assert sent[1] < 0.45 * sent[0]  # messages of the rest are as long as before


def test_rows_that_are_not_drawn_are_neither_built_nor_sent(way: bool, built: list[tuple[int, int]]):
    binned, sent, rows = table(), [], []
    for fraction in (1.0, 0.2):
        built.clear()
        sent.append(parity(binned, config(row_fraction=fraction)))
        rows.append(max(n_rows for _, n_rows in built))
    assert rows[0] == N_ROWS if way else rows[0] > N_ROWS / 3
    assert rows[1] < 0.4 * rows[0]
    assert not way or sent[1] < sent[0]


@pytest.mark.parametrize("members", [2, 4])
def test_each_member_reduces_a_like_part_of_what_is_offered(monkeypatch: pytest.MonkeyPatch, members: int):
    """Also where all features that were drawn would lie in one member's slice of all features."""
    bounds: list[list[int]] = []
    plain = ThreadCollective.reduce_scatter

    def noting(self: ThreadCollective, histograms: Any, cuts: Any, n_used: int | None = None) -> Any:
        if self.rank == 0:
            bounds.append(cuts.tolist())
        return plain(self, histograms, cuts, n_used)

    monkeypatch.setattr(ThreadCollective, "reduce_scatter", noting)
    binned = table(range(8, 20))
    parity(binned, config(), members)
    widest = int(np.diff(binned.binning.bin_start).max())
    for cuts in bounds:
        assert cuts[-1] == Offer.of(binned.binning).bin_start[-1]
        assert max(np.diff(cuts)) <= cuts[-1] / members + widest
