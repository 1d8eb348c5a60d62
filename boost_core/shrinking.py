"""The learning rate: a step along a weak learner, made shorter."""

import math

import numpy as np

from boost_core.algorithms.base import Step
from boost_core.fitted import Fitted, Part, Speech
from boost_core.records import StopReason


def shrink(fitted: Fitted, step: Step, shrinkage: float) -> tuple[Fitted, Step]:
    """The same weak learner and a step of shrinkage times the length, 0 < shrinkage <= 1, on the score grid.

    The losses are convex along a step, so the factor f of the whole step bounds that of a part v of it by
    (1 - v) + v f. Real-valued leaves hold the step in themselves; there the leaves are shrunk.
    """
    if shrinkage == 1.0 or step.refused is not None:
        return fitted, step
    ln_factor = math.log1p(shrinkage * math.expm1(step.ln_factor))
    # rounding to the grid moves each step by up to half a unit of 2**-20
    shorter = step._replace(alpha=step.alpha * shrinkage, ln_factor=ln_factor, ln_slack=step.ln_slack + 2.0**-20)
    if fitted.speech is Speech.VALUES:
        parts = tuple(
            Part(part.tree._replace(payload=_scaled(part.tree.payload, shrinkage)), part.column)
            for part in fitted.parts
        )
        return Fitted(parts, fitted.speech), shorter
    multipliers = np.rint(step.multipliers * shrinkage).astype(np.int64)
    refused = None if (multipliers > 0).any() else StopReason.ALPHA_ZERO
    return fitted, shorter._replace(multipliers=multipliers, refused=refused)


def _scaled(
    payload: "np.ndarray[tuple[int, ...], np.dtype[np.int32]]", shrinkage: float
) -> "np.ndarray[tuple[int, ...], np.dtype[np.int32]]":
    return np.asarray(np.rint(payload * shrinkage), np.int32)
