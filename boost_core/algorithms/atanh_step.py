"""The step rule alpha = artanh(edge) on exact integers, with its caps (Freund & Schapire 1997)."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boost_core import ieee_math
from boost_core.algorithms.base import Step, step_units
from boost_core.model import SCORE_UNITS
from boost_core.objective import implements
from boost_core.records import StopReason

Integers = NDArray[np.int64]
ALPHA_CAP = 12.0  # step of a weak learner without error, whose artanh is infinite
CAPPED_LN_FACTOR = -11.306852819477806  # ln sqrt(1 - tanh(cap)**2) = -ln cosh(12)


def atanh_step(value: int, normaliser: int, n_cells: int, share: float = 1.0) -> Step:
    """alpha = 0.5 ln((N + V) / (N - V)); the loss shrinks by sqrt(1 - (V/N)**2).

    value V and normaliser N are sums of gains over all members, 0 <= V <= N, of n_cells gains. With V = N alpha is the
    cap and the factor that of the capped edge tanh(cap), which stays a valid bound.

    Every gain is rounded by up to half a unit, so N - V is off by up to n_cells / 2 units, and so is the loss after the
    step: the slack says by how much both can move ln of the factor. It matters where the edge is close to 1. share: as
    in make_step.
    """
    edge = value / normaliser if normaliser else 0.0
    if value >= normaliser:
        return make_step(
            edge,
            ALPHA_CAP,
            CAPPED_LN_FACTOR,
            _capped_slack(normaliser, n_cells),
            perfect=True,
            share=share,
        )
    logs = ieee_math.three_logs(float(normaliser + value), float(normaliser - value), float(normaliser))
    return _ordinary_step(edge, logs, n_cells / (normaliser - value), share)


def _ordinary_step(edge: float, logs: tuple[float, float, float], cells_a_unit: float, share: float) -> Step:
    """logs: of N + V, N - V and N; cells_a_unit: n_cells / (N - V)."""
    ln_right, ln_wrong, ln_all = logs
    ln_factor = max(0.5 * (ln_right + ln_wrong) - ln_all, CAPPED_LN_FACTOR)
    alpha = min(0.5 * (ln_right - ln_wrong), ALPHA_CAP)
    return make_step(edge, alpha, ln_factor, math.log1p(cells_a_unit), share=share)


def atanh_steps(values: Integers, normalisers: Integers, n_cells: int) -> list[Step]:
    """atanh_step for the weak learners of many rounds, all of them with 0 < V < N; values, normalisers: int64 [n]."""
    numbers = np.stack([normalisers + values, normalisers - values, normalisers]).astype(np.float64)
    logs = np.empty(numbers.size)
    ieee_math.logs(numbers.reshape(-1), logs)
    of_steps = zip(*(each.tolist() for each in logs.reshape(numbers.shape)), strict=True)
    # Python divides integers exactly, NumPy makes doubles of them first
    return [
        _ordinary_step(value / normaliser, each, n_cells / (normaliser - value), 1.0)
        for value, normaliser, each in zip(values.tolist(), normalisers.tolist(), of_steps, strict=True)
    ]


class Atanh(NamedTuple):
    """The same rule for kernels; share: as in make_step."""

    share: float


ATANH = Atanh(1.0)


@implements(step_units, Atanh)
def _step_units(rule, value, normaliser):  # type: ignore[no-untyped-def]
    """The multiplier of atanh_step, 0 where that is refused or the edge is 1."""
    if value <= 0 or value >= normaliser:
        return np.int64(0)
    right, wrong = ieee_math.log(np.float64(normaliser + value)), ieee_math.log(np.float64(normaliser - value))
    alpha = min(0.5 * (right - wrong), ALPHA_CAP)
    return max(ieee_math.round_half_even(alpha * rule.share * (1 << SCORE_UNITS)), np.int64(0))


def make_step(
    edge: float,
    alpha: float,
    ln_factor: float,
    ln_slack: float,
    *,
    perfect: bool = False,
    share: float = 1.0,
) -> Step:
    """A step of one part, rounded to score units; refused where nothing is left to gain.

    share: the part of alpha, a power of two, that the weak learner's outputs are multiplied with.
    """
    units = round(alpha * share * (1 << SCORE_UNITS))
    refused = StopReason.EDGE_ZERO if edge <= 0 else StopReason.ALPHA_ZERO if units <= 0 else None
    alpha = units / (share * (1 << SCORE_UNITS))
    return Step(edge, alpha, np.array([units], np.int64), ln_factor, ln_slack, perfect, refused)


def ln(integer: int) -> float:
    """Natural logarithm of an exact sum."""
    return float(ieee_math.log(float(integer)))


def _capped_slack(normaliser: int, n_cells: int) -> float:
    """Wrong pairs whose gains round to 0 may hold half a unit each, and grow by e**cap where all others shrink."""
    unseen = n_cells / (2.0 * max(normaliser, 1))
    return max(
        0.0,
        math.log(math.exp(-ALPHA_CAP) + unseen * math.exp(ALPHA_CAP)) - CAPPED_LN_FACTOR,
    )
