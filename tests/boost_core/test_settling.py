"""Prediction by tiles against walking down every tree, and labels that are settled early against those of all trees."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from boost_core import prediction, settling, team
from boost_core.catalogue import ALGORITHMS, resolve_config
from boost_core.compact import Compact, compact_of, make_compact
from boost_core.decoding import Decoding, Rule, plain_decoding
from boost_core.fitted import Speech
from boost_core.model import Forest
from boost_core.scores import predicted_classes
from boost_core.settling import Bounds, make_bounds
from boost_core.tiles import REST, TILE_ROWS
from tests.builders import bin_table, make_table, train_alone
from tests.calling import called
from tests.forests import KINDS, N_FEATURES, VALUES, decoding_of, random_forest


def made(forest: Forest, early: bool = True) -> tuple[Compact, Bounds]:
    compact = make_compact(forest)
    assert compact is not None
    return compact, make_bounds(compact, forest.decoding, early)


def eager(bounds: Bounds) -> Bounds:
    """Rows leave wherever one is settled, since that costs nothing."""
    return bounds._replace(costs=np.zeros(2, np.int64))


def labels(forest: Forest, rows: NDArray[np.float64], early: bool = True, at_once: bool = False) -> list[Any]:
    compact, bounds = made(forest, early)
    classes, sets = prediction.settled_labels(compact, eager(bounds) if at_once else bounds, rows, 1)
    return sets.tolist() if forest.decoding.rule is Rule.SIGNS else classes.tolist()


def walked_labels(forest: Forest, rows: NDArray[np.float64]) -> list[Any]:
    """The definition: all trees are added, then the scores are read."""
    scores = prediction.walked_scores(forest, rows, 1)
    by_signs = forest.decoding.rule is Rule.SIGNS
    return (scores > 0).tolist() if by_signs else predicted_classes(scores, forest.decoding).tolist()


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 2**32 - 1),
    n_columns=st.sampled_from([2, 3, 8, 9, 40]),
    n_trees=st.sampled_from([0, 1, 7, 8, 40, 57, 130]),
    n_rows=st.sampled_from([1, 20, 129, 300]),
    at_once=st.booleans(),
    tail=st.sampled_from([1, 7, 1 << 12]),
    large=st.sampled_from([1, 1 << 31]),
)
def test_tiles_give_the_scores_and_labels_of_a_walk(
    kind: tuple[Speech, bool, Rule],
    seed: int,
    n_columns: int,
    n_trees: int,
    n_rows: int,
    at_once: bool,
    tail: int,
    large: int,
):
    """large: as a factor of all steps, so that scores need 64 bits; tail: of the first steps, so that rows settle;
    at_once: they leave as soon as one may."""
    speech, alone, rule = kind
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, rng.integers(0, 7, n_trees).tolist(), speech, decoding_of(rule, n_columns), alone)
    steps = forest.multiplier * large
    steps[: n_trees // 2] *= tail
    forest = replace(forest, multiplier=steps)
    rows = rng.choice(VALUES, (n_rows, N_FEATURES))
    wanted = prediction.walked_scores(forest, rows, 1)
    assert (prediction.tiled_scores(make_compact(forest), rows, 1) == wanted).all()
    assert labels(forest, rows, at_once=at_once) == labels(forest, rows, early=False) == walked_labels(forest, rows)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: " ".join(map(str, kind)))
def test_rows_do_leave_early(monkeypatch: pytest.MonkeyPatch, kind: tuple[Speech, bool, Rule]):
    """What comes after the large steps is spoiled once bounds are made: nobody is there any more to see it."""
    speech, alone, rule = kind
    rng = np.random.default_rng(5)
    forest = random_forest(rng, [1] * 64, speech, decoding_of(rule, 3), alone)
    payload = forest.payload.copy()
    payload[1::2] = [1, -1, -1][: payload.shape[1]]
    payload[::2] = 0 if speech is Speech.LABEL else -payload[1::2]
    forest = replace(
        forest,
        multiplier=np.where(np.arange(64) < 32, 1 << 20, 1),
        payload=payload,
        column=np.minimum(forest.column, 0),
        node_threshold=np.full(64, np.nan),  # all rows go right, none knows it
        node_missing_left=np.zeros(64, np.bool_),
    )
    rows = rng.choice(VALUES, (3 * TILE_ROWS // 2, N_FEATURES))
    compact, bounds = made(forest)
    assert bounds.stops.shape[0] > 0
    wanted = labels(forest, rows, early=False)
    compact.trees.multiplier[40:] = -(1 << 24)
    classes, sets = prediction.settled_labels(compact, bounds, rows, 1)
    assert (sets if rule is Rule.SIGNS else classes).tolist() == wanted
    never = make_bounds(compact, forest.decoding, early=False)
    classes, sets = prediction.settled_labels(compact, never, rows, 1)
    assert (sets if rule is Rule.SIGNS else classes).tolist() != wanted


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: " ".join(map(str, kind)))
@pytest.mark.parametrize("seed", range(3))
def test_those_that_stay_go_on_with_their_own_codes_and_sums(kind: tuple[Speech, bool, Rule], seed: int):
    """One look, at which some leave; the trees behind it are others afterwards, which only those that stay can see."""
    speech, alone, rule = kind
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, [4] * 64, speech, decoding_of(rule, 3), alone)
    steps, payload = np.where(np.arange(64) < 32, 1000, 10), forest.payload.copy()
    payload[::5] = [1, -1, -1][: payload.shape[1]]  # so that every tree can change something
    payload[1::5] = 0 if speech is Speech.LABEL else -payload[::5]
    forest = replace(forest, payload=payload)
    forest, first, heavy = (
        replace(forest, multiplier=steps * np.where(np.arange(64) < 32, 1, more)) for more in (1, 0, 1000)
    )
    rows = rng.choice(VALUES, (TILE_ROWS + 300, N_FEATURES))
    compact, bounds = made(forest)
    assert compact.trees.multiplier.tolist() == steps.tolist()
    look = bounds.stops.tolist().index(32)
    only = eager(Bounds(bounds.by, *(field[look : look + 1] for field in bounds[1:])))
    compact.trees.multiplier[32:] *= 1000
    sums = np.full((len(rows), compact.pitch), -(1 << 30), np.int32)
    sums[:, : compact.n_columns] = prediction.walked_scores(first, rows, 1)
    settled = np.zeros(len(rows), np.uint8)
    n_settled = called(settling.mark_settled)(sums, len(rows), 1, compact.n_columns, only, 0, settled)
    assert len(rows) // 20 < n_settled < len(rows)
    classes, sets = prediction.settled_labels(compact, only, rows, 1)
    left, stayed = walked_labels(forest, rows), walked_labels(heavy, rows)
    assert left != stayed
    wanted = [one if gone else other for one, other, gone in zip(left, stayed, settled, strict=True)]
    assert (sets if rule is Rule.SIGNS else classes).tolist() == wanted


def test_where_nobody_is_settled_the_next_tiles_are_not_looked_at():
    """Rows of the first tile stay; those of the others would leave, but only some tiles later somebody looks."""
    forest = random_forest(np.random.default_rng(0), [1] * 64, Speech.VALUES, plain_decoding(3))
    payload = np.zeros((128, 3), np.int32)
    payload[1:64:2, 0] = 1  # large steps for class 0, on the right
    payload[64:, 1] = 1
    forest = replace(
        forest,
        node_feature=np.zeros(64, np.int32),
        node_kind=np.zeros(64, np.int8),
        node_threshold=np.zeros(64),
        node_left=np.full(64, -1, np.int32),
        node_right=np.full(64, -2, np.int32),
        payload=payload,
        multiplier=np.where(np.arange(64) < 32, 1 << 20, 1),
    )
    rows = np.ones((12 * TILE_ROWS, N_FEATURES))
    rows[:TILE_ROWS] = -1
    compact, bounds = made(forest)
    compact.trees.multiplier[32:] = 1 << 24
    found = prediction.settled_labels(compact, bounds, rows, 1)[0].reshape(12, TILE_ROWS)
    assert [set(tile) for tile in found.tolist()] == [{1}] * REST + [{0}] * (12 - REST)


@pytest.mark.parametrize("by_columns", [False, True])
def test_rows_leave_where_that_is_worth_it(by_columns: bool):
    speech = (Speech.VALUES, True) if by_columns else (Speech.VOTES, False)
    forest = random_forest(np.random.default_rng(1), [3] * 300, speech[0], plain_decoding(3), speech[1])
    bounds = made(forest)[1]
    look, move = bounds.costs.tolist()
    assert look == 4 + 6 * by_columns
    assert move == 12 + made(forest)[0].n_codes // 3
    assert (np.diff(bounds.stops) >= settling.APART).all()
    assert (bounds.left > settling.MARGIN * look).all()
    for place, left in enumerate(bounds.left.tolist()):
        for n_settled in (0, 1, 64, 128, 500, 1024):
            share = n_settled / 1024
            worth = share * left > settling.MARGIN * (look + move * share * (1 - share))
            assert called(settling.worth_leaving)(1024, n_settled, bounds, place) == worth


def answers(n_first: int, first: int, n_then: int, then: int) -> Forest:
    """Trees of one leaf that add 3 to class `first`, then 2 to class `then`."""
    rng = np.random.default_rng(0)
    forest = random_forest(rng, [0] * (n_first + n_then), Speech.LABEL, plain_decoding(4))
    says = np.repeat([first, then], [n_first, n_then]).astype(np.int32)[:, np.newaxis]
    return replace(forest, payload=says, multiplier=np.repeat([3, 2], [n_first, n_then]).astype(np.int64))


@pytest.mark.parametrize(("first", "then"), [(0, 1), (1, 0), (2, 3), (3, 0)])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_lead_that_the_rest_can_just_catch_up_with(first: int, then: int, more: int):
    """48 times 3 beside 72 times 2: level at the end, one step above or below it; the smaller class wins a tie."""
    forest = answers(48, first, 72 + more, then)
    rows = np.zeros((TILE_ROWS + 200, N_FEATURES))
    winner = min(first, then) if more == 0 else (then if more > 0 else first)
    assert set(labels(forest, rows)) == {winner} == set(walked_labels(forest, rows))
    compact, bounds = made(forest)
    at_most = {int(stop): int(spread) for stop, spread in zip(bounds.stops, bounds.spread, strict=True)}
    assert at_most[48] == 2 * (72 + more)
    sums = np.full((1, compact.pitch), -(1 << 30), np.int32)
    sums[0, :4] = 0
    sums[0, first] = 3 * 48
    settled, look = np.zeros(1, np.uint8), int(np.searchsorted(bounds.stops, 48))
    # Where the rest makes it level nothing is settled, whichever class would win the tie.
    assert called(settling.mark_settled)(sums, 1, 1, 4, bounds, look, settled) == (more < 0)


@pytest.mark.parametrize("seed", range(8))
def test_near_ties_of_votes(seed: int):
    """Many rows' two best scores end level, or a step or two apart."""
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, rng.integers(0, 5, 80).tolist(), Speech.VOTES, plain_decoding(5))
    forest = replace(forest, multiplier=np.sort(rng.integers(1, 3, 80))[::-1].copy())
    rows = rng.choice(VALUES, (400, N_FEATURES))
    scores = np.sort(prediction.walked_scores(forest, rows, 1), axis=1)
    assert (scores[:, -1] - scores[:, -2] <= 4).sum() > 10
    assert labels(forest, rows) == walked_labels(forest, rows)


