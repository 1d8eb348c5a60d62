"""Checkpoints: what they hold, who may resume from them, where they are kept, and what a full disk does."""

import errno
import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

from boost_core.binning import make_binning
from boost_core.catalogue import resolve_config
from boost_core.conditions import Conditions
from boost_core.records import RoundRecord
from boost_core.start import ModelSoFar
from tests.builders import make_table
from tests.workers.parquet_tables import columns_of, plan_of, write
from workers import checkpoint_store
from workers.checkpoint import META, Checkpoint, check_same, facts_of, from_bytes, to_bytes
from workers.checkpoint_store import FolderCheckpoints, MemoryCheckpoints, newest
from workers.data_plan import DataPlan
from workers.errors import CheckpointDamaged, CheckpointRefused
from workers.in_process import train_in_process
from workers.job import CheckpointSettings, NoProgress, TrainingJob
from workers.model_file import canonical_json, model_sha256
from workers.observer import Writer
from workers.rounds_so_far import RoundsSoFar

ROUNDS = 6


def job_of(plan: DataPlan, folder: Path, rounds: int = ROUNDS, **changes: Any) -> TrainingJob:
    learner = {"kind": "hamming_tree", "max_leaves": 4}
    config = resolve_config(
        {"algorithm": {"name": "adaboost_mh", "weak_learner": learner}, "rounds": rounds, **changes}
    )
    return TrainingJob("job", 1, plan, config, 1, checkpoints=CheckpointSettings(str(folder), 0.0), resume=True)


@pytest.fixture
def plan(tmp_path: Path) -> DataPlan:
    train = write(tmp_path / "train.parquet", columns_of(make_table(240, 4, 4, seed=1)))
    return plan_of(train, write(tmp_path / "valid.parquet", columns_of(make_table(60, 4, 4, seed=2))))


class Cancels(NoProgress):
    """Cancels after so many rounds."""

    def __init__(self, after: int) -> None:
        self.after, self.rounds = after, []

    def rounds_done(self, batch: Any) -> None:
        self.rounds += [each.record.round for each in batch]

    def cancel_requested(self) -> bool:
        return len(self.rounds) >= self.after


def test_a_cancelled_job_goes_on_where_it_stopped(plan: DataPlan, tmp_path: Path) -> None:
    job = job_of(plan, tmp_path / "kept")
    whole = train_in_process(replace(job, checkpoints=None), NoProgress())
    first = Cancels(2)
    train_in_process(job, first)
    stopped = newest(FolderCheckpoints(tmp_path / "kept"), "job")
    assert stopped is not None
    assert stopped.n_rounds == len(first.rounds) < ROUNDS
    second = Cancels(100)
    resumed = train_in_process(job, second)
    assert model_sha256(resumed.model) == model_sha256(whole.model)
    assert second.rounds == list(range(1, ROUNDS + 1))
    assert [each.record for each in resumed.rounds] == [each.record for each in whole.rounds]
    kept = FolderCheckpoints(tmp_path / "kept").rounds("job")
    assert kept[0] == ROUNDS
    assert len(kept) == 2
    more = job_of(plan, tmp_path / "kept", rounds=8)
    undisturbed = train_in_process(replace(more, checkpoints=None), NoProgress())
    assert model_sha256(train_in_process(more, NoProgress()).model) == model_sha256(undisturbed.model)


def small() -> Checkpoint:
    """A checkpoint without trees."""
    config = resolve_config({"algorithm": {"name": "adaboost_mh"}, "rounds": 9})
    binning = make_binning([np.array([0.5, 1e300]), np.empty(0)], [True, False])
    model = ModelSoFar((), (), (), 1e-7, False)
    return Checkpoint(config, {"label": "y"}, binning, np.array([3, 4]), 7, 7, 5, (2**64 - 1, 0), model, ())


def test_a_checkpoint_of_no_rounds_survives_its_file() -> None:
    made = small()
    again = from_bytes(to_bytes(made))
    assert (again.config, again.facts, again.fingerprints, again.model) == (
        made.config, made.facts, made.fingerprints, made.model
    )  # fmt: skip
    assert again.binning.thresholds.tolist() == [0.5, 1e300]
    assert again.binning.threshold_start.tolist() == [0, 2, 2]
    assert again.binning.has_missing.tolist() == [True, False]
    assert again.class_counts.tolist() == [3, 4]


def test_changes_are_named(plan: DataPlan, tmp_path: Path) -> None:
    job = job_of(plan, tmp_path / "kept")
    train_in_process(job, NoProgress())
    for changes, words in (
        ({"seed": 4}, "seed was 0 and is 4"),
        ({"max_bins": 16}, "max_bins was 255 and is 16"),
        ({"rounds": 2}, "has 6 rounds, 2 are asked for"),
    ):
        with pytest.raises(CheckpointRefused, match=words):
            train_in_process(job_of(plan, tmp_path / "kept", **changes), NoProgress())
    # other values in a file of the same shape
    write(tmp_path / "train.parquet", columns_of(make_table(240, 4, 4, seed=5)))
    with pytest.raises(CheckpointRefused, match="the training rows have changed since the checkpoint of round 6"):
        train_in_process(job_of(plan, tmp_path / "kept", rounds=9), NoProgress())
    fewer = write(tmp_path / "fewer.parquet", columns_of(make_table(200, 4, 4, seed=1)))
    other = plan_of(fewer, str(tmp_path / "valid.parquet"))
    with pytest.raises(CheckpointRefused, match="training rows was 240 and is 200"):
        train_in_process(job_of(other, tmp_path / "kept"), NoProgress())


