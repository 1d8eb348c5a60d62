"""Independent stumps (W6; Kegl 2013): every label gets the best cut for itself."""

from typing import Any, ClassVar

from boost_core.cut import Integers
from boost_core.fitted import Fitted
from boost_core.gain_matrix import GainMatrix
from boost_core.growth import Grower
from boost_core.parameters import Parameter
from boost_core.weak_learners.apart import StumpsApart


class IndependentStumps:
    """A stump a label. How far each of them goes is the algorithm's business: it reads `alpha`."""

    kind: ClassVar[str] = "independent_stumps"
    summary: ClassVar[str] = "a stump of its own for every label"
    source: ClassVar[str] = "Kegl, The return of AdaBoost.MH, arXiv 1312.6086, 2013"
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "alpha",
            "string",
            "per_label",
            "per_label: a step for every label; shared: one step for all",
            choices=("per_label", "shared"),
        ),
    )

    def __init__(self, grower: Grower, parameters: Any) -> None:
        self._stumps = StumpsApart(grower)

    def fit(self, gains: GainMatrix, sums: Integers) -> Fitted:
        return self._stumps.fit(gains, sums)
