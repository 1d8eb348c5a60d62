"""What the loop asks of an algorithm."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from boost_core.gain_matrix import GainMatrix
from boost_core.parameters import Parameter
from boost_core.scores import Scores
from boost_core.team import Team

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Problem:
    """What an algorithm learns from: this member's labels and the facts that all members agree on.

    labels: int32 [n_rows], class indices; class_counts: int64 [n_classes], rows of each class over all members.
    """

    labels: NDArray[np.int32]
    class_counts: Integers
    team: Team

    @property
    def n_classes(self) -> int:
        return int(self.class_counts.shape[0])


@dataclass(frozen=True)
class Gains:
    """A round's gain matrix with what its integers mean.

    totals: int64 [k], this member's sums, added over the members by the loop and handed back to `edge` and `ln_loss`
    (totals[0] is the sum of absolute gains); shift: the exponents' shift in score units.
    """

    matrix: GainMatrix
    totals: Integers
    shift: int


@dataclass(frozen=True)
class Step:
    """How far to go along a weak learner. edge = value / normaliser, exactly; alpha in score units."""

    edge: float
    alpha: int
    ln_factor: float  # ln of what the loss is proved to shrink by
    ln_slack: float  # how far rounding of the gains can move that
    perfect: bool  # the edge is 1


class Algorithm(Protocol):
    """One boosting algorithm bound to one member's rows. Its state is the scores, which the loop holds."""

    name: ClassVar[str]
    summary: ClassVar[str]
    source: ClassVar[str]
    guarantee: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]]
    weak_learners: ClassVar[tuple[str, ...]]

    @property
    def n_columns(self) -> int:
        """Score columns."""

    @property
    def error_factor(self) -> float:
        """The strict training error is at most this times the loss bound."""

    def peaks(self, scores: Scores) -> Integers:
        """This member's numbers of which the greatest over all members is needed for `gains`."""

    def gains(self, scores: Scores, peaks: Integers) -> Gains:
        """The gain matrix at these scores; peaks: elementwise maximum over all members."""

    def ln_loss(self, gains: Gains, totals: Integers) -> float:
        """ln of the loss at the scores of `gains`; totals: sums over all members."""

    def step(self, value: int, totals: Integers) -> Step:
        """The step along a weak learner of this value (sum of its gains over all members)."""
