# long on purpose: every kernel and every algorithm has its twin in this one file
"""What the engine must compute, spelled out in plain loops over Python integers and floats.

Three parts: the naive twin of every kernel; the integer oracle, which the engine must equal to the bit; the float64
oracle of the published formulas, which it must follow within stated tolerances. Nothing here is fast, nothing here
is shared with the engine but exp and log, whose last bit decides a rounding (they have tests of their own).
"""

import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from boost_core import ieee_math
from tests.calling import called

UNIT = 2.0**-20  # scores and alphas are integers in this unit
GAIN_BITS = 30
SUM_BITS = 62
ALPHA_CAP = 12 << 20
GAIN_SHIFT = 28
THRESHOLD, MISSING = 0, 1
WORD = (1 << 64) - 1

Rows = Sequence[int]
Matrix = Sequence[Sequence[int]]
Cut = tuple[int, int, int, bool]  # feature, kind, last bin that goes left, missing values go left


# --- binning -----------------------------------------------------------------------------------------------


def mix64(x: int) -> int:
    """The finaliser of splitmix64."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


def distinct_values(values: Iterable[float]) -> tuple[list[float], bool]:
    """Sorted distinct values without NaN, and whether there was a NaN."""
    found: list[float] = []
    missing = False
    for value in map(float, values):
        if math.isnan(value):
            missing = True
        elif value not in found:
            found.append(value)
    return sorted(found), missing


def midpoint(low: float, high: float) -> float:
    """The threshold between two neighbours low < high."""
    middle = low / 2 + high / 2
    return middle if math.isfinite(middle) and low < middle <= high else high


def midpoints(distinct: Sequence[float]) -> list[float]:
    return [midpoint(low, high) for low, high in itertools.pairwise(distinct)]


def quantile_thresholds(sample: Iterable[float], max_bins: int) -> list[float]:
    """Thresholds before the values that hold the ranks n/B, 2n/B, ... of the sorted sample."""
    ordered = sorted(map(float, sample))
    distinct, _ = distinct_values(ordered)
    if len(distinct) <= max_bins:
        return midpoints(distinct)
    thresholds: list[float] = []
    for part in range(1, max_bins):
        at = distinct.index(ordered[part * len(ordered) // max_bins])
        if at > 0:
            threshold = midpoint(distinct[at - 1], distinct[at])
            if threshold not in thresholds:
                thresholds.append(threshold)
    return thresholds


def bin_code(value: float, thresholds: Sequence[float]) -> int:
    """How many thresholds are not above the value; a missing value has the code after the last bin."""
    if math.isnan(value):
        return len(thresholds) + 1
    return sum(1 for threshold in thresholds if value >= threshold)


def in_sample(row_number: int, n_rows: int, n_features: int, seed: int) -> bool:
    """Whether a row is drawn: its hash is below wanted / n_rows of the 64-bit range."""
    wanted = max(4 * 255, min(65_536, (1 << 25) // max(n_features, 1)))
    return n_rows <= wanted or mix64(row_number ^ seed) < (wanted << 64) // n_rows


def fingerprint(codes: Matrix, labels: Rows, row_numbers: Rows) -> int:
    """Sum modulo 2**64 of a hash of each row; codes [n_rows][n_features]."""
    total = 0
    for row, label, number in zip(codes, labels, row_numbers, strict=True):
        state = mix64((number + 0x9E3779B97F4A7C15) & WORD)
        for code in row:
            state = ((state ^ code) * 0x100000001B3) & WORD
        total += mix64(state ^ (label << 32))
    return total & WORD


# --- rows, bins and cuts ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grid:
    """Binned rows: codes [n_rows][n_features] and how many thresholds each feature has."""

    codes: Matrix
    n_thresholds: Sequence[int]

    def is_missing(self, row: int, feature: int) -> bool:
        return self.codes[row][feature] == self.n_thresholds[feature] + 1

    def goes_left(self, row: int, cut: Cut) -> bool:
        feature, kind, last_left, missing_left = cut
        if self.is_missing(row, feature):
            return missing_left
        return kind == THRESHOLD and self.codes[row][feature] <= last_left


def column_sums(gains: Matrix, rows: Iterable[int], n_columns: int) -> list[int]:
    sums = [0] * n_columns
    for i in rows:
        for column, gain in enumerate(gains[i]):
            sums[column] += gain
    return sums


def histogram(codes: Matrix, gains: Matrix, rows: Rows, bins: Sequence[int]) -> list[list[list[int]]]:
    """[feature][code][channel]: sums of gains over rows, the last channel counts them; bins: codes a feature has."""
    n_channels = len(gains[0]) if gains else 0
    hist = [[[0] * (n_channels + 1) for _ in range(count)] for count in bins]
    for i in rows:
        for feature, code in enumerate(codes[i]):
            for channel, gain in enumerate(gains[i]):
                hist[feature][code][channel] += gain
            hist[feature][code][n_channels] += 1
    return hist


def partition(grid: Grid, rows: Rows, cut: Cut) -> tuple[list[int], list[int]]:
    """The rows on the left and on the right of a cut, each in their old order."""
    return [i for i in rows if grid.goes_left(i, cut)], [i for i in rows if not grid.goes_left(i, cut)]


def candidates(grid: Grid, rows: Rows) -> Iterable[Cut]:
    """Every cut of a node, in the order in which ties are broken."""
    for feature, n_thresholds in enumerate(grid.n_thresholds):
        some_missing = any(grid.is_missing(i, feature) for i in rows)
        for last_left in range(n_thresholds):
            yield feature, THRESHOLD, last_left, True
            if some_missing:
                yield feature, THRESHOLD, last_left, False
        if some_missing:
            yield feature, MISSING, 0, True


def cut_value(left: Sequence[int], right: Sequence[int], free: bool) -> int:
    """free: sum |L| + sum |R|; factorised: sum |R - L|."""
    if free:
        return sum(map(abs, left)) + sum(map(abs, right))
    return sum(abs(above - below) for below, above in zip(left, right, strict=True))


def best_cut(grid: Grid, gains: Matrix, rows: Rows, free: bool) -> tuple[int, Cut] | None:
    """The first of the best cuts that leave rows on both sides, by trying all; gains [n_rows][n_channels]."""
    best: tuple[int, Cut] | None = None
    for cut in candidates(grid, rows):
        left, right = partition(grid, rows, cut)
        if not left or not right:
            continue
        n_channels = len(gains[left[0]])
        value = cut_value(column_sums(gains, left, n_channels), column_sums(gains, right, n_channels), free)
        if best is None or value > best[0]:
            best = (value, cut)
    return best


# --- trees --------------------------------------------------------------------------------------------------


def signs(sums: Sequence[int]) -> list[int]:
    return [1 if value >= 0 else -1 for value in sums]


def dot(votes: Sequence[int], sums: Sequence[int]) -> int:
    return sum(vote * value for vote, value in zip(votes, sums, strict=True))


@dataclass
class Node:
    """A node of a growing tree; a leaf until it is cut."""

    rows: Rows
    votes: list[int]
    value: int
    cut: Cut | None = None
    left: "Node | None" = None
    right: "Node | None" = None
    best: tuple[int, Cut] | None = None


@dataclass(frozen=True)
class NaiveTree:
    """root; its leaves by number; value: the sum of gains in the direction of the votes."""

    root: Node
    leaves: list[Node]

    @property
    def value(self) -> int:
        return sum(leaf.value for leaf in self.leaves)

    def nested(self) -> tuple:
        """(cut, left, right) for a node, (number, votes) for a leaf."""

        def describe(node: Node) -> tuple:
            if node.left is None or node.right is None:
                return self.number(node), tuple(node.votes)
            return node.cut, describe(node.left), describe(node.right)

        return describe(self.root)

    def number(self, node: Node) -> int:
        return next(number for number, leaf in enumerate(self.leaves) if leaf is node)


@dataclass(frozen=True)
class NaiveGrowth:
    """Best-first growth, one leaf at a time, by brute force."""

    grid: Grid
    gains: Matrix
    free: bool
    n_channels: int

    def grow(self, rows: Rows, max_leaves: int) -> NaiveTree:
        sums = column_sums(self.gains, rows, self.n_channels)
        root = self.leaf(rows, signs(sums))
        leaves = [root]
        while len(leaves) < max_leaves:
            increases = [self.increase(leaf) for leaf in leaves]
            index = increases.index(max(increases))
            if increases[index] == 0:
                break
            left, right = self.split(leaves[index])
            leaves[index] = left
            leaves.append(right)
        return NaiveTree(root, leaves)

    def leaf(self, rows: Rows, votes: list[int]) -> Node:
        node = Node(rows, votes, dot(votes, column_sums(self.gains, rows, self.n_channels)))
        node.best = best_cut(self.grid, self.gains, rows, self.free)
        return node

    def increase(self, leaf: Node) -> int:
        """What cutting a leaf adds; 0 if it has no cut or the increase is rounding."""
        if leaf.best is None:
            return 0
        mass = sum(abs(gain) for i in leaf.rows for gain in self.gains[i])
        gain = leaf.best[0] - leaf.value
        return gain if gain > mass >> GAIN_SHIFT else 0

    def split(self, node: Node) -> tuple[Node, Node]:
        assert node.best is not None
        node.cut = node.best[1]
        left, right = partition(self.grid, node.rows, node.cut)
        left_sums = column_sums(self.gains, left, self.n_channels)
        right_sums = column_sums(self.gains, right, self.n_channels)
        if self.free:
            left_votes, right_votes = signs(left_sums), signs(right_sums)
        else:
            right_votes = signs([above - below for below, above in zip(left_sums, right_sums, strict=True)])
            left_votes = [-vote for vote in right_votes]
        node.left, node.right = self.leaf(left, left_votes), self.leaf(right, right_votes)
        return node.left, node.right


def route(nested: tuple, grid: Grid, row: int) -> int:
    """The leaf number of a row in a nested tree."""
    while len(nested) == 3:
        cut, left, right = nested
        nested = left if grid.goes_left(row, cut) else right
    return int(nested[0])


# --- scores and gains ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Options:
    """What to learn with. A stump is a factorised tree of two leaves."""

    algorithm: str = "adaboost_mh"
    init_weights: str = "asymmetric"
    free: bool = False
    max_leaves: int = 2

    @property
    def binary(self) -> bool:
        return self.algorithm == "adaboost"


def signed_labels(labels: Rows, n_classes: int, options: Options) -> list[list[int]]:
    """Y [n_rows][n_columns]: the one column of adaboost says whether the label is class 1."""
    if options.binary:
        return [[1 if label == 1 else -1] for label in labels]
    return [[1 if label == c else -1 for c in range(n_classes)] for label in labels]


@functools.cache
def initial_weight(options: Options, counts: tuple[int, ...], column: int, positive: bool) -> Fraction:
    """W1 of a pair; all pairs sum to 1."""
    n_rows, n_classes = sum(counts), len(counts)
    if options.binary:
        return Fraction(1, n_rows)
    if options.init_weights == "uniform":
        return Fraction(1, n_rows * n_classes)
    if options.init_weights == "balanced":
        members = counts[column] if positive else n_rows - counts[column]
        return Fraction(1, n_classes) / (2 * members)
    return Fraction(1, 2 * n_rows) if positive else Fraction(1, 2 * n_rows * (n_classes - 1))


def scale_for(largest: float, n_cells: int) -> int:
    """The largest s with largest * 2**s <= 2**30 and n_cells * largest * 2**s < 2**62, by exact arithmetic."""

    def fits(s: int) -> bool:
        scaled = Fraction(largest) * Fraction(2) ** s
        return scaled <= 2**GAIN_BITS and n_cells * scaled < 2**SUM_BITS

    s = 0
    while fits(s + 1):
        s += 1
    while not fits(s):
        s -= 1
    return s


@dataclass(frozen=True)
class NaiveGains:
    """values [n_rows][n_columns], one unit being 2**-scale relative to the exponents' shift."""

    values: list[list[int]]
    scale: int
    shift: int

    def mass(self) -> int:
        return sum(abs(gain) for row in self.values for gain in row)

    def ln_loss(self) -> float:
        return math.log(self.mass()) - self.scale * math.log(2) + self.shift * UNIT


