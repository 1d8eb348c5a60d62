"""The exponential loss over (row, label) pairs with +-1 votes, shared by adaboost and adaboost_mh.

    W(i,l) = c(i,l) exp(-Y(i,l) F(i,l)),   G = W Y,   loss = sum W          (Schapire & Singer 1999)

c depends on the label and on the sign of Y only. Exponents are taken relative to the greatest one of all members, so
weights never underflow: what is tiny against the greatest weight rounds to a gain of 0.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boost_core import ieee_math
from boost_core.algorithms.atanh_step import ATANH, atanh_step, atanh_steps
from boost_core.algorithms.base import NO_OUTCOMES, Gains, Integers, Pace, Problem, Step
from boost_core.aligned import aligned_rows
from boost_core.crew import Sharing, do_part, join_parts
from boost_core.fitted import Fitted
from boost_core.gain_matrix import GainMatrix, Reading, ScaleLimits, scale_limits, scale_within
from boost_core.intrinsics import Lanes, add_lanes, gain_row, lanes_for, width_of
from boost_core.jit import inner, kernel, step
from boost_core.objective import implements
from boost_core.row_weights import new_gains, weigh
from boost_core.scores import NO_PAIR, UNIT, Scores
from boost_core.weight_vectors import weigh_scores

Floats = NDArray[np.float64]
NO_TARGET = -1  # a row with Y = -1 for every label
TILE_ROWS = 64
SUMMED_APART = 4  # rows, so that a row's sum does not wait for that of the row before
LN2 = 0.6931471805599453
SHIFT, SCALE, TOTAL, SUMS = range(4)  # entries of what _Fill finds


@dataclass(frozen=True)
class InitialWeights:
    """c(i,l): positive [n_columns] where Y = +1, negative [n_columns] where Y = -1. They sum to 1 over all pairs."""

    positive: Floats
    negative: Floats


@kernel
def _peaks(scores, targets, start, stop, lowest, room, wrong, own):  # type: ignore[no-untyped-def]
    """wrong, own (IN/OUT, [c], of the scores' type): greatest F a label where Y = -1, greatest -F where Y = +1.

    lowest: below any score. Maxima are taken cell by cell of a tile, in flat loops, and over its rows at the end;
    room: for two tiles of cells, [2, TILE_ROWS * c], the second one `lowest`.
    """
    n_columns = scores.shape[1]
    flat = scores.reshape(-1)
    cells, greatest = room[0], room[1]
    for tile in range(start, stop, TILE_ROWS):
        n_rows = min(TILE_ROWS, stop - tile)
        part = flat[tile * n_columns : (tile + n_rows) * n_columns]
        for k in range(part.shape[0]):
            cells[k] = part[k]
        for i in range(n_rows):
            target = np.int64(targets[tile + i])
            if target >= 0:
                own[target] = max(own[target], -cells[i * n_columns + target])
                cells[i * n_columns + target] = lowest
        for k in range(part.shape[0]):
            greatest[k] = max(greatest[k], cells[k])
    for k in range(greatest.shape[0]):
        wrong[k % n_columns] = max(wrong[k % n_columns], greatest[k])


@step
def shift_and_scale(peaks, initial, limits):  # type: ignore[no-untyped-def]
    """The greatest of the greatest exponents, and the scale of weights that are relative to it (scale_for).

    peaks: int64 [2 * groups] by sign and group, initial: weights, [2, groups]; limits: ScaleLimits.
    """
    shift, largest, n_groups = np.int64(NO_PAIR), 0.0, initial.shape[1]
    for k in range(peaks.shape[0]):
        shift = max(shift, peaks[k])
    for k in range(peaks.shape[0]):
        if peaks[k] > NO_PAIR:
            weight = ieee_math.exp_units(np.float64(peaks[k] - shift))
            largest = max(largest, weight * initial[k // n_groups, k % n_groups])
    return shift, scale_within(largest, limits)


class _Room(NamedTuple):
    """Of a thread, the first axis: what _fill needs for a tile, in lines of the cache of its own. weights
    [2 * c]: negative and positive ones, times 2**scale; negative [TILE_ROWS * c]: the first ones, of each row;
    positive, own, own_gains [TILE_ROWS]: of own labels; gains [TILE_ROWS * n_padded]; apart [SUMMED_APART * n_padded],
    sums [n_padded]: of rows in turns, and of all."""

    weights: Floats
    negative: Floats
    positive: Floats
    own: NDArray[np.integer]
    own_gains: NDArray[np.int32]
    gains: NDArray[np.int32]
    apart: Integers
    sums: Integers


def _new_room(n_threads: int, n_columns: int, n_padded: int, scores: np.dtype[np.integer]) -> _Room:
    """For scores of a type."""
    return _Room(
        weights=aligned_rows(n_threads, 2 * n_columns, np.float64),
        negative=aligned_rows(n_threads, TILE_ROWS * n_columns, np.float64),
        positive=aligned_rows(n_threads, TILE_ROWS, np.float64),
        own=aligned_rows(n_threads, TILE_ROWS, scores),
        own_gains=aligned_rows(n_threads, TILE_ROWS, np.int32),
        gains=aligned_rows(n_threads, TILE_ROWS * n_padded, np.int32),
        apart=aligned_rows(n_threads, SUMMED_APART * n_padded, np.int64),
        sums=aligned_rows(n_threads, n_padded, np.int64),
    )


@step
def _fill(task, thread, shift, start, end):  # type: ignore[no-untyped-def]
    """task.values (OUT): gains of rows start..end; sums of the thread's room (OUT): of these rows. Returns the sum of
    absolute gains.

    A tile's gains are computed in one go, since rows of few labels would leave most vector lanes empty; every label is
    first taken for a wrong one, without branches, and the own label's entry is put right. Its sums are taken a tile
    later: still in the near caches, no longer on the way to them. Numbers of rows index as unsigned ones (cut.divide).
    """
    scores, targets, lanes, room = task.scores, task.targets, task.lanes, task.room
    n_columns, n_padded = scores.shape[1], task.values.shape[1]
    flat, out, weights, gains = scores.reshape(-1), task.values.reshape(-1), room.weights[thread], room.gains[thread]
    negative, positive, own, own_gains = (
        room.negative[thread],
        room.positive[thread],
        room.own[thread],
        room.own_gains[thread],
    )
    apart, sums = room.apart[thread], room.sums[thread]
    for k in range(TILE_ROWS):
        for c in range(n_columns):
            negative[k * n_columns + c] = weights[c]
    for k in range(SUMMED_APART * n_padded):
        apart[k] = 0
    own_total, summed = np.int64(0), start
    for tile in range(start, end, TILE_ROWS):
        stop = min(tile + TILE_ROWS, end)
        # a positive exponent, or more than int32 holds, can only be the own label's
        weigh_scores(flat, tile * n_columns, (stop - tile) * n_columns, shift, negative, gains)
        for k in range(stop - tile):
            own_label = np.int64(targets[np.uint64(tile + k)])
            target = np.uint64(own_label if own_label >= 0 else 0)
            own[k], positive[k] = -scores[np.uint64(tile + k), target], weights[np.uint64(n_columns + target)]
        weigh_scores(own, 0, stop - tile, shift, positive, own_gains)
        for k in range(stop - tile):
            row, target = (tile + k) * n_padded, targets[np.uint64(tile + k)]
            gain_row(out, row, gains, k * n_columns, n_columns, lanes)
            if target >= 0:
                gain = np.int64(own_gains[k])
                out[np.uint64(row + target)] = gain
                own_total += gain
        _sum_up(out, summed, tile, lanes, apart)
        summed = tile
    _sum_up(out, summed, end, lanes, apart)
    total = 2 * own_total  # wrong labels' gains are negative
    for c in range(n_padded):
        sums[c] = 0
        for place in range(SUMMED_APART):
            sums[c] += apart[place * n_padded + c]
        total -= sums[c] if c < n_columns else 0
    return total


@inner
def _sum_up(values, start, stop, lanes, apart):  # type: ignore[no-untyped-def]
    """apart (IN/OUT, [SUMMED_APART * n_padded]) += rows start..stop of values (flat), in turns."""
    width = width_of(lanes)
    for i in range(start, stop):
        add_lanes(apart, ((i & (SUMMED_APART - 1)) * width,), values, i * width, lanes)


class _Fill(NamedTuple):
    """shift_and_scale, then _fill on blocks of rows. found int64 [n_blocks, SUMS + padded] (OUT): the shift, the scale,
    the sum of absolute gains and those of channels; sums are of all blocks in the first row in the end."""

    scores: NDArray[np.integer]
    targets: NDArray[np.int32]
    peaks: Integers
    initial: Floats
    limits: ScaleLimits
    values: NDArray[np.signedinteger]
    lanes: Lanes
    room: _Room
    found: Integers


@implements(do_part, _Fill)
def _fill_part(task, block, thread, start, stop):  # type: ignore[no-untyped-def]
    found, weights, sums = task.found, task.room.weights[thread], task.room.sums[thread]
    # in every block again, which takes less than to call another kernel for it
    shift, scale = shift_and_scale(task.peaks, task.initial, task.limits)
    unit, n_columns = math.ldexp(1.0, scale), task.initial.shape[1]
    for sign in range(2):
        for c in range(n_columns):
            weights[sign * n_columns + c] = task.initial[sign, c] * unit
    found[block, SHIFT], found[block, SCALE] = shift, scale
    found[block, TOTAL] = _fill(task, thread, shift, start, stop)
    for c in range(task.values.shape[1]):  # assigning arrays compiles a check of their shapes, with its messages: 1.5 s
        found[block, SUMS + c] = sums[c]


@implements(join_parts, _Fill)
def _join_fill(task):  # type: ignore[no-untyped-def]
    for block in range(1, task.found.shape[0]):
        for place in range(TOTAL, task.found.shape[1]):
            task.found[0, place] += task.found[block, place]


def _ln_loss(ln_total: float, scale: int, shift: int) -> float:
    return ln_total - scale * LN2 + shift * UNIT


class ExponentialVotes:
    """An algorithm of the exponential vote loss, complete but for its targets and initial weights.

    targets: int32 [n_rows], the label with Y = +1 or NO_TARGET; reading: how weak learners read the gains.
    The gain matrix's arrays are reused every round.
    """

    ln_initial = 0.0

    def __init__(
        self,
        targets: NDArray[np.int32],
        initial: InitialWeights,
        problem: Problem,
        reading: Reading = Reading.TOGETHER,
    ) -> None:
        n_rows, self.n_columns = targets.shape[0], initial.positive.shape[0]
        self._targets = targets
        self._initial = np.stack([initial.negative, initial.positive])
        self._n_pairs = problem.all_rows * self.n_columns
        self._limits = scale_limits(self._n_pairs)
        self._team, self._copies = problem.team, problem.copies
        self.reading = reading
        self._values = new_gains(n_rows, self.n_columns, problem.copies)
        self._lanes, self._work = lanes_for(self._values.shape[1]), n_rows * self.n_columns
        self._room: _Room | None = None
        self._found = np.empty((self._team.blocks(n_rows, self._work), SUMS + self._values.shape[1]), np.int64)

    def peaks(self, scores: Scores) -> Integers:
        """This member's greatest exponents -Y F in score units, int64 [2 * n_columns]."""

        survey = scores.survey(self._targets)
        if survey is not None:
            return survey.peaks
        dtype = scores.values.dtype
        lowest = dtype.type(np.iinfo(dtype).min)  # scores keep away from it (scores.py)

        def part(start: int, stop: int) -> Integers:
            peaks, room = (np.full((2, n * self.n_columns), lowest, dtype) for n in (1, TILE_ROWS))
            _peaks(scores.values, self._targets, start, stop, lowest, room, peaks[0], peaks[1])
            return np.where(peaks == lowest, NO_PAIR, peaks.astype(np.int64))

        n_rows = self._targets.shape[0]
        found = self._team.over(n_rows, n_rows * self.n_columns, part)
        return np.asarray(np.max(found, axis=0).reshape(-1))

    def gains(self, scores: Scores, peaks: Integers) -> Gains:
        """The gain matrix; peaks: the greatest exponents over all members."""
        self._team.share(*self._filling(scores, peaks))
        found = self._found[0]
        if self._copies is None:
            return self._told(found)
        shift, scale, total = found[:SUMS].tolist()
        return self._weighed(scale, shift, total)

    def _filling(self, scores: Scores, peaks: Integers) -> tuple[_Fill, int, int]:
        """What Team.share is given."""
        values, found, kind = self._values, self._found, scores.values.dtype
        if self._room is None or self._room.own.dtype != kind:
            self._room = _new_room(self._team.threads, self.n_columns, values.shape[1], kind)
        task = _Fill(
            scores=scores.values,
            targets=self._targets,
            peaks=peaks,
            initial=self._initial,
            limits=self._limits,
            values=values,
            lanes=self._lanes,
            room=self._room,
            found=found,
        )
        return task, values.shape[0], self._work

    def _told(self, found: Integers) -> Gains:
        """The gains of which _Fill found this."""
        shift, scale, total = found[:SUMS].tolist()
        matrix = GainMatrix(self._values, self.n_columns, scale, total, self.reading)
        return Gains(matrix, found[TOTAL:SUMS], shift, found[SUMS : SUMS + self.n_columns + 1])

    def pace(self, scores: Scores, peaks: Integers) -> Pace | None:
        """See algorithms.base.Paced."""
        if self._copies is not None or self.reading is not Reading.TOGETHER:
            return None
        found, sharing, given = self._found[0], Sharing(), self._filling(scores, peaks)
        filling = self._team.sharing(sharing, *given)
        sums = found[SUMS : SUMS + self.n_columns + 1]
        return Pace(filling, (sharing, given), found, found[TOTAL:SUMS], sums, ATANH, self._told, self._passed)

    def _passed(self, found: Integers, values: Integers) -> tuple[list[Step], list[float]]:
        """See Pace."""
        totals = found[:, TOTAL]
        logs = np.empty(values.shape[0])
        ieee_math.logs(totals[1:].astype(np.float64), logs)
        after = zip(logs.tolist(), found[1:, SCALE].tolist(), found[1:, SHIFT].tolist(), strict=True)
        losses = [_ln_loss(ln_total, scale, shift) for ln_total, scale, shift in after]
        return atanh_steps(values, totals[:-1], self._n_pairs), losses

    def _weighed(self, scale: int, shift: int, total: int) -> Gains:
        """Gains of self._values, whose sum is total, once rows count as often as their copies."""
        if self._copies is not None:
            total = int(weigh(self._values, self._copies, self.n_columns, self._team).sum())
        matrix = GainMatrix(self._values, self.n_columns, scale, total, self.reading)
        return Gains(matrix, np.array([total], np.int64), shift)

    def ln_loss(self, gains: Gains, totals: Integers) -> float:
        """ln of sum W from the integer sum of all members' absolute gains."""
        return _ln_loss(float(ieee_math.log(float(totals.item(0)))), gains.matrix.scale, gains.shift)

    def outcomes(self, fitted: Fitted, gains: Gains) -> Integers:
        """The edge is all that the step needs."""
        return NO_OUTCOMES

    def step(self, fitted: Fitted, totals: Integers, outcomes: Integers) -> Step:
        """alpha = artanh(value / sum of absolute gains), the same for all parts."""
        step = atanh_step(fitted.value, totals.item(0), self._n_pairs)
        if len(fitted.parts) == 1:
            return step
        return step._replace(multipliers=np.repeat(step.multipliers, len(fitted.parts)))

    def taken(self, fitted: Fitted, step: Step) -> None:
        """The scores say it all."""
