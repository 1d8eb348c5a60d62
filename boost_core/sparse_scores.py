"""Scores of single-label weak learners, of which most are 0: memory of a row and of what it was answered, not of K.

F(i,l) is 0 until a weak learner answers l on row i ("touches" the pair), and never negative. A row keeps the score of
its own label and a list of touched wrong labels, ascending:

    own      F(i, y_i), [n_rows]
    start    [n_rows + 1]: row i has touched[start[i]:start[i + 1]] with the scores held[...]

(Brukhim, Hazan, Moran, Mukherjee & Schapire 2021; each round touches one new pair a row at most.)
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from boost_core.decoding import Decoding
from boost_core.fitted import Part, Speech
from boost_core.jit import inner, kernel
from boost_core.scores import Scores
from boost_core.team import Team

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


@dataclass
class SparseScores(Scores):
    """Scores of rows with these labels (int32 [n_rows]); changes only through `add`. `values` is not used.

    answered: int64 [n_classes], leaves that answer each label in the rounds added so far, the same on all members.
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

    def widen(self, multipliers: Integers, fitted: object) -> None:
        """Make room for a weak learner before it is added, by what it can add to a score at most."""
        super().widen(multipliers, fitted)  # type: ignore[arg-type]
        if self.own.dtype != self.values.dtype:
            self.own, self.held = self.own.astype(self.values.dtype), self.held.astype(self.values.dtype)

    def add(self, part: Part, speech: Speech, multiplier: int, leaf_of_row: Labels, team: Team) -> None:
        """Add multiplier to the score of the label that each row's leaf answers. `widen` comes first.

        A negative multiplier takes back what was added: a score of 0 may then stay in the list, which changes nothing.
        """
        assert speech is Speech.LABEL
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
        n_rows = self.labels.shape[0]
        often = np.empty(0, np.int64) if copies is None else copies
        state = (labels, often, self.own, self.start, self.touched, self.held)
        parts = team.over(n_rows, n_rows + self.touched.shape[0], lambda a, b: _count_errors(*state, a, b))
        return sum(int(part[0]) for part in parts), sum(int(part[1]) for part in parts)

    def dense(self) -> Integers:
        """All scores, [n_rows, n_classes]: for tests and small tables."""
        scores = np.zeros((self.labels.shape[0], self.n_classes), np.int64)
        rows = np.arange(self.labels.shape[0])
        scores[rows, self.labels] = self.own
        scores[np.repeat(rows, np.diff(self.start)), self.touched] = self.held
        return scores


def zero_sparse_scores(labels: Labels, n_classes: int) -> SparseScores:
    """Scores before the first round of rows with these labels."""
    return SparseScores(np.empty((0, n_classes), np.int32), labels=labels, n_classes=n_classes)