def peaks(scores: Matrix, labels: Rows, n_classes: int, options: Options) -> tuple[list[int | None], list[int | None]]:
    """The greatest exponent -Y F of each column over the pairs with Y = -1, and over those with Y = +1."""
    Y = signed_labels(labels, n_classes, options)
    found: dict[tuple[int, int], list[int]] = {}
    for row, signed in zip(scores, Y, strict=True):
        for column, (score, y) in enumerate(zip(row, signed, strict=True)):
            found.setdefault((y, column), []).append(-y * score)
    columns = range(1 if options.binary else n_classes)
    negative, positive = ([max(found.get((y, c), []), default=None) for c in columns] for y in (-1, 1))
    return negative, positive


def gain_matrix(scores: Matrix, labels: Rows, counts: tuple[int, ...], options: Options) -> NaiveGains:
    """G = W Y in fixed point; the exponents -Y F are taken relative to their greatest."""
    Y = signed_labels(labels, len(counts), options)
    exponents = [[-y * f for y, f in zip(*pair, strict=True)] for pair in zip(Y, scores, strict=True)]
    shift = max(max(row) for row in exponents)
    weights = []
    for row, signed in zip(exponents, Y, strict=True):
        weights.append(
            [
                float(called(ieee_math.exp_units)(float(exponent - shift)))
                * float(initial_weight(options, counts, column, y > 0))
                for column, (exponent, y) in enumerate(zip(row, signed, strict=True))
            ]
        )
    n_cells = sum(map(len, weights))
    scale = scale_for(max(max(row) for row in weights), n_cells)
    values = [
        [y * round(weight * 2.0**scale) for weight, y in zip(row, signed, strict=True)]
        for row, signed in zip(weights, Y, strict=True)
    ]
    return NaiveGains(values, scale, shift)


