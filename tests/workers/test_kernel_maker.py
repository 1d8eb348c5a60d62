"""Kernels that another process compiles: the member finds them, and needs nobody who makes them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boost_core import jit
from boost_core.catalogue import ALGORITHMS
from boost_core.config import Choice, Stopping
from boost_core.warm_up import WarmUp
from tests.builders import ROOT, make_table
from tests.workers.parquet_tables import columns_of, job_of, plan_of, small_config, write
from tests.workers.test_in_process import Recorder
from workers import kernel_maker
from workers.assignment import assign
from workers.cluster import connect
from workers.gang import GangSettings, train_on_gang
from workers.in_process import train_in_process
from workers.job import Assignment, TrainingJob
from workers.kernel_maker import (
    LEAST_CELLS,
    Order,
    growth_made_apart,
    make_kernels,
    worth_a_process,
    worth_a_second_process,
)
from workers.model_file import model_sha256

pytestmark = pytest.mark.skipif(jit.JIT_DISABLED or not jit.CACHED, reason="no kernels are kept")

ALONE, APART = ["read", "compile", "train"], ["compile", "read", "compile", "train"]
PROGRAM = """
import json, sys
from dataclasses import replace
from numba.core.event import install_recorder
from tests.workers.parquet_tables import job_of, plan_of, resolve_config
from tests.workers.test_in_process import Recorder
from workers import kernel_maker
from workers.in_process import train_in_process

kernel_maker.LEAST_CELLS = int(sys.argv[2])
stump = {"name": "adaboost", "weak_learner": {"kind": "stump"}}  # has the fewest kernels
job = job_of(plan_of(sys.argv[1]), resolve_config({"algorithm": stump, "rounds": 3}))
progress = Recorder()
with install_recorder("numba:compile") as compiled:
    train_in_process(job, progress)
names = [event.data["dispatcher"].__name__ for _, event in compiled.buffer if event.is_start]
print(json.dumps([progress.phases, names]))
"""


BESIDE = PROGRAM.replace("kernel_maker.LEAST_CELLS = int(sys.argv[2])", "kernel_maker.cpu_limit = lambda: 2").replace(
    "progress = Recorder()", "progress, job = Recorder(), replace(job, threads=2)"
)


@pytest.fixture
def job(tmp_path: Path) -> TrainingJob:
    return job_of(plan_of(write(tmp_path / "t.parquet", columns_of(make_table(60, 3, 3, seed=1)))))


@pytest.fixture
def markers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where markers are looked for, at first none; every member counts as one with many rows."""
    folder = tmp_path / "kernels"
    folder.mkdir()
    monkeypatch.setattr(jit, "CACHE", folder)
    monkeypatch.setattr(kernel_maker, "LEAST_CELLS", 0)
    return folder


