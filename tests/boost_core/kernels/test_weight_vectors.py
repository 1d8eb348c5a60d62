"""Weights of the exponential loss by vector instructions: the bits of ieee_math, at all lengths around the vectors'."""

import numpy as np
import pytest
from numpy.typing import NDArray

from boost_core import ieee_math
from boost_core.jit import kernel
from boost_core.scores import WIDEN_AT
from boost_core.weight_vectors import weigh_scores

LENGTHS = [1, 2, 3, 7, 8, 9, 15, 26, 40]
LOWEST = int(ieee_math.UNITS_FLOOR)


@kernel
def _weigh(scores, at, n, shift, factors, gains):  # type: ignore[no-untyped-def]
    weigh_scores(scores, at, n, shift, factors, gains)


@kernel
def _weigh_one_by_one(scores, at, n, shift, factors, gains):  # type: ignore[no-untyped-def]
    for k in range(n):
        x = min(max(np.float64(scores[at + k]) - np.float64(shift), ieee_math.UNITS_FLOOR), 0.0)
        gains[k] = np.int32(ieee_math.round_half_even(ieee_math.exp_units(x) * factors[k]))


def both(
    scores: NDArray[np.signedinteger], at: int, n: int, shift: int, factors: NDArray[np.float64]
) -> tuple[list[int], list[int]]:
    """Gains by vectors and one by one, with the entry behind them."""
    told, wanted = (np.full(n + 1, 7, np.int32) for _ in range(2))
    _weigh(scores, at, n, shift, factors, told)
    _weigh_one_by_one(scores, at, n, shift, factors, wanted)
    return told.tolist(), wanted.tolist()


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("n", LENGTHS)
def test_gains_are_those_of_ieee_math(kind: type[np.signedinteger], n: int) -> None:
    rng = np.random.default_rng(n)
    for reach in (1, 1 << 20, 25 << 20, WIDEN_AT - 1):
        scores = rng.integers(-reach, reach, 3 * n, endpoint=True).astype(kind)
        for at, shift in ((n, int(scores.max())), (2 * n, int(scores.min()))):  # of the latter all exponents are 0
            told, wanted = both(scores, at, n, shift, rng.uniform(0.0, 2.0**30, n))
            assert told == wanted


def test_wide_scores_may_be_as_far_apart_as_they_like() -> None:
    scores = np.array([0, -(1 << 40), (1 << 40), LOWEST, LOWEST - 1, LOWEST + 1, -1, 1, 5], np.int64)
    for shift in (0, 1 << 40, -(1 << 40)):
        told, wanted = both(scores, 0, len(scores), shift, np.full(len(scores), 2.0**30))
        assert told == wanted


def test_what_int32_cannot_hold_is_cut_off() -> None:
    gains = np.zeros(9, np.int32)
    _weigh(np.zeros(9, np.int32), 0, 9, 0, np.full(9, 2.0**32 + 3.0), gains)
    assert (gains == 3).all()
