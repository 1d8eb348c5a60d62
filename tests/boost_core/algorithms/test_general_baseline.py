"""The optimal strategy for the exponential loss against any baseline, with any weights of votes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings

from boost_core.catalogue import plans_rounds, refuse_classes, resolve_config
from boost_core.errors import ConfigError
from tests.boost_core.algorithms import oracle_baseline as oracle
from tests.boost_core.algorithms.single_label_runs import (
    Table,
    check_gang,
    check_oracle,
    full_body,
    nested_trees,
    random_table,
    scores_by_round,
    small,
    strict_error,
    tables,
    train_alone,
)

few = settings(small, max_examples=20)
NAME = "os_exponential"


def bodies(n_classes: int) -> list[dict]:
    """A skew guess at all classes; a guess for each true class that never names the next one; weights by class."""
    skew = [1.0 + c for c in range(n_classes)]
    skew = [each / sum(skew) for each in skew]
    rows = []
    for y in range(n_classes):
        row = [0.0 if c == (y + 1) % n_classes else 1.0 + 2 * (c == y) for c in range(n_classes)]
        rows += [each / sum(row) for each in row]
    return [
        {"name": NAME, "edge": 0.4, "baseline": skew},
        {"name": NAME, "edge": 0.1, "baseline": rows, "eta": 0.5},
        {"name": NAME, "edge": 0.2, "etas": [0.3 + 0.4 * c for c in range(n_classes)]},
    ]


@pytest.mark.parametrize("kind", range(3))
@few
@given(table=tables())
def test_every_round_equals_the_oracle(kind: int, table: Table):
    check_oracle(table, bodies(table.n_classes)[kind])


@pytest.mark.parametrize("kind", range(3))
def test_the_loss_is_the_mean_potential_by_recursion_and_ends_above_the_error(kind: int):
    rounds, table = 4, random_table(3, n_rows=30)
    body = bodies(3)[kind]
    result = train_alone(table, body, rounds)
    chance, b, eta = oracle.baseline_of(full_body(body), 3)
    step = result.records[0].alpha
    for t, F in enumerate(scores_by_round(table, result)):
        votes = F / step
        each = [
            oracle.potential((votes[i] - votes[i, y]).tolist(), rounds - t, b[y], eta[y], y)
            for i, y in enumerate(table.labels)
        ]
        loss = result.records[t - 1].loss if t else math.exp(result.records[0].ln_bound)
        assert loss == pytest.approx(np.mean(each), rel=1e-6)  # every edge is met: the bound is the first potential
        if t == rounds:
            assert strict_error(table, F) <= np.mean(each) <= result.records[-1].bound * (1 + 1e-7)
    assert all(record.edge >= body["edge"] for record in result.records)
    assert len(chance) == 3


@pytest.mark.parametrize(("n_classes", "eta"), [(3, 0.0), (2, 0.7)])
def test_the_uniform_baseline_is_the_fixed_sequence_of_one_step(n_classes: int, eta: float):
    """Trees, edges and scores are equal; the potential is the loss times kappa for each round to come."""
    table, rounds = random_table(2, n_classes=n_classes), 6
    closed = {"name": NAME, "edge": 0.1, "eta": eta}
    one = train_alone(table, {**closed, "baseline": [1 / n_classes] * n_classes}, rounds)
    other = train_alone(table, closed, rounds)
    assert nested_trees(one.forest) == nested_trees(other.forest)
    assert one.forest.multiplier.tolist() == other.forest.multiplier.tolist()
    alpha = other.records[0].alpha
    spread = math.exp(alpha) + math.exp(-alpha) - 2
    ln_kappa = math.log(1 + 0.9 / n_classes * spread - (1 - math.exp(-alpha)) * 0.1)
    for record, wanted in zip(one.records, other.records, strict=True):
        assert record.edge == pytest.approx(wanted.edge, abs=1e-8)
        assert record.ln_loss == pytest.approx(wanted.ln_loss + (rounds - record.round) * ln_kappa, abs=1e-7)


def test_an_edge_below_the_planned_one_makes_the_potential_rise_and_the_bound_with_it():
    table = random_table(2, n_classes=5, noise=4.0)
    body = {"name": NAME, "edge": 0.6, "baseline": [0.2] * 5, "weak_learner": {"kind": "tree", "max_leaves": 2}}
    records = train_alone(table, body, rounds=3).records
    assert all(record.edge < 0.6 for record in records)
    losses = [record.ln_loss for record in records]
    assert losses == sorted(losses)
    assert records[-1].ln_bound == pytest.approx(losses[-1], abs=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"baseline": [0.5, 0.5]}, "there are 3 classes, got 2 numbers; give 3, or 9 for a row for each true class"),
        ({"baseline": [0.5, 0.4, 0.3]}, "add up to 1.2; a distribution adds up to 1"),
        ({"baseline": [0.8, 0.1, 0.1]}, "rows of class 1 .* guessed class 0 with 0.72 and the true one with 0.19"),
        ({"etas": [0.5]}, "there are 3 classes, got 1 numbers"),
    ],
)
def test_what_is_no_baseline_is_refused(settings: dict, message: str):
    with pytest.raises(ConfigError, match=message):
        refuse_classes(resolve_config({"algorithm": {"name": NAME, **settings}}), 3)


def test_a_uniform_baseline_is_not_written_out_to_be_checked():
    refuse_classes(resolve_config({"algorithm": {"name": "os_exponential"}}), 1_000_000)  # 8 TB of numbers


def test_only_a_baseline_plans_all_rounds():
    assert not plans_rounds(resolve_config({"algorithm": {"name": NAME}}))
    assert plans_rounds(resolve_config({"algorithm": {"name": NAME, "baseline": [0.5, 0.5]}}))


def test_a_gang_of_any_size_trains_the_same_forest():
    check_gang(random_table(8), bodies(3)[0])
