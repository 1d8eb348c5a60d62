"""Training that goes on from a model so far ends as if nothing had happened, for every algorithm."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from boost_core import sparse_rule
from boost_core.catalogue import ALGORITHMS, resolve_config
from boost_core.collective import Alone, Collective
from boost_core.config import TrainingConfig
from boost_core.forest import make_forest
from boost_core.records import RoundRecord, Silent, StopReason
from boost_core.replay import rounds_of
from boost_core.shard import RowRange
from boost_core.start import ModelSoFar, Start
from boost_core.team import Team
from boost_core.training import TrainingResult, train
from boost_core.training_data import TrainingData
from tests.builders import bin_table, forest_arrays, make_table, member_data, shared_figures
from workers.thread_group import ThreadGroup

ROUNDS = 6
# What is not the default: own state, kinds of weak learners, draws, shorter steps.
SETTINGS: dict[str, dict[str, Any]] = {
    "adaboost_mh": {"weak_learner": {"kind": "real_tree", "max_leaves": 3}, "shrinkage": 0.5},
    "adaboost_mm_fixed": {"edges": [0.3, 0.2, 0.1]},
    "multiclass_adaboost": {"sampling": "resample", "sample_rows": 60},
    "samme": {"shrinkage": 0.5},
    "cd_mcboost": {"weak_learner": {"kind": "regression_stump"}},
}
# Algorithms that keep lists where there are many classes: one of each state.
IN_LISTS = ("adaboost_mm", "adaboost_m1", "samme", "multiclass_adaboost", "os_exponential")


class Dies(Exception):
    """The member is gone."""


@dataclass
class Keeper(Silent):
    """Keeps the model of every round; dies after one of them if it is told to."""

    dies_after: int = 0
    kept: list[ModelSoFar] = field(default_factory=list)

    def keep(self, so_far: Callable[[], ModelSoFar]) -> None:
        self.kept.append(so_far())
        if len(self.kept) == self.dies_after:
            raise Dies

    def round_done(self, record: RoundRecord) -> None:
        assert record.round == len(self.kept) + 1


def config_of(name: str, rounds: int = ROUNDS, **more: Any) -> TrainingConfig:
    return resolve_config({"algorithm": {"name": name, **SETTINGS.get(name, {})}, "rounds": rounds, **more})


def data_of(name: str, ranges: list[RowRange] | None = None) -> TrainingData:
    n_classes = 2 if name == "adaboost" else 4
    binned = bin_table(make_table(120, 4, n_classes, seed=3))
    return member_data(binned, ranges, valid=make_table(50, 4, n_classes, seed=4))


def run(
    data: TrainingData, config: TrainingConfig, keeper: Keeper, start: Start | None, collective: Collective
) -> TrainingResult:
    with Team(1) as team:
        return train(data, config, collective, keeper, team, start)


def alone(name: str, config: TrainingConfig, start: Start | None = None) -> tuple[TrainingResult, Keeper]:
    keeper = Keeper(kept=list(range(start.model.n_rounds)) if start and start.model else [])  # type: ignore[arg-type]
    return run(data_of(name), config, keeper, start, Alone()), keeper


def facts(result: TrainingResult) -> tuple[Any, ...]:
    return forest_arrays(result.forest), shared_figures(result.records), result.stop_reason


def through_a_forest(model: ModelSoFar, result: TrainingResult) -> ModelSoFar:
    """What is left of a model so far in a file: its trees' arrays."""
    binning = data_of("adaboost").binning if result.forest.n_columns == 1 else data_of("adaboost_mh").binning
    forest = make_forest(list(model.rounds), list(model.multipliers), result.forest.decoding, binning)
    rounds = rounds_of(forest)
    return replace(model, rounds=tuple(f for f, _ in rounds), multipliers=tuple(m for _, m in rounds))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_resumed_model_is_the_undisturbed_one(name: str):
    check_resumed(name)


