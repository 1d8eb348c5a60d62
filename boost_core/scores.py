"""Scores of a member's rows: exact sums of integer payloads, and the predictions read off them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boost_core.aligned import aligned_rows
from boost_core.crew import Sharing, do_part, join_parts
from boost_core.decoding import Decoding, Rule, count_decoding_errors, decode_rows
from boost_core.fitted import ALL_COLUMNS, Fitted, Part, Speech
from boost_core.jit import kernel, step
from boost_core.model import SCORE_UNITS
from boost_core.objective import implements
from boost_core.row_vectors import add_row, add_row_watched, count_at_least
from boost_core.row_weights import class_mass
from boost_core.team import Team

UNIT = 2.0**-SCORE_UNITS
WIDEN_AT = 1 << 30  # int32 scores become int64 before a score or a difference of two could pass 2**31
NO_PAIR = -(1 << 62)  # peak of a label that no row has, or that all have
PEAKS = 2  # place of the peaks in what _Watched sees, behind the errors
LEAST_NARROW, LEAST_WIDE = np.int32(np.iinfo(np.int32).min), np.int64(np.iinfo(np.int64).min)


@kernel
def _add(scores, payload, leaf_of_row, start, stop):  # type: ignore[no-untyped-def]
    """scores (IN/OUT) [n, c] += payload [n_leaves, c] of each row's leaf."""
    n_columns, flat, payloads = scores.shape[1], scores.reshape(-1), payload.reshape(-1)
    for i in range(start, stop):
        add_row(flat, i * n_columns, payloads, leaf_of_row[i] * n_columns, n_columns)


class _Watched(NamedTuple):
    """Adding a round, units (int64 [1]) times payload int32 [n_leaves, c] of each row's leaf, to rows of one label
    each, and what is seen of the new scores on the way: seen int64 [n_blocks, PEAKS + 2 * c] (OUT), by block, and of
    all in the first row then, errors as _count_errors says, from PEAKS on peaks as Survey says; lowest: the least
    number of the scores' type, from which they keep away; payloads [n_threads, >= n_leaves * c], peaks
    [n_threads, >= 2 * c]: room, of the scores' type, in lines of the cache of each thread's own."""

    scores: NDArray[np.integer]
    payload: NDArray[np.int32]
    units: NDArray[np.int64]
    leaf_of_row: NDArray[np.int32]
    labels: NDArray[np.int32]
    lowest: np.integer
    payloads: NDArray[np.integer]
    peaks: NDArray[np.integer]
    seen: NDArray[np.int64]


@implements(do_part, _Watched)
def _add_watched(task, block, thread, start, stop):  # type: ignore[no-untyped-def]
    n_columns = task.scores.shape[1]
    flat, payloads, peaks = task.scores.reshape(-1), task.payloads[thread], task.peaks[thread]
    for leaf in range(task.payload.shape[0]):
        for c in range(n_columns):
            payloads[leaf * n_columns + c] = np.int64(task.payload[leaf, c]) * task.units[0]
    for c in range(2 * n_columns):
        peaks[c] = task.lowest
    ordinary, strict = np.int64(0), np.int64(0)
    wrong, own = peaks[:n_columns], peaks[n_columns:]
    for i in range(start, stop):  # numbers of rows and labels index as unsigned ones (cut.divide)
        row, at = np.uint64(i), i * n_columns
        label, first = np.int64(task.labels[row]), np.int64(task.leaf_of_row[row]) * n_columns
        is_level = add_row_watched(flat, at, payloads, first, n_columns, label, wrong, task.lowest)
        own[np.uint64(label)] = max(own[np.uint64(label)], -flat[np.uint64(at + label)])
        if is_level:
            strict += 1
            ordinary += _is_beaten(task.scores[row], label)
    task.seen[block, 0], task.seen[block, 1] = ordinary, strict
    for c in range(2 * n_columns):
        task.seen[block, PEAKS + c] = NO_PAIR if peaks[c] == task.lowest else np.int64(peaks[c])


@implements(join_parts, _Watched)
def _join_watched(task):  # type: ignore[no-untyped-def]
    seen = task.seen
    for block in range(1, seen.shape[0]):
        for error in range(PEAKS):
            seen[0, error] += seen[block, error]
        for peak in range(PEAKS, seen.shape[1]):
            seen[0, peak] = max(seen[0, peak], seen[block, peak])


