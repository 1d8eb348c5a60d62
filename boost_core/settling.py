"""When a row's label is settled: the trees still to come cannot change it.

    a score a class   the lead of the first over all others is greater than what the rest can take from it
    a sign a label    no score can come to the other side of 0 any more

What is left is bounded by sums over the trees to come: of their spreads, the most that any leaf tells two columns
apart, and where trees speak for one column each, of the least and the greatest number that a leaf says. Scores are
integers, so these bounds are exact, and a settled label is the label of the full sum, ties included. With code words no
row is settled early: what decides there is a sum of losses.
"""

import enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boost_core.compact import Compact
from boost_core.decoding import Decoding, Rule
from boost_core.jit import counted_kernel, inner, step
from boost_core.tree_vectors import lead

LARGEST_REACH = 1 << 60  # of scores: beyond it bounds could wrap around, and nobody leaves early
LOOKS = 16  # after as many trees or as much change each, in the second half of what trees can change: before it no lead
# can be large enough
APART = 16  # trees between two looks at least
SAMPLE = 16  # a look is at one row of so many first, and at all where it seems to be worth it
# What takes how long, in trees that a row goes down (docs/performance.md).
LOOK, LOOK_A_COLUMN = 4, 2  # to look at a row and to write its label; where each column is looked at by itself
MOVE, CODES_A_TREE = 12, 3  # to move a row; one more for so many of its codes
MARGIN = 2  # by which what is won is greater: else it is better to wait until more rows are settled

Integers = NDArray[np.int64]


class By(enum.IntEnum):
    """What settles a label."""

    LEAD = 0  # a score a class, trees that speak for all of them
    COLUMN = 1  # the same, trees that speak for one of them each
    SIGN = 2  # the sign of the only score
    SIGNS = 3  # the sign of each score


class Bounds(NamedTuple):
    """by: see By; stops int64 [S]: after so many trees rows are looked at; left int64 [S]: how many come then; costs
    int64 [2]: of a look at a row and of its move, in trees; spread int64 [S]: by how much the trees to come can change
    a lead; lowest, highest int64 [S, c] (LEAD: [S, 0]): what they add to a score at least and most."""

    by: int
    stops: Integers
    left: Integers
    costs: Integers
    spread: Integers
    lowest: Integers
    highest: Integers