@pytest.fixture
def few_rows(markers: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, and every member has a processor for a child that compiles weak learners, and few rows."""
    monkeypatch.setattr(kernel_maker, "LEAST_CELLS", LEAST_CELLS)
    monkeypatch.setattr(kernel_maker, "cpu_limit", lambda: 2)
    monkeypatch.setattr(kernel_maker, "memory_limit", lambda: 8 << 30)
    return markers


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """All processes that are started, in order."""
    started: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)

    monkeypatch.setattr(kernel_maker.subprocess, "Popen", Noted)
    return started


def order_of(job: TrainingJob) -> Order:
    return Order.of(job, WarmUp())


def train(job: TrainingJob) -> tuple[str, list[str]]:
    """The model's digest and the phases."""
    progress = Recorder()
    return model_sha256(train_in_process(job, progress).model), progress.phases


@pytest.mark.slow
def test_the_member_only_loads_what_the_child_has_compiled(tmp_path: Path):
    path = write(tmp_path / "t.parquet", columns_of(make_table(400, 3, 2, seed=1, missing=0.0)))
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kernels")}

    def run(least_cells: int) -> list[list[str]]:
        command = [sys.executable, "-c", PROGRAM, path, str(least_cells)]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        found: list[list[str]] = json.loads(done.stdout)
        return found

    phases, compiled = run(0)
    assert phases == APART
    assert set(compiled) <= {"_look_up"}  # of binning, whose kernels a tiny table does not have all of
    assert run(0) == [ALONE, []]  # by the marker


def test_a_marker_saves_the_second_child(job: TrainingJob, markers: Path, children: list[subprocess.Popen[bytes]]):
    first, second, other = (train(each) for each in (job, replace(job, config=small_config(3)), job))
    assert (first[1], second[1], other[1]) == (APART, ALONE, ALONE)
    assert first[0] == other[0] != second[0]
    assert [child.returncode for child in children] == [0]
    order = order_of(job)
    assert {each.name for each in markers.iterdir()} == {each.marker().name for each in (order, order.of_growth())}


SCRIPTS = {
    "fails": "exit 3",
    "dies": "kill -9 $$",
    "dies before it is asked": "exec <&-; exit 1",
    "fails after it read": "cat >/dev/null & read line; kill $!; exit 1",
}


@pytest.mark.parametrize("fault", [*SCRIPTS, "cannot be run", "is not there"])
def test_a_child_that_fails_is_no_failure(
    fault: str, job: TrainingJob, markers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    expected = model_sha256(train_in_process(replace(job, job_id="expected"), Recorder()).model)
    made = order_of(job).marker()
    made.unlink()
    program = tmp_path / "program"
    if fault != "is not there":
        program.write_text(f"#!/bin/sh\n{SCRIPTS.get(fault, 'exit 0')}\n")
        program.chmod(0o600 if fault == "cannot be run" else 0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    assert train(job) == (expected, APART)
    assert not made.exists()


@pytest.fixture
def endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Children that do nothing until their input ends."""
    program = tmp_path / "endless"
    program.write_text("#!/bin/sh\nexec cat\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))


@pytest.mark.usefixtures("endless")
def test_a_cancelled_job_ends_its_child(job: TrainingJob, markers: Path, children: list[subprocess.Popen[bytes]]):
    answers = iter([False, True])
    make_kernels(order_of(job), lambda: next(answers))
    assert [child.returncode for child in children] == [-signal.SIGKILL]
    assert list(markers.iterdir()) == []


@pytest.mark.usefixtures("endless", "markers")
def test_nobody_waits_for_ever(
    job: TrainingJob, children: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(kernel_maker, "GIVE_UP_SECONDS", 0.0)
    make_kernels(order_of(job), lambda: False)
    assert [child.returncode for child in children] == [-signal.SIGKILL]


@pytest.mark.usefixtures("endless", "markers")
def test_an_error_while_waiting_ends_the_child(job: TrainingJob, children: list[subprocess.Popen[bytes]]):
    def broken() -> bool:
        raise RuntimeError("the link is gone")

    with pytest.raises(RuntimeError, match="the link is gone"):
        make_kernels(order_of(job), broken)
    assert [child.returncode for child in children] == [-signal.SIGKILL]


@pytest.mark.usefixtures("markers")
def test_a_child_ends_with_its_member(job: TrainingJob):
    with kernel_maker._child(order_of(job)) as child:
        assert child.stdin is not None
        child.stdin.close()  # as the system does when a member is killed
        assert child.wait(60) == 1


def test_a_child_finds_nothing_to_do_without_a_member(job: TrainingJob):
    command = [sys.executable, "-m", "workers.kernel_maker"]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode == 1


def test_only_many_rows_are_worth_a_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: TrainingJob):
    monkeypatch.setattr(jit, "CACHE", tmp_path / "none")
    [assignment] = assign(job, [1])
    order, rows = order_of(job), -(-LEAST_CELLS // len(job.plan.features))
    assert not worth_a_process(assignment, order)
    large = replace(assignment, train_ranges=((0, rows - 1),), valid_ranges=((0, 1),))
    assert worth_a_process(large, order)
    assert not worth_a_process(replace(large, valid_ranges=()), order)


@pytest.mark.parametrize(("name", "value"), [("JIT_DISABLED", True), ("CACHE", None)])
def test_without_kept_kernels_there_is_no_child(
    name: str, value: Any, job: TrainingJob, markers: Path, monkeypatch: pytest.MonkeyPatch
):
    [assignment] = assign(job, [1])
    assert worth_a_process(assignment, order_of(job))
    monkeypatch.setattr(jit, name, value)
    assert not worth_a_process(assignment, order_of(job))


def member_of(job: TrainingJob, threads: int = 2) -> Assignment:
    [assignment] = assign(replace(job, threads=threads), [threads])
    return assignment


@pytest.mark.slow
def test_a_child_compiles_weak_learners_beside_the_rest(tmp_path: Path):
    path = write(tmp_path / "t.parquet", columns_of(make_table(400, 3, 2, seed=1, missing=0.0)))
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    command = [sys.executable, "-c", BESIDE, path]
    runs = [
        subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        for _ in range(2)
    ]
    assert [(each.returncode, each.stderr) for each in runs] == [(0, "")] * 2
    (phases, compiled), (later, found) = (json.loads(each.stdout) for each in runs)
    assert phases == later == ALONE
    assert {"share_out", "_sum_up"} <= set(compiled)
    assert not {"grow", "do_blocks", "search_next", "_route", "_leads"} & set(compiled)
    assert found == []


def test_weak_learners_are_compiled_once(job: TrainingJob, few_rows: Path, children: list[subprocess.Popen[bytes]]):
    job = replace(job, threads=2)
    first, second = train(job), train(job)
    assert first == second
    assert first[1] == ALONE
    assert [child.returncode for child in children] == [0]
    assert [each.name for each in few_rows.iterdir()] == [order_of(job).of_growth().marker().name]


@pytest.mark.parametrize("fault", [*SCRIPTS, "is not there"])
def test_a_second_process_that_fails_is_no_failure(
    fault: str, job: TrainingJob, few_rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    job = replace(job, threads=2)
    expected = train(job)
    for marker in few_rows.iterdir():
        marker.unlink()
    program = tmp_path / "program"
    if fault in SCRIPTS:
        program.write_text(f"#!/bin/sh\n{SCRIPTS[fault]}\n")
        program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    assert train(job) == expected


@pytest.mark.usefixtures("endless", "few_rows")
@pytest.mark.parametrize("cancelled", [False, True])
def test_no_second_process_stays(
    cancelled: bool,
    job: TrainingJob,
    children: list[subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(kernel_maker, "GIVE_UP_SECONDS", 600.0 if cancelled else 0.0)
    with growth_made_apart(member_of(job), order_of(job), lambda: cancelled) as wait:
        assert [child.poll() for child in children] == [None]
        wait()
        wait()
    assert [child.returncode for child in children] == [-signal.SIGKILL]


@pytest.mark.usefixtures("endless", "few_rows")
def test_an_error_ends_the_second_process(job: TrainingJob, children: list[subprocess.Popen[bytes]]):
    with (
        pytest.raises(OSError, match="the rows are gone"),
        growth_made_apart(member_of(job), order_of(job), lambda: False),
    ):
        raise OSError("the rows are gone")
    assert [child.returncode for child in children] == [-signal.SIGKILL]


@pytest.mark.usefixtures("few_rows")
def test_a_second_process_needs_a_processor_memory_and_something_to_make(
    job: TrainingJob, monkeypatch: pytest.MonkeyPatch
):
    order, two = order_of(job), member_of(job)
    assert worth_a_second_process(two, order)
    assert not worth_a_second_process(member_of(job, threads=1), order)
    rows = -(-LEAST_CELLS // len(job.plan.features))
    assert not worth_a_second_process(replace(two, train_ranges=((0, rows),)), order)
    for name, value in (("cpu_limit", 1), ("memory_limit", 700_000_000)):
        with monkeypatch.context() as patch:
            patch.setattr(kernel_maker, name, lambda value=value: value)
            assert not worth_a_second_process(two, order)
    for name, nothing in (("JIT_DISABLED", True), ("CACHE", None)):
        with monkeypatch.context() as patch:
            patch.setattr(jit, name, nothing)
            assert not worth_a_second_process(two, order)
    marker = order.of_growth().marker()
    assert marker is not None
    marker.touch()
    assert not worth_a_second_process(two, order)


def test_orders_cross_processes():
    for name, algorithm in ALGORITHMS.items():
        for kind in algorithm.weak_learners:
            config = replace(
                ORDER.config,
                algorithm=Choice(name, {"class_weight": {"1": 2.0}, "sampling": "resample"}),
                weak_learner=Choice(kind, {"max_leaves": 4}),
                stopping=Stopping("valid_error", 3),
            )
            order = Order(config, 3, WarmUp(multi_label=True), ("double", "uint8"))
            for each in (order, order.of_growth()):
                assert Order.from_json(each.to_json()) == each
            assert "\n" not in order.to_json()


ORDER = Order(small_config(), 3, WarmUp(), ("double",))
CHANGES: dict[str, tuple[bool, Callable[[Order], Order]]] = {
    "rounds": (True, lambda order: replace(order, config=replace(order.config, rounds=9))),
    "seed": (True, lambda order: replace(order, config=replace(order.config, seed=9))),
    "bins": (True, lambda order: replace(order, config=replace(order.config, max_bins=9))),
    "conditions": (False, lambda order: replace(order, config=replace(order.config, conditions=True))),
    "leaves": (False, lambda order: replace(order, config=small_config(max_leaves=9))),
    "classes": (False, lambda order: replace(order, n_classes=9)),
    "gang": (False, lambda order: replace(order, kind=WarmUp(in_gang=True))),
    "weights": (False, lambda order: replace(order, kind=WarmUp(weighted=True))),
    "types": (False, lambda order: replace(order, types=("double", "uint8"))),
}


@pytest.mark.parametrize("change", CHANGES)
def test_markers_are_of_what_decides_kernels(change: str):
    same, changed = CHANGES[change]
    assert (changed(ORDER).marker() == ORDER.marker()) is same


def test_markers_are_of_one_processor(monkeypatch: pytest.MonkeyPatch):
    before = ORDER.marker()
    codegen = kernel_maker.cpu_target.target_context.codegen()
    monkeypatch.setattr(type(codegen), "magic_tuple", lambda self: ("x86_64", "another", "+sse2"))
    assert ORDER.marker() != before


@pytest.mark.parametrize("type_", ["bool", "halffloat", "float", "double", "int8", "uint8", "int32", "uint64"])
def test_children_read_columns_of_every_type(type_: str):
    """A child's error is nobody's, so that only this would tell of it."""
    kernel_maker.load_tiny(replace(ORDER, types=(type_,)))


def test_a_worker_of_a_cluster_lets_a_child_compile(job: TrainingJob):
    settings = GangSettings(member="tests.workers.gang_members:compiles_apart", recoveries=0)
    progress = Recorder()
    with connect("local:1") as client:
        outcome = train_on_gang(job, client, 1, progress, settings)
    assert progress.phases == APART
    assert model_sha256(outcome.model) == train(job)[0]
