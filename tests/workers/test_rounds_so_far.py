"""A checkpoint that is written again and again: only new rounds are joined, and its bytes are those of a new start."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boost_core.conditions import Conditions
from boost_core.decoding import plain_decoding
from boost_core.fitted import ALL_COLUMNS, Fitted, Part, Speech
from boost_core.forest import make_forest
from boost_core.joined_trees import LARGE, Growing, small_pages
from boost_core.records import RoundRecord
from boost_core.start import ModelSoFar
from boost_core.tree import Tree
from tests.workers.test_checkpoint import small
from workers.checkpoint import ROUNDS_AT_ONCE, Checkpoint, from_bytes, to_bytes, to_memory
from workers.rounds_so_far import RoundsSoFar


def some_rounds(seed: int, n_rounds: int, speech: Speech, measured: bool = False) -> ModelSoFar:
    """Rounds of random trees, whose cuts no training would choose; with VOTES one tree a round, else several."""
    random = np.random.default_rng(seed)
    rounds, multipliers, records = [], [], []
    for number in range(n_rounds):
        n_parts = 1 if speech is Speech.VOTES else int(random.integers(1, 4))
        parts = []
        for column in range(n_parts):
            n_nodes, outputs = int(random.integers(4)), 3 if speech is Speech.VOTES else 1
            nodes = random.integers(0, 2, (n_nodes, 6))
            nodes[:, 0] = 0  # the feature that has thresholds
            payload = random.choice(np.array([-1, 1], np.int32), (n_nodes + 1, outputs))
            if speech is Speech.VALUES:
                payload *= random.integers(1, 1 << 20, payload.shape).astype(np.int32)
            tree = Tree(nodes, payload, 0, np.empty(0, np.int32))
            parts.append(Part(tree, ALL_COLUMNS if speech is Speech.VOTES else column))
        rounds.append(Fitted(tuple(parts), speech))
        multipliers.append(random.integers(1, 1 << 40, n_parts))
        conditions = Conditions(0.5, None, 0.25, -0.1, 0.1, -1.0) if measured and number % 2 else None
        figures = random.random(9).tolist()
        records.append(RoundRecord(number + 1, *figures, None, 4, 80, None, conditions))
    return ModelSoFar(tuple(rounds), tuple(multipliers), tuple(records), 0.5, False)


def first(model: ModelSoFar, n_rounds: int) -> ModelSoFar:
    """The model when it had so many rounds."""
    return ModelSoFar(
        model.rounds[:n_rounds], model.multipliers[:n_rounds], model.records[:n_rounds], model.slack, model.perfect
    )


def checkpoint_of(model: ModelSoFar) -> Checkpoint:
    return replace(small(), model=model, round_seconds=tuple(0.125 * number for number in range(model.n_rounds)))


@given(st.integers(0, 999), st.sampled_from(Speech), st.lists(st.integers(0, 9), min_size=1, max_size=6), st.booleans())
def test_bytes_are_those_of_a_new_start(seed: int, speech: Speech, sizes: list[int], measured: bool) -> None:
    """Whatever was written before: fewer rounds, more, the same or none."""
    model, so_far = some_rounds(seed, max(sizes), speech, measured), RoundsSoFar()
    for size in sizes:
        content = to_memory(checkpoint_of(first(model, size)), so_far)
        assert bytes(content) == to_bytes(checkpoint_of(first(model, size)))


def test_another_model_of_as_many_rounds_begins_anew() -> None:
    so_far = RoundsSoFar()
    for seed, n_rounds in ((1, 5), (2, 5), (3, 7)):
        made = checkpoint_of(some_rounds(seed, n_rounds, Speech.VALUES))
        assert bytes(to_memory(made, so_far)) == to_bytes(made)


@pytest.mark.parametrize("speech", Speech)
def test_what_is_read_is_what_was_written(speech: Speech) -> None:
    model = some_rounds(4, 8, speech, measured=True)
    again = from_bytes(to_bytes(checkpoint_of(model))).model
    assert again.records == model.records
    for fitted, own in zip(again.rounds, model.rounds, strict=True):
        for part, mine in zip(fitted.parts, own.parts, strict=True):
            assert part.column == mine.column
            assert part.tree.nodes.tolist() == mine.tree.nodes.tolist()
            assert part.tree.payload.tolist() == mine.tree.payload.tolist()
    assert [each.tolist() for each in again.multipliers] == [each.tolist() for each in model.multipliers]


@pytest.mark.parametrize("speech", Speech)
def test_a_forest_is_its_trees_one_after_another(speech: Speech) -> None:
    """Against lists that are filled number by number."""
    model = some_rounds(5, 12, speech)
    forest = make_forest(list(model.rounds), list(model.multipliers), plain_decoding(3), small().binning)
    parts = [part for fitted in model.rounds for part in fitted.parts]
    nodes = [node for part in parts for node in part.tree.nodes.tolist()]
    for place, name in enumerate(("feature", "kind", "bin", "missing_left", "left", "right")):
        assert getattr(forest, f"node_{name}").tolist() == [node[place] for node in nodes]
    assert forest.payload.tolist() == [leaf for part in parts for leaf in part.tree.payload.tolist()]
    assert forest.column.tolist() == [part.column for part in parts]
    assert forest.multiplier.tolist() == [each for round_ in model.multipliers for each in round_.tolist()]
    for starts, sizes in (
        (forest.node_start, [len(part.tree.nodes) for part in parts]),
        (forest.leaf_start, [len(part.tree.payload) for part in parts]),
        (forest.round_start, [len(fitted.parts) for fitted in model.rounds]),
    ):
        assert starts.tolist() == [sum(sizes[:number]) for number in range(len(sizes) + 1)]


def test_many_rounds_of_numbers_that_cannot_be_compressed() -> None:
    """They are written a few hundred at a time, into room whose size is known before theirs is."""
    model, so_far = some_rounds(6, 3 * ROUNDS_AT_ONCE + 1, Speech.VALUES), RoundsSoFar()
    random = np.random.default_rng(0)
    rounds = []
    for fitted in model.rounds:
        payloads = [random.integers(-(2**31), 2**31, (40, 1)).astype(np.int32) for _ in fitted.parts]
        trees = [part.tree._replace(payload=payload) for part, payload in zip(fitted.parts, payloads, strict=True)]
        parts = [part._replace(tree=tree) for part, tree in zip(fitted.parts, trees, strict=True)]
        rounds.append(fitted._replace(parts=tuple(parts)))
    whole = replace(model, rounds=tuple(rounds))
    again = from_bytes(bytes(to_memory(checkpoint_of(whole), so_far))).model
    assert again.records == model.records
    for fitted, own in zip(again.rounds, whole.rounds, strict=True):
        assert [part.tree.payload.tolist() for part in fitted.parts] == [p.tree.payload.tolist() for p in own.parts]


@pytest.mark.parametrize("shape", [(0, 3), (5, 3), (LARGE // 8, 3)])
def test_pages_are_an_array_s_own(shape: tuple[int, int]) -> None:
    one, other = small_pages(shape, np.int32), small_pages(shape, np.int32)
    assert (one.shape, one.dtype) == (shape, np.int32)
    one[:], other[:] = 1, 2
    assert (one == 1).all()
    assert (other == 2).all()


@pytest.mark.parametrize("spare", [1.0, 3.0])
def test_a_view_of_what_grew_stays(spare: float) -> None:
    growing = Growing(np.int64, spare=spare)
    growing.append([1, 2, 3])
    seen = growing.rows
    for number in range(4, 60):
        growing.append([number])
    assert seen.tolist() == [1, 2, 3]
    assert growing.rows.tolist() == list(range(1, 60))
