"""The model of a run whose first round was refused: no weak learner beats chance, so all rows get the same scores.

They are those whose probabilities are the classes' shares of the training rows (see probability.py); the most frequent
class is predicted, the smallest index among equals. With an output code the scores lie on the side of that class's code
word in every column.
"""

import numpy as np
from numpy.typing import NDArray

from boost_core import ieee_math
from boost_core.decoding import Decoding
from boost_core.fitted import Fitted, Speech, one_tree
from boost_core.model import SCORE_UNITS
from boost_core.probability import Link, Transform
from boost_core.training_data import TrainingData
from boost_core.tree import NODE_FIELDS, Tree

Integers = NDArray[np.int64]


def majority(link: Link, offset: float, decoding: Decoding, class_counts: Integers, n_rows: int) -> Fitted:
    """A tree without cuts whose leaf says the scores, to be taken once (Speech.VALUES).

    class_counts: int64 [n_classes], rows over all members; n_rows: of this member; offset: of the link. A class without
    rows counts as half one.
    """
    units = 1 << SCORE_UNITS
    if decoding.coded:
        scores = units * decoding.code[int(class_counts.argmax())].astype(np.int64)
    else:
        shares = np.maximum(class_counts, 0.5) / float(np.maximum(class_counts, 0.5).sum())
        scores = np.array([round(score * units) for score in _scores(link, offset, shares)], np.int64)
        _prefer(scores, class_counts)
    return _constant(scores, n_rows)


def constant_model(data: TrainingData, transform: Transform, decoding: Decoding) -> Fitted:
    """The one of these data: of their classes, or of their labels where rows have several."""
    rows, counts = data.train, data.class_counts
    if rows.sets is None:
        return majority(transform.link, transform.offset, decoding, counts, rows.n_rows)
    return prior(counts, data.n_rows, rows.n_rows)


def prior(label_counts: Integers, n_train: int, n_rows: int) -> Fitted:
    """The same for rows of several labels: each label's score has the probability of its share of the rows.

    label_counts: int64 [n_labels], rows of all members that have each label, of n_train.
    """
    shares = np.clip(label_counts, 0.5, n_train - 0.5) / float(n_train)
    units = 1 << SCORE_UNITS
    return _constant(np.array([round(each * units) for each in _scores(Link.SIGMOIDS, 0.0, shares)], np.int64), n_rows)


def _constant(scores: Integers, n_rows: int) -> Fitted:
    tree = Tree(np.empty((0, NODE_FIELDS), np.int64), scores.astype(np.int32)[None, :], 0, np.zeros(n_rows, np.int32))
    return one_tree(tree, Speech.VALUES)


def _scores(link: Link, offset: float, shares: NDArray[np.float64]) -> list[float]:
    logs = [float(ieee_math.log(float(share))) for share in shares]
    odds = [
        own - float(ieee_math.log(max(1.0 - float(share), 2.0**-53))) for own, share in zip(logs, shares, strict=True)
    ]
    if link is Link.SIGMOID:
        return [0.5 * odds[1]]
    if link is Link.SIGMOIDS:
        return [0.5 * (each + offset) for each in odds]
    if link is Link.SHARES:
        return [float(share) for share in shares]
    return [(0.5 if link is Link.DOUBLE else 1.0) * each for each in logs]


def _prefer(scores: Integers, class_counts: Integers) -> None:
    """One column predicts the second class at 0 (scores: IN/OUT): level classes are told apart by a unit."""
    if scores.shape[0] == 1 and class_counts[0] >= class_counts[1]:
        scores[0] = min(int(scores[0]), -1)
