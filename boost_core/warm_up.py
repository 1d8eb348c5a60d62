"""Compiles every kernel that a job needs, by training a tiny problem of the same shape."""

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boost_core.algorithms.base import MaybeSparse, channels_of, reading_of
from boost_core.binning import make_binning
from boost_core.catalogue import ALGORITHMS, WEAK_LEARNERS
from boost_core.collective import Alone, Collective, Integers
from boost_core.config import TrainingConfig
from boost_core.fitted import Fitted
from boost_core.gain_matrix import GainMatrix
from boost_core.growth import Grower, Growth
from boost_core.records import Phase, Silent
from boost_core.replay import route_round
from boost_core.row_weights import new_gains
from boost_core.scores import zero_scores
from boost_core.shard import Shard
from boost_core.start import Start
from boost_core.team import Rehearsal, Team
from boost_core.training import train
from boost_core.training_data import TrainingData, by_class, problem_of
from boost_core.tree import Tree

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
    then is most of what training needs, and none of the rest, which another process may compile at the same time, nor,
    where no gang is, what sums gains up (warm_up_sums). Then compile what is needed after weak learners.

    Gains in lists (sparse_gains.py) are not made up: nothing is compiled.
    """
    kind = kind or WarmUp()
    with Rehearsal() as team:
        made_up = _made_up(config, n_classes, kind, team)
        if made_up is None:
            return
        fitted = made_up.fit(config, Grower if kind.in_gang else _Roots, team)
        shard, n_columns = made_up.data.train, made_up.n_columns
        route_round(fitted, shard, made_up.data.binning, team)
        labels = np.minimum(shard.labels, n_columns - 1)  # an output code may have fewer columns than there are labels
        list(zero_scores(shard.n_rows, n_columns).leads(labels, shard.n_rows))


def warm_up_sums(config: TrainingConfig, n_classes: int, kind: WarmUp | None = None) -> None:
    """Compile what sums gains up while a tree grows in one process, where the weak learner grows one."""
    with Rehearsal() as team, suppress(_Stopped):
        made_up = _made_up(config, n_classes, kind or WarmUp(), team)
        if made_up is not None:
            made_up.fit(config, _Summing, team)


class _Roots(Grower):
    """Grows trees of one leaf, for which nothing is summed up."""

    def grow(
        self, objective: Any, gains: GainMatrix, sums: Integers, max_leaves: int, *rest: Any, **named: Any
    ) -> Tree:
        return super().grow(objective, gains, sums, 1, *rest, **named)


class _Stopped(Exception):
    """What was to be compiled is."""


class _Summing(Grower):
    """Compiles what sums gains up for the first tree that is asked for."""

    def grow(
        self, objective: Any, gains: GainMatrix, sums: Integers, max_leaves: int, *rest: Any, **named: Any
    ) -> Tree:
        growing = self.growing(Growth(objective, max_leaves, *rest, **named), gains, sums)
        if growing is not None:
            growing.summing()
        raise _Stopped


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


@dataclass(frozen=True)
class _MadeUp:
    """Gains that favour a row's own label, of the types that the algorithm gives them, and whose they are."""

    data: TrainingData
    collective: Collective
    gains: GainMatrix
    n_columns: int

    def fit(self, config: TrainingConfig, grower: type[Grower], team: Team) -> Fitted:
        """A weak learner."""
        n_channels = self.gains.n_channels
        sums = self.collective.sum(self.gains.values[:, : n_channels + 1].sum(axis=0, dtype=np.int64))
        choice = config.weak_learner
        grows = grower(self.data.train, self.data.binning, self.collective, team)
        return WEAK_LEARNERS[choice.name](grows, choice.parameters).fit(self.gains, sums)


def _made_up(config: TrainingConfig, n_classes: int, kind: WarmUp, team: Team) -> _MadeUp | None:
    """None: the algorithm's gains are lists."""
    data, collective = _tiny(n_classes, kind)
    data, choice = by_class(data, config, collective), config.algorithm
    algorithm = ALGORITHMS[choice.name](problem_of(data, config, collective, team), choice.parameters)
    if isinstance(algorithm, MaybeSparse) and algorithm.sparse:
        return None
    shard, n_channels = data.train, channels_of(algorithm)
    values = new_gains(shard.n_rows, n_channels, shard.copies)
    values[:, :n_channels] = np.where(np.arange(n_channels) == shard.labels[:, None] % n_channels, MADE_UP, -MADE_UP)
    values[:, n_channels] = 1
    gains = GainMatrix(values, n_channels, 0, MADE_UP * shard.n_rows * n_channels, reading_of(algorithm))
    return _MadeUp(data, collective, gains, algorithm.n_columns)