def test_scores_too_large_for_bounds_settle_nobody():
    forest = answers(48, 0, 72, 1)
    forest = replace(forest, multiplier=forest.multiplier << 54)
    assert made(forest)[1].stops.shape == (0,)
    rows = np.zeros((40, N_FEATURES))
    assert labels(forest, rows) == walked_labels(forest, rows)


def test_code_words_settle_nothing():
    forest = random_forest(np.random.default_rng(0), [3] * 20, Speech.VOTES, plain_decoding(3))
    coded = replace(forest, decoding=Decoding(Rule.HAMMING, np.eye(3, dtype=np.int8)))
    with pytest.raises(ValueError, match="'hamming'"):
        made(coded)


def test_forests_that_bytes_cannot_hold_are_walked():
    rng = np.random.default_rng(1)
    large = random_forest(rng, [256], Speech.VOTES, plain_decoding(3))
    assert make_compact(random_forest(rng, [255], Speech.VOTES, plain_decoding(3))) is not None
    assert make_compact(large) is None
    many = random_forest(rng, [200, 200], Speech.VOTES, plain_decoding(3))
    many = replace(
        many,
        node_threshold=np.arange(400.0),
        node_kind=np.zeros(400, np.int8),
        node_feature=np.zeros(400, np.int32),
    )
    assert make_compact(many) is None
    few = replace(many, node_threshold=np.arange(400.0) % 254)
    rows = rng.uniform(-5, 300, (100, N_FEATURES))
    rows[::7, 0] = np.nan
    for forest in (large, many, few):
        assert (prediction.forest_scores(forest, rows) == prediction.walked_scores(forest, rows, 1)).all()


