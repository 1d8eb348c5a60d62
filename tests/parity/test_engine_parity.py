"""One model: members, threads and the spread of rows change no bit of it."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from boost_core import gang_growth, growth, team
from boost_core.collective import Collective
from boost_core.config import TrainingConfig
from boost_core.gang_steps import N_CANDIDATES, N_SLOTS, new_frontier, recount
from boost_core.records import Silent
from boost_core.shard import RowRange
from boost_core.team import Team
from boost_core.training import TrainingResult, train
from tests import reference
from tests.builders import (
    CONFIGURATIONS,
    BinnedTable,
    Table,
    bin_rows,
    bin_table,
    boosted,
    config_for,
    forest_arrays,
    make_table,
    member_data,
    nested_tree,
    reference_options,
    scores_by_round,
    shard_of,
    shared_figures,
    small_tables,
    train_alone,
)
from tests.reference import Options
from workers.thread_group import ThreadCollective, ThreadGroup

pytestmark = pytest.mark.parity

Spread = Sequence[Sequence[RowRange]]
MEMBERS = [1, 2, 3, 5]


def spread_rows(n_rows: int, members: int, seed: int, empty: int | None = None) -> Spread:
    """Uneven ranges in shuffled order, several a member; the member `empty` holds none."""
    random = np.random.default_rng(seed)
    holders = [rank for rank in range(members) if rank != empty]
    n_pieces = 3 * members + 1
    edges = [0, *sorted(random.choice(np.arange(1, n_rows), n_pieces - 1, replace=False).tolist()), n_rows]
    pieces = list(itertools.pairwise(edges))
    random.shuffle(pieces)
    spread: list[list[RowRange]] = [[] for _ in range(members)]
    for number, piece in enumerate(pieces):
        # everyone gets one piece, the rest goes to the first: one member holds most
        rank = holders[number] if number < len(holders) else holders[0]
        spread[rank].append((int(piece[0]), int(piece[1])))
    return spread


@dataclass(frozen=True)
class Gang:
    """A table and how its training and validation rows are spread."""

    binned: BinnedTable
    spread: Spread
    valid: Table | None = None
    valid_spread: Spread | None = None

    def rows_held(self) -> list[int]:
        return [sum(stop - start for start, stop in ranges) for ranges in self.spread]

    def train(self, config: TrainingConfig, threads: int = 1) -> list[TrainingResult]:
        """Every member's result, by rank."""

        def member(collective: Collective) -> TrainingResult:
            data = member_data(self.binned, self.spread[collective.rank])
            if self.valid is not None and self.valid_spread is not None:
                codes = bin_rows(self.valid, self.binned.binning)
                shard = shard_of(codes, self.valid.labels, self.valid_spread[collective.rank])
                data = replace(data, valid=shard, n_valid=self.valid.n_rows)
            with Team(threads) as crew:
                return boosted(train(data, config, collective, Silent(), crew))

        return ThreadGroup(len(self.spread)).run(member)


def facts(result: TrainingResult) -> tuple[Any, ...]:
    return forest_arrays(result.forest), shared_figures(result.records), result.stop_reason


def sizes(configuration: str) -> tuple[Options, int, bool]:
    options = reference_options(configuration)
    stump = "stump" in configuration
    return replace(options, max_leaves=2 if stump else 7), 2 if options.binary else 5, stump


@pytest.mark.parametrize("members", MEMBERS)
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_any_number_of_members_gives_the_same_bits(configuration: str, members: int):
    options, n_classes, stump = sizes(configuration)
    binned = bin_table(make_table(160, 4, n_classes, seed=members))
    config = config_for(options, 15, stump)
    gang = Gang(binned, spread_rows(160, members, seed=members))
    held = gang.rows_held()
    assert min(held) > 0
    assert sum(held) == 160
    alone = train_alone(binned, config)
    assert len(alone.records) == 15
    for result in gang.train(config):
        assert facts(result) == facts(alone)


