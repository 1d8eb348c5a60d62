"""Compiles every kernel that a job needs, by training a tiny problem of the same shape."""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boost_core.binning import make_binning
from boost_core.collective import Alone, Collective, Integers
from boost_core.config import TrainingConfig
from boost_core.records import Silent
from boost_core.shard import Shard
from boost_core.team import Team
from boost_core.training import TrainingData, train

ROWS_A_CLASS = 3


class Mirrored(Alone):
    """A gang of two in one process: the other member holds the same rows and says the same, but is not there.

    Of the features it finds the cuts of its own slice only, the first ones.
    """

    size = 2

    def sum(self, values: Integers) -> Integers:
        return 2 * values

    def reduce_scatter(self, histograms: Integers, bounds: Integers) -> Integers:
        return 2 * histograms[:, bounds[0] : bounds[1]]

    def all_gather(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        return [values, values]


def warm_up(config: TrainingConfig, n_classes: int, in_gang: bool = False, weighted: bool = False) -> None:
    """Train two rounds on three rows a class and three features: compiled code then exists for this many classes.

    in_gang: for a member of several, whose trees grow by other kernels; weighted: for rows with weights.
    """
    collective: Collective = Mirrored() if in_gang else Alone()
    labels = np.arange(ROWS_A_CLASS * n_classes, dtype=np.int32) % n_classes
    # Two of three rows tell their class, so that there is something to learn; the last one of all classes is the same,
    # so that no weak learner is perfect and ends the run.
    tells = np.arange(len(labels)) < 2 * n_classes
    bins = np.stack([tells * (labels & 1), tells * (labels >> 1 & 1), tells]).astype(np.uint8)
    copies = np.ones(len(labels), np.int64) if weighted else None
    shard = Shard(bins, labels, ((0, len(labels)),), copies)
    binning = make_binning([np.array([0.5])] * len(bins), [False] * len(bins))
    counts = collective.size * np.bincount(labels)
    data = TrainingData(shard, shard, binning, counts, collective.size * len(labels))
    with Team(1) as team:
        train(data, dataclasses.replace(config, rounds=2), collective, Silent(), team)