def test_a_layout_is_made_once_and_goes_with_its_forest():
    forest = random_forest(np.random.default_rng(2), [3] * 4, Speech.VOTES, plain_decoding(3))
    assert compact_of(forest) is compact_of(forest)
    before = len(compact_of._found)
    del forest
    assert len(compact_of._found) == before - 1


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n_rows", [0, 1, prediction.FEW_ROWS, prediction.FEW_ROWS + 1, 2 * TILE_ROWS + 5])
def test_any_number_of_rows_threads_and_layout(monkeypatch: pytest.MonkeyPatch, threads: int, n_rows: int):
    monkeypatch.setattr(team, "INLINE_WORK", -1)
    rng = np.random.default_rng(n_rows)
    forest = random_forest(rng, [3] * 30, Speech.VOTES, plain_decoding(3))
    rows = rng.choice(VALUES, (n_rows, N_FEATURES))
    wanted = prediction.walked_scores(forest, rows, 1)
    for given_rows in (rows, np.asfortranarray(rows), np.repeat(rows, 2, axis=0)[::2]):
        assert (prediction.forest_scores(forest, given_rows, threads) == wanted).all()
        assert prediction.settled_labels(*made(forest), given_rows, threads)[0].tolist() == walked_labels(forest, rows)


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_every_algorithm_of_the_catalogue(name: str):
    """Labels and scores of a trained model by tiles, with and without early exit, are those of all trees."""
    n_classes = 2 if name == "adaboost" else 3
    table = make_table(120, N_FEATURES, n_classes, seed=3)
    config = resolve_config({"algorithm": {"name": name}, "rounds": 24})
    forest = train_alone(bin_table(table), config).forest
    rows = make_table(300, N_FEATURES, n_classes, seed=4, missing=0.2).X
    compact = make_compact(forest)
    assert compact is not None
    assert forest.n_trees > 0
    assert (prediction.tiled_scores(compact, rows, 1) == prediction.walked_scores(forest, rows, 1)).all()
    if not forest.decoding.coded:
        assert labels(forest, rows) == labels(forest, rows, early=False) == walked_labels(forest, rows)
