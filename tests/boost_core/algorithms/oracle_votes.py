"""The exponential vote loss by plain loops over Python integers: what the engine must equal to the bit.

Only exp and log are shared with the engine, whose last bit decides a rounding, and correctly rounded square roots.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from boost_core import ieee_math
from tests.boost_core.algorithms.oracle_trees import ImpureLabels

UNIT = 2.0**-20
CAP = 12 << 20
Cut = tuple[int, int, int, bool]
Sums = list[int]


@dataclass(frozen=True)
class Grid:
    """codes [n_rows][n_features] and the features' numbers of thresholds."""

    codes: Sequence[Sequence[int]]
    n_thresholds: Sequence[int]

    def missing(self, i: int, j: int) -> bool:
        return self.codes[i][j] == self.n_thresholds[j] + 1

    def goes_left(self, i: int, cut: Cut) -> bool:
        feature, kind, last_left, missing_left = cut
        if self.missing(i, feature):
            return missing_left
        return kind == 0 and self.codes[i][feature] <= last_left

    def cuts(self, rows: Sequence[int]) -> Iterator[Cut]:
        """Every cut in the order of ties."""
        for j, n_thresholds in enumerate(self.n_thresholds):
            some = any(self.missing(i, j) for i in rows)
            for last_left in range(n_thresholds):
                yield j, 0, last_left, True
                if some:
                    yield j, 0, last_left, False
            if some:
                yield j, 1, 0, True

    def parts(self, rows: Sequence[int], cut: Cut) -> tuple[list[int], list[int]]:
        left = [i for i in rows if self.goes_left(i, cut)]
        return left, [i for i in rows if not self.goes_left(i, cut)]


def total(gains: Sequence[Sequence[int]], rows: Sequence[int]) -> Sums:
    return [sum(gains[i][c] for i in rows) for c in range(len(gains[0]))]


def sign(value: int) -> int:
    return 1 if value >= 0 else -1


# --- what leaves are worth: (left sums, right sums) -> (worth, worth, says, says) ---------------------------------


def free(left: Sums, right: Sums) -> tuple[Any, ...]:
    return sum(map(abs, left)), sum(map(abs, right)), [sign(s) for s in left], [sign(s) for s in right]


def factorised(left: Sums, right: Sums) -> tuple[Any, ...]:
    votes = [sign(above - below) for below, above in zip(left, right, strict=True)]
    worth = sum(v * above for v, above in zip(votes, right, strict=True))
    return -sum(v * below for v, below in zip(votes, left, strict=True)), worth, [-v for v in votes], votes


def label(left: Sums, right: Sums) -> tuple[Any, ...]:
    return max(left), max(right), left.index(max(left)), right.index(max(right))


def odds(smoothing: float) -> Callable[[Sums, Sums], tuple[Any, ...]]:
    def leaf(sums: Sums) -> tuple[int, list[int]]:
        half = len(sums) // 2
        worth, says = 0, []
        for plus, minus in zip(sums[:half], sums[half:], strict=True):
            worth += max(plus + minus - round(2.0 * math.sqrt(plus) * math.sqrt(minus)), 0)
            logs = [ieee_math.log(max(float(each) + smoothing, 2.0**-30)) for each in (plus, minus)]
            says.append(round(min(max(0.5 * (logs[0] - logs[1]), -12.0), 12.0) * 2**20))
        return worth, says

    def leaves(left: Sums, right: Sums) -> tuple[Any, ...]:
        (left_worth, left_says), (right_worth, right_says) = leaf(left), leaf(right)
        return left_worth, right_worth, left_says, right_says

    return leaves


# --- weak learners ------------------------------------------------------------------------------------------------


@dataclass
class Leaf:
    rows: list[int]
    worth: int
    says: Any
    best: tuple[int, Cut] | None = None


@dataclass
class Learnt:
    """value; says [n_rows], what each row is told; cuts in the order of nodes."""

    value: int
    says: list[Any]
    cuts: list[Cut] = field(default_factory=list)


