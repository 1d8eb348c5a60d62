"""The clock of stages: time is charged once, what kernels and exchanges say goes to their own stages."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from boost_core.catalogue import resolve_config
from boost_core.jit import JIT_DISABLED, kernel
from boost_core.kernel_times import HISTOGRAMS, KERNELS, PARTITION, SEARCH, UPDATE, WEIGHTS, new_times, read_clock
from boost_core.records import Phase
from tests.workers.parquet_tables import write
from workers import binner, stages
from workers.data_plan import DataRequest, plan_data
from workers.in_process import train_in_process
from workers.job import NoProgress, TrainingJob, TrainingOutcome
from workers.observer import TrainingObserver
from workers.stages import MOST_MARKS, PLACES, ROUND_STAGES, STAGES, Clock, Stages, kernel_clock


class Talking:
    """A collective's counters."""

    seconds_spent = 0.0
    seconds_packing = 0.0


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A clock that stands still until it is set."""
    held = [0]
    monkeypatch.setattr(stages.time, "perf_counter_ns", lambda: held[0])
    return held


def test_kernels_and_exchanges_are_taken_out_of_the_stage_they_happen_in(now: list[int]) -> None:
    times, talking, clock = new_times(), Talking(), Clock()
    clock.watch(times, talking)
    talking.seconds_spent, talking.seconds_packing = 200e-9, 100e-9  # while others read: no exchange of a round
    now[0] = 1_000
    clock.enter(Phase.GROWING)
    times[[KERNELS, HISTOGRAMS, SEARCH, PARTITION]] = 700, 300, 150, 50
    talking.seconds_spent, talking.seconds_packing = 280e-9, 130e-9
    now[0] = 2_000
    clock.enter(Phase.STEP)
    now[0] = 2_500
    found = clock.stages()
    spent = {name: round(1e9 * found.seconds[place]) for name, place in PLACES.items() if found.seconds[place]}
    assert spent == {
        "read": 1_000, "growing": 420, "histograms": 300, "search": 150, "partition": 50, "packing": 30, "exchange": 50,
        "step": 500,
    }  # fmt: skip
    assert sum(spent.values()) == 2_500
    outside = {name: round(1e9 * found.outside(name)) for name in STAGES}
    assert {name: each for name, each in outside.items() if each} == {"read": 1_000, "growing": 220, "step": 500}
    assert round(1e9 * found.outside_kernels) == 720
    assert found.less(found) == Stages()


def test_kernels_that_run_whole_rounds_tell_their_stages(now: list[int]) -> None:
    times, clock = new_times(), Clock()
    clock.watch(times, None)
    clock.enter(Phase.GROWING)
    times[[KERNELS, HISTOGRAMS, UPDATE, WEIGHTS]] = 900, 300, 200, 150
    now[0] = 1_000
    found = clock.stages()
    spent = {name: round(1e9 * found.seconds[place]) for name, place in PLACES.items() if found.seconds[place]}
    assert spent == {"growing": 350, "histograms": 300, "update": 200, "weights": 150}
    assert round(1e9 * found.outside_kernels) == round(1e9 * found.outside("growing")) == 100


def test_as_many_rounds_as_there_are_add_up(now: list[int]) -> None:
    """Stages are charged many at once; the time of rounds is told after each."""
    times, talking, clock = new_times(), Talking(), Clock()
    clock.watch(times, talking)
    stages_of_a_round = (Phase.GROWING, Phase.STEP, Phase.UPDATE, Phase.VALIDATE, Phase.REPORT)
    n_rounds = 2 * MOST_MARKS // len(stages_of_a_round)
    for number in range(n_rounds):
        for place, phase in enumerate(stages_of_a_round):
            clock.enter(phase)
            now[0] += 10 + place
            if phase is Phase.GROWING:
                times[[KERNELS, SEARCH]] += 5, 2
                talking.seconds_spent += 1e-9
        assert clock.train() == (number + 1) * (10 + 11 + 12 + 14)
    found = clock.stages()
    spent = {name: round(1e9 * found.seconds[place] / n_rounds, 6) for name, place in PLACES.items()}
    assert {name: each for name, each in spent.items() if each} == {
        "growing": 7, "search": 2, "exchange": 1, "step": 11, "update": 12, "validate": 13, "report": 14
    }  # fmt: skip
    assert round(1e9 * found.outside("growing")) == 4 * n_rounds


def trained(folder: Path, profile: bool, threads: int = 2, valid: bool = True) -> TrainingOutcome:
    random = np.random.default_rng(0)
    columns = {f"x{j}": random.integers(0, 9, 400).tolist() for j in range(4)}
    write(folder / "t.parquet", {**columns, "label": random.integers(0, 3, 400).tolist()})
    path = str(folder / "t.parquet")
    plan = plan_data(DataRequest((path,), (path,) if valid else None, "label"))
    learner = {"kind": "hamming_tree", "max_leaves": 4}
    config = resolve_config({"algorithm": {"name": "adaboost_mh", "weak_learner": learner}, "rounds": 6})
    return train_in_process(TrainingJob("stages", 1, plan, config, threads, profile=profile), NoProgress())


@pytest.mark.parametrize("apart", [False, True])
def test_the_stages_of_a_training_are_all_of_its_time(
    tmp_path: Path, apart: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """apart: threads take columns of their own from files to bins, which tell the times of one thread."""
    if apart:
        monkeypatch.setattr(binner, "LEAST_ROWS", 0)
        monkeypatch.setattr(binner, "WHOLE_WORK", 1 << 20)
    outcome = trained(tmp_path, profile=True)
    found = outcome.stages
    assert sum(found.seconds) == pytest.approx(outcome.seconds["total"], rel=0.05, abs=0.01)
    assert all(inside <= whole + 1e-9 for whole, inside in zip(found.seconds, found.kernels, strict=True))
    assert found.phases()["train"] == outcome.seconds["train"] == pytest.approx(sum(map(found_in(found), ROUND_STAGES)))
    if not JIT_DISABLED and kernel_clock().address:
        assert all(
            found.kernels[PLACES[name]] > 0 for name in ("histograms", "search", "partition", "weights", "update")
        )


def found_in(found: Stages):  # type: ignore[no-untyped-def]
    return lambda name: found.seconds[PLACES[name]]


@pytest.mark.parametrize("valid", [True, False])
def test_every_round_tells_its_stages_where_that_is_asked_for(tmp_path: Path, valid: bool) -> None:
    """valid: without validation kernels run all rounds by themselves, and tell of them together."""
    asked, not_asked = (trained(tmp_path, profile, valid=valid) for profile in (True, False))
    assert all(each.seconds > 0 for each in (*asked.rounds, *not_asked.rounds))
    assert sum(each.seconds for each in asked.rounds) <= asked.seconds["train"]
    assert all(each.stages is None for each in not_asked.rounds)
    for each in asked.rounds:
        assert each.stages is not None
        own = {name: seconds for name, seconds in each.stages.items() if name in ROUND_STAGES}
        assert sum(own.values()) == pytest.approx(each.seconds, rel=1e-3, abs=1e-4)
        assert 0 <= each.stages["outside_kernels"] <= each.seconds + 1e-4
    assert asked.model.forest.payload.tobytes() == not_asked.model.forest.payload.tobytes()


def test_rounds_of_a_stretch_share_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what each took in kernels, as far as they know."""
    passed = TrainingObserver.passed

    def say(observer: TrainingObserver, nanoseconds: Sequence[int]) -> None:
        made_up = [[3, 1, 0, 2, 2], [0] * 5][len(told)]
        told.append(len(nanoseconds))
        passed(observer, made_up)

    told: list[int] = []
    monkeypatch.setattr(TrainingObserver, "passed", say)
    for shares in ([3, 1, 0, 2, 2], [1] * 5):
        seconds = [each.seconds for each in trained(tmp_path, profile=False, valid=False).rounds[1:]]
        assert seconds == pytest.approx([sum(seconds) * share / sum(shares) for share in shares])
    assert told == [5, 5]


@pytest.mark.skipif(kernel_clock().address == 0, reason="kernels have no clock here")
@pytest.mark.skipif(JIT_DISABLED, reason="uncompiled kernels are not timed")
def test_kernels_read_the_clock_that_python_reads() -> None:
    @kernel
    def now_in_a_kernel(times):  # type: ignore[no-untyped-def]
        return read_clock(times)

    times, clock = new_times(kernel_clock()), kernel_clock().now
    now_in_a_kernel(times)
    before = clock()
    inside = now_in_a_kernel(times)
    assert before <= inside <= clock()
    assert now_in_a_kernel(new_times()) == 0