def count_errors(scores: Matrix, labels: Rows) -> tuple[int, int]:
    """(rows predicted wrong, rows where a wrong class is at least level with the right one)."""
    wrong, strict = 0, 0
    for row, label in zip(scores, labels, strict=True):
        full = [-row[0], row[0]] if len(row) == 1 else list(row)
        wrong += predicted_class(row) != label
        strict += any(full[c] >= full[label] for c in range(len(full)) if c != label)
    return wrong, strict


def predicted_class(row: Sequence[int]) -> int:
    """The class of the highest score, the smallest among equals; a single column means class 1 where it is >= 0."""
    if len(row) == 1:
        return 1 if row[0] >= 0 else 0
    return list(row).index(max(row))


# --- the integer oracle -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NaiveRound:
    """One round; scores are those after it."""

    tree: tuple
    value: int
    total: int
    edge: float
    alpha: int
    n_leaves: int
    scores: tuple[tuple[int, ...], ...]
    wrong: int
    strictly_wrong: int
    ln_loss: float


@dataclass
class NaiveRun:
    """All rounds that made it into the model and why there are no more."""

    rounds: list[NaiveRound] = field(default_factory=list)
    stop_reason: str = "rounds"


def step(value: int, total: int) -> int:
    """alpha = 0.5 ln((N + V) / (N - V)) in score units, capped."""
    if value >= total:
        return ALPHA_CAP
    alpha = 0.5 * (float(ieee_math.log(float(total + value))) - float(ieee_math.log(float(total - value))))
    return min(round(alpha * 2**20), ALPHA_CAP)


