"""Multi-label data: every row has a set of labels, none and all of them included.

A set is a row of a matrix S uint8 [n_rows, n_labels], 1 where the row has the label. Scores have a column a label, and
a label is predicted where its score is above 0. Two errors are counted, per what the algorithm is proved to bring down:

    hamming   the fraction of (row, label) pairs that are predicted wrong;  strictly: Y F <= 0
    ranking   the mean over rows of the fraction of (label, other label) pairs with F(label) < F(other), ties half;
              strictly: <=.  Rows with no label or all of them have no such pair and do not count.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from boost_core.collective import Collective
from boost_core.config import TrainingConfig
from boost_core.decoding import Decoding
from boost_core.errors import ConfigError
from boost_core.jit import kernel
from boost_core.row_weights import total_mass
from boost_core.scores import Scores
from boost_core.shard import Shard
from boost_core.stopping import LOG_LOSS
from boost_core.team import Team
from boost_core.training_data import TrainingData

Integers = NDArray[np.int64]
Sets = NDArray[np.uint8]
HAMMING, RANKING = "adaboost_mh", "adaboost_mr"
# What combines: algorithms with weak learners that answer with a number for every label.
LEARNERS: dict[str, tuple[str, ...]] = {
    HAMMING: ("hamming_tree", "stump", "product", "independent_stumps", "real_tree"),
    RANKING: ("hamming_tree", "stump", "product"),
}
SUM_BITS = 62
MOST_RANK_BITS = 40  # of a row's fraction of pairs


def refuse_label_sets(config: TrainingConfig) -> None:
    """Errors: ConfigError says what does not combine with multi-label data, and what does."""
    name, learner, parameters = config.algorithm.name, config.weak_learner.name, config.algorithm.parameters
    combine = "; ".join(f"{algorithm} with {', '.join(learners)}" for algorithm, learners in LEARNERS.items())
    problems: list[tuple[tuple[str | int, ...], str]] = []
    if name not in LEARNERS:
        problems.append((("algorithm", "name"), f"{name} does not learn several labels a row; these do: {combine}"))
    elif name == RANKING and parameters["outputs"] != "votes":
        message = f'{name} learns several labels a row with "outputs": "votes", got {parameters["outputs"]!r}'
        problems.append((("algorithm", "outputs"), message))
    elif learner not in LEARNERS[name]:
        message = f"{learner!r} does not answer with a vote for every label of several a row; these combine: {combine}"
        problems.append((("algorithm", "weak_learner", "kind"), message))
    elif name == RANKING and parameters["step"] != "atanh":
        problems.append((("algorithm", "step"), 'rows of several labels take "atanh"'))
    if parameters.get("class_weight") is not None:
        problems.append((("algorithm", "class_weight"), "rows of several labels have no class: leave it null"))
    if config.calibration is not None:
        problems.append((("calibration",), "probabilities of several labels a row are not calibrated: leave it null"))
    if config.stopping is not None and config.stopping.metric == LOG_LOSS:
        problems.append((("stopping", "metric"), "rows of several labels have no log_loss; take another metric"))
    if problems:
        raise ConfigError(problems)


def usable(sets: Sets, algorithm: str) -> NDArray[np.bool_]:
    """The rows that an algorithm can learn from: ranking needs a label that is there and one that is not."""
    sizes = sets.sum(axis=1, dtype=np.int64)
    everything = np.ones(sets.shape[0], np.bool_)
    return (sizes > 0) & (sizes < sets.shape[1]) if algorithm == RANKING else everything


def label_mass(sets: Sets, copies: Integers | None) -> Integers:
    """Rows that have each label, a row counted as often as its copies, int64 [n_labels]."""
    if copies is None:
        return np.asarray(sets.sum(axis=0, dtype=np.int64))
    return np.asarray(copies @ sets.astype(np.int64), np.int64)


@kernel
def _hamming_errors(scores, sets, copies, start, stop):  # type: ignore[no-untyped-def]
    """(pairs predicted wrong, pairs with Y F <= 0) of rows start..stop, times the rows' copies (int64 [n] or [0])."""
    ordinary, strict = np.int64(0), np.int64(0)
    for i in range(start, stop):
        wrong, level = np.int64(0), np.int64(0)
        for c in range(scores.shape[1]):
            there, score = sets[i, c] == 1, scores[i, c]
            wrong += there != (score > 0)
            level += score <= 0 if there else score >= 0
        n_copies = copies[i] if copies.shape[0] > 0 else np.int64(1)
        ordinary += n_copies * wrong
        strict += n_copies * level
    return ordinary, strict


