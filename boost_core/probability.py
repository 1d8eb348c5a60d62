"""From scores to class probabilities: the inverse of each loss's minimiser over the population.

    link       algorithms                                 probability of class k
    sigmoid    adaboost                                   sigmoid(2 f) of the second class
    sigmoids   adaboost_mh, one_vs_all                    sigmoid(2 F_k - offset), normalised over the classes
    double     exponential loss over pairs (MM, MR, ...)  softmax(2 F)
    plain      adaboost_m1, adaboost_m2, samme, *_mcboost softmax(F)
    shares     os_zero_one                                share of the votes
    distances  output codes                               1 / loss of the class's code word, normalised; with Hamming
                                                          decoding softmax of minus the distance

The offset undoes the initial weights of adaboost_mh: ln(K - 1) for asymmetric ones, else 0 (balanced weights then give
the probabilities of a population in which all classes are equally frequent). These are not decisions of a model, so
library functions do; the predicted class always has the largest probability, also where two round to one float.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boost_core import ieee_math
from boost_core.decoding import Decoding, Rule

Floats = NDArray[np.float64]


class Link(enum.StrEnum):
    """How an algorithm's scores become probabilities."""

    SIGMOID = "sigmoid"
    SIGMOIDS = "sigmoids"
    DOUBLE = "double"
    PLAIN = "plain"
    SHARES = "shares"
    DISTANCES = "distances"


def offset_of(parameters: Mapping[str, Any], n_classes: int) -> float:
    """The offset of an algorithm with these parameters."""
    return float(ieee_math.log(n_classes - 1.0)) if parameters.get("init_weights") == "asymmetric" else 0.0


@dataclass(frozen=True)
class Transform:
    """A link with its offset; factor: 1 / temperature, which logarithms of probabilities are multiplied with."""

    link: Link
    offset: float = 0.0
    factor: float = 1.0


def probabilities_of(transform: Transform, scores: Floats, decoding: Decoding, predicted: NDArray[np.int32]) -> Floats:
    """float64 [n_rows, n_classes], rows sum to 1; scores [n_rows, n_columns], predicted [n_rows] class indices."""
    link, factor = transform.link, transform.factor
    if link is Link.SIGMOID:
        second = 1.0 / (1.0 + np.exp(np.clip(-2.0 * factor * scores[:, 0], -600.0, 600.0)))
        found = np.stack([1.0 - second, second], axis=1)
    elif link is Link.SHARES:
        powers = _shares(scores) ** factor
        found = powers / powers.sum(axis=1, keepdims=True)
    else:
        found = _softmax(factor * _logits(link, scores, transform.offset, decoding))
    return _prefer(found, predicted)


def label_probabilities(scores: Floats) -> Floats:
    """1 / (1 + exp(-2 F)) of every label of a set, [n_rows, n_labels]; above one half where F > 0, however little."""
    found = 1.0 / (1.0 + np.exp(-2.0 * np.clip(scores, -300.0, 300.0)))
    return np.asarray(np.where((scores > 0) & (found <= 0.5), np.nextafter(0.5, 1.0), found))


def _logits(link: Link, scores: Floats, offset: float, decoding: Decoding) -> Floats:
    if link is Link.SIGMOIDS:
        return -np.logaddexp(0.0, offset - 2.0 * scores)  # ln of the sigmoid
    if link is Link.DISTANCES:
        return _code_logits(scores, decoding)
    return scores * (2.0 if link is Link.DOUBLE else 1.0)


def _code_logits(scores: Floats, decoding: Decoding) -> Floats:
    """Minus the Hamming distance to each class's code word, or minus ln of its loss; [n_rows, n_classes]."""
    if decoding.rule is Rule.HAMMING:
        signs = np.where(scores >= 0, 1.0, -1.0)
        return np.asarray((signs @ decoding.sides.astype(np.float64) - scores.shape[1]) / 2.0)
    exponents = -decoding.code[np.newaxis] * scores[:, np.newaxis, :]
    return -np.asarray(np.logaddexp.reduce(exponents, axis=2))


def _softmax(logits: Floats) -> Floats:
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _shares(scores: Floats) -> Floats:
    """Votes of each class among all; a row without votes has equal shares."""
    totals = scores.sum(axis=1, keepdims=True)
    even = np.full_like(scores, 1.0 / scores.shape[1])
    return np.where(totals > 0, scores / np.where(totals > 0, totals, 1.0), even)


def _prefer(found: Floats, predicted: NDArray[np.int32]) -> Floats:
    """Where rounding put another class level with the predicted one or just above it, the two change places."""
    rows = np.flatnonzero(found.argmax(axis=1) != predicted)
    own, others = predicted[rows], found[rows].argmax(axis=1)
    found[rows, own], found[rows, others] = found[rows, others], found[rows, own]
    level = rows[found[rows].argmax(axis=1) != own]
    # still level with a class of a smaller index; a probability of 1 cannot be level with another
    found[level, predicted[level]] = np.nextafter(found[level, predicted[level]], 1.0)
    return found
