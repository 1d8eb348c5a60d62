"""Compiles every kernel that a job needs, by training a tiny problem of the same shape."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boost_core.algorithms.base import MaybeSparse, channels_of
from boost_core.binning import make_binning
from boost_core.catalogue import ALGORITHMS, WEAK_LEARNERS
from boost_core.collective import Alone, Collective, Integers
from boost_core.config import TrainingConfig
from boost_core.gain_matrix import GainMatrix
from boost_core.growth import Grower
from boost_core.records import Phase, Silent
from boost_core.replay import route_round
from boost_core.row_weights import new_gains
from boost_core.shard import Shard
from boost_core.start import Start
from boost_core.team import Rehearsal
from boost_core.training import train
from boost_core.training_data import TrainingData, by_class, problem_of

ROWS_A_CLASS = 3
MADE_UP = 1 << 20


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
    """What kernels are for: a member of several, whose trees grow by others; rows with weights; with several labels;
    other rows for validation."""

    in_gang: bool = False
    weighted: bool = False
    multi_label: bool = False
    validated: bool = False


def warm_up(
    config: TrainingConfig,
    n_classes: int,
    kind: WarmUp | None = None,
    before_growth: Callable[[], None] = lambda: None,
) -> None:
    """Train two rounds on three rows a class and three features: compiled code then exists for this many classes.

    before_growth: called before every weak learner, whose kernels `warm_up_growth` may have made elsewhere meanwhile.
    """
    kind = kind or WarmUp()
    data, collective = _tiny(n_classes, kind)
    bare = dataclasses.replace(data, valid=None, n_valid=0)
    config = dataclasses.replace(config, rounds=2)
    observer: Silent = _Gate(before_growth)
    must_validate = config.stopping is not None or config.calibration is not None
    with Rehearsal() as team:
        if collective.size == 1 and not must_validate:
            # stretches have no validation, and what they need is compiled before there are weak learners
            train(bare, config, collective, observer, team)
            observer = Silent()  # which has rounds one by one
        if kind.validated or kind.in_gang or must_validate:
            train(data, config, collective, observer, team)
        else:
            start = Start()
            train(bare, config, collective, observer, team, start)
            assert start.standing is not None
            # rounds of a stretch may be taken back, and those of a checkpoint are added again
            route_round(start.standing.rounds[-1], bare.train, bare.binning, team)


def warm_up_growth(config: TrainingConfig, n_classes: int, kind: WarmUp | None = None) -> None:
    """Fit one weak learner, to gains made up, since it takes kernels to make those of the algorithm: what is compiled
    then is most of what training needs, and none of the rest, which another process may compile at the same time.

    Gains in lists (sparse_gains.py) are not made up: nothing is compiled.
    """
    data, collective = _tiny(n_classes, kind or WarmUp())
    with Rehearsal() as team:
        data = by_class(data, config, collective)
        choice = config.algorithm
        algorithm = ALGORITHMS[choice.name](problem_of(data, config, collective, team), choice.parameters)
        if isinstance(algorithm, MaybeSparse) and algorithm.sparse:
            return
        n_channels = channels_of(algorithm)
        gains = _made_up(data.train, n_channels)
        sums = collective.sum(gains.values[:, : n_channels + 1].sum(axis=0, dtype=np.int64))
        grower = Grower(data.train, data.binning, collective, team)
        WEAK_LEARNERS[config.weak_learner.name](grower, config.weak_learner.parameters).fit(gains, sums)


class _Gate(Silent):
    """Calls something before every weak learner."""

    def __init__(self, before_growth: Callable[[], None]) -> None:
        self._before_growth = before_growth

    def enter(self, phase: Phase) -> None:
        if phase is Phase.GROWING:
            self._before_growth()

    def passed(self, nanoseconds: Sequence[int]) -> None:
        """Several rounds may pass at once."""


def _tiny(n_classes: int, kind: WarmUp) -> tuple[TrainingData, Collective]:
    """What to train on."""
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
    return TrainingData(shard, shard, binning, counts, n_rows, n_rows), collective


def _made_up(shard: Shard, n_channels: int) -> GainMatrix:
    """Gains that favour a row's own label, of the types that algorithms give them."""
    values = new_gains(shard.n_rows, n_channels, shard.copies)
    values[:, :n_channels] = np.where(np.arange(n_channels) == shard.labels[:, None] % n_channels, MADE_UP, -MADE_UP)
    values[:, n_channels] = 1
    return GainMatrix(values, n_channels, 0, MADE_UP * shard.n_rows * n_channels)
