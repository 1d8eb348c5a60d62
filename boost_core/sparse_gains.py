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


class Entries(NamedTuple):
    """Entries of each row: row i has columns[begin[i]:end[i]] with gains[...]; there may be gaps between rows.

    begin, end: int64 [n_rows]; columns int32; gains int64, of hot entries of rows without weights int32.
    """

    begin: Integers
    end: Integers
    columns: Labels
    gains: NDArray[np.signedinteger]


@kernel
def _sums(rows, cold, hot, classes, sums):  # type: ignore[no-untyped-def]
    """sums (IN/OUT, int64 [n_classes]) += the entries of rows[0]..rows[1]; classes: of the hot columns."""
    for i in range(rows[0], rows[1]):
        for k in range(cold.begin[i], cold.end[i]):
            sums[cold.columns[k]] += cold.gains[k]
        for k in range(hot.begin[i], hot.end[i]):
            sums[classes[hot.columns[k]]] += hot.gains[k]


@dataclass(frozen=True)
class SparseGains(GainMatrix):
    """Fixed-point gains of one member's rows; `values` is empty, `mass` is that of the whole gain matrix.

    cold: columns are class indices; hot: columns are places in hot_classes, int32, ascending, the same on all members.
    counts: int64 [n_rows], how often each row counts: 1, or its copies, 0 for rows left out. All of a row is times its
    copies. offset: what was added to the gains of a row, summed over this member's rows: a tree's sum of the gains as
    stored is larger by that.
    """

    cold: Entries = field(kw_only=True)
    hot: Entries = field(kw_only=True)
    hot_classes: Labels = field(kw_only=True)
    counts: Integers = field(kw_only=True)
    offset: int = field(kw_only=True)

    def sums(self, team: Team) -> Integers:
        """Sums over this member's rows of each class, the offset and the count of rows: int64 [n_classes + 2]."""
        n_rows = self.mass.shape[0]

        def part(start: int, stop: int) -> Integers:
            found = np.zeros(self.n_channels, np.int64)
            _sums((start, stop), self.cold, self.hot, self.hot_classes, found)
            return found

        parts = team.over(n_rows, 2 * (n_rows + self.hot.gains.shape[0]), part)
        return np.concatenate([np.sum(parts, axis=0), np.array([self.offset, self.counts.sum()], np.int64)])

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