def grow(grid: Grid, gains: Sequence[Sequence[int]], worth: Callable[..., Any], max_leaves: int) -> Learnt:
    """Best-first growth, by trying every cut of every leaf."""
    rows = list(range(len(gains)))
    nothing = [0] * len(gains[0])
    sums = total(gains, rows)
    if worth is factorised:  # the constant votes the signs of its sums
        _, root_worth, _, root_says = free(nothing, sums)
    else:
        _, root_worth, _, root_says = worth(nothing, sums)
    leaves, cuts = [Leaf(rows, root_worth, root_says)], []
    look(grid, gains, worth, leaves[0])
    while len(leaves) < max_leaves:
        increases = [increase(gains, leaf) for leaf in leaves]
        at = increases.index(max(increases))
        if increases[at] == 0:
            break
        cut = leaves[at].best[1]
        left, right = grid.parts(leaves[at].rows, cut)
        left_worth, right_worth, left_says, right_says = worth(total(gains, left), total(gains, right))
        leaves[at] = Leaf(left, left_worth, left_says)
        leaves.append(Leaf(right, right_worth, right_says))
        look(grid, gains, worth, leaves[at])
        look(grid, gains, worth, leaves[-1])
        cuts.append(cut)
    says = [None] * len(rows)
    for leaf in leaves:
        for i in leaf.rows:
            says[i] = leaf.says
    return Learnt(sum(leaf.worth for leaf in leaves), says, cuts)


def look(grid: Grid, gains: Sequence[Sequence[int]], worth: Callable[..., Any], leaf: Leaf) -> None:
    """Find the first of the leaf's best cuts."""
    for cut in grid.cuts(leaf.rows):
        left, right = grid.parts(leaf.rows, cut)
        if left and right:
            value = sum(worth(total(gains, left), total(gains, right))[:2])
            if leaf.best is None or value > leaf.best[0]:
                leaf.best = (value, cut)


def increase(gains: Sequence[Sequence[int]], leaf: Leaf) -> int:
    if leaf.best is None:
        return 0
    gain = leaf.best[0] - leaf.worth
    return gain if gain > sum(abs(g) for i in leaf.rows for g in gains[i]) >> 28 else 0


def product(grid: Grid, gains: Sequence[Sequence[int]], factors: int, passes: int) -> Learnt:
    n, channels = len(gains), range(len(gains[0]))
    threshold = sum(abs(g) for row in gains for g in row) >> 28
    value = sum(map(sum, gains))
    votes = [[[1] * len(channels) for _ in range(n)] for _ in range(factors)]
    cuts: list[list[Cut]] = [[] for _ in range(factors)]
    for _ in range(passes):
        changed = False
        for q in range(factors):
            others = [list(row) for row in gains]
            for other in range(factors):
                if other != q:
                    others = [[g * votes[other][i][c] for c, g in enumerate(row)] for i, row in enumerate(others)]
            stump = grow(grid, others, factorised, 2)
            if stump.value - value > threshold:
                value, votes[q], cuts[q], changed = stump.value, stump.says, stump.cuts, True
        if not changed:
            break
    says = [[math.prod(votes[q][i][c] for q in range(factors)) for c in channels] for i in range(n)]
    levels = [cut for cut in cuts if cut]
    return Learnt(value, says, [cut[0] for level, cut in enumerate(levels) for _ in range(2**level)])


def purity(gini: bool) -> Callable[[Sums, Sums], tuple[Any, ...]]:
    objective = ImpureLabels(gini)

    def leaves(left: Sums, right: Sums) -> tuple[Any, ...]:
        (left_worth, (left_says,)), (right_worth, (right_says,)) = objective.leaves(left, right)
        return left_worth, right_worth, left_says, right_says

    return leaves


def purest(grid: Grid, gains: Sequence[Sequence[int]], max_leaves: int, gini: bool) -> Learnt:
    """A tree of labels grown by impurity, its weights half of what a gain is above its row's least one."""
    weights = [[(g - min(row)) >> 1 for g in row] for row in gains]
    return as_votes(gains, grow(grid, weights, purity(gini), max_leaves))


def single_label(grid: Grid, gains: Sequence[Sequence[int]], max_leaves: int) -> Learnt:
    """A tree of labels, read as votes."""
    return as_votes(gains, grow(grid, gains, label, max_leaves))


def as_votes(gains: Sequence[Sequence[int]], tree: Learnt) -> Learnt:
    says = [[1 if c == answer else -1 for c in range(len(gains[0]))] for answer in tree.says]
    won = sum(row[answer] for row, answer in zip(gains, tree.says, strict=True))
    return Learnt(2 * won - sum(map(sum, gains)), says, tree.cuts)


# --- weights and steps --------------------------------------------------------------------------------------------


def scale_for(largest: float, n_cells: int) -> int:
    def fits(s: int) -> bool:
        scaled = Fraction(largest) * Fraction(2) ** s
        return scaled <= 2**30 and n_cells * scaled < 2**62

    s = 0
    while fits(s + 1):
        s += 1
    while not fits(s):
        s -= 1
    return s