@pytest.mark.parametrize("algorithm", [{"name": "os_zero_one"}, {"name": "os_exponential", "etas": [0.5, 1, 1]}])
def test_the_boosting_game_is_not_made_longer(plan: DataPlan, algorithm: dict[str, Any]) -> None:
    config = resolve_config({"algorithm": algorithm, "rounds": 9})
    made = replace(small(), config=config, facts=facts_of(plan))
    check_same(made, config, plan)
    with pytest.raises(CheckpointRefused, match="rounds was 9 and is 10"):
        check_same(made, replace(config, rounds=10), plan)


def test_another_format_is_refused_and_damage_is_seen() -> None:
    content = to_bytes(small())
    for broken in (b"", content[:-50], content.replace(b'"slack":1e-07', b'"slack":2e-07'), b"no file at all"):
        with pytest.raises(CheckpointDamaged):
            from_bytes(broken)
    table = pa.ipc.open_file(pa.BufferReader(content)).read_all()
    sink = pa.BufferOutputStream()
    other = table.replace_schema_metadata(table.schema.metadata | {META: canonical_json({"format": 99})})
    with pa.ipc.new_file(sink, other.schema) as writer:
        writer.write_table(other)
    with pytest.raises(CheckpointRefused, match="has format 99 and this release reads format 2"):
        from_bytes(bytes(sink.getvalue()))


def test_a_full_disk_is_told_once_and_leaves_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, told = FolderCheckpoints(tmp_path), []
    writer = Writer(store, "a", 0.0, told.append)
    writer.finish(small())
    assert writer.written == 0

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_store.os, "fsync", full)
        for _ in range(2):
            writer.written = -1
            writer.finish(small())
    assert len(told) == 1
    assert "could not be written: No space left on device; training goes on" in told[0]
    assert store.rounds("a") == [0]
    assert newest(store, "a") is not None
    assert [path.name for path in tmp_path.iterdir()] == ["a.0000000000.checkpoint"]
    writer.finish(small())
    assert writer.written == 0


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("mount") is None,
    reason="a disk of its own takes root",
)
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    """The checkpoint before is still there and whole, and the next one that fits is written."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("a disk of its own takes the right to mount")
    try:
        store, told = FolderCheckpoints(disk), []
        writer = Writer(store, "a", 0.0, told.append)
        writer.finish(small())
        filler = disk / "filler"
        filler.write_bytes(bytes(shutil.disk_usage(disk).free))
        writer.written = -1
        writer.finish(small())
        assert len(told) == 1
        assert "could not be written: No space left on device; training goes on" in told[0]
        assert sorted(path.name for path in disk.iterdir()) == ["a.0000000000.checkpoint", "filler"]
        assert newest(store, "a") is not None
        filler.unlink()
        writer.finish(small())
        assert writer.written == 0
    finally:
        subprocess.run(["umount", disk], check=True)


class Slow(MemoryCheckpoints):
    """Writes when it is let."""

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "go", threading.Event())

    def put(self, job_id: str, n_rounds: int, content: bytes | memoryview) -> None:
        self.go.wait()  # type: ignore[attr-defined]
        super().put(job_id, n_rounds, content)


def test_training_does_not_wait_for_a_checkpoint() -> None:
    store, now = Slow(), [0.0]
    clock: Callable[[], float] = lambda: now[0]  # noqa: E731
    writer = Writer(store, "a", 10.0, lambda text: None, clock)
    assert not writer.due()
    now[0] = 10.0
    assert writer.due()
    writer.begin(small())
    now[0] = 30.0
    assert not writer.due()  # it is still being written
    store.go.set()  # type: ignore[attr-defined]
    writer.finish(None)
    assert writer.due()
    assert store.rounds("a") == [0]


def test_dear_checkpoints_are_rare() -> None:
    """Two seconds of the processor for one: not before 400 seconds later, though ten were asked for."""
    now, worked = [0.0], [0.0]

    class Dear(MemoryCheckpoints):
        def put(self, job_id: str, n_rounds: int, content: bytes | memoryview) -> None:
            worked[0] += 2.0

    writer = Writer(Dear(), "a", 10.0, lambda text: None, lambda: now[0], lambda: worked[0])
    now[0] = 10.0
    writer.begin(small())
    writer.finish(None)
    for now[0], due in ((20.0, False), (409.0, False), (410.0, True)):
        assert writer.due() is due


def test_what_the_training_did_itself_counts_as_well() -> None:
    """Half a second of the processor for joining rounds, in the training's own thread: 100 seconds until the next."""
    now, worked = [0.0], [0.0]
    writer = Writer(MemoryCheckpoints(), "a", 10.0, lambda text: None, lambda: now[0], lambda: worked[0])

    def dear(so_far: RoundsSoFar, model: ModelSoFar) -> None:
        worked[0] += 0.5 if threading.current_thread() is threading.main_thread() else 0.0
        bring_up(so_far, model)

    bring_up = RoundsSoFar.bring_up
    with mock.patch.object(RoundsSoFar, "bring_up", dear):
        writer.begin(small())
        writer.finish(None)
    for now[0], due in ((20.0, False), (99.0, False), (100.0, True)):
        assert writer.due() is due


def test_records_keep_every_bit() -> None:
    measured = Conditions(0.5, 0.25, None, 0.1, -0.5, -1.0)
    record = RoundRecord(1, 0.1, 1 / 3, 1e-300, -690.0, 1.0, 0.0, None, 0.1, 0.2, None, 4, 80, None, measured)
    model = ModelSoFar((), (), (record,), 1 / 7, True)
    again = from_bytes(to_bytes(replace(small(), model=model, round_seconds=(0.1,))))
    assert again.model == model
    assert again.round_seconds == (0.1,)