@kernel
def _ranking_errors(scores, sets, copies, one, start, stop):  # type: ignore[no-untyped-def]
    """Sums of the rows' fractions of pairs ranked wrong (ties half) and not ranked right, rounded down to 1 / one."""
    ordinary, strict = np.int64(0), np.int64(0)
    for i in range(start, stop):
        below, level, size = np.int64(0), np.int64(0), np.int64(0)
        for a in range(scores.shape[1]):
            if sets[i, a] == 1:
                size += 1
                for b in range(scores.shape[1]):
                    if sets[i, b] == 0:
                        below += scores[i, a] < scores[i, b]
                        level += scores[i, a] == scores[i, b]
        pairs = size * (scores.shape[1] - size)
        if pairs > 0:
            n_copies = copies[i] if copies.shape[0] > 0 else np.int64(1)
            ordinary += n_copies * np.int64(np.float64(2 * below + level) / np.float64(2 * pairs) * one)
            strict += n_copies * np.int64(np.float64(below + level) / np.float64(pairs) * one)
    return ordinary, strict


class Judge(Protocol):
    """Counts the errors of scores in integers that add up over members."""

    def count(self, scores: Scores, shard: Shard, team: Team) -> tuple[int, int]:
        """Errors and strict errors of this member's rows."""

    def whole(self, shard: Shard) -> int:
        """What they would be if all were wrong."""


@dataclass(frozen=True)
class ClassJudge:
    """Counts rows of one label each."""

    decoding: Decoding

    def count(self, scores: Scores, shard: Shard, team: Team) -> tuple[int, int]:
        return scores.count_errors(shard.labels, team, self.decoding, shard.copies)

    def whole(self, shard: Shard) -> int:
        return total_mass(shard.n_rows, shard.copies)


@dataclass(frozen=True)
class HammingJudge:
    """Counts (row, label) pairs."""

    def count(self, scores: Scores, shard: Shard, team: Team) -> tuple[int, int]:
        sets, often = _sets(shard), _often(shard)
        parts = team.over(
            sets.shape[0], sets.size, lambda a, b: _hamming_errors(scores.values, sets, often, a, b)
        )  # fmt: skip
        return sum(int(part[0]) for part in parts), sum(int(part[1]) for part in parts)

    def whole(self, shard: Shard) -> int:
        return total_mass(shard.n_rows, shard.copies) * int(_sets(shard).shape[1])


@dataclass(frozen=True)
class RankingJudge:
    """Adds up rows' fractions of pairs in units of 1 / one, a power of two."""

    one: float

    def count(self, scores: Scores, shard: Shard, team: Team) -> tuple[int, int]:
        sets, often = _sets(shard), _often(shard)
        work = sets.size * sets.shape[1]
        parts = team.over(
            sets.shape[0], work, lambda a, b: _ranking_errors(scores.values, sets, often, self.one, a, b)
        )  # fmt: skip
        return sum(int(part[0]) for part in parts), sum(int(part[1]) for part in parts)

    def whole(self, shard: Shard) -> int:
        return ranked_mass(_sets(shard), shard.copies) * int(self.one)


def ranked_mass(sets: Sets, copies: Integers | None) -> int:
    """Rows that have some pair to rank, counted as often as their copies."""
    rows = usable(sets, RANKING)
    return int(rows.sum()) if copies is None else int(copies[rows].sum())


def judge_for(algorithm: str, train: Shard, valid: Shard | None, collective: Collective) -> Judge:
    """The judge of an algorithm's errors; all members call it at the same time."""
    if algorithm == HAMMING:
        return HammingJudge()
    most = sum(total_mass(shard.n_rows, shard.copies) for shard in (train, valid) if shard is not None)
    rows = int(collective.sum(np.array([most], np.int64))[0])
    return RankingJudge(float(1 << min(MOST_RANK_BITS, SUM_BITS - rows.bit_length())))


def judges(
    algorithm: str, data: TrainingData, decoding: Decoding, collective: Collective
) -> tuple[Judge, tuple[int, int]]:
    """Who counts errors, and what they would be if all training and all validation rows were wrong."""
    if data.train.sets is None:
        return ClassJudge(decoding), (data.n_rows, data.n_valid)
    judge = judge_for(algorithm, data.train, data.valid, collective)
    own = np.array([judge.whole(data.train), judge.whole(data.valid) if data.valid else 0], np.int64)
    train_whole, valid_whole = (max(int(whole), 1) for whole in collective.sum(own))
    return judge, (train_whole, valid_whole if data.n_valid else 0)


def _sets(shard: Shard) -> Sets:
    assert shard.sets is not None
    return shard.sets


def _often(shard: Shard) -> Integers:
    return np.empty(0, np.int64) if shard.copies is None else shard.copies
