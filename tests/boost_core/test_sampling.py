"""Subsampling of rows and features: the same on any gang, and about the weak learner only."""

from typing import Any

import numpy as np
import pytest

from boost_core.catalogue import ALGORITHMS, WEAK_LEARNERS
from boost_core.collective import Alone
from boost_core.fitted import ALL_COLUMNS, Speech
from boost_core.growth import Grower
from boost_core.sampling import Sampler, SomeFeatures, offer_features
from boost_core.shard import Shard
from boost_core.team import Team
from tests.boost_core.algorithms.small_runs import (
    Table,
    config_for,
    cuts_by_round,
    facts,
    random_table,
    scores_by_round,
    train_alone,
    train_gang,
)
from tests.builders import gain_matrix_of

ROUNDS = 6


def body(name: str, learner: str, **more: Any) -> dict[str, Any]:
    outputs = {"outputs": "votes"} if name == "adaboost_mr" and learner != "tree" else {}
    limits = {"max_leaves": 4} if any(each.name == "max_leaves" for each in WEAK_LEARNERS[learner].parameters) else {}
    return {"name": name, "weak_learner": {"kind": learner, **limits}, **outputs, **more}


def table_for(name: str) -> Table:
    return random_table(3, 2 if name == "adaboost" else 3, n_rows=90, n_features=4)


PAIRS = [(name, learner) for name, algorithm in ALGORITHMS.items() for learner in algorithm.weak_learners]


@pytest.mark.parametrize(("name", "learner"), PAIRS)
def test_a_sample_does_not_depend_on_the_members(name: str, learner: str):
    table = table_for(name)
    config = config_for(body(name, learner, row_fraction=0.5, feature_fraction=0.5), ROUNDS)
    alone = train_alone(table, config)
    assert alone.records
    for result in train_gang(table, config, 2):
        assert facts(result) == facts(alone)


@pytest.mark.parametrize(("name", "learner"), [("adaboost_mh", "stump"), ("adaboost_mm", "tree"), ("samme", "tree")])
def test_edges_and_losses_are_about_all_rows(name: str, learner: str):
    """The recorded edge is that of a naive sum over all rows, and the loss identity of the whole data holds."""
    table = table_for(name)
    result = train_alone(table, config_for(body(name, learner, row_fraction=0.3), ROUNDS))
    scores = scores_by_round(result.forest, table.X)
    rows, own = np.arange(len(table.labels)), table.labels
    for number, record in enumerate(result.records):
        before, after = scores[number] * 2.0**-20, scores[number + 1] * 2.0**-20
        if name == "samme":
            weights = np.exp(-before[rows, own])
            right = (after - before)[rows, own] > 0
            edge = 1 - 3 / 2 * weights[~right].sum() / weights.sum()
        elif name == "adaboost_mh":
            signs = 2.0 * (np.arange(3) == own[:, None]) - 1
            weights = np.exp(-signs * before) * np.where(signs > 0, 1.0, 0.5)
            edge = (weights * signs * np.sign(after - before)).sum() / weights.sum()
        else:
            pairs = np.exp(before - before[rows, own][:, None])
            pairs[rows, own] = 0
            answers = (after - before).argmax(axis=1)
            right = answers == own
            edge = (pairs.sum(axis=1)[right].sum() - pairs[rows, answers][~right].sum()) / pairs.sum()
        assert record.edge == pytest.approx(edge, abs=1e-6)


def test_a_fraction_of_one_changes_nothing():
    table = table_for("adaboost_mh")
    plain, spelled = (
        train_alone(table, config_for(body("adaboost_mh", "hamming_tree", **more), ROUNDS))
        for more in ({}, {"row_fraction": 1.0, "feature_fraction": 1})
    )
    assert facts(plain) == facts(spelled)


def test_rounds_draw_samples_of_their_own():
    table = table_for("adaboost_mh")
    results = [
        train_alone(table, config_for(body("adaboost_mh", "hamming_tree", row_fraction=0.4), ROUNDS, seed))
        for seed in (0, 0, 1)
    ]
    assert facts(results[0]) == facts(results[1])
    assert facts(results[0]) != facts(results[2])


def test_a_round_cuts_the_features_it_is_offered():
    table = table_for("adaboost_mm")
    result = train_alone(table, config_for(body("adaboost_mm", "tree", feature_fraction=0.01), 12))
    used = [{feature for feature, *_ in cuts} for cuts in cuts_by_round(result.forest)]
    assert all(len(features) <= 1 for features in used)
    assert len(set().union(*used)) > 1


@pytest.mark.parametrize("fraction", [1e-6, 0.3, 0.5, 0.99])
def test_features_are_offered_by_share(fraction: float):
    whole, _ = random_table(0, 2, n_features=7).binned
    seen = set()
    for start in range(40):
        some = offer_features(whole, fraction, start)
        assert isinstance(some, SomeFeatures)
        assert some.offered.sum() == max(1, round(7 * fraction))
        assert (some.bin_start == whole.bin_start).all()
        assert (some.n_thresholds == np.where(some.offered, whole.n_thresholds, 0)).all()
        seen |= set(np.flatnonzero(some.offered).tolist())
    assert seen == set(range(7))


def test_the_least_fraction_leaves_a_row():
    """A weak learner of one row answers that row's class everywhere; votes of others are worth nothing on all rows."""
    table = table_for("os_zero_one")
    config = config_for(body("adaboost_mm", "tree", row_fraction=1e-6), 3)
    alone = train_alone(table, config)
    for result in train_gang(table, config, 3):
        assert facts(result) == facts(alone)


def test_values_of_leaves_are_taken_again_by_the_weak_learner_itself():
    """Where the sample is the whole, taking the value again gives what the fit gave."""
    table = random_table(5, 3, n_rows=60)
    made, codes = table.binned
    gains = np.random.default_rng(1).integers(-1000, 1000, (60, 6))
    gains[:, :3] -= np.rint(gains[:, :3].mean(axis=1)).astype(int)[:, None]
    shard = Shard(codes, table.labels, ((0, 60),))
    for kind, channels in (
        ("tree", 3),
        ("hamming_tree", 3),
        ("real_tree", 6),
        ("vector_tree", 3),
        ("regression_tree", 1),
    ):
        with Team(1) as team:
            grower = Grower(shard, made, Alone(), team)
            config = config_for({"name": "adaboost_mh"}, 1)
            parameters = {each.name: each.default for each in WEAK_LEARNERS[kind].parameters} | {
                "max_leaves": 4,
                "smoothing": 0.0,
            }
            learner = WEAK_LEARNERS[kind](grower, parameters)
            values = np.abs(gains[:, :channels]) if kind == "real_tree" else gains[:, :channels]
            matrix = gain_matrix_of(values.astype(np.int64) << 12)
            sums = np.array([*matrix.values[:, :channels].sum(axis=0), 60], np.int64)
            fitted = learner.fit(matrix, sums)
            sampler = Sampler(config.algorithm.parameters | {"row_fraction": 0.5}, 0, shard, grower)
            again = sampler.revalued(fitted, matrix, learner)
        assert again.value == pytest.approx(fitted.value, rel=1e-5)
        assert again.parts[0].column == ALL_COLUMNS
        assert again.speech in Speech
