"""The step rule alpha = artanh(edge) on exact integers, with its caps (Freund & Schapire 1997)."""

import math

from boost_core import ieee_math
from boost_core.algorithms.base import Step
from boost_core.model import SCORE_UNITS

ALPHA_CAP = 12.0  # step of a weak learner without error, whose artanh is infinite
LN2 = 0.6931471805599453


def atanh_step(value: int, normaliser: int, n_cells: int) -> Step:
    """alpha = 0.5 ln((N + V) / (N - V)); the loss shrinks by sqrt(1 - (V/N)**2).

    value V and normaliser N are sums of gains over all members, 0 <= V <= N, of n_cells gains. With V = N alpha is the
    cap and the factor that of the capped edge tanh(cap), which stays a valid bound.

    Every gain is rounded by up to half a unit, so N - V is off by up to n_cells / 2 units, and so is the loss after the
    step: the slack says by how much both can move ln of the factor. It matters where the edge is close to 1.
    """
    edge = value / normaliser if normaliser else 0.0
    if value >= normaliser:
        return Step(
            edge, int(ALPHA_CAP * (1 << SCORE_UNITS)), _capped_ln_factor(), _capped_slack(normaliser, n_cells), True
        )
    ln_right, ln_wrong = _ln(normaliser + value), _ln(normaliser - value)
    ln_factor = 0.5 * (ln_right + ln_wrong) - _ln(normaliser)
    alpha = round(min(0.5 * (ln_right - ln_wrong), ALPHA_CAP) * (1 << SCORE_UNITS))
    slack = math.log1p(n_cells / (normaliser - value))
    return Step(edge, alpha, max(ln_factor, _capped_ln_factor()), slack, False)


def _ln(integer: int) -> float:
    return float(ieee_math.log(float(integer)))


def _capped_ln_factor() -> float:
    """ln sqrt(1 - tanh(cap)**2) = -ln cosh(cap)."""
    weight = float(ieee_math.exp(-2.0 * ALPHA_CAP))
    return -(ALPHA_CAP - LN2 + float(ieee_math.log(1.0 + weight)))


def _capped_slack(normaliser: int, n_cells: int) -> float:
    """Wrong pairs whose gains round to 0 may hold half a unit each, and grow by e**cap where all others shrink."""
    unseen = n_cells / (2.0 * max(normaliser, 1))
    return max(0.0, math.log(math.exp(-ALPHA_CAP) + unseen * math.exp(ALPHA_CAP)) - _capped_ln_factor())
