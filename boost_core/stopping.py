"""Early stopping on a metric that the rounds report."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from boost_core.config import Stopping
from boost_core.records import RoundRecord

ERROR, LOG_LOSS = "error", "log_loss"
# Every metric falls as a model gets better. The loss goes by its logarithm, which never leaves a float's range.
METRICS: dict[str, Callable[[RoundRecord], float | None]] = {
    ERROR: lambda record: record.valid_error,
    LOG_LOSS: lambda record: record.valid_log_loss,
    "train_error": lambda record: record.train_error,
    "strict_train_error": lambda record: record.strict_train_error,
    "loss": lambda record: record.ln_loss,
}
OF_VALIDATION = (ERROR, LOG_LOSS)
MEANINGS = (
    "error, log_loss: of the validation rows; train_error, strict_train_error (level classes count as wrong): of the "
    "training rows; loss: natural logarithm of the algorithm's own loss"
)


@dataclass
class BestRound:
    """The round with the least value of the metric so far; 0 before any."""

    stopping: Stopping | None
    round: int = 0
    value: float = math.inf

    def note(self, record: RoundRecord) -> None:
        """See a round. It is better if it is lower by more than min_delta."""
        if self.stopping is None:
            return
        value = METRICS[self.stopping.metric](record)
        if value is not None and value < self.value - self.stopping.min_delta:
            self.round, self.value = record.round, value

    def has_passed(self, n_rounds: int) -> bool:
        """Whether it is so long ago that patience ends."""
        return self.stopping is not None and n_rounds - self.round >= self.stopping.patience