def boost(grid: Grid, labels: Rows, n_classes: int, options: Options, rounds: int) -> NaiveRun:
    """Boosting as the specification says it.

    An edge of 1 ends the run unless rows are still wrong: their gains were below the fixed point's unit.
    """
    counts = tuple(list(labels).count(c) for c in range(n_classes))
    n_columns = 1 if options.binary else n_classes
    scores = [[0] * n_columns for _ in labels]
    gains = gain_matrix(scores, labels, counts, options)
    run = NaiveRun()
    while len(run.rounds) < rounds:
        growth = NaiveGrowth(grid, gains.values, options.free, n_columns)
        tree = growth.grow(range(len(labels)), options.max_leaves)
        total = gains.mass()
        if tree.value <= 0:
            run.stop_reason = "edge_zero"
            break
        alpha = step(tree.value, total)
        if alpha <= 0:
            run.stop_reason = "alpha_zero"
            break
        for leaf in tree.leaves:
            for i in leaf.rows:
                scores[i] = [f + alpha * vote for f, vote in zip(scores[i], leaf.votes, strict=True)]
        gains = gain_matrix(scores, labels, counts, options)
        frozen = tuple(map(tuple, scores))
        wrong, strict = count_errors(scores, labels)
        run.rounds.append(
            NaiveRound(
                tree.nested(), tree.value, total, tree.value / total, alpha, len(tree.leaves),
                frozen, wrong, strict, gains.ln_loss(),
            )
        )  # fmt: skip
        if tree.value >= total and strict == 0:
            run.stop_reason = "edge_one"
            break
    return run


