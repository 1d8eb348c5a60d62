"""What a round reports, why training stopped, and whom the loop tells."""

import enum
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple, Protocol, Self

from boost_core.conditions import Conditions


class StopReason(enum.StrEnum):
    """Why the loop ended."""

    ROUNDS = "rounds"  # every round asked for was run
    EDGE_ONE = "edge_one"  # the weak learner made no error: another round would repeat it
    EDGE_ZERO = "edge_zero"  # the best weak learner is no better than chance: it was dropped
    ALPHA_ZERO = "alpha_zero"  # the rounded step is zero: the model would not change
    STOPPED_EARLY = "stopped_early"  # the metric has not improved for as many rounds as patience allows
    CANCELLED = "cancelled"  # a member asked to stop; the model holds the rounds finished so far


class Phase(enum.StrEnum):
    """What the loop is doing, for an observer that holds the clock. Exactly one phase runs at a time."""

    OTHER = "other"  # before the first round and after the last one: replay, margins, calibration
    WEIGHTS = "weights"  # from scores to the gain matrix and its sums
    GROWING = "growing"  # the weak learner
    STEP = "step"  # its edge and alpha
    CONDITIONS = "conditions"  # how it meets the weak-learning conditions, where a job asks
    UPDATE = "update"  # the new scores and their errors
    VALIDATE = "validate"  # the same of validation rows
    REPORT = "report"  # the round's figures are recorded and told
    CHECKPOINT = "checkpoint"  # the model so far is kept


class RoundRecord(NamedTuple):
    """Figures of one finished round, equal on every member.

    round: 1-based. edge: in [0, 1]. alpha: step. loss: the algorithm's loss after the round, `bound` what the
    theory proves for it (product of the rounds' factors), both also as natural logarithms, which never leave the
    range of a float. Errors are fractions of rows; train_error counts ties as predicted (smallest class wins).
    bytes_reduced: payload bytes this member sent in the round. valid_log_loss: mean -ln of the probability of a
    validation row's label; taken where early stopping goes by it, since it costs an exponential a row and class.
    conditions: how the weak learner meets each weak-learning condition, if the job asks for them.
    """

    round: int
    edge: float
    alpha: float
    loss: float
    ln_loss: float
    bound: float
    ln_bound: float
    error_bound: float | None
    train_error: float
    strict_train_error: float
    valid_error: float | None
    n_leaves: int
    bytes_reduced: int
    valid_log_loss: float | None = None
    conditions: Conditions | None = None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of to_dict."""
        conditions = values.get("conditions")
        return cls(**{**values, "conditions": None if conditions is None else Conditions(**conditions)})

    def to_dict(self) -> dict[str, Any]:
        """All figures by name, conditions by their own names."""
        return {**self._asdict(), "conditions": None if self.conditions is None else asdict(self.conditions)}


class Observer(Protocol):
    """Follows a training run. The loop has no clock and does no I/O: both belong to the observer."""

    def enter(self, phase: Phase) -> None:
        """The loop enters a phase."""

    def round_done(self, record: RoundRecord) -> None:
        """A round is finished."""

    def stop_requested(self) -> bool:
        """Asked once a round; one member's True stops the whole gang after the same round."""


class Silent:
    """An observer that looks away."""

    def enter(self, phase: Phase) -> None:
        """Nothing to note."""

    def round_done(self, record: RoundRecord) -> None:
        """Nothing to note."""

    def stop_requested(self) -> bool:
        return False