@pytest.mark.parametrize("n_classes", [4, 5])
@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("votes", ["free", "factorised"])
def test_members_whose_histograms_do_not_count_rows(
    monkeypatch: pytest.MonkeyPatch, votes: str, copies: bool, n_classes: int
):
    """They tell each other which child of a cut is the smaller one: not, where histograms count for other reasons."""
    told: list[Any] = []
    monkeypatch.setattr(gang_growth, "worth_copies", lambda *_: copies)
    binned = bin_table(make_table(160, 4, n_classes, seed=n_classes))
    config = config_for(Options(max_leaves=9, free=votes == "free"), 6)
    gang, wanted = Gang(binned, spread_rows(160, 3, seed=2)), facts(train_alone(binned, config))
    monkeypatch.setattr(gang_growth, "recount", lambda *given: (told.append(given[2]), recount(*given)))
    assert [facts(result) for result in gang.train(config)] == [wanted] * 3
    assert bool(told) == (votes == "free")
    told.clear()
    monkeypatch.setattr(gang_growth, "sums_in_bins", lambda _, n_channels: n_channels + 1)
    assert [facts(result) for result in gang.train(config)] == [wanted] * 3
    assert not told


def test_the_smaller_child_is_that_of_fewer_rows_on_all_members():
    front = new_frontier(4, 1, 1, 9, 0, 4)
    front.counts[N_CANDIDATES], front.counts[N_SLOTS] = 7, 3
    front.children[:2], front.slots[:2] = (2, 4), (0, 8)
    chosen = np.array([[0, 2, 3], [1, 4, 5]])
    recount(front, chosen, np.array([[7, 6], [5, 5]]))
    assert chosen.tolist() == [[0, 3, 2], [1, 4, 5]]
    assert front.slots[2:6].tolist() == [0, 1, 2, 8]  # the larger one's is that of its parent
    assert front.sums[2:6, -1].tolist() == [7, 6, 5, 5]


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_a_member_without_rows(configuration: str):
    options, n_classes, stump = sizes(configuration)
    binned = bin_table(make_table(90, 3, n_classes, seed=3))
    config = config_for(options, 10, stump)
    for empty in range(3):
        gang = Gang(binned, spread_rows(90, 3, seed=empty, empty=empty))
        assert [rank for rank, held in enumerate(gang.rows_held()) if held == 0] == [empty]
        for result in gang.train(config):
            assert facts(result) == facts(train_alone(binned, config))


@pytest.mark.parametrize("n_features", [1, 2])
def test_more_members_than_features(n_features: int):
    table = make_table(100, n_features + 1, 4, seed=n_features)
    table = replace(table, X=np.ascontiguousarray(table.X[:, :n_features]))
    binned = bin_table(table)
    config = config_for(Options(max_leaves=6, free=True), 12)
    gang = Gang(binned, spread_rows(100, 5, seed=2))
    assert min(gang.rows_held()) > 0
    for result in gang.train(config):
        assert facts(result) == facts(train_alone(binned, config))


@pytest.mark.parametrize("members", [2, 3])
def test_the_same_rows_spread_otherwise(members: int):
    binned = bin_table(make_table(140, 4, 4, seed=12))
    config = config_for(Options(max_leaves=8), 10)
    found = []
    for seed in range(4):
        gang = Gang(binned, spread_rows(140, members, seed))
        assert min(gang.rows_held()) > 0
        found += [facts(result) for result in gang.train(config)]
    assert all(each == found[0] for each in found)


def test_one_row_a_member():
    table = make_table(40, 3, 3, seed=1).only(np.arange(3))
    table = Table(table.X, np.arange(3, dtype=np.int32), 3)
    binned = bin_table(table)
    config = config_for(Options(max_leaves=4), 6)
    gang = Gang(binned, [[(2, 3)], [(0, 1)], [(1, 2)]])
    assert gang.rows_held() == [1, 1, 1]
    for result in gang.train(config):
        assert facts(result) == facts(train_alone(binned, config))


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("max_leaves", [2, 3, 12, 40])
def test_speculation_gives_the_trees_of_the_oracle(max_leaves: int, free: bool):
    """The gang's growth against brute force, also where the tree ends before its limit."""
    table = make_table(45, 3, 3, seed=max_leaves)
    binned, options = bin_table(table), Options(free=free, max_leaves=max_leaves)
    expected = reference.boost(binned.grid(), table.labels.tolist(), 3, options, 5)
    result, _ = Gang(binned, spread_rows(45, 2, seed=0)).train(config_for(options, 5))
    assert result.forest.multiplier.tolist() == [each.alpha for each in expected.rounds]
    for number, each in enumerate(expected.rounds):
        assert nested_tree(result.forest, number) == each.tree
    final = scores_by_round(result.forest, table.X)[-1]
    assert final.tolist() == [list(row) for row in expected.rounds[-1].scores]


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_small_tables_of_every_shape(configuration: str, data: st.DataObject):
    options, _, stump = sizes(configuration)
    table = data.draw(small_tables(options.binary, absent=options.init_weights != "balanced"))
    members = data.draw(st.sampled_from([2, 3]))
    config = config_for(options, 20, stump)
    binned = bin_table(table)
    shares = np.array_split(np.arange(table.n_rows), members)
    gang = Gang(binned, [[(int(rows[0]), int(rows[-1]) + 1)] if len(rows) else [] for rows in reversed(shares)])
    wanted = facts(train_alone(binned, config))
    for result in gang.train(config):
        assert facts(result) == wanted