@pytest.mark.parametrize("name", IN_LISTS)
def test_a_model_resumed_in_lists_is_the_undisturbed_one(monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.setattr(sparse_rule, "SPARSE_CLASSES", 0)
    check_resumed(name)


def check_resumed(name: str) -> None:
    config = config_of(name)
    undisturbed, keeper = alone(name, config)
    assert len(undisturbed.records) >= 3
    for model in (keeper.kept[1], keeper.kept[-1]):
        resumed, _ = alone(name, config, Start(through_a_forest(model, undisturbed)))
        assert facts(resumed) == facts(undisturbed)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_members_that_broke_at_different_places_go_on_together(name: str):
    check_broken_members(name)


@pytest.mark.parametrize("name", IN_LISTS)
def test_members_with_lists_that_broke_go_on_together(monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.setattr(sparse_rule, "SPARSE_CLASSES", 0)
    check_broken_members(name)


def check_broken_members(name: str) -> None:
    """One still holds scores that are a round ahead, one a round behind, one is new; rows lie elsewhere than before."""
    config = config_of(name)
    undisturbed, keeper = alone(name, config)
    ranges: list[list[RowRange]] = [[(60, 100)], [(0, 60)], [(100, 120)]]
    starts = [Start() for _ in ranges]
    for start, own, last in ((starts[0], ranges[0], 3), (starts[1], ranges[1], 1)):
        member = replace(data_of(name, own), valid=None if own[0] == (0, 60) else data_of(name).valid)
        # alone with its rows it would train another model: it is given the common one, and then dies
        begun = Start(keeper.kept[last - 1], start.standing)
        with pytest.raises(Dies), Team(1) as team:
            train(member, config, Alone(), Dying(), team, begun)
        start.standing = begun.standing
    model = keeper.kept[1]

    def member_run(collective: Collective) -> TrainingResult:
        rank = collective.rank
        member = data_of(name, ranges[rank])
        if rank != 0:
            member = replace(member, valid=None)
        start = Start(model, starts[rank].standing)
        return run(member, config, Keeper(kept=[model, model]), start, collective)

    assert [start.standing and start.standing.n_rounds for start in starts] == [3, 1, None]
    for result in ThreadGroup(3).run(member_run):
        assert facts(result) == facts(undisturbed)


class Dying(Silent):
    """Dies before the first round it would see."""

    def stop_requested(self) -> bool:
        raise Dies


def test_scores_in_the_middle_of_a_round_are_not_trusted():
    config = config_of("adaboost_mh")
    undisturbed, keeper = alone("adaboost_mh", config)
    start = Start(keeper.kept[2])
    with pytest.raises(Dies):
        run(data_of("adaboost_mh"), config, Keeper(kept=[keeper.kept[0]] * 3, dies_after=4), start, Alone())
    assert start.standing is not None
    start.standing.scores.values += 7
    start.standing.whole = False
    again, _ = alone("adaboost_mh", config, start)
    assert facts(again) == facts(undisturbed)


def test_more_rounds_continue_what_was_trained_for_fewer():
    for name in ("adaboost_mh", "ecoc", "adaboost_mm_fixed"):
        more, _ = alone(name, config_of(name, 9))
        _, keeper = alone(name, config_of(name, 4))
        resumed, _ = alone(name, config_of(name, 9), Start(keeper.kept[-1]))
        assert facts(resumed) == facts(more)


def test_early_stopping_remembers_its_best_round():
    config = config_of("adaboost_mh", 60, stopping={"metric": "error", "patience": 3})
    undisturbed, keeper = alone("adaboost_mh", config)
    assert undisturbed.stop_reason is StopReason.STOPPED_EARLY
    n_run = len(undisturbed.records)
    assert undisturbed.forest.n_rounds == n_run - 3
    for model in (keeper.kept[n_run - 2], keeper.kept[-1]):
        resumed, _ = alone("adaboost_mh", config, Start(model))
        assert facts(resumed) == facts(undisturbed)


def test_a_forest_gives_back_its_rounds():
    for name in ("one_vs_all", "samme", "adaboost_mh"):
        result, keeper = alone(name, config_of(name))
        for (fitted, multipliers), kept, wanted in zip(
            rounds_of(result.forest), keeper.kept[-1].rounds, keeper.kept[-1].multipliers, strict=True
        ):
            assert fitted.speech is kept.speech
            assert multipliers.tolist() == wanted.tolist()
            for part, own in zip(fitted.parts, kept.parts, strict=True):
                assert part.column == own.column
                assert np.array_equal(part.tree.nodes, own.tree.nodes)
                assert np.array_equal(part.tree.payload, own.tree.payload)
