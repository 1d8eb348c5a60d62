"""Compiling ahead of a job."""

import gc
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from numba.core.registry import CPUDispatcher

from boost_core import gang_growth, jit
from boost_core.algorithms.base import channels_of, reading_of
from boost_core.catalogue import ALGORITHMS, refuse_classes, resolve_config
from boost_core.collective import Alone, Collective
from boost_core.config import TrainingConfig
from boost_core.errors import ConfigError
from boost_core.records import Silent
from boost_core.team import Rehearsal, Team
from boost_core.training import TrainingResult, train
from boost_core.warm_up import WarmUp, warm_up, warm_up_growth, warm_up_sums
from tests.builders import (
    CONFIGURATIONS,
    ROOT,
    bin_table,
    boosted,
    config_for,
    make_table,
    member_data,
    reference_options,
)
from workers.thread_group import ThreadGroup

GROWTH = {"bundles", "cut", "cut_search", "histogram", "leaf_sums", "lone_growth", "tree_steps"}  # modules


@pytest.mark.parametrize("in_gang", [False, True])
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_every_configuration_warms_up(configuration: str, in_gang: bool):
    options = replace(reference_options(configuration), max_leaves=4)
    config = config_for(options, 1_000_000, "stump" in configuration)
    for n_classes in (2,) if options.binary else (2, 3, 6):
        warm_up(config, n_classes, WarmUp(in_gang))
        warm_up_growth(config, n_classes, WarmUp(in_gang))
        if not in_gang:
            warm_up_sums(config, n_classes)


def test_gains_made_up_have_the_channels_of_the_algorithm_and_are_read_alike():
    """Else a child compiles histograms that nobody needs, and the member those that are needed, later and alone."""
    told: dict[tuple[str, str], set[tuple[int, int]]] = {}
    for config in combinations(4):
        algorithm, key = ALGORITHMS[config.algorithm.name], (config.algorithm.name, config.weak_learner.name)
        seen, made = told.setdefault(key, set()), algorithm.gains

        def gains(self: Any, *given: Any, seen: Any = seen, made: Any = made) -> Any:
            found = made(self, *given)
            seen.add((channels_of(self), found.matrix.n_channels))
            assert reading_of(self) is found.matrix.reading
            return found

        with mock.patch.object(algorithm, "gains", gains), Team(1) as alone:
            train(member_data(bin_table(make_table(40, 3, 4, seed=1))), config, Alone(), Silent(), alone)
    assert told["adaboost_mh", "real_tree"] == {(8, 8)}
    assert told["cd_mcboost", "stump"] == {(1, 1)}
    assert {key: seen for key, seen in told.items() if len(seen) != 1 or len(set(min(seen))) != 1} == {}


def test_what_waits_for_weak_learners_is_called_before_each():
    waited: list[int] = []
    config = resolve_config({"algorithm": {"name": "adaboost_mh", "weak_learner": {"kind": "stump"}}, "rounds": 4})
    warm_up(config, 3, before_growth=lambda: waited.append(len(waited)))
    assert waited == [0, 1]


def combinations(n_classes: int) -> Iterator[TrainingConfig]:
    """Every algorithm of the catalogue with every weak learner that it takes as it is set by default."""
    for name, algorithm in ALGORITHMS.items():
        for kind in algorithm.weak_learners:
            try:
                config = resolve_config({"algorithm": {"name": name, "weak_learner": {"kind": kind}}, "rounds": 4})
                refuse_classes(config, n_classes)
            except ConfigError:
                continue
            yield config


def compiled() -> set[tuple[str, str, str]]:
    """Module, name and argument types of all machine code that is loaded."""
    kernels = [each for each in gc.get_objects() if isinstance(each, CPUDispatcher)]
    own = [each for each in kernels if each.py_func.__module__.startswith("boost_core")]
    return {(each.py_func.__module__, each.__name__, str(types)) for each in own for types in each.overloads}


