"""Scores of single-label weak learners, of which most are 0: memory of a row and of what it was answered, not of K.

F(i,l) is 0 until a weak learner answers l on row i ("touches" the pair), and never negative. A row keeps the score of
its own label and a list of touched wrong labels, ascending:

    own      F(i, y_i), [n_rows]
    start    [n_rows + 1]: row i has touched[start[i]:start[i + 1]] with the scores held[...]

(Brukhim, Hazan, Moran, Mukherjee & Schapire 2021; each round touches one new pair a row at most.)
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from boost_core.decoding import Decoding
from boost_core.fitted import Part, Speech
from boost_core.jit import inner, kernel
from boost_core.scores import WIDEN_AT, Scores
from boost_core.team import Team

BLOCK_SCORES = 1 << 22  # scores that are written out at once where a row's are all needed: 32 MB
Labels = NDArray[np.int32]
Integers = NDArray[np.int64]


@inner
def find_touched(touched, start, stop, label):  # type: ignore[no-untyped-def]
    """Place of the first of touched[start:stop] that is not below the label."""
    while start < stop:
        middle = (start + stop) >> 1
        if touched[middle] < label:
            start = middle + 1
        else:
            stop = middle
    return start


@kernel
def _count_touched(labels, answers, leaf_of_row, start, touched, rows, sizes):  # type: ignore[no-untyped-def]
    """sizes (OUT, int64 [n]): touched labels of rows[0]..rows[1] once they are answered answers[leaf_of_row]."""
    for i in range(rows[0], rows[1]):
        answer = answers[leaf_of_row[i]]
        first, stop = start[i], start[i + 1]
        sizes[i] = stop - first
        if answer != labels[i]:
            place = find_touched(touched, first, stop, answer)
            sizes[i] += place == stop or touched[place] != answer


@kernel
def _touch(labels, answers, leaf_of_row, step, old, rows, new):  # type: ignore[no-untyped-def]
    """Add step to the answered pair of rows[0]..rows[1]; old = (start, touched, held), new the same (OUT) and own."""
    start, touched, held = old
    new_start, new_touched, new_held, own = new
    for i in range(rows[0], rows[1]):
        answer, to = answers[leaf_of_row[i]], new_start[i]
        if answer == labels[i]:
            own[i] += step
        placed = answer == labels[i]
        for k in range(start[i], start[i + 1]):
            if not placed and touched[k] >= answer:
                placed = True
                if touched[k] > answer:
                    new_touched[to], new_held[to] = answer, step
                    to += 1
                    new_touched[to], new_held[to] = touched[k], held[k]
                else:
                    new_touched[to], new_held[to] = answer, held[k] + step
            else:
                new_touched[to], new_held[to] = touched[k], held[k]
            to += 1
        if not placed:
            new_touched[to], new_held[to] = answer, step


@kernel
def _count_errors(labels, copies, own, start, touched, held, first, stop):  # type: ignore[no-untyped-def]
    """As scores._count_errors: untouched labels have the score 0, which no own score is below."""
    ordinary, strict = np.int64(0), np.int64(0)
    for i in range(first, stop):
        level = own[i] == 0
        wrong = level and labels[i] > 0
        for k in range(start[i], start[i + 1]):
            wrong |= (held[k] > own[i]) | ((held[k] == own[i]) & (touched[k] < labels[i]))
            level |= held[k] >= own[i]
        n_copies = copies[i] if copies.shape[0] > 0 else np.int64(1)
        ordinary += n_copies * wrong
        strict += n_copies * level
    return ordinary, strict


@kernel
def _leads(n_classes, own, start, held, leads):  # type: ignore[no-untyped-def]
    """As scores._leads: an untouched wrong label, if there is one, has the score 0."""
    for i in range(own.shape[0]):
        first, stop = start[i], start[i + 1]
        best = np.int64(0) if stop - first < n_classes - 1 else np.int64(held[first])
        for k in range(first, stop):
            best = max(best, np.int64(held[k]))
        leads[i] = own[i] - best


@dataclass
class SparseScores(Scores):
    """Scores of rows with these labels (int32 [n_rows]); changes only through `add`. `values` is not used.

    answered: int64 [n_classes], leaves that answer each label in the rounds added so far, the same on all members.
    base: int64 [n_classes], what all rows have besides: the constant model of a run in which no step was taken. Gains
    are not made of it: whoever goes on from there finds again that there is nothing to gain.
    """

    labels: Labels = field(default_factory=lambda: np.empty(0, np.int32))
    n_classes: int = 0

    def __post_init__(self) -> None:
        n_rows = self.labels.shape[0]
        self.own = np.zeros(n_rows, self.values.dtype)
        self.start = np.zeros(n_rows + 1, np.int64)
        self.touched = np.empty(0, np.int32)
        self.held = np.empty(0, self.values.dtype)
        self.answered = np.zeros(self.n_classes, np.int64)
        self.base = np.zeros(self.n_classes, np.int64)

    def widen(self, multipliers: Integers, fitted: object) -> None:
        """Make room for a weak learner before it is added, by what it can add to a score at most."""
        super().widen(multipliers, fitted)  # type: ignore[arg-type]
        if self.own.dtype != self.values.dtype:
            self.own, self.held = self.own.astype(self.values.dtype), self.held.astype(self.values.dtype)

    def add(self, part: Part, speech: Speech, multiplier: int, leaf_of_row: Labels, team: Team) -> None:
        """Add multiplier to the score of the label that each row's leaf answers. `widen` comes first.

        A negative multiplier takes back what was added: a score of 0 may then stay in the list, which changes nothing.
        """
        if speech is not Speech.LABEL:
            assert part.tree.payload.shape[0] == 1  # the constant model of majority.py
            self.base += multiplier * part.tree.payload[0].astype(np.int64)
            return
        answers = np.ascontiguousarray(part.tree.payload[:, 0])
        np.add.at(self.answered, answers, 1 if multiplier > 0 else -1)
        n_rows, labels, step = self.labels.shape[0], self.labels, self.own.dtype.type(multiplier)
        old, work = (self.start, self.touched, self.held), 4 * (n_rows + self.touched.shape[0])
        start = np.zeros(n_rows + 1, np.int64)
        team.over(
            n_rows,
            work,
            lambda a, b: _count_touched(labels, answers, leaf_of_row, *old[:2], (a, b), start[1:]),
        )
        np.cumsum(start, out=start)
        touched, held = np.empty(start[-1], np.int32), np.empty(start[-1], self.own.dtype)
        new = (start, touched, held, self.own)
        team.over(n_rows, work, lambda a, b: _touch(labels, answers, leaf_of_row, step, old, (a, b), new))
        self.start, self.touched, self.held = start, touched, held

    def count_errors(
        self, labels: Labels, team: Team, decoding: Decoding | None = None, copies: Integers | None = None
    ) -> tuple[int, int]:
        """(wrong predictions, rows where a wrong class is at least level with the right one), each row counted as often
        as its copies."""
        if self.base.any():
            return self._count_in_blocks(labels, team, copies)
        n_rows = self.labels.shape[0]
        often = np.empty(0, np.int64) if copies is None else copies
        state = (labels, often, self.own, self.start, self.touched, self.held)
        parts = team.over(n_rows, n_rows + self.touched.shape[0], lambda a, b: _count_errors(*state, a, b))
        return sum(int(part[0]) for part in parts), sum(int(part[1]) for part in parts)

    def blocks(self) -> Iterator[tuple[slice, NDArray[np.integer]]]:
        """All scores, in blocks of rows [n, n_classes] with the rows they are of: BLOCK_SCORES at a time."""
        n_rows, size = self.labels.shape[0], max(BLOCK_SCORES // max(self.n_classes, 1), 1)
        for begin in range(0, n_rows, size):
            rows = slice(begin, min(begin + size, n_rows))
            starts = self.start[rows.start : rows.stop + 1]
            scores = np.zeros((rows.stop - rows.start, self.n_classes), np.int64) + self.base
            local = np.arange(scores.shape[0])
            scores[local, self.labels[rows]] += self.own[rows]
            entries = slice(starts[0], starts[-1])
            scores[np.repeat(local, np.diff(starts)), self.touched[entries]] += self.held[entries]
            yield rows, scores

    def leads(self, labels: Labels, n_rows: int) -> Iterator[tuple[slice, Integers]]:
        """See Scores.leads; labels: those of the rows. Blocks may have fewer rows."""
        if self.base.any():
            for rows, block in self.blocks():
                for inner_rows, found in Scores(block).leads(labels[rows], n_rows):
                    yield slice(rows.start + inner_rows.start, rows.start + inner_rows.stop), found
            return
        for first in range(0, labels.shape[0], n_rows):
            rows = slice(first, min(first + n_rows, labels.shape[0]))
            found = np.empty(rows.stop - first, np.int64)
            _leads(self.n_classes, self.own[rows], self.start[first : rows.stop + 1], self.held, found)
            yield rows, found

    def wide(self) -> Scores:
        """A copy with room for all that may come."""
        values = np.empty((0, self.n_classes), np.int64)
        copy = SparseScores(values, WIDEN_AT, labels=self.labels, n_classes=self.n_classes)
        copy.own, copy.held = self.own.astype(np.int64), self.held.astype(np.int64)
        copy.start, copy.touched = self.start.copy(), self.touched.copy()
        copy.answered, copy.base = self.answered.copy(), self.base.copy()
        return copy

    def _count_in_blocks(self, labels: Labels, team: Team, copies: Integers | None) -> tuple[int, int]:
        found = [
            Scores(block).count_errors(labels[rows], team, None, None if copies is None else copies[rows])
            for rows, block in self.blocks()
        ]
        return sum(wrong for wrong, _ in found), sum(strict for _, strict in found)


def zero_sparse_scores(labels: Labels, n_classes: int) -> SparseScores:
    """Scores before the first round of rows with these labels."""
    return SparseScores(np.empty((0, n_classes), np.int32), labels=labels, n_classes=n_classes)


def as_sparse(scores: Scores) -> SparseScores:
    """The scores of an algorithm that keeps the sparse state."""
    assert isinstance(scores, SparseScores)
    return scores
