"""Few rows against walking down every tree by itself."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boost_core import prediction, walks
from boost_core.compact import make_compact
from boost_core.decoding import Decoding, Rule, plain_decoding
from boost_core.fitted import Speech
from boost_core.model import Forest
from boost_core.scores import predicted_classes
from boost_core.walk_vectors import GROUP
from boost_core.walks import Walks, make_walks
from tests.forests import KINDS, N_FEATURES, VALUES, decoding_of, random_forest


def made(forest: Forest) -> Walks:
    found = make_walks(forest)
    assert found is not None
    return found


@settings(max_examples=80, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 2**32 - 1),
    n_columns=st.sampled_from([2, 3, 8, 9, 40, 77]),
    n_trees=st.sampled_from([0, 1, 7, 8, 9, 57]),
    most_nodes=st.sampled_from([0, 1, 6, 40]),
    n_rows=st.sampled_from([0, 1, 2, 5, 13]),
    large=st.sampled_from([1, 1 << 31]),
)
def test_walks_give_the_scores_and_classes_of_all_trees(
    kind: tuple[Speech, bool, Rule], seed: int, n_columns: int, n_trees: int, most_nodes: int, n_rows: int, large: int
):
    """large: as a factor of all steps, so that scores need 64 bits."""
    speech, alone, rule = kind
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, most_nodes + 1, n_trees).tolist()
    forest = random_forest(rng, sizes, speech, decoding_of(rule, n_columns), alone)
    forest = replace(forest, multiplier=forest.multiplier * large)
    rows = rng.choice(VALUES, (n_rows, N_FEATURES))
    wanted = prediction.walked_scores(forest, rows, 1)
    found = prediction.few_scores(made(forest), rows)
    assert found.dtype == wanted.dtype
    assert found.tolist() == wanted.tolist()
    classes = prediction.few_classes(made(forest), rows)
    assert classes.dtype == np.int32
    assert classes.tolist() == predicted_classes(wanted, forest.decoding).tolist()


@pytest.mark.parametrize("n_nodes", [1, 100, 255])
def test_trees_that_are_chains(n_nodes: int):
    """The deepest trees there are, beside trees of one leaf in the same group."""
    rng = np.random.default_rng(n_nodes)
    forest = random_forest(rng, [n_nodes, 0, n_nodes, 0, 1], Speech.VOTES, plain_decoding(3))
    places = np.arange(n_nodes)
    last = np.where(places + 1 < n_nodes, places + 1, ~n_nodes)
    left, right = forest.node_left, forest.node_right
    for start, on, off in ((0, left, right), (n_nodes, right, left)):
        on[start : start + n_nodes] = last
        off[start : start + n_nodes] = ~places
    rows = rng.choice(VALUES, (300, N_FEATURES))
    assert made(forest).steps.tolist() == [n_nodes]
    assert (prediction.few_scores(made(forest), rows) == prediction.walked_scores(forest, rows, 1)).all()


def test_trees_of_one_depth_lie_together_and_the_last_group_is_filled_with_what_adds_nothing():
    forest = random_forest(np.random.default_rng(3), [4, 1, 0, 9] * 5, Speech.VOTES, plain_decoding(3))
    found = made(forest)
    assert found.trees.shape[0] == 24 == GROUP * found.steps.shape[0]
    assert found.steps.tolist() == sorted(found.steps.tolist())
    assert np.count_nonzero(found.multiplier == 0) == 4
    assert sorted(found.multiplier[4:].tolist()) == sorted(forest.multiplier.tolist())


def test_more_code_columns_than_a_record_has_bits_for(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(4)
    forest = random_forest(rng, [9] * 20, Speech.VOTES, plain_decoding(3))
    compact = make_compact(forest)
    assert compact is not None
    assert compact.n_codes > 3
    wanted = prediction.forest_scores(forest, rows := rng.choice(VALUES, (20, N_FEATURES)))
    monkeypatch.setattr(walks, "MOST_CODES", 3)
    assert make_walks(forest) is None
    again = replace(forest)  # which nothing is kept of yet
    assert (prediction.forest_scores(again, rows) == wanted).all()


def test_rows_that_may_not_be_written_to_or_are_no_floats():
    forest = random_forest(np.random.default_rng(5), [5] * 20, Speech.VOTES, plain_decoding(3))
    rows = np.arange(12).reshape(4, N_FEATURES) - 6
    wanted = prediction.walked_scores(forest, rows.astype(np.float64), 1)
    held = rows.astype(np.float64)
    held.flags.writeable = False
    before = len(walks.walk_rows.signatures) if hasattr(walks.walk_rows, "signatures") else 0
    for given_rows in (rows, rows.astype(np.float32), held, held.T.copy().T, held[::-1][::-1]):
        assert (prediction.few_scores(made(forest), given_rows) == wanted).all()
    after = len(walks.walk_rows.signatures) if hasattr(walks.walk_rows, "signatures") else 0
    assert after - before <= 1


def test_code_words_are_decoded_from_scores():
    forest = random_forest(np.random.default_rng(6), [5] * 20, Speech.VOTES, plain_decoding(3))
    coded = replace(forest, decoding=Decoding(Rule.HAMMING, 2 * np.eye(3, dtype=np.int8) - 1))
    assert prediction._plain_walks_of(forest) is not None
    assert prediction._plain_walks_of(coded) is None
