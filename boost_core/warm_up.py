"""Compiles every kernel that a job needs, by training a tiny problem of the same shape."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boost_core.binning import make_binning
from boost_core.collective import Alone, Collective, Integers
from boost_core.config import TrainingConfig
from boost_core.records import Silent
from boost_core.shard import Shard
from boost_core.team import Rehearsal
from boost_core.training import train
from boost_core.training_data import TrainingData

ROWS_A_CLASS = 3


class Mirrored(Alone):
    """A gang of two in one process: the other member holds the same rows and says the same, but is not there.

    Of the features it finds the cuts of its own slice only, the first ones.
    """

    size = 2

    def sum(self, values: Integers) -> Integers:
        return 2 * values

    def reduce_scatter(self, histograms: Integers, bounds: Integers, n_used: int | None = None) -> Integers:
        return 2 * histograms[:, bounds[0] : bounds[1], :n_used]

    def all_gather(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        return [values, values]

    def all_to_all(self, parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        return [parts[0], parts[0]]


@dataclass(frozen=True)
class WarmUp:
    """What kernels are for: a member of several, whose trees grow by others; rows with weights; with several labels."""

    in_gang: bool = False
    weighted: bool = False
    multi_label: bool = False


def warm_up(config: TrainingConfig, n_classes: int, kind: WarmUp | None = None) -> None:
    """Train two rounds on three rows a class and three features: compiled code then exists for this many classes."""
    kind = kind or WarmUp()
    collective: Collective = Mirrored() if kind.in_gang else Alone()
    labels = np.arange(ROWS_A_CLASS * n_classes, dtype=np.int32) % n_classes
    # Two of three rows tell their class, so that there is something to learn; the last one of all classes is the same,
    # so that no weak learner is perfect and ends the run.
    tells = np.arange(len(labels)) < 2 * n_classes
    bins = np.stack([tells * (labels & 1), tells * (labels >> 1 & 1), tells]).astype(np.uint8)
    copies = np.ones(len(labels), np.int64) if kind.weighted else None
    sets = (np.arange(n_classes) == labels[:, None]).astype(np.uint8) if kind.multi_label else None
    shard = Shard(bins, labels, ((0, len(labels)),), copies, None, sets)
    binning = make_binning([np.array([0.5])] * len(bins), [False] * len(bins))
    counts = collective.size * np.bincount(labels)
    n_rows = collective.size * len(labels)
    data = TrainingData(shard, shard, binning, counts, n_rows, n_rows)
    with Rehearsal() as team:
        train(data, dataclasses.replace(config, rounds=2), collective, Silent(), team)
