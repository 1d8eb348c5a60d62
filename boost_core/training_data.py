"""What a member trains on: its rows, and what all members' rows come to."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from boost_core.algorithms.base import Problem
from boost_core.binning import Binning
from boost_core.class_weights import class_factors, mass_of, weighed
from boost_core.collective import Collective
from boost_core.config import TrainingConfig
from boost_core.shard import Shard
from boost_core.team import Team

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class TrainingData:
    """A member's rows. class_counts: int64 [n_classes] over the training rows of all members; n_valid: validation
    rows of all members; rows with weights count in both as often as their copies.
    Multi-label: class_counts are the rows that have each label, set_rows all training rows."""

    train: Shard
    valid: Shard | None
    binning: Binning
    class_counts: Integers
    n_valid: int = 0
    set_rows: int = 0

    @property
    def n_rows(self) -> int:
        """Training rows of all members, weighted."""
        return self.set_rows if self.train.sets is not None else int(self.class_counts.sum())


def by_class(data: TrainingData, config: TrainingConfig, collective: Collective) -> TrainingData:
    """The data with class weights, where there are any."""
    factors = class_factors(config, data.class_counts)
    if factors is None:
        return data
    rows = weighed(data.train, factors, collective)
    data = replace(data, train=rows, class_counts=mass_of(rows, factors.shape[0], collective))
    if not data.n_valid:
        return data
    assert data.valid is not None
    valid = weighed(data.valid, factors, collective)
    return replace(data, valid=valid, n_valid=int(mass_of(valid, factors.shape[0], collective).sum()))


def problem_of(data: TrainingData, config: TrainingConfig, collective: Collective, team: Team) -> Problem:
    """What the algorithm is bound to on a member."""
    shard = data.train
    return Problem(
        shard.labels,
        data.class_counts,
        team,
        weak_learner=config.weak_learner,
        seed=config.seed,
        row_ranges=shard.row_ranges,
        collective=collective,
        rounds=config.rounds,
        copies=shard.copies,
        range_edges=shard.range_edges(),
        sets=shard.sets,
        set_rows=data.set_rows,
    )
