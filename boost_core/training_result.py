"""What training comes to."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boost_core.conditions import as_figures
from boost_core.margin_report import MarginReport
from boost_core.model import Forest, RoundFigures
from boost_core.records import RoundRecord, StopReason


@dataclass(frozen=True)
class TrainingResult:
    """The forest and the records of all rounds that were run, equal on every member. Early stopping ends the forest at
    its best round."""

    forest: Forest
    records: tuple[RoundRecord, ...]
    stop_reason: StopReason
    temperature: float = 1.0
    margins: MarginReport | None = None

    def figures(self) -> RoundFigures:
        """The records as arrays, for the model."""

        def column(read: Callable[[RoundRecord], float | None]) -> NDArray[np.float64]:
            values = [read(record) for record in self.records[: self.forest.n_rounds]]
            return np.array([math.nan if value is None else value for value in values], np.float64)

        return RoundFigures(
            edge=column(lambda r: r.edge),
            alpha=column(lambda r: r.alpha),
            ln_loss=column(lambda r: r.ln_loss),
            ln_bound=column(lambda r: r.ln_bound),
            train_error=column(lambda r: r.train_error),
            valid_error=column(lambda r: r.valid_error),
        )

    def conditions(self) -> NDArray[np.float64] | None:
        """What was measured of weak-learning conditions, for the model: [n_rounds, 6], NaN for None."""
        return as_figures([record.conditions for record in self.records[: self.forest.n_rounds]])
