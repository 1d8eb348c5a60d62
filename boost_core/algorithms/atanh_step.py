"""The step rule alpha = artanh(edge) on exact integers, with its caps (Freund & Schapire 1997)."""

from boost_core import ieee_math
from boost_core.algorithms.base import Step
from boost_core.model import SCORE_UNITS

ALPHA_CAP = 12.0  # step of a weak learner without error, whose artanh is infinite


def atanh_step(value: int, normaliser: int) -> Step:
    """alpha = 0.5 ln((N + V) / (N - V)); the loss shrinks by sqrt(1 - (V/N)**2).

    value V and normaliser N are sums of gains over all members, 0 <= V <= N. With V = N alpha is the cap and the
    factor recorded is that of the capped edge tanh(cap), which stays a valid bound.
    """
    edge = value / normaliser if normaliser else 0.0
    if value >= normaliser:
        return Step(edge, int(ALPHA_CAP * (1 << SCORE_UNITS)), _capped_ln_factor(), perfect=True)
    ln_right = float(ieee_math.log(float(normaliser + value)))
    ln_wrong = float(ieee_math.log(float(normaliser - value)))
    ln_factor = 0.5 * (ln_right + ln_wrong) - float(ieee_math.log(float(normaliser)))
    alpha = round(min(0.5 * (ln_right - ln_wrong), ALPHA_CAP) * (1 << SCORE_UNITS))
    return Step(edge, alpha, max(ln_factor, _capped_ln_factor()), perfect=False)


def _capped_ln_factor() -> float:
    """ln sqrt(1 - tanh(cap)**2) = -ln cosh(cap)."""
    weight = float(ieee_math.exp(-2.0 * ALPHA_CAP))
    return -(ALPHA_CAP - 0.6931471805599453 + float(ieee_math.log(1.0 + weight)))
