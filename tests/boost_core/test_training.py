"""The loop towards the outside: records in order, phases, requests to stop, broken bounds."""

import pytest

from boost_core import collective, training
from boost_core.bounds import check_bounds
from boost_core.catalogue import resolve_config
from boost_core.errors import BoundBroken, ConfigError
from boost_core.records import Phase, RoundRecord, Silent, StopReason
from boost_core.team import Team
from boost_core.training import train
from tests.builders import bin_table, config_for, forest_arrays, make_table, member_data, train_alone
from tests.reference import Options

SLACK = 2e-7


class Watching(Silent):
    """Notes what the loop tells; asks to stop after some rounds."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.phases: list[Phase] = []
        self.records: list[RoundRecord] = []
        self._stop_after = stop_after

    def enter(self, phase: Phase) -> None:
        self.phases.append(phase)

    def round_done(self, record: RoundRecord) -> None:
        self.records.append(record)

    def stop_requested(self) -> bool:
        return self._stop_after is not None and len(self.records) + 1 >= self._stop_after


def watched(rounds: int, watching: Watching, valid: bool = False) -> training.TrainingResult:
    table = make_table(60, 3, 3, seed=0)
    data = member_data(bin_table(table), valid=make_table(30, 3, 3, seed=1) if valid else None)
    with Team(1) as team:
        return train(data, config_for(Options(max_leaves=3), rounds), collective.Alone(), watching, team)


def test_the_observer_gets_every_record_in_order():
    watching = Watching()
    result = watched(7, watching)
    assert result.stop_reason == StopReason.ROUNDS
    assert tuple(watching.records) == result.records
    assert [record.round for record in result.records] == list(range(1, 8))
    assert (result.forest.n_rounds, result.forest.n_trees) == (7, 7)
    own = [Phase.GROWING, Phase.STEP, Phase.UPDATE, Phase.WEIGHTS, Phase.REPORT]
    assert watching.phases == [Phase.OTHER, Phase.WEIGHTS, *7 * own, Phase.OTHER]
    assert all(record.valid_error is None for record in result.records)


def test_validation_is_a_phase_of_its_own():
    watching = Watching()
    result = watched(3, watching, valid=True)
    assert watching.phases.count(Phase.VALIDATE) == 7  # the first look, then routing and counting in every round
    assert watching.phases[0] == watching.phases[-1] == Phase.OTHER
    assert all(record.valid_error is not None for record in result.records)


def test_validation_data_do_not_change_the_model():
    with_valid, without = watched(5, Watching(), valid=True), watched(5, Watching())
    assert forest_arrays(with_valid.forest) == forest_arrays(without.forest)


@pytest.mark.parametrize("stop_after", [1, 3])
def test_a_request_to_stop_keeps_the_rounds_so_far(stop_after: int):
    watching = Watching(stop_after)
    stopped, whole = watched(9, watching), watched(9, Watching())
    assert stopped.stop_reason == StopReason.CANCELLED
    assert len(stopped.records) == stop_after
    assert stopped.records == whole.records[:stop_after]


def test_a_request_in_the_last_round_changes_nothing():
    assert watched(4, Watching(4)).stop_reason == StopReason.ROUNDS


def test_too_many_classes_are_refused_before_anything_is_done():
    table = make_table(30, 2, 3, seed=0)
    with pytest.raises(ConfigError, match="2 classes"):
        train_alone(bin_table(table), resolve_config({"algorithm": {"name": "adaboost"}}))


def a_record(**changes: float) -> RoundRecord:
    [record] = watched(1, Watching()).records
    return record._replace(**changes)


def test_a_loss_above_its_bound_is_an_error_that_names_the_round():
    check_bounds(a_record(), SLACK)
    record = a_record()
    with pytest.raises(BoundBroken, match="round 1: ln loss"):
        check_bounds(record._replace(ln_loss=record.ln_bound + 0.01), SLACK)
    with pytest.raises(BoundBroken, match="round 1: ln loss"):
        check_bounds(record._replace(ln_loss=float("nan")), SLACK)


def test_an_error_above_its_bound_is_an_error_that_names_the_round():
    record = a_record()
    with pytest.raises(BoundBroken, match="round 1: strict training error"):
        check_bounds(record._replace(strict_train_error=record.error_bound + 0.01), SLACK)
    with pytest.raises(BoundBroken, match="round 1: strict training error"):
        check_bounds(record._replace(strict_train_error=float("nan")), SLACK)
