"""Log loss and temperature: the integers agree with the probabilities, and with any spread of the rows."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from boost_core.calibration import best_temperature, factor_of
from boost_core.catalogue import ALGORITHMS, resolve_config
from boost_core.collective import Alone, Collective
from boost_core.decoding import Decoding, Rule, plain_decoding
from boost_core.errors import ConfigError
from boost_core.log_loss import LogLoss
from boost_core.probability import Link, Transform, offset_of, probabilities_of
from boost_core.records import Silent
from boost_core.scores import UNIT, predicted_classes
from boost_core.shard import Shard
from boost_core.team import Team
from boost_core.training import TrainingResult, train
from boost_core.training_data import TrainingData
from tests.boost_core.algorithms.small_runs import scores_by_round
from tests.boost_core.test_sampling import body
from tests.builders import BinnedTable, Table, bin_rows, bin_table, make_table, member_data, shard_of
from workers.thread_group import ThreadGroup

CODE = np.array([[1, -1, 1, 0], [-1, 1, 1, -1], [1, 1, -1, 1]], np.int8)


def decoding_of(link: Link, rule: Rule) -> Decoding:
    if link is Link.DISTANCES:
        return Decoding(rule, CODE)
    return plain_decoding(1 if link is Link.SIGMOID else 3)


def naive(transform: Transform, scores: np.ndarray, decoding: Decoding, labels: np.ndarray) -> float:
    """Sum of -ln p(label), from the probabilities that prediction gives."""
    predicted = predicted_classes(scores, decoding)
    found = probabilities_of(transform, scores * UNIT, decoding, predicted)
    with np.errstate(divide="ignore"):
        return float(-np.log(found[np.arange(len(labels)), labels]).sum())


@pytest.mark.parametrize("factor", [0.3, 1.0, 4.0])
@pytest.mark.parametrize(
    ("link", "rule"),
    [(link, Rule.LOSS) for link in Link] + [(Link.DISTANCES, Rule.HAMMING)],
)
def test_integer_losses_are_those_of_the_probabilities(link: Link, rule: Rule, factor: float):
    random, decoding = np.random.default_rng(1), decoding_of(link, rule)
    n_columns = decoding.code.shape[1]
    scores = random.normal(size=(50, n_columns)) * 2**20
    if link is Link.SHARES:
        scores = random.integers(1, 9, (50, n_columns)) * 2.0**20
    scores = np.rint(scores).astype(np.int64)
    n_classes = 2 if link is Link.SIGMOID else 3
    labels = random.integers(0, n_classes, 50).astype(np.int32)
    transform = Transform(link, 0.7 if link is Link.SIGMOIDS else 0.0)
    copies = random.integers(1, 4, 50)
    for often in (None, copies):
        n_all = 50 if often is None else int(copies.sum())
        log_loss = LogLoss(transform, decoding, n_classes, n_all)
        with Team(1) as team:
            shard = Shard(np.empty((0, 50), np.uint8), labels, ((0, 50),), often)
            [total] = log_loss.sums(scores, shard, np.array([factor]), team)
        each = np.repeat(np.arange(50), 1 if often is None else copies)
        wanted = naive(replace(transform, factor=factor), scores[each], decoding, labels[each])
        assert log_loss.mean(int(total)) == pytest.approx(wanted / n_all, abs=1e-9)


@pytest.mark.parametrize("least", [-9000, -8192, -777, 0, 3, 2500, 9000])
def test_the_search_finds_the_least_of_the_grid(least: int):
    asked = []

    def losses_at(factors: np.ndarray) -> np.ndarray:
        asked.append(len(factors))
        return np.rint((1024 * np.log(factors) - least) ** 2).astype(np.int64)

    wanted = min(max(least, -8192), 8192)
    assert best_temperature(losses_at) == factor_of(-wanted)
    assert len(asked) == 5
    assert sum(asked) < 90


def gang(binned: BinnedTable, valid: Table, config: Any, members: int) -> list[TrainingResult]:
    def member(collective: Collective) -> TrainingResult:
        cuts, other = ([n * r // members for r in range(members + 1)] for n in (binned.table.n_rows, valid.n_rows))
        rank = collective.rank
        data = member_data(binned, [(cuts[rank], cuts[rank + 1])])
        codes = bin_rows(valid, binned.binning)
        rows = shard_of(codes, valid.labels, [(other[rank], other[rank + 1])])
        data = TrainingData(data.train, rows, binned.binning, data.class_counts, valid.n_rows)
        with Team(1) as team:
            return train(data, config, collective, Silent(), team)

    return ThreadGroup(members).run(member)


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_calibrated_probabilities_lose_no_more_and_predict_the_same(name: str):
    n_classes = 2 if name == "adaboost" else 3
    table, valid = make_table(90, 4, n_classes, seed=3), make_table(60, 4, n_classes, seed=4)
    binned, algorithm = bin_table(table), body(name, ALGORITHMS[name].weak_learners[0])
    asked = {"algorithm": algorithm, "rounds": 6, "calibration": "temperature", "stopping": {"metric": "log_loss"}}
    config = resolve_config(asked)
    [result] = gang(binned, valid, config, 1)
    for other in gang(binned, valid, config, 2):
        assert other.temperature == result.temperature
        assert [r.valid_log_loss for r in other.records] == [r.valid_log_loss for r in result.records]
    losses = [record.valid_log_loss for record in result.records]
    assert result.forest.n_rounds == int(np.argmin(losses)) + 1
    scores, decoding = scores_by_round(result.forest, valid.X)[-1], result.forest.decoding
    plain = Transform(ALGORITHMS[name].link, offset_of(config.algorithm.parameters, n_classes))
    before, after = (
        naive(each, scores, decoding, valid.labels) for each in (plain, replace(plain, factor=1.0 / result.temperature))
    )
    if name != "os_zero_one":  # where a label has no votes, its loss is infinite either way
        assert before / 60 == pytest.approx(min(losses), abs=1e-6)
        assert after <= before + 1e-6
    predicted = predicted_classes(scores, decoding)
    calibrated = replace(plain, factor=1.0 / result.temperature)
    assert (probabilities_of(calibrated, scores * UNIT, decoding, predicted).argmax(axis=1) == predicted).all()


def test_calibration_needs_validation_rows_and_a_known_name():
    with pytest.raises(ConfigError, match="calibration"):
        resolve_config({"algorithm": {"name": "adaboost_mh"}, "calibration": "platt"})
    config = resolve_config({"algorithm": {"name": "adaboost_mh"}, "calibration": "temperature"})
    data = member_data(bin_table(make_table(30, 2, 2, seed=1)))
    with Team(1) as team, pytest.raises(ConfigError, match=r"calibration.*data\.valid"):
        train(data, config, Alone(), Silent(), team)
