"""Multiclass AdaBoost with a weak learner of plain accuracy (Brukhim, Hazan, Moran, Mukherjee & Schapire 2021, Alg. 1).

The distribution over pairs is that of AdaBoost.MM, Dt(i,l) = E(i,l) / A. With any c_i >= max_l E(i,l) the weights

    D(i,y) = P_i + c_i,   D(i,l) = c_i - E(i,l)       (their Lemma 2; each row carries K c_i)

of labelled examples are not negative, and accuracy under D is the edge under Dt up to constants. Reweighting fits the
weak learner to D itself, which gives AdaBoost.MM's, as D differs from its gains by c_i in all of a row. Resampling fits
it to examples (i, l) drawn from D. Edge and step always use Dt.

Draws are made against the cumulative sums of K c_i over the rows of all members in the order of their global numbers,
in exact integers, so every gang draws the same examples.
"""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from boost_core.algorithms.adaboost_mm import STEP, AdaBoostMM
from boost_core.algorithms.base import Gains, Integers, Problem, Step
from boost_core.algorithms.sparse_draws import accumulate, draw_pairs
from boost_core.draws import draw, stream
from boost_core.fitted import Fitted
from boost_core.gain_matrix import GainMatrix
from boost_core.jit import kernel, step
from boost_core.parameters import Parameter
from boost_core.probability import Link
from boost_core.scores import Scores
from boost_core.sparse_gains import SparseGains
from boost_core.sparse_scores import as_sparse

SAMPLES_A_ROW = 4  # default of sample_rows


@step
def _cover(values, label, n_columns, use_max):  # type: ignore[no-untyped-def]
    """A row's c: its greatest E, or the sum of them (values: the row's gains)."""
    if not use_max:
        return np.int64(values[label])
    largest = np.int64(0)
    for c in range(n_columns):
        if c != label:
            largest = max(largest, -np.int64(values[c]))
    return largest


@kernel
def _accumulate(values, labels, n_columns, use_max, bounds):  # type: ignore[no-untyped-def]
    """bounds (OUT, int64 [n_rows + 1]): cumulative sums of K c_i over this member's rows."""
    bounds[0] = 0
    for i in range(labels.shape[0]):
        bounds[i + 1] = bounds[i] + n_columns * _cover(values[i], labels[i], n_columns, use_max)


@kernel
def _sample(start, n_draws, total, spans, bounds, gains, use_max, counts):  # type: ignore[no-untyped-def]
    """counts [n, padded] (OUT): how often each of this member's labelled examples is drawn; returns the sum.

    spans int64 [ranges, 2]: where a row range's sums begin in all members' and in this member's (bounds); a last
    entry of the latter ends them. gains = (values, labels, number of columns).
    """
    values, labels, n_columns = gains
    n_ranges = spans.shape[0] - 1
    drawn = np.int64(0)
    for number in range(n_draws):
        point = draw(start, number, total)
        for r in range(n_ranges):
            inside = point - spans[r, 0]
            if 0 <= inside < spans[r + 1, 1] - spans[r, 1]:
                local = spans[r, 1] + inside
                i = np.searchsorted(bounds, local, side="right") - 1
                label = _label(values[i], labels[i], n_columns, use_max, local - bounds[i])
                counts[i, label] += 1
                drawn += 1
                break
    return drawn


@step
def _label(values, own, n_columns, use_max, rest):  # type: ignore[no-untyped-def]
    """The label in whose part of the row's K c the integer rest falls."""
    cover = _cover(values, own, n_columns, use_max)
    for c in range(n_columns):
        rest -= values[c] + cover
        if rest < 0:
            return c
    return n_columns - 1