def make_bounds(compact: Compact, decoding: Decoding, early: bool = True) -> Bounds:
    """What settles a row's label. Not early: only all trees do.

    Errors: ValueError where a code word decides.
    """
    if decoding.coded:
        raise ValueError(f"labels by the rule {decoding.rule.value!r} are decoded from scores; call predicted_classes")
    alone = compact.trees.says.shape[1] == 1 and not compact.labels
    by = {Rule.BINARY: By.SIGN, Rule.SIGNS: By.SIGNS}.get(decoding.rule, By.COLUMN if alone else By.LEAD)
    done = np.concatenate([np.zeros(1, np.int64), np.cumsum(compact.weights)])
    n_trees, ahead = compact.weights.shape[0], np.arange(LOOKS) / LOOKS
    by_weight = np.searchsorted(done, done[-1] * (0.5 + ahead / 2))
    by_number = by_weight[0] + ((n_trees - by_weight[0]) * ahead).astype(np.int64)
    stops = np.unique(np.concatenate([by_weight, by_number]) // APART * APART)
    look = LOOK + (0 if by == By.LEAD else LOOK_A_COLUMN * compact.n_columns)
    stops = stops[(stops > 0) & (stops + MARGIN * look < n_trees)]
    if not early or compact.reach >= LARGEST_REACH or (compact.labels and by != By.LEAD):
        stops = stops[:0]
    spread = done[-1] - done[stops]
    lowest, highest = np.zeros((2, stops.shape[0], 0 if by == By.LEAD else compact.n_columns), np.int64)
    if by != By.LEAD:
        trees = compact.trees
        _limits(trees.leaf_start, trees.says, trees.multiplier, trees.column, stops, lowest, highest)
    costs = np.array([look, MOVE + compact.n_codes // CODES_A_TREE])
    return Bounds(int(by), stops, n_trees - stops, costs, spread, lowest, highest)


@inner
def worth_leaving(n_rows, n_settled, bounds, look):  # type: ignore[no-untyped-def]
    """Whether the trees that so many settled ones of the rows need not go down any more take longer than to find them
    and to fill their places with others, about as many as there are settled ones among those that stay."""
    won = n_settled * bounds.left[look] * n_rows
    lost = bounds.costs[0] * n_rows * n_rows + bounds.costs[1] * n_settled * (n_rows - n_settled)
    return won > MARGIN * lost


@counted_kernel
def _limits(leaf_start, says, multiplier, column, stops, lowest, highest):  # type: ignore[no-untyped-def]
    """lowest, highest (OUT): see Bounds."""
    n_columns, look = lowest.shape[1], stops.shape[0] - 1
    low, high = np.zeros(n_columns, np.int64), np.zeros(n_columns, np.int64)
    for tree in range(multiplier.shape[0] - 1, -1, -1):
        for c in range(n_columns):
            if column[tree] >= 0 and c != column[tree]:
                continue
            place = np.int64(0 if column[tree] >= 0 else c)
            least = multiplier[tree] * says[leaf_start[tree], place]
            most = least
            for leaf in range(leaf_start[tree] + 1, leaf_start[tree + 1]):
                said = multiplier[tree] * says[leaf, place]
                least, most = min(least, said), max(most, said)
            low[c] += least
            high[c] += most
        if look >= 0 and stops[look] == tree:
            lowest[look], highest[look] = low, high
            look -= 1


@inner
def first_greatest(sums, at, n):  # type: ignore[no-untyped-def]
    """The first column of the greatest of sums[at : at + n]."""
    best = 0
    for c in range(1, n):
        best = c if sums[at + c] > sums[at + best] else best
    return best


@inner
def clear(sums, n_rows, n_columns):  # type: ignore[no-untyped-def]
    """sums (OUT) [n, pitch] of the first rows = 0; what fills a row up to the pitch is below all sums."""
    lowest = -(np.int64(1) << (8 * sums.itemsize - 2))
    for i in range(n_rows):
        for c in range(sums.shape[1]):
            sums[i, c] = 0 if c < n_columns else lowest


@inner
def _by_column(sums, at, n_columns, low, high):  # type: ignore[no-untyped-def]
    """Whether the trees to come, which add low to high to each score, leave the greatest one the greatest."""
    best = first_greatest(sums, at, n_columns)
    least = sums[at + best] + low[best]
    for c in range(n_columns):  # noqa: SIM110 - a loop that Numba compiles
        if c != best and sums[at + c] + high[c] >= least:
            return False
    return True


@inner
def _by_sign(sums, at, n_columns, low, high, at_zero):  # type: ignore[no-untyped-def]
    """Whether they leave every score on its side of 0; at_zero: 1 if 0 is on the side below, else 0."""
    for c in range(n_columns):
        least, most = sums[at + c] + low[c], sums[at + c] + high[c]
        if least < at_zero <= most:
            return False
    return True


@step
def mark_settled(sums, n_rows, step, n_columns, bounds, look, settled):  # type: ignore[no-untyped-def]
    """settled (OUT, uint8 [n]): of every step-th row, whether trees from stops[look] on cannot change its label.

    sums: [n, pitch] as `clear` and whole blocks of trees leave them. Returns how many are.
    """
    flat, pitch, count = sums.reshape(-1), sums.shape[1], np.int64(0)
    low, high, spread, by = bounds.lowest[look], bounds.highest[look], bounds.spread[look], bounds.by
    if by == 0:
        for i in range(0, n_rows, step):
            settled[i] = lead(flat, i * pitch, pitch) > spread
            count += np.int64(settled[i])
        return count
    for i in range(0, n_rows, step):
        if by == 1:
            settled[i] = _by_column(flat, i * pitch, n_columns, low, high)
        else:
            settled[i] = _by_sign(flat, i * pitch, n_columns, low, high, np.int64(by == 3))
        count += np.int64(settled[i])
    return count


@step
def write_label(sums, at, n_columns, by, lowest, row, classes, sets):  # type: ignore[no-untyped-def]
    """classes (OUT, int32 [n]) or sets (OUT, bool [n, n_columns]) of a row whose label is settled; lowest: int64
    [n_columns], what trees to come add at least, or [0] where there are none."""
    if by == 3:
        for c in range(n_columns):
            sets[row, c] = sums[at + c] + (lowest[c] if lowest.shape[0] > 0 else 0) > 0
    elif by == 2:
        classes[row] = 1 if sums[at] + (lowest[0] if lowest.shape[0] > 0 else 0) >= 0 else 0
    else:
        classes[row] = first_greatest(sums, at, n_columns)
