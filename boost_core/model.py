"""A fitted model as plain arrays: what a model file holds and what prediction reads."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boost_core.config import TrainingConfig
from boost_core.decoding import Decoding, Rule
from boost_core.fitted import Speech

SCORE_UNITS = 20  # alphas and scores are integers in units of 2**-20: see docs/engine.md for the choice
FORMAT_VERSION = 1

Label = int | str | bool | float


@dataclass(frozen=True)
class Feature:
    """One input column: its name and its Arrow type when trained."""

    name: str
    type: str


@dataclass(frozen=True)
class Forest:
    """All trees of a model, round after round (R rounds, T trees, N nodes and L leaves in all).

    node_start, leaf_start: int64 [T + 1]; the tree's nodes and leaves.
    node_feature int32 [N]; node_kind int8 [N] (a boost_core.cut.CutKind); node_bin int32 [N], the last bin that
    goes left; node_threshold float64 [N], x >= threshold goes right (NaN where the kind has none);
    node_missing_left bool [N]; node_left, node_right int32 [N]: a node of the same tree if >= 0, else leaf ~value.
    payload [L, n_outputs], int8 for votes else int32, and its meaning: see fitted.Speech; multiplier int64
    [T] in score units; column int32 [T], the score column a tree speaks for or -1; round_start int64 [R + 1], the
    trees of each round; decoding: how a row's scores become its class. A tree without nodes is the constant of its only
    leaf.
    """

    node_start: NDArray[np.int64]
    leaf_start: NDArray[np.int64]
    node_feature: NDArray[np.int32]
    node_kind: NDArray[np.int8]
    node_bin: NDArray[np.int32]
    node_threshold: NDArray[np.float64]
    node_missing_left: NDArray[np.bool_]
    node_left: NDArray[np.int32]
    node_right: NDArray[np.int32]
    payload: NDArray[np.integer]
    multiplier: NDArray[np.int64]
    column: NDArray[np.int32]
    round_start: NDArray[np.int64]
    speech: Speech
    n_columns: int
    decoding: Decoding

    @property
    def n_trees(self) -> int:
        return int(self.multiplier.shape[0])

    @property
    def n_rounds(self) -> int:
        return int(self.round_start.shape[0]) - 1


@dataclass(frozen=True)
class RoundFigures:
    """Integer-derived figures of every round of the model, float64 [R] each (errors are fractions)."""

    edge: NDArray[np.float64]
    alpha: NDArray[np.float64]
    ln_loss: NDArray[np.float64]
    ln_bound: NDArray[np.float64]
    train_error: NDArray[np.float64]
    valid_error: NDArray[np.float64]  # NaN without validation data


@dataclass(frozen=True)
class Model:
    """A fitted model. Nothing in it depends on where or on how many workers it was trained."""

    config: TrainingConfig
    features: tuple[Feature, ...]
    label: str | tuple[str, ...]  # the label column's name, or those of the columns of 0 and 1
    classes: tuple[Label, ...]
    thresholds: NDArray[np.float64]  # all features' thresholds, ascending within a feature
    threshold_start: NDArray[np.int64]  # [n_features + 1]
    forest: Forest
    figures: RoundFigures
    fingerprint: int  # of the training data: wrap-around sum of 64-bit row hashes, 0 <= value < 2**64
    n_rows: int  # training rows
    temperature: float = 1.0  # of the probabilities, see calibration.py
    conditions: NDArray[np.float64] | None = (
        None  # [R, 6] of each round, see conditions.py (NaN: none); None: not asked
    )

    @property
    def multi_label(self) -> bool:
        """Whether a row is predicted a set of labels."""
        return self.forest.decoding.rule is Rule.SIGNS

    def metadata(self) -> dict[str, Any]:
        """JSON-ready description without the arrays."""
        return {
            "format_version": FORMAT_VERSION,
            "config": self.config.to_dict(),
            "features": [{"name": feature.name, "type": feature.type} for feature in self.features],
            "label": self.label if isinstance(self.label, str) else list(self.label),
            "classes": list(self.classes),
            "n_columns": self.forest.n_columns,
            "speech": self.forest.speech.value,
            "decoding": self.forest.decoding.rule.value,
            "fingerprint": f"{self.fingerprint:016x}",
            "n_rows": self.n_rows,
            "temperature": self.temperature,
        }
