"""The gain matrix of single-label weak learners for many classes: its entries that differ from the rest of their row.

What is added to all entries of a row changes no choice of a single-label weak learner, so a row's most frequent gain
becomes 0 and is not stored (algorithm's file: which gain that is). The rest is held in two lists a row:

    hot    of classes that may have negative gains: the answers of earlier rounds, which are few
    cold   of all other classes: gains above 0

A leaf's sum of a cold class only grows as rows are added to it. So the greatest of them is known by adding up, from
either end of a feature, and never needs a table of bins by classes (sparse_search.py).
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boost_core.gain_matrix import GainMatrix
from boost_core.jit import kernel
from boost_core.team import Team

Integers = NDArray[np.int64]
Labels = NDArray[np.int32]


# Classes with a table where any class can be cold. 200,000 rows, 20 features, 8 leaves, 30 rounds of samme, 2 threads:
# with 100 classes 2.6, 2.3 and 2.2 s for none, 64 and all that were answered, with 10,000 1.6, 1.9 and 2.3 s; of
# adaboost_m1, where four classes have most rows, 2.8 s for none and 1.2 s for 64. Tables take memory by classes.
MOST_HOT = 64


def hot_places(answered: Integers) -> tuple[Labels, Labels]:
    """(hot classes, place of every class among them, -1 for others) where no gain is negative, so that any class can be
    cold: those that most leaves answered (int64 [n_classes], the same on all members), the smallest ones among equals.
    """
    most = np.argsort(-answered, kind="stable")[:MOST_HOT]
    hot_classes = np.sort(most[answered[most] > 0]).astype(np.int32)
    places = np.full(answered.shape[0], -1, np.int32)
    places[hot_classes] = np.arange(hot_classes.shape[0], dtype=np.int32)
    return hot_classes, places


class Entries(NamedTuple):
    """Entries of each row: row i has columns[begin[i]:end[i]] with gains[...]; there may be gaps between rows.

    begin, end: int64 [n_rows]; columns int32; gains int64, of hot entries of rows without weights int32.
    """

    begin: Integers
    end: Integers
    columns: Labels
    gains: NDArray[np.signedinteger]


@kernel
def _sums(rows, cold, hot, classes, counts, sums):  # type: ignore[no-untyped-def]
    """sums (IN/OUT, int64 [n_classes + 1]) += entries of the rows, and their counts; classes: of the hot columns."""
    for k in range(rows.shape[0]):
        i = np.int64(rows[k])
        sums[sums.shape[0] - 1] += counts[i]
        for e in range(cold.begin[i], cold.end[i]):
            sums[cold.columns[e]] += cold.gains[e]
        for e in range(hot.begin[i], hot.end[i]):
            sums[classes[hot.columns[e]]] += hot.gains[e]


@kernel
def _count_hot(rows, hot, counts):  # type: ignore[no-untyped-def]
    """counts (IN/OUT, int64 [hot classes]) += the rows' entries of each hot class."""
    for k in range(rows.shape[0]):
        for e in range(hot.begin[rows[k]], hot.end[rows[k]]):
            counts[hot.columns[e]] += 1


@kernel
def _sort_hot(rows, hot, places, of_row, gains):  # type: ignore[no-untyped-def]
    """of_row, gains (OUT): row and gain of the rows' hot entries by class, rows in their order.

    places (IN/OUT, int64 [hot classes]): where the next entry of each class goes.
    """
    for k in range(rows.shape[0]):
        i = rows[k]
        for e in range(hot.begin[i], hot.end[i]):
            place = places[hot.columns[e]]
            places[hot.columns[e]] = place + 1
            of_row[place], gains[place] = i, hot.gains[e]


@kernel
def mass_of(mass, rows):  # type: ignore[no-untyped-def]
    """Sum of the masses of some rows."""
    total = np.int64(0)
    for k in range(rows.shape[0]):
        total += mass[rows[k]]
    return total


@dataclass(frozen=True)
class SparseGains(GainMatrix):
    """Fixed-point gains of one member's rows; `values` is empty.

    mass: int64 [n_rows], sum of the row's absolute gains in the whole gain matrix.

    cold: columns are class indices; hot: columns are places in hot_classes, int32, ascending, the same on all members.
    counts: int64 [n_rows], how often each row counts: 1, or its copies, 0 for rows left out. All of a row is times its
    copies. added: int64 [n_rows], what was added to all gains of each row. offset: the same summed over this member's
    rows that count: a tree's sum of the gains as stored is larger by that.
    """

    mass: Integers = field(kw_only=True)
    cold: Entries = field(kw_only=True)
    hot: Entries = field(kw_only=True)
    hot_classes: Labels = field(kw_only=True)
    counts: Integers = field(kw_only=True)
    added: Integers = field(kw_only=True)
    offset: int = field(kw_only=True)

    def sums(self, team: Team) -> Integers:
        """Sums over this member's rows of each class, the offset and the count of rows: int64 [n_classes + 2]."""
        found = self.sums_of(np.arange(self.mass.shape[0], dtype=np.int32), team)
        return np.insert(found, self.n_channels, self.offset)

    def sums_of(self, rows: Labels, team: Team) -> Integers:
        """Sums over some rows of each class, and their count: int64 [n_classes + 1]."""

        def part(start: int, stop: int) -> Integers:
            found = np.zeros(self.n_channels + 1, np.int64)
            _sums(rows[start:stop], self.cold, self.hot, self.hot_classes, self.counts, found)
            return found

        n_rows, entries = rows.shape[0], self.hot.gains.shape[0] // max(self.mass.shape[0], 1)
        return np.asarray(np.sum(team.over(n_rows, 2 * n_rows * (2 + entries), part), axis=0))

    def hot_by_class(self, rows: Labels, team: Team) -> tuple[Integers, Labels, NDArray[np.signedinteger]]:
        """The rows' hot entries sorted by class: where each class starts [hot classes + 1], rows, gains."""
        hot, n_hot, n_rows = self.hot, self.hot_classes.shape[0], rows.shape[0]
        work = 4 * n_rows * (1 + hot.columns.shape[0] // max(self.mass.shape[0], 1))

        def count(start: int, stop: int) -> tuple[int, Integers]:
            found = np.zeros(n_hot, np.int64)
            _count_hot(rows[start:stop], hot, found)
            return start, found

        parts = team.over(n_rows, work, count)
        counts = np.array([found for _, found in parts]).reshape(len(parts), n_hot)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts.sum(axis=0))])
        # a part's entries of a class follow those of the parts before it
        places = starts[:-1] + np.cumsum(counts, axis=0) - counts
        begins = {start: place for (start, _), place in zip(parts, places, strict=True)}
        of_row, sorted_gains = np.empty(starts[-1], np.int32), np.empty(starts[-1], hot.gains.dtype)
        team.over(n_rows, work, lambda a, b: _sort_hot(rows[a:b], hot, begins[a], of_row, sorted_gains))
        return starts, of_row, sorted_gains

    def only(self, kept: NDArray[np.bool_]) -> "SparseGains":
        """The gains of some rows (bool [n_rows]), the others without entries and not counted.

        The offset stays that of all rows, so a tree's value means nothing: single-label algorithms do not read it.
        """
        mass = np.where(kept, self.mass, 0)
        return replace(
            self,
            mass=mass,
            total_mass=int(mass.sum()),
            cold=self.cold._replace(end=np.where(kept, self.cold.end, self.cold.begin)),
            hot=self.hot._replace(end=np.where(kept, self.hot.end, self.hot.begin)),
            counts=np.where(kept, self.counts, 0),
        )
