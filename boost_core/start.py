"""Where training begins: at nothing, or at a model so far, whose scores a member may still hold.

The model so far is the same on all members and goes into checkpoints. Scores are each member's own: where it holds none
for its rows, they are restored by replay.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from boost_core.fitted import Fitted
from boost_core.records import RoundRecord
from boost_core.scores import Scores, zero_scores

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class ModelSoFar:
    """All rounds that are finished, equal on every member.

    rounds: weak learners as the scores got them, without rows; multipliers: int64 [parts] of each; records: of each
    round; slack: how far rounding may have moved ln loss so far; perfect: the last weak learner made no error.
    """

    rounds: tuple[Fitted, ...]
    multipliers: tuple[Integers, ...]
    records: tuple[RoundRecord, ...]
    slack: float
    perfect: bool

    @property
    def n_rounds(self) -> int:
        return len(self.records)


@dataclass
class Standing:
    """The scores of a member's training and validation rows, and the rounds that are in them.

    It outlives a loop that was ended by an error: whole says that the scores hold all of the rounds and nothing else,
    which is false only while one is added.
    """

    scores: Scores
    valid_scores: Scores
    rounds: list[Fitted] = field(default_factory=list)
    multipliers: list[Integers] = field(default_factory=list)
    whole: bool = True

    @property
    def n_rounds(self) -> int:
        return len(self.rounds)


def no_standing(n_rows: int, n_valid: int, n_columns: int) -> Standing:
    """Scores of 0: no round is in them. n_rows, n_valid: of this member."""
    return Standing(zero_scores(n_rows, n_columns), zero_scores(n_valid, n_columns))


@dataclass
class Start:
    """What a training begins with; the loop writes to `standing`, so that whoever made this finds the scores there.

    standing: None = none yet. A standing may be a round ahead of the model or behind it: members of a gang that broke
    differ by one.
    """

    model: ModelSoFar | None = None
    standing: Standing | None = None


@runtime_checkable
class Keeps(Protocol):
    """An observer that wants the model so far, to keep it."""

    def keep(self, so_far: Callable[[], ModelSoFar]) -> None:
        """After every round, or after several that were run together; so_far: to be called now or not at all, takes
        time with the number of rounds."""
