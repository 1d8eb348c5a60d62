"""The figures of the plan for many members: constants from timings, and rounds from constants."""

import numpy as np
import pytest

from benchmarks.gang import Case, synthetic
from benchmarks.plan import Constants, Cost, Shared, Work, cost, fitted, on_shared_cores, shared_constants
from benchmarks.plan_members import count, stand_in
from boost_core import gang_growth


def test_constants_are_those_that_made_the_seconds() -> None:
    amounts = np.array([[64.0, 10.0, 5.0], [32.0, 11.0, 5.0], [16.0, 12.0, 6.0], [8.0, 14.0, 6.0]])
    truth = np.array([3.0, 0.5, 2.0])
    assert fitted(amounts, amounts @ truth) == pytest.approx(truth)


def test_a_constant_is_never_below_zero() -> None:
    amounts = np.array([[4.0, 1.0], [2.0, 1.0], [1.0, 1.0]])
    seconds = amounts @ np.array([2.0, -0.5])
    found = fitted(amounts, seconds)
    assert found[0] > 0
    assert found[1] == 0


def test_a_round_is_the_sum_of_its_parts() -> None:
    constants = Constants(cell=1e-9, value=2e-9, step=1e-5, byte=1e-9, exchange=1e-4, message=1e-5)
    work = Work(members=5, cells=1e6, values=5e5, exchanges=10, sent=1.448e6)
    found = cost(work, constants, gigabits=1.0)
    assert found == pytest.approx(Cost(compute=2.1e-3, packing=1.448e-3, latency=1.4e-3, wire=12.112e-3))
    shared = Shared(slower=2.5, turn=1e-3, byte=1e-8)
    assert on_shared_cores(found, work, shared) == pytest.approx(2.5 * 2.1e-3 + 1e-2 + 1.448e-2)


@pytest.mark.parametrize("size", [2, 4])
def test_cells_are_counted_whether_histograms_count_rows_or_not(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    case = Case("small", 400, 6, 16, 4, 5, 3)
    codes, found = synthetic(case), []
    for sums_in_bins in (gang_growth.sums_in_bins, lambda _, n_channels: n_channels + 1):
        monkeypatch.setattr(gang_growth, "sums_in_bins", sums_in_bins)
        found.append((count(case, codes, size), stand_in(case, codes, size)))
    without, counting = found
    for one, other in zip(without, counting, strict=True):
        assert one["cells"] == other["cells"] >= 400 * 6 / size  # the root's, and those of smaller children
        assert one["values"] / other["values"] == pytest.approx(4 / 5)


def test_what_members_wait_for_each_other_is_told_from_what_their_work_takes_longer() -> None:
    alone = {"short": 1e-3, "long": 5e-3}
    turns = {name: 3e-4 + 2.25 * seconds for name, seconds in alone.items()}
    found = shared_constants(alone, turns | {"large": 2e-3, "bytes": 1e6})
    assert found == pytest.approx(Shared(slower=2.25, turn=3e-4, byte=2e-9))
    faster = shared_constants(alone, {"short": 9e-4, "long": 4.5e-3, "large": 0.0, "bytes": 1e6})
    assert (faster.slower, faster.turn) == (1.0, 0.0)  # noise, not a gain
