"""What the loop asks of an algorithm."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from boost_core.collective import Alone, Collective
from boost_core.config import Choice
from boost_core.decoding import Decoding
from boost_core.fitted import Fitted
from boost_core.gain_matrix import GainMatrix, Reading, channel_sums
from boost_core.objective import implementation
from boost_core.parameters import Parameter
from boost_core.probability import Link
from boost_core.records import StopReason
from boost_core.scores import Scores
from boost_core.shard import RowRange
from boost_core.team import Team

Integers = NDArray[np.int64]
NO_OUTCOMES = np.empty(0, np.int64)  # where the edge is all that a step needs


@dataclass(frozen=True)
class Problem:
    """What an algorithm learns from: this member's labels and the facts that all members agree on.

    labels: int32 [n_rows], class indices; class_counts: int64 [n_classes], rows of each class over all members, a row
    counted as often as its copies; copies: int64 [n_rows], see row_weights.py, None without weights;
    weak_learner: what the algorithm is combined with, where its gains or steps depend on that; seed: of the run;
    row_ranges: global numbers of this member's rows, range_edges: which of its rows are in each of them (Shard);
    collective: for algorithms whose gains need more than the loop's sums (all members call `gains` at the same time);
    rounds: how many were asked for; sets: the rows' labels where they have several (label_sets.py; class_counts then
    are the rows that have each label), set_rows: rows over all members then, a row counted as often as its copies.
    """

    labels: NDArray[np.int32]
    class_counts: Integers
    team: Team
    weak_learner: Choice | None = None
    seed: int = 0
    row_ranges: tuple[RowRange, ...] = ()
    collective: Collective = field(default_factory=Alone)
    rounds: int = 0
    copies: Integers | None = None
    range_edges: Integers | None = None
    sets: NDArray[np.uint8] | None = None
    set_rows: int = 0

    @property
    def all_rows(self) -> int:
        """Rows over all members, a row counted as often as its copies."""
        return self.set_rows if self.sets is not None else int(self.class_counts.sum())

    @property
    def n_classes(self) -> int:
        return int(self.class_counts.shape[0])


class Gains(NamedTuple):
    """A round's gain matrix with what its integers mean.

    totals: int64 [k], this member's sums, added over the members by the loop and handed back to `edge` and `ln_loss`
    (totals[0] is the sum of absolute gains); shift: the exponents' shift in score units; sums: the matrix's channel
    sums (int64 [n_channels + 1], as channel_sums gives them), where they were taken while it was made.
    """

    matrix: GainMatrix
    totals: Integers
    shift: int
    sums: Integers | None = None

    def own_sums(self, team: Team) -> Integers:
        """Of the matrix's channels and rows on this member, taken now if they were not before."""
        return channel_sums(self.matrix, team) if self.sums is None else self.sums


class Step(NamedTuple):
    """How far to go along a weak learner.

    edge: a ratio of exact integers; alpha: the step as reported; multipliers: int64 [parts], what each part of the
    weak learner is multiplied with, in score units; ln_factor: ln of what the loss is proved to shrink by; ln_slack:
    how far rounding of the gains can move that; perfect: the edge is 1; refused: why the weak learner must be dropped
    and training stop, if so; moved: the weak learner with the leaf values that the scores get, where the step changes
    more than multipliers can say.
    """

    edge: float
    alpha: float
    multipliers: Integers
    ln_factor: float
    ln_slack: float
    perfect: bool = False
    refused: StopReason | None = None
    moved: Fitted | None = None


@runtime_checkable
class Decoded(Protocol):
    """An algorithm that says itself how scores become classes; all others have a column a class, or one for two."""

    @property
    def decoding(self) -> Decoding:
        """How a row's scores become its class."""


@runtime_checkable
class Channeled(Protocol):
    """An algorithm whose gain matrix has another number of channels than it has score columns."""

    @property
    def n_channels(self) -> int:
        """Of every gain matrix."""


class _Columned(Protocol):
    @property
    def n_columns(self) -> int: ...


def channels_of(algorithm: _Columned) -> int:
    """The channels of an algorithm's gain matrices, or of its form's."""
    return algorithm.n_channels if isinstance(algorithm, Channeled) else algorithm.n_columns


@runtime_checkable
class _Read(Protocol):
    @property
    def reading(self) -> Reading: ...


def reading_of(algorithm: object) -> Reading:
    """How weak learners read an algorithm's gain matrices, or its form's."""
    return algorithm.reading if isinstance(algorithm, _Read) else Reading.TOGETHER


