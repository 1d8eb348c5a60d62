"""Probabilities: rows sum to 1, lie in [0, 1], and their largest entry is the predicted class, at any scores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from boost_core.catalogue import ALGORITHMS
from boost_core.decoding import Decoding, Rule, plain_decoding
from boost_core.probability import Link, Transform, probabilities_of
from boost_core.scores import UNIT, predicted_classes

PLAIN_LINKS = (Link.SIGMOIDS, Link.DOUBLE, Link.PLAIN)


def check(found: np.ndarray, predicted: np.ndarray) -> None:
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    assert (found <= 1).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(found.argmax(axis=1), predicted)


def units(n_columns: st.SearchStrategy[int]) -> st.SearchStrategy[np.ndarray]:
    """Scores in units of 2**-20, some level, some far beyond where a sigmoid rounds to 1."""
    numbers = st.one_of(st.integers(-3, 3), st.integers(-(1 << 40), 1 << 40), st.integers(30 << 20, 31 << 20))
    return n_columns.flatmap(lambda k: arrays(np.int64, (4, k), elements=numbers))


@pytest.mark.parametrize("link", PLAIN_LINKS)
@given(units(st.integers(2, 6)), st.sampled_from([0.0, 1.0, 3.2]))
@settings(max_examples=100, deadline=None)
def test_a_score_a_class(link: Link, scores: np.ndarray, offset: float):
    decoding = plain_decoding(scores.shape[1])
    predicted = predicted_classes(scores, decoding)
    check(probabilities_of(Transform(link, offset), scores * UNIT, decoding, predicted), predicted)


@given(units(st.just(1)))
@settings(max_examples=100, deadline=None)
def test_one_score_for_two_classes(scores: np.ndarray):
    decoding = plain_decoding(1)
    predicted = predicted_classes(scores, decoding)
    check(probabilities_of(Transform(Link.SIGMOID, 0.0), scores * UNIT, decoding, predicted), predicted)


@given(arrays(np.int64, (5, 3), elements=st.integers(0, 4)))
@settings(max_examples=50, deadline=None)
def test_vote_shares(votes: np.ndarray):
    scores, decoding = votes << 20, plain_decoding(3)
    predicted = predicted_classes(scores, decoding)
    check(probabilities_of(Transform(Link.SHARES, 0.0), scores * UNIT, decoding, predicted), predicted)


@pytest.mark.parametrize("rule", [Rule.LOSS, Rule.HAMMING])
@given(units(st.just(4)))
@settings(max_examples=100, deadline=None)
def test_output_codes(rule: Rule, scores: np.ndarray):
    code = np.array([[1, 1, 0, -1], [-1, 1, 1, 0], [0, -1, 1, 1]], np.int8)
    decoding = Decoding(rule, code)
    predicted = predicted_classes(scores, decoding)
    check(probabilities_of(Transform(Link.DISTANCES, 0.0), scores * UNIT, decoding, predicted), predicted)


def test_a_code_of_one_column_is_adaboost():
    scores, decoding = np.array([[0.7], [-1.3], [0.0]]), Decoding(Rule.LOSS, np.array([[-1], [1]], np.int8))
    predicted = np.array([1, 0, 1], np.int32)
    code = probabilities_of(Transform(Link.DISTANCES, 0.0), scores, decoding, predicted)
    np.testing.assert_allclose(
        code, probabilities_of(Transform(Link.SIGMOID, 0.0), scores, plain_decoding(1), predicted)
    )


def test_only_level_classes_change_places():
    """A prediction that rounding cannot explain shows as a probability that does, too: nothing is made up."""
    scores = np.array([[3.0, 0.0, -3.0]])
    found = probabilities_of(Transform(Link.PLAIN, 0.0), scores, plain_decoding(3), np.array([0], np.int32))
    np.testing.assert_allclose(found, np.exp(scores) / np.exp(scores).sum())


def test_the_links_undo_the_losses():
    ln3, decoding = np.log(3.0), plain_decoding(2)
    predicted = np.array([1], np.int32)
    double = probabilities_of(Transform(Link.DOUBLE, 0.0), np.array([[0.0, ln3 / 2]]), decoding, predicted)
    plain = probabilities_of(Transform(Link.PLAIN, 0.0), np.array([[0.0, ln3]]), decoding, predicted)
    np.testing.assert_allclose(double, [[0.25, 0.75]])
    np.testing.assert_allclose(plain, [[0.25, 0.75]])
    sigmoid = probabilities_of(Transform(Link.SIGMOID, 0.0), np.array([[ln3 / 2]]), plain_decoding(1), predicted)
    np.testing.assert_allclose(sigmoid, [[0.25, 0.75]])
    offset = probabilities_of(Transform(Link.SIGMOIDS, ln3), np.array([[0.0, 0.0]]), decoding, np.array([0], np.int32))
    np.testing.assert_allclose(offset, [[0.5, 0.5]])


def test_every_algorithm_has_a_link():
    assert all(isinstance(algorithm.link, Link) for algorithm in ALGORITHMS.values())