def compiled_late(n_classes: int, in_gang: bool, validated: bool) -> list[tuple[str, str, tuple[str, str, str]]]:
    """What training compiles though it was warmed up for, with algorithm and weak learner. Asks for a fresh process."""
    binned, found = bin_table(make_table(90, 5, n_classes, seed=1)), []
    valid = make_table(30, 5, n_classes, seed=2)
    for config in combinations(n_classes):

        def member(collective: Collective, config: TrainingConfig = config) -> TrainingResult:
            rank, size = collective.rank, collective.size
            data = member_data(binned, [(rank * 90 // size, (rank + 1) * 90 // size)], valid if validated else None)
            with Rehearsal() as team:  # as on two threads, of which each had something to do
                data = replace(data, n_valid=size * data.n_valid)
                return boosted(train(data, config, collective, Silent(), team))

        warm_up(config, n_classes, WarmUp(in_gang, validated=validated))
        before = compiled()
        results = ThreadGroup(2).run(member) if in_gang else [member(Alone())]
        if in_gang:  # also where members hold their slice's bins of all rows
            with mock.patch.object(gang_growth, "worth_copies", return_value=True):
                results += ThreadGroup(2).run(member)
        assert all(result.records for result in results), config
        names = config.algorithm.name, config.weak_learner.name
        found += [(*names, late) for late in sorted(compiled() - before)]
    return found


def growth_compiled_late(
    configs: Iterable[TrainingConfig], n_classes: int, kind: WarmUp
) -> list[tuple[str, str, tuple[str, str, str]]]:
    """What grows trees and is compiled neither by a child, for weak learners, nor by its member before it waits for
    that, with algorithm and weak learner. Asks for a fresh process."""
    found = []
    for config in configs:
        warm_up_growth(config, n_classes, kind)
        warm_up_sums(config, n_classes, kind)
        before = compiled()
        warm_up(config, n_classes, kind)
        late = [each for each in compiled() - before if each[0].removeprefix("boost_core.") in GROWTH]
        found += [(config.algorithm.name, config.weak_learner.name, each) for each in sorted(late)]
    return found


def tree() -> TrainingConfig:
    """A weak learner that takes every kind of rows."""
    learner = {"kind": "hamming_tree", "max_leaves": 4}
    return resolve_config({"algorithm": {"name": "adaboost_mh", "weak_learner": learner}, "rounds": 4})


def names_compiled(validated: bool) -> list[str]:
    """Kernels of a job of stumps. Asks for a fresh process."""
    config = resolve_config({"algorithm": {"name": "adaboost_mh", "weak_learner": {"kind": "stump"}}, "rounds": 4})
    warm_up(config, 3, WarmUp(validated=validated))
    return sorted(name for _, name, _ in compiled())


def in_a_fresh_process(call: str) -> subprocess.CompletedProcess[str]:
    """Print what a function of this file returns."""
    program = f"from tests.boost_core import test_warm_up as these; print(these.{call})"
    return subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False
    )


@pytest.mark.skipif(jit.JIT_DISABLED, reason="nothing is compiled")
def test_kernels_for_validation_rows_are_compiled_only_where_there_are_any():
    """What routes rows is for rounds that are taken back, too."""
    with_rows, without = (in_a_fresh_process(f"names_compiled({each})").stdout for each in (True, False))
    assert "'_count_errors'" in with_rows
    assert "'_count_errors'" not in without
    assert "'_route'" in without
    assert "'do_blocks'" in without


@pytest.mark.skipif(jit.JIT_DISABLED, reason="nothing is compiled")
@pytest.mark.parametrize("kind", [WarmUp(weighted=True), WarmUp(multi_label=True)])
def test_a_child_and_its_member_share_out_what_grows_trees(kind: WarmUp):
    """Where that fails in a child of its own, nobody is told, and the member compiles it later, and alone."""
    done = in_a_fresh_process(f"growth_compiled_late([these.tree()], 3, these.{kind})")
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.skipif(jit.JIT_DISABLED, reason="nothing is compiled")
def test_they_do_with_every_algorithm_and_weak_learner():
    done = in_a_fresh_process("growth_compiled_late(these.combinations(3), 3, these.WarmUp())")
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.skipif(jit.JIT_DISABLED, reason="nothing is compiled")
@pytest.mark.parametrize(
    ("n_classes", "in_gang", "validated"),
    [(2, False, True), (2, True, False), (3, False, False), (3, True, True), (4, True, False)],
)
def test_training_compiles_nothing_after_it_was_warmed_up_for(n_classes: int, in_gang: bool, validated: bool):
    done = in_a_fresh_process(f"compiled_late({n_classes}, {in_gang}, {validated})")
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stdout + done.stderr
