"""Multiclass AdaBoost through plain accuracy: Lemma 2, and examples drawn alike by every gang."""

import numpy as np
import pytest
from hypothesis import given

from boost_core.algorithms.multiclass_adaboost import _label
from boost_core.draws import draw, stream
from boost_core.jit import kernel
from tests.boost_core.algorithms import oracle_single_label as oracle
from tests.boost_core.algorithms.single_label_runs import (
    Table,
    check_gang,
    check_oracle,
    make_table,
    pair_weights,
    random_table,
    scores_by_round,
    small,
    tables,
    train_alone,
)
from tests.calling import called

RESAMPLE = {"name": "multiclass_adaboost", "sampling": "resample"}


@pytest.mark.parametrize("mass", ["max", "sum"])
@small
@given(table=tables())
def test_resampling_equals_the_oracle(mass: str, table: Table):
    check_oracle(table, {**RESAMPLE, "mass": mass}, seed=3)


@pytest.mark.parametrize("step", ["atanh", "exact"])
def test_small_samples_are_drawn_again_where_they_mislead(step: str):
    stopped = 0
    for seed in range(12):
        table = random_table(seed, n_classes=5, noise=4.0)
        body = {**RESAMPLE, "sample_rows": 2, "retries": 1, "step": step}
        result = check_oracle(table, body, rounds=5, seed=seed)
        stopped += result.stop_reason == "edge_zero"
    assert 0 < stopped < 12


@pytest.mark.parametrize("mass", ["max", "sum"])
def test_accuracy_under_the_weights_is_the_edge(mass: str):
    """E[sigma_h] = K M acc_D(h) - M for every h, at the scores of every round (Lemma 2)."""
    table, random = random_table(3, n_classes=5), np.random.default_rng(0)
    rows = np.arange(table.n_rows)
    for F in scores_by_round(table, train_alone(table, {"name": "multiclass_adaboost"})):
        E = pair_weights(table, F)
        Dt = E / E.sum()
        cover = Dt.max(axis=1) if mass == "max" else Dt.sum(axis=1)
        D = cover[:, None] - Dt
        D[rows, table.labels] = Dt.sum(axis=1) + cover
        M = cover.sum()
        assert D.min() >= 0
        assert D.sum() == pytest.approx(table.n_classes * M)
        h = random.integers(0, table.n_classes, table.n_rows)
        accuracy = D[rows, h].sum() / D.sum()
        sigma = np.where(h == table.labels, 1.0, 0.0)[:, None] - (h[:, None] == np.arange(table.n_classes))
        sigma[rows, table.labels] = 0
        assert (Dt * sigma).sum() == pytest.approx(table.n_classes * M * accuracy - M)


def test_round_one_draws_true_labels_only_with_the_smallest_mass():
    labels = [0, 1, 2, 3, 4, 0]
    rule = oracle.SampledRule(labels, 5, {**RESAMPLE, "mass": "max", "sample_rows": 200, "retries": 0}, seed=1)
    drawn = rule.gains([[0] * 5 for _ in labels]).values
    assert all(count == 0 or labels[i] == c for i, row in enumerate(drawn) for c, count in enumerate(row))
    assert sum(map(sum, drawn)) == 200


def test_draws_depend_on_the_seed_and_the_round():
    table = random_table(6, noise=3.0)
    forests = [train_alone(table, RESAMPLE, seed=seed).forest.multiplier.tolist() for seed in (0, 0, 1)]
    assert forests[0] == forests[1] != forests[2]
    assert len({stream(a, b, c) for a in range(8) for b in range(8) for c in range(8)}) == 512
    assert stream(5, 1, 2) == oracle.stream(5, 1, 2)


@pytest.mark.parametrize("mass", ["max", "sum"])
@pytest.mark.parametrize("sample_rows", [0, 9])
def test_a_gang_of_any_size_draws_the_same_examples(mass: str, sample_rows: int):
    for seed in range(3):
        table = random_table(seed, n_classes=5, noise=2.0)
        check_gang(table, {**RESAMPLE, "mass": mass, "sample_rows": sample_rows}, seed=seed)


def test_a_few_rounds_of_resampling_learn_a_separable_table():
    table = make_table([[0, 1, 2, 3] * 6], [0, 1, 2, 2] * 6, 3)
    result = train_alone(table, RESAMPLE, rounds=20)
    assert result.records[-1].train_error == 0


@pytest.mark.parametrize(("use_max", "parts"), [(True, [5, 1, 0]), (False, [6, 2, 1])])
def test_every_integer_of_a_row_belongs_to_the_label_whose_part_it_is_in(use_max: bool, parts: list[int]):
    """P = 3, E = (., 1, 2): the true label's part is P + c, the others' c - E, with c = 2 or 3."""
    found = [called(_label)(np.array([3, -1, -2], np.int32), 0, 3, use_max, rest) for rest in range(sum(parts))]
    assert found == [label for label, part in enumerate(parts) for _ in range(part)]


@kernel
def _draw_all(start, total, found):  # type: ignore[no-untyped-def]
    for number in range(found.shape[0]):
        found[number] = draw(start, number, total)


@pytest.mark.parametrize("total", [1, 7, 2**32, 2**33 + 1, 2**61 + 12345, 2**62 - 3])
def test_a_draw_is_the_high_half_of_an_exact_product(total: int):
    found, start = np.empty(200, np.int64), stream(9, 4)
    with np.errstate(over="ignore"):
        _draw_all(np.uint64(start), total, found)
    words = [oracle.mix64((start + (number + 1) * oracle.GOLDEN) & oracle.WORD) for number in range(200)]
    assert found.tolist() == [(word * total) >> 64 for word in words]