class MulticlassAdaBoost(AdaBoostMM):
    """AdaBoost.MM asked for through plain accuracy."""

    name: ClassVar[str] = "multiclass_adaboost"
    summary: ClassVar[str] = "boosting with a weak learner of plain accuracy, on weights or on resampled examples"
    source: ClassVar[str] = "Brukhim, Hazan, Moran, Mukherjee & Schapire, NeurIPS 2021"
    guarantee: ClassVar[str] = "training error <= loss <= (K - 1) prod sqrt(1 - edge^2)"
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "sampling",
            "string",
            "reweight",
            "reweight: weak learners see the weights; resample: they see examples drawn from them",
            choices=("reweight", "resample"),
        ),
        Parameter(
            "mass",
            "string",
            "max",
            "resample: what each row adds to its weights: the greatest of its pairs (fewer samples do) or their sum",
            choices=("max", "sum"),
        ),
        Parameter(
            "sample_rows", "integer", 0, "resample: examples drawn a round; 0: 4 a row", minimum=0, maximum=2**31 - 1
        ),
        Parameter(
            "retries", "integer", 5, "resample: draws more if a weak learner has no edge", minimum=0, maximum=1000
        ),
        STEP,
    )
    weak_learners: ClassVar[tuple[str, ...]] = ("tree",)
    link: ClassVar[Link] = Link.DOUBLE
    fixed_steps: ClassVar[bool] = False

    def __init__(self, problem: Problem, parameters: Any) -> None:
        super().__init__(problem, parameters)
        self._problem = problem
        self._resample = parameters["sampling"] == "resample"
        self._use_max = parameters["mass"] == "max"
        self._n_draws = int(parameters["sample_rows"]) or SAMPLES_A_ROW * self._n_rows(problem)
        self._retries = int(parameters["retries"])
        self._round, self._attempt = 0, 0
        self._whole: SparseGains | None = None  # what examples are drawn from, where it is sparse
        self._answered = np.empty(0, np.int64)

    @staticmethod
    def _n_rows(problem: Problem) -> int:
        """Rows over all members, each counted once."""
        if problem.copies is None:
            return problem.all_rows
        return int(problem.collective.sum(np.array([problem.copies.shape[0]], np.int64))[0])

    def gains(self, scores: Scores, peaks: Integers) -> Gains:
        """AdaBoost.MM's gains, or the counts of drawn examples in their place."""
        gains = super().gains(scores, peaks)
        self._attempt = 0
        if self._resample and isinstance(gains.matrix, SparseGains):
            self._whole, self._answered = gains.matrix, as_sparse(scores).answered
        return self._drawn(gains) if self._resample else gains

    def costed(self, gains: Gains) -> GainMatrix:
        """AdaBoost.MM's own gains, which examples are drawn from."""
        if not self._resample:
            return gains.matrix
        if self._whole is not None:
            return self._whole
        return replace(gains.matrix, values=self._values)

    def redraw(self, gains: Gains) -> Gains | None:
        """Other examples from the same distribution, unless there were enough retries."""
        if not self._resample or self._attempt >= self._retries:
            return None
        self._attempt += 1
        return self._drawn(gains)

    def _drawn(self, gains: Gains) -> Gains:
        start = stream(self._problem.seed, self._round, self._attempt)
        if self._whole is not None:
            return gains._replace(matrix=self._sparsely_drawn(self._whole, start))
        values, labels, n_columns = self._values, self._labels, self.n_columns
        bounds = np.empty(labels.shape[0] + 1, np.int64)
        _accumulate(values, labels, n_columns, self._use_max, bounds)
        spans, total = self._spans(bounds)
        counts = np.zeros_like(values)
        counts[:, n_columns] = values[:, n_columns]
        matrix = (values, labels, n_columns)
        with np.errstate(over="ignore"):  # the draws' words wrap around
            drawn = int(_sample(np.uint64(start), self._n_draws, total, spans, bounds, matrix, self._use_max, counts))
        return gains._replace(matrix=replace(gains.matrix, values=counts, total_mass=drawn))

    def _sparsely_drawn(self, whole: SparseGains, start: int) -> SparseGains:
        assert self._pairs is not None
        weights, bounds = self._pairs.weights(whole, self._use_max), np.empty(self._labels.shape[0] + 1, np.int64)
        accumulate(weights, bounds)
        spans, total = self._spans(bounds)
        return draw_pairs(whole, weights, bounds, (start, self._n_draws, total, spans), self._answered, self._team)

    def _spans(self, bounds: Integers) -> tuple[Integers, int]:
        """spans of `_sample`, and the sum over all rows: every member learns where every range begins."""
        ranges = self._problem.row_ranges
        edges = self._problem.range_edges
        if edges is None:
            edges = np.cumsum([0, *(stop - start for start, stop in ranges)])
        sums = np.diff(bounds[edges])
        own = np.array([(start, held) for (start, _), held in zip(ranges, sums, strict=True)], np.int64).reshape(-1, 2)
        gathered = np.concatenate(self._problem.collective.all_gather(own))
        before = [int(gathered[gathered[:, 0] < start, 1].sum()) for start, _ in ranges]
        return np.stack([np.array([*before, 0], np.int64), bounds[edges]], axis=1), int(gathered[:, 1].sum())

    def taken(self, fitted: Fitted, step: Step) -> None:
        """Every round has draws of its own."""
        self._round += 1
