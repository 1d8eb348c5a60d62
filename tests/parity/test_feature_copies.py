"""Members that hold their slice's bins of all rows come to the same sums as those that reduce histograms."""

from dataclasses import replace

import numpy as np
import pytest

from boost_core import gang_growth, team
from boost_core.catalogue import resolve_config
from boost_core.common_bins import CommonBins
from boost_core.gang_sums import WIDE_BINS, worth_copies
from tests import reference
from tests.builders import CONFIGURATIONS, bin_table, config_for, make_table, nested_tree, train_alone
from tests.parity.test_engine_parity import Gang, facts, sizes, spread_rows
from tests.reference import Options
from workers.thread_group import ThreadCollective

pytestmark = pytest.mark.parity


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tree of a gang is grown from copies, however small its table is."""
    monkeypatch.setattr(gang_growth, "worth_copies", lambda *_: True)

    def refused(*_: object) -> None:
        raise AssertionError("a histogram was reduced")

    monkeypatch.setattr(ThreadCollective, "reduce_scatter", refused)


@pytest.mark.parametrize("members", [1, 2, 3, 5])
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_any_number_of_members_gives_the_same_bits(copies: None, configuration: str, members: int):
    options, n_classes, stump = sizes(configuration)
    binned = bin_table(make_table(160, 4, n_classes, seed=members))
    config = config_for(options, 15, stump)
    for result in Gang(binned, spread_rows(160, members, seed=members)).train(config):
        assert facts(result) == facts(train_alone(binned, config))


def test_a_member_without_rows(copies: None):
    binned, config = bin_table(make_table(90, 3, 5, seed=3)), config_for(Options(max_leaves=7), 10)
    for empty in range(3):
        gang = Gang(binned, spread_rows(90, 3, seed=empty, empty=empty))
        assert min(gang.rows_held()) == 0
        for result in gang.train(config):
            assert facts(result) == facts(train_alone(binned, config))


@pytest.mark.parametrize("n_features", [1, 2])
def test_more_members_than_features(copies: None, n_features: int):
    table = make_table(100, n_features + 1, 4, seed=n_features)
    binned = bin_table(replace(table, X=np.ascontiguousarray(table.X[:, :n_features])))
    config = config_for(Options(max_leaves=6, free=True), 12)
    for result in Gang(binned, spread_rows(100, 5, seed=2)).train(config):
        assert facts(result) == facts(train_alone(binned, config))


@pytest.mark.parametrize("most_work", [0, gang_growth.DEAR_WORK])
@pytest.mark.parametrize("max_leaves", [2, 3, 12, 40])
def test_trees_are_those_of_the_oracle(
    copies: None, monkeypatch: pytest.MonkeyPatch, max_leaves: int, most_work: int
) -> None:
    """With speculation and without, also where the tree ends before its limit."""
    monkeypatch.setattr(gang_growth, "DEAR_WORK", most_work)
    table = make_table(45, 3, 3, seed=max_leaves)
    binned, options = bin_table(table), Options(max_leaves=max_leaves, free=True)
    expected = reference.boost(binned.grid(), table.labels.tolist(), 3, options, 5)
    result, _ = Gang(binned, spread_rows(45, 2, seed=0)).train(config_for(options, 5))
    for number, each in enumerate(expected.rounds):
        assert nested_tree(result.forest, number) == each.tree


def test_members_with_threads_of_their_own(copies: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(team, "INLINE_WORK", -1)
    binned, config = bin_table(make_table(200, 5, 5, seed=13)), config_for(Options(max_leaves=9, free=True), 8)
    for result in Gang(binned, spread_rows(200, 3, seed=3)).train(config, threads=2):
        assert facts(result) == facts(train_alone(binned, config))


@pytest.mark.parametrize("weak_learner", ["product", "real_tree", "hamming_tree"])
def test_weak_learners_of_several_trees_and_offered_features(copies: None, weak_learner: str):
    """A round's gains change between its trees, and what features a tree may ask for by the round."""
    algorithm = {"name": "adaboost_mh", "feature_fraction": 0.5, "weak_learner": {"kind": weak_learner}}
    config = resolve_config({"algorithm": algorithm, "rounds": 8, "seed": 3})
    binned = bin_table(make_table(120, 6, 4, seed=5))
    for result in Gang(binned, spread_rows(120, 3, seed=1)).train(config):
        assert facts(result) == facts(train_alone(binned, config))


@pytest.mark.parametrize("sampling", [{}, {"feature_fraction": 0.4}, {"row_fraction": 0.5}])
@pytest.mark.parametrize("threads", [1, 2])
def test_tables_of_cells_that_mostly_repeat(
    copies: None, monkeypatch: pytest.MonkeyPatch, sampling: dict[str, float], threads: int
):
    """Most features' histograms are those of fours, whose rows in the commonest bins are not added."""
    monkeypatch.setattr(team, "INLINE_WORK", -1)
    table = make_table(220, 30, 4, seed=7)
    table.X[:, 3:25][np.random.default_rng(2).random((220, 22)) < 0.9] = 1.0
    binned = bin_table(table)
    fours, left = CommonBins(binned.codes).fours(np.arange(30))
    assert min(len(fours), len(left)) >= 4
    algorithm = {"name": "adaboost_mh", "weak_learner": {"kind": "hamming_tree", "max_leaves": 9}, **sampling}
    config = resolve_config({"algorithm": algorithm, "rounds": 6, "seed": 1})
    for result in Gang(binned, spread_rows(220, 3, seed=4)).train(config, threads=threads):
        assert facts(result) == facts(train_alone(binned, config))


def test_a_wide_table_sends_rows_and_not_histograms(monkeypatch: pytest.MonkeyPatch):
    """A tenth of the bytes that reduced histograms take, and the same model."""
    random = np.random.default_rng(0)
    table = make_table(300, 60, 6, seed=1)
    binned = bin_table(replace(table, X=table.X + random.random(table.X.shape)))
    n_bins, config = int(binned.binning.bin_start[-1]), config_for(Options(max_leaves=8), 4)
    assert n_bins >= WIDE_BINS
    gang, sent = Gang(binned, spread_rows(300, 3, seed=1)), []
    for choice in (worth_copies, lambda *_: False):
        monkeypatch.setattr(gang_growth, "worth_copies", choice)
        results = gang.train(config)
        assert facts(results[0]) == facts(train_alone(binned, config))
        sent.append(sum(record.bytes_reduced for result in results for record in result.records))
    assert 0 < 10 * sent[0] < sent[1]


@pytest.mark.parametrize(
    ("shape", "worth"),
    [
        ((60_000, 784, 139_000, 12, 21), True),  # mnist
        ((16_000, 16, 256, 28, 21), False),  # letter: histograms are small
        ((2_000_000, 50, 12_750, 12, 21), False),  # long: a gain matrix is larger than histograms
        ((60_000, 20_000, 100_000, 12, 21), False),  # copies would take more memory than all histograms
    ],
)
def test_copies_are_made_where_they_are_smaller(shape: tuple[int, int, int, int, int], worth: bool):
    assert worth_copies(*shape) == worth
