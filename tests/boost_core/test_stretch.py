"""Stretches: rounds that kernels run by themselves are those of the loop, to the bit, whatever ends them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
import pytest

from boost_core import scores, stretch
from boost_core.catalogue import resolve_config
from boost_core.collective import Alone
from boost_core.jit import JIT_DISABLED
from boost_core.model import SCORE_UNITS
from boost_core.records import RoundRecord, Silent, StopReason
from boost_core.start import ModelSoFar, Start
from boost_core.team import Team
from boost_core.training import TrainingResult, train
from boost_core.training_data import TrainingData
from tests.builders import bin_table, forest_arrays, make_table, member_data
from workers.stages import kernel_clock


class Hurried(Silent):
    """Is told of each round before the next one begins; keeps all that it is told."""

    def __init__(self, stop_after: int | None = None, dies_after: int | None = None) -> None:
        self.records: list[RoundRecord] = []
        self.models: list[ModelSoFar] = []
        self._stop_after, self._dies_after = stop_after, dies_after

    def round_done(self, record: RoundRecord) -> None:
        self.records.append(record)
        if len(self.records) == self._dies_after:
            raise Dies

    def keep(self, so_far: Any) -> None:
        self.models.append(so_far())

    def stop_requested(self) -> bool:
        return self._stop_after is not None and len(self.records) + 1 >= self._stop_after


class Waiting(Hurried):
    """May be told of several at once."""

    def __init__(self, stop_after: int | None = None, dies_after: int | None = None) -> None:
        super().__init__(stop_after, dies_after)
        self.passed_at_once: list[list[int]] = []

    def passed(self, nanoseconds: Sequence[int]) -> None:
        self.passed_at_once.append(list(nanoseconds))

    @property
    def sizes(self) -> list[int]:
        return [len(each) for each in self.passed_at_once]


class Dies(Exception):
    """Something breaks."""


@pytest.fixture(autouse=True)
def _ready(team: Team) -> None:
    """The kernels of single rounds are there, as they are once a job has warmed up."""
    run(Hurried(), team, 2)


@pytest.fixture(scope="module", params=[1, 2])
def team(request: pytest.FixtureRequest) -> Iterator[Team]:
    with Team(request.param) as team:
        yield team


def the_rows(n_rows: int = 300, n_classes: int = 4) -> TrainingData:
    return member_data(bin_table(make_table(n_rows, 5, n_classes, seed=3)))


def run(
    observer: Silent,
    team: Team,
    rounds: int,
    data: TrainingData | None = None,
    start: Start | None = None,
    **changes: Any,
) -> TrainingResult:
    learner = changes.pop("learner", {"kind": "hamming_tree", "max_leaves": 5})
    config = {"algorithm": {"name": "adaboost_mh", "weak_learner": learner}, "rounds": rounds, **changes}
    return train(data or the_rows(), resolve_config(config), Alone(), observer, team, start)


def facts(result: TrainingResult) -> tuple[Any, ...]:
    return forest_arrays(result.forest), result.records, result.stop_reason, result.margins


@pytest.mark.parametrize(
    "learner",
    [
        {"kind": "hamming_tree", "max_leaves": 5},
        {"kind": "hamming_tree", "max_leaves": 9, "max_depth": 3, "votes": "factorised"},
        {"kind": "stump"},
    ],
)
def test_rounds_are_those_of_the_loop(team: Team, learner: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stretch, "MOST_ROUNDS", 32)
    run(Hurried(), team, 2, learner=learner)
    hurried, waiting = Hurried(), Waiting()
    one_by_one, together = (run(each, team, 50, learner=learner) for each in (hurried, waiting))
    assert facts(together) == facts(one_by_one)
    assert waiting.records == hurried.records
    assert sum(waiting.sizes) == 49  # the loop runs the first one
    if team.threads == 1:
        assert waiting.sizes == [32, 17]
    assert [model.n_rounds for model in waiting.models] == list(accumulate(waiting.sizes, initial=1))
    for kept in waiting.models:
        other = hurried.models[kept.n_rounds - 1]
        assert (kept.records, kept.slack, kept.perfect) == (other.records, other.slack, other.perfect)
        assert [each.tolist() for each in kept.multipliers] == [each.tolist() for each in other.multipliers]


@pytest.mark.parametrize("stop_after", [1, 7, 33])
def test_rounds_after_a_request_to_stop_are_taken_back(team: Team, stop_after: int):
    starts = Start(), Start()
    one_by_one = run(Hurried(stop_after), team, 60, start=starts[0])
    together = run(Waiting(stop_after), team, 60, start=starts[1])
    assert together.stop_reason == StopReason.CANCELLED
    assert len(together.records) == stop_after
    assert facts(together) == facts(one_by_one)
    left, other = (start.standing for start in starts)
    assert left is not None
    assert other is not None
    assert left.whole
    assert left.n_rounds == stop_after
    assert left.scores.values.tolist() == other.scores.values.tolist()


def test_early_stopping_ends_in_the_same_round(team: Team):
    stopping = {"metric": "strict_train_error", "patience": 3}
    waiting = Waiting()
    together = run(waiting, team, 200, stopping=stopping)
    assert together.stop_reason == StopReason.STOPPED_EARLY
    assert waiting.sizes
    assert facts(together) == facts(run(Hurried(), team, 200, stopping=stopping))


def test_a_run_that_breaks_goes_on_where_its_records_end(team: Team):
    start, waiting = Start(), Waiting(dies_after=11)
    with pytest.raises(Dies):
        run(waiting, team, 40, start=start)
    assert start.standing is not None
    assert start.standing.n_rounds >= 11
    assert [model.n_rounds for model in waiting.models] == [1]  # and none while rounds of a stretch are recorded
    resumed = run(Waiting(), team, 40, start=Start(waiting.models[-1], start.standing))
    assert facts(resumed) == facts(run(Hurried(), team, 40))


def test_a_perfect_weak_learner_is_the_loops(team: Team):
    """Its step is capped, which kernels leave to the loop."""
    table = make_table(200, 2, 3, seed=5)
    table = replace(table, X=np.stack([table.labels, table.labels], axis=1).astype(np.float64))
    data = member_data(bin_table(table))
    waiting = Waiting()
    together = run(waiting, team, 9, data)
    assert together.stop_reason == StopReason.EDGE_ONE
    assert waiting.sizes == []
    assert facts(together) == facts(run(Hurried(), team, 9, data))


def test_scores_that_get_too_large_are_widened_by_the_loop(team: Team, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scores, "WIDEN_AT", 3 << SCORE_UNITS)
    start, waiting = Start(), Waiting()
    together = run(waiting, team, 40, start=start)
    assert start.standing is not None
    assert start.standing.scores.values.dtype == np.int64
    assert 0 < sum(waiting.sizes) < 40
    other = Start()
    assert facts(together) == facts(run(Hurried(), team, 40, start=other))
    assert other.standing is not None
    assert other.standing.scores.reach == start.standing.scores.reach


@pytest.mark.skipif(kernel_clock().address == 0 or JIT_DISABLED, reason="kernels have no clock here")
def test_no_round_begins_once_a_stretch_has_lasted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stretch, "LONGEST", 0)
    waiting = Waiting()
    with Team(1, kernel_clock()) as team:
        run(waiting, team, 5)
    assert waiting.sizes == [1, 1, 1, 1]
    assert all(nanoseconds > 0 for [nanoseconds] in waiting.passed_at_once)


@pytest.mark.parametrize(
    "changes",
    [
        {"algorithm": {"name": "adaboost_mh", "weak_learner": {"kind": "stump"}, "shrinkage": 0.5}},
        {"algorithm": {"name": "adaboost_mh", "weak_learner": {"kind": "hamming_tree"}, "row_fraction": 0.5}},
        {"algorithm": {"name": "adaboost_mh", "weak_learner": {"kind": "hamming_tree"}, "class_weight": "balanced"}},
        {"algorithm": {"name": "adaboost_mh", "weak_learner": {"kind": "real_tree"}}},
        {"algorithm": {"name": "adaboost_mh", "weak_learner": {"kind": "tree"}}},
        {"algorithm": {"name": "samme"}},
    ],
)
def test_whatever_needs_python_is_run_by_the_loop(team: Team, changes: dict[str, Any]):
    hurried, waiting = Hurried(), Waiting()
    one_by_one, together = (run(each, team, 4, **changes) for each in (hurried, waiting))
    assert waiting.sizes == []
    assert facts(together) == facts(one_by_one)


def test_validation_rows_are_the_loops(team: Team):
    table = make_table(300, 5, 4, seed=3)
    data = member_data(bin_table(table), valid=make_table(60, 5, 4, seed=4))
    waiting = Waiting()
    run(waiting, team, 3, data)
    assert waiting.sizes == []