@kernel
def _add_label(scores, multiplier, labels, leaf_of_row, start, stop):  # type: ignore[no-untyped-def]
    """scores (IN/OUT) of the column labels[leaf] += multiplier."""
    for i in range(start, stop):
        scores[i, labels[leaf_of_row[i]]] += multiplier


@kernel
def _add_column(scores, column, payload, leaf_of_row, start, stop):  # type: ignore[no-untyped-def]
    """scores (IN/OUT) [n, column] += payload [n_leaves] of each row's leaf."""
    for i in range(start, stop):
        scores[i, column] += payload[leaf_of_row[i]]


@step
def _is_beaten(row, label):  # type: ignore[no-untyped-def]
    """Whether another class is predicted: one of a greater score, or of an equal one and a smaller index."""
    beaten = False
    for c in range(row.shape[0]):
        beaten |= row[c] > row[label] or (c < label and row[c] == row[label])
    return beaten


@kernel
def _count_errors(scores, labels, copies, start, stop):  # type: ignore[no-untyped-def]
    """Rows whose predicted class is not their label, and rows where a wrong class is at least level (int64 [2]).

    copies: int64 [n], how often each row counts, or [0] for once.
    One score column means two classes: the second one is predicted where the score is >= 0.
    """
    n_columns, flat = scores.shape[1], scores.reshape(-1)
    ordinary, strict = np.int64(0), np.int64(0)
    for i in range(start, stop):
        label = labels[i]
        n_copies = copies[i] if copies.shape[0] > 0 else np.int64(1)
        if n_columns == 1:
            margin = scores[i, 0] if label == 1 else -scores[i, 0]
            ordinary += n_copies * ((scores[i, 0] >= 0) != (label == 1))
            strict += n_copies * (margin <= 0)
        elif count_at_least(flat, i * n_columns, n_columns, scores[i, label]) > 1:
            strict += n_copies
            ordinary += n_copies * _is_beaten(scores[i], np.int64(label))
    return ordinary, strict


@kernel
def _leads(scores, labels, leads):  # type: ignore[no-untyped-def]
    """leads (OUT, int64 [n]): own score less the greatest other one; with one column the score towards the label."""
    for i in range(scores.shape[0]):
        label = labels[i]
        if scores.shape[1] == 1:
            leads[i] = scores[i, 0] if label == 1 else -np.int64(scores[i, 0])
        else:
            best = scores[i, 0 if label > 0 else 1]
            for c in range(scores.shape[1]):
                best = scores[i, c] if c != label and scores[i, c] > best else best
            leads[i] = np.int64(scores[i, label]) - best


@kernel
def _argmax(scores, classes):  # type: ignore[no-untyped-def]
    """classes (OUT, int32 [n]): predicted class of every row; ties go to the smallest index."""
    for i in range(scores.shape[0]):
        if scores.shape[1] == 1:
            classes[i] = 1 if scores[i, 0] >= 0 else 0
        else:
            best = 0
            for c in range(1, scores.shape[1]):
                if scores[i, c] > scores[i, best]:
                    best = c
            classes[i] = best


def predicted_classes(scores: NDArray[np.integer], decoding: Decoding | None = None) -> NDArray[np.int32]:
    """Class index of every row, int32 [n]; scores [n, c]; without a decoding: a class a column, two where c = 1."""
    classes = np.empty(scores.shape[0], np.int32)
    if decoding is not None and decoding.coded:
        decode_rows(scores, decoding.sides, decoding.rule is Rule.LOSS, UNIT, classes)
    else:
        _argmax(scores, classes)
    return classes


class Survey(NamedTuple):
    """What is known of all rows since the last round was added. peaks: int64 [2 * n_columns], by label the greatest
    score of rows of other labels, then the greatest -score of its own rows, NO_PAIR where there is no such row; used
    again for the next round."""

    wrong: int
    strictly_wrong: int
    peaks: NDArray[np.int64]


class Adding(NamedTuple):
    """What a kernel needs to add rounds by itself (Scores.adding): shared: what share_out is given, while what is
    held lives; units int64 [1]: IN, what the payload counts; seen int64: OUT, errors, then from PEAKS on peaks."""

    shared: tuple[Any, ...]
    held: Any
    units: NDArray[np.int64]
    seen: NDArray[np.int64]


