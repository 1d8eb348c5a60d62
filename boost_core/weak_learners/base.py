"""What the loop asks of a weak learner."""

from typing import Any, ClassVar, Protocol, runtime_checkable

from boost_core.cut import Integers
from boost_core.fitted import Fitted
from boost_core.gain_matrix import GainMatrix
from boost_core.growth import Grower, Growth
from boost_core.parameters import Parameter


class WeakLearner(Protocol):
    """One kind of weak learner, bound to one member's rows through its Grower."""

    kind: ClassVar[str]
    summary: ClassVar[str]
    source: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]]

    def __init__(self, grower: Grower, parameters: Any) -> None: ...

    def fit(self, gains: GainMatrix, sums: Integers) -> Fitted:
        """The weak learner of the largest value it finds; sums: of each channel and the row count, over all members."""


@runtime_checkable
class OneTree(Protocol):
    """A weak learner that is one tree with a vote, +1 or -1, for every label, where it is to speak for all of them."""

    def growth(self, n_channels: int) -> Growth:
        """How `fit` grows it."""