def weigh(scores: Any, signs: Any, initial: Any, columns: Sequence[int]) -> tuple[dict[tuple[int, int], int], float]:
    """Gains of the pairs of these columns, and ln of what a unit means. signs 0: no pair."""
    pairs = [(i, c) for i in range(len(signs)) for c in columns if signs[i][c]]
    if not pairs:
        return {}, 0.0
    exponents = {(i, c): -signs[i][c] * scores[i][c] for i, c in pairs}
    shift = max(exponents.values())
    weights = {(i, c): float(ieee_math.exp((exponents[i, c] - shift) * UNIT)) * initial[i][c] for i, c in pairs}
    scale = scale_for(max(weights.values()), len(pairs))
    gains = {(i, c): signs[i][c] * round(weights[i, c] * 2.0**scale) for i, c in pairs}
    return gains, shift * UNIT - scale * math.log(2)


def dense(gains: dict[tuple[int, int], int], n: int, columns: Sequence[int]) -> list[list[int]]:
    return [[gains.get((i, c), 0) for c in columns] for i in range(n)]


def atanh_units(value: int, mass: int) -> int:
    if value <= 0:
        return 0
    if value >= mass:
        return CAP
    alpha = 0.5 * (ieee_math.log(float(mass + value)) - ieee_math.log(float(mass - value)))
    return round(min(alpha, 12.0) * 2**20)


def all_right(signs: Any, scores: Any) -> bool:
    return all(s * f > 0 for row in zip(signs, scores, strict=True) for s, f in zip(*row, strict=True))


@dataclass
class Round:
    """scores after it; cuts of all its parts; edge, and ln of the loss that its step is proved to leave at most."""

    scores: list[list[int]]
    cuts: list[Cut]
    edge: float


def boost_votes(grid: Grid, signs: Any, initial: Any, learn: Callable[..., Learnt], rounds: int) -> list[Round]:
    """One step for all columns."""
    n, columns = len(signs), range(len(signs[0]))
    scores, found = [[0] * len(columns) for _ in range(n)], []
    for _ in range(rounds):
        gains = dense(weigh(scores, signs, initial, columns)[0], n, columns)
        mass = sum(abs(g) for row in gains for g in row)
        learnt = learn(grid, gains)
        units = atanh_units(learnt.value, mass)
        if units == 0:
            break
        scores = [[f + units * v for f, v in zip(*pair, strict=True)] for pair in zip(scores, learnt.says, strict=True)]
        found.append(Round(scores, learnt.cuts, learnt.value / mass))
        if learnt.value == mass and all_right(signs, scores):
            break
    return found


def boost_odds(grid: Grid, signs: Any, initial: Any, max_leaves: int, rounds: int) -> list[Round]:
    """Real-valued leaves: the step is in them."""
    n, columns = len(signs), range(len(signs[0]))
    scores, found = [[0] * len(columns) for _ in range(n)], []
    for _ in range(rounds):
        gains = dense(weigh(scores, signs, initial, columns)[0], n, columns)
        apart = [[max(g, 0) for g in row] + [max(-g, 0) for g in row] for row in gains]
        mass = sum(map(sum, apart))
        tree = grow(grid, apart, odds(1.0 * float(mass) / (n * len(columns))), max_leaves)
        if tree.value <= 0 or not any(any(says) for says in tree.says):
            break
        scores = [[f + v for f, v in zip(*pair, strict=True)] for pair in zip(scores, tree.says, strict=True)]
        found.append(Round(scores, tree.cuts, tree.value / mass))
        if tree.value == mass and all_right(signs, scores):
            break
    return found


def boost_columns(grid: Grid, signs: Any, initial: Any, learn: Callable[..., Learnt], rounds: int) -> list[Round]:
    """A binary run a column; the edge is not the engine's, which is a mean."""
    n, columns = len(signs), range(len(signs[0]))
    scores, found = [[0] * len(columns) for _ in range(n)], []
    capped = [False for _ in columns]
    for _ in range(rounds):
        right = [all(signs[i][c] * scores[i][c] > 0 for i in range(n) if signs[i][c]) for c in columns]
        moved, cuts, after = False, [], [list(row) for row in scores]
        for c in columns:
            gains = dense(weigh(scores, signs, initial, [c])[0], n, [c])
            learnt = learn(grid, gains)
            cuts += learnt.cuts
            units = atanh_units(learnt.value, sum(abs(row[0]) for row in gains))
            if units and not (capped[c] and right[c]):
                capped[c], moved = capped[c] or units == CAP, True
                for i in range(n):
                    after[i][c] += units * learnt.says[i][0]
        if not moved:
            break
        scores = after
        found.append(Round(scores, cuts, math.nan))
    return found
