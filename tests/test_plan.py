"""The figures of the plan for many members: constants from timings, and rounds from constants."""

import numpy as np
import pytest

from benchmarks.plan import Constants, Cost, Work, cost, fitted, on_shared_cores


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
    found = cost(Work(members=5, cells=1e6, values=5e5, exchanges=10, sent=1.448e6), constants, gigabits=1.0)
    assert found == pytest.approx(Cost(compute=2.1e-3, packing=1.448e-3, latency=1.4e-3, wire=12.112e-3))
    assert on_shared_cores(found, members=5, cores=2) == pytest.approx(2.5 * 4.948e-3 + 12.112e-3)
    assert on_shared_cores(found, members=1, cores=2) == pytest.approx(found.total)
