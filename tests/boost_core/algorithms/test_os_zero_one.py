"""The optimal strategy for the 0-1 loss: its potential, its identities, and boost by majority."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boost_core.algorithms.vote_potential import log_factorials, potential, potentials_after_vote
from boost_core.algorithms.vote_recursion import LOSSES, VoteTable, most_rounds
from boost_core.catalogue import refuse_classes, resolve_config
from boost_core.errors import ConfigError
from boost_core.training import TrainingResult
from tests.boost_core.algorithms import oracle_potential as oracle
from tests.boost_core.algorithms.single_label_runs import (
    Table,
    check_gang,
    check_oracle,
    make_table,
    nested_trees,
    payload_of,
    random_table,
    scores_by_round,
    small,
    strict_error,
    tables,
    train_alone,
)

few = settings(small, max_examples=15)
EDGES = [0.05, 0.3, 0.7]


@st.composite
def states(draw) -> tuple[tuple[int, ...], int, float]:
    """(trails ascending, rounds to come, chance of the true label)."""
    n_wrong = draw(st.integers(1, 4))
    u = tuple(sorted(draw(st.lists(st.integers(-3, 4), min_size=n_wrong, max_size=n_wrong))))
    edge = draw(st.sampled_from(EDGES))
    return u, draw(st.integers(0, 7)), (1 - edge) / (n_wrong + 1) + edge


@small
@given(state=states())
def test_the_explicit_sum_is_the_recursion(state: tuple[tuple[int, ...], int, float]):
    u, rounds, p = state
    found = float(potential(np.array(u, np.int64), rounds, p, log_factorials(rounds)))
    assert found == oracle.potential(u, rounds, p)
    assert found == pytest.approx(oracle.potential_by_recursion(u, rounds, p), abs=1e-12)


@small
@given(state=states())
def test_a_vote_for_the_true_label_costs_least_and_the_average_costs_nothing(state):
    u, rounds, p = state
    costs = np.empty((1, len(u) + 1))
    potentials_after_vote(np.array([u], np.int64), rounds, p, log_factorials(rounds), costs)
    assert (costs[0, 0] <= costs[0, 1:] + 1e-13).all()
    average = p * costs[0, 0] + (1 - p) / len(u) * costs[0, 1:].sum()
    assert average == pytest.approx(oracle.potential(u, rounds + 1, p), abs=1e-12)


def test_two_classes_are_boost_by_majority():
    """The two votes' costs differ by a term of the binomial distribution: the chance that the row's lead is decided."""
    rounds, p = 9, 0.6
    for trail in range(-8, 9):
        costs = np.empty((1, 2))
        potentials_after_vote(np.array([[trail]]), rounds, p, log_factorials(rounds), costs)
        # lost if trail + 2 right - rounds +- 1 <= 0: the votes differ where right is the one number in between
        between = [a for a in range(rounds + 1) if -1 < trail + 2 * a - rounds <= 1]
        term = sum(math.comb(rounds, a) * p**a * (1 - p) ** (rounds - a) for a in between)
        assert costs[0, 1] - costs[0, 0] == pytest.approx(term, abs=1e-12)


def test_many_classes_and_rounds_stay_in_range():
    u = np.sort(np.random.default_rng(0).integers(0, 12, 25))
    values = [float(potential(u, rounds, 0.1 + 0.9 / 26, log_factorials(60))) for rounds in range(0, 61, 10)]
    assert all(0 <= value <= 1 for value in values)
    later = float(potential(u + 3, 60, 0.1 + 0.9 / 26, log_factorials(60)))
    assert later < values[-1]


@pytest.mark.parametrize("edge", EDGES)
@small
@given(table=tables())
def test_every_round_equals_the_oracle(edge: float, table: Table):
    check_oracle(table, {"name": "os_zero_one", "edge": edge}, rounds=5)


@pytest.mark.parametrize("loss", ["hinge", "exponential", "logistic"])
@few
@given(table=tables())
def test_other_losses_equal_the_oracle_and_their_mean_potential_ends_above_the_strict_error(loss: str, table: Table):
    rounds, edge = 5, 0.2
    result = check_oracle(table, {"name": "os_zero_one", "edge": edge, "loss": loss}, rounds)
    p = (1 - edge) / table.n_classes + edge
    for t, F in enumerate(scores_by_round(table, result)[1:], start=1):
        u = [trails(table, F, i) for i in range(table.n_rows)]
        mean = np.mean([oracle.potential_of_loss(each, rounds - t, p, loss) for each in u])
        assert result.records[t - 1].loss == pytest.approx(mean, rel=1e-7, abs=1e-8)
        if t == rounds:
            assert strict_error(table, F) <= mean + 1e-12
            assert mean <= result.records[-1].bound + 1e-7


@pytest.mark.parametrize(("loss", "n_wrong", "rounds"), [("zero_one", 3, 6), ("hinge", 1, 8), ("logistic", 4, 5)])
def test_the_table_of_states_is_the_recursion(loss: str, n_wrong: int, rounds: int):
    p = 0.3 + 0.7 / (n_wrong + 1)
    table = VoteTable(loss, rounds, n_wrong, p)
    assert table.at_start() == oracle.potential_of_loss((0,) * n_wrong, rounds, p, loss)
    random = np.random.default_rng(0)
    for played in range(rounds):
        votes = random.multinomial(played, np.full(n_wrong + 1, 1 / (n_wrong + 1)), size=20)
        states = np.sort(votes[:, :1] - votes[:, 1:], axis=1)
        for u, costs in zip(states.tolist(), table.costs(states, rounds - played - 1), strict=True):
            after = [
                [trail + 1 for trail in u],
                *([trail - (c == j) for c, trail in enumerate(u)] for j in range(n_wrong)),
            ]
            wanted = [oracle.potential_of_loss(tuple(sorted(each)), rounds - played - 1, p, loss) for each in after]
            assert costs.tolist() == wanted


def test_the_exponential_loss_by_recursion_is_the_optimal_strategy_for_it():
    """A vote weighs eta = 1 there: the same trees, and the potential is the loss times kappa for each round to come."""
    table = random_table(5, noise=0.5)
    game = train_alone(table, {"name": "os_zero_one", "edge": 0.2, "loss": "exponential"}, rounds=8)
    closed = train_alone(table, {"name": "os_exponential", "edge": 0.2, "eta": 1.0}, rounds=8)
    check_same_trees(game, closed)
    kappa = 1 + 0.8 / 3 * (math.e + 1 / math.e - 2) - (1 - 1 / math.e) * 0.2
    for record, other in zip(game.records, closed.records, strict=True):
        assert record.ln_loss == pytest.approx(other.ln_loss + (8 - record.round) * math.log(kappa), abs=1e-6)
        assert record.edge == pytest.approx(other.edge, abs=1e-6)


def check_same_trees(one: TrainingResult, other: TrainingResult) -> None:
    assert len(one.records) == len(other.records)
    assert nested_trees(one.forest) == nested_trees(other.forest)


def test_with_two_classes_every_loss_wants_the_same_tree_first():
    """All rows are in one state then, and a vote for the true label costs least: the tree with the fewest errors."""
    table = random_table(6, n_classes=2)
    bodies = [{"name": "os_zero_one", "loss": loss} for loss in LOSSES]
    first = [nested_trees(train_alone(table, body, rounds=7).forest)[0] for body in bodies]
    assert first == [first[0]] * len(LOSSES)


@pytest.mark.parametrize(("n_classes", "most"), [(3, 285), (26, 32)])
def test_games_that_are_too_long_are_refused_with_the_longest_that_is_not(n_classes: int, most: int):
    assert most_rounds(n_classes) == most
    config = {"algorithm": {"name": "os_zero_one", "loss": "hinge"}}
    refuse_classes(resolve_config({**config, "rounds": most}), n_classes)
    with pytest.raises(ConfigError, match=f"'hinge' with {n_classes} classes plays at most {most} rounds, got rounds"):
        refuse_classes(resolve_config({**config, "rounds": most + 1}), n_classes)
    refuse_classes(resolve_config({"algorithm": {"name": "os_zero_one"}, "rounds": 5000}), n_classes)


@small
@given(table=tables())
def test_the_mean_potential_moves_by_the_gains_and_ends_as_the_strict_error(table: Table):
    rounds, edge = 6, 0.2
    result = train_alone(table, {"name": "os_zero_one", "edge": edge}, rounds)
    p = (1 - edge) / table.n_classes + edge
    for t, F in enumerate(scores_by_round(table, result)[1:], start=1):
        mean = np.mean([oracle.potential_by_recursion(trails(table, F, i), rounds - t, p) for i in range(table.n_rows)])
        assert result.records[t - 1].loss == pytest.approx(mean, abs=1e-8)
        if t == rounds:
            assert result.records[-1].loss == pytest.approx(strict_error(table, F), abs=1e-8)
    met = [record.edge >= edge for record in result.records]
    if all(met) and len(met) == rounds:
        at_start = oracle.potential_by_recursion((0,) * (table.n_classes - 1), rounds, p)
        assert result.records[-1].strict_train_error <= at_start + 1e-9


def trails(table: Table, F: np.ndarray, row: int) -> tuple[int, ...]:
    own = table.labels[row]
    return tuple(sorted(round(F[row, own] - F[row, c]) for c in range(table.n_classes) if c != own))


def test_the_guarantee_holds_where_the_edge_is_met():
    table = random_table(3, noise=0.3)
    result = train_alone(table, {"name": "os_zero_one", "edge": 0.3}, rounds=15)
    assert all(record.edge >= 0.3 for record in result.records)
    assert result.records[-1].bound == pytest.approx(oracle.potential((0, 0), 15, 0.7 / 3 + 0.3))
    assert result.records[-1].bound < 0.2
    assert result.records[-1].strict_train_error <= result.records[-1].bound


def test_the_votes_are_counted_alike():
    table = random_table(2)
    result = train_alone(table, {"name": "os_zero_one"}, rounds=4)
    grid, trees = table.grid(), nested_trees(result.forest)
    votes = np.zeros((table.n_rows, 3))
    for tree in trees:
        for i in range(table.n_rows):
            votes[i, payload_of(tree, grid, i)[0]] += 1
    assert (scores_by_round(table, result)[-1] == votes).all()


def test_a_perfect_tree_ends_training_once_nothing_can_be_lost():
    table = make_table([[0, 1, 2, 3, 0, 1]], [0, 1, 2, 2, 0, 1], 3)
    result = train_alone(table, {"name": "os_zero_one"}, rounds=7)
    assert result.stop_reason == "edge_one"
    assert len(result.records) == 4  # four of seven votes


def test_a_gang_of_any_size_trains_the_same_forest():
    check_gang(random_table(4, n_classes=5), {"name": "os_zero_one", "edge": 0.2}, rounds=5)
    check_gang(random_table(4, n_classes=3), {"name": "os_zero_one", "loss": "hinge"}, rounds=4)
