"""Labelled examples drawn from the weights of multiclass_adaboost on sparse gains (algorithms: multiclass_adaboost.py).

A row's weights are P_i + c_i at the own label, c_i - E(i,l) at touched labels and c_i - u_i at all others. Side by side
in the order of the labels they are K c_i; a run of untouched labels is crossed by one division. So an integer falls to
the label that it falls to among all weights written out. What is kept is at most a pair a draw. Draws are sorted, so
that rows are gone through in order (800,000 draws on 200,000 rows, one thread, 30 rounds: 0.13 s a round, not 0.54 s).
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boost_core.draws import draw
from boost_core.jit import counted_kernel, inner, kernel, step
from boost_core.sparse_gains import Entries, SparseGains, hot_places
from boost_core.team import Team

Integers = NDArray[np.int64]


class Weights(NamedTuple):
    """What the weights of a member's rows are made of, all times the row's copies.

    labels: int32 [n_rows]; untouched, pairs: int64 [n_rows], u_i and P_i; hot: entries u_i - E(i,l) of touched labels,
    ascending, and anywhere among them the own label's or none; classes: int32, of the hot columns; n_classes; use_max:
    c_i is the greatest E of a row, else P_i.
    """

    labels: NDArray[np.int32]
    untouched: Integers
    pairs: Integers
    hot: Entries
    classes: NDArray[np.int32]
    n_classes: int
    use_max: bool


@inner
def _cover(weights, i):  # type: ignore[no-untyped-def]
    """Row i's c. A touched label's E is u at least."""
    if not weights.use_max:
        return weights.pairs[i]
    largest, hot = weights.untouched[i], weights.hot
    for k in range(hot.begin[i], hot.end[i]):
        if weights.classes[hot.columns[k]] != weights.labels[i]:
            largest = max(largest, weights.untouched[i] - hot.gains[k])
    return largest


@kernel
def accumulate(weights, bounds):  # type: ignore[no-untyped-def]
    """bounds (OUT, int64 [n_rows + 1]): cumulative sums of K c_i over this member's rows."""
    bounds[0] = 0
    for i in range(weights.labels.shape[0]):
        bounds[i + 1] = bounds[i] + weights.n_classes * _cover(weights, i)


@inner
def _among_untouched(rest, first, stop, each):  # type: ignore[no-untyped-def]
    """(label, what is left of rest): the one of first..stop - 1 that it falls to if all are worth `each`; -1: none."""
    whole = (stop - first) * each
    if rest < whole:
        return first + rest // each, np.int64(0)
    return np.int64(-1), rest - whole


@step
def drawn_label(weights, i, cover, rest):  # type: ignore[no-untyped-def]
    """The label in whose part of row i's K c the integer rest falls; cover: c."""
    hot, own = weights.hot, np.int64(weights.labels[i])
    each, first, k, stop = cover - weights.untouched[i], np.int64(0), hot.begin[i], hot.end[i]
    own_comes = True
    while own_comes or k < stop:
        touched = np.int64(weights.classes[hot.columns[k]]) if k < stop else np.int64(weights.n_classes)
        if touched == own:  # its gain is that of the true label
            k += 1
            continue
        is_own = own_comes and own < touched
        label = own if is_own else touched
        found, rest = _among_untouched(rest, first, label, each)
        if found >= 0:
            return found
        rest -= cover + weights.pairs[i] if is_own else each + hot.gains[k]
        if rest < 0:
            return label
        first, own_comes, k = label + 1, own_comes and not is_own, k + np.int64(not is_own)
    found, rest = _among_untouched(rest, first, np.int64(weights.n_classes), each)
    return found if found >= 0 else np.int64(weights.n_classes - 1)


@inner
def _local(point, spans):  # type: ignore[no-untyped-def]
    """Where a point of all members' sums is in this member's; -1: in another's. spans: see draw_pairs."""
    for r in range(spans.shape[0] - 1):
        inside = point - spans[r, 0]
        if 0 <= inside < spans[r + 1, 1] - spans[r, 1]:
            return spans[r, 1] + inside
    return np.int64(-1)


@counted_kernel
def _draw_own(start, numbers, total, spans):  # type: ignore[no-untyped-def]
    """Where in this member's sums those of the draws numbers[0]..numbers[1] are that are its own, int64 [m]."""
    count = 0
    for number in range(numbers[0], numbers[1]):
        count += _local(draw(start, number, total), spans) >= 0
    found = np.empty(count, np.int64)
    to = 0
    for number in range(numbers[0], numbers[1]):
        local = _local(draw(start, number, total), spans)
        if local >= 0:
            found[to] = local
            to += 1
    return found


@kernel
def _count_drawn(points, weights, bounds, places, rows, mass, cold, hot):  # type: ignore[no-untyped-def]
    """Entries (cold, hot: OUT, in the same arrays) of rows[0]..rows[1]: how often each label is drawn; mass (OUT):
    draws of each row. A row's cold entries begin where its draws do, its hot ones end where they do.

    points: sorted draws, as places in this member's sums; places: int32 [n_classes], of the hot classes, -1 for others.
    """
    m, k = points.shape[0], np.searchsorted(points, bounds[rows[0]])
    for i in range(rows[0], rows[1]):
        first, last, to = k, np.int64(-1), np.int64(0)
        while k < m and points[k] < bounds[i + 1]:
            k += 1
        low, high, cover = first, k, (bounds[i + 1] - bounds[i]) // weights.n_classes
        for e in range(first, k):
            label = drawn_label(weights, i, cover, points[e] - bounds[i])
            if label != last:  # the labels of a row's draws ascend as they do
                last = label
                if places[label] < 0:
                    to, low = low, low + 1
                    cold.columns[to] = label
                else:
                    to = high = high - 1
                    hot.columns[to] = places[label]
                cold.gains[to] = 0
            cold.gains[to] += 1
        mass[i] = k - first
        cold.begin[i], cold.end[i], hot.begin[i], hot.end[i] = first, low, high, k


def draw_pairs(
    gains: SparseGains,
    weights: Weights,
    bounds: Integers,
    draws: tuple[int, int, int, Integers],
    answered: Integers,
    team: Team,
) -> SparseGains:
    """How often each pair of this member's rows is drawn, in place of its gains.

    bounds: of `accumulate`; draws = (start of the stream, their number, sum over all members, spans), spans int64
    [ranges + 1, 2]: where a row range's sums begin in all members' and in this member's; a last entry of the latter
    ends them. answered: int64 [n_classes], leaves that answered each class so far.
    """
    start, n_draws, total, spans = draws

    def part(first: int, stop: int) -> Integers:
        with np.errstate(over="ignore"):  # the draws' words wrap around
            return np.asarray(_draw_own(np.uint64(start), (first, stop), total, spans))

    points = np.concatenate(team.over(n_draws, 8 * n_draws, part))
    points.sort()
    n_rows, n_examples = gains.mass.shape[0], points.shape[0]
    mass, (hot_classes, places) = np.empty(n_rows, np.int64), hot_places(answered)
    shared = (np.empty(n_examples, np.int32), np.empty(n_examples, np.int64))
    cold, hot = (Entries(np.empty(n_rows, np.int64), np.empty(n_rows, np.int64), *shared) for _ in range(2))
    state, work = (points, weights, bounds, places), 20 * (n_rows + n_examples)
    team.over(n_rows, work, lambda a, b: _count_drawn(*state, (a, b), mass, cold, hot))
    return replace(
        gains,
        mass=mass,
        total_mass=n_examples,
        cold=cold,
        hot=hot,
        hot_classes=hot_classes,
        added=np.zeros(n_rows, np.int64),
        offset=0,
    )