# --- the float64 oracle -------------------------------------------------------------------------------------

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FloatOracle:
    """The formulas of binary AdaBoost and AdaBoost.MH in float64 at given scores F [n_rows, n_columns]."""

    labels: NDArray[np.int32]
    n_classes: int
    options: Options

    def signed(self) -> Floats:
        return np.array(signed_labels(self.labels.tolist(), self.n_classes, self.options), np.float64)

    def initial(self) -> Floats:
        """W1."""
        counts = tuple(np.bincount(self.labels, minlength=self.n_classes).tolist())
        columns = range(1 if self.options.binary else self.n_classes)
        negative, positive = (
            np.array([self._weight_or_zero(counts, c, sign) for c in columns]) for sign in (False, True)
        )
        return np.where(self.signed() > 0, positive, negative)

    def _weight_or_zero(self, counts: tuple[int, ...], column: int, positive: bool) -> float:
        """0 where no row has that sign."""
        try:
            return float(initial_weight(self.options, counts, column, positive))
        except ZeroDivisionError:
            return 0.0

    def weights(self, F: Floats) -> tuple[Floats, float]:
        """W1 exp(-Y F - m) and m, the greatest exponent."""
        exponents = -self.signed() * F
        shift = float(exponents.max())
        return self.initial() * np.exp(exponents - shift), shift

    def ln_loss(self, F: Floats) -> float:
        weights, shift = self.weights(F)
        return math.log(weights.sum()) + shift

    def edge(self, F: Floats, votes: Floats) -> float:
        """gamma = sum W Y H / sum W."""
        weights, _ = self.weights(F)
        return float((weights * self.signed() * votes).sum() / weights.sum())

    def hamming_error(self, F: Floats) -> float:
        """sum of W1 over the pairs with F Y <= 0."""
        return float(self.initial()[self.signed() * F <= 0].sum())

    def error_factor(self) -> float:
        """strict error <= factor * loss, as proved."""
        K = self.n_classes
        if self.options.binary:
            return 1.0
        if self.options.init_weights == "asymmetric":
            return math.sqrt(K - 1)
        if self.options.init_weights == "uniform":
            return K / 2
        counts = np.bincount(self.labels, minlength=K)
        n = len(self.labels)
        # each wrong row's part of the loss is at least 2 sqrt(c(y) c(l))
        pairs = ((y, wrong) for y in range(K) for wrong in range(K) if wrong != y)
        least = min(1 / (2 * K * counts[y]) / (2 * K * (n - counts[wrong])) for y, wrong in pairs)
        return float(1 / (2 * n * math.sqrt(least)))


def float_cut_values(grid: Grid, gains: Floats, rows: Rows, free: bool) -> dict[Cut, float]:
    """The value of every cut that leaves rows on both sides."""
    values = {}
    for cut in candidates(grid, rows):
        left, right = partition(grid, rows, cut)
        if left and right:
            below, above = gains[left].sum(axis=0), gains[right].sum(axis=0)
            values[cut] = float((np.abs(below) + np.abs(above)).sum() if free else np.abs(above - below).sum())
    return values