@pytest.mark.parametrize("counts", [(30, 30), (55, 5)])
def test_members_agree_on_why_they_stop(counts: tuple[int, int]):
    labels = np.repeat(np.arange(2, dtype=np.int32), counts)
    constant = bin_table(Table(np.full((60, 2), 1.0), labels, 2))
    separable = bin_table(Table(labels.reshape(-1, 1).astype(np.float64), labels, 2))
    for binned in (constant, separable):
        for options in (Options("adaboost"), Options(init_weights="uniform", max_leaves=4)):
            config = config_for(options, 20)
            gang = Gang(binned, spread_rows(60, 3, seed=4))
            for result in gang.train(config):
                assert facts(result) == facts(train_alone(binned, config))


def test_validation_rows_are_counted_over_all_members():
    binned, valid = bin_table(make_table(120, 3, 4, seed=5)), make_table(70, 3, 4, seed=6)
    config = config_for(Options(max_leaves=5), 8)
    alone = train_alone(binned, config, valid=valid)
    assert len({record.valid_error for record in alone.records}) > 1
    gang = Gang(binned, spread_rows(120, 3, seed=1), valid, spread_rows(70, 3, seed=2, empty=1))
    for result in gang.train(config):
        assert facts(result) == facts(alone)


def test_members_with_threads_of_their_own(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(growth, "WORTH_THREADS", -1)
    monkeypatch.setattr(team, "INLINE_WORK", -1)
    binned = bin_table(make_table(200, 5, 5, seed=13))
    config = config_for(Options(max_leaves=9, free=True), 8)
    wanted = facts(train_alone(binned, config))
    for members, threads in ((1, 3), (2, 2), (3, 2)):
        gang = Gang(binned, spread_rows(200, members, seed=members))
        assert min(gang.rows_held()) > 0
        for result in gang.train(config, threads):
            assert facts(result) == wanted


def test_bytes_reduced_are_counted_in_a_gang_only():
    binned = bin_table(make_table(80, 3, 3, seed=0))
    config = config_for(Options(max_leaves=4), 3)
    assert all(record.bytes_reduced == 0 for record in train_alone(binned, config).records)
    for result in Gang(binned, spread_rows(80, 2, seed=0)).train(config):
        assert all(record.bytes_reduced > 0 for record in result.records)


@pytest.mark.parametrize("members", [2, 4, 8])
def test_bytes_a_round_stay_near_what_must_be_sent(monkeypatch: pytest.MonkeyPatch, members: int):
    """At most 1.15 times the (M - 1) / M of the smaller children's histograms that a member must send."""
    reduced: list[int] = []
    plain = ThreadCollective.reduce_scatter

    def counting(self: ThreadCollective, histograms: Any, bounds: Any, n_used: int | None = None) -> Any:
        if self.rank == 0:
            n_nodes, n_bins, n_channels = histograms.shape
            reduced.append(n_nodes * n_bins * (n_channels if n_used is None else n_used) * 8)
        return plain(self, histograms, bounds, n_used)

    monkeypatch.setattr(ThreadCollective, "reduce_scatter", counting)
    binned = bin_table(make_table(400, 24, 4, seed=2))
    results = Gang(binned, spread_rows(400, members, seed=0)).train(config_for(Options(max_leaves=4), 3))
    sent = np.mean([[record.bytes_reduced for record in result.records] for result in results]) * 3
    assert 0 < sent <= 1.15 * sum(reduced) * (members - 1) / members
