"""Scores, errors and predicted classes against plain loops."""

import numpy as np
import pytest

from boost_core.fitted import ALL_COLUMNS, Fitted, Part, Speech
from boost_core.scores import NO_PAIR, WIDEN_AT, Scores, predicted_classes, zero_scores
from boost_core.team import Rehearsal, Team
from boost_core.tree import NODE_FIELDS, Tree
from tests import reference

SHAPES = [(0, 3), (1, 1), (40, 1), (40, 2), (37, 6), (5, 26)]


def part_of(payload: np.ndarray, column: int = ALL_COLUMNS) -> Part:
    """A tree of which only the leaves matter."""
    return Part(Tree(np.empty((0, NODE_FIELDS), np.int64), payload, 0, np.empty(0, np.int32)), column)


def random_scores(shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(shape[0] * 100 + shape[1])
    labels = random.integers(0, max(shape[1], 2), shape[0]).astype(np.int32)
    return random.integers(-2, 3, shape).astype(np.int32), labels


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("shape", SHAPES)
def test_errors_and_predictions(shape: tuple[int, int], dtype: type):
    values, labels = random_scores(shape)
    with Team(1) as team:
        got = Scores(values.astype(dtype)).count_errors(labels, team)
    assert got == reference.count_errors(values.tolist(), labels.tolist())
    classes = predicted_classes(values.astype(dtype))
    assert classes.dtype == np.int32
    assert classes.tolist() == [reference.predicted_class(row) for row in values.tolist()]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("n_columns", [1, 2, 7])
def test_leads_are_over_the_best_wrong_label(n_columns: int, dtype: type):
    random = np.random.default_rng(n_columns)
    values = random.integers(-(1 << 30), 1 << 30, (40, n_columns)).astype(dtype)
    labels = random.integers(0, max(n_columns, 2), 40).astype(np.int32)
    wanted = [
        (row[0] if label == 1 else -row[0])
        if n_columns == 1
        else row[label] - max(score for c, score in enumerate(row) if c != label)
        for row, label in zip(values.tolist(), labels.tolist(), strict=True)
    ]
    for n_rows in (1, 7, 40, 99):
        blocks = list(Scores(values).leads(labels, n_rows))
        assert [row for rows, _ in blocks for row in range(rows.start, rows.stop)] == list(range(40))
        assert [lead for _, leads in blocks for lead in leads.tolist()] == wanted


def test_ties_are_predicted_as_the_smallest_class_and_counted_as_strict_errors():
    values = np.zeros((3, 3), np.int32)
    labels = np.array([0, 1, 2], np.int32)
    with Team(1) as team:
        assert Scores(values).count_errors(labels, team) == (2, 3)
        assert Scores(values[:2, :1].copy()).count_errors(labels[:2], team) == (1, 2)


@pytest.mark.parametrize("shape", SHAPES)
def test_payloads_are_added_to_each_rows_leaf(shape: tuple[int, int]):
    random = np.random.default_rng(shape[0])
    scores, naive = zero_scores(*shape), [[0] * shape[1] for _ in range(shape[0])]
    with Team(1) as team:
        for _ in range(3):
            payload = random.integers(-99, 99, (4, shape[1])).astype(np.int32)
            leaf_of_row = random.integers(0, 4, shape[0]).astype(np.int32)
            scores.add(part_of(payload), Speech.VALUES, 3, leaf_of_row, team)
            for i, leaf in enumerate(leaf_of_row):
                naive[i] = [a + 3 * int(b) for a, b in zip(naive[i], payload[leaf], strict=True)]
    assert scores.values.tolist() == naive


@pytest.mark.parametrize("shape", SHAPES)
def test_labels_and_parts_of_one_column_are_added_there_only(shape: tuple[int, int]):
    random = np.random.default_rng(shape[0])
    scores, naive = zero_scores(*shape), [[0] * shape[1] for _ in range(shape[0])]
    column = shape[1] - 1
    labels, payload = random.integers(0, shape[1], (4, 1)), random.integers(-99, 99, (4, 1))
    leaf_of_row = random.integers(0, 4, shape[0]).astype(np.int32)
    with Team(1) as team:
        scores.add(part_of(labels.astype(np.int32)), Speech.LABEL, 5, leaf_of_row, team)
        scores.add(part_of(payload.astype(np.int32), column), Speech.VALUES, -7, leaf_of_row, team)
    for i, leaf in enumerate(leaf_of_row):
        naive[i][int(labels[leaf, 0])] += 5
        naive[i][column] -= 7 * int(payload[leaf, 0])
    assert scores.values.tolist() == naive


def test_scores_widen_before_they_could_overflow_and_keep_their_values():
    step = 12 << 20
    rounds = 300  # 300 * 12 * 2**20 passes 2**31
    leaf_of_row = np.array([0, 1, 0], np.int32)
    part = part_of(np.array([[1, -1], [-1, 1]], np.int32))
    scores, naive = zero_scores(3, 2), np.zeros((3, 2), object)
    with Team(1) as team:
        for number in range(1, rounds + 1):
            scores.widen(np.array([step]), Fitted((part,), Speech.VOTES))
            scores.add(part, Speech.VOTES, step, leaf_of_row, team)
            naive = naive + step * part.tree.payload[leaf_of_row].astype(object)
            assert scores.values.tolist() == naive.tolist()
            assert scores.values.dtype == (np.int64 if number * step >= WIDEN_AT else np.int32)
    assert int(np.abs(scores.values).max()) == rounds * step > 2**31


def test_difference_of_narrow_scores_fits_their_type():
    most = WIDEN_AT - 1
    assert 2 * -most >= -(2**31)
    assert 2 * most <= 2**31 - 1


def peaks_of(values: np.ndarray, labels: np.ndarray) -> list[int]:
    """What Survey says, of any scores."""
    own, values = np.arange(values.shape[1]) == labels[:, None], values.astype(np.int64)
    wrong_peaks = np.where(own, NO_PAIR, values).max(axis=0)
    own_peaks = np.where(own, -values, NO_PAIR).max(axis=0)
    return [*wrong_peaks.tolist(), *own_peaks.tolist()]


@pytest.mark.parametrize(("n_rows", "n_classes", "n_present"), [(1, 2, 1), (40, 3, 3), (9, 4, 1), (300, 26, 20)])
def test_what_is_seen_of_scores_that_are_zero_is_known(n_rows: int, n_classes: int, n_present: int):
    labels = np.random.default_rng(n_rows).integers(n_classes - n_present, n_classes, n_rows).astype(np.int32)
    scores = zero_scores(n_rows, n_classes)
    scores.watch(labels)
    survey = scores.survey(labels)
    assert survey is not None
    assert (survey.wrong, survey.strictly_wrong) == reference.count_errors(scores.values.tolist(), labels.tolist())
    assert survey.peaks.tolist() == peaks_of(scores.values, labels)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_look_at_scores_finds_what_adding_a_round_does(dtype: type[np.int64]):
    random = np.random.default_rng(5)
    labels = random.integers(0, 6, 90).astype(np.int32)
    values = random.integers(-3, 4, (90, 6)).astype(dtype)  # many ties
    scores, part = Scores(values.copy(), reach=3), part_of(random.integers(-1, 2, (4, 6)).astype(np.int32))
    scores.watch(labels)
    with Rehearsal() as team:
        for whole in (Fitted((part,), Speech.VOTES), Fitted((part,), Speech.VALUES)):
            assert scores.survey(labels) is None  # of scores that were held by another run, nothing is known
            scores.look(whole, team)
            survey = scores.survey(labels)
            assert survey is not None
            assert scores.values.tolist() == values.tolist()
            assert (survey.wrong, survey.strictly_wrong) == reference.count_errors(values.tolist(), labels.tolist())
            assert survey.peaks.tolist() == peaks_of(values, labels)
            scores.watch(labels)
        for other in (Fitted((part_of(part.tree.payload, 0),), Speech.VOTES), Fitted((part,), Speech.LABEL)):
            scores.look(other, team)
            assert scores.survey(labels) is None


@pytest.mark.parametrize("shape", [(1, 2), (40, 3), (700, 10), (300, 26)])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_what_is_seen_while_a_round_is_added_is_what_is_found_afterwards(shape: tuple[int, int], dtype: type[np.int64]):
    random = np.random.default_rng(shape[0])
    n_rows, n_classes = shape
    labels = random.integers(0, n_classes, n_rows).astype(np.int32)
    scores, again = (Scores(np.zeros(shape, dtype)) for _ in range(2))
    scores.watch(labels)
    with Rehearsal() as team:
        for _ in range(3):
            payload = random.integers(-1, 2, (4, n_classes)).astype(np.int32)  # many ties
            leaf_of_row = random.integers(0, 4, n_rows).astype(np.int32)
            for each in (scores, again):
                each.add(part_of(payload), Speech.VOTES, 3, leaf_of_row, team)
            survey = scores.survey(labels)
            assert survey is not None
            assert scores.values.tolist() == again.values.tolist()
            assert scores.count_errors(labels, team) == again.count_errors(labels, team)
            assert survey.peaks.tolist() == peaks_of(again.values, labels)
        assert again.survey(labels) is None
        assert scores.survey(labels.copy()) is None  # other labels: nothing is known of them
        with Team(1) as one:  # a run that goes on with other threads, so in other blocks
            scores.add(part_of(payload), Speech.VOTES, 3, leaf_of_row, one)
        again.add(part_of(payload), Speech.VOTES, 3, leaf_of_row, team)
        assert scores.count_errors(labels, team) == again.count_errors(labels, team)
        column = part_of(np.ones((4, 1), np.int32), 0)
        scores.add(column, Speech.VALUES, 1, leaf_of_row, team)
        assert scores.survey(labels) is None
    scores.watch(None)
    assert scores.survey(labels) is None
