"""Stretches with and without the JIT: what a step is, and rounds that are those of the loop (../test_stretch.py)."""

from collections.abc import Sequence

import numpy as np

from boost_core.algorithms.atanh_step import ALPHA_CAP, ATANH, atanh_step, atanh_steps
from boost_core.algorithms.base import step_units
from boost_core.catalogue import resolve_config
from boost_core.collective import Alone
from boost_core.jit import kernel
from boost_core.model import SCORE_UNITS
from boost_core.records import Silent
from boost_core.team import Team
from boost_core.training import train
from tests.builders import bin_table, forest_arrays, make_table, member_data


class Waiting(Silent):
    """May be told of several rounds at once."""

    def __init__(self) -> None:
        self.n_rounds = 0

    def passed(self, nanoseconds: Sequence[int]) -> None:
        self.n_rounds += len(nanoseconds)


def test_rounds_of_kernels_are_those_of_the_loop():
    learner = {"kind": "hamming_tree", "max_leaves": 4}
    config = resolve_config({"algorithm": {"name": "adaboost_mh", "weak_learner": learner}, "rounds": 5})
    data, waiting = member_data(bin_table(make_table(40, 3, 3, seed=0))), Waiting()
    with Team(2) as team:
        one_by_one, together = (train(data, config, Alone(), each, team) for each in (Silent(), waiting))
    assert waiting.n_rounds == 4
    assert forest_arrays(together.forest) == forest_arrays(one_by_one.forest)
    assert together.records == one_by_one.records


def test_kernels_step_as_the_loop_does():
    @kernel
    def units_of(rule, values, totals, units):  # type: ignore[no-untyped-def]
        for i in range(values.shape[0]):
            units[i] = step_units(rule, values[i], totals[i])

    random = np.random.default_rng(0)
    totals = (2.0 ** random.uniform(1, 62, 2_000)).astype(np.int64)
    values = (totals * random.uniform(-0.1, 1.0, 2_000) ** random.integers(1, 9, 2_000)).astype(np.int64)
    values[:200] = totals[:200] - random.integers(0, 3, 200)
    values[200:300] = random.integers(-1, 3, 100)
    units = np.zeros(2_000, np.int64)
    units_of(ATANH, values, totals, units)
    for value, total, found in zip(values.tolist(), totals.tolist(), units.tolist(), strict=True):
        step = atanh_step(value, total, 10)
        left_to_it = value >= total or step.refused is not None
        assert found == (0 if left_to_it else step.multipliers.item(0))
    assert units.max() <= round(ALPHA_CAP * (1 << SCORE_UNITS))


def test_steps_of_many_rounds_are_those_of_each():
    random = np.random.default_rng(1)
    totals = (2.0 ** random.uniform(1, 62, 500)).astype(np.int64) + 2
    values = np.clip((totals * random.uniform(0, 1, 500) ** 3).astype(np.int64), 1, totals - 1)
    totals[:2], values[:2] = [(1 << 62) - 1, (1 << 61) + 1], [(1 << 61) - 1, (1 << 53) + 1]  # not as doubles, exactly
    wanted = [atanh_step(*each, 10**6) for each in zip(values.tolist(), totals.tolist(), strict=True)]
    for found, step in zip(atanh_steps(values, totals, 10**6), wanted, strict=True):
        assert found.multipliers.tolist() == step.multipliers.tolist()
        assert found._replace(multipliers=step.multipliers) == step
