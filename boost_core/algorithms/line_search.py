"""The least of a loss along a line, by Newton's method kept within a bracket.

Every member runs the same search on the same numbers, so all of them find the same step.
"""

from collections.abc import Callable

from boost_core.algorithms.atanh_step import ALPHA_CAP

Slope = Callable[[float], tuple[float, float]]
TOLERANCE = 2.0**-24  # of a step: a sixteenth of the grid that steps are rounded to
MOST_TRIALS = 100


def least_along(slope: Slope) -> float:
    """The first step at which the loss stops falling, in [0, ALPHA_CAP].

    slope(alpha): first and second derivative of the loss, which need not be convex. The bracket [low, high] has a
    falling loss at its low end and a rising one at its high end, which is looked for by steps that at most double.
    """
    alpha, low, high = 0.0, 0.0, None
    for _ in range(MOST_TRIALS):
        first, second = slope(alpha)
        if first < 0:
            low = alpha
        else:
            high = alpha
        if low == ALPHA_CAP or high == 0.0 or first == 0:
            break
        wanted = alpha - first / second if second > 0 else ALPHA_CAP
        following = _within(wanted, low, high)
        done = abs(following - alpha) <= TOLERANCE
        alpha = following
        if done:
            break
    return alpha


def _within(wanted: float, low: float, high: float | None) -> float:
    """Newton's next step, or the middle of the bracket if it leads out of it."""
    if high is None:
        return min(max(wanted, low + TOLERANCE), 2.0 * low + 0.5, ALPHA_CAP)
    return wanted if low < wanted < high else 0.5 * (low + high)
