"""The resolved configuration of a training run: every default filled in, equal on every member."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Choice:
    """A named algorithm or weak learner with all its parameters."""

    name: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Stopping:
    """Early stopping: after `patience` rounds without a value of the metric that is lower by more than min_delta. The
    model ends at its best round."""

    metric: str
    patience: int
    min_delta: float = 0.0


@dataclass(frozen=True)
class TrainingConfig:
    """What decides a model, besides the data. Parameters are sorted by name and complete."""

    algorithm: Choice
    weak_learner: Choice
    rounds: int
    max_bins: int
    seed: int
    stopping: Stopping | None = None
    calibration: str | None = None  # "temperature", or none
    conditions: bool = False  # measure every round's weak-learning conditions: decides nothing

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, with the parameters' names in sorted order."""
        values = asdict(self)
        if not self.conditions:
            del values["conditions"]  # models without are as they were before there was any
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        return cls(
            algorithm=Choice(**values["algorithm"]),
            weak_learner=Choice(**values["weak_learner"]),
            rounds=values["rounds"],
            max_bins=values["max_bins"],
            seed=values["seed"],
            stopping=Stopping(**values["stopping"]) if values["stopping"] else None,
            calibration=values["calibration"],
            conditions=values.get("conditions", False),
        )
