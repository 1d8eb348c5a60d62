"""Error-correcting output codes with random codes: a binary AdaBoost for every column of the code."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from boost_core.algorithms.all_pairs import DECODING
from boost_core.algorithms.base import Problem
from boost_core.algorithms.exponential_columns import ExponentialColumns, equal_columns
from boost_core.decoding import Decoding, Rule
from boost_core.draws import draw, stream
from boost_core.jit import kernel
from boost_core.parameters import Parameter
from boost_core.probability import Link

DENSE, SPARSE = "dense", "sparse"
TRIES = 100  # codes drawn, of which the one with the greatest distance between two classes is taken
TRIES_WORK = 100_000_000  # products of entries that all tries may take: fewer codes of many classes are drawn
BLOCK = 256  # rows of a code that are compared with all others at once
COLUMN_TRIES = 64  # draws of a column until both signs are in it
MOST_COLUMNS = 4096


def default_columns(kind: str, n_classes: int) -> int:
    """ceil(10 log2 K) for dense codes, ceil(15 log2 K) for sparse ones, in integers."""
    factor = 15 if kind == SPARSE else 10
    return int(n_classes**factor - 1).bit_length()


@kernel
def _fill_column(start, sparse, column):  # type: ignore[no-untyped-def]
    """column (OUT, int8 [k]): dense -1 or +1, each with 1/2; sparse 0 with 1/2, else -1 or +1. start: uint64."""
    for k in range(column.shape[0]):
        drawn = draw(start, k, 4)
        sign = 1 if drawn % 2 == 0 else -1
        column[k] = 0 if sparse and drawn < 2 else sign


def random_code(kind: str, n_classes: int, n_columns: int, seed: int) -> NDArray[np.int8]:
    """Of several random codes, int8 [n_classes, n_columns], the first whose closest two classes are farthest apart."""
    best, best_distance = np.empty((0, 0), np.int8), -1
    for attempt in range(max(1, min(TRIES, TRIES_WORK // (n_columns * n_classes**2)))):
        columns = [_random_column(kind == SPARSE, n_classes, (seed, attempt, c)) for c in range(n_columns)]
        code = np.ascontiguousarray(np.stack(columns, axis=1))
        distance = twice_least_distance(code)
        if distance > best_distance:
            best, best_distance = code, distance
    return best


def _random_column(sparse: bool, n_classes: int, names: tuple[int, int, int]) -> NDArray[np.int8]:
    """A column with both signs in it: a binary problem."""
    column = np.empty(n_classes, np.int8)
    for attempt in range(COLUMN_TRIES):
        start = np.uint64(stream(*names, attempt))
        with np.errstate(over="ignore"):  # draws wrap around
            _fill_column(start, sparse, column)
        if column.max() > 0 > column.min():
            return column
    column[:2] = 1, -1
    return column


def twice_least_distance(code: NDArray[np.int8]) -> int:
    """Twice the least generalised Hamming distance of two rows: sum of 1 - M(k,c) M(l,c) (a 0 counts half)."""
    wide = code.astype(np.float64)  # products of small integers are exact, and far faster than in integers
    largest = -code.shape[1]
    for start in range(1, code.shape[0], BLOCK):
        block = wide[start : start + BLOCK] @ wide.T
        earlier = np.arange(code.shape[0]) < np.arange(start, start + block.shape[0])[:, None]
        largest = max(largest, int(block[earlier].max()))
    return int(code.shape[1] - largest)


class Ecoc(ExponentialColumns):
    """Column c is AdaBoost on the rows whose class has a sign there."""

    name: ClassVar[str] = "ecoc"
    summary: ClassVar[str] = "a binary AdaBoost for every column of a random code of the classes"
    source: ClassVar[str] = "Dietterich & Bakiri, JAIR 2, 1995; Allwein, Schapire & Singer, JMLR 1, 2000"
    guarantee: ClassVar[str] = (
        "mean loss of the columns = that of their sqrt(1 - edge^2) products; training error of a dense code <= "
        "columns / (least distance) of it, twice that with Hamming decoding"
    )
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "code",
            "string",
            DENSE,
            "dense: every class is on a side of every column; sparse: half of them on neither",
            choices=(DENSE, SPARSE),
        ),
        Parameter(
            "columns",
            "integer",
            0,
            "columns of the code; 0: 10 log2 of the classes, 15 log2 for sparse codes",
            minimum=0,
            maximum=MOST_COLUMNS,
        ),
        DECODING,
    )
    weak_learners: ClassVar[tuple[str, ...]] = ("stump", "hamming_tree")
    link: ClassVar[Link] = Link.DISTANCES
    fixed_steps: ClassVar[bool] = False

    def __init__(self, problem: Problem, parameters: Any) -> None:
        kind, n_classes = parameters["code"], problem.n_classes
        n_columns = int(parameters["columns"]) or default_columns(kind, n_classes)
        code = random_code(kind, n_classes, n_columns, problem.seed)
        self.decoding = Decoding(Rule(parameters["decoding"]), code)
        factor = dense_error_factor(code, self.decoding.rule) if kind == DENSE else None
        super().__init__(problem, equal_columns(code, problem.class_counts), factor)

    @staticmethod
    def refusal(n_classes: int) -> str | None:
        """Any number of classes can be learnt."""
        return None


def dense_error_factor(code: NDArray[np.int8], rule: Rule) -> float | None:
    """What the strict training error is at most, in units of the columns' mean loss (Allwein et al., theorem 1).

    Where a wrong class is as near as the right one, the columns in which they differ have loss 1 or more on average,
    since exp(z) + exp(-z) >= 2; by signs at least half of them are wrong. None: two classes have the same code.
    """
    twice = twice_least_distance(code)
    if twice == 0:
        return None
    return (2.0 if rule is Rule.LOSS else 4.0) * float(code.shape[1]) / twice