@runtime_checkable
class MaybeSparse(Protocol):
    """An algorithm that may keep its scores in lists of the pairs that are not 0 (sparse_scores.py)."""

    @property
    def sparse(self) -> bool:
        """Whether it does in this run; the same on all members."""

    @property
    def touched_gains(self) -> bool:
        """Whether touched wrong labels have gains of their own then."""


class Algorithm(Protocol):
    """One boosting algorithm bound to one member's rows. Its state is the scores, which the loop holds."""

    name: ClassVar[str]
    summary: ClassVar[str]
    source: ClassVar[str]
    guarantee: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]]
    weak_learners: ClassVar[tuple[str, ...]]  # the first one is the default
    link: ClassVar[Link]  # from scores to probabilities
    fixed_steps: ClassVar[bool]  # the steps are fixed beforehand, so nothing may shrink them

    def __init__(self, problem: Problem, parameters: Any) -> None: ...

    @staticmethod
    def refusal(n_classes: int) -> str | None:
        """Why this algorithm cannot learn so many classes, or None."""

    @property
    def n_columns(self) -> int:
        """Score columns."""

    @property
    def error_factor(self) -> float | None:
        """The strict training error is at most this times the loss bound; None: no such bound is known."""

    @property
    def ln_initial(self) -> float:
        """ln of the loss before the first round, from which the bound starts."""

    def peaks(self, scores: Scores) -> Integers:
        """This member's numbers of which the greatest over all members is needed for `gains`."""

    def gains(self, scores: Scores, peaks: Integers) -> Gains:
        """The gain matrix at these scores; peaks: elementwise maximum over all members."""

    def ln_loss(self, gains: Gains, totals: Integers) -> float:
        """ln of the loss at the scores of `gains`; totals: sums over all members."""

    def outcomes(self, fitted: Fitted, gains: Gains) -> Integers:
        """This member's sums that the step rule needs of the weak learner, int64 [m]; m = 0 where it needs none."""

    def step(self, fitted: Fitted, totals: Integers, outcomes: Integers) -> Step:
        """The step along a weak learner; totals and outcomes: sums over all members."""

    def taken(self, fitted: Fitted, step: Step) -> None:
        """The step was taken: what the algorithm itself keeps about its rows changes now."""


class Pace(NamedTuple):
    """What kernels need to go from round to round by themselves (stretch.py).

    filling: what share_out is given to make the next gains, once peaks are there, while held lives; found: int64,
    what it leaves, of which the sum of absolute gains, int64 [1], and the channels' sums are views; rule: a value of a
    type for which step_units is implemented; told: the gains, of which only the last ones are in the matrix, from a
    copy of `found`; passed: the steps of n rounds and ln loss after each, from what `found` was before the first one
    and after each, [n + 1, ...], and the values of their weak learners, int64 [n].
    """

    filling: tuple[Any, ...]
    held: Any
    found: Integers
    total: Integers
    sums: Integers
    rule: Any
    told: Callable[[Integers], Gains]
    passed: Callable[[Integers, Integers], tuple[list[Step], list[float]]]


def step_units(rule: Any, *arguments: Any) -> Any:
    """(value, total) -> the multiplier, in score units, of a weak learner worth `value` at gains whose absolute sum is
    total, as `step` gives it; 0: this step is for the loop. Implemented for a type of rule (objective.implements)."""
    return implementation(step_units, type(rule))(rule, *arguments)


@runtime_checkable
class Paced(Protocol):
    """An algorithm whose rounds kernels can run by themselves: it takes one step for all labels, needs no outcomes and
    keeps nothing but the scores."""

    def pace(self, scores: Scores, peaks: Integers) -> Pace | None:
        """peaks: where those of the scores will be; None: not with these rows or this weak learner."""


@runtime_checkable
class RefusesSettings(Protocol):
    """An algorithm (the class) whose settings need not go with any number of classes and rounds."""

    @staticmethod
    def settings_refusal(parameters: Mapping[str, Any], n_classes: int, rounds: int) -> tuple[str, str] | None:
        """(parameter, what is wrong with it), or None."""


@runtime_checkable
class PlansRounds(Protocol):
    """An algorithm (the class) that may plan all of its rounds before the first one: no run can go on afterwards."""

    @staticmethod
    def plans_rounds(parameters: Mapping[str, Any]) -> bool:
        """Whether it does with these settings."""


@runtime_checkable
class Redraws(Protocol):
    """An algorithm whose gain matrix is one of several: a random sample, which may mislead the weak learner, or one
    component of the gradient, along which there may be nothing to gain."""

    def redraw(self, gains: Gains) -> Gains | None:
        """The step was refused: another matrix of the same gains, with the same totals; None: there is no use."""
