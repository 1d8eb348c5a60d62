"""Subsampling of a round (Friedman 2002, stochastic gradient boosting): some rows and features, for the weak learner.

A row is drawn by its global number and the round, a feature by its index and the round, so the sample is the same
however rows are spread. Rows left out have gains of 0 in the matrix that the weak learner sees, and are not counted
there. Edge, step, bound and scores are about all rows: what the weak learner is worth is taken again on the whole
matrix. It may be worth nothing there, and then another sample is drawn, up to RETRIES times.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from boost_core.binning import Binning
from boost_core.draws import draw, stream
from boost_core.fitted import ALL_COLUMNS, Fitted, Part, Speech
from boost_core.gain_matrix import GainMatrix, channel_sums, gains_won
from boost_core.growth import Grower
from boost_core.jit import kernel
from boost_core.parameters import Parameter
from boost_core.shard import Shard
from boost_core.sparse_gains import SparseGains

Integers = NDArray[np.int64]
SPAN = 1 << 32  # draws are 0..SPAN - 1
RETRIES = 5  # further samples of a round whose weak learner has no edge on all rows
ROWS, FEATURES = 1, 2  # of what a stream of draws is

SAMPLING = (
    Parameter(
        "row_fraction",
        "number",
        1.0,
        "chance of a row to be seen by a round's weak learner; step and bound are about all rows",
        minimum=1e-6,
        maximum=1.0,
    ),
    Parameter(
        "feature_fraction",
        "number",
        1.0,
        "share of the features that a round's weak learner may cut, one at least",
        minimum=1e-6,
        maximum=1.0,
    ),
)


@runtime_checkable
class Valued(Protocol):
    """A weak learner with numbers in its leaves, which says itself what they are worth."""

    def worth(self, payload: NDArray[np.int32], sums: Integers) -> int:
        """Its value, as `fit` gives it, where its leaves [n_leaves, n_outputs] have these sums [n_leaves, n_channels]
        of gains."""


@dataclass(frozen=True)
class SomeFeatures(Binning):
    """A binning of which some features are offered for cuts; the others look as if they had one bin only."""

    whole: Binning
    offered: NDArray[np.bool_]

    @cached_property
    def n_thresholds(self) -> Integers:
        return np.where(self.offered, self.whole.n_thresholds, 0)

    @cached_property
    def bin_start(self) -> Integers:
        return self.whole.bin_start


def offer_features(binning: Binning, fraction: float, start: int) -> Binning:
    """The features of the least draws of a stream, max(1, fraction of them rounded to the nearest)."""
    n_features = binning.n_features
    with np.errstate(over="ignore"):  # draws wrap around
        draws = [int(draw(np.uint64(start), feature, SPAN)) for feature in range(n_features)]
    chosen = np.argsort(np.array(draws), kind="stable")[: max(1, round(fraction * n_features))]
    offered = np.isin(np.arange(n_features), chosen)
    missing = binning.has_missing & offered
    return SomeFeatures(binning.thresholds, binning.threshold_start, missing, binning, offered)


@kernel
def _draw_rows(start, numbers, draws):  # type: ignore[no-untyped-def]
    """draws (OUT, int64 [n]) of the rows with these global numbers; start: uint64."""
    for i in range(numbers.shape[0]):
        draws[i] = draw(start, numbers[i], SPAN)


@kernel
def _keep(values, n_channels, draws, below, start, stop, kept):  # type: ignore[no-untyped-def]
    """kept (OUT) = values [n, padded] of rows start..stop whose draw is below, 0 for others.

    Returns the sum of the absolute gains that are kept.
    """
    total = np.int64(0)
    for i in range(start, stop):
        inside = draws[i] < below
        for c in range(values.shape[1]):
            kept[i, c] = values[i, c] if inside else 0
        for c in range(n_channels):
            total += abs(np.int64(kept[i, c]))
    return total


@kernel
def _leaf_sums(values, leaf_of_row, columns, start, stop, sums):  # type: ignore[no-untyped-def]
    """sums (IN/OUT, int64 [n_leaves, columns]) += gains of rows start..stop in columns[0]..columns[1], by leaf."""
    for i in range(start, stop):
        for c in range(columns[0], columns[1]):
            sums[leaf_of_row[i], c - columns[0]] += values[i, c]


class Sampler:
    """Draws the samples of one run on one member."""

    def __init__(self, parameters: Any, seed: int, shard: Shard, grower: Grower) -> None:
        self._rows, self._features = (float(parameters[name]) for name in ("row_fraction", "feature_fraction"))
        self._seed, self._grower, self._whole = seed, grower, grower.binning
        self.retries = RETRIES if min(self._rows, self._features) < 1.0 else 0
        if self._rows < 1.0:
            self._numbers = shard.row_numbers()
            self._draws = np.empty_like(self._numbers)

    def sample(self, matrix: GainMatrix, sums: Integers, turn: tuple[int, int]) -> tuple[GainMatrix, Integers]:
        """What the weak learner sees of a round's gains: the matrix, and its sums over all members; features are
        offered to the grower. turn = (round, attempt)."""
        if self._features < 1.0:
            start = stream(self._seed, FEATURES, *turn)
            self._grower.offer(offer_features(self._whole, self._features, start))
        return (matrix, sums) if self._rows == 1.0 else self._some_rows(matrix, turn)

    def _some_rows(self, matrix: GainMatrix, turn: tuple[int, int]) -> tuple[GainMatrix, Integers]:
        collective, team = self._grower.collective, self._grower.team
        with np.errstate(over="ignore"):  # draws wrap around
            _draw_rows(np.uint64(stream(self._seed, ROWS, *turn)), self._numbers, self._draws)
        some = self._below(matrix, round(self._rows * SPAN))
        sums = collective.sum(channel_sums(some, team))
        if sums[-1] == 0:  # no row at all: the one of the least draw
            least = np.array([self._draws.min(initial=SPAN)], np.int64)
            some = self._below(matrix, int(np.min(collective.all_gather(least))) + 1)
            sums = collective.sum(channel_sums(some, team))
        return some, sums

    def _below(self, matrix: GainMatrix, below: int) -> GainMatrix:
        if isinstance(matrix, SparseGains):
            return matrix.only(self._draws < below)
        values = np.empty_like(matrix.values)
        state = (matrix.values, matrix.n_channels, self._draws, below)
        parts = self._grower.team.over(values.shape[0], values.size, lambda a, b: int(_keep(*state, a, b, values)))
        rows = np.flatnonzero(self._draws < below).astype(np.int32)
        return replace(matrix, values=values, total_mass=sum(parts), rows=rows)

    def revalued(self, fitted: Fitted, matrix: GainMatrix, learner: object) -> Fitted:
        """The weak learner with its value on all rows of all members, where it was fitted to some."""
        if self._rows == 1.0 or isinstance(matrix, SparseGains):  # whose algorithms take their own sums
            return fitted
        collective = self._grower.collective
        if isinstance(learner, Valued):
            [part] = fitted.parts
            sums = collective.sum(self._sums_of(part, matrix, (0, matrix.n_channels)))
            values = [learner.worth(part.tree.payload, sums)]
        else:
            values = collective.sum(
                np.array([self._won(part, fitted.speech, matrix) for part in fitted.parts])
            ).tolist()
        parts = (
            part._replace(tree=part.tree._replace(value=value))
            for part, value in zip(fitted.parts, values, strict=True)
        )
        return fitted._replace(parts=tuple(parts))

    def _won(self, part: Part, speech: Speech, matrix: GainMatrix) -> int:
        """Sum of this member's gains times what the part says."""
        if speech is Speech.LABEL:
            return gains_won(matrix, part.tree)
        columns = (0, matrix.n_channels) if part.column == ALL_COLUMNS else (part.column, part.column + 1)
        return int((self._sums_of(part, matrix, columns) * part.tree.payload).sum())

    def _sums_of(self, part: Part, matrix: GainMatrix, columns: tuple[int, int]) -> Integers:
        tree, n_rows = part.tree, matrix.values.shape[0]

        def some(start: int, stop: int) -> Integers:
            sums = np.zeros((tree.payload.shape[0], columns[1] - columns[0]), np.int64)
            _leaf_sums(matrix.values, tree.leaf_of_row, columns, start, stop, sums)
            return sums

        return np.asarray(np.sum(self._grower.team.over(n_rows, n_rows * (columns[1] - columns[0]), some), axis=0))