@dataclass
class Scores:
    """Scores F [n_rows, n_columns] in units of 2**-20, contiguous; changes only through `add`."""

    values: NDArray[np.integer]
    reach: int = 0  # sum of the largest payloads so far: no score can be larger
    _watched: NDArray[np.int32] | None = None
    _survey: Survey | None = None
    _seen: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 0), np.int64))  # room for _Watched
    _room: tuple[NDArray[np.integer], NDArray[np.integer]] | None = None  # for _Watched, too
    _units: NDArray[np.int64] = field(default_factory=lambda: np.empty(1, np.int64))

    def watch(self, labels: NDArray[np.int32] | None) -> None:
        """Rows have these labels, once each, and labels a column each: what is asked of their scores is found while a
        round is added to them."""
        self._watched = labels if self.values.shape[1] > 1 and len(self.values) > 0 else None
        self._survey = None
        if self._watched is not None and self.reach == 0:
            self._survey = _survey_of_zeros(self._watched, self.values.shape[1])

    def look(self, fitted: Fitted, team: Team) -> None:
        """Find what would have been found, had a round like this one just been added."""
        if self._survey is None and self._watched is not None and _is_whole(fitted.parts[-1], fitted.speech):
            nowhere = np.zeros(self._watched.shape[0], np.int32)
            self._survey = self._add_watched(fitted.parts[-1].tree.payload, 0, nowhere, self._watched, team)

    def survey(self, labels: NDArray[np.int32]) -> Survey | None:
        """What was found, if these labels are watched and the last round was of a kind that can be."""
        return self._survey if labels is self._watched else None

    def widen(self, multipliers: NDArray[np.int64], fitted: Fitted) -> None:
        """Make room for a weak learner before it is added, by what it can add to a score at most."""
        values = fitted.speech is Speech.VALUES  # others say 1 at most
        largest = max(_largest(part.tree.payload) for part in fitted.parts) if values else 1
        self.reach += max(map(abs, multipliers.tolist()), default=0) * largest
        if self.reach >= WIDEN_AT and self.values.dtype == np.int32:
            self.values = self.values.astype(np.int64)

    def add(
        self,
        part: Part,
        speech: Speech,
        multiplier: int,
        leaf_of_row: NDArray[np.int32],
        team: Team,
    ) -> None:
        """Add multiplier times what each row's leaf says. `widen` comes first."""
        n_rows, n_columns = self.values.shape
        payload, values = part.tree.payload, self.values
        self._survey = None
        if speech is Speech.LABEL:
            step, labels = (
                values.dtype.type(multiplier),
                np.ascontiguousarray(payload[:, 0]),
            )
            team.over(
                n_rows,
                n_rows,
                lambda a, b: _add_label(values, step, labels, leaf_of_row, a, b),
            )
            return
        if self._watched is not None and _is_whole(part, speech):
            self._survey = self._add_watched(payload, multiplier, leaf_of_row, self._watched, team)
            return
        added = np.ascontiguousarray(payload.astype(np.int64) * multiplier, values.dtype)
        if part.column != ALL_COLUMNS:
            flat = np.ascontiguousarray(added[:, 0])
            team.over(
                n_rows,
                n_rows,
                lambda a, b: _add_column(values, part.column, flat, leaf_of_row, a, b),
            )
            return
        team.over(
            n_rows,
            n_rows * n_columns,
            lambda a, b: _add(values, added, leaf_of_row, a, b),
        )

    def _add_watched(
        self,
        payload: NDArray[np.int32],
        multiplier: int,
        leaf_of_row: NDArray[np.int32],
        labels: NDArray[np.int32],
        team: Team,
    ) -> Survey:
        self._units[0] = multiplier
        team.share(*self._adding_watched(payload, leaf_of_row, labels, team))
        return self._surveyed()

    def _adding_watched(
        self, payload: NDArray[np.int32], leaf_of_row: NDArray[np.int32], labels: NDArray[np.int32], team: Team
    ) -> tuple[_Watched, int, int]:
        """What Team.share is given."""
        n_rows, n_columns = self.values.shape
        work = 2 * n_rows * n_columns
        lowest = LEAST_NARROW if self.values.dtype == np.int32 else LEAST_WIDE
        if self._seen.shape[0] != (n_blocks := team.blocks(n_rows, work)):
            self._seen = np.empty((n_blocks, PEAKS + 2 * n_columns), np.int64)
        room, dtype = self._room, self.values.dtype
        if room is None or room[0].dtype != dtype or room[0].shape[1] < payload.size:
            room = aligned_rows(team.threads, payload.size, dtype), aligned_rows(team.threads, 2 * n_columns, dtype)
            self._room = room
        task = _Watched(self.values, payload, self._units, leaf_of_row, labels, lowest, room[0], room[1], self._seen)
        return task, n_rows, work

    def _surveyed(self) -> Survey:
        seen = self._seen[0]
        return Survey(seen.item(0), seen.item(1), seen[PEAKS:])

    def adding(self, payload: NDArray[np.int32], leaf_of_row: NDArray[np.int32], team: Team) -> Adding | None:
        """What adds rounds of votes, +1 and -1, that a kernel puts into these arrays; None: their scores are not
        watched, or may be too large. `added` comes after it."""
        if self._watched is None or self.values.dtype != np.int32:
            return None
        sharing, given = Sharing(), self._adding_watched(payload, leaf_of_row, self._watched, team)
        return Adding(team.sharing(sharing, *given), (sharing, given), self._units, self._seen[0])

    @property
    def room(self) -> int:
        """Units that may be added before scores widen."""
        return WIDEN_AT - 1 - self.reach

    def added(self, units: int) -> None:
        """A kernel has added rounds of so many units together."""
        self.reach += units
        self._survey = self._surveyed()

    def count_errors(
        self,
        labels: NDArray[np.int32],
        team: Team,
        decoding: Decoding | None = None,
        copies: NDArray[np.int64] | None = None,
    ) -> tuple[int, int]:
        """(wrong predictions, rows where a wrong class is at least level with the right one), each row counted as often
        as its copies."""
        survey = self.survey(labels)
        coded = decoding is not None and decoding.coded
        if survey is not None and copies is None and not coded:
            return survey.wrong, survey.strictly_wrong
        n_rows, n_columns = self.values.shape
        often = np.empty(0, np.int64) if copies is None else copies
        if decoding is not None and coded:
            return self._count_decoding_errors(labels, team, decoding, often)
        parts = team.over(
            n_rows,
            n_rows * n_columns,
            lambda a, b: _count_errors(self.values, labels, often, a, b),
        )
        return sum(int(part[0]) for part in parts), sum(int(part[1]) for part in parts)

    def blocks(self) -> Iterator[tuple[slice, NDArray[np.integer]]]:
        """All scores, in blocks of rows [n, n_columns] with the rows they are of."""
        yield slice(0, self.values.shape[0]), self.values

    def leads(self, labels: NDArray[np.int32], n_rows: int) -> Iterator[tuple[slice, NDArray[np.int64]]]:
        """By how much each row's own label is ahead of the best wrong one, in score units; where one column stands for
        two classes, its score towards the label. In blocks of n_rows with the rows they are of: of all rows at once
        they took more memory than anything else at the end of a training."""
        for start in range(0, labels.shape[0], n_rows):
            rows = slice(start, min(start + n_rows, labels.shape[0]))
            found = np.empty(rows.stop - start, np.int64)
            _leads(self.values[rows], labels[rows], found)
            yield rows, found

    def wide(self) -> "Scores":
        """A copy with room for all that may come."""
        return Scores(self.values.astype(np.int64), WIDEN_AT)

    def _count_decoding_errors(
        self, labels: NDArray[np.int32], team: Team, decoding: Decoding, copies: NDArray[np.int64]
    ) -> tuple[int, int]:
        sides, by_loss = decoding.sides, decoding.rule is Rule.LOSS
        parts = team.over(
            self.values.shape[0],
            self.values.shape[0] * sides.size,
            lambda a, b: count_decoding_errors(self.values, labels, sides, by_loss, UNIT, (a, b), copies),
        )
        return sum(int(part[0]) for part in parts), sum(int(part[1]) for part in parts)


def _is_whole(part: Part, speech: Speech) -> bool:
    """Whether a weak learner says something of all columns."""
    return speech is not Speech.LABEL and part.column == ALL_COLUMNS


def _survey_of_zeros(labels: NDArray[np.int32], n_columns: int) -> Survey:
    """Where all scores are 0, all are level and the first class is predicted."""
    own = class_mass(labels, None, n_columns)
    peaks = np.concatenate([np.where(own < labels.shape[0], 0, NO_PAIR), np.where(own > 0, 0, NO_PAIR)])
    return Survey(labels.shape[0] - int(own[0]), labels.shape[0], peaks)


def _largest(payload: NDArray[np.int32]) -> int:
    return int(np.abs(payload.astype(np.int64)).max(initial=0))


def zero_scores(n_rows: int, n_columns: int) -> Scores:
    """Scores before the first round."""
    return Scores(np.zeros((n_rows, n_columns), np.int32))
